/* SPDX-License-Identifier: MIT */
/*
 * Answers about what a service keeps. The first byte says which call it is
 * that is answered. What is read is used, and a list goes on with the same
 * answer once more, of which nothing is new. The address of an archive is taken
 * apart as its download does it, and who asks is read as a key or a token says
 * it.
 */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/base64.h"
#include "lib/base/limits.h"
#include "lib/store/page.h"
#include "lib/wire/format/location.h"
#include "tnk/error.h"

static size_t n_touched;

static void touch(const char *text) {
  FUZZ_CHECK(text != NULL);
  n_touched += strlen(text);
}

static void use_checkpoint(const tnk_checkpoint_t *checkpoint) {
  touch(checkpoint->id);
  touch(checkpoint->path);
  touch(checkpoint->type);
  for (size_t i = 0; i < checkpoint->n_user_metadata; i++) {
    touch(checkpoint->user_metadata[i].name);
    touch(checkpoint->user_metadata[i].value);
  }
}

static void use_run(const tnk_run_t *run) {
  touch(run->id);
  touch(run->base_model);
  touch(run->owner);
  if (run->last_checkpoint != NULL)
    use_checkpoint(run->last_checkpoint);
  if (run->last_sampler_checkpoint != NULL)
    use_checkpoint(run->last_sampler_checkpoint);
  for (size_t i = 0; i < run->n_user_metadata; i++)
    touch(run->user_metadata[i].value);
}

static void use_pairs(const tnk_pair_t *pairs, size_t n) {
  for (size_t i = 0; i < n; i++) {
    touch(pairs[i].name);
    touch(pairs[i].value);
  }
}

static void use_session(const tnk_session_t *session) {
  touch(session->id);
  use_pairs(session->user_metadata, session->n_user_metadata);
  for (size_t i = 0; i < session->n_run_ids; i++)
    touch(session->run_ids[i]);
  for (size_t i = 0; i < session->n_sampler_ids; i++)
    touch(session->sampler_ids[i]);
  if (session->status != NULL)
    touch(session->status->type);
}

/* Records that administrators ask for. */
static void use_admin(const tnk_page_t *page, size_t i) {
  const tnk_usage_t *usage = tnk_page_usage(page, i);
  const tnk_audit_entry_t *entry = tnk_page_audit_entry(page, i);

  if (usage != NULL) {
    touch(usage->event->type);
    touch(usage->event->json);
    use_pairs(usage->user_metadata, usage->n_user_metadata);
  }
  if (entry != NULL)
    touch(entry->event);
}

/* Records that come alone. */
static void use_single(const tnk_page_t *page) {
  const tnk_external_files_t *files = tnk_page_external_files(page, 0);
  const tnk_weights_info_t *info = tnk_page_weights_info(page, 0);
  const tnk_sampler_t *sampler = tnk_page_sampler(page, 0);
  const tnk_api_key_t *key = tnk_page_api_key(page, 0);
  const tnk_identity_t *identity = tnk_page_identity(page, 0);

  if (key != NULL && key->name != NULL)
    touch(key->name);
  if (identity != NULL) {
    touch(identity->user_urn);
    FUZZ_CHECK(strncmp(identity->org_urn, "tml:organization:", 17) == 0);
  }
  if (info != NULL)
    touch(info->base_model);
  if (sampler != NULL)
    touch(sampler->base_model);
  if (files == NULL)
    return;
  use_pairs(files->files, files->n_files);
  for (size_t i = 0; i < files->n_files; i++)
    FUZZ_CHECK(files->files[i].name[0] != '/' &&
               strncmp(files->files[i].name, "../", 3) != 0 &&
               strstr(files->files[i].name, "/../") == NULL);
}

static void use(const tnk_page_t *page) {
  FUZZ_CHECK(tnk_page_is_last(page) || page->seen != NULL);
  FUZZ_CHECK(page->n <= page->n_received);
  for (size_t i = 0; i < tnk_page_count(page); i++) {
    if (tnk_page_run(page, i) != NULL)
      use_run(tnk_page_run(page, i));
    if (tnk_page_checkpoint(page, i) != NULL)
      use_checkpoint(tnk_page_checkpoint(page, i));
    if (tnk_page_session(page, i) != NULL)
      use_session(tnk_page_session(page, i));
    use_admin(page, i);
  }
  use_single(page);
}

/* Bytes that the page may take over. */
static uint8_t *own(const uint8_t *data, size_t n) {
  uint8_t *body = tnk__malloc(tnk__allocator_default(), n + 1);

  FUZZ_CHECK(body != NULL);
  if (n > 0)
    memcpy(body, data, n);
  return body;
}

static void read_page(tnk__ask_kind_t kind, const uint8_t *data, size_t size) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  const tnk__ask_t ask = {.kind = kind, .id = "id", .search = "{"};
  tnk_page_t *page;
  tnk_page_t *next;
  const char *what;

  if (tnk__page_read(&page, alloc, &ask, NULL, own(data, size), size, &what) !=
      TNK_OK)
    return;
  use(page);
  if (page->seen != NULL) {
    FUZZ_CHECK(tnk__page_read(&next, alloc, &page->ask, page->seen,
                              own(data, size), size, &what) == TNK_OK);
    FUZZ_CHECK(tnk_page_count(next) == 0 || page->n_received > TNK__SEEN_MIN);
    tnk__page_free(alloc, next);
  }
  tnk__page_free(alloc, page);
}

static void read_small(const uint8_t *data, size_t size) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  uint8_t *body = own(data, size);
  tnk__arena_t arena;
  tnk__trace_t trace;
  const char *path;
  const char *what;

  tnk__arena_init(&arena, alloc, 65536);
  if (tnk__trace_read(&trace, &arena, body, size, &what) == TNK_OK)
    touch(trace.status);
  if (size > 0)
    memcpy(body, data, size);
  if (tnk__copied_read(&path, &arena, body, size, &what) == TNK_OK)
    touch(path);
  tnk__arena_deinit(&arena);
  tnk__free(alloc, body);
}

/* Where an archive is: in the body of an answer, then one file of a page. */
static void read_archive(const uint8_t *data, size_t size) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  uint8_t *body = own(data, size);
  tnk__archive_link_t link;
  const tnk_pair_t *file;
  tnk__location_t at;
  tnk__arena_t arena;
  tnk_page_t *page;
  const char *what;

  tnk__arena_init(&arena, alloc, 65536);
  if (tnk__archive_link_read(&link, &arena, body, size, &what) == TNK_OK) {
    FUZZ_CHECK(tnk__page_of_archive(&page, alloc, link.url, link.expires_us) ==
               TNK_OK);
    use(page);
    file = tnk_page_external_files(page, 0)->files;
    FUZZ_CHECK(strcmp(file->name, TNK__ARCHIVE_FILE) == 0);
    FUZZ_CHECK(strcmp(file->value, link.url) == 0);
    if (tnk__location_parse(&at, alloc, file->value) == TNK_OK) {
      touch(at.target);
      tnk__location_deinit(&at, alloc);
    }
    tnk__page_free(alloc, page);
  }
  tnk__arena_deinit(&arena);
  tnk__free(alloc, body);
}

/* A token, as it is sent; and its claims alone, which a fuzzer would hardly
 * find behind base64. */
static void read_identity(const uint8_t *data, size_t size, int is_key) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  uint8_t *token = own(data, size);
  tnk__buf_t jwt;
  tnk_page_t *page;

  token[size] = '\0';
  if (tnk__page_of_identity(&page, alloc, (const char *)token, is_key) ==
      TNK_OK) {
    use(page);
    tnk__page_free(alloc, page);
  }
  tnk__free(alloc, token);
  tnk__buf_init(&jwt, alloc, TNK__MAX_CREDENTIAL);
  tnk__buf_text(&jwt, "e30.");
  tnk__base64_write(&jwt, data, size);
  tnk__buf_text(&jwt, ".e30");
  if (tnk__buf_cstr(&jwt) != NULL &&
      tnk__page_of_identity(&page, alloc, tnk__buf_cstr(&jwt), is_key) ==
          TNK_OK) {
    use(page);
    tnk__page_free(alloc, page);
  }
  tnk__buf_deinit(&jwt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const tnk__ask_kind_t kinds[] = {TNK__ASK_LIST_RUNS,
                                          TNK__ASK_GET_RUN,
                                          TNK__ASK_LIST_RUN_CHECKPOINTS,
                                          TNK__ASK_LIST_CHECKPOINTS,
                                          TNK__ASK_WEIGHTS_INFO,
                                          TNK__ASK_EXTERNAL_FILES,
                                          TNK__ASK_GET_SESSION,
                                          TNK__ASK_LIST_SESSIONS,
                                          TNK__ASK_SEARCH_SESSIONS,
                                          TNK__ASK_GET_SAMPLER,
                                          TNK__ASK_USAGE,
                                          TNK__ASK_STORAGE,
                                          TNK__ASK_AUDIT,
                                          TNK__ASK_GET_KEY};
  const size_t n = sizeof(kinds) / sizeof(kinds[0]);

  if (size == 0)
    return 0;
  if (data[0] < n)
    read_page(kinds[data[0]], data + 1, size - 1);
  else if (data[0] == n)
    read_archive(data + 1, size - 1);
  else if (data[0] <= n + 2)
    read_identity(data + 1, size - 1, data[0] == n + 2);
  else
    read_small(data + 1, size - 1);
  return 0;
}

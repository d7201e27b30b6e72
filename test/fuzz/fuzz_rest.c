/*
 * Answers about what a service keeps. The first byte says which call it is
 * that is answered. What is read is used; what the reader without a tree takes,
 * it takes wherever the answer lies.
 */
#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "codec/format/json_read.h"
#include "codec/rest/page.h"
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

static void use(const tnk_page_t *page) {
  FUZZ_CHECK(tnk_page_is_last(page) || page->seen != NULL);
  FUZZ_CHECK(page->n <= page->n_received);
  for (size_t i = 0; i < tnk_page_count(page); i++) {
    if (tnk_page_run(page, i) != NULL)
      use_run(tnk_page_run(page, i));
    if (tnk_page_checkpoint(page, i) != NULL)
      use_checkpoint(tnk_page_checkpoint(page, i));
  }
}

/* Bytes that the page may take over. */
static uint8_t *own(const uint8_t *data, size_t n) {
  uint8_t *body = tnk__malloc(tnk__allocator_default(), n + 1);

  FUZZ_CHECK(body != NULL);
  if (n > 0)
    memcpy(body, data, n);
  return body;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  tnk__ask_t ask = {0};
  tnk_page_t *page;
  tnk_page_t *next;
  const char *what;
  json_t *tree;

  if (size == 0)
    return 0;
  ask.kind = (tnk__ask_kind_t)(data[0] % TNK__N_ASKS);
  data++;
  size--;
  if (tnk__page_read(&page, alloc, &ask, NULL, own(data, size), size, &what) !=
      TNK_OK)
    return 0;
  use(page);
  /* What is passed over is JSON to others as well; they set other limits for
   * numbers and for texts with NULs in them. */
  if (tnk__json_parse(&tree, data, size) == TNK_OK)
    json_decref(tree);
  if (page->seen != NULL) {
    FUZZ_CHECK(tnk__page_read(&next, alloc, &page->ask, page->seen,
                              own(data, size), size, &what) == TNK_OK);
    FUZZ_CHECK(tnk_page_count(next) <= tnk_page_count(page) ||
               page->n_received > TNK__SEEN_MIN);
    tnk__page_free(alloc, next);
  }
  tnk__page_free(alloc, page);
  return 0;
}

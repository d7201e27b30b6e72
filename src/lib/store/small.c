/* SPDX-License-Identifier: MIT */
/* Answers without a list, and the contents of a token. */
#include "lib/store/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/store/record.h"
#include "lib/wire/format/jwt.h"
#include "tnk/error.h"

/* ---- Answers without a page ---- */

typedef struct {
  const char *path;
} copied_t;

static const tnk__field_t copied_fields[] = {
    TNK__FIELD(ID, copied_t, path, "tinker_path", 1),
};
static const tnk__shape_t copied_shape = {
    .fields = copied_fields, .n_fields = 1, .size = sizeof(copied_t)};

static const tnk__field_t trace_fields[] = {
    TNK__FIELD(TEXT, tnk__trace_t, status, "status", 1),
    TNK__FIELD(TEXT, tnk__trace_t, url, "url", 0),
    TNK__FIELD(TEXT, tnk__trace_t, error, "error", 0),
};
static const tnk__shape_t trace_shape = {
    .fields = trace_fields, .n_fields = 3, .size = sizeof(tnk__trace_t)};

static const tnk__field_t link_fields[] = {
    TNK__FIELD(ID, tnk__archive_link_t, url, "url", 1),
    TNK__FIELD(TIME, tnk__archive_link_t, expires_us, "expires", 1),
};
static const tnk__shape_t link_shape = {
    .fields = link_fields, .n_fields = 2, .size = sizeof(tnk__archive_link_t)};

static int read_small(void *out, const tnk__shape_t *shape, tnk__arena_t *arena,
                      uint8_t *body, size_t n, const char **what) {
  tnk__record_reader_t reader = {.arena = arena};

  tnk__json_pull_init(&reader.pull, body, n);
  tnk__record_read(&reader, shape, out);
  *what = reader.what;
  return reader.err != TNK_OK ? reader.err
                              : tnk__json_pull_finish(&reader.pull);
}

int tnk__copied_read(const char **path, tnk__arena_t *arena, uint8_t *body,
                     size_t n, const char **what) {
  copied_t copied;
  int err = read_small(&copied, &copied_shape, arena, body, n, what);

  if (err == TNK_OK)
    *path = copied.path;
  return err;
}

int tnk__trace_read(tnk__trace_t *out, tnk__arena_t *arena, uint8_t *body,
                    size_t n, const char **what) {
  return read_small(out, &trace_shape, arena, body, n, what);
}

int tnk__archive_link_read(tnk__archive_link_t *out, tnk__arena_t *arena,
                           uint8_t *body, size_t n, const char **what) {
  return read_small(out, &link_shape, arena, body, n, what);
}

/* ---- Pages from other sources ---- */

/* A page with room for one record; NULL without memory. */
static tnk_page_t *new_page(const tnk_allocator_t *alloc,
                            tnk__page_kind_t kind) {
  tnk_page_t *page = tnk__calloc(alloc, 1, sizeof(*page));

  if (page == NULL)
    return NULL;
  *page = (tnk_page_t){
      .kind = kind, .total = -1, .is_last = 1, .storage_rate = NAN};
  tnk__arena_init(&page->arena, alloc, 65536);
  return page;
}

int tnk__page_of_archive(tnk_page_t **out, const tnk_allocator_t *alloc,
                         const char *url, int64_t expires_us) {
  tnk_page_t *page = new_page(alloc, TNK__PAGE_EXTERNAL_FILES);
  tnk_external_files_t *files;
  tnk_pair_t *pair;

  if (page == NULL)
    return TNK_ENOMEM;
  files = tnk__arena_calloc(&page->arena, 1, sizeof(*files));
  pair = tnk__arena_calloc(&page->arena, 1, sizeof(*pair));
  if (pair != NULL)
    pair->value = tnk__arena_strdup(&page->arena, url);
  if (files == NULL || pair == NULL || pair->value == NULL) {
    tnk__page_free(alloc, page);
    return TNK_ENOMEM;
  }
  pair->name = TNK__ARCHIVE_FILE;
  *files = (tnk_external_files_t){
      .files = pair, .n_files = 1, .expires_us = expires_us};
  page->items = files;
  page->n = page->n_received = 1;
  *out = page;
  return TNK_OK;
}

/* ---- The identity ---- */

typedef struct {
  const char *issuer;
  const char *user;
  const char *organization;
  const char *email;
} claims_t;

static const tnk__field_t claims_fields[] = {
    TNK__FIELD(TEXT, claims_t, issuer, "iss", 0),
    TNK__FIELD(ID, claims_t, user, "sub", 1),
    TNK__FIELD(ID, claims_t, organization, "org_id", 1),
    TNK__FIELD(TEXT, claims_t, email, "email", 0),
};
static const tnk__shape_t claims_shape = {
    .fields = claims_fields, .n_fields = 4, .size = sizeof(claims_t)};

static int read_identity(tnk_page_t *page, size_t n, int is_key) {
  static const char prefix[] = "tml:organization:";
  tnk_identity_t *identity =
      tnk__arena_calloc(&page->arena, 1, sizeof(*identity));
  const char *what;
  claims_t claims;
  size_t size;
  char *urn;
  int err =
      read_small(&claims, &claims_shape, &page->arena, page->body, n, &what);

  if (identity == NULL)
    return TNK_ENOMEM;
  if (err == TNK_OK && is_key &&
      (claims.issuer == NULL || strncmp(claims.issuer, "passport-", 9) != 0))
    err = TNK_EPROTO;
  if (err != TNK_OK)
    return err;
  size = sizeof(prefix) + strlen(claims.organization);
  urn = tnk__arena_alloc(&page->arena, size);
  if (urn == NULL)
    return TNK_ENOMEM;
  snprintf(urn, size, "%s%s", prefix, claims.organization);
  identity->user_urn = claims.user;
  identity->org_urn = urn;
  if (claims.email != NULL && claims.email[0] != '\0')
    identity->email = claims.email;
  page->items = identity;
  page->n = page->n_received = 1;
  return TNK_OK;
}

int tnk__page_of_identity(tnk_page_t **out, const tnk_allocator_t *alloc,
                          const char *token, int is_key) {
  tnk_page_t *page = new_page(alloc, TNK__PAGE_IDENTITIES);
  tnk__buf_t claims;
  size_t n = 0;
  int err;

  if (page == NULL)
    return TNK_ENOMEM;
  tnk__buf_init(&claims, alloc, TNK__MAX_CREDENTIAL);
  err = tnk__jwt_claims(&claims, token);
  if (err == TNK_OK) {
    page->body = tnk__buf_take(&claims, &n);
    err = read_identity(page, n, is_key);
  }
  tnk__buf_deinit(&claims);
  if (err != TNK_OK)
    tnk__page_free(alloc, page);
  else
    *out = page;
  return err;
}

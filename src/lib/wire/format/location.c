/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/location.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "tnk/error.h"

/* The length of "https://host:port" in an absolute URL. */
static size_t origin_length(const char *text) {
  const char *slashes = strstr(text, "//");

  if (slashes == NULL)
    return 0;
  return (size_t)(slashes + 2 - text) + strcspn(slashes + 2, "/?#");
}

/* Other characters must be encoded, but the intended encoding is unknown. */
static int is_visible(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (text[i] <= ' ' || text[i] > '~')
      return 0;
  return 1;
}

static int keep(tnk__location_t *out, const tnk_allocator_t *alloc,
                const tnk__url_t *origin, const char *rest, size_t n) {
  const size_t n_origin = strlen(origin->text);
  const int needs_slash = n == 0 || rest[0] != '/';
  char *at;

  /* One byte for a slash and one for the NUL. */
  out->text = tnk__malloc(alloc, n_origin + n + 2);
  out->host = tnk__strdup(alloc, origin->host);
  out->authority = tnk__strdup(alloc, origin->authority);
  if (out->text == NULL || out->host == NULL || out->authority == NULL) {
    tnk__free(alloc, out->text);
    out->text = NULL;
    tnk__location_deinit(out, alloc);
    return TNK_ENOMEM;
  }
  memcpy(out->text, origin->text, n_origin);
  at = out->text + n_origin;
  out->target = at;
  if (needs_slash)
    *at++ = '/';
  memcpy(at, rest, n);
  at[n] = '\0';
  out->port = origin->port;
  out->is_tls = origin->is_tls;
  return TNK_OK;
}

int tnk__location_parse(tnk__location_t *out, const tnk_allocator_t *alloc,
                        const char *text) {
  const size_t n_origin = origin_length(text);
  const char *rest = text + n_origin;
  const size_t n = strcspn(rest, "#");
  tnk__arena_t arena;
  tnk__url_t origin;
  char *head;
  int err = TNK_EINVAL;

  memset(out, 0, sizeof(*out));
  if (n_origin == 0 || n_origin + n > TNK__MAX_URL || !is_visible(rest, n))
    return TNK_EINVAL;
  /* Only the origin goes through the parser of base URLs, which allows no
   * query. The rest is checked and kept unchanged. */
  tnk__arena_init(&arena, alloc, 4 * TNK__MAX_URL);
  head = tnk__arena_strndup(&arena, text, n_origin);
  err = head == NULL ? TNK_ENOMEM : tnk__url_parse(&origin, &arena, head, NULL);
  if (err == TNK_OK)
    err = keep(out, alloc, &origin, rest, n);
  tnk__arena_deinit(&arena);
  return err;
}

/* The length of the part of the base that precedes the reference. */
static size_t kept_length(const tnk__location_t *base, const char *reference) {
  const size_t n_origin = (size_t)(base->target - base->text);
  size_t n = strcspn(base->target, "?");

  /* In the order of RFC 3986, 5.2.2: another host, another path, another query,
   * otherwise a file in the same directory. The server resolves dot
   * segments. */
  if (reference[0] == '/' && reference[1] == '/')
    return strcspn(base->text, "/");
  if (reference[0] == '/')
    return n_origin;
  if (reference[0] == '?')
    return n_origin + n;
  while (base->target[n - 1] != '/')
    n--;
  return n_origin + n;
}

int tnk__location_join(tnk__location_t *out, const tnk_allocator_t *alloc,
                       const tnk__location_t *base, const char *reference) {
  const size_t n_scheme = strcspn(reference, ":/?#");
  tnk__buf_t text;
  int err;

  memset(out, 0, sizeof(*out));
  if (reference[0] == '\0' || reference[0] == '#')
    return TNK_EINVAL;
  if (reference[n_scheme] == ':')
    return tnk__location_parse(out, alloc, reference);
  tnk__buf_init(&text, alloc, 2 * TNK__MAX_URL);
  /* Reserve once, so no copy stays in freed memory. */
  tnk__buf_reserve(&text, strlen(base->text) + strlen(reference) + 1);
  tnk__buf_append(&text, base->text, kept_length(base, reference));
  tnk__buf_text(&text, reference);
  if (tnk__buf_cstr(&text) == NULL)
    err = text.err == TNK_ENOMEM ? TNK_ENOMEM : TNK_EINVAL;
  else
    err = tnk__location_parse(out, alloc, (const char *)text.data);
  if (text.data != NULL)
    tnk__wipe(text.data, text.len);
  tnk__buf_deinit(&text);
  return err;
}

int tnk__location_same_origin(const tnk__location_t *a,
                              const tnk__location_t *b) {
  return a->is_tls == b->is_tls && a->port == b->port &&
         strcmp(a->host, b->host) == 0;
}

void tnk__location_deinit(tnk__location_t *location,
                          const tnk_allocator_t *alloc) {
  tnk__free_secret(alloc, location->text);
  tnk__free(alloc, location->host);
  tnk__free(alloc, location->authority);
  memset(location, 0, sizeof(*location));
}

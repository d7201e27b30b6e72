/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/format/http_write.h"
#include "lib/wire/format/location.h"
#include "lib/files/hub/cache.h"
#include "lines.h"
#include "tnk/error.h"

/*
 * What a download meets. Lines: an address, a reference on that page (Location
 * or relative), an ETag, the names of a model, a revision and a file.
 */

/* It is a normal form, and a request can be written for it. */
static void check_location(const tnk__location_t *location) {
  const tnk__http_head_t head = {.method = "GET",
                                 .target = location->target,
                                 .host = location->host,
                                 .port = location->port,
                                 .default_port = 443};
  const tnk_allocator_t *alloc = tnk__allocator_default();
  tnk__location_t again;
  tnk__buf_t out;

  FUZZ_CHECK(location->host[0] != '\0' && location->port != 0);
  FUZZ_CHECK(location->target[0] == '/');
  FUZZ_CHECK(strchr(location->text, '#') == NULL);
  FUZZ_CHECK(strchr(location->authority, '@') == NULL);
  for (const char *c = location->text; *c != '\0'; c++)
    FUZZ_CHECK((unsigned char)*c > ' ' && *c != 0x7f);
  FUZZ_CHECK(tnk__location_parse(&again, alloc, location->text) == TNK_OK);
  FUZZ_CHECK(strcmp(again.text, location->text) == 0);
  FUZZ_CHECK(tnk__location_same_origin(&again, location));
  tnk__location_deinit(&again, alloc);
  tnk__buf_init(&out, alloc, TNK__MAX_REQUEST_HEAD);
  FUZZ_CHECK(tnk__http_write_head(&out, &head) == TNK_OK);
  tnk__buf_deinit(&out);
}

static void check_join(const tnk__location_t *base, const char *reference) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  tnk__location_t to, again;
  int err = tnk__location_join(&to, alloc, base, reference);

  FUZZ_CHECK(err == TNK_OK || err == TNK_EINVAL);
  if (err != TNK_OK)
    return;
  check_location(&to);
  if (reference[0] == '/' && reference[1] != '/')
    FUZZ_CHECK(tnk__location_same_origin(&to, base));
  FUZZ_CHECK(tnk__location_join(&again, alloc, base, to.text) == TNK_OK);
  FUZZ_CHECK(strcmp(again.text, to.text) == 0);
  tnk__location_deinit(&again, alloc);
  tnk__location_deinit(&to, alloc);
}

static void check_addresses(const char *address, const char *reference) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  tnk__location_t base;
  int err = tnk__location_parse(&base, alloc, address);

  FUZZ_CHECK(err == TNK_OK || err == TNK_EINVAL);
  if (err != TNK_OK)
    return;
  check_location(&base);
  check_join(&base, reference);
  tnk__location_deinit(&base, alloc);
}

/* No part is empty or hidden, so that none leads out of its folder. */
static void check_parts(const char *text) {
  FUZZ_CHECK(text[0] != '\0' && text[0] != '/' && text[0] != '.');
  FUZZ_CHECK(text[strlen(text) - 1] != '/' && strpbrk(text, "\\:%") == NULL);
  FUZZ_CHECK(strstr(text, "//") == NULL && strstr(text, "/.") == NULL);
}

/* It may be hidden and hold anything but what a path or a line means. */
static void check_below(const char *text) {
  FUZZ_CHECK(text[0] != '\0' && text[0] != '/');
  for (const char *at = text; at != NULL; at = strchr(at, '/')) {
    at += *at == '/';
    const size_t n = strcspn(at, "/");
    FUZZ_CHECK(n > 0 && !(n == 1 && at[0] == '.'));
    FUZZ_CHECK(!(n == 2 && at[0] == '.' && at[1] == '.'));
  }
  for (; *text != '\0'; text++)
    FUZZ_CHECK((unsigned char)*text >= ' ' && *text != 0x7f && *text != '\\');
}

static void check_etag(const char *header) {
  char etag[TNK__CACHE_ETAG + 1], again[TNK__CACHE_ETAG + 1];

  if (!tnk__cache_read_etag(etag, header))
    return;
  check_parts(etag);
  FUZZ_CHECK(strchr(etag, '/') == NULL);
  FUZZ_CHECK(tnk__cache_read_etag(again, etag) && strcmp(again, etag) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tnk__cache_key_t key = {.root = "/cache"};
  const char *text[6];
  fuzz_lines_t lines;

  fuzz_lines_open(&lines, data, size);
  for (int i = 0; i < 6; i++) {
    text[i] = fuzz_lines_next(&lines);
    if (text[i] == NULL)
      text[i] = "";
  }
  check_addresses(text[0], text[1]);
  check_etag(text[2]);
  key.model = text[3];
  key.revision = text[4];
  key.file = text[5];
  if (tnk__cache_check(&key) == NULL) {
    check_parts(key.model);
    FUZZ_CHECK(strstr(key.model, "--") == NULL);
    check_below(key.revision);
    check_below(key.file);
  }
  tnk__cache_is_commit(key.revision);
  fuzz_lines_close(&lines);
  return 0;
}

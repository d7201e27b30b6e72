/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/format/location.h"
#include "tnk/error.h"

static void check_parse(tnk__arena_t *arena, const char *text) {
  const char *why = NULL;
  tnk__url_t url, again;
  int err = tnk__url_parse(&url, arena, text, &why);

  FUZZ_CHECK(err == TNK_OK || (err == TNK_EINVAL && why != NULL));
  if (err != TNK_OK)
    return;
  FUZZ_CHECK(url.port != 0 && url.host[0] != '\0');
  FUZZ_CHECK(url.path[0] == '\0' || url.path[0] == '/');
  FUZZ_CHECK(strpbrk(url.text, " \t\r\n\"<>\\?#") == NULL);
  if (strlen(url.text) > TNK__MAX_URL)
    return;
  FUZZ_CHECK(tnk__url_parse(&again, arena, url.text, &why) == TNK_OK);
  FUZZ_CHECK(strcmp(again.text, url.text) == 0);
  FUZZ_CHECK(again.is_tls == url.is_tls && again.port == url.port);
  FUZZ_CHECK(strcmp(again.host, url.host) == 0);
}

/* No text can leave the segment that it is put into. */
static void check_segment(const char *text) {
  tnk__buf_t out;
  const char *written;

  tnk__buf_init(&out, tnk__allocator_default(), TNK__MIB);
  tnk__url_put_segment(&out, text);
  if (out.err == TNK_OK) {
    written = tnk__buf_cstr(&out);
    FUZZ_CHECK(written != NULL && written[0] != '\0');
    FUZZ_CHECK(strcmp(written, ".") != 0 && strcmp(written, "..") != 0);
    FUZZ_CHECK(strpbrk(written, "/?# \t\r\n\\") == NULL);
  }
  tnk__buf_clear(&out);
  tnk__url_put_segments(&out, text);
  tnk__buf_deinit(&out);
}

/* A redirection leads to an address that can be asked, or to none. */
static void check_location(const tnk_allocator_t *alloc, const char *text) {
  tnk__location_t base, to, again;

  FUZZ_CHECK(tnk__location_parse(&base, alloc, "https://h:8/a/b?c=/d") ==
             TNK_OK);
  if (tnk__location_join(&to, alloc, &base, text) == TNK_OK) {
    FUZZ_CHECK(to.target[0] == '/' && strpbrk(to.target, " \t\r\n#") == NULL);
    FUZZ_CHECK(to.port != 0 && to.host[0] != '\0');
    FUZZ_CHECK(tnk__location_parse(&again, alloc, to.text) == TNK_OK);
    FUZZ_CHECK(tnk__location_same_origin(&to, &again) &&
               strcmp(to.target, again.target) == 0);
    tnk__location_deinit(&again, alloc);
  }
  tnk__location_deinit(&to, alloc);
  tnk__location_deinit(&base, alloc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tnk__arena_t arena;
  char *text;

  tnk__arena_init(&arena, tnk__allocator_default(), TNK__MIB);
  text = tnk__strndup(arena.alloc, (const char *)data, size);
  FUZZ_CHECK(text != NULL);
  check_parse(&arena, text);
  check_segment(text);
  check_location(arena.alloc, text);
  tnk__free(arena.alloc, text);
  tnk__arena_deinit(&arena);
  return 0;
}

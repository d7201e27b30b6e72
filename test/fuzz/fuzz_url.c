#include "fuzz.h"

#include <string.h>

#include "base/alloc.h"
#include "base/limits.h"
#include "codec/url.h"
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
  FUZZ_CHECK(tnk__url_same_origin(&url, &again));
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  tnk__arena_t arena;
  char *text;

  tnk__arena_init(&arena, tnk__allocator_default(), TNK__MIB);
  text = tnk__strndup(arena.alloc, (const char *)data, size);
  FUZZ_CHECK(text != NULL);
  check_parse(&arena, text);
  check_segment(text);
  tnk__free(arena.alloc, text);
  tnk__arena_deinit(&arena);
  return 0;
}

#include "fuzz.h"

#include <string.h>

#include "api/credentials.h"
#include "base/alloc.h"
#include "base/limits.h"
#include "codec/format/json_write.h"
#include "codec/format/jwt.h"
#include "tnk/error.h"

/* A key holds nothing that could end a header, and the sentence about a bad
 * one does not repeat it. */
static void check_key(const char *key) {
  const char *why = NULL;
  int64_t expires_s = -1;
  int err = tnk__key_check(tnk__allocator_default(), key, &expires_s, &why);

  FUZZ_CHECK(err == TNK_OK || err == TNK_ECREDENTIAL);
  if (err != TNK_OK) {
    FUZZ_CHECK(why != NULL && (strlen(key) < 8 || strstr(why, key) == NULL));
    return;
  }
  FUZZ_CHECK(expires_s >= 0);
  FUZZ_CHECK((expires_s == 0) == (strncmp(key, "tml-", 4) == 0));
  for (const char *c = key; *c != '\0'; c++)
    FUZZ_CHECK((unsigned char)*c > 0x20 && (unsigned char)*c < 0x7f);
}

/* Times are known or zero, whatever the claims say. */
static void check_times(const char *token) {
  tnk__jwt_t jwt;

  FUZZ_CHECK(tnk__jwt_read(&jwt, tnk__allocator_default(), token) == TNK_OK);
  FUZZ_CHECK(jwt.expires_s >= 0 && jwt.expires_s < 1000000000000000);
  FUZZ_CHECK(jwt.issued_s >= 0 && jwt.issued_s < 1000000000000000);
}

/* What was read, written as a file of one key, is read again. */
static void check_again(const char *key) {
  tnk__json_writer_t w;
  tnk__buf_t buf;
  char *again;

  tnk__buf_init(&buf, tnk__allocator_default(), TNK__MIB);
  tnk__json_writer_init(&w, &buf);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "default", "a");
  tnk__json_key(&w, "keys");
  tnk__json_begin_object(&w);
  tnk__json_key(&w, "a");
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "type", "manual");
  tnk__json_put_text(&w, "name", "n");
  tnk__json_put_text(&w, "key", key);
  tnk__json_end(&w);
  tnk__json_end(&w);
  tnk__json_end(&w);
  FUZZ_CHECK(tnk__json_finish(&w) == TNK_OK);
  FUZZ_CHECK(tnk__credentials_parse(buf.alloc, (const char *)buf.data, buf.len,
                                    &again) == TNK_OK);
  FUZZ_CHECK(again != NULL && strcmp(again, key) == 0);
  tnk__free(buf.alloc, again);
  tnk__buf_deinit(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  char *text = tnk__strndup(alloc, (const char *)data, size);
  char *key;
  int err = tnk__credentials_parse(alloc, (const char *)data, size, &key);

  FUZZ_CHECK(err == TNK_OK || err == TNK_ECREDENTIAL);
  FUZZ_CHECK(err == TNK_OK || key == NULL);
  if (key != NULL) {
    check_again(key);
    check_key(key);
  }
  tnk__free(alloc, key);
  FUZZ_CHECK(text != NULL);
  check_key(text);
  check_times(text);
  tnk__free(alloc, text);
  return 0;
}

/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/api/config.h"
#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/data/credentials.h"
#include "lib/wire/format/jwt.h"
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

/* What was read is written, and reads the same. */
static void check_again(const json_t *store) {
  json_t *again;
  tnk__buf_t buf;

  tnk__buf_init(&buf, tnk__allocator_default(), 16 * TNK__MIB);
  FUZZ_CHECK(tnk__credentials_write(store, &buf) == TNK_OK);
  FUZZ_CHECK(tnk__credentials_open(&again, buf.data, buf.len) == TNK_OK);
  FUZZ_CHECK(json_equal(store, again));
  tnk__credentials_close(again);
  tnk__buf_deinit(&buf);
}

/* One key more is found where it belongs, and goes again. The others stay. */
static void check_changes(json_t *store, const tnk__url_t *url) {
  static const tnk__stored_key_t more = {
      .id = "1", .key = "tml-more", .name = "n", .base_url = "https://h/p"};
  json_t *before = json_deep_copy(store);
  tnk__stored_key_t found;
  tnk__stored_t had = tnk__credentials_find(&found, store, url);

  if (had == TNK__STORED_FOUND && found.base_url != NULL) {
    json_decref(before);
    return;
  }
  FUZZ_CHECK(tnk__credentials_add(store, &more) == TNK_OK);
  check_again(store);
  FUZZ_CHECK(tnk__credentials_find(&found, store, url) == TNK__STORED_FOUND);
  FUZZ_CHECK(strcmp(found.key, "tml-more") == 0);
  FUZZ_CHECK(tnk__credentials_remove(store, found.id) == 1);
  FUZZ_CHECK(tnk__credentials_find(&found, store, url) == had ||
             had == TNK__STORED_NONE);
  FUZZ_CHECK(json_object_get(before, "keys") == NULL ||
             json_equal(json_object_get(before, "keys"),
                        json_object_get(store, "keys")));
  json_decref(before);
}

static void check_store(json_t *store) {
  tnk__stored_key_t found;
  tnk__arena_t arena;
  tnk__url_t url;

  tnk__arena_init(&arena, tnk__allocator_default(), TNK__MIB);
  FUZZ_CHECK(tnk__url_parse(&url, &arena, "https://h/p", NULL) == TNK_OK);
  if (tnk__credentials_find(&found, store, &url) != TNK__STORED_NONE)
    check_key(found.key);
  check_again(store);
  check_changes(store, &url);
  tnk__arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const tnk_allocator_t *alloc = tnk__allocator_default();
  char *text = tnk__strndup(alloc, (const char *)data, size);
  json_t *store;
  int err = tnk__credentials_open(&store, data, size);

  FUZZ_CHECK(err == TNK_OK || err == TNK_ECREDENTIAL);
  FUZZ_CHECK((err == TNK_OK) == (store != NULL));
  if (store != NULL)
    check_store(store);
  tnk__credentials_close(store);
  FUZZ_CHECK(text != NULL);
  check_key(text);
  check_times(text);
  tnk__free(alloc, text);
  return 0;
}

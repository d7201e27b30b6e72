/* SPDX-License-Identifier: MIT */
#include "lib/wire/data/credentials.h"

#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"

#define HOSTED "https://hosted/svc"
#define MANUAL(key, more)                                                      \
  "{\"type\":\"manual\",\"key\":\"" key "\",\"name\":\"n\"" more "}"
#define BOUND(key, url) MANUAL(key, ",\"base_url\":\"" url "\"")

static tnk__arena_t arena;

static tnk__url_t url_of(const char *text) {
  tnk__url_t url;

  CHECK_INT(tnk__url_parse(&url, &arena, text, NULL), TNK_OK);
  return url;
}

static json_t *open_store(const char *text) {
  json_t *store;

  CHECK_INT(tnk__credentials_open(&store, text, strlen(text)), TNK_OK);
  return store;
}

static void expect_text(const json_t *store, const char *text) {
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), TNK__MAX_CREDENTIALS);
  CHECK_INT(tnk__credentials_write(store, &buf), TNK_OK);
  CHECK_STR(tnk__buf_cstr(&buf), text);
  tnk__buf_deinit(&buf);
}

TEST(P1_8_what_makes_a_credentials_file_invalid) {
  static const struct {
    const char *text;
    int err;
  } rows[] = {
      {"{}", TNK_OK},
      {"{\"version\":1,\"default\":null,\"keys\":{}}", TNK_OK},
      {"{\"keys\":{\"1\":" MANUAL("k", ",\"note\":null") "}}", TNK_OK},
      {"{\"keys\":{\"1\":" MANUAL("k", ",\"more\":[1]") "},\"x\":{}}", TNK_OK},
      {"{\"version\":2,\"keys\":{}}", TNK_ECREDENTIAL},
      {"{\"version\":null}", TNK_ECREDENTIAL},
      {"{\"default\":1}", TNK_ECREDENTIAL},
      {"{\"keys\":[]}", TNK_ECREDENTIAL},
      {"{\"keys\":{\"1\":{\"type\":\"other\",\"key\":\"k\",\"name\":\"n\"}}}",
       TNK_ECREDENTIAL},
      {"{\"keys\":{\"1\":{\"key\":\"k\",\"name\":\"n\"}}}", TNK_ECREDENTIAL},
      {"{\"keys\":{\"1\":{\"type\":\"manual\",\"name\":\"n\"}}}",
       TNK_ECREDENTIAL},
      {"{\"keys\":{\"1\":{\"type\":\"manual\",\"key\":\"k\"}}}",
       TNK_ECREDENTIAL},
      {"{\"keys\":{\"1\":" MANUAL("k", ",\"note\":1") "}}", TNK_ECREDENTIAL},
      {"{\"keys\":{\"1\":" MANUAL("k", ",\"base_url\":1") "}}",
       TNK_ECREDENTIAL},
      {"{\"keys\":{\"1\":{\"type\":\"generated\",\"key\":\"k\",\"name\":"
       "\"n\"}}}",
       TNK_ECREDENTIAL},
      {"{\"keys\":{\"1\":{\"type\":\"generated\",\"key\":\"k\",\"name\":"
       "\"n\",\"details\":{}}}}",
       TNK_OK},
      {"[]", TNK_ECREDENTIAL},
      {"{", TNK_ECREDENTIAL},
      {"", TNK_ECREDENTIAL},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    json_t *store;
    int err = tnk__credentials_open(&store, rows[i].text, strlen(rows[i].text));
    if (err != rows[i].err)
      test_fail(__FILE__, __LINE__, "%s: %d", rows[i].text, err);
    CHECK((err == TNK_OK) == (store != NULL));
    tnk__credentials_close(store);
  }
}

TEST(P11_10_a_key_goes_to_the_server_that_it_is_for) {
  static const char plain[] =
      "{\"default\":\"1\",\"keys\":{\"1\":" MANUAL("tml-a", "") "}}";
  static const char bound[] = "{\"default\":\"1\",\"keys\":{\"1\":" BOUND(
      "tml-a", HOSTED) ",\"2\":" BOUND("tml-b", "http://h:1") "}}";
  static const struct {
    const char *text, *url;
    tnk__stored_t found;
    const char *key;
  } rows[] = {
      {"{}", HOSTED, TNK__STORED_NONE, NULL},
      {"{\"default\":\"2\",\"keys\":{}}", HOSTED, TNK__STORED_NONE, NULL},
      {"{\"keys\":{\"1\":" MANUAL("tml-a", "") "}}", HOSTED, TNK__STORED_NONE,
       NULL},
      {plain, HOSTED, TNK__STORED_FOUND, "tml-a"},
      {plain, "https://other", TNK__STORED_FOUND, "tml-a"},
      {plain, "http://127.0.0.1:8000", TNK__STORED_FOUND, "tml-a"},
      {plain, "http://[::1]:8000", TNK__STORED_FOUND, "tml-a"},
      {plain, "http://localhost", TNK__STORED_FOUND, "tml-a"},
      {plain, "http://127.evil.example", TNK__STORED_EXPOSED, "tml-a"},
      {plain, "http://h:1", TNK__STORED_EXPOSED, "tml-a"},
      {bound, HOSTED, TNK__STORED_FOUND, "tml-a"},
      {bound, "https://hosted", TNK__STORED_ELSEWHERE, "tml-a"},
      {bound, "https://hosted/svc2", TNK__STORED_ELSEWHERE, "tml-a"},
      {bound, "http://hosted/svc", TNK__STORED_ELSEWHERE, "tml-a"},
      {bound, "http://h:1", TNK__STORED_FOUND, "tml-b"},
      {bound, "http://127.0.0.1:1", TNK__STORED_ELSEWHERE, "tml-a"},
  };

  tnk__arena_init(&arena, test_allocator(), 65536);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    const tnk__url_t url = url_of(rows[i].url);
    json_t *store = open_store(rows[i].text);
    tnk__stored_key_t key = {0};
    CHECK_INT(tnk__credentials_find(&key, store, &url), rows[i].found);
    CHECK_STR(key.key, rows[i].key);
    tnk__credentials_close(store);
  }
  tnk__arena_deinit(&arena);
}

TEST(P11_8_members_that_nobody_knows_stay) {
  json_t *store =
      open_store("{\"later\":[1.5,null],\"version\":1,\"keys\":{\"7\":" MANUAL(
          "tml-a", ",\"colour\":\"gr\xc3\xbcn\"") "}}");
  const tnk__stored_key_t key = {.id = "42",
                                 .key = "tml-b",
                                 .name = "laptop",
                                 .base_url = HOSTED,
                                 .details = NULL};

  CHECK_INT(tnk__credentials_add(store, &key), TNK_OK);
  expect_text(store, "{\n"
                     "  \"later\": [\n    1.5,\n    null\n  ],\n"
                     "  \"version\": 1,\n"
                     "  \"keys\": {\n"
                     "    \"7\": {\n"
                     "      \"type\": \"manual\",\n"
                     "      \"key\": \"tml-a\",\n"
                     "      \"name\": \"n\",\n"
                     "      \"colour\": \"gr\xc3\xbcn\"\n"
                     "    },\n"
                     "    \"42\": {\n"
                     "      \"type\": \"manual\",\n"
                     "      \"key\": \"tml-b\",\n"
                     "      \"name\": \"laptop\",\n"
                     "      \"base_url\": \"" HOSTED "\"\n"
                     "    }\n"
                     "  },\n"
                     "  \"default\": \"42\"\n"
                     "}\n");
  tnk__credentials_close(store);
}

TEST(P1_8_the_first_key_makes_the_file) {
  json_t *store = open_store("{}");
  json_t *details = json_pack("{s:{s:s}}", "org_details", "name", "o");
  const tnk__stored_key_t key = {.id = "42",
                                 .key = "tml-b",
                                 .name = "laptop",
                                 .note = "",
                                 .base_url = HOSTED,
                                 .details = details};

  CHECK_INT(tnk__credentials_add(store, &key), TNK_OK);
  expect_text(store, "{\n"
                     "  \"version\": 1,\n"
                     "  \"default\": \"42\",\n"
                     "  \"keys\": {\n"
                     "    \"42\": {\n"
                     "      \"type\": \"manual\",\n"
                     "      \"key\": \"tml-b\",\n"
                     "      \"name\": \"laptop\",\n"
                     "      \"note\": \"\",\n"
                     "      \"base_url\": \"" HOSTED "\",\n"
                     "      \"details\": {\n"
                     "        \"org_details\": {\n"
                     "          \"name\": \"o\"\n"
                     "        }\n"
                     "      }\n"
                     "    }\n"
                     "  }\n"
                     "}\n");
  CHECK_INT(tnk__credentials_remove(store, "43"), 0);
  CHECK_INT(tnk__credentials_remove(store, "42"), 1);
  expect_text(store, "{\n  \"version\": 1,\n  \"keys\": {}\n}\n");
  json_decref(details);
  tnk__credentials_close(store);
}

TEST(P11_8_keys_of_several_servers_are_kept_beside_each_other) {
  json_t *store = open_store("{}");
  const char *const urls[] = {HOSTED, "https://b", "https://c"};
  tnk__stored_key_t found;

  tnk__arena_init(&arena, test_allocator(), 65536);
  for (size_t i = 0; i < 3; i++) {
    const tnk__stored_key_t key = {
        .id = "1", .key = "tml-k", .name = "n", .base_url = urls[i]};
    CHECK_INT(tnk__credentials_add(store, &key), TNK_OK);
  }
  for (size_t i = 0; i < 3; i++) {
    static const char *const ids[] = {"1", "1-2", "1-3"};
    const tnk__url_t url = url_of(urls[i]);
    CHECK_INT(tnk__credentials_find(&found, store, &url), TNK__STORED_FOUND);
    CHECK_STR(found.id, ids[i]);
    CHECK_STR(found.base_url, urls[i]);
  }
  CHECK_STR(json_string_value(json_object_get(store, "default")), "1");
  /* The default goes with its key, and no other one takes its place. */
  CHECK_INT(tnk__credentials_remove(store, "1"), 1);
  CHECK(json_object_get(store, "default") == NULL);
  CHECK_INT(json_object_size(json_object_get(store, "keys")), 2);
  tnk__arena_deinit(&arena);
  tnk__credentials_close(store);
}

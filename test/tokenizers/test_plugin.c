/* SPDX-License-Identifier: MIT */
/*
 * The library as a plug-in of libtnk.
 */
#include <stdio.h>
#include <string.h>

#include "support/test.h"
#include "tnk/tokenizers.h"

#define QWEN TNK_TEST_DATA "/qwen2.json"

typedef struct {
  int32_t ids[64];
  size_t n;
  int err; /* to answer with */
} ids_t;

static int take(const int32_t *ids, size_t n, void *user) {
  ids_t *to = user;

  CHECK(to->n + n <= sizeof(to->ids) / sizeof(to->ids[0]));
  memcpy(to->ids + to->n, ids, n * sizeof(*ids));
  to->n += n;
  return to->err;
}

static int open_with(void **tokenizer, const char *path, const char *name,
                     const char *value, char *why, size_t size) {
  const tnk_pair_t pair = {name, value};

  return tnk_tokenizer_plugin()->open(tokenizer, path, &pair, name != NULL,
                                      test_allocator(), why, size);
}

TEST(K9_the_plug_in_opens_and_encodes_as_the_library_does) {
  const tnk_tokenizer_plugin_t *plugin = tnk_tokenizer_plugin();
  const char text[] = "Hello, world<|im_end|>";
  tnk_tokens_t *tokens = tnk_tokens_new(test_allocator());
  ids_t got = {.n = 0};
  void *tokenizer = NULL;
  char why[200] = "";
  const int32_t *ids;
  size_t n;

  CHECK_INT(plugin->size, sizeof(*plugin));
  CHECK_STR(plugin->main_files[0], "tokenizer.json");
  CHECK_STR(plugin->more_files[0], "tokenizer_config.json");
  CHECK_INT(open_with(&tokenizer, QWEN, "format", "hf_json", why, sizeof(why)),
            TNK_OK);
  CHECK_INT(plugin->encode(tokenizer, text, sizeof(text) - 1,
                           TNK_ENCODE_SPLIT_SPECIAL | TNK_ENCODE_OFFSETS, take,
                           &got, why, sizeof(why)),
            TNK_OK);
  CHECK_INT(tnk_tokenizer_encode(tokenizer, tokens, text, sizeof(text) - 1,
                                 TNK_ENCODE_SPLIT_SPECIAL, NULL),
            TNK_OK);
  ids = tnk_tokens_ids(tokens, &n);
  CHECK_MEM(got.ids, got.n * sizeof(*ids), ids, n * sizeof(*ids));
  got.n = 0;
  got.err = TNK_ETOOBIG;
  CHECK_INT(plugin->encode(tokenizer, "a", 1, 0, take, &got, why, sizeof(why)),
            TNK_ETOOBIG);
  CHECK_INT(
      plugin->encode(tokenizer, "\xff", 1, 0, take, &got, why, sizeof(why)),
      TNK_EINVAL);
  CHECK(why[0] != '\0');
  tnk_tokens_free(tokens);
  plugin->close(tokenizer);
}

typedef struct {
  char text[64];
  size_t n;
  int err; /* to answer with */
} bytes_t;

static int take_bytes(const char *bytes, size_t n, void *user) {
  bytes_t *to = user;

  CHECK(to->n + n < sizeof(to->text));
  memcpy(to->text + to->n, bytes, n);
  to->n += n;
  return to->err;
}

static int decode(const void *tokenizer, const int32_t *ids, size_t n,
                  unsigned flags, bytes_t *got) {
  char why[200];

  got->n = 0;
  memset(got->text, 0, sizeof(got->text));
  return tnk_tokenizer_plugin()->decode(tokenizer, ids, n, flags, take_bytes,
                                        got, why, sizeof(why));
}

TEST(K9_the_plug_in_decodes_each_id_by_itself) {
  const char text[] = "Hi \xe4\xb8\xad\xf0\x9f\x98\x80 a<|im_end|>";
  tnk_tokens_t *tokens = tnk_tokens_new(test_allocator());
  void *tokenizer = NULL;
  bytes_t got = {.n = 0};
  char whole[64] = "", why[200] = "";
  const int32_t unknown = 0x7fffffff, *ids;
  size_t n;

  CHECK_INT(open_with(&tokenizer, QWEN, NULL, NULL, why, sizeof(why)), TNK_OK);
  CHECK_INT(
      tnk_tokenizer_encode(tokenizer, tokens, text, sizeof(text) - 1, 0, NULL),
      TNK_OK);
  ids = tnk_tokens_ids(tokens, &n);
  CHECK_INT(decode(tokenizer, ids, n, 0, &got), TNK_OK);
  CHECK_STR(got.text, text);
  for (size_t i = 0; i < n; i++) {
    CHECK_INT(decode(tokenizer, ids + i, 1, 0, &got), TNK_OK);
    strncat(whole, got.text, got.n);
  }
  CHECK_STR(whole, text);
  CHECK_INT(decode(tokenizer, ids, n, TNK_DECODE_SKIP_SPECIAL, &got), TNK_OK);
  CHECK_INT(got.n, sizeof(text) - 1 - strlen("<|im_end|>"));
  CHECK_INT(decode(tokenizer, &unknown, 1, 0, &got), TNK_OK);
  CHECK_INT(got.n, 0);
  CHECK_INT(decode(tokenizer, ids, n, 2, &got), TNK_EINVAL);
  got.err = TNK_ETOOBIG;
  CHECK_INT(decode(tokenizer, ids, n, 0, &got), TNK_ETOOBIG);
  tnk_tokens_free(tokens);
  tnk_tokenizer_unref(tokenizer);
}

TEST(K4_overrides_are_known_by_name) {
  void *tokenizer = NULL;
  char why[200];

  CHECK_INT(open_with(&tokenizer, QWEN, "colour", "red", why, sizeof(why)),
            TNK_ENOTSUP);
  CHECK(strstr(why, "colour") != NULL);
  CHECK_INT(open_with(&tokenizer, QWEN, "format", "xml", why, sizeof(why)),
            TNK_EINVAL);
  CHECK(strstr(why, "xml") != NULL);
  CHECK_INT(open_with(&tokenizer, QWEN, "format", "tiktoken", why, sizeof(why)),
            TNK_EPROTO);
  CHECK_INT(open_with(&tokenizer, "/nowhere", NULL, NULL, why, sizeof(why)),
            TNK_ENOTFOUND);
  CHECK(strstr(why, "/nowhere") != NULL);
  CHECK(tokenizer == NULL);
}

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

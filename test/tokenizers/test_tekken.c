/* SPDX-License-Identifier: MIT */
#include "tokenizers/golden.h"

/* Mistral's tekken.json: ids against the reference's, special tokens,
 * refusals. */
static int load_text(const char *text, size_t n, tnk_tokenizer_t **tok,
                     tnk_tokenizer_error_t *error) {
  tnk_tokenizer_options_t options = small_options();

  return tnk_tokenizer_load_memory(tok, text, n, &options, error);
}

TEST_LIMIT(ids_are_those_of_the_reference, 30) {
  static golden_t golden;
  tnk_tokenizer_t *tok = small_load("tekken_ranks");
  size_t n_lines = 0;

  golden_open(&golden, "tekken_ranks");
  for (; golden_next(&golden); n_lines++) {
    tnk_tokens_t *tokens =
        small_encode(tok, (char *)golden.text, golden.n, golden.flags);

    small_check_ids(tokens, golden.ids, golden.n_ids);
    tnk_tokens_free(tokens);
  }
  CHECK(n_lines > 200);
  tnk_tokenizer_unref(tok);
}

TEST(special_tokens_come_first_and_no_text_gives_them) {
  tnk_tokenizer_t *tok = small_load("tekken_ranks");
  tnk_tokens_t *tokens = small_encode(tok, "[INST]", 6, 0);
  unsigned flags;
  size_t n;

  CHECK_INT(tnk_tokenizer_vocab_size(tok), 1156 - 100 + 20);
  CHECK_INT(tnk_tokenizer_bos(tok), 1);
  CHECK_INT(tnk_tokenizer_eos(tok), 2);
  CHECK_INT(tnk_tokenizer_id(tok, "[INST]", 6), 3);
  CHECK_INT(tnk_tokenizer_id(tok, "<SPECIAL_19>", 12), 19);
  CHECK_STR(tnk_tokenizer_token(tok, 3, &n, &flags) == NULL ? "" : "a token",
            "a token");
  CHECK_INT(flags, TNK_TOKEN_SPECIAL);
  (void)tnk_tokens_ids(tokens, &n);
  CHECK(n > 1);
  tnk_tokens_free(tokens);
  tnk_tokenizer_unref(tok);
}

/* Load the file with the first `from` in it replaced by `to`. */
static int load_changed(const char *from, const char *to, tnk_tokenizer_t **tok,
                        tnk_tokenizer_error_t *error) {
  static char changed[128 * 1024];
  size_t n;
  const char *text = small_read("tekken_ranks.json", &n);
  const char *at = strstr(text, from);
  int n_changed;

  CHECK(at != NULL);
  n_changed = snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text),
                       text, to, at + strlen(from));
  CHECK(n_changed > 0 && (size_t)n_changed < sizeof(changed));
  return load_text(changed, (size_t)n_changed, tok, error);
}

TEST(files_that_are_not_understood_are_refused) {
  static const struct {
    const char *from, *to, *said;
  } cases[] = {
      {"\"pattern\": \"", "\"pattern\": \"x", "pattern"},
      {"\"pattern\"", "\"no\"", "pattern"},
      {"\"vocab\"", "\"no\"", "vocab"},
      {"\"special_tokens\"", "\"no\"", "special_tokens are missing"},
      {"\"default_vocab_size\": 1", "\"default_vocab_size\": 9", "too short"},
      {"\"default_vocab_size\": 1", "\"default_vocab_size\": 9999", "range"},
      {"\"default_num_special_tokens\": 20",
       "\"default_num_special_tokens\": 2", "too large"},
      {"\"rank\": 5", "\"rank\": 6", "vocab"},
      {"\"token_bytes\": \"AA==\"", "\"token_bytes\": \"A*==\"", "base64"},
      {"\"token_bytes\": \"AA==\"", "\"token_bytes\": \"AQ==\"", "twice"},
      {"\"token_str\": \"<s>\"", "\"token_str\": \"</s>\"", "twice"},
      {"\"token_str\": \"<s>\"", "\"no\": \"<s>\"", "no name"},
      {"\"config\": {", "\"config\": [", "config"},
  };
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    int err = load_changed(cases[i].from, cases[i].to, &tok, &error);

    if (err >= 0 || strstr(error.text, cases[i].said) == NULL)
      test_fail(__FILE__, __LINE__, "%s: %d, %s", cases[i].to, err, error.text);
  }
}

/* Old files leave the special tokens out. */
TEST(old_files_have_known_special_tokens) {
  static char changed[128 * 1024];
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;
  size_t n;
  char *text = small_read("tekken_ranks.json", &n);
  const char *special = strstr(text, "\"special_tokens\"");
  char *version = strstr(text, "\"v11\"");
  int n_changed;

  CHECK(special != NULL && version != NULL);
  memcpy(version, "\"v3\" ", 5);
  n_changed = snprintf(changed, sizeof(changed), "%.*s\"x\": 0}",
                       (int)(special - text), text);
  if (load_text(changed, (size_t)n_changed, &tok, &error) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", error.text);
  CHECK_INT(tnk_tokenizer_id(tok, "[TOOL_CONTENT]", 14), 19);
  tnk_tokenizer_unref(tok);
}

TEST_LIMIT(every_failed_allocation_is_reported, 60) {
  static char text[128 * 1024];
  tnk_tokenizer_error_t error;
  int failed = 1;
  size_t n;
  const char *file = small_read("tekken_ranks.json", &n);

  memcpy(text, file, n);
  for (long j = 0; failed; j++) {
    tnk_tokenizer_t *tok;
    int err;

    test_alloc_fail_at(j);
    err = load_text(text, n, &tok, &error);
    failed = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    tnk_tokenizer_unref(tok);
    CHECK(err == TNK_OK || (failed && err == TNK_ENOMEM));
    CHECK_INT(test_alloc_live(), 0);
  }
}

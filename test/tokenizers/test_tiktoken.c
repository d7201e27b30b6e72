/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "tokenizers/golden.h"

/* Rank files: ids against the reference's, special tokens, refusals. */

/* Expressions as the files of models have them. */
static const char O200K[] =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}"
    "\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{"
    "Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    "|\\p{N}{1,3}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
    "|\\s*[\\r\\n]+"
    "|\\s+(?!\\S)"
    "|\\s+";
static const char TEKKEN[] = "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{"
                             "Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
                             "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{"
                             "Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
                             "|\\p{N}"
                             "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*"
                             "|\\s*[\\r\\n]+"
                             "|\\s+(?!\\S)"
                             "|\\s+";
static const char LLAMA3[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
                             "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
                             "|\\p{N}{1,3}"
                             "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                             "|\\s*[\\r\\n]+"
                             "|\\s+(?!\\S)"
                             "|\\s+";
static const char QWEN2[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
                            "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
                            "|\\p{N}"
                            "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                            "|\\s*[\\r\\n]+"
                            "|\\s+(?!\\S)"
                            "|\\s+";

static tnk_tokenizer_t *load_ranks(const char *pattern) {
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;
  char config[4096], *text;
  size_t n;

  text = small_read("kimi_config.json", &n);
  CHECK(n < sizeof(config));
  memcpy(config, text, n);
  options.pattern = pattern;
  if (pattern == NULL) {
    options.config = config;
    options.n_config = n;
  }
  if (tnk_tokenizer_load(&tok, TNK_TEST_DATA "/ranks.tiktoken", &options,
                         &error) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", error.text);
  return tok;
}

TEST_LIMIT(ids_of_rank_files_are_those_of_the_reference, 30) {
  static const struct {
    const char *name;
    const char *pattern;
  } cases[] = {{"kimi", NULL},
               {"o200k", O200K},
               {"tekken", TEKKEN},
               {"llama3", LLAMA3},
               {"qwen2", QWEN2},
               {"o200k", "o200k_base"},
               {"cl100k_base", "cl100k_base"},
               {"r50k_base", "r50k_base"}};
  static golden_t golden;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    tnk_tokenizer_t *tok = load_ranks(cases[i].pattern);
    char name[64];
    size_t n_lines = 0;

    (void)snprintf(name, sizeof(name), "tiktoken_%s", cases[i].name);
    golden_open(&golden, name);
    for (; golden_next(&golden); n_lines++) {
      tnk_tokens_t *tokens =
          small_encode(tok, (char *)golden.text, golden.n, golden.flags);

      small_check_ids(tokens, golden.ids, golden.n_ids);
      tnk_tokens_free(tokens);
    }
    CHECK(n_lines > 200);
    tnk_tokenizer_unref(tok);
  }
}

/* tiktoken's files have only ranks. */
TEST(an_encoding_has_its_special_tokens) {
  static const struct {
    const char *encoding, *text;
    int32_t id;
  } cases[] = {{"r50k_base", "<|endoftext|>", 50256},
               {"p50k_edit", "<|fim_suffix|>", 50283},
               {"cl100k_base", "<|endofprompt|>", 100276},
               {"o200k_base", "<|endofprompt|>", 200018},
               {"o200k_harmony", "<|endofprompt|>", 200018},
               {"o200k_harmony", "<|reserved_200018|>", 200018},
               {"o200k_harmony", "<|reserved_201087|>", 201087},
               {"o200k_harmony", "<|call|>", 200012},
               {"whisper", "<|endoftext|>", 1160},
               {"whisper", "<|en|>", 1162},
               {"whisper", "<|su|>", 1162 + 98},
               {"whisper", "<|translate|>", 1162 + 99},
               {"whisper_v3", "<|yue|>", 1162 + 99},
               {"whisper_v3", "<|0.00|>", 1162 + 106},
               {"whisper_v3", "<|0.02|>", 1162 + 107},
               {"whisper_v3", "<|29.98|>", 1162 + 106 + 1499},
               {"whisper_v3", "<|30.00|>", 1162 + 106 + 1500}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    tnk_tokenizer_t *tok = load_ranks(cases[i].encoding);
    tnk_tokens_t *tokens =
        small_encode(tok, cases[i].text, strlen(cases[i].text), 0);

    small_check_ids(tokens, &cases[i].id, 1);
    tnk_tokens_free(tokens);
    tnk_tokenizer_unref(tok);
  }
}

/* A file's name tells its encoding. */
TEST(a_file_with_the_name_of_an_encoding_is_one) {
  static const struct {
    const char *file, *special;
    int32_t id;
  } cases[] = {{"o200k_base.tiktoken", "<|endofprompt|>", 200018},
               {"multilingual.tiktoken", "<|zh|>", 1163},
               {"gpt2.tiktoken", "<|zh|>", 1163},
               {"other.tiktoken", "<|reserved_token_1163|>", 1163},
               {"o200k_base.model", "<|reserved_token_1163|>", 1163}};
  char folder[] = "/tmp/tnk-encodings-XXXXXX", path[128];

  CHECK(mkdtemp(folder) != NULL);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    tnk_tokenizer_options_t options = small_options();
    tnk_tokenizer_t *tok;

    (void)snprintf(path, sizeof(path), "%s/%s", folder, cases[i].file);
    CHECK_INT(symlink(TNK_TEST_DATA "/ranks.tiktoken", path), 0);
    CHECK_INT(tnk_tokenizer_load(&tok, path, &options, NULL), TNK_OK);
    CHECK_INT(tnk_tokenizer_id(tok, cases[i].special, strlen(cases[i].special)),
              cases[i].id);
    tnk_tokenizer_unref(tok);
    CHECK_INT(unlink(path), 0);
  }
  CHECK_INT(rmdir(folder), 0);
}

/* The ranks of another vocabulary reach into the special tokens. */
TEST(an_encoding_that_is_not_that_of_the_ranks_is_refused) {
  static char text[64 * 1024];
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;
  size_t n;

  memcpy(text, small_read("ranks.tiktoken", &n), sizeof(text));
  n += (size_t)snprintf(text + n, sizeof(text) - n, "eHl6 50256\n");
  options.pattern = "r50k_base";
  CHECK_INT(tnk_tokenizer_load_memory(&tok, text, n, &options, &error),
            TNK_EPROTO);
  CHECK(strstr(error.text, "r50k_base") != NULL);
  /* An empty token, as Whisper's file has one. */
  n += (size_t)snprintf(text + n, sizeof(text) - n, "= 50257\n");
  options.pattern = "whisper";
  CHECK_INT(tnk_tokenizer_load_memory(&tok, text, n, &options, &error), TNK_OK);
  CHECK_INT(tnk_tokenizer_id(tok, "<|endoftext|>", 13), 50258);
  tnk_tokenizer_unref(tok);
}

TEST(kimi_has_256_special_tokens_behind_the_ranks) {
  tnk_tokenizer_t *tok = load_ranks(NULL);
  unsigned flags;
  size_t n;

  CHECK_INT(tnk_tokenizer_vocab_size(tok), 1160 + 256);
  CHECK_INT(tnk_tokenizer_bos(tok), 1160);
  CHECK_INT(tnk_tokenizer_eos(tok), 1161);
  CHECK_INT(tnk_tokenizer_id(tok, "<|im_end|>", 10), 1162);
  CHECK_INT(tnk_tokenizer_id(tok, "<|reserved_token_1163|>", 23), 1163);
  CHECK_INT(tnk_tokenizer_id(tok, "<|reserved_token_1415|>", 23), 1415);
  CHECK(tnk_tokenizer_token(tok, 1176, &n, &flags) != NULL);
  CHECK_INT(flags, TNK_TOKEN_ADDED); /* <think> */
  CHECK(tnk_tokenizer_token(tok, 1162, &n, &flags) != NULL);
  CHECK_INT(flags, TNK_TOKEN_ADDED | TNK_TOKEN_SPECIAL);
  tnk_tokenizer_unref(tok);
}

/* The wrapper cuts a run of more than 25,000 characters of one kind; the piece
 * that would have been one becomes two. */
TEST(kimi_cuts_long_runs) {
  enum { RUN = 25000 };
  static char text[2 * RUN + 2];
  tnk_tokenizer_t *tok = load_ranks(NULL);
  tnk_tokens_t *whole, *first, *rest;
  size_t n_whole, n_first, n_rest;
  const int32_t *ids;

  memset(text, 'o', sizeof(text));
  whole = small_encode(tok, text, RUN + 1, TNK_ENCODE_OFFSETS);
  first = small_encode(tok, text, RUN, 0);
  rest = small_encode(tok, text, 1, 0);
  ids = tnk_tokens_ids(whole, &n_whole);
  (void)tnk_tokens_ids(first, &n_first);
  (void)tnk_tokens_ids(rest, &n_rest);
  CHECK_INT(n_whole, n_first + n_rest);
  CHECK_INT(ids[n_whole - 1], tnk_tokens_ids(rest, NULL)[0]);
  CHECK_INT(tnk_tokens_offsets(whole)[n_whole - 1].start, RUN);
  CHECK_INT(tnk_tokens_offsets(whole)[n_whole - 1].end, RUN + 1);
  tnk_tokens_free(whole);
  tnk_tokens_free(first);
  tnk_tokens_free(rest);
  tnk_tokenizer_unref(tok);
}

static int load_text(const char *text, size_t n, tnk_tokenizer_error_t *error) {
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_t *tok;
  int err;

  options.format = TNK_TOKENIZER_TIKTOKEN;
  err = tnk_tokenizer_load_memory(&tok, text, n, &options, error);
  tnk_tokenizer_unref(tok);
  return err;
}

TEST(malformed_rank_files_are_refused_with_the_place) {
  static const struct {
    const char *text;
    int code;
    uint64_t offset;
  } cases[] = {{"", TNK_EPROTO, 0},
               {"\n", TNK_EUNSUPPORTED, 0},
               {"AA== 0\nAQ== 1\n", TNK_EUNSUPPORTED, 0},
               {"AA== 0\nAQ=", TNK_EPROTO, 7},
               {"AA== 0\nA*== 1\n", TNK_EPROTO, 7},
               {"AB== 0\n", TNK_EPROTO, 0},
               {"AA==\n", TNK_EPROTO, 5},
               {"AA== x\n", TNK_EPROTO, 5},
               {"AA== 1 \n", TNK_EPROTO, 7},
               {"AA== 1\nAA== 2\n", TNK_EPROTO, 14},
               {"AA== 1\nAQ== 1\n", TNK_EPROTO, 14},
               {"AA== 99999999\n", TNK_EPROTO, 5}};
  tnk_tokenizer_error_t error;

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    CHECK_INT(load_text(cases[i].text, strlen(cases[i].text), &error),
              cases[i].code);
    CHECK_INT(error.offset, cases[i].offset);
  }
}

TEST(two_special_tokens_of_one_name_are_refused) {
  static const char config[] =
      "{\"added_tokens_decoder\": {\"5000\": {\"content\": \"<x>\"}, "
      "\"5001\": {\"content\": \"<x>\"}}}";
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;
  size_t n;
  const char *text = small_read("ranks.tiktoken", &n);
  const tnk_tokenizer_options_t kimi = options;

  options.config = config;
  options.n_config = sizeof(config) - 1;
  options.pattern = O200K;
  CHECK_INT(tnk_tokenizer_load_memory(&tok, text, n, &options, &error),
            TNK_EUNSUPPORTED);
  CHECK(strstr(error.text, "one name") != NULL);
  CHECK_INT(tnk_tokenizer_load_memory(&tok, text, n, &kimi, &error), TNK_OK);
  tnk_tokenizer_unref(tok);
}

TEST(an_unknown_pattern_is_refused) {
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;

  options.pattern = "\\w+";
  CHECK_INT(tnk_tokenizer_load(&tok, TNK_TEST_DATA "/ranks.tiktoken", &options,
                               &error),
            TNK_EUNSUPPORTED);
  CHECK(strstr(error.text, "\\w+") != NULL);
}

TEST_LIMIT(every_failed_allocation_is_reported, 60) {
  static char text[64 * 1024];
  tnk_tokenizer_error_t error;
  int failed = 1;
  size_t n;

  memcpy(text, small_read("ranks.tiktoken", &n), sizeof(text));
  for (long j = 0; failed; j++) {
    int err;

    test_alloc_fail_at(j);
    err = load_text(text, n, &error);
    failed = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    CHECK(err == TNK_OK || (failed && err == TNK_ENOMEM));
    CHECK_INT(test_alloc_live(), 0);
  }
}

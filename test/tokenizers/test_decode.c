/* SPDX-License-Identifier: MIT */
#include "tokenizers/golden.h"

/* Ids to text, whole and streamed; ids and tokens. */

static const char mixed[] =
    "Word \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80<|im_end|>x <think>\xff\x00";

static void check_text(const tnk_tokenizer_t *tok, const int32_t *ids, size_t n,
                       unsigned flags, const char *expected) {
  char *text;
  size_t n_text;

  CHECK_INT(tnk_tokenizer_decode(tok, &text, &n_text, ids, n, flags), TNK_OK);
  CHECK_MEM(text, n_text, expected, strlen(expected));
  CHECK_INT(text[n_text], 0);
  tnk_tokenizer_free_text(tok, text);
}

TEST(special_tokens_can_be_left_out) {
  tnk_tokenizer_t *tok = small_load("qwen2");
  int32_t end = tnk_tokenizer_id(tok, "<|im_end|>", 10);
  int32_t think = tnk_tokenizer_id(tok, "<think>", 7);
  const int32_t ids[] = {'a', end, think, 'b'};

  check_text(tok, ids, 4, 0, "a<|im_end|><think>b");
  check_text(tok, ids, 4, TNK_DECODE_SKIP_SPECIAL, "a<think>b");
  tnk_tokenizer_unref(tok);
}

TEST(ids_without_a_token_are_left_out) {
  tnk_tokenizer_t *tok = small_load("o200k");
  const int32_t ids[] = {-1, 'a', INT32_MAX, 100000, INT32_MIN, 'b'};

  check_text(tok, ids, 6, 0, "ab");
  check_text(tok, NULL, 0, 0, "");
  tnk_tokenizer_unref(tok);
}

TEST(bytes_that_are_no_character_are_replaced) {
  tnk_tokenizer_t *tok = small_load("o200k");
  const int32_t lone[] = {'a', 0x80, 'b'}, cut[] = {0xe4, 0xb8},
                two[] = {0xff, 0xfe}, joined[] = {0xe4, 0xb8, 0xad};

  check_text(tok, lone, 3, 0,
             "a\xef\xbf\xbd"
             "b");
  check_text(tok, cut, 2, 0, "\xef\xbf\xbd");
  check_text(tok, two, 2, 0, "\xef\xbf\xbd\xef\xbf\xbd");
  check_text(tok, joined, 3, 0, "\xe4\xb8\xad");
  tnk_tokenizer_unref(tok);
}

/* All texts together are what decode() gives, and each is whole characters. */
static void check_stream(const tnk_tokenizer_t *tok, const int32_t *ids,
                         size_t n, uint64_t seed) {
  tnk_detokenizer_t *detok;
  char *whole, joined[8192];
  size_t n_whole, n_joined = 0, n_text = 0;
  const char *text;

  CHECK_INT(tnk_tokenizer_decode(tok, &whole, &n_whole, ids, n, 0), TNK_OK);
  CHECK_INT(tnk_detokenizer_new(&detok, tok, 0), TNK_OK);
  for (size_t i = 0; i <= n; i += n_text) {
    n_text = 1 + (size_t)(test_random(&seed) % 3);
    if (n_text > n - i)
      n_text = n - i;
    if (n_text == 0)
      break;
    size_t got;

    CHECK_INT(tnk_detokenizer_push(detok, ids + i, n_text, &text, &got),
              TNK_OK);
    CHECK(n_joined + got <= sizeof(joined));
    memcpy(joined + n_joined, text, got);
    n_joined += got;
  }
  CHECK_INT(tnk_detokenizer_finish(detok, &text, &n_text), TNK_OK);
  memcpy(joined + n_joined, text, n_text);
  n_joined += n_text;
  CHECK_MEM(joined, n_joined, whole, n_whole);
  tnk_tokenizer_free_text(tok, whole);
  tnk_detokenizer_free(detok);
}

/* data/NAME_decoded.golden: the text of ids, with many tokens of bytes. */
TEST(texts_of_tokens_of_bytes_are_those_of_the_reference) {
  static const char *const names[] = {"llama2", "gemma", "metaspace",
                                      "metaspace_first", "metaspace_never"};
  static golden_t golden;

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    tnk_tokenizer_t *tok = small_load(names[i]);
    char file[64], *text;
    size_t n_lines = 0, n_text;

    (void)snprintf(file, sizeof(file), "%s_decoded", names[i]);
    golden_open(&golden, file);
    for (; golden_next(&golden); n_lines++) {
      CHECK_INT(tnk_tokenizer_decode(tok, &text, &n_text, golden.ids,
                                     golden.n_ids, 0),
                TNK_OK);
      CHECK_MEM(text, n_text, golden.text, golden.n);
      tnk_tokenizer_free_text(tok, text);
      check_stream(tok, golden.ids, golden.n_ids, n_lines + 1);
    }
    CHECK(n_lines > 200);
    tnk_tokenizer_unref(tok);
  }
}

/* Metaspace removes all blanks of the first token, and no spaces of it. */
TEST(spaces_of_a_first_token_stay) {
  static const char added[] =
      "\"added_tokens\": [{\"id\": %zu, \"content\": \" a b\", \"special\": "
      "false, \"normalized\": false, \"lstrip\": false, \"rstrip\": false, "
      "\"single_word\": false},%s";
  tnk_tokenizer_t *tok = small_load("metaspace");
  size_t n, n_vocab = tnk_tokenizer_vocab_size(tok);
  char *text = small_read("metaspace.json", &n), *changed, *back;
  const char *list = strstr(text, "\"added_tokens\": [");
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_error_t error;
  int32_t ids[] = {(int32_t)n_vocab, tnk_tokenizer_id(tok, " ", 1)};

  CHECK(list != NULL && ids[1] >= 0);
  changed =
      test_allocator()->malloc(n + sizeof(added) + 32, test_allocator()->user);
  (void)snprintf(changed, n + sizeof(added) + 32, "%.*s", (int)(list - text),
                 text);
  (void)snprintf(changed + (list - text), n + sizeof(added) + 32, added,
                 n_vocab, strchr(list, '[') + 1);
  tnk_tokenizer_unref(tok);
  if (tnk_tokenizer_load_memory(&tok, changed, strlen(changed), &options,
                                &error) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", error.text);
  CHECK_INT(tnk_tokenizer_decode(tok, &back, &n, ids, 2, 0), TNK_OK);
  CHECK_STR(back, " a b ");
  tnk_tokenizer_free_text(tok, back);
  CHECK_INT(tnk_tokenizer_decode(tok, &back, &n, ids + 1, 1, 0), TNK_OK);
  CHECK_STR(back, "");
  tnk_tokenizer_free_text(tok, back);
  tnk_tokenizer_unref(tok);
  test_allocator()->free(changed, test_allocator()->user);
}

TEST(a_stream_adds_up_to_the_whole) {
  tnk_tokenizer_t *tok = small_load("llama3");
  uint64_t seed = 1;

  for (int i = 0; i < 500; i++) {
    int32_t ids[60];
    size_t n = (size_t)(test_random(&seed) % 60);

    for (size_t j = 0; j < n; j++)
      ids[j] = (int32_t)(test_random(&seed) % (i % 2 == 0 ? 256 : 1200));
    check_stream(tok, ids, n, seed);
  }
  tnk_tokenizer_unref(tok);
}

TEST(a_character_is_held_back_until_its_last_byte) {
  tnk_tokenizer_t *tok = small_load("llama3");
  const int32_t smile[] = {0xf0, 0x9f, 0x98, 0x80};
  tnk_detokenizer_t *detok;
  const char *text;
  size_t n;

  CHECK_INT(tnk_detokenizer_new(&detok, tok, 0), TNK_OK);
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 3; i++) {
      CHECK_INT(tnk_detokenizer_push(detok, smile + i, 1, &text, &n), TNK_OK);
      CHECK_STR(text, "");
      CHECK_INT(n, 0);
    }
    CHECK_INT(tnk_detokenizer_push(detok, smile + 3, 1, &text, &n), TNK_OK);
    CHECK_STR(text, "\xf0\x9f\x98\x80");
    /* A byte that cannot follow sets free what was held back. */
    CHECK_INT(tnk_detokenizer_push(detok, smile, 2, &text, &n), TNK_OK);
    CHECK_STR(text, "");
    CHECK_INT(tnk_detokenizer_push(detok, (const int32_t[]){'a'}, 1, &text, &n),
              TNK_OK);
    CHECK_STR(text, "\xef\xbf\xbd"
                    "a");
    CHECK_INT(tnk_detokenizer_push(detok, smile, 1, &text, &n), TNK_OK);
    CHECK_INT(tnk_detokenizer_finish(detok, &text, &n), TNK_OK);
    CHECK_STR(text, "\xef\xbf\xbd");
  }
  tnk_detokenizer_free(detok);
  tnk_tokenizer_unref(tok);
}

TEST(tokens_and_ids) {
  tnk_tokenizer_t *tok = small_load("deepseek");
  size_t n_vocab = tnk_tokenizer_vocab_size(tok), n;
  unsigned flags;

  CHECK_INT(n_vocab, 256 + 900 + 4 + 8);
  for (size_t id = 0; id < n_vocab; id++) {
    const char *bytes = tnk_tokenizer_token(tok, (int32_t)id, &n, &flags);

    CHECK(bytes != NULL && n > 0);
    CHECK_INT(tnk_tokenizer_id(tok, bytes, n), id);
    CHECK_INT(flags & TNK_TOKEN_ADDED, id < n_vocab - 8 ? 0 : TNK_TOKEN_ADDED);
  }
  (void)tnk_tokenizer_token(tok, tnk_tokenizer_id(tok, "<|im_end|>", 10), &n,
                            &flags);
  CHECK_INT(flags, TNK_TOKEN_ADDED | TNK_TOKEN_SPECIAL);
  CHECK(tnk_tokenizer_token(tok, (int32_t)n_vocab, &n, NULL) == NULL);
  CHECK(tnk_tokenizer_token(tok, -1, &n, NULL) == NULL);
  CHECK_INT(tnk_tokenizer_id(tok, "no such token", 13), -1);
  CHECK_INT(tnk_tokenizer_id(tok, "", 0), -1);
  tnk_tokenizer_unref(tok);
}

TEST(broken_text_is_refused_or_replaced) {
  tnk_tokenizer_t *tok = small_load("qwen2");
  tnk_tokens_t *tokens = tnk_tokens_new(test_allocator()), *clean;
  tnk_tokenizer_error_t error;
  const tnk_token_span_t *spans;
  size_t n, n_clean;

  CHECK_INT(
      tnk_tokenizer_encode(tok, tokens, mixed, sizeof(mixed) - 1, 0, &error),
      TNK_EINVAL);
  CHECK_INT(error.offset, sizeof(mixed) - 3);
  (void)tnk_tokens_ids(tokens, &n);
  CHECK_INT(n, 0);
  CHECK_INT(tnk_tokenizer_encode(tok, tokens, mixed, sizeof(mixed) - 1,
                                 TNK_ENCODE_LOSSY | TNK_ENCODE_OFFSETS, &error),
            TNK_OK);
  clean = small_encode(tok,
                       "Word \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80"
                       "<|im_end|>x <think>\xef\xbf\xbd\0",
                       sizeof(mixed) - 1 + 2, 0);
  (void)tnk_tokens_ids(clean, &n_clean);
  small_check_ids(tokens, tnk_tokens_ids(clean, NULL), n_clean);
  spans = tnk_tokens_offsets(tokens);
  (void)tnk_tokens_ids(tokens, &n);
  CHECK_INT(spans[n - 1].end, sizeof(mixed) - 1);
  CHECK_INT(spans[n - 1].start, sizeof(mixed) - 2);
  tnk_tokens_free(clean);
  tnk_tokens_free(tokens);
  tnk_tokenizer_unref(tok);
}

TEST(parts_are_tokenized_each_on_its_own) {
  tnk_tokenizer_t *tok = small_load("gpt2");
  int32_t end = tnk_tokenizer_id(tok, "<|im_end|>", 10);
  const tnk_tokenizer_part_t parts[] = {
      {"wor", 3, 0, TNK_ENCODE_OFFSETS},
      {NULL, 0, end, TNK_ENCODE_OFFSETS},
      {"d<|im_end|>", 11, 0, TNK_ENCODE_PLAIN | TNK_ENCODE_OFFSETS}};
  tnk_tokens_t *tokens = tnk_tokens_new(test_allocator()), *expected;
  const tnk_token_span_t *spans;
  tnk_tokenizer_error_t error;
  size_t n, n_first;

  CHECK_INT(tnk_tokenizer_encode_parts(tok, tokens, parts, 3, &error), TNK_OK);
  expected = small_encode(tok, "wor", 3, 0);
  (void)tnk_tokens_ids(expected, &n_first);
  CHECK_INT(tnk_tokens_ids(tokens, &n)[n_first], end);
  spans = tnk_tokens_offsets(tokens);
  CHECK_INT(spans[n_first].start, 3);
  CHECK_INT(spans[n_first].end, 3);
  CHECK_INT(spans[n - 1].end, 14);
  for (size_t i = n_first + 1; i < n; i++)
    CHECK(tnk_tokens_ids(tokens, NULL)[i] != end);
  tnk_tokens_free(expected);
  tnk_tokens_free(tokens);
  tnk_tokenizer_unref(tok);
}

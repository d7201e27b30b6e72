/* SPDX-License-Identifier: MIT */
#include "tokenizers/golden.h"

/* SentencePiece models: ids against the reference's, decoding whole and as a
 * stream, refusals. */
static const char *const models[] = {"sp_bpe", "sp_unigram"};

static tnk_tokenizer_t *load_model(const char *name) {
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;
  char path[512];

  (void)snprintf(path, sizeof(path), "%s/%s.model", TNK_TEST_DATA, name);
  if (tnk_tokenizer_load(&tok, path, &options, &error) == TNK_EUNSUPPORTED &&
      strstr(error.text, "without SentencePiece") != NULL)
    test_skip("built without SentencePiece");
  if (tok == NULL)
    test_fail(__FILE__, __LINE__, "%s: %s", name, error.text);
  return tok;
}

/* Streamed in random portions, the text is the same. */
static void check_stream(const tnk_tokenizer_t *tok, const int32_t *ids,
                         size_t n, uint64_t *seed) {
  tnk_detokenizer_t *detok;
  char *whole, joined[4096];
  size_t n_whole, n_joined = 0, step, got;
  const char *text;

  CHECK_INT(tnk_tokenizer_decode(tok, &whole, &n_whole, ids, n, 0), TNK_OK);
  CHECK_INT(tnk_detokenizer_new(&detok, tok, 0), TNK_OK);
  for (size_t i = 0; i < n; i += step) {
    step = 1 + (size_t)(test_random(seed) % 3);
    step = step > n - i ? n - i : step;
    CHECK_INT(tnk_detokenizer_push(detok, ids + i, step, &text, &got), TNK_OK);
    CHECK(n_joined + got < sizeof(joined));
    memcpy(joined + n_joined, text, got);
    n_joined += got;
  }
  CHECK_INT(tnk_detokenizer_finish(detok, &text, &got), TNK_OK);
  CHECK(n_joined + got < sizeof(joined));
  memcpy(joined + n_joined, text, got);
  CHECK_MEM(joined, n_joined + got, whole, n_whole);
  tnk_tokenizer_free_text(tok, whole);
  tnk_detokenizer_free(detok);
}

TEST_LIMIT(ids_of_models_are_those_of_the_reference, 30) {
  static golden_t golden;
  uint64_t seed = 3;

  for (size_t i = 0; i < 2; i++) {
    tnk_tokenizer_t *tok = load_model(models[i]);
    size_t n_lines = 0;

    golden_open(&golden, models[i]);
    for (; golden_next(&golden); n_lines++) {
      tnk_tokens_t *tokens = small_encode(tok, (char *)golden.text, golden.n,
                                          golden.flags | TNK_ENCODE_OFFSETS);
      const tnk_token_span_t *spans = tnk_tokens_offsets(tokens);

      small_check_ids(tokens, golden.ids, golden.n_ids);
      for (size_t j = 0; j < golden.n_ids; j++)
        CHECK(spans[j].start <= spans[j].end && spans[j].end <= golden.n);
      check_stream(tok, golden.ids, golden.n_ids, &seed);
      tnk_tokens_free(tokens);
    }
    CHECK(n_lines > 200);
    tnk_tokenizer_unref(tok);
  }
}

TEST(any_ids_can_be_streamed) {
  uint64_t seed = 9;

  for (size_t i = 0; i < 2; i++) {
    tnk_tokenizer_t *tok = load_model(models[i]);
    size_t n_vocab = tnk_tokenizer_vocab_size(tok);

    for (int round = 0; round < 500; round++) {
      int32_t ids[40];
      size_t n = (size_t)(test_random(&seed) % 40);

      /* the first 260 are control tokens and bytes */
      for (size_t j = 0; j < n; j++)
        ids[j] = (int32_t)(test_random(&seed) %
                           (round % 2 == 0 ? 260 : n_vocab + 2));
      check_stream(tok, ids, n, &seed);
    }
    tnk_tokenizer_unref(tok);
  }
}

TEST(tokens_and_ids) {
  tnk_tokenizer_t *tok = load_model("sp_bpe");
  unsigned flags;
  size_t n;

  CHECK_INT(tnk_tokenizer_bos(tok), 1);
  CHECK_INT(tnk_tokenizer_eos(tok), 2);
  CHECK_INT(tnk_tokenizer_id(tok, "<s>", 3), 1);
  CHECK_STR(tnk_tokenizer_token(tok, 1, &n, &flags) != NULL ? "yes" : "no",
            "yes");
  CHECK_INT(flags, TNK_TOKEN_SPECIAL);
  CHECK(tnk_tokenizer_id(tok, " ", 1) > 2);
  CHECK_INT(tnk_tokenizer_id(tok, "no such piece", 13), -1);
  tnk_tokenizer_unref(tok);
}

TEST(broken_text_is_refused_or_replaced) {
  tnk_tokenizer_t *tok = load_model("sp_bpe");
  tnk_tokens_t *tokens, *clean;
  tnk_tokenizer_error_t error;
  size_t n;

  clean = small_encode(tok, "the \xef\xbf\xbd fox", 11, 0);
  tokens = small_encode(tok, "the \xff fox", 9, TNK_ENCODE_LOSSY);
  (void)tnk_tokens_ids(clean, &n);
  small_check_ids(tokens, tnk_tokens_ids(clean, NULL), n);
  CHECK_INT(tnk_tokenizer_encode(tok, tokens, "the \xff", 5, 0, &error),
            TNK_EINVAL);
  CHECK_INT(error.offset, 4);
  tnk_tokens_free(tokens);
  tnk_tokens_free(clean);
  tnk_tokenizer_unref(tok);
}

TEST(what_is_no_model_is_refused) {
  tnk_tokenizer_options_t options = small_options();
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok = load_model("sp_bpe");
  char *text;
  size_t n;

  tnk_tokenizer_unref(tok);
  text = small_read("sp_bpe.model", &n);
  options.format = TNK_TOKENIZER_SENTENCEPIECE;
  for (size_t i = 0; i + 1 < n; i += 97) {
    int err = tnk_tokenizer_load_memory(&tok, text, i, &options, &error);

    /* A file that ends between two pieces is a smaller model. */
    CHECK(err == TNK_OK || err == TNK_EPROTO);
    tnk_tokenizer_unref(tok);
  }
}

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_FUZZ_TOKENIZER_FILE_H
#define TNK_TEST_FUZZ_TOKENIZER_FILE_H

#include <string.h>

#include "fuzz.h"
#include "tnk/tokenizers.h"

/* What holds for whatever tokenizer a file makes: texts are encoded, ids are
 * its own, and decoding them does not fail. */
static inline void fuzz_use(const tnk_tokenizer_t *tok) {
  static const char *const texts[] = {
      "", "Word 123\n\n it's <|a|> e\xcc\x81 \xe4\xb8\xad\xe6\x96\x87  x",
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "aa"
      "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
      "a"};
  tnk_tokens_t *tokens = tnk_tokens_new(NULL);

  FUZZ_CHECK(tokens != NULL);
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    tnk_tokenizer_error_t error;
    const int32_t *ids;
    size_t n, count;
    char *back;
    int err = tnk_tokenizer_encode(tok, tokens, texts[i], strlen(texts[i]),
                                   TNK_ENCODE_ADD_SPECIAL | TNK_ENCODE_OFFSETS,
                                   &error);

    FUZZ_CHECK(err == TNK_OK || err == TNK_EINTERNAL);
    ids = tnk_tokens_ids(tokens, &n);
    for (size_t j = 0; j < n; j++)
      FUZZ_CHECK(tnk_tokenizer_token(tok, ids[j], &count, NULL) != NULL);
    FUZZ_CHECK(tnk_tokenizer_decode(tok, &back, NULL, ids, n, 0) == TNK_OK ||
               err != TNK_OK);
    tnk_tokenizer_free_text(tok, back);
  }
  tnk_tokens_free(tokens);
}

/* Load, and use what was loaded. `pattern` is NULL or that of a rank file. */
static inline int fuzz_load(const uint8_t *data, size_t size,
                            tnk_tokenizer_format_t format,
                            const char *pattern) {
  tnk_tokenizer_options_t options = TNK_TOKENIZER_OPTIONS_INIT;
  tnk_tokenizer_error_t error;
  tnk_tokenizer_t *tok;
  int err;

  options.format = format;
  options.pattern = pattern;
  err = tnk_tokenizer_load_memory(&tok, data, size, &options, &error);
  FUZZ_CHECK((err == TNK_OK) == (tok != NULL));
  FUZZ_CHECK(error.code == err && (err == TNK_OK || error.text[0] != '\0'));
  if (err == TNK_OK)
    fuzz_use(tok);
  tnk_tokenizer_unref(tok);
  return 0;
}

#endif

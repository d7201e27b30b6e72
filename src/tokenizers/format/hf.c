/* SPDX-License-Identifier: MIT */
#include "tokenizers/format/hf.h"

#include <string.h>

#include "tokenizers/unicode/unicode.h"

/*
 * The top level of tokenizer.json. Members may come in any order. Members that
 * need the model are skipped, and read after it. The vocabulary is most of the
 * file, so the model itself is read at once, wherever it is.
 */
static int read_version(tnk__hf_t *hf) {
  int err = tnk__hf_word(hf, "version");

  if (err == TNK_OK && strcmp((char *)hf->text.data, "1.0") != 0)
    err = tnk__hf_unsupported(hf, "version", (char *)hf->text.data);
  return err;
}

/* Read the members that need the model. */
static int after_model(tnk__hf_t *hf) {
  int err = TNK_OK;

  if (hf->added != NULL) {
    hf->json.p = hf->added;
    err = tnk__hf_added(hf);
  }
  tnk__added_finish(&hf->tok->raw);
  tnk__added_finish(&hf->tok->normalized);
  if (err == TNK_OK && tnk__added_twice(&hf->tok->raw, &hf->tok->normalized))
    err = tnk__hf_unsupported(hf, "added_tokens", "with one content twice");
  if (err == TNK_OK && hf->around != NULL) {
    hf->json.p = hf->around;
    err = tnk__hf_post_processor(hf);
  }
  if (err == TNK_OK)
    tnk__vocab_trim(&hf->tok->vocab);
  return err;
}

enum {
  SEEN_NORMALIZER = 1,
  SEEN_PRE_TOKENIZER = 2,
  SEEN_DECODER = 4,
  SEEN_MODEL = 8,
  SEEN_ADDED = 16,
  SEEN_POST = 32
};

static int read_member(tnk__hf_t *hf, const tnk__jread_text_t *key,
                       unsigned *seen) {
  static const struct {
    const char *name;
    unsigned bit;
  } known[] = {
      {"normalizer", SEEN_NORMALIZER}, {"pre_tokenizer", SEEN_PRE_TOKENIZER},
      {"decoder", SEEN_DECODER},       {"model", SEEN_MODEL},
      {"added_tokens", SEEN_ADDED},    {"post_processor", SEEN_POST}};
  const uint8_t *start;
  unsigned bit = 0;

  (void)tnk__jread_peek(&hf->json);
  start = hf->json.p;
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    if (tnk__jread_is(key, known[i].name))
      bit = known[i].bit;
  if (*seen & bit)
    return tnk__hf_malformed(hf, "member: it is there twice");
  *seen |= bit;
  if (bit == SEEN_NORMALIZER)
    return tnk__hf_normalizer(hf);
  if (bit == SEEN_PRE_TOKENIZER)
    return tnk__hf_pre_tokenizer(hf);
  if (bit == SEEN_DECODER)
    return tnk__hf_decoder(hf);
  if (bit == SEEN_MODEL)
    return tnk__hf_model(hf);
  if (bit == SEEN_ADDED)
    hf->added = start;
  else if (bit == SEEN_POST)
    hf->around = start;
  else if (tnk__jread_is(key, "version"))
    return read_version(hf);
  else if (tnk__jread_is(key, "truncation") || tnk__jread_is(key, "padding")) {
    if (!tnk__hf_off(hf))
      return tnk__hf_unsupported(hf, "truncation or padding", "of texts");
    return TNK_OK;
  }
  return tnk__jread_skip(&hf->json) < 0 ? tnk__hf_malformed(hf, "JSON")
                                        : TNK_OK;
}

static int read_all(tnk__hf_t *hf) {
  tnk__jread_text_t key;
  unsigned seen = 0;
  size_t n = 0;
  int more, err;

  if (tnk__jread_take(&hf->json, '{') < 0)
    return tnk__hf_malformed(hf, "JSON");
  while ((more = tnk__jread_next_key(&hf->json, &n, &key)) > 0) {
    err = read_member(hf, &key, &seen);
    if (err < 0)
      return err;
  }
  if (more < 0 || tnk__jread_peek(&hf->json) != 0 || hf->json.p != hf->json.end)
    return tnk__hf_malformed(hf, "JSON");
  if ((seen & SEEN_MODEL) == 0)
    return tnk__hf_malformed(hf, "member: model is missing");
  if ((seen & SEEN_DECODER) == 0 || (seen & SEEN_PRE_TOKENIZER) == 0)
    return tnk__hf_unsupported(hf, "a file without",
                               "pre_tokenizer or decoder");
  return after_model(hf);
}

int tnk__hf_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                 tnk_tokenizer_error_t *error) {
  tnk__hf_t hf = {tok, {0}, error, NULL, NULL, {0}};
  size_t good = tnk__utf8_valid(data, n);
  int err;

  tnk__jread_init(&hf.json, data, n);
  if (good < n) {
    hf.json.p = data + good;
    return tnk__hf_malformed(&hf, "UTF-8");
  }
  tnk__buf_init(&hf.text, &tok->alloc, SIZE_MAX / 2);
  err = read_all(&hf);
  tnk__buf_deinit(&hf.text);
  return err;
}

/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tokenizers/format/hf.h"
#include "tokenizers/model/fallback.h"
#include "tokenizers/unicode/unicode.h"

/* ---- Shared by all readers of tokenizer.json ---- */

int tnk__hf_malformed(tnk__hf_t *hf, const char *place) {
  return tnk__fault(hf->error, TNK_EPROTO,
                    (uint64_t)(hf->json.p - hf->json.base),
                    "tokenizer.json, byte %zu: malformed %s",
                    (size_t)(hf->json.p - hf->json.base), place);
}

int tnk__hf_unsupported(tnk__hf_t *hf, const char *place, const char *what) {
  return tnk__fault(hf->error, TNK_EUNSUPPORTED,
                    (uint64_t)(hf->json.p - hf->json.base),
                    "tokenizer.json: %s %s is not implemented", place, what);
}

int tnk__hf_name(tnk__hf_t *hf, const char *place) {
  tnk__jread_text_t text;
  uint8_t *out;
  size_t n;

  if (tnk__jread_text(&hf->json, &text) < 0)
    return tnk__hf_malformed(hf, place);
  tnk__buf_clear(&hf->text);
  out = tnk__buf_reserve(&hf->text, text.n + 1);
  if (out == NULL)
    return tnk__fault_memory(hf->error);
  if (tnk__jread_unescape(&text, out, &n) < 0) {
    hf->json.p = text.p;
    return tnk__hf_malformed(hf, place);
  }
  out[n] = '\0';
  hf->text.len = n;
  return TNK_OK;
}

int tnk__hf_word(tnk__hf_t *hf, const char *place) {
  int err = tnk__hf_name(hf, place);

  if (err == TNK_OK && memchr(hf->text.data, '\0', hf->text.len) != NULL)
    err = tnk__hf_malformed(hf, place);
  return err;
}

int tnk__hf_off(tnk__hf_t *hf) {
  static const char zero[] =
      "0.0"; /* some files have this for a dropout of 0 */
  tnk__jread_text_t text;
  uint32_t number;
  int value;

  switch (tnk__jread_peek(&hf->json)) {
  case 'n':
    return tnk__jread_null(&hf->json);
  case 'f':
    return tnk__jread_bool(&hf->json, &value) == TNK_OK && !value;
  case '"':
    return tnk__jread_text(&hf->json, &text) == TNK_OK && text.n == 0;
  default:
    if ((size_t)(hf->json.end - hf->json.p) > sizeof(zero) &&
        memcmp(hf->json.p, zero, sizeof(zero) - 1) == 0 &&
        strchr(",} \r\n\t", hf->json.p[sizeof(zero) - 1]) != NULL)
      return tnk__jread_skip(&hf->json) == TNK_OK;
    return tnk__jread_uint(&hf->json, &number) == TNK_OK && number == 0;
  }
}

/* Printable bytes are their own characters. The other 68 are U+0100 and up, in
 * their order. */
static int alphabet_byte(uint32_t cp) {
  if ((cp >= 0x21 && cp <= 0x7e) || (cp >= 0xa1 && cp <= 0xff && cp != 0xad))
    return (int)cp;
  if (cp < 0x100 || cp > 0x143)
    return -1;
  cp -= 0x100;
  return cp <= 0x20 ? (int)cp : cp <= 0x42 ? (int)cp + 0x5e : 0xad;
}

int64_t tnk__hf_bytes(const uint8_t *name, size_t n, uint8_t *out) {
  size_t n_out = 0;

  for (size_t i = 0; i < n;) {
    uint32_t cp = name[i];
    int byte;

    if (cp >= 0x21 && cp <= 0x7e) {
      out[n_out++] = (uint8_t)cp;
      i++;
      continue;
    }
    if (cp >= 0x80) {
      if (cp < 0xc2 || cp > 0xc5 || i + 1 == n)
        return -1;
      cp = (cp & 0x1f) << 6 | (name[i + 1] & 0x3fu);
      i++;
    }
    i++;
    byte = alphabet_byte(cp);
    if (byte < 0)
      return -1;
    out[n_out++] = (uint8_t)byte;
  }
  return (int64_t)n_out;
}

size_t tnk__hf_stored(const tnk__hf_t *hf, const uint8_t *name, size_t n,
                      uint8_t *out, unsigned *flags) {
  int64_t n_bytes = hf->tok->by_chars ? -1 : tnk__hf_bytes(name, n, out);

  *flags = n_bytes < 0 && !hf->tok->by_chars ? TNK__TOKEN_LITERAL : 0;
  if (n_bytes >= 0)
    return (size_t)n_bytes;
  memcpy(out, name, n);
  return n;
}

/* ---- The top level ----
 *
 * Members may come in any order. Members that
 * need the model are skipped, and read after it. The vocabulary is most of the
 * file, so the model itself is read at once, if the pre_tokenizer came before.
 */
static int read_version(tnk__hf_t *hf) {
  int err = tnk__hf_word(hf, "version");

  if (err == TNK_OK && strcmp((char *)hf->text.data, "1.0") != 0)
    err = tnk__hf_unsupported(hf, "version", (char *)hf->text.data);
  return err;
}

/* Names of tokens become text. */
static int finish_names(tnk__hf_t *hf) {
  int err = tnk__fallback_finish(hf->tok);

  hf->tok->engine =
      hf->tok->keeps_bytes ? &tnk__metaspace_engine : &tnk__fallback_engine;
  return err == TNK_OK ? TNK_OK
                       : tnk__hf_unsupported(hf, "decoder Metaspace",
                                             "for a token with a space and "
                                             "the replacement");
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
  if (err == TNK_OK && hf->tok->meta.when == TNK__PREPEND_FIRST &&
      hf->tok->normalized.n > 0 && hf->tok->normal.n > 0)
    err = tnk__hf_unsupported(hf, "pre_tokenizer",
                              "Metaspace with prepend_scheme first, a "
                              "normalizer and added tokens of its results");
  if (err == TNK_OK && hf->tok->by_chars)
    err = finish_names(hf);
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
  if (bit == SEEN_MODEL && (*seen & SEEN_PRE_TOKENIZER) != 0)
    return tnk__hf_model(hf);
  if (bit == SEEN_MODEL)
    hf->model = start;
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
  err = tnk__hf_check_steps(hf);
  if (err == TNK_OK && hf->model != NULL) {
    hf->json.p = hf->model;
    err = tnk__hf_model(hf);
  }
  return err < 0 ? err : after_model(hf);
}

int tnk__hf_load(tnk_tokenizer_t *tok, const uint8_t *data, size_t n,
                 tnk_tokenizer_error_t *error) {
  tnk__hf_t hf = {.tok = tok, .error = error};
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

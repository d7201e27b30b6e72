/* SPDX-License-Identifier: MIT */
#include "tokenizers/format/hf.h"

#include <string.h>

/* Shared by all readers of tokenizer.json. */
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

/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tokenizers/format/hf.h"
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

/* ---- Normalizer, pre-tokenizer and decoder ----
 *
 * Each is one component or a Sequence of components. The members of a component
 * may come in any order, so all are collected first and checked afterwards.
 */
#define MAX_PARTS 8
#define MAX_NESTING 4

typedef struct {
  char type[32];
  tnk__jread_text_t behavior;
  int has_pattern; /* is a Regex, stored in `pattern` */
  int use_regex;
  int add_prefix_space;
  int invert;
} part_t;

/* The components of a Sequence, or a single component. */
typedef struct {
  tnk__hf_t *hf;
  const char *place;
  part_t parts[MAX_PARTS];
  size_t n;
  tnk__buf_t pattern_text; /* NUL-terminated strings, one after another */
  size_t patterns_at[MAX_PARTS];
} parts_t;

static int malformed(parts_t *parts) {
  return tnk__hf_malformed(parts->hf, parts->place);
}

static int read_short(parts_t *parts, char *out, size_t size) {
  int err = tnk__hf_word(parts->hf, parts->place);

  if (err < 0)
    return err;
  if (parts->hf->text.len >= size)
    return tnk__hf_unsupported(parts->hf, parts->place, "of this type");
  memcpy(out, parts->hf->text.data, parts->hf->text.len + 1);
  return TNK_OK;
}

/* {"Regex": "..."}. For {"String": "..."} no pattern is stored. */
static int read_pattern(parts_t *parts, part_t *part) {
  tnk__hf_t *hf = parts->hf;
  tnk__jread_text_t key;
  size_t n = 0;
  int err, more;

  if (tnk__jread_take(&hf->json, '{') < 0 ||
      tnk__jread_next_key(&hf->json, &n, &key) <= 0)
    return malformed(parts);
  if (!tnk__jread_is(&key, "Regex")) {
    if (tnk__jread_skip(&hf->json) < 0 ||
        tnk__jread_next_key(&hf->json, &n, &key) != 0)
      return malformed(parts);
    return TNK_OK;
  }
  err = tnk__hf_word(hf, parts->place);
  if (err < 0)
    return err;
  parts->patterns_at[parts->n] = parts->pattern_text.len;
  part->has_pattern = 1;
  if (tnk__buf_append(&parts->pattern_text, hf->text.data, hf->text.len + 1) <
      0)
    return tnk__fault_memory(hf->error);
  more = tnk__jread_next_key(&hf->json, &n, &key);
  return more == 0 ? TNK_OK : malformed(parts);
}

static int read_parts(parts_t *parts, unsigned depth);

static int read_sequence(parts_t *parts, unsigned depth) {
  size_t n = 0;
  int more;

  if (tnk__jread_take(&parts->hf->json, '[') < 0)
    return malformed(parts);
  while ((more = tnk__jread_next_item(&parts->hf->json, &n)) > 0) {
    int err = read_parts(parts, depth + 1);

    if (err < 0)
      return err;
  }
  return more < 0 ? malformed(parts) : TNK_OK;
}

static int read_part_member(parts_t *parts, part_t *part,
                            const tnk__jread_text_t *key, unsigned depth) {
  tnk__jread_t *json = &parts->hf->json;
  int *flag = tnk__jread_is(key, "use_regex")          ? &part->use_regex
              : tnk__jread_is(key, "add_prefix_space") ? &part->add_prefix_space
              : tnk__jread_is(key, "invert")           ? &part->invert
                                                       : NULL;

  if (flag != NULL)
    return tnk__jread_bool(json, flag) < 0 ? malformed(parts) : TNK_OK;
  if (tnk__jread_is(key, "type"))
    return read_short(parts, part->type, sizeof(part->type));
  if (tnk__jread_is(key, "behavior"))
    return tnk__jread_text(json, &part->behavior) < 0 ? malformed(parts)
                                                      : TNK_OK;
  if (tnk__jread_is(key, "pattern") && tnk__jread_peek(json) == '{')
    return read_pattern(parts, part);
  if (tnk__jread_is(key, "normalizers") ||
      tnk__jread_is(key, "pretokenizers") || tnk__jread_is(key, "decoders"))
    return read_sequence(parts, depth);
  return tnk__jread_skip(json) < 0 ? malformed(parts) : TNK_OK;
}

/* Read a component at json.p. For a Sequence only its components are stored. */
static int read_parts(parts_t *parts, unsigned depth) {
  tnk__jread_t *json = &parts->hf->json;
  part_t part = {"", {NULL, 0, 0}, 0, 1, 1, 0};
  tnk__jread_text_t key;
  size_t n = 0;
  int more, err;

  if (depth > MAX_NESTING || parts->n == MAX_PARTS)
    return tnk__hf_unsupported(parts->hf, parts->place,
                               "of so many components");
  if (tnk__jread_take(json, '{') < 0)
    return malformed(parts);
  while ((more = tnk__jread_next_key(json, &n, &key)) > 0) {
    err = read_part_member(parts, &part, &key, depth);
    if (err < 0)
      return err;
  }
  if (more < 0 || part.type[0] == '\0')
    return malformed(parts);
  if (strcmp(part.type, "Sequence") == 0)
    return TNK_OK;
  if (parts->n == MAX_PARTS)
    return tnk__hf_unsupported(parts->hf, parts->place,
                               "of so many components");
  parts->parts[parts->n++] = part;
  return TNK_OK;
}

static int gather(parts_t *parts, tnk__hf_t *hf, const char *place) {
  memset(parts, 0, sizeof(*parts));
  parts->hf = hf;
  parts->place = place;
  tnk__buf_init(&parts->pattern_text, &hf->tok->alloc, SIZE_MAX / 2);
  return tnk__jread_null(&hf->json) ? TNK_OK : read_parts(parts, 0);
}

static int read_normalizer(tnk__hf_t *hf) {
  parts_t parts;
  int err = gather(&parts, hf, "normalizer");

  for (size_t i = 0; err == TNK_OK && i < parts.n; i++) {
    if (strcmp(parts.parts[i].type, "NFC") == 0)
      hf->tok->nfc = 1;
    else
      err = tnk__hf_unsupported(hf, "normalizer", parts.parts[i].type);
  }
  tnk__buf_deinit(&parts.pattern_text);
  return err;
}

/* Returns whether a Split cuts the text at its matches and keeps all of it. */
static int check_split(const parts_t *parts, size_t i, size_t n_splits) {
  const part_t *part = &parts->parts[i];
  int isolated = tnk__jread_is(&part->behavior, "Isolated") && !part->invert;
  /* The known expressions match everything. Removing unmatched text therefore
   * removes nothing. */
  int inverted = tnk__jread_is(&part->behavior, "Removed") && part->invert &&
                 n_splits == 1;

  return part->has_pattern && (isolated || inverted);
}

static tnk__shape_t find_shape(const parts_t *parts, size_t n_splits) {
  const char *patterns[MAX_PARTS];
  size_t lengths[MAX_PARTS];

  for (size_t i = 0; i < n_splits; i++) {
    patterns[i] =
        (const char *)parts->pattern_text.data + parts->patterns_at[i];
    lengths[i] = strlen(patterns[i]);
  }
  if (n_splits == 1)
    return tnk__split_find(patterns[0], lengths[0]);
  return n_splits == 3 ? tnk__split_find3(patterns, lengths) : TNK__SHAPE_NONE;
}

static int judge_pre_tokenizer(const parts_t *parts) {
  tnk__hf_t *hf = parts->hf;
  size_t n_splits = parts->n - 1;
  const part_t *last = &parts->parts[n_splits];

  if (strcmp(last->type, "ByteLevel") != 0)
    return tnk__hf_unsupported(hf, "pre_tokenizer", last->type);
  if (last->add_prefix_space)
    return tnk__hf_unsupported(hf, "pre_tokenizer", "with add_prefix_space");
  for (size_t i = 0; i < n_splits; i++)
    if (strcmp(parts->parts[i].type, "Split") != 0)
      return tnk__hf_unsupported(hf, "pre_tokenizer", parts->parts[i].type);
  for (size_t i = 0; i < n_splits; i++)
    if (!check_split(parts, i, n_splits))
      return tnk__hf_unsupported(hf, "pre_tokenizer",
                                 parts->parts[i].has_pattern
                                     ? "Split with this behavior"
                                     : "Split with a String pattern");
  if (n_splits == 0) {
    hf->tok->shape = last->use_regex ? TNK__SHAPE_GPT2 : TNK__SHAPE_NONE;
    return TNK_OK;
  }
  if (last->use_regex)
    return tnk__hf_unsupported(hf, "pre_tokenizer",
                               "Split before ByteLevel with use_regex");
  hf->tok->shape = find_shape(parts, n_splits);
  if (hf->tok->shape != TNK__SHAPE_NONE)
    return TNK_OK;
  return tnk__hf_unsupported(hf, "pre_tokenizer.pretokenizers[0].pattern",
                             (const char *)parts->pattern_text.data +
                                 parts->patterns_at[0]);
}

static int read_pre_tokenizer(tnk__hf_t *hf) {
  parts_t parts;
  int err = gather(&parts, hf, "pre_tokenizer");

  if (err == TNK_OK)
    err = parts.n == 0 ? tnk__hf_unsupported(hf, "pre_tokenizer", "null")
                       : judge_pre_tokenizer(&parts);
  tnk__buf_deinit(&parts.pattern_text);
  return err;
}

static int read_decoder(tnk__hf_t *hf) {
  parts_t parts;
  int err = gather(&parts, hf, "decoder");

  if (err == TNK_OK && parts.n != 1)
    err = tnk__hf_unsupported(hf, "decoder", "other than ByteLevel");
  if (err == TNK_OK && strcmp(parts.parts[0].type, "ByteLevel") != 0)
    err = tnk__hf_unsupported(hf, "decoder", parts.parts[0].type);
  tnk__buf_deinit(&parts.pattern_text);
  return err;
}

/* ---- The top level ----
 *
 * Members may come in any order. Members that
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
    return read_normalizer(hf);
  if (bit == SEEN_PRE_TOKENIZER)
    return read_pre_tokenizer(hf);
  if (bit == SEEN_DECODER)
    return read_decoder(hf);
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

/* SPDX-License-Identifier: MIT */
#include "tokenizers/format/hf.h"

#include <string.h>

/*
 * Normalizer, pre-tokenizer and decoder of a tokenizer.json. Each is one
 * component or a Sequence of components. The members of a component may come in
 * any order, so all are collected first and checked afterwards.
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

int tnk__hf_normalizer(tnk__hf_t *hf) {
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

int tnk__hf_pre_tokenizer(tnk__hf_t *hf) {
  parts_t parts;
  int err = gather(&parts, hf, "pre_tokenizer");

  if (err == TNK_OK)
    err = parts.n == 0 ? tnk__hf_unsupported(hf, "pre_tokenizer", "null")
                       : judge_pre_tokenizer(&parts);
  tnk__buf_deinit(&parts.pattern_text);
  return err;
}

int tnk__hf_decoder(tnk__hf_t *hf) {
  parts_t parts;
  int err = gather(&parts, hf, "decoder");

  if (err == TNK_OK && parts.n != 1)
    err = tnk__hf_unsupported(hf, "decoder", "other than ByteLevel");
  if (err == TNK_OK && strcmp(parts.parts[0].type, "ByteLevel") != 0)
    err = tnk__hf_unsupported(hf, "decoder", parts.parts[0].type);
  tnk__buf_deinit(&parts.pattern_text);
  return err;
}

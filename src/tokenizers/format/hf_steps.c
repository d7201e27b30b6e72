/* SPDX-License-Identifier: MIT */
#include "tokenizers/format/hf.h"

#include <string.h>

#include "tokenizers/unicode/unicode.h"

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
  int individual_digits;
  int splits;      /* Metaspace */
  char scheme[16]; /* "" if absent */
  uint32_t start;  /* Strip */
  uint32_t stop;
  tnk__step_t step; /* a String pattern, and the text in its place; `to` is also
                     * the replacement of Metaspace */
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

/* A text of a component, which is short. */
static int read_text(parts_t *parts, uint8_t *out, size_t *n) {
  int err = tnk__hf_name(parts->hf, parts->place);

  if (err < 0)
    return err;
  if (parts->hf->text.len > TNK__MAX_STEP_TEXT)
    return tnk__hf_unsupported(parts->hf, parts->place,
                               "with such a long text");
  *n = parts->hf->text.len;
  memcpy(out, parts->hf->text.data, *n);
  return TNK_OK;
}

/* {"Regex": "..."} or {"String": "..."}. */
static int read_pattern(parts_t *parts, part_t *part) {
  tnk__hf_t *hf = parts->hf;
  tnk__jread_text_t key;
  size_t n = 0;
  int err, more;

  if (tnk__jread_take(&hf->json, '{') < 0 ||
      tnk__jread_next_key(&hf->json, &n, &key) <= 0)
    return malformed(parts);
  if (!tnk__jread_is(&key, "Regex")) {
    err = read_text(parts, part->step.from, &part->step.n_from);
    if (err < 0)
      return err;
    more = tnk__jread_next_key(&hf->json, &n, &key);
    return more == 0 ? TNK_OK : malformed(parts);
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
              : tnk__jread_is(key, "split")            ? &part->splits
              : tnk__jread_is(key, "individual_digits")
                  ? &part->individual_digits
                  : NULL;
  uint32_t *number = tnk__jread_is(key, "start")  ? &part->start
                     : tnk__jread_is(key, "stop") ? &part->stop
                                                  : NULL;

  if (flag != NULL && tnk__jread_null(json))
    return TNK_OK; /* the default */
  if (flag != NULL)
    return tnk__jread_bool(json, flag) < 0 ? malformed(parts) : TNK_OK;
  if (number != NULL)
    return tnk__jread_uint(json, number) < 0 ? malformed(parts) : TNK_OK;
  if (tnk__jread_is(key, "content") || tnk__jread_is(key, "prepend") ||
      tnk__jread_is(key, "replacement"))
    return read_text(parts, part->step.to, &part->step.n_to);
  if (tnk__jread_is(key, "prepend_scheme"))
    return read_short(parts, part->scheme, sizeof(part->scheme));
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
  part_t part = {.use_regex = 1, .add_prefix_space = 1, .splits = 1};
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

/* The step of a component, or what of it is not supported. */
static const char *find_step(part_t *part) {
  if (strcmp(part->type, "NFC") == 0)
    part->step.kind = TNK__STEP_NFC;
  else if (strcmp(part->type, "NFKC") == 0)
    part->step.kind = TNK__STEP_NFKC;
  else if (strcmp(part->type, "Prepend") == 0 && part->step.n_to > 0)
    part->step.kind = TNK__STEP_PREPEND;
  else if (strcmp(part->type, "Replace") == 0 && part->step.n_from > 0)
    part->step.kind = TNK__STEP_REPLACE;
  else
    return strcmp(part->type, "Replace") == 0 ? "Replace without a String"
                                              : part->type;
  return NULL;
}

int tnk__hf_normalizer(tnk__hf_t *hf) {
  tnk__normal_t *normal = &hf->tok->normal;
  parts_t parts;
  int err = gather(&parts, hf, "normalizer");

  for (size_t i = 0; err == TNK_OK && i < parts.n; i++) {
    const char *lacking = find_step(&parts.parts[i]);

    if (lacking != NULL)
      err = tnk__hf_unsupported(hf, "normalizer", lacking);
    else if (normal->n == TNK__MAX_STEPS)
      err = tnk__hf_unsupported(hf, "normalizer", "of so many components");
    else
      normal->steps[normal->n++] = parts.parts[i].step;
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

/* Pieces are found in the alphabet of bytes. */
static int judge_byte_level(const parts_t *parts) {
  tnk__hf_t *hf = parts->hf;
  size_t n_splits = parts->n - 1;
  const part_t *first = &parts->parts[0], *last = &parts->parts[n_splits];

  if (last->add_prefix_space)
    return tnk__hf_unsupported(hf, "pre_tokenizer", "with add_prefix_space");
  if (n_splits == 1 && strcmp(first->type, "Digits") == 0 && last->use_regex) {
    hf->tok->shape =
        first->individual_digits ? TNK__SHAPE_DIGITS : TNK__SHAPE_NUMBERS;
    return TNK_OK;
  }
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

/* Check a Metaspace of a pre-tokenizer or decoder. Without prepend_scheme it is
 * "always". Older files have add_prefix_space too, which must agree with it. */
static int judge_metaspace(const parts_t *parts, const part_t *part,
                           tnk__prepend_t *when) {
  static const char *const schemes[] = {[TNK__PREPEND_NEVER] = "never",
                                        [TNK__PREPEND_FIRST] = "first",
                                        [TNK__PREPEND_ALWAYS] = "always"};
  const char *scheme = part->scheme[0] == '\0' ? "always" : part->scheme;
  const tnk__step_t *step = &part->step;
  size_t i = 0;

  while (i < 3 && strcmp(scheme, schemes[i]) != 0)
    i++;
  if (i == 3)
    return tnk__hf_unsupported(parts->hf, "Metaspace with prepend_scheme",
                               scheme);
  *when = (tnk__prepend_t)i;
  if (!part->add_prefix_space && *when != TNK__PREPEND_NEVER)
    return tnk__hf_unsupported(parts->hf, parts->place,
                               "Metaspace without add_prefix_space and with a "
                               "prepend_scheme other than never");
  if (step->n_to == 0 || step->n_to > 3 ||
      tnk__utf8_length(step->to[0]) != step->n_to)
    return tnk__hf_unsupported(parts->hf, parts->place,
                               "Metaspace with a replacement other than one "
                               "character up to U+FFFF");
  return TNK_OK;
}

static int set_metaspace(const parts_t *parts, const part_t *part) {
  tnk__metaspace_t *meta = &parts->hf->tok->meta;
  int err = judge_metaspace(parts, part, &meta->when);

  meta->is_on = 1;
  meta->splits = part->splits;
  meta->step = part->step;
  meta->step.kind = TNK__STEP_REPLACE;
  meta->step.n_from = 1;
  meta->step.from[0] = ' ';
  return err;
}

/* Without ByteLevel and Metaspace a whole text is one piece. Gemma's file has a
 * Split at a text that its normalizer replaces, so there is nothing to split;
 * tnk__hf_check_steps() makes sure. */
static int judge_pre_tokenizer(const parts_t *parts) {
  tnk__hf_t *hf = parts->hf;
  const part_t *last = &parts->parts[parts->n == 0 ? 0 : parts->n - 1];

  if (strcmp(last->type, "ByteLevel") == 0)
    return judge_byte_level(parts);
  hf->tok->by_chars = 1;
  if (parts->n == 0)
    return TNK_OK;
  if (parts->n == 1 && strcmp(last->type, "Metaspace") == 0)
    return set_metaspace(parts, last);
  if (parts->n > 1 || strcmp(last->type, "Split") != 0 ||
      last->step.n_from == 0)
    return tnk__hf_unsupported(hf, "pre_tokenizer", last->type);
  hf->split = last->step;
  return TNK_OK;
}

int tnk__hf_pre_tokenizer(tnk__hf_t *hf) {
  parts_t parts;
  int err = gather(&parts, hf, "pre_tokenizer");

  if (err == TNK_OK)
    err = judge_pre_tokenizer(&parts);
  tnk__buf_deinit(&parts.pattern_text);
  return err;
}

static int is_text(const uint8_t *p, size_t n, const char *text) {
  return n == strlen(text) && memcmp(p, text, n) == 0;
}

/* Replace U+2581 by a space, ByteFallback, Fuse, and possibly Strip of leading
 * spaces. Returns what is something else, or NULL. */
static const char *judge_fallback(const parts_t *parts) {
  static const char *const types[] = {"Replace", "ByteFallback", "Fuse",
                                      "Strip"};
  const tnk__step_t *replace = &parts->parts[0].step;
  const part_t *strip = &parts->parts[3];
  tnk_tokenizer_t *tok = parts->hf->tok;

  tok->n_blank = 3;
  memcpy(tok->blank, "\xe2\x96\x81", tok->n_blank);
  for (size_t i = 0; i < parts->n; i++)
    if (i >= sizeof(types) / sizeof(types[0]) ||
        strcmp(parts->parts[i].type, types[i]) != 0)
      return parts->parts[i].type;
  if (parts->n < 3)
    return "without ByteFallback and Fuse";
  if (!is_text(replace->from, replace->n_from, "\xe2\x96\x81") ||
      !is_text(replace->to, replace->n_to, " "))
    return "Replace of other than U+2581 by a space";
  if (parts->n == 3)
    return NULL;
  if (!is_text(strip->step.to, strip->step.n_to, " ") || strip->stop != 0)
    return "Strip of other than leading spaces";
  tok->strip = strip->start;
  return strip->start > INT16_MAX ? "Strip of so many spaces" : NULL;
}

static int set_decoder_metaspace(const parts_t *parts) {
  const part_t *part = &parts->parts[0];
  tnk_tokenizer_t *tok = parts->hf->tok;
  tnk__prepend_t when = TNK__PREPEND_NEVER;
  int err = judge_metaspace(parts, part, &when);

  if (err < 0)
    return err;
  tok->n_blank = part->step.n_to;
  memcpy(tok->blank, part->step.to, tok->n_blank);
  tok->drops_first = when != TNK__PREPEND_NEVER;
  tok->keeps_bytes = 1;
  return TNK_OK;
}

int tnk__hf_decoder(tnk__hf_t *hf) {
  parts_t parts;
  const char *lacking = NULL;
  int err = gather(&parts, hf, "decoder");

  if (err == TNK_OK && parts.n == 0)
    lacking = "null";
  else if (err == TNK_OK && parts.n == 1 &&
           strcmp(parts.parts[0].type, "Metaspace") == 0)
    err = set_decoder_metaspace(&parts);
  else if (err == TNK_OK && parts.n == 1)
    lacking = strcmp(parts.parts[0].type, "ByteLevel") == 0
                  ? NULL
                  : parts.parts[0].type;
  else if (err == TNK_OK)
    lacking = judge_fallback(&parts);
  if (lacking != NULL)
    err = tnk__hf_unsupported(hf, "decoder", lacking);
  hf->has_names = parts.n > 1 || hf->tok->keeps_bytes;
  tnk__buf_deinit(&parts.pattern_text);
  return err;
}

/* Returns whether the normalizer ends with a step that leaves none of the texts
 * at which the pre-tokenizer splits. */
static int is_split_gone(const tnk__hf_t *hf) {
  const tnk__normal_t *normal = &hf->tok->normal;
  const tnk__step_t *last = &normal->steps[normal->n == 0 ? 0 : normal->n - 1];

  return normal->n > 0 && last->kind == TNK__STEP_REPLACE &&
         last->n_from == hf->split.n_from && last->n_from == 1 &&
         last->from[0] == hf->split.from[0] &&
         memchr(last->to, last->from[0], last->n_to) == NULL;
}

int tnk__hf_check_steps(tnk__hf_t *hf) {
  if (hf->tok->by_chars != hf->has_names)
    return hf->has_names
               ? tnk__hf_unsupported(hf, "decoder", "for pieces of bytes")
               : tnk__hf_unsupported(hf, "pre_tokenizer", "without ByteLevel");
  if (hf->split.n_from > 0 && !is_split_gone(hf))
    return tnk__hf_unsupported(hf, "pre_tokenizer",
                               "Split at a text that is not normalized away");
  return TNK_OK;
}

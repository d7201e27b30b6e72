/* SPDX-License-Identifier: MIT */
#include "tokenizers/format/hf.h"

#include <string.h>

#include "tokenizers/model/chars.h"
#include "tokenizers/model/fallback.h"

/* The model: its type BPE, vocabulary and merges. */

/* Append a name of the vocabulary to the blob, as the bytes of its characters.
 * If a character is not in the byte alphabet, append the name itself. */
static int put_name(tnk__hf_t *hf, const tnk__jread_text_t *key, size_t *n,
                    unsigned *flags) {
  uint8_t *room = tnk__vocab_reserve(&hf->tok->vocab, key->n + 1);
  const uint8_t *name = key->p;
  int64_t n_bytes;

  if (room == NULL)
    return tnk__fault_memory(hf->error);
  *n = key->n;
  *flags = 0;
  if (key->escaped) {
    if (tnk__jread_unescape(key, room, n) < 0)
      return tnk__hf_malformed(hf, "model.vocab");
    name = room;
  }
  n_bytes = hf->tok->by_chars ? -1 : tnk__hf_bytes(name, *n, room);
  if (n_bytes >= 0) {
    *n = (size_t)n_bytes;
    return TNK_OK;
  }
  if (!hf->tok->by_chars)
    *flags = TNK__TOKEN_LITERAL;
  /* Start again: some bytes were converted before the first other character. */
  if (!key->escaped)
    memcpy(room, key->p, key->n);
  else
    (void)tnk__jread_unescape(key, room, n);
  return TNK_OK;
}

static int read_vocab(tnk__hf_t *hf) {
  tnk__jread_text_t key;
  size_t count = 0;
  int more, err;

  if (tnk__jread_take(&hf->json, '{') < 0)
    return tnk__hf_unsupported(hf, "model.vocab", "other than an object");
  while ((more = tnk__jread_next_key(&hf->json, &count, &key)) > 0) {
    unsigned flags = 0;
    uint32_t id;
    size_t n = 0;

    if (tnk__jread_uint(&hf->json, &id) < 0)
      return tnk__hf_malformed(hf, "model.vocab");
    err = put_name(hf, &key, &n, &flags);
    if (err < 0)
      return err;
    err = tnk__vocab_put(&hf->tok->vocab, id, n, flags, 0);
    if (err == TNK_ENOMEM)
      return tnk__fault_memory(hf->error);
    if (err == TNK_ETOOBIG)
      return tnk__fault(hf->error, err, (uint64_t)(key.p - hf->json.base),
                        "tokenizer.json: model.vocab has an id or a token "
                        "over the limit");
    if (err < 0)
      return tnk__hf_malformed(hf, "model.vocab: an id is there twice");
  }
  if (more < 0)
    return tnk__hf_malformed(hf, "model.vocab");
  err = tnk__vocab_index(&hf->tok->vocab);
  if (err == TNK_ENOMEM)
    return tnk__fault_memory(hf->error);
  return err < 0 ? tnk__hf_malformed(hf, "model.vocab: a name is there twice")
                 : TNK_OK;
}

/*
 * Merges. Each consists of two names, which must be looked up, and their
 * concatenation. Looking them up one by one would wait for memory each time, so
 * groups of them are looked up together.
 */
#define GROUP 32

/* Half of a merge: its bytes in hf->text, or its name if it is a literal
 * token. */
typedef struct {
  size_t at;
  size_t n;
  uint32_t hash;
  unsigned flags;
} half_t;

typedef struct {
  half_t halves[2 * GROUP];
  size_t n;
  tnk__buf_t room; /* for strings with escapes */
} group_t;

static int add_half(tnk__hf_t *hf, group_t *group, const uint8_t *p, size_t n) {
  half_t *half = &group->halves[group->n++];
  uint8_t *out = tnk__buf_reserve(&hf->text, n);

  if (out == NULL)
    return tnk__fault_memory(hf->error);
  half->at = hf->text.len;
  half->n = tnk__hf_stored(hf, p, n, out, &half->flags);
  half->hash = tnk__vocab_hash(out, half->n, half->flags);
  hf->text.len += half->n;
  tnk__vocab_soon(&hf->tok->vocab, half->hash, 0);
  return TNK_OK;
}

/* In most vocabularies the results of merges have ascending ids. Try the id
 * after the last one and the last one itself first. */
static int32_t find_merged(const tnk_tokenizer_t *tok, const uint8_t *bytes,
                           size_t n, int32_t last) {
  const tnk__vocab_t *vocab = &tok->vocab;

  if ((uint32_t)(last + 1) < vocab->n &&
      tnk__vocab_is(vocab, (uint32_t)(last + 1), bytes, n, 0))
    return last + 1;
  if (last >= 0 && tnk__vocab_is(vocab, (uint32_t)last, bytes, n, 0))
    return last;
  return tnk__vocab_find(vocab, bytes, n, 0);
}

static int32_t find_half(const tnk__hf_t *hf, const half_t *half) {
  return tnk__vocab_find_hashed(&hf->tok->vocab, hf->text.data + half->at,
                                half->n, half->flags, half->hash);
}

static int add_merge(tnk__hf_t *hf, const half_t *half) {
  const tnk__bpe_t *bpe = &hf->tok->bpe;
  int32_t left = find_half(hf, half), right = find_half(hf, half + 1), merged;
  int err;

  if (left < 0 || right < 0)
    return tnk__hf_malformed(hf, "model.merges: it is not in the vocabulary");
  if (hf->tok->by_chars &&
      (tnk__fallback_is_byte(hf->text.data + half[0].at, half[0].n) ||
       tnk__fallback_is_byte(hf->text.data + half[1].at, half[1].n)))
    return tnk__hf_unsupported(hf, "model.merges", "of tokens of bytes");
  /* No text contains literal tokens, so this merge never happens. */
  if (half[0].flags != 0 || half[1].flags != 0)
    return TNK_OK;
  merged =
      find_merged(hf->tok, hf->text.data + half->at, half[0].n + half[1].n,
                  bpe->n_merges == 0 ? -1 : bpe->merged[bpe->n_merges - 1]);
  if (merged < 0)
    return tnk__hf_malformed(hf, "model.merges: the result is not in the "
                                 "vocabulary");
  err = tnk__bpe_add(&hf->tok->bpe, left, right, merged);
  if (err == TNK_ENOMEM)
    return tnk__fault_memory(hf->error);
  return err < 0 ? tnk__hf_malformed(hf, "model.merges: too many") : TNK_OK;
}

static int add_group(tnk__hf_t *hf, group_t *group) {
  int err = TNK_OK;

  for (int step = 1; step <= 2; step++)
    for (size_t i = 0; i < group->n; i++)
      tnk__vocab_soon(&hf->tok->vocab, group->halves[i].hash, step);
  for (size_t i = 0; i < group->n && err == TNK_OK; i += 2)
    err = add_merge(hf, &group->halves[i]);
  group->n = 0;
  hf->text.len = 0;
  return err;
}

/* Resolve escapes; *p points into `room` or the file. */
static int plain(tnk__hf_t *hf, const tnk__jread_text_t *text, tnk__buf_t *room,
                 const uint8_t **p, size_t *n) {
  uint8_t *out;

  *p = text->p;
  *n = text->n;
  if (!text->escaped)
    return TNK_OK;
  out = tnk__buf_reserve(room, text->n);
  if (out == NULL)
    return tnk__fault_memory(hf->error);
  if (tnk__jread_unescape(text, out, n) < 0)
    return tnk__hf_malformed(hf, "model.merges");
  *p = out;
  return TNK_OK;
}

/* ["a", "b"] */
static int read_pair(tnk__hf_t *hf, group_t *group) {
  size_t n, count = 0;
  int err = TNK_OK;

  hf->json.p++;
  for (int i = 0; i < 2 && err == TNK_OK; i++) {
    tnk__jread_text_t text;
    const uint8_t *p;

    if (tnk__jread_next_item(&hf->json, &count) <= 0 ||
        tnk__jread_text(&hf->json, &text) < 0)
      return tnk__hf_malformed(hf, "model.merges");
    err = plain(hf, &text, &group->room, &p, &n);
    if (err == TNK_OK)
      err = add_half(hf, group, p, n);
  }
  if (err == TNK_OK && tnk__jread_next_item(&hf->json, &count) != 0)
    return tnk__hf_malformed(hf, "model.merges");
  return err;
}

/* "a b" */
static int read_spaced(tnk__hf_t *hf, group_t *group) {
  static const char version[] = "#version";
  tnk__jread_text_t text;
  const uint8_t *p, *space;
  size_t n, n_left;
  int err;

  if (tnk__jread_text(&hf->json, &text) < 0)
    return tnk__hf_malformed(hf, "model.merges");
  err = plain(hf, &text, &group->room, &p, &n);
  if (err < 0)
    return err;
  /* The first line of a merges.txt. The reference ignores all such lines. */
  if (n >= strlen(version) && memcmp(p, version, strlen(version)) == 0)
    return TNK_OK;
  space = memchr(p, ' ', n);
  n_left = space == NULL ? 0 : (size_t)(space - p);
  if (space == NULL || memchr(space + 1, ' ', n - n_left - 1) != NULL)
    return tnk__hf_malformed(hf, "model.merges");
  err = add_half(hf, group, p, n_left);
  return err < 0 ? err : add_half(hf, group, space + 1, n - n_left - 1);
}

static int read_merges(tnk__hf_t *hf) {
  group_t group;
  size_t n = 0;
  int more, err = TNK_OK;

  if (tnk__jread_take(&hf->json, '[') < 0)
    return tnk__hf_malformed(hf, "model.merges");
  group.n = 0;
  tnk__buf_init(&group.room, &hf->tok->alloc, SIZE_MAX / 2);
  tnk__buf_clear(&hf->text);
  while (err == TNK_OK && (more = tnk__jread_next_item(&hf->json, &n)) != 0) {
    if (more < 0)
      err = tnk__hf_malformed(hf, "model.merges");
    else if (tnk__jread_peek(&hf->json) == '[')
      err = read_pair(hf, &group);
    else
      err = read_spaced(hf, &group);
    if (err == TNK_OK && group.n == 2 * GROUP)
      err = add_group(hf, &group);
  }
  if (err == TNK_OK)
    err = add_group(hf, &group);
  tnk__buf_deinit(&group.room);
  return err;
}

/* Options that are not supported. Options for unknown characters have no
 * effect, as every byte has a token; see finish(). */
static const char *refused(const tnk__jread_text_t *key) {
  static const char *const names[] = {"model.dropout",
                                      "model.continuing_subword_prefix",
                                      "model.end_of_word_suffix"};

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (tnk__jread_is(key, names[i] + strlen("model.")))
      return names[i];
  return NULL;
}

typedef struct {
  const uint8_t *merges; /* set if they come before the vocabulary */
  int has_vocab;
  int has_merges;
  int byte_fallback;
} model_t;

static int member_merges(tnk__hf_t *hf, model_t *model) {
  if (model->has_merges)
    return tnk__hf_malformed(hf, "model.merges: they are there twice");
  model->has_merges = 1;
  if (model->has_vocab)
    return read_merges(hf);
  (void)tnk__jread_peek(&hf->json);
  model->merges = hf->json.p;
  return tnk__jread_skip(&hf->json) < 0 ? tnk__hf_malformed(hf, "model.merges")
                                        : TNK_OK;
}

static int member_type(tnk__hf_t *hf) {
  int err = tnk__hf_word(hf, "model.type");

  if (err == TNK_OK && strcmp((char *)hf->text.data, "BPE") != 0)
    err = tnk__hf_unsupported(hf, "model.type", (char *)hf->text.data);
  return err;
}

static int model_member(tnk__hf_t *hf, const tnk__jread_text_t *key,
                        model_t *model) {
  tnk__jread_t *json = &hf->json;
  const char *place = refused(key);

  if (place != NULL)
    return tnk__hf_off(hf) ? TNK_OK
                           : tnk__hf_unsupported(hf, place, "switched on");
  if (tnk__jread_is(key, "type"))
    return member_type(hf);
  if (tnk__jread_is(key, "ignore_merges")) {
    if (tnk__jread_null(json))
      return TNK_OK;
    return tnk__jread_bool(json, &hf->tok->ignore_merges) < 0
               ? tnk__hf_malformed(hf, "model.ignore_merges")
               : TNK_OK;
  }
  if (tnk__jread_is(key, "byte_fallback") && hf->tok->by_chars)
    return tnk__jread_bool(json, &model->byte_fallback) < 0
               ? tnk__hf_malformed(hf, "model.byte_fallback")
               : TNK_OK;
  if (tnk__jread_is(key, "vocab")) {
    if (model->has_vocab)
      return tnk__hf_malformed(hf, "model.vocab: it is there twice");
    model->has_vocab = 1;
    return read_vocab(hf);
  }
  if (tnk__jread_is(key, "merges"))
    return member_merges(hf, model);
  return tnk__jread_skip(json) < 0 ? tnk__hf_malformed(hf, "model") : TNK_OK;
}

static int lacks_byte(tnk__hf_t *hf, unsigned byte) {
  return tnk__fault(hf->error, TNK_EUNSUPPORTED, 0,
                    "tokenizer.json: model.vocab without a token for byte "
                    "0x%02X is not implemented",
                    byte);
}

/* With a token for each byte, no character is unknown. */
static int finish_chars(tnk__hf_t *hf, const model_t *model) {
  unsigned byte;
  int err;

  if (!model->byte_fallback)
    return tnk__hf_unsupported(hf, "model", "without byte_fallback");
  if (hf->tok->ignore_merges)
    return tnk__hf_unsupported(hf, "model.ignore_merges", "with byte_fallback");
  err = tnk__fallback_prepare(hf->tok, &byte);
  if (err == TNK_EUNSUPPORTED)
    return lacks_byte(hf, byte);
  return err < 0 ? tnk__fault_memory(hf->error) : TNK_OK;
}

static int finish(tnk__hf_t *hf) {
  tnk_tokenizer_t *tok = hf->tok;

  for (unsigned i = 0; i < 256; i++) {
    uint8_t byte = (uint8_t)i;

    tok->bpe.byte_id[i] = tnk__vocab_find(&tok->vocab, &byte, 1, 0);
    if (tok->bpe.byte_id[i] < 0)
      return lacks_byte(hf, i);
  }
  if (tnk__bpe_finish(&tok->bpe) < 0 ||
      tnk__chars_prepare(&tok->bpe, &tok->vocab) < 0)
    return tnk__fault_memory(hf->error);
  return TNK_OK;
}

int tnk__hf_model(tnk__hf_t *hf) {
  model_t model = {NULL, 0, 0, 0};
  tnk__jread_text_t key;
  int more, err;
  size_t n = 0;

  if (tnk__jread_take(&hf->json, '{') < 0)
    return tnk__hf_malformed(hf, "model");
  while ((more = tnk__jread_next_key(&hf->json, &n, &key)) > 0) {
    err = model_member(hf, &key, &model);
    if (err < 0)
      return err;
  }
  if (more < 0)
    return tnk__hf_malformed(hf, "model");
  if (!model.has_vocab || !model.has_merges)
    return tnk__hf_malformed(hf, "model: no vocab or no merges");
  if (model.merges != NULL) {
    const uint8_t *behind = hf->json.p;

    hf->json.p = model.merges;
    err = read_merges(hf);
    if (err < 0)
      return err;
    hf->json.p = behind;
  }
  return hf->tok->by_chars ? finish_chars(hf, &model) : finish(hf);
}

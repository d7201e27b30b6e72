/* SPDX-License-Identifier: MIT */
#include "tokenizers/format/hf.h"

#include <string.h>

/*
 * added_tokens. The reference ignores the ids in this list. A token that the
 * model has keeps the model's id, and any other gets the next free id. A file
 * with other ids is rejected, as the reference would number its tokens
 * differently.
 */
typedef struct {
  uint32_t id;
  int has_id;
  int has_content; /* the content is in hf->text */
  unsigned n_flags;
  int special;
  int normalized;
  int lstrip;
  int rstrip;
  int single_word;
} entry_t;

static int malformed(tnk__hf_t *hf) {
  return tnk__hf_malformed(hf, "added_tokens");
}

static int read_entry(tnk__hf_t *hf, entry_t *entry) {
  tnk__jread_text_t key;
  size_t n = 0;
  int more, err = TNK_OK;

  if (tnk__jread_take(&hf->json, '{') < 0)
    return malformed(hf);
  while (err == TNK_OK &&
         (more = tnk__jread_next_key(&hf->json, &n, &key)) != 0) {
    int *flag = NULL;

    if (more < 0)
      return malformed(hf);
    if (tnk__jread_is(&key, "special"))
      flag = &entry->special;
    else if (tnk__jread_is(&key, "normalized"))
      flag = &entry->normalized;
    else if (tnk__jread_is(&key, "lstrip"))
      flag = &entry->lstrip;
    else if (tnk__jread_is(&key, "rstrip"))
      flag = &entry->rstrip;
    else if (tnk__jread_is(&key, "single_word"))
      flag = &entry->single_word;
    if (flag != NULL) {
      entry->n_flags++;
      err = tnk__jread_bool(&hf->json, flag) < 0 ? malformed(hf) : TNK_OK;
    } else if (tnk__jread_is(&key, "id")) {
      entry->has_id = 1;
      err = tnk__jread_uint(&hf->json, &entry->id) < 0 ? malformed(hf) : TNK_OK;
    } else if (tnk__jread_is(&key, "content")) {
      entry->has_content = 1;
      err = tnk__hf_name(hf, "added_tokens");
    } else if (tnk__jread_skip(&hf->json) < 0) {
      err = malformed(hf);
    }
  }
  return err;
}

/* The state of numbering added tokens. */
typedef struct {
  uint32_t n_model; /* number of tokens of the model */
  uint32_t next;
  int unsure; /* a token of the model has an id of n_model or more; the next id
                 then depends on the version of the reference */
} numbers_t;

/* Check that the id equals the id that the reference assigns. `known` is the id
 * in the model, or -1. */
static int check_id(tnk__hf_t *hf, numbers_t *numbers, uint32_t id,
                    int32_t known) {
  uint32_t right = known >= 0 ? (uint32_t)known : numbers->next;

  if (id != right)
    return tnk__fault(hf->error, TNK_EUNSUPPORTED,
                      (uint64_t)(hf->json.p - hf->json.base),
                      "tokenizer.json: added_tokens has id %u for a token "
                      "that the reference numbers %u",
                      (unsigned)id, (unsigned)right);
  if (known < 0 && numbers->unsure)
    return tnk__hf_unsupported(hf, "added_tokens",
                               "behind a model whose ids have gaps");
  if (known >= 0 && right >= numbers->n_model)
    numbers->unsure = 1;
  if (id >= numbers->next)
    numbers->next = id + 1;
  return TNK_OK;
}

/* Check the id of a token and add it. As in the model, a name outside the byte
 * alphabet is a literal token. */
static int put_token(tnk__hf_t *hf, const entry_t *entry, numbers_t *numbers) {
  tnk__vocab_t *vocab = &hf->tok->vocab;
  const uint8_t *name = hf->text.data;
  size_t n = hf->text.len;
  uint8_t *room = tnk__vocab_reserve(vocab, n + 1);
  unsigned literal;
  int32_t known;
  int err;

  if (room == NULL)
    return tnk__fault_memory(hf->error);
  n = tnk__hf_stored(hf, name, n, room, &literal);
  known = tnk__vocab_find(vocab, room, n, literal);
  err = check_id(hf, numbers, entry->id, known);
  if (err < 0)
    return err;
  if (known < 0) {
    err = tnk__vocab_put(vocab, entry->id, n, literal, 0);
    if (err == TNK_ENOMEM)
      return tnk__fault_memory(hf->error);
    if (err < 0)
      return malformed(hf);
  }
  vocab->tokens[entry->id].packed |=
      TNK__TOKEN_ADDED | (entry->special ? TNK__TOKEN_SPECIAL : 0);
  return TNK_OK;
}

/* Add the token to the set that it is searched in. */
static int put_search(tnk__hf_t *hf, const entry_t *entry) {
  tnk_tokenizer_t *tok = hf->tok;
  unsigned flags = (entry->special ? (unsigned)TNK__ADDED_SPECIAL : 0) |
                   (entry->lstrip ? (unsigned)TNK__ADDED_LSTRIP : 0) |
                   (entry->rstrip ? (unsigned)TNK__ADDED_RSTRIP : 0) |
                   (entry->single_word ? (unsigned)TNK__ADDED_SINGLE_WORD : 0);
  int err = tnk__added_put(entry->normalized ? &tok->normalized : &tok->raw,
                           hf->text.data, hf->text.len, entry->id, flags);

  return err < 0 ? tnk__fault_memory(hf->error) : TNK_OK;
}

/* The number of tokens of the model. Added tokens are numbered from there. */
static uint32_t count_tokens(const tnk__vocab_t *vocab) {
  uint32_t n = 0;

  for (uint32_t id = 0; id < vocab->n; id++)
    n += (unsigned)tnk__vocab_has(vocab, id);
  return n;
}

static int put_entry(tnk__hf_t *hf, const entry_t *entry, numbers_t *numbers) {
  int same = entry->normalized
                 ? tnk__normal_keeps(&hf->tok->normal, hf->text.data,
                                     hf->text.len, &hf->tok->alloc)
                 : 1,
      err;

  if (same < 0)
    return tnk__fault_memory(hf->error);
  /* The reference searches for the normalized text. For decoding and skipping
   * it uses sometimes the one form and sometimes the other. */
  if (!same)
    return tnk__hf_unsupported(hf, "added_tokens",
                               "with a content that the normalizer changes");
  err = put_token(hf, entry, numbers);
  return err < 0 ? err : put_search(hf, entry);
}

int tnk__hf_added(tnk__hf_t *hf) {
  uint32_t n_model = count_tokens(&hf->tok->vocab);
  numbers_t numbers = {n_model, n_model, 0};
  size_t n = 0;
  int more, err;

  if (tnk__jread_take(&hf->json, '[') < 0)
    return malformed(hf);
  while ((more = tnk__jread_next_item(&hf->json, &n)) > 0) {
    entry_t entry = {0};

    err = read_entry(hf, &entry);
    if (err < 0)
      return err;
    if (!entry.has_id || !entry.has_content || entry.n_flags != 5)
      return malformed(hf);
    err = hf->text.len == 0 ? TNK_OK : put_entry(hf, &entry, &numbers);
    if (err < 0)
      return err;
  }
  return more < 0 ? malformed(hf) : TNK_OK;
}

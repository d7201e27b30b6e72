#include "tokenizers/hf.h"

#include <string.h>

#include "tokenizers/nfc.h"

/*
 * added_tokens. The reference does not believe the ids of this list: a token
 * that the model has keeps the model's id, another gets the next one. A file
 * that says otherwise would be numbered otherwise by the reference, so it is
 * refused.
 */
typedef struct {
  uint32_t id;
  int has_id;
  int has_content; /* it is in hf->text */
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

/* Make sure of the token's id. A name that is no sequence of the byte alphabet
 * stands for itself, as in the model. */
static int put_token(tnk__hf_t *hf, const entry_t *entry, uint32_t next) {
  tnk__vocab_t *vocab = &hf->tok->vocab;
  const uint8_t *name = hf->text.data;
  size_t n = hf->text.len;
  uint8_t *room = tnk__vocab_reserve(vocab, n + 1);
  int64_t n_bytes;
  unsigned literal = 0;
  int32_t known;
  int err;

  if (room == NULL)
    return tnk__fault_memory(hf->error);
  n_bytes = tnk__byte_level(name, n, room);
  if (n_bytes < 0) {
    literal = TNK__TOKEN_LITERAL;
    memcpy(room, name, n);
    n_bytes = (int64_t)n;
  }
  known = tnk__vocab_find(vocab, room, (size_t)n_bytes, literal);
  if (entry->id != (known >= 0 ? (uint32_t)known : next))
    return tnk__fault(
        hf->error, TNK_EUNSUPPORTED, (uint64_t)(hf->json.p - hf->json.base),
        "tokenizer.json: added_tokens has id %u for a token "
        "that the reference numbers %u",
        (unsigned)entry->id, known >= 0 ? (unsigned)known : (unsigned)next);
  if (known < 0) {
    err = tnk__vocab_put(vocab, entry->id, (size_t)n_bytes, literal, 0);
    if (err == TNK_ENOMEM)
      return tnk__fault_memory(hf->error);
    if (err < 0)
      return malformed(hf);
  }
  vocab->tokens[entry->id].packed |=
      TNK__TOKEN_ADDED | (entry->special ? TNK__TOKEN_SPECIAL : 0);
  return TNK_OK;
}

/* Where it is looked for. */
static int put_search(tnk__hf_t *hf, const entry_t *entry) {
  tnk_tokenizer_t *tok = hf->tok;
  unsigned flags = (entry->special ? (unsigned)TNK__ADDED_SPECIAL : 0) |
                   (entry->lstrip ? (unsigned)TNK__ADDED_LSTRIP : 0) |
                   (entry->rstrip ? (unsigned)TNK__ADDED_RSTRIP : 0);
  tnk__buf_t normal, cps;
  int err;

  if (!entry->normalized || !tok->nfc)
    return tnk__added_put(entry->normalized ? &tok->normalized : &tok->raw,
                          hf->text.data, hf->text.len, entry->id, flags);
  tnk__buf_init(&normal, &tok->alloc, SIZE_MAX / 2);
  tnk__buf_init(&cps, &tok->alloc, SIZE_MAX / 2);
  err = tnk__nfc(hf->text.data, hf->text.len, &normal, &cps, NULL);
  if (err == TNK_OK)
    err = tnk__added_put(&tok->normalized, normal.data, normal.len, entry->id,
                         flags);
  tnk__buf_deinit(&normal);
  tnk__buf_deinit(&cps);
  return err;
}

/* Tokens of the model: where the numbers of added ones begin. */
static uint32_t count_tokens(const tnk__vocab_t *vocab) {
  uint32_t n = 0;

  for (uint32_t id = 0; id < vocab->n; id++)
    n += (unsigned)tnk__vocab_has(vocab, id);
  return n;
}

int tnk__hf_added(tnk__hf_t *hf) {
  uint32_t next = count_tokens(&hf->tok->vocab);
  size_t n = 0;
  int more, err;

  if (tnk__jread_take(&hf->json, '[') < 0)
    return malformed(hf);
  while ((more = tnk__jread_next_item(&hf->json, &n)) > 0) {
    entry_t entry = {0};

    err = read_entry(hf, &entry);
    if (err < 0)
      return err;
    if (!entry.has_id || !entry.has_content)
      return malformed(hf);
    if (hf->text.len == 0)
      continue;
    if (entry.single_word)
      return tnk__hf_unsupported(hf, "added_tokens", "with single_word");
    err = put_token(hf, &entry, next);
    if (err < 0)
      return err;
    if (entry.id >= next)
      next = entry.id + 1;
    if (put_search(hf, &entry) < 0)
      return tnk__fault_memory(hf->error);
  }
  return more < 0 ? malformed(hf) : TNK_OK;
}

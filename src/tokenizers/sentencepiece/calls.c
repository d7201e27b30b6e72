/* SPDX-License-Identifier: MIT */
#include "tokenizers/sentencepiece/shim.h"

#include "tnk/error.h"

/* The table of functions to which a model points first. */
static const tnk__sp_calls_t *calls_of(const tnk__sp_t *sp) {
  return *(const tnk__sp_calls_t *const *)(const void *)sp;
}

int tnk__sp_new(tnk__sp_t **out, const void *data, size_t n, char *why,
                size_t why_size) {
  const tnk__sp_calls_t *calls = tnk__sp_open(why, why_size);

  *out = NULL;
  return calls == NULL ? TNK_EUNSUPPORTED
                       : calls->create(out, data, n, why, why_size);
}

void tnk__sp_free(tnk__sp_t *sp) {
  calls_of(sp)->destroy(sp);
}

int32_t tnk__sp_size(const tnk__sp_t *sp) {
  return calls_of(sp)->size(sp);
}

int32_t tnk__sp_bos(const tnk__sp_t *sp) {
  return calls_of(sp)->bos(sp);
}

int32_t tnk__sp_eos(const tnk__sp_t *sp) {
  return calls_of(sp)->eos(sp);
}

const char *tnk__sp_piece(const tnk__sp_t *sp, int32_t id, size_t *n,
                          tnk__sp_kind_t *kind) {
  return calls_of(sp)->piece(sp, id, n, kind);
}

int tnk__sp_encode(const tnk__sp_t *sp, const char *text, size_t n,
                   int with_places,
                   int (*put)(void *user, int32_t id, size_t begin, size_t end),
                   void *user) {
  return calls_of(sp)->encode(sp, text, n, with_places, put, user);
}

int tnk__sp_decode(const tnk__sp_t *sp, const int32_t *ids, size_t n,
                   int (*put)(void *user, const char *text, size_t n),
                   void *user) {
  return calls_of(sp)->decode(sp, ids, n, put, user);
}

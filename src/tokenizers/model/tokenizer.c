/* SPDX-License-Identifier: MIT */
#include "tokenizers/model/tokenizer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"

tnk_tokenizer_t *tnk__tokenizer_new(const tnk_allocator_t *alloc) {
  tnk_tokenizer_t *tok = tnk__calloc(alloc, 1, sizeof(*tok));

  if (tok == NULL)
    return NULL;
  tok->alloc = *alloc;
  atomic_init(&tok->refs, 1);
  tnk__vocab_init(&tok->vocab, &tok->alloc);
  tnk__bpe_init(&tok->bpe, &tok->alloc);
  tnk__added_init(&tok->raw, &tok->alloc);
  tnk__added_init(&tok->normalized, &tok->alloc);
  tok->anchor = tok->bos = tok->eos = -1;
  return tok;
}

tnk_tokenizer_t *tnk_tokenizer_ref(tnk_tokenizer_t *tok) {
  if (tok != NULL)
    atomic_fetch_add_explicit(&tok->refs, 1, memory_order_relaxed);
  return tok;
}

void tnk_tokenizer_unref(tnk_tokenizer_t *tok) {
  tnk_allocator_t alloc;

  if (tok == NULL ||
      atomic_fetch_sub_explicit(&tok->refs, 1, memory_order_acq_rel) != 1)
    return;
  alloc = tok->alloc;
  if (tok->engine != NULL && tok->engine->unload != NULL)
    tok->engine->unload(tok);
  tnk__vocab_deinit(&tok->vocab);
  tnk__bpe_deinit(&tok->bpe);
  tnk__added_deinit(&tok->raw);
  tnk__added_deinit(&tok->normalized);
  tnk__free(&alloc, tok);
}

const char *tnk_tokenizer_token(const tnk_tokenizer_t *tok, int32_t id,
                                size_t *n, unsigned *flags) {
  unsigned packed;

  if (tok == NULL || n == NULL || !tnk__vocab_has(&tok->vocab, id)) {
    if (n != NULL)
      *n = 0;
    return NULL;
  }
  packed = tok->vocab.tokens[id].packed;
  if (flags != NULL)
    *flags = (packed & TNK__TOKEN_SPECIAL ? (unsigned)TNK_TOKEN_SPECIAL : 0) |
             (packed & TNK__TOKEN_ADDED ? (unsigned)TNK_TOKEN_ADDED : 0);
  return (const char *)tnk__vocab_bytes(&tok->vocab, (uint32_t)id, n);
}

int32_t tnk_tokenizer_id(const tnk_tokenizer_t *tok, const char *bytes,
                         size_t n) {
  const uint8_t *p = (const uint8_t *)bytes;
  int32_t id;

  if (tok == NULL || bytes == NULL || n == 0)
    return -1;
  id = tnk__added_find(&tok->raw, p, n);
  if (id < 0)
    id = tnk__added_find(&tok->normalized, p, n);
  if (id < 0)
    id = tnk__vocab_find(&tok->vocab, p, n, 0);
  return id >= 0 ? id : tnk__vocab_find(&tok->vocab, p, n, TNK__TOKEN_LITERAL);
}

size_t tnk_tokenizer_vocab_size(const tnk_tokenizer_t *tok) {
  return tok == NULL ? 0 : tok->vocab.n;
}

int32_t tnk_tokenizer_bos(const tnk_tokenizer_t *tok) {
  return tok == NULL ? -1 : tok->bos;
}

int32_t tnk_tokenizer_eos(const tnk_tokenizer_t *tok) {
  return tok == NULL ? -1 : tok->eos;
}

/* ---- Errors ---- */

int tnk__fault(tnk_tokenizer_error_t *error, int code, uint64_t offset,
               const char *format, ...) {
  va_list args;

  if (error == NULL)
    return code;
  error->code = code;
  error->offset = offset;
  va_start(args, format);
  (void)vsnprintf(error->text, sizeof(error->text), format, args);
  va_end(args);
  /* The text may quote the file. Remove control characters, as they could
   * control a terminal. */
  for (char *p = error->text; *p != '\0'; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      *p = ' ';
  return code;
}

int tnk__fault_memory(tnk_tokenizer_error_t *error) {
  return tnk__fault(error, TNK_ENOMEM, 0, "out of memory");
}

void tnk__fault_clear(tnk_tokenizer_error_t *error) {
  if (error != NULL)
    memset(error, 0, sizeof(*error));
}

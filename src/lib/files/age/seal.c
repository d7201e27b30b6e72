#include <string.h>

#include "lib/base/alloc.h"
#include "lib/files/age/age.h"
#include "lib/files/age/chunks.h"
#include "tnk/error.h"

int tnk__age_seal_init(tnk__age_seal_t *seal, const tnk_allocator_t *alloc,
                       const uint8_t (*recipients)[TNK__AGE_KEY], size_t n,
                       tnk__age_random_t random, void *user, tnk__buf_t *out) {
  uint8_t key[TNK__AGE_FILE_KEY], salt[TNK__AGE_FILE_NONCE];
  int err = n > 0 && n <= TNK__AGE_MAX_STANZAS ? TNK_OK : TNK_EINVAL;

  memset(seal, 0, sizeof(*seal));
  seal->alloc = alloc;
  if (err == TNK_OK && (random(user, key, sizeof(key)) != 0 ||
                        random(user, salt, sizeof(salt)) != 0))
    err = TNK_ESYSTEM;
  if (err == TNK_OK)
    err = tnk__age_head_write(out, key, recipients, n, random, user);
  if (err == TNK_OK)
    err = tnk__buf_append(out, salt, sizeof(salt));
  if (err == TNK_OK)
    err = tnk__age_chunks_init(&seal->chunks, alloc, key, salt);
  tnk__wipe(key, sizeof(key));
  seal->err = err;
  return err;
}

static int encrypt(tnk__age_seal_t *seal, tnk__buf_t *out, int is_last) {
  tnk__age_chunks_t *chunks = &seal->chunks;
  uint8_t *room = tnk__buf_reserve(out, chunks->n + TNK__AGE_TAG);
  int err;

  if (room == NULL)
    return out->err;
  chunks->nonce[TNK__AGE_NONCE - 1] = (uint8_t)is_last;
  err = tnk__age_encrypt(room, chunks->key, chunks->nonce, chunks->data,
                         chunks->n);
  if (err == TNK_OK)
    out->len += chunks->n + TNK__AGE_TAG;
  tnk__age_chunks_next(chunks);
  return err;
}

int tnk__age_seal_feed(tnk__age_seal_t *seal, tnk__buf_t *out, const void *data,
                       size_t n) {
  const uint8_t *at = data;

  /* A full chunk is kept until more data shows that it is not the last one. */
  while (seal->err == TNK_OK && n > 0) {
    size_t taken;
    if (seal->chunks.n == TNK__AGE_CHUNK)
      seal->err = encrypt(seal, out, 0);
    if (seal->err != TNK_OK)
      break;
    taken = tnk__age_chunks_fill(&seal->chunks, at, n, TNK__AGE_CHUNK);
    at += taken;
    n -= taken;
  }
  return seal->err;
}

int tnk__age_seal_finish(tnk__age_seal_t *seal, tnk__buf_t *out) {
  if (seal->err == TNK_OK)
    seal->err = encrypt(seal, out, 1);
  return seal->err;
}

void tnk__age_seal_deinit(tnk__age_seal_t *seal) {
  tnk__age_chunks_deinit(&seal->chunks, seal->alloc);
}

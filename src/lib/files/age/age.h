/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_AGE_AGE_H
#define TNK_LIB_FILES_AGE_AGE_H

#include "lib/files/age/head.h"

/*
 * Writes and reads files encrypted with age (age-encryption.org/v1) for X25519
 * recipients, piece by piece. No byte of a chunk is returned before the chunk
 * is authentic. Only a file that was read to its end is known to be complete.
 * The functions may run on any thread, one thread at a time.
 */
#define TNK__AGE_CHUNK ((size_t)64 * 1024)
#define TNK__AGE_FILE_NONCE 16

/* The chunks of a file, with the counter that numbers them. */
typedef struct {
  uint8_t key[TNK__AGE_KEY];
  uint8_t nonce[TNK__AGE_NONCE];
  uint8_t *data; /* one chunk with its tag */
  size_t n;      /* valid bytes */
} tnk__age_chunks_t;

/* Reader. States: the header, the nonce, the chunks; then failed or
 * finished. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__age_head_t head;
  uint8_t salt[TNK__AGE_FILE_NONCE];
  size_t n_salt;
  tnk__age_chunks_t chunks;
  int err;
  const char *why; /* the error, as a sentence about "the file" */
} tnk__age_open_t;

/* Writer. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__age_chunks_t chunks;
  int err;
} tnk__age_seal_t;

/* Initialize a reader. Its errors are reported with the first piece. */
void tnk__age_open_init(tnk__age_open_t *open, const tnk_allocator_t *alloc,
                        tnk__age_random_t random, void *user);
/* Add a key that may decrypt the file, up to TNK__AGE_MAX_IDENTITIES. Call it
 * before the first piece. Returns TNK_OK, or TNK_EINVAL for too many keys. */
int tnk__age_open_add(tnk__age_open_t *open,
                      const uint8_t identity[TNK__AGE_KEY]);
/* Decrypt the next piece and append the result to `out`. Returns TNK_OK,
 * TNK_EINVAL (no key decrypts it), TNK_ECORRUPT (changed or truncated),
 * TNK_EPROTO (not an age file), TNK_EUNSUPPORTED, TNK_ETOOBIG, TNK_ENOMEM or
 * TNK_EINTERNAL. The first error is kept. */
int tnk__age_open_feed(tnk__age_open_t *open, tnk__buf_t *out, const void *data,
                       size_t n);
/* End of the input: append the last chunk. Returns as above. */
int tnk__age_open_finish(tnk__age_open_t *open, tnk__buf_t *out);
/* Free the reader and wipe keys and strings; allowed in every state. */
void tnk__age_open_deinit(tnk__age_open_t *open);

/* Initialize a writer and append the header to `out`. Returns TNK_OK,
 * TNK_EINVAL (no recipient, or more than TNK__AGE_MAX_STANZAS), TNK_EPROTO (a
 * recipient without a possible key), TNK_ESYSTEM (no random bytes), TNK_ENOMEM
 * or TNK_ETOOBIG. The first error is kept. */
int tnk__age_seal_init(tnk__age_seal_t *seal, const tnk_allocator_t *alloc,
                       const uint8_t (*recipients)[TNK__AGE_KEY], size_t n,
                       tnk__age_random_t random, void *user, tnk__buf_t *out);
int tnk__age_seal_feed(tnk__age_seal_t *seal, tnk__buf_t *out, const void *data,
                       size_t n);
int tnk__age_seal_finish(tnk__age_seal_t *seal, tnk__buf_t *out);
void tnk__age_seal_deinit(tnk__age_seal_t *seal);

#endif

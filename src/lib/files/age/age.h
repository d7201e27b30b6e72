#ifndef TNK_LIB_FILES_AGE_AGE_H
#define TNK_LIB_FILES_AGE_AGE_H

#include "lib/files/age/head.h"

/*
 * Files encrypted with age (age-encryption.org/v1) for recipients of X25519,
 * written and read in pieces. Nothing of a chunk is given out before it is
 * known to be authentic; still, only a file that was opened to its end is known
 * to be whole. Any thread will do, one at a time.
 */
#define TNK__AGE_CHUNK ((size_t)64 * 1024)
#define TNK__AGE_FILE_NONCE 16

/* The chunks of a file, to the end of which a counter counts. */
typedef struct {
  uint8_t key[TNK__AGE_KEY];
  uint8_t nonce[TNK__AGE_NONCE];
  uint8_t *data; /* one chunk with its tag */
  size_t n;      /* bytes that have come of it */
} tnk__age_chunks_t;

/* Reading: the header, the nonce behind it, chunks; then failed or finished. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__age_head_t head;
  uint8_t salt[TNK__AGE_FILE_NONCE];
  size_t n_salt;
  tnk__age_chunks_t chunks;
  int err;
  const char *why; /* what went wrong, as a sentence about "the file" */
} tnk__age_open_t;

/* Writing. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__age_chunks_t chunks;
  int err;
} tnk__age_seal_t;

/* Begin to read. Failures of it come with the first piece. */
void tnk__age_open_init(tnk__age_open_t *open, const tnk_allocator_t *alloc,
                        tnk__age_random_t random, void *user);
/* Add a key that may open the file, up to TNK__AGE_MAX_IDENTITIES; before the
 * first piece. TNK_OK or TNK_EINVAL: these are too many. */
int tnk__age_open_add(tnk__age_open_t *open,
                      const uint8_t identity[TNK__AGE_KEY]);
/* Append to `out` what the next piece gives. TNK_OK; TNK_EINVAL (no key opens
 * it), TNK_ECORRUPT (it was changed or cut), TNK_EPROTO (it is none),
 * TNK_EUNSUPPORTED, TNK_ETOOBIG, TNK_ENOMEM, TNK_EINTERNAL; the first stays. */
int tnk__age_open_feed(tnk__age_open_t *open, tnk__buf_t *out, const void *data,
                       size_t n);
/* The input is over: append the last chunk. Returns as above. */
int tnk__age_open_finish(tnk__age_open_t *open, tnk__buf_t *out);
/* Free it and wipe keys and texts; in every state. */
void tnk__age_open_deinit(tnk__age_open_t *open);

/* Begin to write: append the header to `out`. TNK_OK; TNK_EINVAL (no recipient,
 * or more than TNK__AGE_MAX_STANZAS); TNK_EPROTO (one that no key belongs to);
 * TNK_ESYSTEM (no random bytes), TNK_ENOMEM, TNK_ETOOBIG. The first failure
 * stays. */
int tnk__age_seal_init(tnk__age_seal_t *seal, const tnk_allocator_t *alloc,
                       const uint8_t (*recipients)[TNK__AGE_KEY], size_t n,
                       tnk__age_random_t random, void *user, tnk__buf_t *out);
int tnk__age_seal_feed(tnk__age_seal_t *seal, tnk__buf_t *out, const void *data,
                       size_t n);
int tnk__age_seal_finish(tnk__age_seal_t *seal, tnk__buf_t *out);
void tnk__age_seal_deinit(tnk__age_seal_t *seal);

#endif

#ifndef TNK_LIB_FILES_AGE_CHUNKS_H
#define TNK_LIB_FILES_AGE_CHUNKS_H

#include "lib/files/age/age.h"

/* Derive the key of the chunks and allocate the buffer of one chunk. TNK_OK,
 * TNK_ENOMEM, TNK_EINTERNAL. */
int tnk__age_chunks_init(tnk__age_chunks_t *chunks,
                         const tnk_allocator_t *alloc,
                         const uint8_t file_key[TNK__AGE_FILE_KEY],
                         const uint8_t salt[TNK__AGE_FILE_NONCE]);
void tnk__age_chunks_deinit(tnk__age_chunks_t *chunks,
                            const tnk_allocator_t *alloc);
/* Copy bytes of a piece into the chunk until it has `max` bytes. Returns the
 * number of copied bytes. */
size_t tnk__age_chunks_fill(tnk__age_chunks_t *chunks, const uint8_t *data,
                            size_t n, size_t max);
/* Increment the counter for the next chunk. */
void tnk__age_chunks_next(tnk__age_chunks_t *chunks);
/* Whether this is the first chunk. */
int tnk__age_chunks_is_first(const tnk__age_chunks_t *chunks);

#endif

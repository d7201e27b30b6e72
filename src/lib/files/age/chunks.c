#include "lib/files/age/chunks.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

int tnk__age_chunks_init(tnk__age_chunks_t *chunks,
                         const tnk_allocator_t *alloc,
                         const uint8_t file_key[TNK__AGE_FILE_KEY],
                         const uint8_t salt[TNK__AGE_FILE_NONCE]) {
  memset(chunks, 0, sizeof(*chunks));
  chunks->data = tnk__malloc(alloc, TNK__AGE_CHUNK + TNK__AGE_TAG);
  if (chunks->data == NULL)
    return TNK_ENOMEM;
  return tnk__age_derive(chunks->key, file_key, TNK__AGE_FILE_KEY, salt,
                         TNK__AGE_FILE_NONCE, "payload");
}

void tnk__age_chunks_deinit(tnk__age_chunks_t *chunks,
                            const tnk_allocator_t *alloc) {
  if (chunks->data != NULL)
    tnk__wipe(chunks->data, TNK__AGE_CHUNK + TNK__AGE_TAG);
  tnk__free(alloc, chunks->data);
  tnk__wipe(chunks, sizeof(*chunks));
}

size_t tnk__age_chunks_fill(tnk__age_chunks_t *chunks, const uint8_t *data,
                            size_t n, size_t max) {
  const size_t room = max - chunks->n;
  const size_t taken = n < room ? n : room;

  memcpy(chunks->data + chunks->n, data, taken);
  chunks->n += taken;
  return taken;
}

/* The first 11 bytes are a counter; the last byte marks the last chunk. */
void tnk__age_chunks_next(tnk__age_chunks_t *chunks) {
  size_t i = TNK__AGE_NONCE - 1;

  while (i-- > 0 && ++chunks->nonce[i] == 0)
    ;
  chunks->n = 0;
}

int tnk__age_chunks_is_first(const tnk__age_chunks_t *chunks) {
  for (size_t i = 0; i < TNK__AGE_NONCE - 1; i++)
    if (chunks->nonce[i] != 0)
      return 0;
  return 1;
}

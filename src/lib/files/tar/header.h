#ifndef TNK_LIB_FILES_TAR_HEADER_H
#define TNK_LIB_FILES_TAR_HEADER_H

#include <stddef.h>
#include <stdint.h>

#define TNK__TAR_BLOCK 512

/* A parsed header block. */
typedef struct {
  char name[257]; /* as stored; "" if it is too long for a block */
  uint64_t size;
  char kind;
} tnk__tar_header_t;

/* The relevant records of a pax header. */
typedef struct {
  const char *path; /* NULL: absent; not NUL-terminated */
  size_t n_path;
  uint64_t size; /* UINT64_MAX: absent */
  int is_sparse;
} tnk__tar_pax_t;

/* Whether a block is all zeros. */
int tnk__tar_is_zero(const uint8_t *data, size_t n);
/* Returns the error in the block, as a sentence about "the archive", or
 * NULL. */
const char *tnk__tar_header_read(tnk__tar_header_t *out,
                                 const uint8_t block[TNK__TAR_BLOCK]);
/* Parse pax records, "LENGTH KEY=VALUE\n"; the last one of a key counts.
 * Returns 1, or 0 if they are malformed. */
int tnk__tar_pax_read(tnk__tar_pax_t *out, const char *data, size_t n);

#endif

#ifndef TNK_LIB_FILES_TAR_HEADER_H
#define TNK_LIB_FILES_TAR_HEADER_H

#include <stddef.h>
#include <stdint.h>

#define TNK__TAR_BLOCK 512

/* The block that describes an entry. */
typedef struct {
  char name[257]; /* as it stands there; "" where it is too long for a block */
  uint64_t size;
  char kind;
} tnk__tar_header_t;

/* What a record of pax says. */
typedef struct {
  const char *path; /* NULL: nothing; not NUL-terminated */
  size_t n_path;
  uint64_t size; /* UINT64_MAX: nothing */
  int is_sparse;
} tnk__tar_pax_t;

/* Whether a block is all zeros. */
int tnk__tar_is_zero(const uint8_t *data, size_t n);
/* Returns what is wrong with the block, as a sentence about "the archive", or
 * NULL. */
const char *tnk__tar_header_read(tnk__tar_header_t *out,
                                 const uint8_t block[TNK__TAR_BLOCK]);
/* Read records of pax, "LENGTH KEY=VALUE\n"; the last of a key counts. 1, or 0:
 * they are malformed. */
int tnk__tar_pax_read(tnk__tar_pax_t *out, const char *data, size_t n);

#endif

#ifndef TNK_LIB_FILES_TAR_TAR_H
#define TNK_LIB_FILES_TAR_TAR_H

#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/text.h"
#include "lib/files/tar/header.h"
#include "lib/wire/format/relative.h"

#define TNK__TAR_MAX_FILES 4096
#define TNK__TAR_MAX_EXTRA ((size_t)64 * 1024)     /* one pax or GNU header */
#define TNK__TAR_MAX_PADDING ((size_t)1024 * 1024) /* zeros after the end */

/* Events of the reader. */
typedef enum {
  TNK__TAR_MORE = 0, /* more input is needed */
  TNK__TAR_FILE = 1, /* a file begins: `name`, `n_bytes` */
  TNK__TAR_DATA = 2, /* a part of it: `data`, `n` */
  TNK__TAR_END = 3   /* the file is complete */
} tnk__tar_kind_t;

typedef struct {
  tnk__tar_kind_t kind;
  const char *name;    /* checked relative path; valid until the end */
  uint64_t n_bytes;    /* size of the file */
  const uint8_t *data; /* points into the input */
  size_t n;
} tnk__tar_event_t;

/* What the reader expects next. */
typedef enum {
  TNK__TAR_IN_HEADER,  /* a header block */
  TNK__TAR_IN_EXTRA,   /* a long name or pax records of the next entry */
  TNK__TAR_IN_FILE,    /* the data of a file */
  TNK__TAR_IN_PADDING, /* zeros up to the next block */
  TNK__TAR_IN_TAIL     /* zeros after the end */
} tnk__tar_state_t;

/*
 * Reads tar (ustar, GNU's long names, pax) for files from a server: only
 * regular files below a directory. Directories are ignored, because file names
 * imply them. Links, devices, sparse files, names that leave the directory and
 * duplicate names are rejected.
 */
typedef struct {
  tnk__tar_state_t state;
  uint8_t block[TNK__TAR_BLOCK];
  size_t n_block;
  char extra_kind;      /* 'L', 'x' or 'g' */
  tnk__buf_t extra;     /* data of the extra header */
  tnk__buf_t long_name; /* for the next entry; empty: none */
  uint64_t long_size;   /* for the next entry; UINT64_MAX: none */
  uint64_t left;        /* remaining bytes of a file or an extra header */
  size_t padding;       /* zeros after them */
  size_t tail;          /* zeros after the end */
  int n_zero_blocks;
  uint64_t total;
  uint64_t max_bytes;
  const char *names[TNK__TAR_MAX_FILES];
  size_t n_names;
  tnk__arena_t arena; /* memory of names */
  int err;
  const char *why;                   /* the error, about "the archive" ... */
  const char *detail;                /* ... its continuation, or NULL ... */
  char entry[TNK__RELATIVE_MAX + 1]; /* ... and the entry; "": none */
} tnk__tar_t;

/* `max_bytes`: limit for all files together. */
void tnk__tar_init(tnk__tar_t *tar, const tnk_allocator_t *alloc,
                   uint64_t max_bytes);
void tnk__tar_deinit(tnk__tar_t *tar);
/* Read up to the next event. *used receives the number of bytes that were read,
 * including data. Returns TNK_OK, TNK_EPROTO (malformed, or with a forbidden
 * entry), TNK_ECORRUPT, TNK_EUNSUPPORTED, TNK_ETOOBIG or TNK_ENOMEM; the first
 * error is kept. */
int tnk__tar_read(tnk__tar_t *tar, const uint8_t *data, size_t n, size_t *used,
                  tnk__tar_event_t *event);
/* End of the input: returns TNK_ECORRUPT if the archive is incomplete. */
int tnk__tar_finish(tnk__tar_t *tar);
/* Describe the error after a failure; writes nothing for TNK_ENOMEM. */
void tnk__tar_explain(const tnk__tar_t *tar, tnk__text_t *out);

#endif

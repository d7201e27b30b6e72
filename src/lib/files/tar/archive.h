/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_TAR_ARCHIVE_H
#define TNK_LIB_FILES_TAR_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/text.h"
#include "lib/wire/format/relative.h"
#include "lib/wire/format/zstd.h"

/*
 * Decompresses gzip piece by piece, also several members in a row, as `cat`
 * joins them. Checksum and length of each member are checked.
 *
 * States: between members (initially; the input may end here), inside a member,
 * failed for good.
 */
typedef struct {
  struct z_stream_s *stream; /* allocated with the first piece */
  const tnk_allocator_t *alloc;
  int inside; /* inside a member */
  int seen;   /* at least one member is complete */
  int err;
} tnk__gunzip_t;

#define TNK__TAR_BLOCK 512

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

/* The part of the archive that the reader expects next. */
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

#define TNK__ARCHIVE_HEAD 10

/* The format around the tar, detected from its first bytes. */
typedef enum {
  TNK__ARCHIVE_UNKNOWN, /* too few bytes so far */
  TNK__ARCHIVE_PLAIN,
  TNK__ARCHIVE_GZIP,
  TNK__ARCHIVE_ZSTD
} tnk__archive_format_t;

/*
 * Reads a server's archive piece by piece: tar, plain or compressed with gzip
 * or zstd. At most a window of 128 KiB is unpacked at once, whatever the input
 * is. It reports the contents; the caller writes the files. It may run on any
 * thread, one thread at a time.
 */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__archive_format_t format;
  uint8_t head[TNK__ARCHIVE_HEAD];
  size_t n_head;
  /* The unread input: first of the head, then of the piece. */
  const uint8_t *in;
  size_t n_in;
  const uint8_t *piece;
  size_t n_piece;
  tnk__gunzip_t gunzip;
  tnk__unzstd_t unzstd;
  tnk__buf_t window;    /* the unpacked bytes of a compressed archive */
  const uint8_t *plain; /* the unread part of it */
  size_t n_plain;
  tnk__tar_t tar;
  int err;
  const char *why;
} tnk__archive_t;

/* `max_bytes`: limit for all files together. */
void tnk__archive_init(tnk__archive_t *archive, const tnk_allocator_t *alloc,
                       uint64_t max_bytes);
void tnk__archive_deinit(tnk__archive_t *archive);
/* Set the next piece of input, which is borrowed. The previous one must have
 * been read up to TNK__TAR_MORE. */
void tnk__archive_give(tnk__archive_t *archive, const void *data, size_t n);
/* Read up to the next event. Returns the result of tar_read(). */
int tnk__archive_next(tnk__archive_t *archive, tnk__tar_event_t *event);
/* End of the input: check that the archive is complete. Returns as above. */
int tnk__archive_finish(tnk__archive_t *archive);
/* Describe the error after a failure. */
void tnk__archive_explain(const tnk__archive_t *archive, tnk__text_t *out);

#endif

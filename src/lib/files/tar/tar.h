#ifndef TNK_LIB_FILES_TAR_TAR_H
#define TNK_LIB_FILES_TAR_TAR_H

#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/base/text.h"
#include "lib/files/tar/header.h"
#include "lib/wire/format/relative.h"

#define TNK__TAR_MAX_FILES 4096
#define TNK__TAR_MAX_EXTRA ((size_t)64 * 1024) /* of a header of pax or GNU */
#define TNK__TAR_MAX_PADDING ((size_t)1024 * 1024) /* zeros behind the end */

/* What there is to know of the next bytes. */
typedef enum {
  TNK__TAR_MORE = 0, /* nothing before more input comes */
  TNK__TAR_FILE = 1, /* a file begins: `name`, `n_bytes` */
  TNK__TAR_DATA = 2, /* some of it: `data`, `n` */
  TNK__TAR_END = 3   /* it is complete */
} tnk__tar_kind_t;

typedef struct {
  tnk__tar_kind_t kind;
  const char *name;    /* has passed tnk__relative_check(); until the end */
  uint64_t n_bytes;    /* that the file has */
  const uint8_t *data; /* in the input */
  size_t n;
} tnk__tar_event_t;

/* What the next bytes are. */
typedef enum {
  TNK__TAR_IN_HEADER,  /* a block that describes an entry */
  TNK__TAR_IN_EXTRA,   /* a long name, or records of pax, for the next entry */
  TNK__TAR_IN_FILE,    /* what a file holds */
  TNK__TAR_IN_PADDING, /* zeros up to the next block */
  TNK__TAR_IN_TAIL     /* zeros behind the end */
} tnk__tar_state_t;

/*
 * A reader of tar (ustar, GNU's long names, pax) for files of a server: those
 * that may stand below a directory, and nothing else. Directories are passed
 * over, since names tell them; links, devices, sparse files, names that leave
 * the directory and names that come twice are refused.
 */
typedef struct {
  tnk__tar_state_t state;
  uint8_t block[TNK__TAR_BLOCK];
  size_t n_block;
  char extra_kind;      /* 'L', 'x' or 'g' */
  tnk__buf_t extra;     /* what came of it */
  tnk__buf_t long_name; /* for the next entry; empty: none */
  uint64_t long_size;   /* the same; UINT64_MAX: none */
  uint64_t left;        /* bytes that are to come of a file or an extra */
  size_t padding;       /* zeros behind them */
  size_t tail;          /* zeros behind the end */
  int n_zero_blocks;
  uint64_t total;
  uint64_t max_bytes;
  const char *names[TNK__TAR_MAX_FILES];
  size_t n_names;
  tnk__arena_t arena; /* of names */
  int err;
  const char *why;                   /* a sentence about "the archive" ... */
  const char *detail;                /* ... how it goes on, or NULL ... */
  char entry[TNK__RELATIVE_MAX + 1]; /* ... and the entry; "": none */
} tnk__tar_t;

/* `max_bytes`: of all files together. */
void tnk__tar_init(tnk__tar_t *tar, const tnk_allocator_t *alloc,
                   uint64_t max_bytes);
void tnk__tar_deinit(tnk__tar_t *tar);
/* Read up to the next event; *used receives how much of the piece it took, its
 * data included. TNK_OK; TNK_EPROTO (malformed, or holds what is refused),
 * TNK_ECORRUPT, TNK_EUNSUPPORTED, TNK_ETOOBIG, TNK_ENOMEM; the first failure
 * stays. */
int tnk__tar_read(tnk__tar_t *tar, const uint8_t *data, size_t n, size_t *used,
                  tnk__tar_event_t *event);
/* The input is over: TNK_ECORRUPT unless the archive is. */
int tnk__tar_finish(tnk__tar_t *tar);
/* Write what is wrong, after a failure: nothing where that is memory. */
void tnk__tar_explain(const tnk__tar_t *tar, tnk__text_t *out);

#endif

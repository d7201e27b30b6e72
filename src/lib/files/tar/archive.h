#ifndef TNK_LIB_FILES_TAR_ARCHIVE_H
#define TNK_LIB_FILES_TAR_ARCHIVE_H

#include "lib/files/tar/gzip.h"
#include "lib/files/tar/tar.h"
#include "lib/wire/format/zstd.h"

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
/* Read up to the next event. Returns the result of tnk__tar_read(). */
int tnk__archive_next(tnk__archive_t *archive, tnk__tar_event_t *event);
/* End of the input: check that the archive is complete. Returns as above. */
int tnk__archive_finish(tnk__archive_t *archive);
/* Describe the error after a failure. */
void tnk__archive_explain(const tnk__archive_t *archive, tnk__text_t *out);

#endif

#ifndef TNK_LIB_FILES_TAR_ARCHIVE_H
#define TNK_LIB_FILES_TAR_ARCHIVE_H

#include "lib/files/tar/gzip.h"
#include "lib/files/tar/tar.h"
#include "lib/wire/format/zstd.h"

#define TNK__ARCHIVE_HEAD 10

/* What is around the tar, which its first bytes tell. */
typedef enum {
  TNK__ARCHIVE_UNKNOWN, /* too few of them have come */
  TNK__ARCHIVE_PLAIN,
  TNK__ARCHIVE_GZIP,
  TNK__ARCHIVE_ZSTD
} tnk__archive_format_t;

/*
 * An archive of a server, read in pieces: tar, plain or compressed with gzip or
 * zstd. Whatever is sent, no more than a window of 128 KiB is unpacked at once.
 * It does not know files: it says what is in it, and its caller writes that.
 * Any thread will do, one at a time.
 */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__archive_format_t format;
  uint8_t head[TNK__ARCHIVE_HEAD];
  size_t n_head;
  /* What has come and was not read yet: first of the head, then of the piece.*/
  const uint8_t *in;
  size_t n_in;
  const uint8_t *piece;
  size_t n_piece;
  tnk__gunzip_t gunzip;
  tnk__unzstd_t unzstd;
  tnk__buf_t window;    /* unpacked, where it is compressed */
  const uint8_t *plain; /* the part of it that is to be read */
  size_t n_plain;
  tnk__tar_t tar;
  int err;
  const char *why;
} tnk__archive_t;

/* `max_bytes`: of all files together. */
void tnk__archive_init(tnk__archive_t *archive, const tnk_allocator_t *alloc,
                       uint64_t max_bytes);
void tnk__archive_deinit(tnk__archive_t *archive);
/* Lend the next piece; the one before must have been read up to
 * TNK__TAR_MORE.*/
void tnk__archive_give(tnk__archive_t *archive, const void *data, size_t n);
/* Read up to the next event. Returns what tnk__tar_read() does. */
int tnk__archive_next(tnk__archive_t *archive, tnk__tar_event_t *event);
/* The input is over and was read: whether it was complete. Returns as above. */
int tnk__archive_finish(tnk__archive_t *archive);
/* Write what is wrong, after a failure. */
void tnk__archive_explain(const tnk__archive_t *archive, tnk__text_t *out);

#endif

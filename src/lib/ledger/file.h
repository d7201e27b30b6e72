/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_LEDGER_FILE_H
#define TNK_LIB_LEDGER_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/* Large enough for about a million saves. */
#define TNK__LEDGER_MAX_FILE ((uint64_t)256 * 1024 * 1024)

/* The disk operations of a ledger. Tests replace them to make one fail. They
 * work like the system calls, but return libuv's error codes. */
typedef struct {
  int64_t (*write)(int fd, const void *data, size_t n);
  int (*sync)(int fd);
  int (*cut)(int fd, uint64_t size);
  int (*sync_folder)(const char *path); /* synchronizes the parent folder */
  int (*lock)(int fd); /* UV_EBUSY: another process has the lock */
} tnk__ledger_disk_t;

/* The system's operations. */
extern const tnk__ledger_disk_t tnk__ledger_disk;

/*
 * The file of a ledger; only whole lines are appended. Its lock is held while
 * it is open, so that two programs cannot continue the same run. All functions
 * block, so they run on the pool. They allow one caller at a time and return
 * libuv's error codes.
 */
typedef struct {
  const tnk__ledger_disk_t *disk;
  const char *path; /* owned by the caller */
  int fd;           /* -1: closed */
  uint64_t size;    /* up to the end of the last whole line */
  int is_torn;      /* data follows the last whole line */
  int was_mended;   /* opening repaired the file */
  int is_in_folder; /* the folder was synchronized */
} tnk__ledger_file_t;

/*
 * Open or make <directory>/checkpoints.jsonl and read it. Data that a killed
 * writer left after the last line is removed. If only the end of the line is
 * missing, the line is completed. The caller frees *data, which ends with a
 * NUL. `path` must stay valid until the file is closed. Opening an intact file
 * does not write to it; the first added line synchronizes its folder. If
 * another process replaces or removes the file before it is locked, the file
 * that is there then is opened.
 *
 * Returns 0, UV_EBUSY if another process has the lock or keeps replacing the
 * file, UV_EFBIG, UV_ENOMEM, or the code of the system error.
 */
int tnk__ledger_file_open(tnk__ledger_file_t *file, const char *path,
                          const tnk_allocator_t *alloc, uint8_t **data,
                          size_t *n);
/* Append lines and synchronize the file. After a failure the file has none of
 * them, or the remains are removed before the next lines are written. */
int tnk__ledger_file_add(tnk__ledger_file_t *file, const void *lines, size_t n);
/* Close the file and release the lock. */
void tnk__ledger_file_close(tnk__ledger_file_t *file);

#endif

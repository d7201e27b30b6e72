#ifndef TNK_LIB_LEDGER_FILE_H
#define TNK_LIB_LEDGER_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/* A ledger of that size has a million saves. */
#define TNK__LEDGER_MAX_FILE ((uint64_t)256 * 1024 * 1024)

/* What a ledger does to the disk, so that tests can let each of it fail. As the
 * calls of the system, but for failures: those are libuv's codes. */
typedef struct {
  int64_t (*write)(int fd, const void *data, size_t n);
  int (*sync)(int fd);
  int (*cut)(int fd, uint64_t size);
  int (*sync_folder)(const char *path); /* of the file of that path */
} tnk__ledger_disk_t;

/* The system's. */
extern const tnk__ledger_disk_t tnk__ledger_disk;

/*
 * The file of a ledger, which grows at its end by whole lines. Its lock is held
 * while it is open, so that two programs do not go on with one run. All of it
 * blocks: for the pool, and for one caller at a time; failures are libuv's
 * codes.
 */
typedef struct {
  const tnk__ledger_disk_t *disk;
  const char *path; /* the owner's */
  int fd;           /* -1: closed */
  uint64_t size;    /* up to the end of the last whole line */
  int is_torn;      /* something lies behind that */
  int was_mended;   /* when it was opened */
  int is_in_folder; /* and the disk knows that */
} tnk__ledger_file_t;

/*
 * Open or make <directory>/checkpoints.jsonl and read it. What a writer that
 * was killed has left behind the last line is taken away, or completed where
 * only the end of the line is missing. *data, which has a NUL behind it, is the
 * caller's to free. `path` stays until the end. A file that is whole is only
 * read: its folder is synchronized with the first line that is added.
 *
 * 0; UV_EBUSY when another one has the lock; UV_EFBIG, UV_ENOMEM, or what the
 * system says.
 */
int tnk__ledger_file_open(tnk__ledger_file_t *file, const char *path,
                          const tnk_allocator_t *alloc, uint8_t **data,
                          size_t *n);
/* Add lines, and bring them to the disk. After a failure none of them is there,
 * or what is there is taken away before the next ones. */
int tnk__ledger_file_add(tnk__ledger_file_t *file, const void *lines, size_t n);
/* Close it and give up the lock. */
void tnk__ledger_file_close(tnk__ledger_file_t *file);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_OBSERVE_DUMP_FILE_H
#define TNK_LIB_OBSERVE_DUMP_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/io/loop/work.h"
#include "tnk/common.h"

/* Write all n bytes. Returns TNK_OK or TNK_EFILE. */
int tnk__file_write(int fd, const uint8_t *data, size_t n);
/* Replace the contents of a file through a new file next to it. Readers find
 * either the old or the new contents, complete. Returns TNK_OK, TNK_EFILE or
 * TNK_ENOMEM. */
int tnk__file_replace(const tnk_allocator_t *alloc, const char *path,
                      const uint8_t *data, size_t n);

struct tnk_service;

/* Writes the dump to `out`, which is uninitialized; the caller frees it in
 * every case. */
typedef int (*tnk__dump_write_cb)(const struct tnk_service *service,
                                  tnk__buf_t *out);

/*
 * Writes the dump of a service to a file each second, if the options enable it.
 * The dump is made on the loop and written on the thread pool.
 *
 * States: off; waiting for the timer; writing, until the thread pool is done.
 * Closing stops the timer and writes a last dump with the state at the close.
 * If a write is in progress, the last one follows it.
 */
typedef struct {
  tnk__context_t *context;
  const char *path; /* borrowed */
  tnk__dump_write_cb write;
  const struct tnk_service *service;
  tnk__deferred_t first; /* the first dump, in the next turn of the loop */
  tnk__timer_t timer;    /* later dumps */
  tnk__work_t work;
  tnk__buf_t text;
  tnk__buf_t last; /* the last dump, while a write is in progress */
  int err;         /* result of the last write */
  int was_err;     /* and of the one before it */
  int is_writing;
  int is_closed;
  int has_last;
} tnk__dump_file_t;

/* Start, unless `path` is NULL. */
void tnk__dump_file_open(tnk__dump_file_t *file, tnk__context_t *context,
                         const char *path, tnk__dump_write_cb write,
                         const struct tnk_service *service);
/* Write the last dump; without memory it is omitted. The context is released
 * after that. */
void tnk__dump_file_close(tnk__dump_file_t *file);

#endif

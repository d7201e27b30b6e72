#ifndef TNK_LIB_OBSERVE_DUMP_FILE_H
#define TNK_LIB_OBSERVE_DUMP_FILE_H

#include "lib/base/buf.h"
#include "lib/io/loop/work.h"

struct tnk_service;

/* Write the dump to `out`, which is new, and to be freed whatever becomes of
 * it. */
typedef int (*tnk__dump_write_cb)(const struct tnk_service *service,
                                  tnk__buf_t *out);

/*
 * The dump of a service that is written to a file each second, where the
 * options say so: looked at on the loop, written on the thread pool.
 *
 * Off; waiting for its turn; writing, until the thread pool is done. Closing
 * stops the waiting, and the last dump is that of the moment at which the
 * service closes; where one is being written already, it follows that.
 */
typedef struct {
  tnk__context_t *context;
  const char *path; /* lent */
  tnk__dump_write_cb write;
  const struct tnk_service *service;
  tnk__deferred_t first; /* at once, in a turn of its own */
  tnk__timer_t timer;    /* for all that follow */
  tnk__work_t work;
  tnk__buf_t text;
  tnk__buf_t last; /* to be written after the one under way */
  int err;         /* of the last writing, */
  int was_err;     /* and of the one before */
  int is_writing;
  int is_closed;
  int has_last;
} tnk__dump_file_t;

/* Begin, unless `path` is NULL. */
void tnk__dump_file_open(tnk__dump_file_t *file, tnk__context_t *context,
                         const char *path, tnk__dump_write_cb write,
                         const struct tnk_service *service);
/* Write the last one, which is left out without memory. The context goes when
 * that is done. */
void tnk__dump_file_close(tnk__dump_file_t *file);

#endif

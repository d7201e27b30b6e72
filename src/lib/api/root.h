#ifndef TNK_LIB_API_ROOT_H
#define TNK_LIB_API_ROOT_H

#include <uv.h>

#include "lib/base/list.h"
#include "lib/base/misuse.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/context.h"
#include "lib/io/loop/promise.h"
#include "tnk/service.h"

struct tnk__root;

typedef struct {
  tnk__magic_t magic;
  size_t size; /* of the larger struct */
  /* What the caller would call to close it. */
  void (*close)(struct tnk__root *self);
  /* Frees what the larger struct owns. After a failed opening some of it may
   * still be zeroed. */
  void (*free_rest)(struct tnk__root *self);
} tnk__root_kind_t;

/*
 * What the caller opens on a loop and must close: the beginning of a service
 * and of a hub. It has a context and connections of its own, and stays in a
 * list of its thread while it is open, so that a runtime can close what is
 * left on its loop.
 *
 * New: only memory. Started: context and connections are there. Open: the
 * caller has it. Closing, from the caller's word until libuv has let go of
 * everything; then the memory is freed, and the caller told.
 */
typedef struct tnk__root {
  uint32_t magic;   /* that of its kind */
  tnk__list_t link; /* of its thread's */
  const tnk__root_kind_t *kind;
  tnk_allocator_t alloc;
  tnk__context_t context;
  tnk__http_t http;
  int is_started;
  int closing;
  tnk_close_cb close_cb;
  void *close_user;
} tnk__root_t;

/* Opening takes the three functions that follow, in this order. The first two
 * may set *why, which the first makes NULL; after a failure only the last may
 * follow. */

/* Make it: zeroed memory of kind->size bytes; `alloc` may be NULL. */
int tnk__root_new(tnk__root_t **out, const tnk__root_kind_t *kind,
                  const uv_loop_t *uv, const tnk_allocator_t *alloc,
                  const char **why);
int tnk__root_start(tnk__root_t *root, uv_loop_t *uv,
                    const tnk_logger_t *logger, const tnk__http_options_t *http,
                    const char **why);
/* End the opening: with TNK_OK the caller has it now, else it is undone, and
 * its memory, of which `why` may be a part, is gone. `text` is as for
 * tnk__root_say(). `root` may be NULL after a failure. */
void tnk__root_finish(tnk__root_t *root, int err, const char *why, char *text,
                      size_t size);

/* Write `why`, or without it what the code means, into the caller's memory,
 * which may be NULL. Returns the code. */
int tnk__root_say(char *text, size_t size, int err, const char *why);
/* Our code for one of libuv's, whose sentence goes to `why`; ours stay as they
 * are. */
int tnk__root_code(int err, const char **why);

/* Whether it may be closed, which from then on it is not any more. */
int tnk__root_begin_close(tnk__root_t *root, tnk_close_cb cb, void *user);
/* Go on closing, when what was built upon it is closed. */
void tnk__root_end_close(tnk__root_t *root);
/* Close what this thread has open on the loop; returns how many there were. */
size_t tnk__root_close_all(const uv_loop_t *uv);

/* Make the promise of an operation that does not begin, rejected with `why`, or
 * for NULL and "" with what the code means. */
tnk_promise_t *tnk__root_reject(tnk__context_t *context, int code,
                                const char *name, const char *why);
/* The same beside the shared promise of a context that may be gone. */
tnk_promise_t *tnk__root_reject_beside(tnk_promise_t *kin, int code,
                                       const char *name, const char *why);

#endif

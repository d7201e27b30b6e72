#ifndef TNK_API_OPENED_H
#define TNK_API_OPENED_H

#include <uv.h>

#include "base/list.h"

/*
 * What the caller has opened on a loop and must close: services and hubs. Kept
 * in a list of its thread, so that a runtime can close what is left on its
 * loop. Embedded in what it is about.
 */
typedef struct tnk__opened {
  tnk__list_t link;
  const uv_loop_t *uv;
  void (*close)(struct tnk__opened *self);
} tnk__opened_t;

void tnk__opened_add(tnk__opened_t *opened, const uv_loop_t *uv,
                     void (*close)(tnk__opened_t *self));
/* Its closing has begun. */
void tnk__opened_remove(tnk__opened_t *opened);
/* Close what this thread has open on the loop; how many there were. */
size_t tnk__opened_close_on(const uv_loop_t *uv);

/* Why opening failed, into the caller's room, which may be NULL: `what`, or
 * without it the meaning of the code. Returns the code. */
int tnk__opened_say(char *text, size_t size, int err, const char *what);

#endif

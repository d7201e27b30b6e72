#ifndef TNK_TASK_WATCH_H
#define TNK_TASK_WATCH_H

#include "loop/loop.h"

struct tnk__session;

/*
 * Looks once a second, while anything is pending, whether it moves, and tells
 * of clients and operations that have not for long. Its timer also shows how
 * late the loop is. It does not keep the loop alive.
 *
 * Stopped; running, from tnk__watch_arm() until nothing is pending.
 */
typedef struct {
  struct tnk__session *session;
  tnk__timer_t timer;
} tnk__watch_t;

/* Something is about to be pending. */
void tnk__watch_arm(tnk__watch_t *watch, struct tnk__session *session);
void tnk__watch_stop(tnk__watch_t *watch);

#endif

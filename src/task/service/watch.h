#ifndef TNK_TASK_SERVICE_WATCH_H
#define TNK_TASK_SERVICE_WATCH_H

#include "task/session/session.h"

/*
 * Looks once a second, while anything is pending, whether it moves, and tells
 * of clients and operations that have not for long. Its timer also shows how
 * late the loop is. It does not keep the loop alive.
 *
 * Stopped; running, from tnk__watch_arm() until nothing is pending or the
 * session is shut.
 */

/* Run from now on: something is about to be pending. */
void tnk__watch_arm(tnk__session_t *session);

#endif

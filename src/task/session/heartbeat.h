#ifndef TNK_TASK_SESSION_HEARTBEAT_H
#define TNK_TASK_SESSION_HEARTBEAT_H

#include "task/call/call.h"

/*
 * Keeps a session at the server alive: one heartbeat every ten seconds, the
 * first after ten. Not begun; beating; ended, when the server says that the
 * session is over, or when it is stopped. It does not keep the loop alive.
 */
typedef struct tnk__heartbeat {
  tnk__call_t call; /* its timer runs between two of them */
  tnk__buf_t body;
  const char *session_id; /* the owner's */
  uint64_t ok_ms;         /* of the last good answer, or of the beginning */
  int was_answered;       /* well, once at least */
  /* The server has ended the session. Called once, as the last touch: it may
   * free the heartbeat. */
  void (*ended)(struct tnk__heartbeat *self, tnk__error_t *error);
} tnk__heartbeat_t;

void tnk__heartbeat_open(tnk__heartbeat_t *heartbeat,
                         const tnk_allocator_t *alloc);
/* Write what is sent, which never changes, and do not begin yet. TNK_OK or
 * TNK_ENOMEM. */
int tnk__heartbeat_prepare(tnk__heartbeat_t *heartbeat,
                           tnk__endpoint_t *endpoint, const char *session_id);
void tnk__heartbeat_begin(tnk__heartbeat_t *heartbeat);
/* Harmless when it has not begun. */
void tnk__heartbeat_stop(tnk__heartbeat_t *heartbeat);
void tnk__heartbeat_close(tnk__heartbeat_t *heartbeat);

#endif

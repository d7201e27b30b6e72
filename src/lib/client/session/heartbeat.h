#ifndef TNK_LIB_CLIENT_SESSION_HEARTBEAT_H
#define TNK_LIB_CLIENT_SESSION_HEARTBEAT_H

#include "lib/client/call/call.h"

/*
 * Keeps a session at the server alive: one heartbeat every ten seconds, the
 * first after ten. Not begun; beating; ended, when the server says that the
 * session is over, or when it is stopped. It does not keep the loop alive.
 *
 * Whoever doubts that the session is still there asks for a heartbeat at once.
 * One that is on its way may have been answered before the doubt arose, so
 * another one follows it.
 */
typedef struct tnk__heartbeat {
  tnk__call_t call; /* its timer runs between two of them */
  tnk__buf_t body;
  const char *session_id; /* the owner's */
  uint64_t ok_ms;         /* of the last good answer, or of the beginning */
  int has_warned;         /* that heartbeats fail, since the last good one */
  int is_asked;           /* one more is to follow at once */
  int is_asking;          /* somebody waits for what the next answer says */
  /* The server has ended the session. Called once, as the last touch: it may
   * free the heartbeat. */
  void (*ended)(struct tnk__heartbeat *self, tnk__error_t *error);
  /* It was asked, or a restart of the server is suspected, and the answer does
   * not say that the session is gone. The last touch; may be NULL. */
  void (*kept)(struct tnk__heartbeat *self);
} tnk__heartbeat_t;

void tnk__heartbeat_open(tnk__heartbeat_t *heartbeat,
                         const tnk_allocator_t *alloc);
/* Write what is sent, which never changes, and do not begin yet. TNK_OK or
 * TNK_ENOMEM. */
int tnk__heartbeat_prepare(tnk__heartbeat_t *heartbeat,
                           tnk__endpoint_t *endpoint, const char *session_id);
void tnk__heartbeat_begin(tnk__heartbeat_t *heartbeat);
/* Ask now whether the session is there, which `kept` or `ended` tells. It has
 * begun, and has not ended. */
void tnk__heartbeat_ask(tnk__heartbeat_t *heartbeat);
/* Whether `kept` or `ended` is due. */
int tnk__heartbeat_is_asked(const tnk__heartbeat_t *heartbeat);
/* Harmless when it has not begun. */
void tnk__heartbeat_stop(tnk__heartbeat_t *heartbeat);
void tnk__heartbeat_close(tnk__heartbeat_t *heartbeat);

#endif

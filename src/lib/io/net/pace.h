#ifndef TNK_LIB_IO_NET_PACE_H
#define TNK_LIB_IO_NET_PACE_H

#include "lib/io/loop/context.h"

/*
 * Spreads the steps of TLS handshakes over turns of the loop. A handshake
 * computes for up to 5 ms at once. If many streams open together, heartbeats
 * and responses on other streams would wait for all of them.
 */
#define TNK__PACE_STEPS 2 /* steps in one turn of the loop */

/* A step that may have to wait. Embedded in its owner. */
typedef struct tnk__pace_step {
  tnk__list_t link;
  void (*run)(struct tnk__pace_step *self);
} tnk__pace_step_t;

typedef struct {
  tnk__context_t *context;
  tnk__list_t waiting; /* steps in order of their request */
  unsigned n_used;     /* steps done in this turn of the loop */
  tnk__deferred_t later;
} tnk__pace_t;

void tnk__pace_init(tnk__pace_t *pace, tnk__context_t *context);
/* Deinitialize it. No step may be waiting. */
void tnk__pace_deinit(tnk__pace_t *pace);
void tnk__pace_step_init(tnk__pace_step_t *step,
                         void (*run)(tnk__pace_step_t *self));
/* Request a step. Returns 1 if the caller may do it now. Returns 0 if `run`
 * will be called in a later turn of the loop. */
int tnk__pace_ask(tnk__pace_t *pace, tnk__pace_step_t *step);
void tnk__pace_forget(tnk__pace_step_t *step);

#endif

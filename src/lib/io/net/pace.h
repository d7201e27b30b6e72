#ifndef TNK_LIB_IO_NET_PACE_H
#define TNK_LIB_IO_NET_PACE_H

#include "lib/io/loop/context.h"

/*
 * Spreads the steps of TLS handshakes over turns of the loop. A handshake
 * computes for up to 5 ms at a stretch: when many streams open together,
 * heartbeats and answers of other streams would wait for all of them.
 */
#define TNK__PACE_STEPS 2 /* in a turn of the loop */

/* Somebody with a step to do later. Embedded in its owner. */
typedef struct tnk__pace_step {
  tnk__list_t link;
  void (*run)(struct tnk__pace_step *self);
} tnk__pace_step_t;

typedef struct {
  tnk__context_t *context;
  tnk__list_t waiting; /* in order of asking */
  unsigned n_used;     /* steps in this turn of the loop */
  tnk__deferred_t later;
} tnk__pace_t;

void tnk__pace_init(tnk__pace_t *pace, tnk__context_t *context);
/* End its life. Nobody may be waiting. */
void tnk__pace_deinit(tnk__pace_t *pace);
void tnk__pace_step_init(tnk__pace_step_t *step,
                         void (*run)(tnk__pace_step_t *self));
/* Ask for a step. 1: do it now. 0: `run` will be called in a later turn of the
 * loop. */
int tnk__pace_ask(tnk__pace_t *pace, tnk__pace_step_t *step);
void tnk__pace_forget(tnk__pace_step_t *step);

#endif

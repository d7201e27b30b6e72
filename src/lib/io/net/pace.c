#include "lib/io/net/pace.h"

#include "lib/base/alloc.h"

/* The deferred call runs once in each turn of the loop while steps are being
 * done. It resets the count and runs waiting steps first. */
static void on_later(tnk__deferred_t *call) {
  tnk__pace_t *pace = tnk__container_of(call, tnk__pace_t, later);
  tnk__list_t *node;

  pace->n_used = 0;
  while (pace->n_used < TNK__PACE_STEPS &&
         (node = tnk__list_pop(&pace->waiting)) != NULL) {
    tnk__pace_step_t *step = tnk__container_of(node, tnk__pace_step_t, link);
    pace->n_used++;
    step->run(step);
  }
  if (pace->n_used > 0)
    tnk__defer(pace->context, &pace->later);
}

void tnk__pace_init(tnk__pace_t *pace, tnk__context_t *context) {
  pace->context = context;
  pace->n_used = 0;
  tnk__list_init(&pace->waiting);
  tnk__deferred_init(&pace->later, on_later);
}

void tnk__pace_deinit(tnk__pace_t *pace) {
  tnk__defer_cancel(&pace->later);
}

void tnk__pace_step_init(tnk__pace_step_t *step,
                         void (*run)(tnk__pace_step_t *self)) {
  tnk__list_init(&step->link);
  step->run = run;
}

int tnk__pace_ask(tnk__pace_t *pace, tnk__pace_step_t *step) {
  tnk__defer(pace->context, &pace->later);
  if (pace->n_used < TNK__PACE_STEPS && tnk__list_empty(&pace->waiting)) {
    pace->n_used++;
    return 1;
  }
  if (tnk__list_empty(&step->link))
    tnk__list_append(&pace->waiting, &step->link);
  return 0;
}

void tnk__pace_forget(tnk__pace_step_t *step) {
  tnk__list_remove(&step->link);
}

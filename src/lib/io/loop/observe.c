#include "lib/io/loop/observe.h"

void tnk__observe(const tnk__context_t *context, tnk_event_t *event) {
  event->time_ns = tnk__context_now_ns(context);
  context->observer(event, context->observer_user);
}

uint64_t tnk__observe_begin(tnk__context_t *context, const char *name,
                            const char *client) {
  if (context->observer == NULL)
    return 0;
  tnk__observe(context, &(tnk_event_t){.phase = TNK_PHASE_QUEUED,
                                       .operation = ++context->n_operations,
                                       .name = name,
                                       .client = client});
  return context->n_operations;
}

/* Reports a call to the observer. */
#include "lib/client/call/call_private.h"

#include "lib/base/alloc.h"
#include "lib/io/loop/context.h"

void tnk__call_tell(const tnk__call_t *call, tnk_event_t *event) {
  event->operation = call->owner.operation;
  event->name = call->owner.name;
  event->part = call->owner.part;
  if (event->attempt == 0 && event->phase != TNK_PHASE_WAITS)
    event->attempt = call->tries.n_attempts;
  tnk__observe(call->endpoint->context, event);
}

uint64_t tnk__call_span(const tnk__call_t *call, uint32_t attempt) {
  const uint64_t span = call->tries.key[1] + 0x9e3779b97f4a7c15u * attempt;

  return span != 0 ? span : 1;
}

static int is_poll(const tnk__call_t *call) {
  return call->request.route->kind == TNK__CALL_POLL ||
         call->request.route->kind == TNK__CALL_POLL_SAMPLE;
}

void tnk__call_on_sent(tnk__exchange_t *exchange) {
  const tnk__call_t *call = tnk__container_of(exchange, tnk__call_t, exchange);
  tnk_event_t event = {.phase = TNK_PHASE_SENT,
                       .bytes = call->request.body_len};

  if (call->owner.operation == 0)
    return;
  if (is_poll(call))
    event.phase = TNK_PHASE_HELD;
  if (call->request.feed != NULL)
    event.bytes += call->request.feed->len;
  if (call->endpoint->config->trace.trace_id[0] != '\0')
    event.span = tnk__call_span(call, call->tries.n_attempts);
  tnk__call_tell(call, &event);
}

void tnk__call_on_wait(tnk__exchange_t *exchange) {
  tnk__call_waits(tnk__container_of(exchange, tnk__call_t, exchange),
                  TNK_WAITS_FOR_CONNECTION);
}

void tnk__call_tell_retry(const tnk__call_t *call, int status, int code) {
  if (call->owner.operation != 0)
    tnk__call_tell(call, &(tnk_event_t){.phase = TNK_PHASE_WAITS,
                                        .waits_for = TNK_WAITS_FOR_RETRY,
                                        .attempt = call->tries.n_attempts,
                                        .status = status,
                                        .code = code});
}

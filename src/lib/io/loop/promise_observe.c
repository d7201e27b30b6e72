/*
 * Reports about promises to the observer.
 */
#include "lib/io/loop/observe.h"
#include "lib/io/loop/promise.h"

static void tell(const tnk_promise_t *promise, tnk_event_t *event) {
  event->operation = promise->operation;
  event->name = promise->name;
  tnk__observe(promise->home->context, event);
}

void tnk__promise_waits(const tnk_promise_t *promise, tnk_waits_for_t what,
                        size_t part) {
  if (promise != NULL && promise->operation != 0)
    tell(promise, &(tnk_event_t){.phase = TNK_PHASE_WAITS,
                                 .waits_for = what,
                                 .part = (uint32_t)part});
}

/* Decoding the response took time, and the event must show the time after
 * it. */
void tnk__promise_tell_end(const tnk_promise_t *promise) {
  const tnk_error_t *error;

  tnk__context_took_time(promise->home->context);
  if (promise->state == TNK_RESOLVED) {
    tell(promise, &(tnk_event_t){.phase = TNK_PHASE_DECODED});
    return;
  }
  error = &promise->as.error->pub;
  tell(promise, &(tnk_event_t){.phase = TNK_PHASE_FAILED,
                               .attempt = error->n_attempts,
                               .status = error->http_status,
                               .code = error->code,
                               .request_id = error->request_id});
}

/* After the service has ended nothing is reported. */
void tnk__promise_tell_delivery(tnk_promise_t *promise) {
  if (promise->operation == 0 || promise->delivered ||
      promise->home->context == NULL)
    return;
  promise->delivered = 1;
  tell(promise, &(tnk_event_t){.phase = TNK_PHASE_DELIVERED});
}

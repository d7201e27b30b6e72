/* Reports the events of a fetch to an observer. */
#include "lib/files/fetch/fetch.h"

#include "lib/base/alloc.h"
#include "lib/io/loop/context.h"

static void tell(const tnk__fetch_t *fetch, tnk_event_t *event) {
  event->operation = fetch->observed->operation;
  event->name = fetch->observed->name;
  event->part = fetch->part;
  event->attempt = fetch->n_attempts;
  tnk__observe(fetch->context, event);
}

static void on_sent(tnk__exchange_t *exchange) {
  tell(tnk__container_of(exchange, tnk__fetch_t, exchange),
       &(tnk_event_t){.phase = TNK_PHASE_SENT});
}

static int is_observed(const tnk__fetch_t *fetch) {
  return fetch->observed != NULL && fetch->observed->operation != 0;
}

void tnk__fetch_tell_begin(tnk__fetch_t *fetch) {
  fetch->exchange.on_sent = is_observed(fetch) ? on_sent : NULL;
  fetch->told_from = fetch->offset;
}

void tnk__fetch_tell_answer(const tnk__fetch_t *fetch,
                            const tnk__http_result_t *result) {
  const uint64_t end = fetch->offset + result->body->len;

  if (is_observed(fetch))
    tell(fetch,
         &(tnk_event_t){.phase = TNK_PHASE_RESULT,
                        .status = result->status,
                        .bytes = end > fetch->told_from ? end - fetch->told_from
                                                        : 0});
}

void tnk__fetch_tell_repeat(const tnk__fetch_t *fetch,
                            const tnk__http_result_t *result) {
  if (is_observed(fetch))
    tell(fetch, &(tnk_event_t){.phase = TNK_PHASE_WAITS,
                               .waits_for = TNK_WAITS_FOR_RETRY,
                               .status = result->status,
                               .code = result->err});
}

#include "lib/client/call/call_private.h"

#include "lib/base/alloc.h"
#include "lib/base/log.h"

void tnk__restart_open(tnk__endpoint_t *endpoint) {
  tnk__list_init(&endpoint->restart.held);
}

static int is_refused(const tnk__call_t *call, const tnk__http_result_t *result,
                      tnk__outcome_t outcome) {
  const tnk__config_t *config = call->endpoint->config;

  return outcome == TNK__OUTCOME_UNSENT && result->cause == UV_ECONNREFUSED &&
         tnk__proxies_find(&config->proxies, config->url.host, config->url.port,
                           config->url.is_tls) == NULL;
}

void tnk__restart_note(tnk__call_t *call, const tnk__http_result_t *result,
                       tnk__outcome_t outcome) {
  tnk__endpoint_t *endpoint = call->endpoint;
  tnk__restart_t *restart = &endpoint->restart;
  const uint64_t now = tnk__context_now_ms(endpoint->context);

  if (!restart->is_watching || endpoint->ended_session != NULL)
    return;
  if (is_refused(call, result, outcome)) {
    if (!restart->is_suspected)
      restart->refused_ms = now;
    restart->is_suspected = 1;
  } else if (restart->is_suspected && result->status != 0 &&
             call->now.since_ms < restart->refused_ms) {
    tnk__log(&endpoint->context->logger, TNK_LOG_INFO, "call",
             "%s: an answer has come that was asked for before a connection "
             "was refused: the server was not restarted",
             endpoint->config->url.host);
    tnk__restart_over(endpoint);
  } else if (restart->is_suspected && result->status != 0 &&
             call->request.route->kind != TNK__CALL_HEARTBEAT) {
    endpoint->doubts.ask(endpoint);
  }
}

int tnk__restart_holds(const tnk__call_t *call) {
  return call->endpoint->restart.is_suspected &&
         (call->request.route->kind == TNK__CALL_TRAIN ||
          call->request.route->kind == TNK__CALL_SAVE);
}

void tnk__restart_wait(tnk__call_t *call) {
  tnk__list_remove(&call->reacher.link);
  tnk__list_append(&call->endpoint->restart.held, &call->reacher.link);
}

void tnk__restart_over(tnk__endpoint_t *endpoint) {
  tnk__list_t *node;

  endpoint->restart.is_suspected = 0;
  while ((node = tnk__list_pop(&endpoint->restart.held)) != NULL) {
    tnk__reacher_t *reacher = tnk__container_of(node, tnk__reacher_t, link);
    void (*fn)(tnk__timer_t * timer) = reacher->timer->fn;

    tnk__timer_stop(reacher->timer);
    tnk__timer_start(endpoint->context, reacher->timer, 0, fn);
  }
}

/* Explains the waits of an active call. */
#include "lib/client/call/call_private.h"

#include "lib/client/call/auth.h"

void tnk__call_explain_last(const tnk__call_t *call, tnk__text_t *out) {
  if (call->now.last_status != 0)
    tnk__text_printf(out, "HTTP %d", call->now.last_status);
  else
    tnk__text_printf(out, "%s", tnk_strerror(call->now.last_err));
}

static void explain_pause(const tnk__call_t *call, uint64_t now,
                          tnk__text_t *out) {
  if (tnk__restart_holds(call) && !tnk__list_empty(&call->reacher.link)) {
    tnk__text_printf(out, "waits until a heartbeat has been answered, because "
                          "the server refused connections, since ");
    tnk__text_time(out, now - call->now.since_ms);
    return;
  }
  if (call->now.last_status == 402)
    tnk__text_printf(out, "pauses because the service refuses for billing "
                          "reasons (HTTP 402)");
  else {
    tnk__text_printf(out, "pauses after attempt %u failed (",
                     call->tries.n_attempts);
    tnk__call_explain_last(call, out);
    tnk__text_printf(out, ")");
  }
  tnk__text_printf(out, ", attempt %u follows in ", call->tries.n_attempts + 1);
  tnk__text_time(out, tnk__timer_left_ms(&call->timer, now));
  tnk__reach_explain(call->endpoint, &call->reacher, out);
}

static void explain_exchange(const tnk__call_t *call, uint64_t now,
                             tnk__text_t *out) {
  tnk__exchange_describe(&call->exchange, out);
  tnk__text_printf(out, ", attempt %u, since ", call->tries.n_attempts);
  tnk__text_time(out, now - call->now.since_ms);
  if (call->tries.n_attempts > 1 &&
      (call->now.last_status != 0 || call->now.last_err != TNK_OK)) {
    tnk__text_printf(out, "; the one before failed (");
    tnk__call_explain_last(call, out);
    tnk__text_printf(out, ")");
  }
  if (call->endpoint->ended_session != NULL)
    tnk__text_printf(out, "; the server has ended session %s",
                     call->endpoint->ended_session);
}

void tnk__call_explain(const tnk__call_t *call, tnk__text_t *out) {
  const uint64_t now = tnk__context_now_ms(call->endpoint->context);

  switch ((tnk__call_state_t)call->now.state) {
  case TNK__CALL_WAITING:
    call->endpoint->auth->explain(call->endpoint->auth, out);
    break;
  case TNK__CALL_SENDING:
    explain_exchange(call, now, out);
    break;
  case TNK__CALL_PAUSING:
    explain_pause(call, now, out);
    break;
  case TNK__CALL_FAILING:
    tnk__text_printf(out, "cannot be sent and is about to fail: %s",
                     call->early->pub.text);
    break;
  case TNK__CALL_DOUBTING:
    tnk__text_printf(out, "was refused (");
    tnk__call_explain_last(call, out);
    tnk__text_printf(out, "); the service is asked whether the session still "
                          "exists, since ");
    tnk__text_time(out, now - call->now.since_ms);
    break;
  case TNK__CALL_READY:
  case TNK__CALL_IDLE:
  case TNK__CALL_DECIDING:
    tnk__text_printf(out, "is about to go on");
    break;
  }
}

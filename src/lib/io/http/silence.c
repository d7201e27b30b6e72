/* SPDX-License-Identifier: MIT */
#include "lib/io/http/silence.h"

#include "lib/base/limits.h"
#include "lib/io/http/conn.h"
#include "lib/io/http/exchange.h"
#include "lib/io/http/speak.h"
#include "lib/policy/bounds.h"

/*
 * An exchange on a connection sends, waits for the head of the response, or
 * receives its body. Progress of sending can be queried but is not reported.
 * While the request is sent, the timer therefore checks TNK__LOOKS times within
 * the timeout. All other progress is reported.
 *
 * An exchange that waits for a connection makes no progress of its own. It may
 * wait as long as others that share its connections make progress. Without this
 * rule it would never end if the peer keeps connections open and accepts no
 * request on them.
 */

static uint64_t now_of(const tnk__exchange_t *ex) {
  return tnk__context_now_ms(ex->http->context);
}

static int has_head(const tnk__exchange_t *ex) {
  return ex->answer != NULL && ex->answer->status != 0;
}

static int is_sending(const tnk__exchange_t *ex) {
  return !has_head(ex) && tnk__conn_is_sending(ex);
}

static uint64_t look_ms(const tnk__exchange_t *ex) {
  return ex->timeout_ms / TNK__LOOKS + 1;
}

uint64_t tnk__silence_first_ms(const tnk__exchange_t *ex) {
  return is_sending(ex) ? look_ms(ex) : ex->timeout_ms;
}

/* A peer that sends just enough bytes not to be silent could continue for
 * days. */
static int is_too_slow(const tnk__exchange_t *ex) {
  const uint64_t ms = now_of(ex) - ex->phase_ms;
  uint64_t n;

  if (ms < TNK__SLOW_MS || ex->is_streamed)
    return 0;
  if (is_sending(ex))
    n = ex->n_seen;
  else if (has_head(ex))
    n = ex->answer->body.len;
  else
    return 0; /* the wait for a head has its own limit */
  return n < ms / 1000 * TNK__MIN_BYTES_PER_S;
}

static void look(tnk__exchange_t *ex) {
  const uint64_t n = is_sending(ex) ? tnk__conn_n_sent(ex) : ex->n_seen;

  if (n > ex->n_seen) {
    tnk__exchange_note_moved(ex, now_of(ex));
    if (ex->lane == TNK__LANE_TRAIN)
      ex->http->upload_ms = now_of(ex);
  }
  ex->n_seen = n;
}

/* A slow response is checked again when its rate is known, however early the
 * last check was. */
static uint64_t until_slow_ms(const tnk__exchange_t *ex) {
  const uint64_t ms = now_of(ex) - ex->phase_ms;

  return has_head(ex) && ms < TNK__SLOW_MS ? TNK__SLOW_MS - ms : UINT64_MAX;
}

uint64_t tnk__silence_wait_left_ms(const tnk__exchange_t *ex) {
  const uint64_t still_ms = now_of(ex) - tnk__speak_moved_ms(ex->pool);
  const uint32_t waited_ms = (uint32_t)now_of(ex) - ex->since_ms;
  const uint64_t silent_ms = still_ms < waited_ms ? still_ms : waited_ms;

  return silent_ms < ex->timeout_ms ? ex->timeout_ms - silent_ms : 0;
}

uint64_t tnk__silence_left_ms(tnk__exchange_t *ex) {
  uint64_t silent_ms;
  uint64_t left_ms;

  if (ex->state == TNK__EXCHANGE_WAITING)
    return tnk__silence_wait_left_ms(ex);
  look(ex);
  silent_ms = now_of(ex) - ex->moved_ms;
  if (silent_ms >= ex->timeout_ms || is_too_slow(ex))
    return 0;
  left_ms = ex->timeout_ms - silent_ms;
  if (is_sending(ex) && left_ms > look_ms(ex))
    left_ms = look_ms(ex);
  return left_ms < until_slow_ms(ex) ? left_ms : until_slow_ms(ex);
}

uint64_t tnk__exchange_n_moved(const tnk__exchange_t *ex) {
  uint64_t n = ex->answer != NULL ? ex->answer->body.len : 0;

  if (ex->state == TNK__EXCHANGE_ACTIVE && ex->conn != NULL)
    n += tnk__conn_n_sent(ex);
  return n;
}

/* ---- Messages ---- */

void tnk__silence_put_sent(const tnk__exchange_t *ex, tnk__text_t *out) {
  const uint64_t size = tnk__exchange_size(ex);
  const uint64_t n = tnk__conn_n_sent(ex);

  tnk__text_printf(out, "%u%% of ",
                   (unsigned)(size > 0 && n < size ? n * 100 / size : 100));
  tnk__text_bytes(out, size);
}

void tnk__silence_explain(const tnk__exchange_t *ex, tnk__text_t *out) {
  if (is_too_slow(ex)) {
    tnk__text_printf(out, "too slow, after ");
    tnk__text_time(out, now_of(ex) - ex->phase_ms);
  } else if (is_sending(ex)) {
    tnk__text_printf(out, "no byte of the request went out for ");
    tnk__text_time(out, now_of(ex) - ex->moved_ms);
  } else {
    tnk__text_printf(out, has_head(ex) ? "the answer stopped for "
                                       : "no answer within ");
    tnk__text_time(out, ex->timeout_ms);
  }
  if (has_head(ex)) {
    tnk__text_printf(out, "; ");
    tnk__text_bytes(out, ex->answer->body.len);
    tnk__text_printf(out, " of it had come");
  } else if (is_sending(ex) || tnk__exchange_size(ex) >= TNK__MIN_UPLOAD) {
    tnk__text_printf(out, "; ");
    tnk__silence_put_sent(ex, out);
    tnk__text_printf(out, " were sent");
  }
}

#include "task/session/heartbeat.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "codec/message/calls_session.h"

enum { BEAT_MS = 10000, WARN_MS = 120000, MAX_BODY = 1024 * 1024 };

static tnk__context_t *context_of(const tnk__heartbeat_t *heartbeat) {
  return heartbeat->call.endpoint->context;
}

/* A server that was started anew does not know the session any more. Before the
 * first good answer a 404 may mean that it has no such call. */
static int is_end(const tnk__heartbeat_t *heartbeat, int status) {
  return status == 410 || (status == 404 && heartbeat->was_answered);
}

static void ask(tnk__heartbeat_t *heartbeat);

/* What an answer says to who has asked; while none comes they wait for the
 * next heartbeat. */
static void tell(tnk__heartbeat_t *heartbeat, const tnk__reply_t *reply) {
  if (!heartbeat->is_asking || (reply->error != NULL && reply->status == 0 &&
                                tnk_err_is_retryable(reply->error->pub.code)))
    return;
  heartbeat->is_asking = 0;
  if (heartbeat->kept != NULL)
    heartbeat->kept(heartbeat);
}

/* Log once that heartbeats fail, until one succeeds. An outage of the whole
 * service has been reported already. */
static void warn_once(tnk__heartbeat_t *heartbeat, uint64_t now,
                      const char *why) {
  if (heartbeat->has_warned || tnk__reach_is_out(heartbeat->call.endpoint))
    return;
  heartbeat->has_warned = 1;
  tnk__log(&context_of(heartbeat)->logger, TNK_LOG_WARN, "session",
           "%s: no heartbeat has succeeded for %u s: %s", heartbeat->session_id,
           (unsigned)((now - heartbeat->ok_ms) / 1000), why);
}

static void on_answer(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__heartbeat_t *heartbeat = tnk__container_of(call, tnk__heartbeat_t, call);
  tnk__context_t *context = context_of(heartbeat);
  const uint64_t now = tnk__context_now_ms(context);

  if (reply->error == NULL) {
    heartbeat->ok_ms = now;
    heartbeat->was_answered = 1;
    heartbeat->has_warned = 0;
  } else if (is_end(heartbeat, reply->status)) {
    tnk__log(&context->logger, TNK_LOG_INFO, "session",
             "%s: the server has ended it; no more heartbeats: %s",
             heartbeat->session_id, reply->error->pub.text);
    heartbeat->ended(heartbeat, reply->error);
    return;
  } else if (now - heartbeat->ok_ms > WARN_MS) {
    warn_once(heartbeat, now, reply->error->pub.text);
  }
  if (heartbeat->is_asked) {
    ask(heartbeat);
    return;
  }
  tnk__heartbeat_begin(heartbeat);
  tell(heartbeat, reply);
}

static void on_due(tnk__timer_t *timer) {
  tnk__call_start(tnk__container_of(timer, tnk__call_t, timer), on_answer);
}

static void ask(tnk__heartbeat_t *heartbeat) {
  tnk__call_t *call = &heartbeat->call;

  heartbeat->is_asked = 0;
  heartbeat->is_asking = 1;
  tnk__timer_stop(&call->timer);
  tnk__call_start(call, on_answer);
}

void tnk__heartbeat_ask(tnk__heartbeat_t *heartbeat) {
  if (heartbeat->is_asking)
    return;
  if (tnk__call_is_active(&heartbeat->call))
    heartbeat->is_asked = 1;
  else
    ask(heartbeat);
}

void tnk__heartbeat_open(tnk__heartbeat_t *heartbeat,
                         const tnk_allocator_t *alloc) {
  memset(heartbeat, 0, sizeof(*heartbeat));
  tnk__buf_init(&heartbeat->body, alloc, MAX_BODY);
}

int tnk__heartbeat_prepare(tnk__heartbeat_t *heartbeat,
                           tnk__endpoint_t *endpoint, const char *session_id) {
  tnk__call_t *call = &heartbeat->call;

  tnk__buf_clear(&heartbeat->body);
  tnk__heartbeat_write(&heartbeat->body, session_id);
  if (heartbeat->body.err != TNK_OK)
    return TNK_ENOMEM;
  heartbeat->session_id = session_id;
  tnk__call_init(call, endpoint, TNK__ROUTE_HEARTBEAT, "session_heartbeat");
  call->once = 1;
  call->background = 1;
  call->body = heartbeat->body.data;
  call->body_len = heartbeat->body.len;
  heartbeat->ok_ms = tnk__context_now_ms(endpoint->context);
  return TNK_OK;
}

void tnk__heartbeat_begin(tnk__heartbeat_t *heartbeat) {
  tnk__timer_start_background(context_of(heartbeat), &heartbeat->call.timer,
                              BEAT_MS, on_due);
}

void tnk__heartbeat_stop(tnk__heartbeat_t *heartbeat) {
  tnk__call_cancel(&heartbeat->call);
  heartbeat->is_asked = 0;
  heartbeat->is_asking = 0;
}

void tnk__heartbeat_close(tnk__heartbeat_t *heartbeat) {
  tnk__heartbeat_stop(heartbeat);
  tnk__buf_deinit(&heartbeat->body);
}

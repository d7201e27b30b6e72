/* SPDX-License-Identifier: MIT */
#include "lib/client/session/heartbeat.h"

#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/wire/message/calls_session.h"

enum {
  BEAT_MS = 10000,
  URGENT_MS = 2000,
  WARN_MS = 120000,
  MAX_BODY = 1024 * 1024
};

static tnk__context_t *context_of(const tnk__heartbeat_t *heartbeat) {
  return heartbeat->call.endpoint->context;
}

static uint64_t route_bit(const tnk__heartbeat_t *heartbeat) {
  return tnk__route_bit(heartbeat->call.request.route);
}

/* Returns whether the message of a refusal is about a session. A server without
 * heartbeats may repeat the path, which contains that word too. */
static int is_about_session(const tnk__heartbeat_t *heartbeat,
                            const char *message) {
  static const char word[] = "session";
  static const char path[] = "session_heartbeat";

  if (message == NULL)
    return 0;
  if (strstr(message, heartbeat->session_id) != NULL)
    return 1;
  for (; *message != '\0'; message++)
    if (strncasecmp(message, word, strlen(word)) == 0 &&
        strncasecmp(message, path, strlen(path)) != 0)
      return 1;
  return 0;
}

/* A server that was restarted does not know the session any more. A 404 may
 * also mean that the server has no heartbeats at all. It has them if it ever
 * accepted one, in this session or in an earlier one. Otherwise the message of
 * the refusal decides. */
static int is_end(const tnk__heartbeat_t *heartbeat,
                  const tnk__reply_t *reply) {
  if (reply->status != 404 || reply->is_page)
    return reply->status == 410;
  return (heartbeat->call.endpoint->offered & route_bit(heartbeat)) != 0 ||
         is_about_session(heartbeat, reply->error->pub.message);
}

static void ask(tnk__heartbeat_t *heartbeat);

/* A server that is starting responds with 5xx for a while. */
static int is_answer(const tnk__heartbeat_t *heartbeat,
                     const tnk__reply_t *reply) {
  if (reply->error == NULL)
    return 1;
  if (heartbeat->call.endpoint->restart.is_suspected)
    return reply->status / 100 == 4;
  return reply->status != 0 || !tnk_err_is_retryable(reply->error->pub.code);
}

/* Report a response to the calls that wait for it. Without a response they wait
 * for the next heartbeat. */
static void tell(tnk__heartbeat_t *heartbeat, const tnk__reply_t *reply) {
  if ((!heartbeat->is_asking &&
       !heartbeat->call.endpoint->restart.is_suspected) ||
      !is_answer(heartbeat, reply))
    return;
  heartbeat->is_asking = 0;
  heartbeat->call.request.background = 1;
  if (heartbeat->kept != NULL)
    heartbeat->kept(heartbeat);
}

/* Log once that heartbeats fail, until one succeeds. An outage of the whole
 * service has already been reported. */
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
    heartbeat->has_warned = 0;
    call->endpoint->offered |= route_bit(heartbeat);
  } else if (is_end(heartbeat, reply)) {
    heartbeat->is_asked = heartbeat->is_asking = 0;
    tnk__log(&context->logger, TNK_LOG_INFO, "session",
             "%s: the server ended the session, so heartbeats stop: %s",
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
  call->request.background = 0; /* a call waits for it */
  tnk__timer_stop(&call->timer);
  tnk__call_start(call, on_answer);
}

void tnk__heartbeat_ask(tnk__heartbeat_t *heartbeat) {
  if (!tnk__call_is_active(&heartbeat->call))
    ask(heartbeat);
  else if (!heartbeat->is_asking)
    heartbeat->is_asked = 1;
}

int tnk__heartbeat_is_asked(const tnk__heartbeat_t *heartbeat) {
  return heartbeat->is_asked || heartbeat->is_asking;
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
  call->request.once = 1;
  call->request.background = 1;
  call->request.body = heartbeat->body.data;
  call->request.body_len = heartbeat->body.len;
  heartbeat->ok_ms = tnk__context_now_ms(endpoint->context);
  return TNK_OK;
}

void tnk__heartbeat_begin(tnk__heartbeat_t *heartbeat) {
  const int is_urgent = heartbeat->call.endpoint->restart.is_suspected;

  tnk__timer_start_background(context_of(heartbeat), &heartbeat->call.timer,
                              is_urgent ? URGENT_MS : BEAT_MS, on_due);
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

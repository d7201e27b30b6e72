/* SPDX-License-Identifier: MIT */
/* Rewards, as agents and trainers set them. */
#include <float.h>
#include <math.h>

#include "gateway/send.h"
#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* Find the turn that is named, or the latest turn of the session. */
static tnk__gw_turn_t *find_turn(const tnk_gateway_t *gateway,
                                 const char *session_name, const char *name,
                                 uint64_t choice) {
  tnk__gw_record_t *record = gateway->record;
  const tnk__gw_session_t *session;
  tnk__gw_turn_t *first;
  tnk__gw_turn_t *turn;
  uint64_t number;

  if (name == NULL) {
    session = tnk__gw_record_session(record, session_name);
    return session != NULL && !tnk__list_empty(&session->turns)
               ? tnk__container_of(session->turns.prev, tnk__gw_turn_t, link)
               : NULL;
  }
  if (tnk__gw_name_read(name, &number) != 0)
    return NULL;
  first = tnk__gw_record_turn(record, number);
  turn = tnk__gw_record_turn(record, number + choice);
  /* A number beyond its choices would be a turn of another request. */
  return first != NULL && turn != NULL && turn->request == first->request
             ? turn
             : NULL;
}

/* ---- Calls in the process ---- */

int tnk_gateway_reward(tnk_gateway_t *gateway, const char *session,
                       const char *id, uint32_t choice, double reward) {
  tnk__gw_turn_t *turn;

  if (gateway == NULL || gateway->is_closing || isnan(reward) ||
      fabs(reward) > FLT_MAX)
    return TNK_EINVAL;
  turn = find_turn(gateway, session != NULL ? session : "default", id, choice);
  return turn != NULL ? tnk__gw_record_reward(gateway->record, turn, reward)
                      : TNK_ENOTFOUND;
}

/* ---- Requests of clients ---- */

/* A reward is written to the disk before its request is answered. */
typedef struct {
  tnk__gw_waiter_t waiter;
  tnk_gateway_t *gateway;
  tnk__srv_req_t *req; /* NULL: the client has hung up */
} reward_t;

static void on_reward_gone(tnk__srv_req_t *req, void *user) {
  (void)req;
  ((reward_t *)user)->req = NULL;
}

static void on_reward(tnk__gw_waiter_t *waiter, int err) {
  reward_t *reward = tnk__container_of(waiter, reward_t, waiter);
  tnk__srv_req_t *req = reward->req;

  tnk__free(&reward->gateway->alloc, reward);
  if (req == NULL)
    return;
  if (err == TNK_ECLOSED)
    tnk__srv_req_drop(req);
  else
    tnk__srv_req_reply_text(
        req, err == TNK_OK ? 200 : 500, "application/json",
        err == TNK_OK ? "{\"ok\":true}"
                      : "{\"error\":{\"message\":\"the reward cannot be "
                        "recorded\",\"type\":\"server_error\"}}");
}

static void confirm_reward(const tnk__gw_call_t *call) {
  reward_t *reward = tnk__calloc(&call->gateway->alloc, 1, sizeof(*reward));
  int written;

  if (reward == NULL) {
    tnk__gw_call_refuse(call, 500, NULL, "out of memory");
    return;
  }
  reward->gateway = call->gateway;
  reward->req = call->req;
  reward->waiter.done = on_reward;
  written = tnk__gw_journal_wait(tnk__gw_record_journal(call->gateway->record),
                                 &reward->waiter);
  if (written != 0)
    on_reward(&reward->waiter, written < 0 ? written : TNK_OK);
  else
    tnk__srv_req_park(call->req, on_reward_gone, reward);
}

/* Returns 0, or -1 if the body is not a reward. */
static int read_reward(const json_t *body, double *value, const char **name,
                       int64_t *choice) {
  return tnk__json_get_double(body, "reward", value) == TNK__JSON_FOUND &&
                 fabs(*value) <= FLT_MAX &&
                 tnk__json_get_text(body, "id", name) != TNK__JSON_WRONG &&
                 tnk__json_get_int(body, "choice", 0, TNK__GW_MAX_CHOICES,
                                   choice) != TNK__JSON_WRONG
             ? 0
             : -1;
}

void tnk__gw_reward_take(const tnk__gw_call_t *call) {
  const tnk__buf_t *bytes = &call->req->body;
  const char *name = NULL;
  int64_t choice = 0;
  double value = NAN;
  json_t *body = NULL;
  tnk__gw_turn_t *turn = NULL;
  int err = tnk__json_parse_object(&body, bytes->data, bytes->len);

  if (err != TNK_OK || read_reward(body, &value, &name, &choice) != 0) {
    tnk__gw_call_refuse(
        call, 400, NULL,
        "the body must be an object with a number \"reward\", and perhaps a "
        "text \"id\" and a whole number \"choice\"");
  } else if ((turn = find_turn(call->gateway, tnk__gw_call_session(call), name,
                               (uint64_t)choice)) == NULL) {
    tnk__gw_call_refuse(call, 404, NULL, "there is no such answer");
  } else {
    err = tnk__gw_record_reward(call->gateway->record, turn, value);
    if (err != TNK_OK)
      tnk__gw_call_refuse(call, 500, NULL, "the reward cannot be recorded: %s",
                          tnk_strerror(err));
    else
      confirm_reward(call);
  }
  json_decref(body);
}

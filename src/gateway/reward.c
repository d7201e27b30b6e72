/* SPDX-License-Identifier: MIT */
/* Rewards, as agents and trainers set them. */
#include <float.h>
#include <math.h>
#include <stdio.h>

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
static void confirm_reward(const tnk__gw_call_t *call) {
  tnk__buf_t body;

  tnk__buf_init(&body, &call->gateway->alloc, 64);
  if (tnk__buf_text(&body, "{\"ok\":true}") == TNK_OK)
    tnk__gw_confirm(call, &body, "the reward");
  else
    tnk__gw_call_refuse(call, 500, NULL, "out of memory");
  tnk__buf_deinit(&body);
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
  tnk__gw_fault_t fault;
  int err = tnk__json_parse_object(&body, bytes->data, bytes->len);

  if (err != TNK_OK || read_reward(body, &value, &name, &choice) != 0) {
    tnk__gw_call_refuse(
        call, 400, NULL,
        "the body must be an object with a number \"reward\", and perhaps a "
        "text \"id\" and a whole number \"choice\"");
  } else if (name == NULL &&
             tnk__gw_check_session(call->gateway, tnk__gw_call_session(call),
                                   &fault) != 0) {
    tnk__gw_refuse(call->gateway, call->req, call->api, &fault);
  } else if ((turn = find_turn(call->gateway, tnk__gw_call_session(call), name,
                               (uint64_t)choice)) == NULL ||
             !tnk__gw_may_reward(call, turn->session->name)) {
    tnk__gw_call_refuse(call, 404, NULL, "there is no such answer");
  } else {
    tnk__gw_call_t named = *call; /* an id may be of another session */

    (void)snprintf(named.session, sizeof(named.session), "%s",
                   turn->session->name);
    err = tnk__gw_record_reward(call->gateway->record, turn, value);
    if (err != TNK_OK)
      tnk__gw_call_refuse(call, 500, NULL, "the reward cannot be recorded: %s",
                          tnk_strerror(err));
    else
      confirm_reward(&named);
  }
  json_decref(body);
}

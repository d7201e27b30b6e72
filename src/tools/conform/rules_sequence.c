/* SPDX-License-Identifier: MIT */
/* Rules about sequence numbers: repeats, gaps, and the number of a failed
 * request. Each rule uses a separate model, because a server may not recover
 * from it. */
#include <stdio.h>
#include <string.h>

#include "lib/base/text.h"
#include "tools/conform/state.h"

/* Tell how an accepted or refused request ended. */
static conform_verdict_t tell_end(conform_t *c, conform_verdict_t verdict) {
  return conform_tell(c, verdict, "%s", c->end.how);
}

static int is_conflict(const conform_end_t *end) {
  return end->fate == CONFORM_FAILED &&
         (end->last == NULL || end->last->status == 409 ||
          end->last->status == 422 || end->last->status == 400);
}

/* A model whose pass number 1 is accepted, with the id of that request. */
static int began(conform_t *c) {
  const conform_call_t *call;

  if (!conform_needs_model(c))
    return 0;
  call = conform_pass(c, c->model->id, 1, NULL);
  c->id = conform_text(call, "request_id");
  if (conform_is_ok(call) && c->id != NULL)
    return 1;
  conform_other(c, call, "a request_id");
  return 0;
}

/* Three requests have a result; the first one has this number. */
static conform_verdict_t all_run(conform_t *c, conform_call_t *calls[3],
                                 size_t number, const char *what) {
  for (size_t i = 0; i < 3; i++)
    if (conform_follow(c, calls[i], 0) != CONFORM_RESULT)
      return conform_tell(c, CONFORM_DIFFERS, "number %zu: %s", i + number,
                          c->end.how);
  return conform_tell(c, CONFORM_HOLDS, "%s", what);
}

static conform_verdict_t in_order(conform_t *c) {
  conform_call_t *calls[3];

  /* All are sent before waiting for any result. */
  calls[0] = conform_step(c, c->model->id, 2);
  calls[1] = conform_pass(c, c->model->id, 3, NULL);
  calls[2] = conform_step(c, c->model->id, 4);
  return all_run(c, calls, 2, "1 to 4");
}

/* The answer to a repeat: with the same request, or with another one. */
static conform_verdict_t same_request(conform_t *c) {
  const char *other = conform_text(c->call, "request_id");

  if (conform_is_ok(c->call) && other != NULL && strcmp(c->id, other) == 0)
    return conform_tell(c, CONFORM_HOLDS, "the same request");
  if (conform_follow(c, c->call, 0) == CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "it ran twice");
  return tell_end(c, is_conflict(&c->end) ? CONFORM_ALLOWED : CONFORM_DIFFERS);
}

static conform_call_t *repeat_pass(conform_t *c) {
  const conform_pass_t pass = {.idempotency_key = c->about};

  return conform_pass(c, c->model->id, 1, &pass);
}

static int began_step(conform_t *c) {
  const conform_call_t *step;

  if (!began(c))
    return 0;
  step = conform_step(c, c->model->id, 2);
  c->id = conform_text(step, "request_id");
  if (conform_is_ok(step) && c->id != NULL)
    return 1;
  conform_other(c, step, "a request_id");
  return 0;
}

static conform_call_t *repeat_step(conform_t *c) {
  return conform_step(c, c->model->id, 2);
}

/* Other bytes, or another operation, with a used number. */
static conform_call_t *other_bytes(conform_t *c) {
  const conform_pass_t pass = {.forward_only = 1};

  return conform_pass(c, c->model->id, 1, &pass);
}

static conform_call_t *other_operation(conform_t *c) {
  return conform_step(c, c->model->id, 1);
}

static conform_verdict_t taken(conform_t *c) {
  conform_follow(c, c->call, 0);
  if (c->end.fate == CONFORM_FAILED && c->end.last == NULL)
    return conform_tell(c, CONFORM_HOLDS, "rejected with %d", c->call->status);
  if (is_conflict(&c->end))
    return tell_end(c, CONFORM_ALLOWED);
  if (c->end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "it ran");
  return tell_end(c, CONFORM_DIFFERS);
}

/* ---- Gaps ---- */

static void note_first(conform_gap_t *gap, const conform_call_t *poll,
                       const conform_end_t *end) {
  tnk__text_t state;
  const char *text = conform_text(poll, "queue_state");

  gap->first = end->fate;
  gap->first_status = poll->status;
  gap->is_json = poll->json != NULL;
  gap->has_id = conform_text(poll, "request_id") != NULL;
  gap->held_ms = poll->ms;
  memcpy(gap->first_how, end->how, sizeof(end->how));
  tnk__text_init(&state, gap->state, sizeof(gap->state));
  tnk__text_printf(&state, "%s", text != NULL ? text : "");
}

int conform_needs_gap(conform_t *c) {
  conform_gap_t *gap = &c->gap;
  const conform_call_t *late;
  const conform_call_t *poll;

  if (gap->is_tried)
    return 1;
  if (!conform_needs_model(c))
    return 0;
  gap->is_tried = 1;
  late = conform_pass(c, c->model->id, 2, NULL);
  gap->is_accepted =
      conform_is_ok(late) && conform_text(late, "request_id") != NULL;
  snprintf(gap->refused, sizeof(gap->refused), "%s", late->how);
  if (!gap->is_accepted)
    return 1;
  poll = conform_poll(c, conform_text(late, "request_id"), 1, 0);
  conform_fate_of(poll, &c->end);
  note_first(gap, poll, &c->end);
  gap->before = conform_follow(c, conform_pass(c, c->model->id, 1, NULL), 1);
  gap->then = conform_follow(c, late, 1);
  memcpy(gap->then_how, c->end.how, sizeof(c->end.how));
  return 1;
}

/* By default clients send the first request of a pass last. */
static int wants_any_order(const conform_t *c) {
  return !json_is_false(json_object_get(c->flags, "parallel_fwdbwd_chunks"));
}

static conform_verdict_t gap_held(conform_t *c) {
  const conform_gap_t *gap = &c->gap;

  if (!gap->is_accepted)
    return conform_tell(c, CONFORM_DIFFERS,
                        "number 2 without 1 is rejected: %s", gap->refused);
  if (gap->first == CONFORM_PENDING && gap->before == CONFORM_RESULT &&
      gap->then == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "2 waits for 1");
  if (gap->first == CONFORM_RESULT)
    return conform_tell(c, CONFORM_ALLOWED, "2 runs on arrival");
  if (gap->first == CONFORM_FAILED)
    return conform_tell(c,
                        wants_any_order(c) ? CONFORM_DIFFERS : CONFORM_ALLOWED,
                        "2 %s", gap->first_how);
  return conform_tell(c, CONFORM_DIFFERS, "2 after 1: %s", gap->then_how);
}

static conform_verdict_t gap_polled(conform_t *c) {
  const conform_gap_t *gap = &c->gap;

  if (!gap->is_accepted)
    return conform_tell(c, CONFORM_SKIPPED, "it is rejected");
  if (gap->first_status == 404 || gap->first_status == 410)
    return conform_tell(c, CONFORM_DIFFERS, "%d", gap->first_status);
  if (gap->first == CONFORM_LOST)
    return conform_tell(c, CONFORM_DIFFERS, "%s", gap->first_how);
  return conform_tell(c, CONFORM_HOLDS, "%d", gap->first_status);
}

static int any_order(conform_t *c) {
  if (wants_any_order(c))
    return conform_needs_model(c);
  conform_tell(c, CONFORM_ABSENT, "client/config requires order");
  return 0;
}

static conform_verdict_t first_last(conform_t *c) {
  conform_call_t *calls[3];

  calls[1] = conform_pass(c, c->model->id, 2, NULL);
  calls[0] = conform_pass(c, c->model->id, 1, NULL);
  calls[2] = conform_step(c, c->model->id, 3);
  return all_run(c, calls, 1, "2, 1, 3");
}

/* ---- Numbers of failed requests ---- */

/* Find out what happens to number 2 after number 1 has failed and, if number 2
 * has no result, whether number 1 can be sent again. */
static conform_verdict_t judge_next(conform_t *c, const char *what) {
  const conform_call_t *call = conform_pass(c, c->model->id, 2, NULL);
  const char *id = conform_text(call, "request_id");
  char how[200];

  if (conform_is_ok(call) && id != NULL)
    conform_follow_id(c, id, 1, 2000, &c->end);
  else
    conform_follow(c, call, 1);
  if (c->end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "%s; number 2 runs", what);
  snprintf(how, sizeof(how), "%.190s", c->end.how);
  call = conform_pass(c, c->model->id, 1, NULL);
  if (conform_follow(c, call, 1) != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS,
                        "%s; neither number 2 (%s) nor number 1 (%s) runs",
                        what, how, c->end.how);
  return conform_tell(c, CONFORM_ALLOWED,
                      "%s; number 2 does not run, number 1 does", what);
}

static conform_call_t *bad_load(conform_t *c) {
  return conform_load(c, c->model->id, 1, CONFORM_NO_WEIGHTS);
}

static conform_verdict_t after_failed(conform_t *c) {
  if (conform_follow(c, c->call, 0) != CONFORM_FAILED)
    return tell_end(c, CONFORM_DIFFERS);
  return judge_next(c, c->end.last != NULL ? "number 1 fails"
                                           : "number 1 is rejected");
}

/* A model whose number 1 is refused. */
static int refused_first(conform_t *c) {
  const conform_pass_t bad = {.loss = "tnk_conform_no_loss"};
  const conform_call_t *call;

  if (!conform_needs_model(c))
    return 0;
  call = conform_pass(c, c->model->id, 1, &bad);
  if (conform_is_refusal(call))
    return 1;
  conform_tell(c, CONFORM_SKIPPED,
               "an unknown loss is not rejected at once: %s", call->how);
  return 0;
}

static conform_verdict_t after_refused(conform_t *c) {
  return judge_next(c, "number 1 is rejected");
}

static conform_call_t *pass_one(conform_t *c) {
  return conform_pass(c, c->model->id, 1, NULL);
}

static conform_verdict_t refused_again(conform_t *c) {
  if (conform_follow(c, c->call, 1) == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "it runs then");
  return tell_end(c, is_conflict(&c->end) ? CONFORM_ALLOWED : CONFORM_DIFFERS);
}

/* ---- Invalid numbers ---- */

/* A step with a JSON value as its number. */
static conform_call_t *odd_number(conform_t *c) {
  json_t *body = conform_step_body(c->model->id, 1);

  if (c->about == NULL)
    json_object_del(body, "seq_id");
  else
    json_object_set_new(body, "seq_id",
                        json_loads(c->about, JSON_DECODE_ANY, NULL));
  return conform_post_json(c, "optim_step", body);
}

static conform_call_t *zero(conform_t *c) {
  return conform_pass(c, c->model->id, 0, NULL);
}

static conform_verdict_t odd(conform_t *c) {
  conform_follow(c, c->call, 0);
  if (c->end.fate == CONFORM_FAILED && c->end.last == NULL)
    return conform_tell(c, CONFORM_HOLDS, "rejected with %d", c->call->status);
  if (c->end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_ALLOWED, "it runs on arrival");
  return tell_end(c, c->end.fate == CONFORM_FAILED ? CONFORM_ALLOWED
                                                   : CONFORM_DIFFERS);
}

static conform_verdict_t apart(conform_t *c) {
  const conform_made_t *models[2] = {c->model, NULL};

  if (!conform_needs_model(c))
    return conform_told(c);
  models[1] = c->model;
  for (size_t i = 0; i < 2; i++)
    if (!conform_succeeds(c, conform_pass(c, models[i]->id, 1, NULL), 1))
      return conform_told(c);
  return conform_tell(c, CONFORM_HOLDS, "number 1 of both runs");
}

static const conform_rule_t rules[] = {
    {"seq-order", "requests run in order without waiting", "training 5.3",
     CONFORM_SPENDS, began, NULL, in_order, NULL},
    {"seq-models", "each model has its own numbers", "training 5.3",
     CONFORM_SPENDS, conform_needs_model, NULL, apart, NULL},
    {"seq-repeat", "a repeated pass is the same request", "training 5.3",
     CONFORM_SPENDS, began, repeat_pass, same_request, NULL},
    {"seq-repeat-key",
     "a repeated pass with the same idempotency key is the same request",
     "transport 2.2", CONFORM_SPENDS, began, repeat_pass, same_request,
     "tnk-conform-one-key"},
    {"seq-repeat-step", "a repeated step is the same request", "training 5.3",
     CONFORM_SPENDS, began_step, repeat_step, same_request, NULL},
    {"seq-other-bytes", "other bytes with a used number are rejected",
     "training 5.3", CONFORM_SPENDS, began, other_bytes, taken, NULL},
    {"seq-other-call", "another operation with a used number is rejected",
     "training 5.3", CONFORM_SPENDS, began, other_operation, taken, NULL},
    {"seq-gap", "a request is held until the gap before it closes",
     "training 5.3", CONFORM_SPENDS, conform_needs_gap, NULL, gap_held, NULL},
    {"seq-gap-poll", "a held request can be polled", "training 5.3",
     CONFORM_SPENDS, conform_needs_gap, NULL, gap_polled, NULL},
    {"seq-first-last", "the first request of a pass can arrive last",
     "training 5.3", CONFORM_SPENDS, any_order, NULL, first_last, NULL},
    {"seq-after-failed", "a failed request has used its number", "training 5.8",
     CONFORM_SPENDS, conform_needs_model, bad_load, after_failed, NULL},
    {"seq-after-refused", "a rejected request leaves no gap", "training 5.8",
     CONFORM_SPENDS, refused_first, NULL, after_refused, NULL},
    {"seq-refused-again", "the number of a rejected request can be used",
     "training 5.8", CONFORM_SPENDS, refused_first, pass_one, refused_again,
     NULL},
    {"seq-absent", "a request without a number is rejected", "training 5.3",
     CONFORM_SPENDS, conform_needs_model, odd_number, odd, NULL},
    {"seq-negative", "a negative number is rejected", "training 5.3",
     CONFORM_SPENDS, conform_needs_model, odd_number, odd, "-1"},
    {"seq-text", "a number that is a string is rejected", "training 5.6",
     CONFORM_SPENDS, conform_needs_model, odd_number, odd, "\"1\""},
    {"seq-null", "a number that is null is rejected", "training 5.6",
     CONFORM_SPENDS, conform_needs_model, odd_number, odd, "null"},
    {"seq-zero", "the number 0 is rejected, because numbers begin at 1",
     "protobuf 6.2", CONFORM_SPENDS, conform_needs_model, zero, odd, NULL},
};

const conform_group_t conform_sequence = {"sequence numbers", rules,
                                          sizeof(rules) / sizeof(*rules)};

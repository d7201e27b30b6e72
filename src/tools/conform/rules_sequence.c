/* Rules about sequence numbers: repeats, gaps, and the number of a failed
 * request. Each rule uses a separate model, because a server may not recover
 * from it. */
#include <stdio.h>
#include <string.h>

#include "lib/base/text.h"
#include "tools/conform/state.h"

/* Describe how an accepted or refused request ended. */
static conform_verdict_t tell_end(conform_t *c, conform_verdict_t verdict,
                                  const conform_end_t *end) {
  return conform_tell(c, verdict, "%s", end->how);
}

static int is_conflict(const conform_end_t *end) {
  return end->fate == CONFORM_FAILED &&
         (end->last == NULL || end->last->status == 409 ||
          end->last->status == 422 || end->last->status == 400);
}

/* A model whose pass number 1 is accepted. Returns NULL if the finding is
 * recorded already. */
static conform_made_t *began(conform_t *c, const char **id,
                             conform_verdict_t *verdict) {
  conform_made_t *model = conform_new_model(c);
  const conform_call_t *call;

  if (model == NULL) {
    *verdict = conform_skip(c);
    return NULL;
  }
  call = conform_pass(c, model->id, 1, NULL);
  *id = conform_text(call, "request_id");
  if (conform_is_ok(call) && *id != NULL)
    return model;
  *verdict = conform_other(c, call, "a request_id");
  return NULL;
}

static conform_verdict_t in_order(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  conform_end_t end = {0};
  const char *id;
  conform_made_t *model = began(c, &id, &verdict);
  const conform_call_t *calls[3];

  (void)rule;
  if (model == NULL)
    return verdict;
  /* All are sent before waiting for any answer. */
  calls[0] = conform_step(c, model->id, 2);
  calls[1] = conform_pass(c, model->id, 3, NULL);
  calls[2] = conform_step(c, model->id, 4);
  for (size_t i = 0; i < 3; i++) {
    conform_follow(c, calls[i], 0, &end);
    if (end.fate != CONFORM_RESULT)
      return conform_tell(c, CONFORM_DIFFERS, "number %zu: %s", i + 2, end.how);
  }
  return conform_tell(c, CONFORM_HOLDS, "1 to 4");
}

/* The answer to a repeat of number 1: with the same request, or with `call`. */
static conform_verdict_t judge_repeat(conform_t *c, const char *id,
                                      const conform_call_t *call) {
  const char *other = conform_text(call, "request_id");
  conform_end_t end = {0};

  if (conform_is_ok(call) && other != NULL && strcmp(id, other) == 0)
    return conform_tell(c, CONFORM_HOLDS, "the same request");
  conform_follow(c, call, 0, &end);
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "it was run twice");
  return tell_end(c, is_conflict(&end) ? CONFORM_ALLOWED : CONFORM_DIFFERS,
                  &end);
}

static conform_verdict_t repeat_pass(conform_t *c, const conform_rule_t *rule) {
  const conform_pass_t pass = {.idempotency_key = rule->about};
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const char *id;
  conform_made_t *model = began(c, &id, &verdict);

  if (model == NULL)
    return verdict;
  return judge_repeat(c, id, conform_pass(c, model->id, 1, &pass));
}

static conform_verdict_t repeat_step(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const char *id;
  conform_made_t *model = began(c, &id, &verdict);
  const conform_call_t *step;

  (void)rule;
  if (model == NULL)
    return verdict;
  step = conform_step(c, model->id, 2);
  id = conform_text(step, "request_id");
  if (!conform_is_ok(step) || id == NULL)
    return conform_other(c, step, "a request_id");
  return judge_repeat(c, id, conform_step(c, model->id, 2));
}

/* Other bytes, or another operation, with a used number. */
static conform_verdict_t judge_taken(conform_t *c, const conform_call_t *call) {
  conform_end_t end = {0};

  conform_follow(c, call, 0, &end);
  if (end.fate == CONFORM_FAILED && end.last == NULL)
    return conform_tell(c, CONFORM_HOLDS, "refused with %d", call->status);
  if (is_conflict(&end))
    return tell_end(c, CONFORM_ALLOWED, &end);
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "it was run");
  return tell_end(c, CONFORM_DIFFERS, &end);
}

static conform_verdict_t other_bytes(conform_t *c, const conform_rule_t *rule) {
  const conform_pass_t pass = {.forward_only = 1};
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const char *id;
  conform_made_t *model = began(c, &id, &verdict);

  (void)rule;
  if (model == NULL)
    return verdict;
  return judge_taken(c, conform_pass(c, model->id, 1, &pass));
}

static conform_verdict_t other_operation(conform_t *c,
                                         const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const char *id;
  conform_made_t *model = began(c, &id, &verdict);

  (void)rule;
  if (model == NULL)
    return verdict;
  return judge_taken(c, conform_step(c, model->id, 1));
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

const conform_gap_t *conform_try_gap(conform_t *c) {
  conform_gap_t *gap = &c->gap;
  conform_made_t *model;
  const conform_call_t *late;
  const conform_call_t *poll;
  conform_end_t end = {0};

  if (gap->is_tried)
    return gap;
  model = conform_new_model(c);
  if (model == NULL)
    return NULL;
  gap->is_tried = 1;
  late = conform_pass(c, model->id, 2, NULL);
  gap->is_accepted =
      conform_is_ok(late) && conform_text(late, "request_id") != NULL;
  snprintf(gap->refused, sizeof(gap->refused), "%s", late->how);
  if (!gap->is_accepted)
    return gap;
  poll = conform_poll(c, conform_text(late, "request_id"), 1, 0);
  conform_fate_of(poll, &end);
  note_first(gap, poll, &end);
  conform_follow(c, conform_pass(c, model->id, 1, NULL), 1, &end);
  gap->before = end.fate;
  conform_follow(c, late, 1, &end);
  gap->then = end.fate;
  memcpy(gap->then_how, end.how, sizeof(end.how));
  return gap;
}

/* By default clients send the first request of a pass last. */
static int wants_any_order(const conform_t *c) {
  return !json_is_false(json_object_get(c->flags, "parallel_fwdbwd_chunks"));
}

static conform_verdict_t gap_held(conform_t *c, const conform_rule_t *rule) {
  const conform_gap_t *gap = conform_try_gap(c);

  (void)rule;
  if (gap == NULL)
    return conform_skip(c);
  if (!gap->is_accepted)
    return conform_tell(c, CONFORM_DIFFERS, "number 2 without 1 is refused: %s",
                        gap->refused);
  if (gap->first == CONFORM_PENDING && gap->before == CONFORM_RESULT &&
      gap->then == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "2 waits for 1");
  if (gap->first == CONFORM_RESULT)
    return conform_tell(c, CONFORM_ALLOWED, "2 is run as it comes");
  if (gap->first == CONFORM_FAILED)
    return conform_tell(c,
                        wants_any_order(c) ? CONFORM_DIFFERS : CONFORM_ALLOWED,
                        "2 %s", gap->first_how);
  return conform_tell(c, CONFORM_DIFFERS, "2 behind 1: %s", gap->then_how);
}

static conform_verdict_t gap_polled(conform_t *c, const conform_rule_t *rule) {
  const conform_gap_t *gap = conform_try_gap(c);

  (void)rule;
  if (gap == NULL)
    return conform_skip(c);
  if (!gap->is_accepted)
    return conform_tell(c, CONFORM_SKIPPED, "it is refused");
  if (gap->first_status == 404 || gap->first_status == 410)
    return conform_tell(c, CONFORM_DIFFERS, "%d", gap->first_status);
  if (gap->first == CONFORM_LOST)
    return conform_tell(c, CONFORM_DIFFERS, "%s", gap->first_how);
  return conform_tell(c, CONFORM_HOLDS, "%d", gap->first_status);
}

static conform_verdict_t first_last(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *model;
  const conform_call_t *calls[3];
  conform_end_t end = {0};

  (void)rule;
  if (!wants_any_order(c))
    return conform_tell(c, CONFORM_ABSENT, "client/config asks for order");
  model = conform_new_model(c);
  if (model == NULL)
    return conform_skip(c);
  calls[1] = conform_pass(c, model->id, 2, NULL);
  calls[0] = conform_pass(c, model->id, 1, NULL);
  calls[2] = conform_step(c, model->id, 3);
  for (size_t i = 0; i < 3; i++) {
    conform_follow(c, calls[i], 0, &end);
    if (end.fate != CONFORM_RESULT)
      return conform_tell(c, CONFORM_DIFFERS, "number %zu: %s", i + 1, end.how);
  }
  return conform_tell(c, CONFORM_HOLDS, "2, 1, 3");
}

/* ---- Numbers of failed requests ---- */

/* What happens to `next` after number 1 has failed. If `next` has no result,
 * whether number 1 can be sent again. */
static conform_verdict_t judge_next(conform_t *c, const conform_made_t *model,
                                    const char *what) {
  const conform_call_t *call = conform_pass(c, model->id, 2, NULL);
  const char *id = conform_text(call, "request_id");
  conform_end_t end = {0};
  char how[200];

  if (conform_is_ok(call) && id != NULL)
    conform_follow_id(c, id, 1, 2000, &end);
  else
    conform_follow(c, call, 1, &end);
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "%s; number 2 is run", what);
  snprintf(how, sizeof(how), "%.190s", end.how);
  conform_follow(c, conform_pass(c, model->id, 1, NULL), 1, &end);
  if (end.fate != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS,
                        "%s; number 2 is not run (%s), nor number 1 (%s)", what,
                        how, end.how);
  return conform_tell(c, CONFORM_ALLOWED,
                      "%s; number 2 is not run, but number 1 again", what);
}

static conform_verdict_t after_failed(conform_t *c,
                                      const conform_rule_t *rule) {
  conform_made_t *model = conform_new_model(c);
  const conform_call_t *call;
  conform_end_t end = {0};

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  call = conform_load(c, model->id, 1, CONFORM_NO_WEIGHTS);
  conform_follow(c, call, 0, &end);
  if (end.fate != CONFORM_FAILED)
    return tell_end(c, CONFORM_DIFFERS, &end);
  return judge_next(c, model,
                    end.last != NULL ? "number 1 fails" : "1 is refused");
}

static conform_verdict_t after_refused(conform_t *c,
                                       const conform_rule_t *rule) {
  const conform_pass_t bad = {.loss = "tnk_conform_no_loss"};
  conform_made_t *model = conform_new_model(c);
  const conform_call_t *call;

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  call = conform_pass(c, model->id, 1, &bad);
  if (!conform_is_refusal(call))
    return conform_tell(c, CONFORM_SKIPPED,
                        "an unknown loss is not refused at once: %s",
                        call->how);
  return judge_next(c, model, "number 1 is refused");
}

static conform_verdict_t refused_again(conform_t *c,
                                       const conform_rule_t *rule) {
  const conform_pass_t bad = {.loss = "tnk_conform_no_loss"};
  conform_made_t *model = conform_new_model(c);
  const conform_call_t *call;
  conform_end_t end = {0};

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  call = conform_pass(c, model->id, 1, &bad);
  if (!conform_is_refusal(call))
    return conform_tell(c, CONFORM_SKIPPED,
                        "an unknown loss is not refused at once: %s",
                        call->how);
  conform_follow(c, conform_pass(c, model->id, 1, NULL), 1, &end);
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "it is run then");
  return tell_end(c, is_conflict(&end) ? CONFORM_ALLOWED : CONFORM_DIFFERS,
                  &end);
}

/* ---- Invalid numbers ---- */

static conform_verdict_t judge_odd(conform_t *c, const conform_call_t *call) {
  conform_end_t end = {0};

  conform_follow(c, call, 0, &end);
  if (end.fate == CONFORM_FAILED && end.last == NULL)
    return conform_tell(c, CONFORM_HOLDS, "refused with %d", call->status);
  if (end.fate == CONFORM_FAILED)
    return tell_end(c, CONFORM_ALLOWED, &end);
  if (end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_ALLOWED, "run as it comes");
  return tell_end(c, CONFORM_DIFFERS, &end);
}

/* A step with a JSON value as its number. */
static conform_verdict_t odd_number(conform_t *c, const conform_rule_t *rule) {
  const char *text = rule->about;
  conform_made_t *model = conform_new_model(c);
  json_t *body;

  if (model == NULL)
    return conform_skip(c);
  body = conform_step_body(model->id, 1);
  if (text == NULL)
    json_object_del(body, "seq_id");
  else
    json_object_set_new(body, "seq_id",
                        json_loads(text, JSON_DECODE_ANY, NULL));
  return judge_odd(c, conform_post(c, "optim_step", body));
}

static conform_verdict_t zero(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *model = conform_new_model(c);

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  return judge_odd(c, conform_pass(c, model->id, 0, NULL));
}

static conform_verdict_t apart(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *models[2];
  conform_end_t end = {0};

  (void)rule;
  for (size_t i = 0; i < 2; i++) {
    models[i] = conform_new_model(c);
    if (models[i] == NULL)
      return conform_skip(c);
  }
  for (size_t i = 0; i < 2; i++) {
    conform_follow(c, conform_pass(c, models[i]->id, 1, NULL), 1, &end);
    if (end.fate != CONFORM_RESULT)
      return tell_end(c, CONFORM_DIFFERS, &end);
  }
  return conform_tell(c, CONFORM_HOLDS, "number 1 of both is run");
}

static const conform_rule_t rules[] = {
    {"seq-order", "requests are run in order without waiting", "training 5.3",
     CONFORM_SPENDS, in_order, NULL},
    {"seq-models", "each model counts for itself", "training 5.3",
     CONFORM_SPENDS, apart, NULL},
    {"seq-repeat", "a repeat of a pass is the same request", "training 5.3",
     CONFORM_SPENDS, repeat_pass, NULL},
    {"seq-repeat-key", "so it is with one idempotency key for both",
     "transport 2.2", CONFORM_SPENDS, repeat_pass, "tnk-conform-one-key"},
    {"seq-repeat-step", "a repeat of a step is the same request",
     "training 5.3", CONFORM_SPENDS, repeat_step, NULL},
    {"seq-other-bytes", "other bytes with a number that is taken are refused",
     "training 5.3", CONFORM_SPENDS, other_bytes, NULL},
    {"seq-other-call", "so is another operation", "training 5.3",
     CONFORM_SPENDS, other_operation, NULL},
    {"seq-gap", "a number is held until the gap before it closes",
     "training 5.3", CONFORM_SPENDS, gap_held, NULL},
    {"seq-gap-poll", "what is held can be polled for", "training 5.3",
     CONFORM_SPENDS, gap_polled, NULL},
    {"seq-first-last", "the first part of a pass may come last", "training 5.3",
     CONFORM_SPENDS, first_last, NULL},
    {"seq-after-failed", "a request that failed has used its number",
     "training 5.8", CONFORM_SPENDS, after_failed, NULL},
    {"seq-after-refused", "one that was refused leaves no gap", "training 5.8",
     CONFORM_SPENDS, after_refused, NULL},
    {"seq-refused-again", "and its number can be used", "training 5.8",
     CONFORM_SPENDS, refused_again, NULL},
    {"seq-absent", "a request without a number is refused", "training 5.3",
     CONFORM_SPENDS, odd_number, NULL},
    {"seq-negative", "so is one below 0", "training 5.3", CONFORM_SPENDS,
     odd_number, "-1"},
    {"seq-text", "and one that is a text", "training 5.6", CONFORM_SPENDS,
     odd_number, "\"1\""},
    {"seq-null", "and one that is null", "training 5.6", CONFORM_SPENDS,
     odd_number, "null"},
    {"seq-zero", "and 0, where numbers begin with 1", "protobuf 6.2",
     CONFORM_SPENDS, zero, NULL},
};

const conform_group_t conform_sequence = {"sequence numbers", rules,
                                          sizeof(rules) / sizeof(*rules)};

/* SPDX-License-Identifier: MIT */
/* Rules about futures: waiting for results, fetching them, and reporting that
 * there is none. */
#include <string.h>

#include "tools/conform/state.h"

enum { MAX_HELD_MS = 45000 };

/* ---- Unknown and missing ids ---- */

static conform_call_t *poll_for(conform_t *c) {
  return conform_poll(c, c->about, 0, 0);
}

static conform_verdict_t unknown(conform_t *c) {
  const conform_call_t *call = c->call;

  if (call->status == 404 || call->status == 410)
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (call->status == 500 || conform_is_refusal(call))
    return conform_tell(c, CONFORM_ALLOWED, "%d", call->status);
  return conform_other(c, call, "404");
}

static conform_call_t *no_id(conform_t *c) {
  return conform_post_json(c, "retrieve_future", json_object());
}

static conform_call_t *cancel_unknown(conform_t *c) {
  return conform_post(c, "cancel_future", "{s:s}", "request_id", CONFORM_NONE);
}

static conform_verdict_t not_cancelled(conform_t *c) {
  if (conform_is_absent(c, c->call))
    return conform_tell(c, CONFORM_ABSENT, "%d", c->call->status);
  return conform_refusal(c, "it is accepted", "404");
}

static conform_call_t *batch_unknown(conform_t *c) {
  return conform_batch(c, CONFORM_NONE);
}

static conform_verdict_t unknown_batch(conform_t *c) {
  if (conform_is_absent(c, c->call))
    return conform_tell(c, CONFORM_ABSENT, "%d", c->call->status);
  return conform_refused_404(c);
}

static conform_call_t *batch_empty(conform_t *c) {
  return conform_batch(c, c->sampler);
}

static conform_verdict_t empty_batch(conform_t *c) {
  if (!conform_announced(c, c->call, "sample_use_retrieve_futures"))
    return conform_told(c);
  if (!json_is_array(json_object_get(c->call->json, "completions")) ||
      !json_is_integer(json_object_get(c->call->json, "cursor")))
    return conform_tell(c, CONFORM_DIFFERS, "no list or no cursor");
  return conform_tell(c, CONFORM_HOLDS, "an immediate response");
}

/* ---- A result ---- */

/* A successful pass of the shared model; its last poll is c->end.last. */
static int passed(conform_t *c) {
  const conform_call_t *call;

  if (!conform_needs_shared_model(c))
    return 0;
  call = conform_pass(c, c->model->id, c->model->seq, NULL);
  if (conform_is_ok(call))
    c->model->seq++;
  c->id = conform_text(call, "request_id");
  if (conform_follow(c, call, 1) == CONFORM_RESULT)
    return 1;
  conform_spoil(c);
  conform_tell(c, CONFORM_DIFFERS, "no result of a pass: %s", c->end.how);
  return 0;
}

static conform_verdict_t result(conform_t *c) {
  return conform_tell(c, CONFORM_HOLDS, "result received");
}

static conform_verdict_t as_proto(conform_t *c) {
  if (c->end.is_proto)
    return conform_tell(c, CONFORM_HOLDS, "protobuf");
  return conform_tell(c, CONFORM_DIFFERS,
                      "%s, which the official client rejects",
                      c->end.last->type);
}

static conform_verdict_t as_json(conform_t *c) {
  const conform_call_t *poll = conform_poll(c, c->id, 0, 0);

  if (conform_fate_of(poll, &c->end) != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "%s", c->end.how);
  if (c->end.is_proto)
    return conform_tell(c, CONFORM_ALLOWED, "protobuf anyway");
  if (tnk__json_arr(poll->json, "loss_fn_outputs") == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "JSON without loss_fn_outputs");
  return conform_tell(c, CONFORM_HOLDS, "JSON");
}

static conform_verdict_t again(conform_t *c) {
  const conform_call_t *first = c->end.last;
  const conform_call_t *second = conform_poll(c, c->id, 1, 0);

  if (conform_fate_of(second, &c->end) != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "second poll: %s", c->end.how);
  if (first->body.len != second->body.len)
    return conform_tell(c, CONFORM_DIFFERS,
                        "the second poll got another result");
  return conform_tell(c, CONFORM_HOLDS, "the same result");
}

/* With allow_metadata_only the size may arrive first. */
static conform_verdict_t metadata(conform_t *c) {
  const conform_call_t *poll = conform_poll(c, c->id, 1, 1);
  const json_t *size = json_object_get(poll->json, "response_payload_size");

  if (conform_fate_of(poll, &c->end) == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "the result without its size");
  if (c->end.fate != CONFORM_PENDING ||
      strcmp(c->end.how, "complete_metadata") != 0)
    return conform_tell(c, CONFORM_DIFFERS, "%s", c->end.how);
  if (size != NULL && !json_is_integer(size) && !json_is_null(size))
    return conform_tell(c, CONFORM_DIFFERS, "its size is not a number");
  if (conform_fate_of(conform_poll(c, c->id, 1, 0), &c->end) != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "without allow_metadata_only: %s",
                        c->end.how);
  return conform_tell(c, CONFORM_HOLDS, "its size first");
}

/* ---- Parallel and aborted polls ---- */

/* An accepted pass of the shared model, which no request has polled for. */
static int submitted(conform_t *c) {
  if (!conform_needs_shared_model(c))
    return 0;
  c->call = conform_pass(c, c->model->id, c->model->seq, NULL);
  c->id = conform_text(c->call, "request_id");
  if (conform_is_ok(c->call) && c->id != NULL) {
    c->model->seq++;
    return 1;
  }
  conform_other(c, c->call, "a request_id");
  return 0;
}

static conform_verdict_t two_polls(conform_t *c) {
  conform_call_t *polls[2];

  for (size_t i = 0; i < 2; i++)
    polls[i] = conform_begin_poll(c, c->id, 1, 0);
  for (size_t i = 0; i < 2; i++) {
    conform_wait(c, polls[i]);
    if (conform_fate_of(polls[i], &c->end) == CONFORM_PENDING)
      conform_follow_id(c, c->id, 1, 30000, &c->end);
    if (c->end.fate != CONFORM_RESULT)
      return conform_tell(c, CONFORM_DIFFERS, "%s", c->end.how);
  }
  return conform_tell(c, CONFORM_HOLDS, "both get the result");
}

static conform_verdict_t broken_off(conform_t *c) {
  conform_call_t *poll = conform_begin_poll(c, c->id, 1, 0);

  conform_pause(c, 1);
  conform_give_up(poll);
  if (!conform_succeeds(c, c->call, 1))
    return conform_told(c);
  return conform_tell(c, CONFORM_HOLDS, "the result was kept");
}

/* ---- No result yet ---- */

/* A request after a gap has no result until the gap is closed. */
static int pending(conform_t *c) {
  if (!conform_needs_gap(c))
    return 0;
  if (c->gap.is_accepted && c->gap.first == CONFORM_PENDING)
    return 1;
  conform_tell(c, CONFORM_SKIPPED, "every request got its result");
  return 0;
}

static conform_verdict_t not_yet(conform_t *c) {
  const conform_gap_t *gap = &c->gap;

  if (gap->first_status == 408)
    return conform_tell(c, CONFORM_ALLOWED, "408");
  if (!gap->is_json)
    return conform_tell(c, CONFORM_DIFFERS, "try_again is not JSON");
  if (!gap->has_id)
    return conform_tell(c, CONFORM_ALLOWED, "try_again without request_id");
  return conform_tell(c, CONFORM_HOLDS, "try_again, %s",
                      gap->state[0] != '\0' ? gap->state : "without a state");
}

static conform_verdict_t held(conform_t *c) {
  const uint64_t ms = c->gap.held_ms;

  if (ms >= MAX_HELD_MS)
    return conform_tell(c, CONFORM_DIFFERS,
                        "longer than the 45 s that clients wait");
  return conform_tell(c, ms >= 100 ? CONFORM_HOLDS : CONFORM_ALLOWED, "%.1f s",
                      (double)ms / 1000);
}

/* ---- Failures ---- */

/* A request that is accepted and then fails: it loads weights that do not
 * exist. If that is refused at once, it creates a model of an unknown base. */
static int failed(conform_t *c) {
  json_t *body;

  if (!conform_needs_any_model(c))
    return 0;
  conform_follow(
      c, conform_load(c, c->model->id, c->model->seq++, CONFORM_NO_WEIGHTS), 1);
  if (c->end.last != NULL || c->end.fate != CONFORM_FAILED)
    return 1;
  body = conform_new_model_body(c);
  json_object_set_new(body, "base_model", json_string(CONFORM_NONE));
  conform_follow(c, conform_post_json(c, "create_model", body), 1);
  if (c->end.fate == CONFORM_RESULT)
    conform_made(c, CONFORM_MODEL, conform_text(c->end.last, "model_id"));
  return 1;
}

static conform_verdict_t failure(conform_t *c) {
  const conform_call_t *last = c->end.last;
  const char *category = c->end.category;

  if (last == NULL || c->end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_SKIPPED, "accepted requests do not fail");
  if (c->end.fate != CONFORM_FAILED)
    return conform_tell(c, CONFORM_DIFFERS, "%s", c->end.how);
  if (last->json == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "%d is not JSON", last->status);
  if (last->status != 200)
    return conform_tell(c, CONFORM_ALLOWED, "%d", last->status);
  if (category == NULL ||
      (strcmp(category, "user") != 0 && strcmp(category, "server") != 0 &&
       strcmp(category, "unknown") != 0))
    return conform_tell(c, CONFORM_ALLOWED, "200 without a known category");
  return conform_tell(c, CONFORM_HOLDS, "200, error of category %s", category);
}

static const conform_rule_t rules[] = {
    {"poll-unknown", "a poll for an unknown request is rejected", "futures 8.2",
     CONFORM_FREE, NULL, poll_for, unknown, CONFORM_NONE},
    {"poll-odd-id", "a poll with a malformed id is rejected", "futures 8.2",
     CONFORM_FREE, NULL, poll_for, unknown, "../\"%00"},
    {"poll-no-id", "a poll without an id is rejected", "futures 8.1",
     CONFORM_FREE, NULL, no_id, conform_refused, NULL},
    {"poll-batch-unknown", "a batched poll of an unknown sampler is rejected",
     "futures 8.6", CONFORM_FREE, NULL, batch_unknown, unknown_batch, NULL},
    {"poll-batch", "a batched poll with a timeout of 0 returns at once",
     "futures 8.6", CONFORM_FREE, conform_needs_sampler, batch_empty,
     empty_batch, NULL},
    {"cancel-unknown", "canceling an unknown request is rejected",
     "futures 8.7", CONFORM_FREE, NULL, cancel_unknown, not_cancelled, NULL},
    {"poll-result", "a poll returns the result", "futures 8.2", CONFORM_SPENDS,
     passed, NULL, result, NULL},
    {"poll-proto", "the result is protobuf if the client accepts it",
     "futures 8.1", CONFORM_SPENDS, passed, NULL, as_proto, NULL},
    {"poll-json", "the result is JSON if the client accepts only JSON",
     "reference 12.1", CONFORM_SPENDS, passed, NULL, as_json, NULL},
    {"poll-metadata", "the size comes first only if the client allows it",
     "futures 8.2", CONFORM_SPENDS, passed, NULL, metadata, NULL},
    {"poll-again", "a result can be fetched twice", "futures 8.3",
     CONFORM_SPENDS, passed, NULL, again, NULL},
    {"poll-two", "two polls can wait for one result", "futures 8.1",
     CONFORM_SPENDS, submitted, NULL, two_polls, NULL},
    {"poll-broken-off", "an aborted poll does not lose the result",
     "futures 8.3", CONFORM_SPENDS, submitted, NULL, broken_off, NULL},
    {"poll-not-yet", "a poll without a result returns try_again", "futures 8.2",
     CONFORM_SPENDS, pending, NULL, not_yet, NULL},
    {"poll-held", "a poll without a result is held, for less than 45 s",
     "futures 8.1", CONFORM_SPENDS, pending, NULL, held, NULL},
    {"poll-failure", "a failure has a message and a category", "futures 8.2",
     CONFORM_SPENDS, failed, NULL, failure, NULL},
};

const conform_group_t conform_futures = {"futures and polls", rules,
                                         sizeof(rules) / sizeof(*rules)};

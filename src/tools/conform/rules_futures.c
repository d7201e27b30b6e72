/* Rules about futures: waiting for results, fetching them, and reporting that
 * there is none. */
#include <string.h>

#include "tools/conform/state.h"

#define NONE "tnk-conform-none"

enum { MAX_HELD_MS = 45000 };

/* ---- Unknown and missing ids ---- */

static conform_verdict_t unknown(conform_t *c, const conform_rule_t *rule) {
  const conform_call_t *call = conform_poll(c, rule->about, 0, 0);

  if (call->status == 404 || call->status == 410)
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (call->status == 500 || conform_is_refusal(call))
    return conform_tell(c, CONFORM_ALLOWED, "%d", call->status);
  return conform_other(c, call, "404");
}

static conform_verdict_t no_id(conform_t *c, const conform_rule_t *rule) {
  const conform_call_t *call =
      conform_post(c, "retrieve_future", json_object());

  (void)rule;
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  return conform_other(c, call, "a 4xx");
}

static conform_verdict_t cancel_unknown(conform_t *c,
                                        const conform_rule_t *rule) {
  const conform_call_t *call =
      conform_post(c, "cancel_future", json_pack("{s:s}", "request_id", NONE));

  (void)rule;
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  if (conform_is_ok(call))
    return conform_tell(c, CONFORM_ALLOWED, "it is taken");
  return conform_other(c, call, "404");
}

static conform_call_t *batch(conform_t *c, const char *sampler) {
  return conform_post(c, "retrieve_futures",
                      json_pack("{s:{s:s,s:s,s:i},s:i,s:f,s:[]}", "target",
                                "type", "sampling_session",
                                "sampling_session_id", sampler,
                                "cloned_sampler_id", 0, "prev_cursor", 0,
                                "timeout", 0.0, "retrieved_request_ids"));
}

static conform_verdict_t batch_unknown(conform_t *c,
                                       const conform_rule_t *rule) {
  const conform_call_t *call = batch(c, NONE);

  (void)rule;
  if (conform_is_absent(c, call))
    return conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (conform_is_refusal(call))
    return conform_tell(c, CONFORM_HOLDS, "%d", call->status);
  return conform_other(c, call, "404");
}

static conform_verdict_t batch_empty(conform_t *c, const conform_rule_t *rule) {
  const char *sampler = conform_sampler_id(c);
  const conform_call_t *call;

  (void)rule;
  if (sampler == NULL)
    return conform_skip(c);
  call = batch(c, sampler);
  if (conform_is_absent(c, call))
    return json_is_true(
               json_object_get(c->flags, "sample_use_retrieve_futures"))
               ? conform_tell(c, CONFORM_DIFFERS,
                              "%d, though client/config asks for it",
                              call->status)
               : conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  if (!conform_is_ok(call))
    return conform_other(c, call, "200");
  if (!json_is_array(json_object_get(call->json, "completions")) ||
      !json_is_integer(json_object_get(call->json, "cursor")))
    return conform_tell(c, CONFORM_DIFFERS, "no list, or no cursor");
  return conform_tell(c, CONFORM_HOLDS, "an answer at once");
}

/* ---- A result ---- */

/* A successful pass of the shared model. Returns NULL if the finding is
 * recorded already.
 */
static const char *passed(conform_t *c, conform_end_t *end,
                          conform_verdict_t *verdict) {
  conform_made_t *model = conform_shared_model(c);
  const conform_call_t *call;

  if (model == NULL) {
    *verdict = conform_skip(c);
    return NULL;
  }
  call = conform_pass(c, model->id, model->seq, NULL);
  if (conform_is_ok(call))
    model->seq++;
  conform_follow(c, call, 1, end);
  if (end->fate == CONFORM_RESULT)
    return conform_text(call, "request_id");
  conform_spoil(c);
  *verdict =
      conform_tell(c, CONFORM_DIFFERS, "no result of a pass: %s", end->how);
  return NULL;
}

/* A rule about a request with a certain end; its last poll is end->last. */
typedef struct {
  conform_verdict_t (*judge)(conform_t *c, const char *id, conform_end_t *end);
} judged_t;

static conform_verdict_t judged(conform_t *c, const conform_rule_t *rule) {
  const judged_t *about = rule->about;
  conform_verdict_t verdict = CONFORM_DIFFERS;
  conform_end_t end = {0};
  const char *id = passed(c, &end, &verdict);

  return id != NULL ? about->judge(c, id, &end) : verdict;
}

static conform_verdict_t result(conform_t *c, const char *id,
                                conform_end_t *end) {
  (void)id;
  (void)end;
  return conform_tell(c, CONFORM_HOLDS, "it comes");
}

static conform_verdict_t as_proto(conform_t *c, const char *id,
                                  conform_end_t *end) {
  (void)id;
  if (end->is_proto)
    return conform_tell(c, CONFORM_HOLDS, "protobuf");
  return conform_tell(c, CONFORM_DIFFERS,
                      "%s, which the official client refuses", end->last->type);
}

static conform_verdict_t as_json(conform_t *c, const char *id,
                                 conform_end_t *end) {
  const conform_call_t *poll = conform_poll(c, id, 0, 0);

  if (conform_fate_of(poll, end) != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "%s", end->how);
  if (end->is_proto)
    return conform_tell(c, CONFORM_ALLOWED, "protobuf all the same");
  if (tnk__json_arr(poll->json, "loss_fn_outputs") == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "JSON without loss_fn_outputs");
  return conform_tell(c, CONFORM_HOLDS, "JSON");
}

static conform_verdict_t again(conform_t *c, const char *id,
                               conform_end_t *end) {
  const conform_call_t *first = end->last;
  const conform_call_t *second = conform_poll(c, id, 1, 0);

  if (conform_fate_of(second, end) != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "the second time: %s", end->how);
  if (first->body.len != second->body.len)
    return conform_tell(c, CONFORM_DIFFERS, "another one the second time");
  return conform_tell(c, CONFORM_HOLDS, "the same one");
}

/* With allow_metadata_only the size may arrive first. */
static conform_verdict_t metadata(conform_t *c, const char *id,
                                  conform_end_t *end) {
  const conform_call_t *poll = conform_poll(c, id, 1, 1);
  const json_t *size;

  if (conform_fate_of(poll, end) == CONFORM_RESULT)
    return conform_tell(c, CONFORM_HOLDS, "the result at once");
  if (end->fate != CONFORM_PENDING ||
      strcmp(end->how, "complete_metadata") != 0)
    return conform_tell(c, CONFORM_DIFFERS, "%s", end->how);
  size = json_object_get(poll->json, "response_payload_size");
  if (size != NULL && !json_is_integer(size) && !json_is_null(size))
    return conform_tell(c, CONFORM_DIFFERS, "its size is no number");
  poll = conform_poll(c, id, 1, 0);
  if (conform_fate_of(poll, end) != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "and without it: %s", end->how);
  return conform_tell(c, CONFORM_HOLDS, "its size first");
}

/* ---- Parallel and aborted polls ---- */

static conform_call_t *begin_poll(conform_t *c, const char *id) {
  const conform_ask_t ask = {.method = "POST",
                             .path = "retrieve_future",
                             .json = json_pack("{s:s,s:b}", "request_id", id,
                                               "allow_metadata_only", 0),
                             .accept = "application/x-protobuf",
                             .is_poll = 1};

  return conform_send(c, &ask);
}

static conform_verdict_t two_polls(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *model = conform_shared_model(c);
  const conform_call_t *call;
  conform_call_t *polls[2];
  conform_end_t ends[2];
  const char *id;

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  call = conform_pass(c, model->id, model->seq, NULL);
  id = conform_text(call, "request_id");
  if (!conform_is_ok(call) || id == NULL)
    return conform_other(c, call, "a request_id");
  model->seq++;
  for (size_t i = 0; i < 2; i++)
    polls[i] = begin_poll(c, id);
  for (size_t i = 0; i < 2; i++) {
    conform_wait(c, polls[i]);
    if (conform_fate_of(polls[i], &ends[i]) == CONFORM_PENDING)
      conform_follow_id(c, id, 1, 30000, &ends[i]);
    if (ends[i].fate != CONFORM_RESULT)
      return conform_tell(c, CONFORM_DIFFERS, "%s", ends[i].how);
  }
  return conform_tell(c, CONFORM_HOLDS, "both get it");
}

static conform_verdict_t broken_off(conform_t *c, const conform_rule_t *rule) {
  conform_made_t *model = conform_shared_model(c);
  const conform_call_t *call;
  conform_call_t *poll;
  conform_end_t end = {0};
  const char *id;

  (void)rule;
  if (model == NULL)
    return conform_skip(c);
  call = conform_pass(c, model->id, model->seq, NULL);
  id = conform_text(call, "request_id");
  if (!conform_is_ok(call) || id == NULL)
    return conform_other(c, call, "a request_id");
  model->seq++;
  poll = begin_poll(c, id);
  conform_pause(c, 1);
  conform_give_up(poll);
  conform_follow(c, call, 1, &end);
  if (end.fate != CONFORM_RESULT)
    return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  return conform_tell(c, CONFORM_HOLDS, "the result stays");
}

/* ---- No result yet ---- */

/* A request after a gap has no result until the gap is closed. */
static const conform_gap_t *pending(conform_t *c, conform_verdict_t *verdict) {
  const conform_gap_t *gap = conform_try_gap(c);

  if (gap == NULL)
    *verdict = conform_skip(c);
  else if (gap->is_accepted && gap->first == CONFORM_PENDING)
    return gap;
  else
    *verdict = conform_tell(c, CONFORM_SKIPPED, "nothing stays without one");
  return NULL;
}

static conform_verdict_t not_yet(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const conform_gap_t *gap = pending(c, &verdict);

  (void)rule;
  if (gap == NULL)
    return verdict;
  if (gap->first_status == 408)
    return conform_tell(c, CONFORM_ALLOWED, "408");
  if (!gap->is_json)
    return conform_tell(c, CONFORM_DIFFERS, "try_again that is no JSON");
  if (!gap->has_id)
    return conform_tell(c, CONFORM_ALLOWED, "try_again without request_id");
  return conform_tell(c, CONFORM_HOLDS, "try_again, %s",
                      gap->state[0] != '\0' ? gap->state : "without a state");
}

static conform_verdict_t held(conform_t *c, const conform_rule_t *rule) {
  conform_verdict_t verdict = CONFORM_DIFFERS;
  const conform_gap_t *gap = pending(c, &verdict);

  (void)rule;
  if (gap == NULL)
    return verdict;
  if (gap->held_ms >= MAX_HELD_MS)
    return conform_tell(c, CONFORM_DIFFERS,
                        "longer than the 45 s that clients wait");
  return conform_tell(c, gap->held_ms >= 100 ? CONFORM_HOLDS : CONFORM_ALLOWED,
                      "%.1f s", (double)gap->held_ms / 1000);
}

/* ---- Failures ---- */

/* Create a request that is accepted and then fails: it loads weights that do
 * not exist. If that is refused at once, it creates a model of an unknown
 * base. */
static int have_failure(conform_t *c, conform_end_t *end) {
  conform_made_t *model = conform_any_model(c);
  json_t *body;

  if (model == NULL)
    return 0;
  conform_follow(
      c, conform_load(c, model->id, model->seq++, CONFORM_NO_WEIGHTS), 1, end);
  if (end->last != NULL || end->fate != CONFORM_FAILED)
    return 1;
  body = conform_model_body(c, c->session, c->n_models++);
  json_object_set_new(body, "base_model", json_string(NONE));
  conform_follow(c, conform_post(c, "create_model", body), 1, end);
  if (end->fate == CONFORM_RESULT)
    conform_made(c, CONFORM_MODEL, conform_text(end->last, "model_id"));
  return 1;
}

static conform_verdict_t failure(conform_t *c, const conform_rule_t *rule) {
  conform_end_t end = {0};

  (void)rule;
  if (!have_failure(c, &end))
    return conform_skip(c);
  if (end.last == NULL || end.fate == CONFORM_RESULT)
    return conform_tell(c, CONFORM_SKIPPED, "nothing fails once it is taken");
  if (end.fate != CONFORM_FAILED)
    return conform_tell(c, CONFORM_DIFFERS, "%s", end.how);
  if (end.last->json == NULL)
    return conform_tell(c, CONFORM_DIFFERS, "%d that is no JSON",
                        end.last->status);
  if (end.last->status != 200)
    return conform_tell(c, CONFORM_ALLOWED, "%d", end.last->status);
  if (end.category == NULL || (strcmp(end.category, "user") != 0 &&
                               strcmp(end.category, "server") != 0 &&
                               strcmp(end.category, "unknown") != 0))
    return conform_tell(c, CONFORM_ALLOWED, "200 without a known category");
  return conform_tell(c, CONFORM_HOLDS, "200, error of category %s",
                      end.category);
}

#define JUDGED(judge_)                                                         \
  judged, &(const judged_t) {                                                  \
    judge_                                                                     \
  }

static const conform_rule_t rules[] = {
    {"poll-unknown", "a request that nobody made is unknown", "futures 8.2",
     CONFORM_FREE, unknown, NONE},
    {"poll-odd-id", "so is one whose id is odd", "futures 8.2", CONFORM_FREE,
     unknown, "../\"%00"},
    {"poll-no-id", "a poll for nothing is refused", "futures 8.1", CONFORM_FREE,
     no_id, NULL},
    {"poll-batch-unknown", "a poll of an unknown sampler is refused",
     "futures 8.6", CONFORM_FREE, batch_unknown, NULL},
    {"poll-batch", "one look at a sampler's samples does not wait",
     "futures 8.6", CONFORM_FREE, batch_empty, NULL},
    {"cancel-unknown", "cancelling what nobody made is refused", "futures 8.7",
     CONFORM_FREE, cancel_unknown, NULL},
    {"poll-result", "a poll brings the result", "futures 8.2", CONFORM_SPENDS,
     JUDGED(result)},
    {"poll-proto", "in protobuf for who accepts that", "futures 8.1",
     CONFORM_SPENDS, JUDGED(as_proto)},
    {"poll-json", "in JSON for who does not", "reference 12.1", CONFORM_SPENDS,
     JUDGED(as_json)},
    {"poll-metadata", "the size comes first only for who allows it",
     "futures 8.2", CONFORM_SPENDS, JUDGED(metadata)},
    {"poll-again", "a result can be fetched twice", "futures 8.3",
     CONFORM_SPENDS, JUDGED(again)},
    {"poll-two", "two may wait for one result", "futures 8.1", CONFORM_SPENDS,
     two_polls, NULL},
    {"poll-broken-off", "a poll that breaks off takes no result with it",
     "futures 8.3", CONFORM_SPENDS, broken_off, NULL},
    {"poll-not-yet", "without a result it is told to try again", "futures 8.2",
     CONFORM_SPENDS, not_yet, NULL},
    {"poll-held", "after it was held, less than 45 s", "futures 8.1",
     CONFORM_SPENDS, held, NULL},
    {"poll-failure", "a failure has words and a category", "futures 8.2",
     CONFORM_SPENDS, failure, NULL},
};

const conform_group_t conform_futures = {"futures and polls", rules,
                                         sizeof(rules) / sizeof(*rules)};

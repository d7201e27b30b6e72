/* SPDX-License-Identifier: MIT */
#include "task/kinds.h"

/*
 * Servers that read passes as JSON only. A 415 or a 422 to the first protobuf
 * pass of a session makes the client send the same pass as JSON, under the same
 * number. The session keeps the form that the server accepts first. Every
 * refusal x every answer to JSON x every kind of pass x ways of sending it.
 */

enum { MAX_SEEN = 64, N_DATA = 3 };

typedef struct {
  long long seq;
  int is_json;
  int wants_proto; /* in the poll */
  char path[32];
  char key[64];
} seen_t;

typedef struct {
  script_t script;
  int status;       /* of a protobuf pass; 200: it is accepted */
  int json_status;  /* the same of a JSON pass */
  const char *type; /* of the body of a refusal; NULL: JSON */
  seen_t seen[MAX_SEEN];
  size_t n_seen;
  size_t n_protos;
  size_t n_jsons;
  int n_proto_polls;
} form_t;

static size_t count(const char *text, const char *part) {
  size_t n = 0;

  for (; (text = strstr(text, part)) != NULL; text += strlen(part))
    n++;
  return n;
}

static void refuse(const form_t *t, mock_request_t *request, int status,
                   const char *words) {
  char headers[64] = "";
  char text[128];

  snprintf(text, sizeof(text), "{\"detail\":\"%s\"}", words);
  if (t->type != NULL) {
    snprintf(headers, sizeof(headers), "Content-Type: %s\r\n", t->type);
    mock_reply(request, status, headers, "<html>no</html>", 15);
    return;
  }
  mock_reply_json(request, status,
                  status == 404 ? "{\"detail\":\"Not Found\"}" : text);
}

static void on_json(form_t *t, mock_request_t *request) {
  const char *body = (const char *)request->body;
  const int is_forward = strcmp(request->path, "/api/v1/forward") == 0;
  char text[96];

  CHECK(strstr(body, is_forward
                         ? "\"forward_input\":{\"data\":[{"
                         : "\"forward_backward_input\":{\"data\":[{") != NULL);
  CHECK(mock_header(request, "content-encoding") == NULL);
  t->n_jsons++;
  if (t->json_status != 200) {
    refuse(t, request, t->json_status, "the JSON is bad");
    return;
  }
  snprintf(text, sizeof(text), "{\"request_id\":\"forward_backward:%lld:%zu\"}",
           script_number(request, "seq_id"), count(body, "\"model_input\""));
  mock_reply_json(request, 200, text);
}

static void on_pass(mock_request_t *request, void *user) {
  form_t *t = user;
  const char *type = mock_header(request, "content-type");
  seen_t *seen = &t->seen[t->n_seen++];
  script_sent_t sent;

  CHECK(t->n_seen <= MAX_SEEN);
  script_read(request, &sent);
  seen->seq = sent.seq;
  seen->is_json = strcmp(type, "application/json") == 0;
  snprintf(seen->path, sizeof(seen->path), "%s", sent.call);
  snprintf(seen->key, sizeof(seen->key), "%s",
           mock_header(request, "x-idempotency-key"));
  if (seen->is_json) {
    on_json(t, request);
    return;
  }
  CHECK_STR(sent.call, "forward_backward");
  t->n_protos++;
  if (t->status == 200)
    script_accept(request, &t->script);
  else
    refuse(t, request, t->status, "data.1: not readable");
}

static void on_poll(mock_request_t *request, void *user) {
  form_t *t = user;

  t->n_proto_polls +=
      strcmp(mock_header(request, "accept"), "application/x-protobuf") == 0;
  script_result(request, &t->script);
}

static void open_form(form_t *t, const char *flags) {
  memset(t, 0, sizeof(*t));
  t->json_status = 200;
  script_open(&t->script);
  script_flags(&t->script, flags);
  script_train(&t->script);
  mock_on(t->script.mock, "POST", "/api/v1/forward_backward", on_pass, t);
  mock_on(t->script.mock, "POST", "/api/v1/forward", on_pass, t);
  mock_on(t->script.mock, "POST", "/api/v1/retrieve_future", on_poll, t);
  t->script.n_warnings = 0;
  t->script.log_text = "as JSON from now on";
}

static void forget(form_t *t) {
  t->n_seen = t->n_protos = t->n_jsons = 0;
  t->n_proto_polls = 0;
}

static void close_form(form_t *t) {
  script_close(&t->script);
}

/* ---- The kinds of passes ---- */

static tnk_promise_t *backward(script_t *script) {
  return script_pass(script, N_DATA);
}

static tnk_promise_t *forward(script_t *script) {
  return tnk_training_forward(script->training, script_data(N_DATA), N_DATA,
                              NULL);
}

static tnk_promise_t *custom(script_t *script) {
  return tnk_training_forward_backward_custom(
      script->training, script_data(N_DATA), N_DATA, kind_loss, NULL, NULL);
}

static const struct {
  const char *name;
  tnk_promise_t *(*start)(script_t *script);
  const char *first_path; /* of its first request as JSON */
  size_t n_passes;
} kinds[] = {
    {"forward_backward", backward, "forward_backward", 1},
    {"forward", forward, "forward", 1},
    {"custom", custom, "forward", 2},
};

static const struct {
  const char *flags;
  size_t n_parts;
  size_t n_at_once; /* that may go as protobuf before the first is answered */
} ways[] = {
    {"{\"proto_compress_fwdbwd\":false}", 1, 1},
    {"{\"proto_compress_fwdbwd\":true}", 1, 1},
    {"{\"fwdbwd_max_chunk_len\":1,\"parallel_fwdbwd_chunks\":false}", N_DATA,
     1},
    {"{\"fwdbwd_max_chunk_len\":1,\"parallel_fwdbwd_chunks\":true}", N_DATA,
     N_DATA},
    {"{\"fwdbwd_max_chunk_len\":1,\"parallel_fwdbwd_chunks\":true,"
     "\"proto_compress_fwdbwd\":true}",
     N_DATA, N_DATA},
};

static const int refusals[] = {415, 422};

enum {
  N_PASS_KINDS = sizeof(kinds) / sizeof(kinds[0]),
  N_WAYS = sizeof(ways) / sizeof(ways[0]),
  N_REFUSALS = sizeof(refusals) / sizeof(refusals[0])
};

/* Each request as JSON has a number from 1 on, each number once; the protobuf
 * request before it had the same number and another key. */
static void check_numbers(const form_t *t, size_t n) {
  for (size_t i = 0; i < t->n_seen; i++) {
    const seen_t *seen = &t->seen[i];

    CHECK(seen->seq >= 1 && seen->seq <= (long long)n);
    for (size_t j = 0; j < i; j++) {
      CHECK(t->seen[j].seq != seen->seq || t->seen[j].is_json != seen->is_json);
      CHECK(strcmp(t->seen[j].key, seen->key) != 0);
    }
  }
}

static void expect_next(script_t *script, long long seq) {
  outcome_t outcome;

  script->n_sent = 0;
  script_ok(script, &outcome, script_step(script));
  script_check_sent(script, 0, "optim_step", seq);
  outcome_drop(&outcome);
}

TEST(B17_a_pass_that_is_refused_as_protobuf_is_sent_as_JSON) {
  for (size_t kind = 0; kind < N_PASS_KINDS; kind++)
    for (size_t way = 0; way < N_WAYS; way++)
      for (size_t i = 0; i < N_REFUSALS; i++) {
        const size_t n = ways[way].n_parts * kinds[kind].n_passes;
        outcome_t outcome;
        form_t t;

        open_form(&t, ways[way].flags);
        t.status = refusals[i];
        script_ok(&t.script, &outcome, kinds[kind].start(&t.script));
        outcome_drop(&outcome);
        CHECK(t.n_protos >= 1 && t.n_protos <= ways[way].n_at_once);
        CHECK_INT(t.n_jsons, n);
        CHECK_INT(t.n_proto_polls, 0);
        check_numbers(&t, n);
        CHECK_INT(t.script.n_log_texts, 1);
        CHECK_INT(t.script.n_warnings, 1);
        for (size_t j = 0; j < t.n_seen; j++)
          if (t.seen[j].is_json && t.seen[j].seq == 1)
            CHECK_STR(t.seen[j].path, kinds[kind].first_path);
        /* The session remembers it. */
        forget(&t);
        script_ok(&t.script, &outcome, kinds[kind].start(&t.script));
        outcome_drop(&outcome);
        CHECK_INT(t.n_protos, 0);
        CHECK_INT(t.n_jsons, n);
        CHECK_INT(t.script.n_warnings, 1);
        expect_next(&t.script, (long long)(2 * n + 1));
        close_form(&t);
      }
}

/* The user's error: the first refusal is reported, nothing is remembered, and
 * the numbers are free again. */
TEST(B17_a_pass_that_is_refused_in_both_forms_reports_the_first_refusal) {
  static const int answers[] = {400, 404, 405, 415, 422};

  for (size_t kind = 0; kind < N_PASS_KINDS; kind++)
    for (size_t way = 0; way < N_WAYS; way++)
      for (size_t i = 0; i < N_REFUSALS; i++)
        for (size_t j = 0; j < sizeof(answers) / sizeof(answers[0]); j++) {
          outcome_t outcome;
          form_t t;

          if (kind == 2)
            continue; /* a failed custom loss ends its client */
          open_form(&t, ways[way].flags);
          t.status = refusals[i];
          t.json_status = answers[j];
          for (int round = 0; round < 2; round++) {
            const tnk_error_t *error;

            forget(&t);
            outcome_of(&outcome, kinds[kind].start(&t.script));
            while (outcome.n_done == 0)
              script_advance(&t.script, 500);
            CHECK_INT(outcome.status, TNK_EREQUEST);
            error = tnk_promise_error(outcome.promise);
            CHECK_INT(error->http_status, refusals[i]);
            CHECK(strstr(outcome.text, "data.1: not readable") != NULL);
            /* Another part may still wait for its answer. */
            if (ways[way].n_at_once == 1)
              CHECK_INT(error->ran, TNK_RAN_NO);
            outcome_drop(&outcome);
            script_turns(&t.script);
            CHECK(t.n_protos >= 1);
            CHECK_INT(t.script.n_log_texts, 0);
            /* A number that is free again may be at fault the next time. */
            if (ways[way].n_at_once == 1 && round == 0) {
              CHECK_INT(t.n_protos, 1);
              CHECK_INT(t.n_jsons, 1);
            }
          }
          /* A server that reads protobuf after all. */
          forget(&t);
          t.status = 200;
          script_ok(&t.script, &outcome, kinds[kind].start(&t.script));
          outcome_drop(&outcome);
          CHECK_INT(t.n_jsons, 0);
          expect_next(&t.script, (long long)ways[way].n_parts + 1);
          CHECK_INT(t.script.n_log_texts, 0);
          close_form(&t);
        }
}

/* ---- What is no reason for JSON ---- */

static void expect_refused(form_t *t, size_t kind) {
  outcome_t outcome;

  forget(t);
  outcome_of(&outcome, kinds[kind].start(&t->script));
  while (outcome.n_done == 0)
    script_advance(&t->script, 500);
  CHECK(outcome.status < 0);
  outcome_drop(&outcome);
  script_turns(&t->script);
  CHECK(t->n_protos >= 1);
  CHECK_INT(t->n_jsons, 0);
}

TEST(B17_other_refusals_of_a_pass_are_final) {
  static const int others[] = {400, 401, 403, 404, 405, 410, 413};

  for (size_t kind = 0; kind < N_PASS_KINDS; kind++)
    for (size_t way = 0; way < N_WAYS; way++)
      for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        form_t t;

        open_form(&t, ways[way].flags);
        t.status = others[i];
        expect_refused(&t, kind);
        close_form(&t);
      }
}

TEST(B17_a_server_that_has_accepted_protobuf_gets_no_JSON) {
  for (size_t kind = 0; kind < N_PASS_KINDS; kind++)
    for (size_t way = 0; way < N_WAYS; way++)
      for (size_t i = 0; i < N_REFUSALS; i++) {
        outcome_t outcome;
        form_t t;

        open_form(&t, ways[way].flags);
        t.status = 200;
        script_ok(&t.script, &outcome, backward(&t.script));
        outcome_drop(&outcome);
        t.status = refusals[i];
        expect_refused(&t, kind);
        close_form(&t);
      }
}

/* A proxy's page says nothing about what the server reads. */
TEST(B17_a_page_that_refuses_a_pass_is_no_reason_for_JSON) {
  for (size_t i = 0; i < N_REFUSALS; i++) {
    form_t t;

    open_form(&t, "{}");
    t.status = refusals[i];
    t.type = "text/html";
    expect_refused(&t, 0);
    close_form(&t);
  }
}

/* ---- Other ends ---- */

/* The promise is given up while protobuf is on its way: nothing follows. */
TEST(B17_a_canceled_pass_is_not_sent_as_JSON) {
  for (size_t way = 0; way < N_WAYS; way++) {
    outcome_t outcome;
    tnk_promise_t *promise;
    form_t t;

    open_form(&t, ways[way].flags);
    mock_on(t.script.mock, "POST", "/api/v1/forward_backward", mock_hold, NULL);
    promise = backward(&t.script);
    outcome_of(&outcome, tnk_promise_ref(promise));
    while (mock_n_held(t.script.mock) == 0)
      script_turns(&t.script);
    tnk_promise_cancel(promise);
    tnk_promise_unref(promise);
    outcome_fails(&t.script, &outcome, TNK_ECANCELED);
    outcome_drop(&outcome);
    mock_on(t.script.mock, "POST", "/api/v1/forward_backward", on_pass, &t);
    mock_release(t.script.mock, 415, "{\"detail\":\"no\"}");
    script_turns(&t.script);
    CHECK_INT(t.n_jsons, 0);
    /* The next one learns it, under the numbers that are free again. */
    t.status = 415;
    script_ok(&t.script, &outcome, backward(&t.script));
    outcome_drop(&outcome);
    expect_next(&t.script, (long long)ways[way].n_parts + 1);
    close_form(&t);
  }
}

/* The JSON pass fails for a while: it is repeated as JSON, with the same key,
 * and an error that is no refusal is reported as it is. */
static void fail_json(mock_request_t *request, void *user) {
  form_t *t = user;
  const char *type = mock_header(request, "content-type");

  if (strcmp(type, "application/json") != 0) {
    on_pass(request, t);
    return;
  }
  t->n_jsons++;
  mock_reply(request, t->json_status, NULL, "", 0);
}

TEST(B17_a_JSON_pass_is_repeated_as_any_other) {
  static const struct {
    int status;
    int err; /* TNK_OK: it succeeds once the server does */
  } rows[] = {{503, TNK_OK}, {429, TNK_OK}, {401, TNK_EAUTH}, {403, TNK_EAUTH}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    outcome_t outcome;
    form_t t;

    open_form(&t, "{}");
    t.status = 415;
    t.json_status = rows[i].status;
    mock_on(t.script.mock, "POST", "/api/v1/forward_backward", fail_json, &t);
    outcome_of(&outcome, backward(&t.script));
    for (int at = 0; at < 20; at++)
      script_advance(&t.script, 500);
    CHECK_INT(t.n_protos, 1);
    CHECK(rows[i].err == TNK_OK ? t.n_jsons > 1 : t.n_jsons == 1);
    CHECK_INT(t.script.n_log_texts, 0);
    mock_on(t.script.mock, "POST", "/api/v1/forward_backward", on_pass, &t);
    t.json_status = 200;
    while (outcome.n_done == 0)
      script_advance(&t.script, 500);
    CHECK_INT(outcome.status, rows[i].err);
    CHECK_INT(t.n_protos, 1);
    outcome_drop(&outcome);
    close_form(&t);
  }
}

/* ---- Memory ---- */

enum { MAX_ALLOCATIONS = 3000 };

/* The client works on. */
static void script_check_step(script_t *script) {
  outcome_t outcome;

  outcome_of(&outcome, script_step(script));
  script_settle(script, &outcome);
  outcome_ok(script, &outcome);
  outcome_drop(&outcome);
}

/* A pass that changes its form, with its n-th allocation failing. The next
 * operation works, and a pass then has the form that the server reads. Returns
 * 0 if there were fewer allocations. */
static int run_without(size_t kind, size_t way, int status, long n) {
  outcome_t outcome;
  form_t t;
  int did_fail;
  int is_refused;

  open_form(&t, ways[way].flags);
  t.status = status;
  test_alloc_fail_at(n);
  outcome_of(&outcome, kinds[kind].start(&t.script));
  script_settle(&t.script, &outcome);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  /* An attempt without memory for its response may have been run, as far as a
   * 422 shows. */
  is_refused = did_fail && status == 422 && outcome.status == TNK_EREQUEST;
  if (outcome.n_done != 1 || (outcome.status != TNK_OK && !is_refused &&
                              (outcome.status != TNK_ENOMEM || !did_fail)))
    test_fail(__FILE__, __LINE__, "%s, %s, allocation %ld: %s",
              kinds[kind].name, ways[way].flags, n, outcome.text);
  CHECK(t.script.n_log_texts <= 1);
  outcome_drop(&outcome);
  script_check_step(&t.script);
  outcome_of(&outcome, backward(&t.script));
  script_settle(&t.script, &outcome);
  outcome_ok(&t.script, &outcome);
  CHECK_INT(tnk_pass_count(tnk_promise_pass(outcome.promise)), N_DATA);
  outcome_drop(&outcome);
  close_form(&t);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

static void run_kind(size_t kind) {
  for (size_t way = 0; way < N_WAYS; way++)
    for (size_t i = 0; i < N_REFUSALS; i++) {
      long n = 0;

      while (run_without(kind, way, refusals[i], n))
        CHECK(++n < MAX_ALLOCATIONS);
      CHECK(n > 10);
    }
}

TEST_LIMIT(B17_a_pass_becomes_JSON_without_memory, 60) {
  run_kind(0);
}

TEST_LIMIT(B17_a_forward_becomes_JSON_without_memory, 60) {
  run_kind(1);
}

TEST_LIMIT(B17_a_custom_loss_becomes_JSON_without_memory, 60) {
  run_kind(2);
}

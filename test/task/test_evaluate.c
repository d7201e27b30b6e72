/* SPDX-License-Identifier: MIT */
/*
 * Evaluations: the number of passes and what becomes of each, ended in every
 * way and at every moment, and with each allocation failing in turn.
 */
#include <math.h>

#include "task/kinds.h"
#include "task/matrix.h"

enum { MOST = 7 };

static tnk_promise_t *evaluate(script_t *script, size_t n, size_t n_batch) {
  tnk_eval_options_t options = TNK_EVAL_OPTIONS_INIT;

  options.n_batch = n_batch;
  return tnk_training_evaluate(script->training, script_data(n), n, &options);
}

/* ---- What the server says ---- */

typedef enum {
  SAYS_LOSS,     /* the metric "loss:sum", 1 for each example */
  SAYS_LOGPROBS, /* no metrics */
  SAYS_NOTHING,  /* neither metrics nor outputs */
  SAYS_OTHERS,   /* metrics without a loss */
  SAYS_FAILURE,  /* of one pass */
  N_REPLIES
} reply_t;

typedef struct {
  script_t script;
  reply_t reply;
  long failing; /* number of the pass, from 1 */
  int is_slow;  /* it never answers the other passes */
} server_t;

static void reply_logprobs(mock_request_t *request, size_t n) {
  char text[2048] = "{\"loss_fn_output_type\":\"ArrayRecord\",\"metrics\":{},"
                    "\"loss_fn_outputs\":[";
  size_t at = strlen(text);

  for (size_t i = 0; i < n; i++)
    at += (size_t)snprintf(text + at, sizeof(text) - at,
                           "%s{\"logprobs\":{\"data\":[-1.0,-2.0],"
                           "\"dtype\":\"float32\",\"shape\":[2]}}",
                           i > 0 ? "," : "");
  snprintf(text + at, sizeof(text) - at, "]}");
  mock_reply_json(request, 200, text);
}

/* The future of a pass is called "forward_backward:NUMBER:EXAMPLES". */
static void on_poll(mock_request_t *request, void *user) {
  const server_t *server = user;
  const char *body = (const char *)request->body;
  const char *id = strstr(body, "forward_backward:");
  const char *number = id != NULL ? strchr(id, ':') + 1 : NULL;

  if (number == NULL || server->reply == SAYS_LOSS)
    script_result(request, user);
  else if (server->reply == SAYS_LOGPROBS)
    reply_logprobs(request, (size_t)atol(strchr(number, ':') + 1));
  else if (server->reply == SAYS_NOTHING)
    reply_logprobs(request, 0);
  else if (server->reply == SAYS_OTHERS)
    mock_reply_json(request, 200,
                    "{\"loss_fn_output_type\":\"ArrayRecord\","
                    "\"metrics\":{\"x:mean\":1.0},\"loss_fn_outputs\":[]}");
  else if (atol(number) == server->failing)
    mock_reply_json(request, 200, "{\"error\":\"boom\",\"category\":\"user\"}");
  else if (server->is_slow)
    mock_hold(request, NULL);
  else
    script_result(request, user);
}

static void open_server(server_t *server, reply_t reply, long failing) {
  memset(server, 0, sizeof(*server));
  script_open_train(&server->script);
  mock_on(server->script.mock, "POST", POLL, on_poll, server);
  server->reply = reply;
  server->failing = failing;
}

/* ---- Passes and outcomes ---- */

/* The sum of n examples of two tokens. */
static double expected_sum(reply_t reply, size_t n) {
  if (reply == SAYS_LOSS)
    return (double)n;
  return reply == SAYS_LOGPROBS ? 3 * (double)n : NAN;
}

static void check_result(const outcome_t *outcome, reply_t reply, size_t n,
                         size_t n_passes) {
  const tnk_eval_t *eval = tnk_promise_eval(outcome->promise);
  const double sum = expected_sum(reply, n);

  CHECK(eval != NULL);
  CHECK_NEAR(eval->loss_sum, sum, 0);
  CHECK_NEAR(eval->loss, sum / (2 * (double)n), 0);
  CHECK_NEAR(eval->weight, 2 * (double)n, 0);
  CHECK_INT(eval->n_tokens, 2 * n);
  CHECK_INT(eval->n_data, n);
  CHECK_INT(eval->n_passes, n_passes);
  CHECK(tnk_promise_pass(outcome->promise) == NULL);
}

/* The passes that the server has received, without the step behind them. */
static void check_passes(const script_t *script, size_t n, size_t n_batch,
                         size_t n_passes) {
  CHECK_INT(script->n_sent, n_passes);
  for (size_t i = 0; i < n_passes; i++) {
    const size_t left = n - i * n_batch;

    script_check_sent(script, i, "forward_backward", (long long)i + 1);
    CHECK_INT(script->sent[i].forward_only, 1);
    CHECK_INT(script->sent[i].n_data, left < n_batch ? left : n_batch);
  }
}

static void run_passes(size_t n, size_t n_batch, reply_t reply, long failing) {
  const size_t n_passes = n_batch > 0 ? (n + n_batch - 1) / n_batch : 1;
  server_t server;
  outcome_t outcome;
  char text[96];

  snprintf(text, sizeof(text), "%zu examples, %zu a pass, reply %d of pass %ld",
           n, n_batch, (int)reply, failing);
  test_context(text);
  open_server(&server, reply, failing);
  outcome_of(&outcome, evaluate(&server.script, n, n_batch));
  script_settle(&server.script, &outcome);
  CHECK_INT(outcome.n_done, 1);
  if (reply == SAYS_FAILURE) {
    CHECK_INT(outcome.status, TNK_EFAILED);
    CHECK(strstr(outcome.text, "boom") != NULL);
    CHECK(tnk_promise_eval(outcome.promise) == NULL);
  } else {
    CHECK_INT(outcome.status, TNK_OK);
    check_result(&outcome, reply, n, n_passes);
    check_passes(&server.script, n, n_batch > 0 ? n_batch : n, n_passes);
  }
  outcome_drop(&outcome);
  server.reply = SAYS_LOSS;
  script_check_next(&server.script);
  script_close(&server.script);
  CHECK_INT(test_alloc_live(), 0);
}

TEST_LIMIT(each_number_of_passes_and_each_reply, 120) {
  static const size_t batches[] = {0, 1, 2, 3, 7, 100};

  for (size_t n = 1; n <= MOST; n += 2)
    for (size_t b = 0; b < sizeof(batches) / sizeof(*batches); b++)
      for (int reply = 0; reply < SAYS_FAILURE; reply++)
        run_passes(n, batches[b], (reply_t)reply, 0);
}

TEST_LIMIT(each_pass_may_fail, 120) {
  for (size_t n_batch = 1; n_batch <= 3; n_batch++)
    for (long failing = 1; failing <= (long)((5 + n_batch - 1) / n_batch);
         failing++)
      run_passes(5, n_batch, SAYS_FAILURE, failing);
}

/* Nobody needs the others, and they may be long. */
TEST(a_pass_that_fails_cancels_the_others) {
  for (long failing = 1; failing <= 3; failing++) {
    server_t server;
    outcome_t outcome;

    open_server(&server, SAYS_FAILURE, failing);
    server.is_slow = 1;
    outcome_of(&outcome, evaluate(&server.script, 3, 1));
    outcome_fails(&server.script, &outcome, TNK_EFAILED);
    script_turns(&server.script);
    CHECK_INT(server.script.service->root.context.n_pending, 0);
    outcome_drop(&outcome);
    script_close(&server.script);
  }
}

/* The default is what a request of a server without limits has. */
TEST(a_large_set_has_passes_of_1024_examples) {
  server_t server;
  outcome_t outcome;

  open_server(&server, SAYS_LOSS, 0);
  outcome_of(&outcome, tnk_training_evaluate(server.script.training,
                                             script_data(2050), 2050, NULL));
  script_settle(&server.script, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  check_result(&outcome, SAYS_LOSS, 2050, 3);
  check_passes(&server.script, 2050, 1024, 3);
  outcome_drop(&outcome);
  script_close(&server.script);
}

/* ---- Weights ---- */

static const int32_t ids[] = {1, 2, 3};
static const int64_t targets[] = {2, 3, 4};
static const float none[] = {0, 0, 0};
static const float some[] = {0, 0.5f, 2};
static const float logprobs[] = {0, -0.5f, -1};

static tnk_datum_t datum_of(const float *weights) {
  return (tnk_datum_t){.input = {.tokens = ids, .n_tokens = 3},
                       .targets = targets,
                       .weights = weights};
}

TEST(each_kind_of_weight_counts) {
  const tnk_loss_input_t sampled = {"logprobs", tnk_tensor_f32(logprobs, 3)};
  tnk_datum_t data[] = {datum_of(NULL), datum_of(none), datum_of(some),
                        datum_of(some)};

  data[3].loss_inputs = &sampled;
  data[3].n_loss_inputs = 1;
  CHECK_NEAR(tnk_data_weight(data, 0), 0, 0);
  CHECK_NEAR(tnk_data_weight(NULL, 3), 0, 0);
  CHECK_NEAR(tnk_data_weight(data, 1), 3, 0);
  CHECK_NEAR(tnk_data_weight(data, 2), 3, 0);
  CHECK_NEAR(tnk_data_weight(data, 3), 5.5, 0);
  CHECK_NEAR(tnk_data_weight(data, 4), 7.5, 0); /* two sampled tokens */
  CHECK(isnan(tnk_pass_loss_sum(NULL)));
}

/* The sum in the order of the tokens, without a shortcut. */
static double sum_of(const float *weights, size_t n) {
  double sum = 0;

  for (size_t i = 0; i < n; i++)
    sum += (double)weights[i];
  return sum;
}

TEST(the_sum_of_weights_is_that_in_their_order) {
  enum { LENGTH = 999 };
  static const float kinds[][3] = {
      {0, 0, 0},          {1, 1, 1},          {0, 1, 0},
      {0, 0.1f, 0.1f},    {-0.7f, 0, -0.7f},  {1e-45f, 0, 1e-45f},
      {3e38f, 3e38f, 0},  {0.1f, 0.2f, 0.3f}, {0, 1, -1},
      {1e30f, 1, -1e30f}, {-0.0f, 0, 1},      {INFINITY, 0, INFINITY},
      {INFINITY, 0, 1},   {NAN, 1, 1},        {1, 1, NAN}};
  static int32_t all[LENGTH];
  static float weights[LENGTH];

  for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
    for (size_t n = 0; n <= LENGTH; n += n < 40 ? 1 : 137) {
      const tnk_datum_t datum = {.input = {.tokens = all, .n_tokens = n},
                                 .weights = weights};
      double got, wanted;

      for (size_t i = 0; i < n; i++)
        weights[i] = kinds[kind][i * 7 % 11 % 3];
      got = tnk_data_weight(&datum, 1);
      wanted = sum_of(weights, n);
      CHECK(isnan(wanted) ? isnan(got) : got == wanted);
    }
}

TEST(a_set_without_weight_has_no_mean) {
  const tnk_datum_t data[] = {datum_of(none), datum_of(none)};
  server_t server;
  outcome_t outcome;

  open_server(&server, SAYS_LOSS, 0);
  script_ok(&server.script, &outcome,
            tnk_training_evaluate(server.script.training, data, 2, NULL));
  CHECK_NEAR(tnk_promise_eval(outcome.promise)->weight, 0, 0);
  CHECK(isnan(tnk_promise_eval(outcome.promise)->loss));
  CHECK_NEAR(tnk_promise_eval(outcome.promise)->loss_sum, 2, 0);
  outcome_drop(&outcome);
  script_close(&server.script);
}

/* ---- Refusals ---- */

TEST(bad_data_is_refused_before_a_pass_is_sent) {
  tnk_datum_t data[3];
  tnk_eval_options_t options = TNK_EVAL_OPTIONS_INIT;
  server_t server;
  outcome_t outcome;
  const struct {
    const tnk_datum_t *data;
    size_t n;
    const char *loss_fn;
    const char *why;
  } rows[] = {{data, 0, NULL, "evaluate: "},
              {NULL, 1, NULL, "evaluate: "},
              {data, 3, NULL, "evaluate: datum 2"},
              {data, 2, "", "evaluate: loss_fn"}};

  for (int i = 0; i < 3; i++)
    data[i] = datum_of(NULL);
  data[2].targets = NULL; /* of the last pass */
  options.n_batch = 1;
  open_server(&server, SAYS_LOSS, 0);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    options.loss_fn = rows[i].loss_fn;
    script_fails(&server.script, &outcome,
                 tnk_training_evaluate(server.script.training, rows[i].data,
                                       rows[i].n, &options),
                 TNK_EINVAL);
    if (strncmp(outcome.text, rows[i].why, strlen(rows[i].why)) != 0)
      test_fail(__FILE__, __LINE__, "row %zu: %s", i, outcome.text);
    outcome_drop(&outcome);
  }
  CHECK_INT(server.script.n_sent, 0);
  CHECK(tnk_training_evaluate(NULL, data, 1, NULL) == NULL);
  script_close(&server.script);
}

/* ---- Order ---- */

/* The step that is called right behind it comes behind all of its passes. */
TEST(a_later_step_changes_no_pass) {
  outcome_t outcome, step;
  server_t server;

  open_server(&server, SAYS_LOSS, 0);
  outcome_of(&outcome, evaluate(&server.script, 5, 2));
  outcome_of(&step, script_step(&server.script));
  outcome_ok(&server.script, &outcome);
  outcome_ok(&server.script, &step);
  CHECK_INT(server.script.n_sent, 4);
  for (size_t i = 0; i < 4; i++)
    script_check_sent(&server.script, i,
                      i < 3 ? "forward_backward" : "optim_step",
                      (long long)i + 1);
  outcome_drop(&outcome);
  outcome_drop(&step);
  script_close(&server.script);
}

/* ---- Cancellation ---- */

/* Returns the status of an evaluation that is canceled after some turns. */
static int cancel_after(int turns, reply_t reply, long failing) {
  tnk_promise_t *promise;
  outcome_t outcome;
  server_t server;

  open_server(&server, reply, failing);
  promise = evaluate(&server.script, 3, 1);
  outcome_of(&outcome, tnk_promise_ref(promise));
  mock_turns(server.script.mock, turns);
  tnk_promise_cancel(promise);
  tnk_promise_cancel(promise);
  script_settle(&server.script, &outcome);
  CHECK_INT(outcome.n_done, 1);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  CHECK((tnk_promise_eval(outcome.promise) != NULL) ==
        (outcome.status == TNK_OK));
  server.reply = SAYS_LOSS;
  script_check_next(&server.script);
  outcome_drop(&outcome);
  script_close(&server.script);
  CHECK_INT(test_alloc_live(), 0);
  return outcome.status;
}

TEST_LIMIT(cancel_at_each_moment, 120) {
  for (int with_failure = 0; with_failure < 2; with_failure++) {
    const reply_t reply = with_failure ? SAYS_FAILURE : SAYS_LOSS;
    const int end = with_failure ? TNK_EFAILED : TNK_OK;
    int status = cancel_after(0, reply, 2);
    int turns = 0;

    CHECK_INT(status, TNK_ECANCELED);
    while (status == TNK_ECANCELED && turns < 200)
      status = cancel_after(++turns, reply, 2);
    CHECK_INT(status, end);
    CHECK(turns > 5);
    CHECK_INT(cancel_after(turns + 20, reply, 2), end);
  }
}

/* ---- Every state, ended in every way ---- */

static tnk_promise_t *start_eval(cell_t *cell) {
  tnk_promise_t *promise = evaluate(&cell->script, 3, 2);

  turns(cell);
  return promise;
}

static tnk_promise_t *behind_a_step(cell_t *cell) {
  hold(cell, STEP);
  other(cell, script_step(&cell->script));
  return start_eval(cell);
}

static tnk_promise_t *eval_submitted(cell_t *cell) {
  hold(cell, FB);
  return start_eval(cell);
}

static tnk_promise_t *eval_polls(cell_t *cell) {
  hold(cell, POLL);
  return start_eval(cell);
}

static tnk_promise_t *first_is_done(cell_t *cell) {
  mock_on(cell->script.mock, "POST", POLL, mock_hold, NULL);
  mock_once(cell->script.mock, "POST", POLL, script_result, &cell->script);
  return start_eval(cell);
}

static const state_t states[] = {
    {"behind a step", "waits for its turn",
     "evaluate: waits for 2 of 2 passes; the first of them: *", NULL,
     behind_a_step},
    {"submitted", "waits for the server's answer",
     "evaluate: waits for 2 of 2 passes; the first of them: *", NULL,
     eval_submitted},
    {"polled", "poll 1 of its result waits",
     "evaluate: waits for 2 of 2 passes; the first of them: *", NULL,
     eval_polls},
    {"one pass is done", "waits for 1 of 2 passes",
     "evaluate: waits for 1 of 2 passes; the first of them: *", NULL,
     first_is_done},
    {"has settled", SETTLED, SETTLED, NULL, start_eval},
};

TEST_LIMIT(evaluation_in_every_state, 120) {
  run_table(TRAINING, "evaluation", states, sizeof(states) / sizeof(*states));
}

/* ---- Memory ---- */

/* Returns whether there were so many allocations. */
static int run_without(long n) {
  outcome_t outcome;
  server_t server;
  int did_fail;

  open_server(&server, SAYS_LOSS, 0);
  test_alloc_fail_at(n);
  outcome_of(&outcome, evaluate(&server.script, 3, 1));
  script_settle(&server.script, &outcome);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK_INT(outcome.n_done, 1);
  CHECK(outcome.status == TNK_OK || (did_fail && outcome.status == TNK_ENOMEM));
  script_check_next(&server.script);
  outcome_drop(&outcome);
  script_close(&server.script);
  CHECK_INT(test_alloc_live(), 0);
  return did_fail;
}

TEST_LIMIT(each_allocation_fails_once, 120) {
  long n = 0;

  while (run_without(n))
    CHECK(++n < 1000);
  CHECK(n > 20);
}

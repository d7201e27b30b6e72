/* SPDX-License-Identifier: MIT */
/*
 * More operations with each of their allocations failing in turn: those that
 * are made of several promises, hold memory of the caller, or end on another
 * thread. See test_alloc.c.
 */
#include "lib/api/root.h"
#include "task/kinds.h"

enum { MAX_ALLOCATIONS = 1000, N_PARTS = 3 };

/* Run a scenario with its n-th allocation failing, for all n. It returns
 * whether every allocation was made before that. */
static void run_all(int (*run)(long n)) {
  long n = 0;

  while (!run(n))
    CHECK(++n < MAX_ALLOCATIONS);
  CHECK(n > 0);
}

static void check_end(const outcome_t *outcome) {
  if (outcome->n_done != 1 ||
      (outcome->status != TNK_OK && outcome->status != TNK_ENOMEM))
    test_fail(__FILE__, __LINE__, "settled %d times: %s", outcome->n_done,
              outcome->text);
}

/* ---- Groups ---- */

typedef tnk_promise_t *(*group_fn)(tnk_promise_t *const *parts, size_t n);

static tnk_promise_t *with_timeout(tnk_promise_t *const *parts, size_t n) {
  for (size_t i = 1; i < n; i++)
    tnk_then(parts[i], NULL, NULL);
  return tnk_with_timeout(parts[0], 1000000);
}

static int run_group(group_fn group, long n) {
  tnk_promise_t *parts[N_PARTS];
  outcome_t outcome;
  script_t script;
  int did_fail;

  script_open_train(&script);
  script_sampler(&script);
  test_alloc_fail_at(n);
  parts[0] = script_pass(&script, 1);
  parts[1] = script_step(&script);
  parts[2] = script_sample(&script);
  outcome_of(&outcome, group(parts, N_PARTS));
  script_settle(&script, &outcome);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  check_end(&outcome);
  script_check_next(&script);
  outcome_drop(&outcome);
  script_close(&script);
  return !did_fail;
}

static int run_group_of_all(long n) {
  return run_group(tnk_all, n);
}

static int run_group_settled(long n) {
  return run_group(tnk_all_settled, n);
}

static int run_group_timed(long n) {
  return run_group(with_timeout, n);
}

TEST_LIMIT(S3_26a_all_of_a_group_without_memory, 60) {
  run_all(run_group_of_all);
}

TEST_LIMIT(S3_26a_a_settled_group_without_memory, 60) {
  run_all(run_group_settled);
}

TEST_LIMIT(S3_26a_a_time_limit_without_memory, 60) {
  run_all(run_group_timed);
}

/* ---- Several callbacks on one promise ---- */

typedef struct {
  int n;
  int n_other; /* told of something else than the outcome */
} listener_t;

static void on_listen(tnk_promise_t *promise, int status, void *user) {
  listener_t *listener = user;

  (void)promise;
  listener->n++;
  listener->n_other += status != TNK_OK;
}

static int run_listeners(long n) {
  listener_t listeners[N_PARTS] = {{0, 0}};
  outcome_t outcome;
  tnk_promise_t *p;
  script_t script;
  int did_fail;

  script_open_train(&script);
  p = script_step(&script);
  outcome_of(&outcome, tnk_promise_ref(p));
  test_alloc_fail_at(n);
  for (int i = 0; i < N_PARTS; i++)
    CHECK_INT(tnk_then(i + 1 < N_PARTS ? tnk_promise_ref(p) : p, on_listen,
                       &listeners[i]),
              TNK_OK);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  outcome_ok(&script, &outcome);
  script_turns(&script);
  for (int i = 0; i < N_PARTS; i++) {
    CHECK_INT(listeners[i].n, 1);
    CHECK_INT(listeners[i].n_other, 0);
  }
  outcome_drop(&outcome);
  script_close(&script);
  return !did_fail;
}

TEST_LIMIT(S3_26a_callbacks_without_memory, 60) {
  run_all(run_listeners);
}

/* ---- Data that is lent ---- */

static void on_release(void *user) {
  ++*(int *)user;
}

static int run_lent(tnk_custom_loss_cb loss, long n) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  int n_released = 0;
  outcome_t outcome;
  script_t script;
  int did_fail;

  options.release = on_release;
  options.release_user = &n_released;
  script_open_train(&script);
  test_alloc_fail_at(n);
  if (loss != NULL)
    outcome_of(&outcome,
               tnk_training_forward_backward_custom(
                   script.training, script_data(2), 2, loss, NULL, &options));
  else
    outcome_of(&outcome, tnk_training_forward(script.training, script_data(2),
                                              2, &options));
  script_settle(&script, &outcome);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  check_end(&outcome);
  script_check_next(&script);
  CHECK_INT(n_released, 1);
  outcome_drop(&outcome);
  script_close(&script);
  return !did_fail;
}

static int run_lent_forward(long n) {
  return run_lent(NULL, n);
}

static int run_lent_custom(long n) {
  return run_lent(kind_loss, n);
}

TEST_LIMIT(S3_26a_lent_data_without_memory, 60) {
  run_all(run_lent_forward);
}

TEST_LIMIT(S3_26a_data_lent_to_a_custom_loss_without_memory, 60) {
  run_all(run_lent_custom);
}

/* ---- A session that ends, with everybody told ---- */

static void on_notice(const char *client, tnk_queue_state_t state,
                      const char *reason, void *user) {
  (void)client;
  (void)reason;
  *(int *)user += state == TNK_QUEUE_SESSION_LOST;
}

static int run_lost_session(long n) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  int n_lost = 0;
  outcome_t outcome;
  script_t script;
  int did_fail;

  options.on_queue_state = on_notice;
  options.queue_state_user = &n_lost;
  script_open_with(&script, options);
  script_train(&script);
  mock_json(script.mock, "POST", "/api/v1/session_heartbeat", 410, "{}");
  mock_json(script.mock, "POST", "/api/v1/optim_step", 404, "{}");
  test_alloc_fail_at(n);
  for (int i = 0; i < 4; i++) /* a beat may fail for want of memory */
    script_advance(&script, 10000);
  did_fail = test_alloc_did_fail();
  CHECK_INT(n_lost, 1);
  outcome_of(&outcome, script_step(&script));
  script_settle(&script, &outcome);
  did_fail |= test_alloc_did_fail();
  test_alloc_fail_at(-1);
  if (outcome.status != TNK_ENOMEM)
    CHECK_INT(outcome.status, TNK_ESESSION);
  outcome_drop(&outcome);
  script_close(&script);
  return !did_fail;
}

TEST_LIMIT(S3_26a_a_lost_session_without_memory, 60) {
  run_all(run_lost_session);
}

/* ---- A runtime ---- */

static void on_post(uv_loop_t *loop, void *user) {
  (void)loop;
  ++*(int *)user;
}

static int run_runtime(long n) {
  tnk_runtime_t *runtime = NULL;
  int n_posted = 0;
  int did_fail;
  int started;
  int posted = TNK_ENOMEM;

  test_alloc_fail_at(n);
  started = tnk__runtime_start(&runtime, test_allocator());
  if (started == TNK_OK)
    posted = tnk_runtime_post(runtime, on_post, &n_posted);
  did_fail = test_alloc_did_fail();
  test_alloc_fail_at(-1);
  CHECK((started != TNK_OK || posted != TNK_OK) == did_fail);
  CHECK(started == TNK_OK || started == TNK_ENOMEM);
  CHECK(posted == TNK_OK || posted == TNK_ENOMEM);
  CHECK((runtime != NULL) == (started == TNK_OK));
  CHECK_INT(tnk_runtime_stop(runtime), TNK_OK);
  CHECK_INT(n_posted, posted == TNK_OK);
  return !did_fail;
}

TEST_LIMIT(S3_26a_a_runtime_without_memory, 60) {
  run_all(run_runtime);
}

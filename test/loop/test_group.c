/* SPDX-License-Identifier: MIT */
#include "lib/io/loop/promise.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "loop/fixture.h"

/* A child: an operation that cancels in time unless told otherwise. */
typedef struct {
  tnk_promise_t *promise;
  int n_cancels;
  int is_late;
} child_t;

static void on_cancel(void *op) {
  child_t *child = op;

  child->n_cancels++;
  if (!child->is_late)
    tnk__promise_reject(child->promise, tnk__error_static(TNK_ECANCELED));
}

enum { N = 3 };

typedef struct {
  context_t context;
  child_t children[N];
  tnk_promise_t *list[N];
} fixture_t;

static void open_fixture(fixture_t *f) {
  int i;

  context_open(&f->context);
  tnk__context_fake_clock(&f->context.loop, 1000);
  memset(f->children, 0, sizeof(f->children));
  for (i = 0; i < N; i++) {
    f->list[i] = tnk__promise_new(&f->context.loop, on_cancel, &f->children[i]);
    f->children[i].promise = f->list[i];
  }
}

static void resolve(tnk_promise_t *promise) {
  tnk__promise_resolve(promise, TNK__RESULT_NONE, NULL, NULL);
}

static void reject(tnk_promise_t *promise, int code) {
  tnk__promise_reject(promise, tnk__error_static(code));
}

static void run(fixture_t *f) {
  int i;

  for (i = 0; i < 4; i++)
    context_turn(&f->context);
}

TEST(all_resolves_when_the_last_child_has) {
  fixture_t f;
  tnk_promise_t *all;
  int i;

  open_fixture(&f);
  all = tnk_all(f.list, N);
  for (i = N - 1; i >= 0; i--) {
    CHECK_INT(tnk_promise_state(all), TNK_PENDING);
    resolve(f.list[i]);
    run(&f);
  }
  CHECK_INT(tnk_promise_status(all), TNK_OK);
  for (i = 0; i < N; i++)
    CHECK(tnk_promise_child(all, (size_t)i) == f.list[i]);
  CHECK(tnk_promise_child(all, N) == NULL);
  tnk_promise_unref(all);
  context_close(&f.context);
}

TEST(all_rejects_with_the_first_failure_in_time) {
  fixture_t f;
  tnk_promise_t *all;

  open_fixture(&f);
  all = tnk_all(f.list, N);
  reject(f.list[2], TNK_ESERVER);
  run(&f);
  CHECK_INT(tnk_promise_status(all), TNK_ESERVER);
  /* The others go on, and are not cancelled. */
  CHECK_INT(f.children[0].n_cancels, 0);
  CHECK_INT(tnk_promise_state(tnk_promise_child(all, 0)), TNK_PENDING);
  reject(f.list[0], TNK_EAUTH);
  resolve(f.list[1]);
  run(&f);
  CHECK_INT(tnk_promise_status(all), TNK_ESERVER);
  CHECK_INT(f.context.n_warnings, 0);
  tnk_promise_unref(all);
  context_close(&f.context);
}

TEST(all_settled_waits_for_failures_too) {
  fixture_t f;
  tnk_promise_t *all;

  open_fixture(&f);
  all = tnk_all_settled(f.list, N);
  reject(f.list[0], TNK_ESERVER);
  resolve(f.list[1]);
  run(&f);
  CHECK_INT(tnk_promise_state(all), TNK_PENDING);
  reject(f.list[2], TNK_EAUTH);
  run(&f);
  CHECK_INT(tnk_promise_status(all), TNK_OK);
  CHECK_INT(tnk_promise_status(tnk_promise_child(all, 2)), TNK_EAUTH);
  tnk_promise_unref(all);
  context_close(&f.context);
}

TEST(children_that_have_settled_before_are_fine) {
  fixture_t f;
  tnk_promise_t *all;
  int i;

  open_fixture(&f);
  for (i = 0; i < N; i++)
    resolve(f.list[i]);
  all = tnk_all(f.list, N);
  CHECK_INT(tnk_promise_state(all), TNK_PENDING);
  CHECK_INT(tnk_wait(all), TNK_OK);
  tnk_promise_unref(all);
  context_close(&f.context);
}

TEST(a_group_dropped_early_neither_leaks_nor_cancels) {
  fixture_t f;
  int i;

  open_fixture(&f);
  tnk_then(tnk_all(f.list, N), NULL, NULL);
  for (i = 0; i < N; i++) {
    resolve(f.children[i].promise);
    CHECK_INT(f.children[i].n_cancels, 0);
  }
  context_close(&f.context);
}

TEST(cancelling_a_group_cancels_its_children) {
  fixture_t f;
  tnk_promise_t *all;

  open_fixture(&f);
  f.children[1].is_late = 1;
  resolve(f.list[0]);
  all = tnk_all(f.list, N);
  tnk_promise_cancel(all);
  tnk_promise_cancel(all);
  CHECK_INT(tnk_promise_status(all), TNK_ECANCELED);
  CHECK_INT(f.children[0].n_cancels, 0);
  CHECK_INT(f.children[1].n_cancels, 1);
  CHECK_INT(f.children[2].n_cancels, 1);
  resolve(f.children[1].promise);
  run(&f);
  CHECK_INT(tnk_promise_status(tnk_promise_child(all, 1)), TNK_OK);
  CHECK_INT(f.context.loop.counters.n_double_settles, 0);
  tnk_promise_unref(all);
  context_close(&f.context);
}

TEST(cancelling_a_group_of_groups_reaches_the_leaves) {
  fixture_t f;
  tnk_promise_t *inner;
  tnk_promise_t *outer;
  int i;

  open_fixture(&f);
  inner = tnk_all_settled(f.list, N);
  outer = tnk_with_timeout(inner, 1000);
  tnk_promise_cancel(outer);
  for (i = 0; i < N; i++)
    CHECK_INT(f.children[i].n_cancels, 1);
  run(&f);
  CHECK_INT(tnk_promise_status(outer), TNK_ECANCELED);
  CHECK_INT(f.context.loop.timers.n_foreground, 0);
  tnk_promise_unref(outer);
  context_close(&f.context);
}

TEST(null_children_count_as_rejected_with_einval) {
  fixture_t f;
  tnk_promise_t *list[2] = {NULL, NULL};
  tnk_promise_t *all;
  tnk_promise_t *settled;

  CHECK(tnk_all(list, 2) == NULL);
  CHECK(tnk_all(list, 0) == NULL);
  CHECK(tnk_with_timeout(NULL, 5) == NULL);
  open_fixture(&f);
  list[1] = f.list[0];
  all = tnk_all(list, 2);
  list[1] = f.list[1];
  settled = tnk_all_settled(list, 2);
  run(&f);
  CHECK_INT(tnk_promise_status(all), TNK_EINVAL);
  CHECK_STR(tnk_promise_text(all), "all: child 0 is NULL");
  CHECK_INT(tnk_promise_state(settled), TNK_PENDING);
  resolve(f.list[0]);
  resolve(f.list[1]);
  resolve(f.list[2]);
  run(&f);
  CHECK_INT(tnk_promise_status(settled), TNK_OK);
  tnk_promise_unref(all);
  tnk_promise_unref(settled);
  tnk_promise_unref(f.list[2]);
  context_close(&f.context);
}

static void free_text(const tnk_allocator_t *alloc, void *value) {
  tnk__free(alloc, value);
}

/* Only the first child is used; the other two are dropped. */
static void open_single(fixture_t *f) {
  int i;

  open_fixture(f);
  for (i = 1; i < N; i++) {
    resolve(f->list[i]);
    tnk_promise_unref(f->list[i]);
  }
}

TEST(with_timeout_in_time_reads_like_what_it_wraps) {
  fixture_t f;
  tnk_promise_t *timed;

  open_single(&f);
  timed = tnk_with_timeout(tnk_with_timeout(f.list[0], 200), 100);
  tnk__context_advance(&f.context.loop, 99);
  run(&f);
  CHECK_INT(tnk_promise_state(timed), TNK_PENDING);
  tnk__promise_resolve(f.list[0], TNK__RESULT_PATH,
                       tnk__strdup(test_allocator(), "tinker://x"), free_text);
  run(&f);
  CHECK_STR(tnk__promise_value(timed, TNK__RESULT_PATH), "tinker://x");
  CHECK(tnk__promise_value(timed, TNK__RESULT_PASS) == NULL);
  /* The timer is gone with the promise. */
  CHECK_INT(f.context.loop.timers.n_foreground, 0);
  tnk__context_advance(&f.context.loop, 1000);
  CHECK_INT(f.children[0].n_cancels, 0);
  tnk_promise_unref(timed);
  context_close(&f.context);
}

TEST(results_are_read_from_a_child_not_through_its_group) {
  fixture_t f;
  tnk_promise_t *all;

  open_single(&f);
  all = tnk_all(f.list, 1);
  tnk__promise_resolve(f.list[0], TNK__RESULT_PATH,
                       tnk__strdup(test_allocator(), "tinker://x"), free_text);
  run(&f);
  CHECK_INT(tnk_promise_state(all), TNK_RESOLVED);
  CHECK(tnk__promise_value(all, TNK__RESULT_PATH) == NULL);
  CHECK_STR(tnk__promise_value(tnk_promise_child(all, 0), TNK__RESULT_PATH),
            "tinker://x");
  tnk_promise_unref(all);
  context_close(&f.context);
}

TEST(with_timeout_too_late_rejects_and_cancels) {
  fixture_t f;
  tnk_promise_t *timed;

  open_single(&f);
  timed = tnk_with_timeout(f.list[0], 100);
  tnk__context_advance(&f.context.loop, 100);
  CHECK_INT(tnk_promise_status(timed), TNK_ETIMEDOUT);
  CHECK_STR(tnk_promise_text(timed), "deadline passed: is pending");
  CHECK_INT(f.children[0].n_cancels, 1);
  run(&f);
  CHECK_INT(tnk_promise_status(tnk_promise_child(timed, 0)), TNK_ECANCELED);
  CHECK_INT(f.context.n_warnings, 0);
  tnk_promise_unref(timed);
  context_close(&f.context);
}

TEST(with_timeout_needs_no_memory_to_reject) {
  fixture_t f;
  tnk_promise_t *timed;

  open_single(&f);
  timed = tnk_with_timeout(f.list[0], 100);
  test_alloc_fail_at(0);
  tnk__context_advance(&f.context.loop, 100);
  CHECK(test_alloc_did_fail());
  CHECK_INT(tnk_promise_status(timed), TNK_ETIMEDOUT);
  CHECK_STR(tnk_promise_text(timed), "deadline passed");
  test_alloc_fail_at(-1);
  run(&f);
  tnk_promise_unref(timed);
  context_close(&f.context);
}

TEST(with_timeout_zero_rejects_at_the_next_turn) {
  fixture_t f;
  tnk_promise_t *timed;

  open_single(&f);
  timed = tnk_with_timeout(f.list[0], 0);
  CHECK_INT(tnk_promise_state(timed), TNK_PENDING);
  tnk__context_advance(&f.context.loop, 0);
  CHECK_INT(tnk_promise_status(timed), TNK_ETIMEDOUT);
  tnk_promise_unref(timed);
  context_close(&f.context);
}

TEST(with_timeout_of_a_settled_promise_starts_no_timer) {
  fixture_t f;
  tnk_promise_t *timed;

  open_single(&f);
  reject(f.list[0], TNK_ESERVER);
  timed = tnk_with_timeout(f.list[0], 0);
  CHECK_INT(f.context.loop.timers.n_foreground, 0);
  run(&f);
  CHECK_INT(tnk_promise_status(timed), TNK_ESERVER);
  tnk_promise_unref(timed);
  context_close(&f.context);
}

TEST(a_dropped_timeout_still_cancels) {
  fixture_t f;

  open_single(&f);
  tnk_then(tnk_with_timeout(f.list[0], 100), NULL, NULL);
  tnk__context_advance(&f.context.loop, 100);
  CHECK_INT(f.children[0].n_cancels, 1);
  context_close(&f.context);
}

typedef tnk_promise_t *(*make_fn)(tnk_promise_t *const *promises, size_t n);

static tnk_promise_t *make_nested(tnk_promise_t *const *promises, size_t n) {
  tnk_promise_t *const two[2] = {tnk_all(promises, n - 1), promises[n - 1]};

  return tnk_with_timeout(tnk_all(two, 2), 1000);
}

static void count_call(tnk_promise_t *promise, int status, void *user) {
  (void)promise;
  (void)status;
  ++*(int *)user;
}

/* Each allocation fails in turn: the group always settles, and nothing leaks.
 * To watch its children takes none. */
static void fail_each_allocation(make_fn make) {
  long n;

  for (n = 0;; n++) {
    fixture_t f;
    tnk_promise_t *group;
    int n_called = 0;
    int did_fail;
    int i;

    open_fixture(&f);
    /* The place for a first callback is taken already. */
    for (i = 0; i < N; i++)
      tnk_then(tnk_promise_ref(f.list[i]), count_call, &n_called);
    test_alloc_fail_at(n);
    group = make(f.list, N);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    run(&f);
    for (i = 0; i < N; i++)
      resolve(f.children[i].promise);
    run(&f);
    CHECK_INT(n_called, N);
    CHECK(tnk_promise_state(group) != TNK_PENDING);
    CHECK_INT(tnk_promise_status(group), did_fail ? TNK_ENOMEM : TNK_OK);
    CHECK_INT(f.context.n_errors, 0);
    tnk_promise_unref(group);
    context_close(&f.context);
    if (!did_fail)
      break;
  }
  CHECK(n >= 2);
}

/* With no memory at all but for the group, and no spare left. */
TEST(a_group_sees_its_children_settle_without_memory) {
  enum { SPARES = 64 };
  fixture_t f;
  tnk_promise_t *all;
  int n_called = 0;
  int i;

  open_fixture(&f);
  for (i = 0; i < SPARES + N; i++) {
    if (i >= N)
      test_alloc_fail_at(0);
    CHECK_INT(tnk_then(tnk_promise_ref(f.list[i % N]), count_call, &n_called),
              TNK_OK);
  }
  CHECK(f.context.loop.spares == NULL);
  test_alloc_fail_at(2); /* after the promise and the group */
  all = tnk_all(f.list, N);
  CHECK(!test_alloc_did_fail());
  for (i = 0; i < N; i++)
    resolve(f.children[i].promise);
  run(&f);
  CHECK(!test_alloc_did_fail());
  test_alloc_fail_at(-1);
  CHECK_INT(tnk_promise_status(all), TNK_OK);
  CHECK_INT(n_called, SPARES + N);
  tnk_promise_unref(all);
  context_close(&f.context);
}

/* ---- What they say ---- */

static void cancel_unrun(void *op) {
  child_t *child = op;

  tnk__promise_reject(
      child->promise,
      tnk__error_ran(tnk__error_static(TNK_ECANCELED), TNK_RAN_NO));
}

TEST(a_canceled_group_says_what_was_canceled_and_that_it_was_not_run) {
  for (int i = 0; i < 4; i++) {
    fixture_t f;
    tnk_promise_t *group;
    open_fixture(&f);
    for (int k = 0; k < N; k++) {
      tnk__promise_bind(f.list[k], cancel_unrun, NULL, &f.children[k]);
      tnk__promise_name(f.list[k], k == 0 ? "sample" : "optim_step");
    }
    group = i % 2 == 0 ? tnk_all(f.list, N) : tnk_all_settled(f.list, N);
    if (i >= 2)
      group = tnk_with_timeout(group, 1000);
    tnk_promise_cancel(group);
    CHECK_STR(tnk_promise_text(group), "sample: canceled; it was not run");
    CHECK_INT(tnk_promise_error(group)->ran, TNK_RAN_NO);
    CHECK_INT(tnk_promise_status(group), TNK_ECANCELED);
    run(&f);
    tnk_promise_unref(group);
    context_close(&f.context);
  }
}

TEST(a_rejection_names_its_operation_if_there_is_memory) {
  fixture_t f;
  tnk_promise_t *all;
  char text[64];

  open_fixture(&f);
  tnk__promise_name(f.list[1], "optim_step");
  tnk__promise_reject(f.list[1], tnk__error_ran(tnk__error_static(TNK_ECLOSED),
                                                TNK_RAN_UNKNOWN));
  /* To explain allocates nothing. */
  test_alloc_fail_at(0);
  tnk_promise_explain(f.list[1], text, sizeof(text));
  CHECK(!test_alloc_did_fail());
  CHECK(strncmp(text, "has failed: optim_step: the object is closed",
                strlen("has failed: optim_step: the object is closed")) == 0);
  CHECK_STR(tnk_promise_text(f.list[1]),
            "the object is closed or closing; it may have been run");
  CHECK(test_alloc_did_fail());
  all = tnk_all(f.list, N);
  run(&f);
  CHECK_STR(tnk_promise_text(all), "optim_step: the object is closed or "
                                   "closing; it may have been run");
  CHECK_INT(tnk_promise_error(all)->ran, TNK_RAN_UNKNOWN);
  resolve(f.list[0]);
  resolve(f.list[2]);
  run(&f);
  tnk_promise_unref(all);
  context_close(&f.context);
}

TEST(a_group_is_explained_while_the_loop_is_late) {
  fixture_t f;
  tnk_promise_t *timed;
  char text[128];

  open_single(&f);
  timed = tnk_with_timeout(f.list[0], 100);
  f.context.loop.fake_now += 5000;
  tnk_promise_explain(timed, text, sizeof(text));
  CHECK_STR(text, "times out in 0 ms; is pending");
  tnk__context_advance(&f.context.loop, 0);
  run(&f);
  CHECK_INT(tnk_promise_status(timed), TNK_ETIMEDOUT);
  tnk_promise_unref(timed);
  context_close(&f.context);
}

/* ---- Any depth ---- */

enum { DEPTH = 100000 };

TEST_LIMIT(groups_may_be_nested_as_deep_as_one_likes, 20) {
  fixture_t f;
  tnk_promise_t *outer;
  char text[64];

  open_single(&f);
  outer = f.list[0];
  for (int i = 0; i < DEPTH; i++)
    outer = i % 2 == 0 ? tnk_with_timeout(outer, 1000) : tnk_all(&outer, 1);
  CHECK(tnk_promise_explain(outer, text, sizeof(text)) > sizeof(text));
  tnk_promise_cancel(outer);
  CHECK_INT(tnk_promise_status(outer), TNK_ECANCELED);
  CHECK_INT(f.children[0].n_cancels, 1);
  run(&f);
  tnk_promise_unref(outer);
  context_close(&f.context);
}

TEST_LIMIT(results_show_through_any_number_of_time_limits, 20) {
  fixture_t f;
  tnk_promise_t *outer;

  open_single(&f);
  outer = f.list[0];
  for (int i = 0; i < DEPTH; i++)
    outer = tnk_with_timeout(outer, 1000);
  tnk__promise_resolve(f.list[0], TNK__RESULT_PATH,
                       tnk__strdup(test_allocator(), "tinker://x"), free_text);
  CHECK_INT(tnk_wait(outer), TNK_OK);
  CHECK_STR(tnk__promise_value(outer, TNK__RESULT_PATH), "tinker://x");
  tnk_promise_unref(outer);
  context_close(&f.context);
}

/* ---- Memory ---- */

TEST(all_survives_every_failing_allocation) {
  fail_each_allocation(tnk_all);
}

TEST(all_settled_survives_every_failing_allocation) {
  fail_each_allocation(tnk_all_settled);
}

TEST(nested_groups_survive_every_failing_allocation) {
  fail_each_allocation(make_nested);
}

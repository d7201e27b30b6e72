/* SPDX-License-Identifier: MIT */
#include "lib/io/loop/promise.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "loop/fixture.h"

/* Callbacks write the letter they were given, and the last status. */
static char seen[256];
static size_t n_seen;
static int last_status;

static void on_settled(tnk_promise_t *promise, int status, void *user) {
  CHECK_INT(status, tnk_promise_status(promise));
  seen[n_seen++] = *(const char *)user;
  seen[n_seen] = '\0';
  last_status = status;
}

static void then(tnk_promise_t *promise, const char *letter) {
  CHECK_INT(tnk_then(promise, on_settled, (void *)letter), TNK_OK);
}

static int forget(tnk_promise_t *promise, const char *letter) {
  return tnk_promise_forget(promise, on_settled, (void *)letter);
}

static void resolve(tnk_promise_t *promise) {
  tnk__promise_resolve(promise, TNK__RESULT_NONE, NULL, NULL);
}

static void reject(tnk_promise_t *promise, int code) {
  tnk__promise_reject(promise, tnk__error_static(code));
}

static tnk_promise_t *new_promise(context_t *context) {
  return tnk__promise_new(&context->loop, NULL, NULL);
}

TEST(callbacks_run_in_order_and_never_inside_the_settling) {
  context_t context;
  tnk_promise_t *promise;

  context_open(&context);
  promise = new_promise(&context);
  then(tnk_promise_ref(promise), "a");
  then(tnk_promise_ref(promise), "b");
  then(promise, "c");
  CHECK_INT(tnk_promise_status(promise), TNK_EPENDING);
  CHECK_INT(context.loop.n_pending, 1);
  resolve(promise);
  CHECK_STR(seen, "");
  CHECK_INT(context.loop.n_pending, 0);
  context_turn(&context);
  CHECK_STR(seen, "abc");
  context_close(&context);
}

TEST(a_callback_on_a_settled_promise_is_deferred_too) {
  context_t context;
  tnk_promise_t *promise;

  context_open(&context);
  promise = new_promise(&context);
  resolve(promise);
  then(tnk_promise_ref(promise), "a");
  then(promise, "b");
  CHECK_STR(seen, "");
  context_turn(&context);
  CHECK_STR(seen, "ab");
  context_close(&context);
}

static void on_settled_again(tnk_promise_t *promise, int status, void *user) {
  on_settled(promise, status, user);
  if (n_seen < 3)
    tnk_then(tnk_promise_ref(promise), on_settled_again, user);
}

TEST(a_callback_that_registers_again_waits_for_the_next_turn) {
  context_t context;
  tnk_promise_t *promise;

  context_open(&context);
  promise = new_promise(&context);
  tnk_then(tnk_promise_ref(promise), on_settled_again, "a");
  then(promise, "b");
  resolve(promise);
  context_turn(&context);
  CHECK_STR(seen, "ab");
  context_turn(&context);
  CHECK_STR(seen, "aba");
  context_close(&context);
}

TEST(then_takes_the_reference) {
  context_t context;
  tnk_promise_t *promise;

  context_open(&context);
  promise = new_promise(&context);
  CHECK_INT(promise->refs, 2); /* ours and the operation's */
  then(promise, "a");
  CHECK_INT(promise->refs, 2);
  reject(promise, TNK_ESERVER);
  CHECK_INT(test_alloc_live() > 0, 1);
  context_turn(&context);
  CHECK_INT(last_status, TNK_ESERVER);
  CHECK_INT(context.n_warnings, 0);
  context_close(&context);
}

TEST(forgotten_callbacks_are_not_called_and_give_up_their_references) {
  context_t context;
  tnk_promise_t *promise;
  const char *a = "a";
  const char *b = "b";
  const char *c = "c";

  for (int settled = 0; settled < 2; settled++) {
    n_seen = 0;
    context_open(&context);
    promise = new_promise(&context);
    if (settled)
      resolve(tnk_promise_ref(promise));
    then(tnk_promise_ref(promise), a);
    then(tnk_promise_ref(promise), b);
    then(tnk_promise_ref(promise), a);
    then(tnk_promise_ref(promise), c);
    CHECK_INT(forget(promise, a), TNK_OK);
    CHECK_INT(forget(promise, a), TNK_ENOTFOUND);
    CHECK_INT(forget(promise, "z"), TNK_ENOTFOUND);
    CHECK_INT(tnk_promise_forget(promise, NULL, NULL), TNK_EINVAL);
    /* The place in the promise is free, but this one is the last all the same.
     */
    then(tnk_promise_ref(promise), a);
    if (!settled)
      resolve(tnk_promise_ref(promise));
    context_turn(&context);
    CHECK_STR(seen, "bca");
    CHECK_INT(promise->refs, 2);
    tnk_promise_unref(promise);
    tnk_promise_unref(promise);
    context_close(&context);
  }
}

/* Its only reference is the one that tnk_then() took. */
TEST(a_callback_that_is_forgotten_may_take_the_promise_with_it) {
  context_t context;
  tnk_promise_t *promise;

  context_open(&context);
  promise = new_promise(&context);
  resolve(promise);
  then(promise, "a");
  CHECK_INT(forget(promise, "a"), TNK_OK);
  context_turn(&context);
  CHECK_STR(seen, "");
  context_close(&context);
}

static const char *others[] = {"b", "c"};

static void forget_another(tnk_promise_t *promise, int status, void *user) {
  on_settled(promise, status, user);
  /* Not itself, which is being called; those behind it. */
  CHECK_INT(tnk_promise_forget(promise, forget_another, user), TNK_ENOTFOUND);
  CHECK_INT(forget(promise, others[0]), TNK_OK);
  then(tnk_promise_ref(promise), "n");
  then(tnk_promise_ref(promise), others[1]);
  CHECK_INT(forget(promise, others[1]), TNK_OK);
}

TEST(a_callback_may_forget_those_that_come_after_it) {
  context_t context;
  tnk_promise_t *promise;

  context_open(&context);
  promise = new_promise(&context);
  tnk_then(tnk_promise_ref(promise), forget_another, "a");
  then(tnk_promise_ref(promise), others[0]);
  then(tnk_promise_ref(promise), others[1]);
  then(tnk_promise_ref(promise), "d");
  resolve(promise);
  context_turn(&context);
  CHECK_STR(seen, "ad");
  context_turn(&context);
  CHECK_STR(seen, "adn");
  CHECK_INT(promise->refs, 1);
  tnk_promise_unref(promise);
  context_close(&context);
}

TEST(then_on_nothing_and_with_nothing_does_no_harm) {
  context_t context;
  tnk_promise_t *promise;

  CHECK_INT(tnk_then(NULL, on_settled, "a"), TNK_EINVAL);
  CHECK_INT(tnk_promise_forget(NULL, on_settled, "a"), TNK_EINVAL);
  tnk_promise_unref(NULL);
  tnk_promise_cancel(NULL);
  CHECK(tnk_promise_ref(NULL) == NULL);
  CHECK_INT(tnk_wait(NULL), TNK_EINVAL);
  CHECK_INT(tnk_promise_state(NULL), TNK_REJECTED);
  CHECK_INT(tnk_promise_status(NULL), TNK_EINVAL);
  CHECK_INT(tnk_promise_error(NULL)->code, TNK_EINVAL);
  CHECK(tnk_promise_text(NULL) != NULL);
  CHECK(tnk_promise_child(NULL, 0) == NULL);
  context_open(&context);
  promise = new_promise(&context);
  tnk_then(promise, NULL, NULL); /* drops, and marks as looked at */
  reject(promise, TNK_ESERVER);
  CHECK_INT(context.n_warnings, 0);
  context_close(&context);
}

TEST(a_failure_nobody_looked_at_is_logged_once) {
  context_t context;
  tnk_promise_t *promise;

  context_open(&context);
  promise = new_promise(&context);
  tnk_promise_ref(promise);
  reject(promise, TNK_ESERVER);
  tnk_promise_unref(promise);
  CHECK_INT(context.n_warnings, 0);
  tnk_promise_unref(promise);
  CHECK_INT(context.n_warnings, 1);
  /* Dropped before it failed. */
  promise = new_promise(&context);
  tnk_promise_unref(promise);
  reject(promise, TNK_ESERVER);
  CHECK_INT(context.n_warnings, 2);
  /* A success is nobody's loss. */
  promise = new_promise(&context);
  tnk_promise_unref(promise);
  resolve(promise);
  context_close(&context);
  CHECK_INT(context.n_warnings, 2);
}

TEST(looking_with_an_accessor_counts) {
  context_t context;
  tnk_promise_t *promise;
  int i;

  context_open(&context);
  for (i = 0; i < 4; i++) {
    promise = new_promise(&context);
    /* Before the end there was nothing to see. */
    CHECK_INT(tnk_promise_state(promise), TNK_PENDING);
    CHECK_INT(tnk_promise_status(promise), TNK_EPENDING);
    CHECK(tnk_promise_error(promise) == NULL);
    reject(promise, TNK_ESERVER);
    if (i == 1)
      CHECK_INT(tnk_promise_status(promise), TNK_ESERVER);
    if (i == 2)
      CHECK_INT(tnk_promise_state(promise), TNK_REJECTED);
    if (i == 3)
      CHECK(tnk_promise_text(promise) != NULL);
    tnk_promise_unref(promise);
    CHECK_INT(context.n_warnings, 1);
  }
  context_close(&context);
}

typedef struct {
  tnk_promise_t *promise;
  int n_calls;
  int in_time;
} operation_t;

static void on_cancel(void *op) {
  operation_t *operation = op;

  operation->n_calls++;
  if (operation->in_time)
    reject(operation->promise, TNK_ECANCELED);
}

TEST(cancel_in_time_rejects_once_and_in_the_next_turn) {
  context_t context;
  operation_t op = {.in_time = 1};

  context_open(&context);
  op.promise = tnk__promise_new(&context.loop, on_cancel, &op);
  then(tnk_promise_ref(op.promise), "a");
  tnk_promise_cancel(op.promise);
  tnk_promise_cancel(op.promise);
  CHECK_INT(op.n_calls, 1);
  CHECK_STR(seen, "");
  context_turn(&context);
  CHECK_STR(seen, "a");
  CHECK_INT(last_status, TNK_ECANCELED);
  tnk_promise_unref(op.promise);
  context_close(&context);
}

TEST(cancel_of_the_last_reference_is_safe) {
  context_t context;
  operation_t op = {.in_time = 1};

  context_open(&context);
  op.promise = tnk__promise_new(&context.loop, on_cancel, &op);
  tnk_then(op.promise, NULL, NULL); /* the operation's is the only one left */
  tnk_promise_cancel(op.promise);
  CHECK_INT(op.n_calls, 1);
  context_close(&context);
}

TEST(cancel_too_late_changes_nothing) {
  context_t context;
  operation_t op = {.in_time = 0};

  context_open(&context);
  op.promise = tnk__promise_new(&context.loop, on_cancel, &op);
  then(tnk_promise_ref(op.promise), "a");
  tnk_promise_cancel(op.promise);
  context_turn(&context);
  CHECK_STR(seen, "");
  resolve(op.promise);
  tnk_promise_cancel(op.promise); /* settled: the hook is gone */
  CHECK_INT(op.n_calls, 1);
  context_turn(&context);
  CHECK_INT(last_status, TNK_OK);
  tnk_promise_unref(op.promise);
  context_close(&context);
}

static int n_values_freed;

static void free_value(const tnk_allocator_t *alloc, void *value) {
  n_values_freed++;
  tnk__free(alloc, value);
}

/* Settles a promise from a timer, as an answer from outside would. */
typedef struct {
  tnk__timer_t timer;
  tnk_promise_t *promise;
} later_t;

static void on_later(tnk__timer_t *timer) {
  resolve(tnk__container_of(timer, later_t, timer)->promise);
}

TEST(wait_runs_the_loop_until_the_promise_has_settled) {
  context_t context;
  later_t later = {.promise = NULL};

  context_open(&context);
  later.promise = new_promise(&context);
  tnk__timer_start(&context.loop, &later.timer, 1, on_later);
  CHECK_INT(tnk_wait(later.promise), TNK_OK);
  CHECK_INT(tnk_wait(later.promise), TNK_OK);
  CHECK_STR(tnk_promise_text(later.promise), "success");
  tnk_promise_unref(later.promise);
  context_close(&context);
}

TEST(wait_with_nothing_left_to_run_says_so) {
  context_t context;
  tnk_promise_t *promise;

  context_open(&context);
  promise = new_promise(&context);
  CHECK_INT(tnk_wait(promise), TNK_EPENDING);
  reject(promise, TNK_ECLOSED);
  CHECK_INT(tnk_wait(promise), TNK_ECLOSED);
  tnk_promise_unref(promise);
  context_close(&context);
}

static int code_inside;
static int code_of_settled;

static void wait_inside(tnk_promise_t *promise, int status, void *user) {
  (void)status;
  code_inside = tnk_wait(user);
  code_of_settled = tnk_wait(promise);
}

TEST(wait_inside_a_callback_is_refused) {
  context_t context;
  tnk_promise_t *promise;
  tnk_promise_t *other;

  context_open(&context);
  promise = new_promise(&context);
  other = new_promise(&context);
  tnk_then(promise, wait_inside, other);
  resolve(promise);
  context_turn(&context);
  CHECK_INT(code_inside, TNK_EREENTRANT);
  CHECK_INT(code_of_settled, TNK_OK); /* there is nothing to run for it */
  reject(other, TNK_ESERVER);
  CHECK_INT(tnk_wait(other), TNK_ESERVER);
  tnk_promise_unref(other);
  context_close(&context);
}

TEST(without_memory_a_call_still_gives_a_promise) {
  context_t context;
  tnk_promise_t *promise;

  context_open(&context);
  test_alloc_fail_at(0);
  promise = new_promise(&context);
  CHECK(tnk__promise_is_oom(promise));
  CHECK_INT(tnk_promise_status(promise), TNK_ENOMEM);
  CHECK_INT(context.loop.n_pending, 0);
  then(tnk_promise_ref(promise), "a");
  then(promise, "b");
  CHECK_STR(seen, "");
  context_turn(&context);
  CHECK_STR(seen, "ab");
  CHECK_INT(last_status, TNK_ENOMEM);
  context_close(&context);
}

TEST(without_memory_a_rejection_becomes_that_of_memory) {
  context_t context;
  tnk_promise_t *promise;
  tnk__error_t *error =
      tnk__error_new(test_allocator(), TNK_EINVAL, "bad argument");

  context_open(&context);
  promise = tnk__promise_rejected(&context.loop, tnk__error_ref(error));
  CHECK_STR(tnk_promise_text(promise), "bad argument");
  tnk_promise_unref(promise);
  test_alloc_fail_at(0);
  promise = tnk__promise_rejected(&context.loop, error);
  CHECK_INT(tnk_promise_status(promise), TNK_ENOMEM);
  tnk_promise_unref(promise);
  context_close(&context);
}

TEST(a_further_callback_without_memory_is_called_all_the_same) {
  context_t context;
  tnk_promise_t *promise;

  context_open(&context);
  promise = new_promise(&context);
  then(tnk_promise_ref(promise), "a");
  test_alloc_fail_at(0);
  then(tnk_promise_ref(promise), "b");
  CHECK_INT(test_alloc_did_fail(), 1);
  context_turn(&context);
  CHECK_STR(seen, "");
  resolve(promise);
  context_turn(&context);
  CHECK_STR(seen, "ab");
  CHECK_INT(last_status, TNK_OK);
  CHECK_INT(promise->refs, 1);
  tnk_promise_unref(promise);
  context_close(&context);
}

/* One place and 64 spares: beyond that nothing can be registered, which is
 * told, and nothing leaks. Afterwards the spares serve again. */
TEST(spares_run_out_and_come_back) {
  context_t context;
  tnk_promise_t *promise;
  int round;
  int i;

  context_open(&context);
  for (round = 0; round < 2; round++) {
    n_seen = 0;
    promise = new_promise(&context);
    then(tnk_promise_ref(promise), "x");
    for (i = 0; i < 64; i++) {
      test_alloc_fail_at(0);
      then(tnk_promise_ref(promise), "x");
      CHECK(test_alloc_did_fail());
    }
    test_alloc_fail_at(0);
    CHECK_INT(tnk_then(tnk_promise_ref(promise), on_settled, "y"), TNK_ENOMEM);
    CHECK_INT(promise->refs, 67);
    resolve(promise);
    context_turn(&context);
    CHECK_INT(n_seen, 65);
    CHECK(strchr(seen, 'y') == NULL);
    CHECK_INT(promise->refs, 1);
    tnk_promise_unref(promise);
  }
  CHECK_INT(context.n_errors, 0);
  context_close(&context);
}

TEST(a_promise_may_outlive_its_context) {
  context_t *context = tnk__calloc(test_allocator(), 1, sizeof(*context));
  tnk_promise_t *resolved;
  tnk_promise_t *rejected;
  tnk_promise_t *shared;

  context_open(context);
  resolved = new_promise(context);
  tnk__promise_resolve(resolved, TNK__RESULT_PATH,
                       tnk__strdup(test_allocator(), "path"), free_value);
  rejected = new_promise(context);
  tnk__promise_reject(
      rejected, tnk__error_new(&context->loop.alloc, TNK_ECLOSED, "gone"));
  test_alloc_fail_at(0);
  shared = new_promise(context);
  context_close(context);
  /* From here on a look at the context is a use after free. */
  tnk__free(test_allocator(), context);
  CHECK_INT(tnk_wait(resolved), TNK_OK);
  CHECK_STR(tnk__promise_value(resolved, TNK__RESULT_PATH), "path");
  CHECK_STR(tnk_promise_text(rejected), "gone");
  CHECK_INT(tnk_promise_status(shared), TNK_ENOMEM);
  tnk_promise_cancel(rejected);
  CHECK_INT(tnk_then(tnk_promise_ref(resolved), on_settled, "a"), TNK_ECLOSED);
  CHECK_INT(tnk_then(tnk_promise_ref(shared), on_settled, "a"), TNK_ECLOSED);
  CHECK_INT(tnk_then(tnk_promise_ref(resolved), NULL, NULL), TNK_OK);
  CHECK_INT(forget(resolved, "a"), TNK_ENOTFOUND);
  CHECK_INT(resolved->refs, 1);
  tnk_promise_unref(resolved);
  tnk_promise_unref(rejected);
  tnk_promise_unref(shared);
  CHECK_STR(seen, "");
}

/* ---- What the observer hears ---- */

static uint64_t told_ns[TNK_PHASE_DELIVERED + 1];

static void on_event(const tnk_event_t *event, void *user) {
  (void)user;
  told_ns[event->phase] = event->time_ns;
}

typedef struct {
  tnk__deferred_t call;
  tnk_promise_t *promise;
} reading_t;

/* A result that takes some time to be read. */
static void on_read(tnk__deferred_t *call) {
  const reading_t *reading = tnk__container_of(call, reading_t, call);

  tnk__promise_waits(reading->promise, TNK_WAITS_FOR_POLL, 0);
  let_time_pass();
  resolve(reading->promise);
}

TEST(observe_P4_to_decode_takes_its_time_in_a_deferred_call_too) {
  reading_t reading;
  context_t context;

  context_open(&context);
  context.loop.observer = on_event;
  reading.promise = new_promise(&context);
  tnk__promise_enter(reading.promise, "sample", NULL);
  tnk__deferred_init(&reading.call, on_read);
  tnk__defer(&context.loop, &reading.call);
  context_turn(&context);
  CHECK(told_ns[TNK_PHASE_WAITS] >= told_ns[TNK_PHASE_QUEUED]);
  CHECK(told_ns[TNK_PHASE_DECODED] > told_ns[TNK_PHASE_WAITS]);
  tnk_promise_unref(reading.promise);
  context_close(&context);
}

/* SPDX-License-Identifier: MIT */
/* Promises of some of many. */
#include <string.h>

#include "lib/io/loop/promise.h"
#include "loop/fixture.h"

enum { N = 4 };

/* Operations that cancel in time unless told otherwise. */
typedef struct {
  tnk_promise_t *promise;
  int n_cancels;
  int is_late;
} child_t;

typedef struct {
  context_t context;
  child_t children[N];
  tnk_promise_t *list[N];
} fixture_t;

static void on_cancel(void *op) {
  child_t *child = op;

  child->n_cancels++;
  if (!child->is_late)
    tnk__promise_reject(child->promise, tnk__error_static(TNK_ECANCELED));
}

static void open_fixture(fixture_t *f) {
  context_open(&f->context);
  memset(f->children, 0, sizeof(f->children));
  for (int i = 0; i < N; i++) {
    f->list[i] = tnk__promise_new(&f->context.loop, on_cancel, &f->children[i]);
    f->children[i].promise = f->list[i];
  }
}

static void resolve(fixture_t *f, int i) {
  tnk__promise_resolve(f->list[i], TNK__RESULT_NONE, NULL, NULL);
}

static void reject(fixture_t *f, int i, int code) {
  tnk__promise_reject(f->list[i], tnk__error_static(code));
}

static void run(fixture_t *f) {
  for (int i = 0; i < 4; i++)
    context_turn(&f->context);
}

static void end(fixture_t *f, tnk_promise_t *group) {
  CHECK_INT(f->context.n_warnings, 0);
  tnk_promise_unref(group);
  context_close(&f->context);
}

TEST(a_quorum_resolves_with_the_first_and_cancels_the_rest) {
  fixture_t f;
  tnk_promise_t *some;
  char text[100];

  open_fixture(&f);
  some = tnk_quorum(f.list, N, 2);
  resolve(&f, 3);
  run(&f);
  CHECK_INT(tnk_promise_state(some), TNK_PENDING);
  tnk_promise_explain(some, text, sizeof(text));
  CHECK_STR(text, "waits for 1 more of 4 promises; one of them: is pending");
  reject(&f, 0, TNK_ESERVER);
  run(&f);
  CHECK_INT(tnk_promise_state(some), TNK_PENDING);
  resolve(&f, 2);
  run(&f);
  CHECK_INT(tnk_promise_status(some), TNK_OK);
  CHECK_INT(f.children[1].n_cancels, 1);
  CHECK_INT(tnk_promise_status(tnk_promise_child(some, 1)), TNK_ECANCELED);
  CHECK_INT(tnk_promise_status(tnk_promise_child(some, 2)), TNK_OK);
  CHECK_INT(f.children[0].n_cancels + f.children[3].n_cancels, 0);
  end(&f, some);
}

TEST(a_quorum_rejects_when_too_few_are_left) {
  fixture_t f;
  tnk_promise_t *some;

  open_fixture(&f);
  some = tnk_quorum(f.list, N, 3);
  reject(&f, 1, TNK_ESERVER);
  run(&f);
  CHECK_INT(tnk_promise_state(some), TNK_PENDING);
  reject(&f, 2, TNK_EAUTH);
  run(&f);
  CHECK_INT(tnk_promise_status(some), TNK_EAUTH);
  CHECK_INT(f.children[0].n_cancels, 1);
  CHECK_INT(f.children[3].n_cancels, 1);
  end(&f, some);
}

/* What could not be canceled in time settles as it would have. */
TEST(a_quorum_may_have_more_than_were_wanted) {
  fixture_t f;
  tnk_promise_t *some;

  open_fixture(&f);
  for (int i = 0; i < N; i++)
    f.children[i].is_late = 1;
  some = tnk_quorum(f.list, N, 1);
  resolve(&f, 0);
  resolve(&f, 1);
  run(&f);
  CHECK_INT(tnk_promise_status(some), TNK_OK);
  CHECK_INT(tnk_promise_status(tnk_promise_child(some, 1)), TNK_OK);
  resolve(&f, 2);
  reject(&f, 3, TNK_ESERVER);
  run(&f);
  CHECK_INT(f.children[3].n_cancels, 1);
  end(&f, some);
}

TEST(a_quorum_of_all_is_all_of_them) {
  fixture_t f;
  tnk_promise_t *some;

  open_fixture(&f);
  some = tnk_quorum(f.list, N, N);
  for (int i = 0; i < N; i++) {
    CHECK_INT(tnk_promise_state(some), TNK_PENDING);
    resolve(&f, i);
    run(&f);
  }
  CHECK_INT(tnk_promise_status(some), TNK_OK);
  end(&f, some);
}

TEST(a_quorum_that_is_canceled_cancels_all) {
  fixture_t f;
  tnk_promise_t *some;

  open_fixture(&f);
  some = tnk_quorum(f.list, N, 2);
  tnk_promise_cancel(some);
  run(&f);
  CHECK_INT(tnk_promise_status(some), TNK_ECANCELED);
  for (int i = 0; i < N; i++)
    CHECK_INT(f.children[i].n_cancels, 1);
  end(&f, some);
}

TEST(a_quorum_out_of_range_is_refused_by_name) {
  static const size_t wanted[] = {0, N + 1};
  static const char *const words[] = {"quorum: 0 of 4 promises are wanted",
                                      "quorum: 5 of 4 promises are wanted"};

  CHECK(tnk_quorum(NULL, 0, 1) == NULL);
  for (int i = 0; i < 2; i++) {
    fixture_t f;
    tnk_promise_t *some;

    open_fixture(&f);
    some = tnk_quorum(f.list, N, wanted[i]);
    CHECK_INT(tnk_promise_status(some), TNK_EINVAL);
    CHECK_STR(tnk_promise_text(some), words[i]);
    CHECK_INT(f.children[0].n_cancels, 1);
    run(&f);
    end(&f, some);
  }
}

TEST(a_quorum_without_a_child_may_do) {
  fixture_t f;
  tnk_promise_t *some;

  open_fixture(&f);
  reject(&f, 2, TNK_ECANCELED);
  tnk_then(f.list[2], NULL, NULL);
  f.list[2] = NULL;
  some = tnk_quorum(f.list, N, 3);
  resolve(&f, 0);
  resolve(&f, 1);
  resolve(&f, 3);
  run(&f);
  CHECK_INT(tnk_promise_status(some), TNK_OK);
  end(&f, some);
}

TEST(a_quorum_without_too_many_children_is_refused) {
  fixture_t f;
  tnk_promise_t *some;

  open_fixture(&f);
  reject(&f, 2, TNK_ECANCELED);
  tnk_then(f.list[2], NULL, NULL);
  f.list[2] = NULL;
  some = tnk_quorum(f.list, N, N);
  CHECK_STR(tnk_promise_text(some), "quorum: child 2 is NULL");
  CHECK_INT(f.children[0].n_cancels, 1);
  run(&f);
  end(&f, some);
}

TEST(a_quorum_of_what_has_settled_before) {
  fixture_t f;
  tnk_promise_t *some;

  open_fixture(&f);
  resolve(&f, 0);
  resolve(&f, 1);
  some = tnk_quorum(f.list, N, 2);
  CHECK_INT(tnk_promise_state(some), TNK_PENDING); /* never inside the call */
  run(&f);
  CHECK_INT(tnk_promise_status(some), TNK_OK);
  CHECK_INT(f.children[2].n_cancels, 1);
  end(&f, some);
}

/* Of quorums: what is canceled then are groups. */
TEST(a_quorum_of_quorums) {
  fixture_t f;
  tnk_promise_t *halves[2];
  tnk_promise_t *some;

  open_fixture(&f);
  halves[0] = tnk_quorum(f.list, 2, 1);
  halves[1] = tnk_quorum(f.list + 2, 2, 2);
  some = tnk_quorum(halves, 2, 1);
  resolve(&f, 1);
  run(&f);
  CHECK_INT(tnk_promise_status(some), TNK_OK);
  for (int i = 0; i < N; i++)
    CHECK_INT(f.children[i].n_cancels, i != 1);
  CHECK_INT(tnk_promise_status(tnk_promise_child(some, 1)), TNK_ECANCELED);
  end(&f, some);
}

TEST(a_quorum_ends_with_its_service) {
  fixture_t f;
  tnk_promise_t *some;

  open_fixture(&f);
  some = tnk_quorum(f.list, N, 2);
  for (int i = 0; i < N; i++)
    reject(&f, i, TNK_ECLOSED);
  context_close(&f.context);
  CHECK_INT(tnk_promise_status(some), TNK_ECLOSED);
  tnk_promise_unref(some);
}

/* Each allocation fails in turn; the children settle, and nothing leaks. */
TEST(a_quorum_survives_every_failing_allocation) {
  for (long n = 0;; n++) {
    fixture_t f;
    tnk_promise_t *some;
    int did_fail;

    open_fixture(&f);
    test_alloc_fail_at(n);
    some = tnk_quorum(f.list, N, 2);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    resolve(&f, 0);
    resolve(&f, 1);
    run(&f);
    CHECK_INT(tnk_promise_status(some), did_fail ? TNK_ENOMEM : TNK_OK);
    if (did_fail) {
      resolve(&f, 2);
      resolve(&f, 3);
    }
    run(&f);
    end(&f, some);
    if (!did_fail)
      break;
  }
}

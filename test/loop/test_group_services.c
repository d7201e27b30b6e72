/* SPDX-License-Identifier: MIT */
/* Groups of promises of two services, or of one that closes or has gone. */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/io/loop/promise.h"
#include "loop/fixture.h"

static void resolve(tnk_promise_t *promise) {
  tnk__promise_resolve(promise, TNK__RESULT_NONE, NULL, NULL);
}

static int n_foreign;

static void count_closed(void *user) {
  ++*(int *)user;
}

static void on_foreign(tnk_promise_t *promise, int status, void *user) {
  (void)promise;
  (void)user;
  n_foreign++;
  CHECK_INT(status, TNK_ECLOSED);
}

TEST(a_group_over_two_contexts_ends_with_its_own) {
  context_t a;
  context_t b;
  tnk_promise_t *children[2];
  tnk_promise_t *timed;

  context_open(&a);
  context_open(&b);
  children[0] = tnk__promise_new(&a.loop, NULL, NULL);
  children[1] = tnk__promise_new(&b.loop, NULL, NULL);
  timed = tnk_promise_ref(children[0]);
  tnk_then(tnk_all_settled(children, 2), on_foreign, NULL);
  tnk_then(tnk_with_timeout(timed, 60000), on_foreign, NULL);
  tnk__promise_reject(children[0], tnk__error_static(TNK_ECLOSED));
  context_close(&a);
  CHECK_INT(n_foreign, 2);
  tnk__promise_resolve(children[1], TNK__RESULT_NONE, NULL, NULL);
  context_close(&b);
  CHECK_INT(n_foreign, 2);
}

/* What prepares a turn sees the first context while its handles close. */
typedef struct {
  context_t a;
  tnk__context_t b;
  tnk_promise_t *children[2];
  tnk_promise_t *group;
} late_t;

static void group_while_closing(uv_prepare_t *prepare) {
  late_t *late = prepare->data;

  if (late->group != NULL || !uv_is_closing((uv_handle_t *)&late->a.loop.idle))
    return;
  CHECK_INT(late->a.is_closed, 0);
  late->group = tnk_all_settled(late->children, 2);
  tnk_then(tnk_promise_ref(late->group), on_foreign, NULL);
}

TEST(a_group_made_while_the_handles_close_ends_with_its_context) {
  uv_prepare_t prepare;
  late_t late;
  int n_closed = 0;

  memset(&late, 0, sizeof(late));
  context_open(&late.a);
  CHECK_INT(tnk__context_open(&late.b, &late.a.uv, test_allocator(), NULL),
            TNK_OK);
  uv_prepare_init(&late.a.uv, &prepare);
  prepare.data = &late;
  uv_prepare_start(&prepare, group_while_closing);
  uv_unref((uv_handle_t *)&prepare);
  late.children[0] = tnk__promise_new(&late.a.loop, NULL, NULL);
  late.children[1] = tnk__promise_new(&late.b, NULL, NULL);
  resolve(late.children[0]);
  context_turn(&late.a);
  tnk__context_close(&late.a.loop, context_closed, &late.a);
  uv_run(&late.a.uv, UV_RUN_DEFAULT);
  CHECK_INT(late.a.is_closed, 1);
  CHECK(late.group != NULL);
  CHECK_INT(tnk_promise_status(late.group), TNK_ECLOSED);
  CHECK_INT(n_foreign, 1);
  resolve(tnk_promise_child(late.group, 1));
  tnk__context_close(&late.b, count_closed, &n_closed);
  uv_close((uv_handle_t *)&prepare, NULL);
  uv_run(&late.a.uv, UV_RUN_DEFAULT);
  CHECK_INT(n_closed, 1);
  tnk_promise_unref(late.group);
  CHECK_INT(uv_loop_close(&late.a.uv), 0);
}

TEST(a_group_of_promises_that_have_outlived_their_service) {
  context_t *a = tnk__calloc(test_allocator(), 1, sizeof(*a));
  context_t b;
  tnk_promise_t *gone;
  tnk_promise_t *two[2];
  tnk_promise_t *group;

  context_open(a);
  gone = tnk__promise_new(&a->loop, NULL, NULL);
  tnk__promise_reject(gone, tnk__error_static(TNK_ESERVER));
  context_close(a);
  tnk__free(test_allocator(), a);
  two[0] = two[1] = gone;
  tnk_promise_ref(tnk_promise_ref(gone));
  group = tnk_all(two, 2);
  CHECK_INT(tnk_wait(group), TNK_ECLOSED);
  CHECK_STR(tnk_promise_text(group), "all: the object is closed or closing");
  tnk_promise_unref(group);
  group = tnk_with_timeout(tnk_promise_ref(gone), 5);
  CHECK_INT(tnk_promise_status(group), TNK_ECLOSED);
  CHECK_INT(tnk_then(group, on_foreign, NULL), TNK_ECLOSED);
  test_alloc_fail_at(0);
  CHECK(tnk_all_settled((tnk_promise_t *[]){tnk_promise_ref(gone)}, 1) == NULL);
  /* One whose service is there can tell of it. */
  context_open(&b);
  two[1] = tnk__promise_new(&b.loop, NULL, NULL);
  tnk_promise_ref(gone);
  group = tnk_all_settled(two, 2);
  CHECK_INT(tnk_promise_state(group), TNK_PENDING);
  resolve(two[1]);
  CHECK_INT(tnk_wait(group), TNK_OK);
  tnk_promise_unref(group);
  two[1] = tnk__promise_new(&b.loop, NULL, NULL);
  group = tnk_all(two, 2);
  CHECK_INT(tnk_wait(group), TNK_ESERVER);
  resolve(two[1]);
  context_close(&b);
  tnk_promise_unref(group);
}

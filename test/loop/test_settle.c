/* SPDX-License-Identifier: MIT */
/* A promise that is settled twice. Linked twice, as for a debug build and as
 * for a release. */
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/misuse.h"
#include "lib/io/loop/promise.h"
#include "loop/fixture.h"
#include "support/abort.h"

static int n_values_freed;
static int n_called;

static void free_value(const tnk_allocator_t *alloc, void *value) {
  n_values_freed++;
  tnk__free(alloc, value);
}

static void on_settled(tnk_promise_t *promise, int status, void *user) {
  (void)promise;
  (void)user;
  CHECK_INT(status, TNK_OK);
  n_called++;
}

static void resolve(void *promise) {
  tnk__promise_resolve(promise, TNK__RESULT_PATH,
                       tnk__strdup(test_allocator(), "second"), free_value);
}

static void reject(void *promise) {
  tnk__promise_reject(promise,
                      tnk__error_new(test_allocator(), TNK_ESERVER, "third"));
}

static void settle_again(context_t *context, tnk_promise_t *promise) {
  if (tnk__misuse_is_fatal()) {
    test_expect_abort(resolve, promise, "a promise was settled twice");
    test_expect_abort(reject, promise, "a promise was settled twice");
    return;
  }
  resolve(promise);
  CHECK_INT(n_values_freed, 1);
  reject(promise);
  CHECK_INT(context->loop.counters.n_double_settles, 2);
}

TEST(S4_6_a_second_settling_ends_a_debug_build_and_changes_nothing) {
  context_t context;
  tnk_promise_t *promise;

  context_open(&context);
  promise = tnk__promise_new(&context.loop, NULL, NULL);
  tnk_then(tnk_promise_ref(promise), on_settled, NULL);
  tnk__promise_resolve(promise, TNK__RESULT_PATH,
                       tnk__strdup(test_allocator(), "first"), free_value);
  settle_again(&context, promise);
  CHECK_STR(tnk__promise_value(promise, TNK__RESULT_PATH), "first");
  CHECK(tnk__promise_value(promise, TNK__RESULT_PASS) == NULL);
  uv_run(&context.uv, UV_RUN_DEFAULT);
  CHECK_INT(n_called, 1);
  CHECK_INT(context.loop.n_pending, 0);
  n_values_freed = 0;
  tnk_promise_unref(promise);
  CHECK_INT(n_values_freed, 1);
  context_close(&context);
}

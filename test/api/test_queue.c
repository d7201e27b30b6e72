/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "lib/api/root.h"
#include "lib/io/loop/promise.h"
#include "support/test.h"
#include "tnk/bindings.h"
#include "tnk/rest.h"
#include "tnk/service.h"

/* A runtime, a queue, and on the runtime's thread a context whose promises the
 * test settles itself. */
typedef struct {
  tnk_runtime_t *runtime;
  tnk_queue_t *queue;
  tnk__context_t context;
  tnk_promise_t *promise; /* the operation's */
  uv_sem_t done;
  uv_sem_t go_on;
  uv_sem_t waiting;
  int result;
} rig_t;

static void rig_start(rig_t *rig, size_t max) {
  memset(rig, 0, sizeof(*rig));
  CHECK_INT(uv_sem_init(&rig->done, 0), 0);
  CHECK_INT(uv_sem_init(&rig->go_on, 0), 0);
  CHECK_INT(uv_sem_init(&rig->waiting, 0), 0);
  CHECK_INT(tnk__runtime_start(&rig->runtime, test_allocator()), TNK_OK);
  CHECK_INT(tnk_queue_new(&rig->queue, rig->runtime, max), TNK_OK);
}

static void rig_end(rig_t *rig) {
  uv_sem_destroy(&rig->done);
  uv_sem_destroy(&rig->go_on);
  uv_sem_destroy(&rig->waiting);
  CHECK_INT(test_alloc_live(), 0);
}

static void rig_stop(rig_t *rig) {
  CHECK_INT(tnk_runtime_stop(rig->runtime), TNK_OK);
  tnk_queue_free(rig->queue);
  rig_end(rig);
}

/* The queue's only call of poll(), so the test knows that a taker waits. */
static uv_sem_t *waits;
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int __real_poll(struct pollfd *fds, nfds_t n, int timeout_ms);

int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout_ms) {
  if (waits != NULL)
    uv_sem_post(waits);
  return __real_poll(fds, n, timeout_ms);
}

/* Run it on the runtime's thread and wait until it has returned. */
static void on_loop(rig_t *rig, tnk_post_cb cb) {
  CHECK_INT(tnk_runtime_post(rig->runtime, cb, rig), TNK_OK);
  uv_sem_wait(&rig->done);
}

static void open_context(uv_loop_t *loop, void *user) {
  static const tnk_logger_t logger = {TNK_LOG_NONE, NULL, NULL};
  rig_t *rig = user;

  CHECK_INT(tnk__context_open(&rig->context, loop, test_allocator(), &logger),
            TNK_OK);
  uv_sem_post(&rig->done);
}

static void on_context_closed(void *user) {
  (void)user;
}

static void close_context(uv_loop_t *loop, void *user) {
  rig_t *rig = user;

  (void)loop;
  tnk__context_close(&rig->context, on_context_closed, rig);
  uv_sem_post(&rig->done);
}

static void watch_pending(uv_loop_t *loop, void *user) {
  rig_t *rig = user;

  (void)loop;
  rig->promise = tnk__promise_new(&rig->context, NULL, NULL);
  rig->result = tnk_queue_watch(rig->queue, rig->promise, 7);
  uv_sem_post(&rig->done);
}

static void settle_it(uv_loop_t *loop, void *user) {
  rig_t *rig = user;

  (void)loop;
  tnk__promise_resolve(rig->promise, TNK__RESULT_NONE, NULL, NULL);
  uv_sem_post(&rig->done);
}

static void block(uv_loop_t *loop, void *user) {
  rig_t *rig = user;

  (void)loop;
  uv_sem_post(&rig->done);
  uv_sem_wait(&rig->go_on);
}

static int is_readable(const rig_t *rig) {
  struct pollfd fd = {.fd = tnk_queue_fd(rig->queue), .events = POLLIN};

  return __real_poll(&fd, 1, 0) == 1;
}

static void release(rig_t *rig, tnk_promise_t *promise) {
  tnk_call_t call = {.function = "tnk_promise_unref", .n_args = 1};

  call.args[0].pointer = promise;
  CHECK_INT(tnk_queue_call(rig->queue, &call, 1), TNK_OK);
}

/* Nobody listens on port 1, so operations last as long as they may. */
static tnk_service_t *open_service(rig_t *rig) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_call_t call = {.function = "tnk_service_open", .n_args = 5};
  tnk_service_t *service;

  options.base_url = "http://127.0.0.1:1";
  options.api_key = "tml-key";
  options.allocator = test_allocator();
  call.args[0].pointer = &service;
  call.args[1].pointer = tnk_runtime_loop(rig->runtime);
  call.args[2].pointer = &options;
  CHECK_INT(tnk_queue_call(rig->queue, &call, 1), TNK_OK);
  CHECK_INT(call.result.integer, TNK_OK);
  return service;
}

static tnk_call_t health(tnk_service_t *service, uint64_t tag) {
  tnk_call_t call = {.function = "tnk_service_health",
                     .n_args = 1,
                     .is_watched = 1,
                     .tag = tag};

  call.args[0].pointer = service;
  return call;
}

/* Rejected at once, since there is no such run. */
static tnk_call_t no_run(tnk_service_t *service, uint64_t tag) {
  tnk_call_t call = {
      .function = "tnk_rest_get_run", .n_args = 3, .is_watched = 1, .tag = tag};

  call.args[0].pointer = service;
  call.args[1].pointer = NULL;
  call.args[2].integer = TNK_SCOPE_OWNED;
  return call;
}

TEST(an_operation_starts_and_ends_on_a_foreign_thread) {
  tnk_completion_t done[4];
  tnk_call_t calls[2];
  rig_t rig;

  rig_start(&rig, 4);
  calls[0] = health(open_service(&rig), 41);
  CHECK_INT(tnk_queue_call(rig.queue, calls, 1), TNK_OK);
  CHECK(calls[0].result.pointer != NULL);
  CHECK_INT(tnk_queue_take(rig.queue, done, 4, 0), TNK_EPENDING);
  CHECK(!is_readable(&rig));
  calls[1] = (tnk_call_t){.function = "tnk_promise_cancel", .n_args = 1};
  calls[1].args[0] = calls[0].result;
  CHECK_INT(tnk_queue_call(rig.queue, &calls[1], 1), TNK_OK);
  CHECK_INT(tnk_queue_take(rig.queue, done, 4, -1), 1);
  CHECK_INT(done[0].tag, 41);
  CHECK_INT(done[0].status, TNK_ECANCELED);
  CHECK(done[0].promise == calls[0].result.pointer);
  CHECK_INT(tnk_promise_status(done[0].promise), TNK_ECANCELED);
  CHECK_INT(tnk_promise_error(done[0].promise)->code, TNK_ECANCELED);
  CHECK(strstr(tnk_promise_text(done[0].promise), "health") != NULL);
  CHECK(tnk_promise_pass(done[0].promise) == NULL);
  release(&rig, done[0].promise);
  CHECK(!is_readable(&rig));
  rig_stop(&rig);
}

/* Where an operation is when the queue ends. */
typedef enum { NOTHING, CALLED, PENDING, READY, TAKEN } state_t;
/* How the queue ends. */
typedef enum { BY_LOOP, BY_OTHER, WITH_TAKER, BY_STOP } ender_t;

enum { N_STATES = TAKEN + 1, N_ENDERS = BY_STOP + 1 };

typedef struct {
  rig_t rig;
  uv_thread_t caller;
  uv_thread_t taker;
  tnk_call_t call;
  int called;
  int n_taken;
  int last;
  tnk_completion_t taken[3];
} cell_t;

static void call_thread(void *arg) {
  cell_t *cell = arg;

  cell->called = tnk_queue_call(cell->rig.queue, &cell->call, 1);
}

/* Takes until the end, as a binding's thread does. */
static void take_all(void *arg) {
  cell_t *cell = arg;

  while ((cell->last = tnk_queue_take(cell->rig.queue,
                                      &cell->taken[cell->n_taken], 1, -1)) > 0)
    cell->n_taken++;
}

/* Returns when the taker waits, or may take at once. */
static void start_taker(cell_t *cell) {
  waits = is_readable(&cell->rig) ? NULL : &cell->rig.waiting;
  CHECK_INT(uv_thread_create(&cell->taker, take_all, cell), 0);
  if (waits != NULL)
    uv_sem_wait(waits);
}

static void close_on_loop(uv_loop_t *loop, void *user) {
  rig_t *rig = user;

  (void)loop;
  tnk_queue_close(rig->queue);
  uv_sem_post(&rig->done);
}

static void free_on_loop(uv_loop_t *loop, void *user) {
  rig_t *rig = user;

  (void)loop;
  tnk_queue_free(rig->queue);
  uv_sem_post(&rig->done);
}

static void wait_readable(const rig_t *rig) {
  struct pollfd fd = {.fd = tnk_queue_fd(rig->queue), .events = POLLIN};

  CHECK_INT(__real_poll(&fd, 1, -1), 1);
}

static int holds_loop(state_t state, ender_t ender) {
  return state == CALLED && ender != BY_LOOP;
}

static void reach(cell_t *cell, state_t state, ender_t ender) {
  rig_t *rig = &cell->rig;

  on_loop(rig, open_context);
  if (state >= PENDING) {
    on_loop(rig, watch_pending);
    CHECK_INT(rig->result, TNK_OK);
  }
  if (holds_loop(state, ender))
    on_loop(rig, block);
  if (state == CALLED) {
    cell->call = health(NULL, 1);
    CHECK_INT(uv_thread_create(&cell->caller, call_thread, cell), 0);
  }
  if (state >= READY) {
    on_loop(rig, settle_it);
    wait_readable(rig);
  }
  if (state == TAKEN) {
    CHECK_INT(tnk_queue_take(rig->queue, cell->taken, 1, 0), 1);
    cell->n_taken = 1;
  }
}

static void end(cell_t *cell, ender_t ender) {
  rig_t *rig = &cell->rig;

  if (ender == WITH_TAKER)
    start_taker(cell);
  if (ender == BY_LOOP)
    on_loop(rig, close_on_loop);
  else if (ender == BY_OTHER || ender == WITH_TAKER)
    tnk_queue_close(rig->queue);
}

/* What a binding does at its end; each promise is taken once or released. */
static void finish(cell_t *cell, state_t state, ender_t ender) {
  rig_t *rig = &cell->rig;
  int i;

  if (holds_loop(state, ender))
    uv_sem_post(&rig->go_on);
  if (state == PENDING)
    on_loop(rig, settle_it);
  if (state == CALLED)
    CHECK_INT(uv_thread_join(&cell->caller), 0);
  on_loop(rig, close_context);
  if (ender == WITH_TAKER)
    CHECK_INT(uv_thread_join(&cell->taker), 0);
  CHECK_INT(tnk_runtime_stop(rig->runtime), TNK_OK);
  if (ender != WITH_TAKER)
    take_all(cell);
  CHECK_INT(cell->last, TNK_ECLOSED);
  CHECK_INT(cell->n_taken, state >= PENDING);
  for (i = 0; i < cell->n_taken; i++) {
    CHECK_INT(cell->taken[i].tag, 7);
    CHECK_INT(cell->taken[i].status, TNK_OK);
    tnk_promise_unref(cell->taken[i].promise);
  }
  tnk_queue_free(rig->queue);
}

static void run_cell(state_t state, ender_t ender) {
  char name[64];
  cell_t cell = {.last = 0};

  snprintf(name, sizeof(name), "state %d, end %d", (int)state, (int)ender);
  test_context(name);
  rig_start(&cell.rig, 4);
  reach(&cell, state, ender);
  end(&cell, ender);
  finish(&cell, state, ender);
  /* A call that comes before the close has no service. */
  if (state == CALLED)
    CHECK(
        cell.called == TNK_ECLOSED ||
        ((ender == BY_LOOP || ender == BY_STOP) && cell.called == TNK_EINVAL));
  rig_end(&cell.rig);
}

TEST(each_promise_is_taken_once_however_the_queue_ends) {
  int state;
  int ender;

  for (state = 0; state < N_STATES; state++)
    for (ender = 0; ender < N_ENDERS; ender++)
      run_cell((state_t)state, (ender_t)ender);
}

/* The runtime's end releases what was watched after the queue was freed. */
static void free_in(state_t state, int by_loop) {
  cell_t cell = {.last = 0};
  rig_t *rig = &cell.rig;

  rig_start(rig, 4);
  reach(&cell, state, BY_OTHER);
  if (holds_loop(state, BY_OTHER))
    uv_sem_post(&rig->go_on);
  if (state == CALLED)
    CHECK_INT(uv_thread_join(&cell.caller), 0);
  if (by_loop)
    on_loop(rig, free_on_loop);
  else
    tnk_queue_free(rig->queue);
  if (state == PENDING)
    on_loop(rig, settle_it);
  on_loop(rig, close_context);
  CHECK_INT(tnk_runtime_stop(rig->runtime), TNK_OK);
  if (state == TAKEN)
    tnk_promise_unref(cell.taken[0].promise);
  rig_end(rig);
}

TEST(a_queue_is_freed_in_every_state) {
  int state;

  for (state = 0; state < N_STATES; state++) {
    free_in((state_t)state, 0);
    free_in((state_t)state, 1);
  }
}

/* Freed by the function that the thread calls: the call is finished. */
static void free_inside(const char *text, size_t length, void *user) {
  rig_t *rig = user;

  (void)text;
  (void)length;
  if (rig->result++ == 0)
    tnk_queue_free(rig->queue);
}

TEST(a_queue_is_freed_inside_a_call) {
  tnk_call_t calls[3];
  rig_t rig;

  rig_start(&rig, 4);
  calls[0] = health(open_service(&rig), 1);
  calls[1] = (tnk_call_t){.function = "tnk_service_dump", .n_args = 4};
  calls[1].args[0] = calls[0].args[0];
  calls[1].args[1].integer = TNK_DUMP_TEXT;
  calls[1].args[2].function = (void (*)(void))free_inside;
  calls[1].args[3].pointer = &rig;
  calls[2] = calls[0];
  CHECK_INT(tnk_queue_call(rig.queue, calls, 3), TNK_ECLOSED);
  CHECK_INT(calls[1].status, TNK_OK);
  CHECK_INT(calls[2].status, TNK_ECLOSED);
  CHECK(rig.result > 0);
  CHECK_INT(tnk_runtime_stop(rig.runtime), TNK_OK);
  rig_end(&rig);
}

TEST(a_taker_that_waits_ends_when_the_queue_is_freed) {
  cell_t cell = {.last = 0};

  rig_start(&cell.rig, 1);
  reach(&cell, PENDING, BY_OTHER);
  start_taker(&cell);
  tnk_queue_free(cell.rig.queue);
  CHECK_INT(uv_thread_join(&cell.taker), 0);
  CHECK_INT(cell.last, TNK_ECLOSED);
  CHECK_INT(cell.n_taken, 0);
  on_loop(&cell.rig, settle_it);
  on_loop(&cell.rig, close_context);
  CHECK_INT(tnk_runtime_stop(cell.rig.runtime), TNK_OK);
  rig_end(&cell.rig);
}

TEST(at_the_end_of_the_runtime_all_that_is_pending_is_delivered) {
  tnk_call_t calls[3];
  cell_t cell = {.last = 0};
  int i;

  rig_start(&cell.rig, 3);
  calls[0] = health(open_service(&cell.rig), 0);
  calls[1] = health(calls[0].args[0].pointer, 1);
  calls[2] = health(calls[0].args[0].pointer, 2);
  CHECK_INT(tnk_queue_call(cell.rig.queue, calls, 3), TNK_OK);
  start_taker(&cell);
  CHECK_INT(tnk_runtime_stop(cell.rig.runtime), TNK_OK);
  CHECK_INT(uv_thread_join(&cell.taker), 0);
  CHECK_INT(cell.last, TNK_ECLOSED);
  CHECK_INT(cell.n_taken, 3);
  for (i = 0; i < 3; i++) {
    CHECK_INT(cell.taken[i].status, TNK_ECLOSED);
    tnk_promise_unref(cell.taken[i].promise);
  }
  CHECK_INT(tnk_queue_call(cell.rig.queue, calls, 3), TNK_ECLOSED);
  CHECK_INT(calls[0].status, TNK_ECLOSED);
  CHECK_INT(calls[1].status, TNK_EPENDING);
  tnk_queue_free(cell.rig.queue);
  rig_end(&cell.rig);
}

TEST(what_nobody_takes_is_released_with_the_queue) {
  tnk_call_t call;
  rig_t rig;

  rig_start(&rig, 3);
  call = health(open_service(&rig), 0);
  CHECK_INT(tnk_queue_call(rig.queue, &call, 1), TNK_OK);
  rig_stop(&rig);
}

TEST(a_full_queue_refuses_before_the_operation_starts) {
  tnk_completion_t done[4];
  tnk_call_t calls[4];
  rig_t rig;
  int i;

  rig_start(&rig, 2);
  calls[0] = no_run(open_service(&rig), 0);
  for (i = 1; i < 4; i++)
    calls[i] = no_run(calls[0].args[0].pointer, (uint64_t)i);
  CHECK_INT(tnk_queue_call(rig.queue, calls, 4), TNK_EFULL);
  CHECK_INT(calls[1].status, TNK_OK);
  CHECK_INT(calls[2].status, TNK_EFULL);
  CHECK_INT(calls[3].status, TNK_EPENDING);
  wait_readable(&rig);
  CHECK_INT(tnk_queue_take(rig.queue, done, 1, -1), 1);
  CHECK(is_readable(&rig));
  CHECK_INT(tnk_queue_take(rig.queue, done + 1, 3, 0), 1);
  CHECK(!is_readable(&rig));
  CHECK_INT(tnk_queue_call(rig.queue, calls + 2, 2), TNK_OK);
  for (i = 2; i < 4; i++)
    CHECK_INT(tnk_queue_take(rig.queue, done + i, 1, -1), 1);
  for (i = 0; i < 4; i++) {
    CHECK_INT(done[i].tag, i);
    CHECK_INT(done[i].status, TNK_EINVAL);
    release(&rig, done[i].promise);
  }
  rig_stop(&rig);
}

TEST(a_call_that_cannot_be_made_says_so) {
  static const tnk_call_t bad[] = {
      {.function = NULL},
      {.function = "tnk_no_such_function"},
      {.function = "tnk_wait", .n_args = 1},
      {.function = "tnk_version"},
      {.function = "tnk_service_health", .n_args = 2},
      {.function = "tnk_service_close", .n_args = 3, .is_watched = 1},
      {.function = "tnk_promise_child", .n_args = 2, .is_watched = 1},
      {.function = "tnk_service_health", .n_args = 1, .is_watched = 1},
  };
  tnk_completion_t done;
  tnk_queue_t *none;
  rig_t rig;
  size_t i;

  rig_start(&rig, 1);
  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    tnk_call_t call = bad[i];
    CHECK_INT(tnk_queue_call(rig.queue, &call, 1), TNK_EINVAL);
    CHECK_INT(call.status, TNK_EINVAL);
  }
  CHECK_INT(tnk_queue_call(rig.queue, NULL, 0), TNK_OK);
  CHECK_INT(tnk_queue_call(rig.queue, NULL, 1), TNK_EINVAL);
  CHECK_INT(tnk_queue_call(NULL, NULL, 0), TNK_EINVAL);
  CHECK_INT(tnk_queue_new(NULL, rig.runtime, 1), TNK_EINVAL);
  CHECK_INT(tnk_queue_new(&none, NULL, 1), TNK_EINVAL);
  CHECK_INT(tnk_queue_new(&none, rig.runtime, 0), TNK_EINVAL);
  CHECK(none == NULL);
  CHECK_INT(tnk_queue_take(NULL, &done, 1, 0), TNK_EINVAL);
  CHECK_INT(tnk_queue_take(rig.queue, NULL, 1, 0), TNK_EINVAL);
  CHECK_INT(tnk_queue_take(rig.queue, &done, 0, 0), TNK_EINVAL);
  CHECK_INT(tnk_queue_take(rig.queue, &done, 1, 1), TNK_EPENDING);
  CHECK_INT(tnk_queue_fd(NULL), -1);
  CHECK_INT(tnk_queue_watch(rig.queue, NULL, 0), TNK_EINVAL);
  on_loop(&rig, open_context);
  rig.promise = tnk_promise_ref(rig.context.oom);
  CHECK_INT(tnk_queue_watch(rig.queue, rig.promise, 0), TNK_ETHREAD);
  release(&rig, rig.promise);
  on_loop(&rig, close_context);
  CHECK(tnk_runtime_loop(NULL) == NULL);
  tnk_queue_close(NULL);
  tnk_queue_free(NULL);
  rig_stop(&rig);
}

/* A whole life, in which an allocation fails. Returns whether one did. A call
 * that failed leaves the only place of the queue free. */
static int live_without(long n) {
  tnk_completion_t done;
  tnk_call_t call;
  rig_t rig;
  int did_fail;
  int err;

  rig_start(&rig, 1);
  call = no_run(open_service(&rig), 3);
  test_alloc_fail_at(n);
  err = tnk_queue_call(rig.queue, &call, 1);
  did_fail = test_alloc_did_fail();
  CHECK(err == TNK_OK || (did_fail && err == TNK_ENOMEM));
  if (err == TNK_ENOMEM)
    CHECK_INT(tnk_queue_call(rig.queue, &call, 1), TNK_OK);
  CHECK_INT(tnk_queue_take(rig.queue, &done, 1, -1), 1);
  CHECK_INT(done.tag, 3);
  CHECK(done.status == TNK_EINVAL || (did_fail && done.status == TNK_ENOMEM));
  tnk_promise_text(done.promise);
  did_fail |= test_alloc_did_fail();
  test_alloc_fail_at(-1);
  release(&rig, done.promise);
  rig_stop(&rig);
  return did_fail;
}

TEST(each_allocation_of_a_call_may_fail) {
  tnk_queue_t *queue;
  tnk_runtime_t *runtime;
  long n = 0;

  while (live_without(n))
    n++;
  CHECK(n > 1);
  CHECK_INT(tnk__runtime_start(&runtime, test_allocator()), TNK_OK);
  test_alloc_fail_at(0);
  CHECK_INT(tnk_queue_new(&queue, runtime, 1), TNK_ENOMEM);
  CHECK(queue == NULL);
  CHECK_INT(tnk_runtime_stop(runtime), TNK_OK);
}

TEST(without_descriptors_there_is_no_queue) {
  const rlim_t none = (rlim_t)dup(0);
  tnk_queue_t *queue;
  struct rlimit limit;
  rlim_t before;
  rig_t rig;

  close((int)none);
  rig_start(&rig, 1);
  CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
  before = limit.rlim_cur;
  limit.rlim_cur = none;
  CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
  CHECK_INT(tnk_queue_new(&queue, rig.runtime, 1), TNK_ESYSTEM);
  CHECK(queue == NULL);
  limit.rlim_cur = before;
  CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
  rig_stop(&rig);
}

static void new_when_stopping(uv_loop_t *loop, void *user) {
  rig_t *rig = user;
  tnk_queue_t *queue;

  (void)loop;
  while (tnk_runtime_post(rig->runtime, new_when_stopping, rig) == TNK_OK)
    rig->result++;
  CHECK_INT(tnk_queue_new(&queue, rig->runtime, 1), TNK_ECLOSED);
  CHECK(queue == NULL);
}

TEST(a_runtime_that_stops_gets_no_queue) {
  rig_t rig;

  rig_start(&rig, 1);
  CHECK_INT(tnk_runtime_post(rig.runtime, new_when_stopping, &rig), TNK_OK);
  rig_stop(&rig);
}

TEST(queue_in_a_forked_child_is_refused) {
  tnk_completion_t done;
  tnk_queue_t *queue;
  int status;
  rig_t rig;
  pid_t child;

  rig_start(&rig, 1);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);
    tnk_queue_close(rig.queue);
    tnk_queue_free(rig.queue);
    _exit(tnk_queue_call(rig.queue, NULL, 0) == TNK_EFORKED &&
                  tnk_queue_take(rig.queue, &done, 1, -1) == TNK_EFORKED &&
                  tnk_queue_new(&queue, rig.runtime, 1) == TNK_EFORKED
              ? 0
              : 1);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_INT(WEXITSTATUS(status), 0);
  rig_stop(&rig);
}

enum { N_THREADS = 4, N_CALLS = 300, N_IN_QUEUE = 50 };

/* Some threads start operations and some take their results. */
typedef struct {
  rig_t rig;
  tnk_service_t *service;
  uv_mutex_t lock;
  int n_taken[N_THREADS * N_CALLS];
} crowd_t;

typedef struct {
  crowd_t *crowd;
  int number;
  uv_thread_t thread;
} member_t;

/* A promise that settles only in a later turn of the loop, by a callback. */
static tnk_call_t later(rig_t *rig, tnk_call_t call) {
  tnk_call_t timeout = {
      .function = "tnk_with_timeout", .n_args = 2, .is_watched = 1};

  call.is_watched = 0;
  CHECK_INT(tnk_queue_call(rig->queue, &call, 1), TNK_OK);
  timeout.tag = call.tag;
  timeout.args[0] = call.result;
  timeout.args[1].integer = 60000;
  return timeout;
}

static void crowd_calls(void *arg) {
  member_t *me = arg;
  int i = 0;

  while (i < N_CALLS) {
    tnk_call_t call =
        no_run(me->crowd->service, (uint64_t)(me->number * N_CALLS + i));
    int err;
    if (i % 2 == 1)
      call = later(&me->crowd->rig, call);
    while ((err = tnk_queue_call(me->crowd->rig.queue, &call, 1)) == TNK_EFULL)
      continue;
    CHECK_INT(err, TNK_OK);
    i++;
  }
}

static void crowd_takes(void *arg) {
  member_t *me = arg;
  tnk_completion_t done[16];
  int n;
  int i;

  while ((n = tnk_queue_take(me->crowd->rig.queue, done, 16, -1)) > 0) {
    for (i = 0; i < n; i++) {
      CHECK_INT(done[i].status, TNK_EINVAL);
      CHECK(strstr(tnk_promise_text(done[i].promise), "run") != NULL);
      CHECK_INT(tnk_runtime_unref(me->crowd->rig.runtime, done[i].promise),
                TNK_OK);
      uv_mutex_lock(&me->crowd->lock);
      me->crowd->n_taken[done[i].tag]++;
      uv_mutex_unlock(&me->crowd->lock);
    }
  }
  CHECK_INT(n, TNK_ECLOSED);
}

TEST(threads_share_a_queue) {
  static crowd_t crowd;
  member_t members[2 * N_THREADS];
  int i;

  rig_start(&crowd.rig, N_IN_QUEUE);
  CHECK_INT(uv_mutex_init(&crowd.lock), 0);
  crowd.service = open_service(&crowd.rig);
  for (i = 0; i < 2 * N_THREADS; i++) {
    members[i] = (member_t){.crowd = &crowd, .number = i};
    CHECK_INT(uv_thread_create(&members[i].thread,
                               i < N_THREADS ? crowd_calls : crowd_takes,
                               &members[i]),
              0);
  }
  for (i = 0; i < N_THREADS; i++)
    CHECK_INT(uv_thread_join(&members[i].thread), 0);
  tnk_queue_close(crowd.rig.queue);
  for (i = N_THREADS; i < 2 * N_THREADS; i++)
    CHECK_INT(uv_thread_join(&members[i].thread), 0);
  for (i = 0; i < N_THREADS * N_CALLS; i++)
    CHECK_INT(crowd.n_taken[i], 1);
  uv_mutex_destroy(&crowd.lock);
  rig_stop(&crowd.rig);
}

/* SPDX-License-Identifier: MIT */
#include "lib/io/loop/context.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "loop/fixture.h"
#include "tnk/error.h"

static char seen[64];
static size_t n_seen;

typedef struct {
  tnk__deferred_t call;
  tnk__context_t *context;
  char letter;
  tnk__deferred_t *next; /* deferred from inside the call */
  tnk__deferred_t *drop; /* cancelled from inside the call */
} probe_t;

static void on_probe(tnk__deferred_t *call) {
  probe_t *probe = tnk__container_of(call, probe_t, call);

  seen[n_seen++] = probe->letter;
  seen[n_seen] = '\0';
  if (probe->next != NULL)
    tnk__defer(probe->context, probe->next);
  if (probe->drop != NULL)
    tnk__defer_cancel(probe->drop);
}

static context_t context;
static probe_t a;
static probe_t b;
static probe_t c;

static void init(probe_t *probe, char letter) {
  memset(probe, 0, sizeof(*probe));
  probe->context = &context.loop;
  probe->letter = letter;
  tnk__deferred_init(&probe->call, on_probe);
}

static void setup(void) {
  context_open(&context);
  init(&a, 'a');
  init(&b, 'b');
  init(&c, 'c');
}

TEST(a_deferred_call_runs_in_the_next_turn_not_inside) {
  setup();
  CHECK_INT(uv_loop_alive(&context.uv), 0);
  tnk__defer(&context.loop, &a.call);
  CHECK_STR(seen, "");
  CHECK_INT(uv_loop_alive(&context.uv), 1);
  context_turn(&context);
  CHECK_STR(seen, "a");
  CHECK_INT(uv_loop_alive(&context.uv), 0);
  context_close(&context);
}

TEST(deferred_calls_keep_their_order_and_their_first_place) {
  setup();
  tnk__defer(&context.loop, &a.call);
  tnk__defer(&context.loop, &b.call);
  tnk__defer(&context.loop, &a.call);
  context_turn(&context);
  CHECK_STR(seen, "ab");
  context_close(&context);
}

TEST(what_is_deferred_while_draining_runs_in_the_next_turn) {
  setup();
  a.next = &b.call;
  b.next = &a.call;
  tnk__defer(&context.loop, &a.call);
  context_turn(&context);
  CHECK_STR(seen, "a");
  context_turn(&context);
  CHECK_STR(seen, "ab");
  context_turn(&context);
  CHECK_STR(seen, "aba");
  tnk__defer_cancel(&b.call);
  context_close(&context);
  CHECK_STR(seen, "aba");
}

TEST(what_is_deferred_to_the_last_waits_for_what_the_others_defer) {
  setup();
  a.next = &b.call;
  tnk__defer_last(&context.loop, &c.call);
  tnk__defer(&context.loop, &a.call);
  context_turn(&context);
  CHECK_STR(seen, "a");
  context_turn(&context);
  CHECK_STR(seen, "ab");
  context_turn(&context);
  CHECK_STR(seen, "abc");
  CHECK_INT(uv_loop_alive(&context.uv), 0);
  tnk__defer_last(&context.loop, &c.call);
  tnk__defer_last(&context.loop, &c.call);
  context_turn(&context);
  CHECK_STR(seen, "abcc");
  tnk__defer_last(&context.loop, &c.call);
  tnk__defer_cancel(&c.call);
  context_turn(&context);
  CHECK_STR(seen, "abcc");
  context_close(&context);
}

TEST(what_is_deferred_to_the_last_does_not_wait_for_ever) {
  setup();
  a.next = &b.call;
  b.next = &a.call;
  tnk__defer(&context.loop, &a.call);
  tnk__defer_last(&context.loop, &c.call);
  for (int i = 0; i < 10; i++)
    context_turn(&context);
  CHECK_STR(seen, "ababababca");
  tnk__defer_cancel(&b.call);
  tnk__defer_last(&context.loop, &c.call);
  context_close(&context);
  CHECK_STR(seen, "ababababcac");
}

TEST(a_cancelled_call_does_not_run_also_while_draining) {
  setup();
  a.drop = &b.call;
  tnk__defer(&context.loop, &a.call);
  tnk__defer(&context.loop, &b.call);
  tnk__defer(&context.loop, &c.call);
  tnk__defer_cancel(&c.call);
  uv_run(&context.uv, UV_RUN_DEFAULT);
  CHECK_STR(seen, "a");
  context_close(&context);
}

TEST(closing_runs_what_is_deferred_first) {
  setup();
  a.next = &b.call;
  tnk__defer(&context.loop, &a.call);
  context_close(&context);
  CHECK_STR(seen, "ab");
}

TEST(closing_waits_for_what_is_held_and_does_not_spin) {
  int i;

  context_open(&context);
  tnk__context_hold(&context.loop);
  tnk__context_close(&context.loop, context_closed, &context);
  for (i = 0; i < 5; i++)
    context_turn(&context);
  CHECK_INT(context.is_closed, 0);
  /* An idle handle that stayed active would keep the loop busy. */
  CHECK_INT(uv_is_active((uv_handle_t *)&context.loop.idle), 0);
  tnk__context_release(&context.loop);
  CHECK_INT(context.is_closed, 0);
  uv_run(&context.uv, UV_RUN_DEFAULT);
  CHECK_INT(context.is_closed, 1);
  CHECK_INT(uv_loop_close(&context.uv), 0);
}

typedef struct {
  tnk__timer_t timer;
  probe_t probe;
} winding_down_t;

/* The last thing held goes, and only then a call is deferred. */
static void on_last_timer(tnk__timer_t *timer) {
  winding_down_t *self = tnk__container_of(timer, winding_down_t, timer);

  tnk__context_release(self->probe.context);
  tnk__defer(self->probe.context, &self->probe.call);
}

TEST(timers_and_deferred_calls_work_while_closing) {
  winding_down_t down;

  memset(&down, 0, sizeof(down));
  context_open(&context);
  init(&down.probe, 'a');
  tnk__context_hold(&context.loop);
  tnk__context_close(&context.loop, context_closed, &context);
  context_turn(&context);
  tnk__timer_start(&context.loop, &down.timer, 1, on_last_timer);
  uv_run(&context.uv, UV_RUN_DEFAULT);
  CHECK_STR(seen, "a");
  CHECK_INT(context.is_closed, 1);
  CHECK_INT(uv_loop_close(&context.uv), 0);
}

TEST(two_contexts_share_a_loop) {
  tnk__context_t second;
  context_t other = {.is_closed = 0};

  setup();
  CHECK_INT(tnk__context_open(&second, &context.uv, test_allocator(), NULL),
            TNK_OK);
  tnk__defer(&second, &a.call);
  context_turn(&context);
  CHECK_STR(seen, "a");
  tnk__context_close(&second, context_closed, &other);
  uv_run(&context.uv, UV_RUN_DEFAULT);
  CHECK_INT(other.is_closed, 1);
  context_close(&context);
}

TEST(a_context_can_keep_its_loop_alive_until_it_closes) {
  setup();
  CHECK_INT(uv_loop_alive(&context.uv), 0);
  tnk__context_keep_loop_alive(&context.loop);
  for (int i = 0; i < 3; i++) {
    CHECK(uv_run(&context.uv, UV_RUN_NOWAIT) != 0);
    /* Nothing is due, so another event loop may wait without a limit. */
    CHECK_INT(uv_backend_timeout(&context.uv), -1);
  }
  context_close(&context);
}

static tnk__timer_t beat;
static int n_beats;

static void on_beat(tnk__timer_t *timer) {
  n_beats++;
  tnk__timer_start_background(&context.loop, timer, n_beats < 3 ? 0 : 60000,
                              on_beat);
}

TEST(timers_in_the_background_fire_in_a_loop_that_is_kept_alive) {
  setup();
  tnk__context_keep_loop_alive(&context.loop);
  tnk__timer_start_background(&context.loop, &beat, 0, on_beat);
  while (n_beats < 3) {
    CHECK(uv_backend_timeout(&context.uv) <= 1);
    uv_run(&context.uv, UV_RUN_NOWAIT);
  }
  CHECK(uv_backend_timeout(&context.uv) > 1000);
  tnk__timer_stop(&beat);
  context_close(&context);
}

static uv_poll_t polls[2];
static int copy; /* of the first one's descriptor, for the second one */
static int n_readable;

static void on_readable(uv_poll_t *poll, int status, int events) {
  CHECK_INT(status, 0);
  CHECK(events & UV_READABLE);
  n_readable++;
  uv_close((uv_handle_t *)poll, NULL);
}

/* Called while libuv polls: begins to watch the other descriptor. */
static void on_first_readable(uv_poll_t *poll, int status, int events) {
  on_readable(poll, status, events);
  uv_poll_start(&polls[1], UV_READABLE, on_readable);
}

TEST(what_a_callback_begins_to_watch_is_watched_before_the_program_waits) {
  int ends[2];

  setup();
  tnk__context_keep_loop_alive(&context.loop);
  CHECK_INT(pipe(ends), 0);
  CHECK_INT(write(ends[1], "x", 1), 1);
  copy = dup(ends[0]);
  for (int i = 0; i < 2; i++)
    uv_poll_init(&context.uv, &polls[i], i == 0 ? ends[0] : copy);
  uv_poll_start(&polls[0], UV_READABLE, on_first_readable);
  uv_run(&context.uv, UV_RUN_NOWAIT);
  CHECK_INT(n_readable, 1);
  /* A timeout above 0 would let the program wait for what cannot come. */
  CHECK_INT(uv_backend_timeout(&context.uv), 0);
  while (uv_backend_timeout(&context.uv) == 0)
    uv_run(&context.uv, UV_RUN_NOWAIT);
  CHECK_INT(n_readable, 2);
  CHECK_INT(uv_backend_timeout(&context.uv), -1);
  context_close(&context);
  close(copy);
  close(ends[0]);
  close(ends[1]);
}

TEST(opening_fails_cleanly_at_every_allocation) {
  uv_loop_t uv;
  tnk__context_t loop;
  long n;

  CHECK_INT(uv_loop_init(&uv), 0);
  for (n = 0;; n++) {
    int err;
    test_alloc_fail_at(n);
    err = tnk__context_open(&loop, &uv, test_allocator(), NULL);
    if (!test_alloc_did_fail()) {
      CHECK_INT(err, TNK_OK);
      tnk__context_close(&loop, context_closed, &context);
      uv_run(&uv, UV_RUN_DEFAULT);
      CHECK_INT(context.is_closed, 1);
      break;
    }
    CHECK_INT(err, TNK_ENOMEM);
    CHECK_INT(test_alloc_live(), 0);
  }
  CHECK(n > 1);
  CHECK_INT(uv_loop_close(&uv), 0);
}

TEST(closing_allocates_nothing) {
  size_t before;

  context_open(&context);
  before = test_alloc_count();
  context_close(&context);
  CHECK_INT(test_alloc_count(), before);
}

static int code_elsewhere;

static void ask_elsewhere(void *arg) {
  code_elsewhere = tnk__context_check_caller(arg);
}

TEST(the_caller_is_checked_for_thread_and_process) {
  uv_thread_t thread;
  int status;
  pid_t pid;

  context_open(&context);
  CHECK_INT(tnk__context_check_caller(&context.loop), TNK_OK);
  CHECK_INT(uv_thread_create(&thread, ask_elsewhere, &context.loop), 0);
  CHECK_INT(uv_thread_join(&thread), 0);
  CHECK_INT(code_elsewhere, TNK_ETHREAD);
  pid = fork();
  CHECK(pid >= 0);
  if (pid == 0)
    _exit(tnk__context_check_caller(&context.loop) == TNK_EFORKED ? 0 : 1);
  CHECK_INT(waitpid(pid, &status, 0), pid);
  CHECK_INT(status, 0);
  context_close(&context);
}

TEST(sigpipe_is_blocked_in_the_thread_that_opens) {
  sigset_t set;

  pthread_sigmask(SIG_SETMASK, NULL, &set);
  CHECK_INT(sigismember(&set, SIGPIPE), 0);
  context_open(&context);
  pthread_sigmask(SIG_SETMASK, NULL, &set);
  CHECK_INT(sigismember(&set, SIGPIPE), 1);
  context_close(&context);
}

TEST(uniform_numbers_are_in_range_and_spread) {
  double sum = 0;
  int i;

  context_open(&context);
  for (i = 0; i < 10000; i++) {
    double x = tnk__context_uniform(&context.loop);
    CHECK(x >= 0 && x < 1);
    sum += x;
  }
  CHECK_NEAR(sum / 10000, 0.5, 0.05);
  context_close(&context);
}

static uint64_t times[5];

static void on_look(tnk__deferred_t *call) {
  (void)call;
  times[0] = tnk__context_now_ms(&context.loop);
  let_time_pass();
  times[1] = tnk__context_now_ms(&context.loop);
  tnk__callout_begin();
  let_time_pass();
  times[2] = tnk__context_now_ms(&context.loop);
  let_time_pass();
  times[3] = tnk__context_now_ms(&context.loop);
  tnk__callout_end();
  times[4] = tnk__context_now_ms(&context.loop);
}

/* The caller's code may take long, and asks for the time as well. */
TEST(no_time_passes_in_a_deferred_call_but_in_the_callers_code) {
  uint64_t before;

  setup();
  tnk__deferred_init(&a.call, on_look);
  for (int i = 0; i < 2; i++) {
    before = tnk__context_now_ms(&context.loop);
    let_time_pass();
    tnk__defer(&context.loop, &a.call);
    context_turn(&context);
    CHECK(times[0] > before);
    CHECK(times[1] == times[0]);
    CHECK(times[2] > times[1]);
    CHECK(times[3] > times[2]);
    CHECK(times[4] >= times[3]);
    before = tnk__context_now_ms(&context.loop);
    let_time_pass();
    CHECK(tnk__context_now_ms(&context.loop) > before);
  }
  context_close(&context);
}

static uint64_t ns[4];

static void on_look_closely(tnk__deferred_t *call) {
  (void)call;
  ns[0] = tnk__context_now_ns(&context.loop);
  let_time_pass();
  ns[1] = tnk__context_now_ns(&context.loop);
  CHECK_INT(tnk__context_now_ms(&context.loop), ns[1] / 1000000);
  tnk__context_took_time(&context.loop);
  ns[2] = tnk__context_now_ns(&context.loop);
  CHECK_INT(tnk__context_now_ms(&context.loop), ns[2] / 1000000);
  tnk__callout_begin();
  tnk__callout_begin();
  tnk__callout_end();
  ns[3] = tnk__context_now_ns(&context.loop);
  let_time_pass();
  CHECK(tnk__context_now_ns(&context.loop) > ns[3]);
  tnk__callout_end();
}

TEST(what_takes_time_in_a_deferred_call_may_say_so) {
  setup();
  tnk__deferred_init(&a.call, on_look_closely);
  tnk__defer(&context.loop, &a.call);
  context_turn(&context);
  CHECK(ns[1] == ns[0]);
  CHECK(ns[2] > ns[1]);
  CHECK(ns[3] >= ns[2]);
  context_close(&context);
}

TEST(time_can_be_stopped_outside_of_deferred_calls_too) {
  tnk__moment_t moment;
  tnk__moment_t inner;
  uint64_t then;

  setup();
  tnk__context_stop_time(&context.loop, &moment);
  then = tnk__context_now_ns(&context.loop);
  let_time_pass();
  tnk__context_stop_time(&context.loop, &inner);
  CHECK(tnk__context_now_ns(&context.loop) == then);
  tnk__context_let_time_pass(&context.loop, &inner);
  CHECK(tnk__context_now_ns(&context.loop) == then);
  tnk__context_let_time_pass(&context.loop, &moment);
  CHECK(tnk__context_now_ns(&context.loop) > then);
  context_close(&context);
}

TEST(a_fake_clock_stands_still_until_it_is_advanced) {
  context_open(&context);
  tnk__context_fake_clock(&context.loop, 42);
  CHECK_INT(tnk__context_now_ms(&context.loop), 42);
  context_turn(&context);
  CHECK_INT(tnk__context_now_ms(&context.loop), 42);
  tnk__context_advance(&context.loop, 8);
  CHECK_INT(tnk__context_now_ms(&context.loop), 50);
  context_close(&context);
}

/* SPDX-License-Identifier: MIT */
#include "lib/api/root.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/alloc.h"
#include "lib/io/loop/promise.h"
#include "support/test.h"
#include "tnk/service.h"

/* What posted functions saw; read by the test after the runtime has stopped,
 * or behind a semaphore. */
typedef struct {
  tnk_runtime_t *runtime;
  uv_sem_t reached; /* posted by a function that has begun */
  uv_sem_t go_on;   /* waited for by it */
  uv_thread_t thread;
  int n_run;
  int result;
  int n_closed;
  uv_loop_t *loop;
  uv_timer_t timer;
  uv_idle_t idle;
  tnk_promise_t *promise;
} probe_t;

static void probe_start(probe_t *probe) {
  memset(probe, 0, sizeof(*probe));
  CHECK_INT(uv_sem_init(&probe->reached, 0), 0);
  CHECK_INT(uv_sem_init(&probe->go_on, 0), 0);
  CHECK_INT(tnk__runtime_start(&probe->runtime, test_allocator()), TNK_OK);
}

static void probe_stop(probe_t *probe) {
  CHECK_INT(tnk_runtime_stop(probe->runtime), TNK_OK);
  uv_sem_destroy(&probe->reached);
  uv_sem_destroy(&probe->go_on);
}

static void count(uv_loop_t *loop, void *user) {
  probe_t *probe = user;

  CHECK(loop != NULL);
  probe->thread = uv_thread_self();
  probe->n_run++;
}

static void block(uv_loop_t *loop, void *user) {
  probe_t *probe = user;

  (void)loop;
  uv_sem_post(&probe->reached);
  uv_sem_wait(&probe->go_on);
}

TEST(a_post_runs_on_the_thread_of_the_runtime) {
  const uv_thread_t self = uv_thread_self();
  probe_t probe;

  probe_start(&probe);
  CHECK_INT(tnk_runtime_post(probe.runtime, count, &probe), TNK_OK);
  probe_stop(&probe);
  CHECK_INT(probe.n_run, 1);
  CHECK(!uv_thread_equal(&self, &probe.thread));
}

TEST(the_public_start_uses_malloc) {
  tnk_runtime_t *runtime;
  probe_t probe;

  memset(&probe, 0, sizeof(probe));
  CHECK_INT(tnk_runtime_start(&runtime), TNK_OK);
  CHECK_INT(tnk_runtime_post(runtime, count, &probe), TNK_OK);
  CHECK_INT(tnk_runtime_stop(runtime), TNK_OK);
  CHECK_INT(probe.n_run, 1);
  CHECK_INT(test_alloc_count(), 0);
}

TEST(without_descriptors_the_system_refuses_a_runtime) {
  const rlim_t none = (rlim_t)dup(0);
  tnk_runtime_t *runtime;
  struct rlimit limit;
  rlim_t before;

  close((int)none);
  CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
  before = limit.rlim_cur;
  limit.rlim_cur = none;
  CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
  CHECK_INT(tnk_runtime_start(&runtime), TNK_ESYSTEM);
  CHECK(runtime == NULL);
  limit.rlim_cur = before;
  CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

enum { N_THREADS = 8, N_POSTS = 2000 };

typedef struct poster poster_t;

typedef struct {
  poster_t *poster;
  int number;
} numbered_t;

struct poster {
  tnk_runtime_t *runtime;
  uv_thread_t thread;
  int next; /* the number that is due; used on the loop's thread */
  int n_wrong;
  numbered_t posts[N_POSTS];
};

static void on_numbered(uv_loop_t *loop, void *user) {
  numbered_t *post = user;
  poster_t *poster = post->poster;

  (void)loop;
  poster->n_wrong += post->number != poster->next;
  poster->next++;
}

static void post_all(void *arg) {
  poster_t *poster = arg;
  int i;

  for (i = 0; i < N_POSTS; i++) {
    poster->posts[i].poster = poster;
    poster->posts[i].number = i;
    CHECK_INT(tnk_runtime_post(poster->runtime, on_numbered, &poster->posts[i]),
              TNK_OK);
  }
}

TEST(posts_of_many_threads_all_run_each_in_its_order) {
  static poster_t posters[N_THREADS];
  probe_t probe;
  int i;

  probe_start(&probe);
  for (i = 0; i < N_THREADS; i++) {
    posters[i].runtime = probe.runtime;
    CHECK_INT(uv_thread_create(&posters[i].thread, post_all, &posters[i]), 0);
  }
  for (i = 0; i < N_THREADS; i++)
    uv_thread_join(&posters[i].thread);
  probe_stop(&probe);
  for (i = 0; i < N_THREADS; i++) {
    CHECK_INT(posters[i].next, N_POSTS);
    CHECK_INT(posters[i].n_wrong, 0);
  }
}

static void post_again(uv_loop_t *loop, void *user) {
  probe_t *probe = user;

  (void)loop;
  if (++probe->n_run < 100)
    CHECK_INT(tnk_runtime_post(probe->runtime, post_again, probe), TNK_OK);
  else
    uv_sem_post(&probe->reached);
}

TEST(a_posted_function_may_post) {
  probe_t probe;

  probe_start(&probe);
  CHECK_INT(tnk_runtime_post(probe.runtime, post_again, &probe), TNK_OK);
  uv_sem_wait(&probe.reached);
  probe_stop(&probe);
  CHECK_INT(probe.n_run, 100);
}

static void stop_inside(uv_loop_t *loop, void *user) {
  probe_t *probe = user;

  (void)loop;
  probe->result = tnk_runtime_stop(probe->runtime);
  uv_sem_post(&probe->reached);
}

TEST(stop_from_the_runtimes_own_thread_is_refused) {
  probe_t probe;
  int i;

  probe_start(&probe);
  for (i = 0; i < 2; i++) {
    CHECK_INT(tnk_runtime_post(probe.runtime, stop_inside, &probe), TNK_OK);
    uv_sem_wait(&probe.reached);
    CHECK_INT(probe.result, TNK_EREENTRANT);
  }
  CHECK_INT(tnk_runtime_post(probe.runtime, count, &probe), TNK_OK);
  probe_stop(&probe);
  CHECK_INT(probe.n_run, 1);
}

static void stop_from_thread(void *arg) {
  probe_t *probe = arg;

  CHECK_INT(tnk_runtime_stop(probe->runtime), TNK_OK);
}

static void ignore(uv_loop_t *loop, void *user) {
  (void)loop;
  (void)user;
}

static void stop_inside_again(uv_loop_t *loop, void *user) {
  probe_t *probe = user;

  stop_inside(loop, user);
  CHECK_INT(tnk_runtime_post(probe->runtime, ignore, probe), TNK_ECLOSED);
}

/* The loop is held by `block` until a post is refused, which shows that the
 * stop has begun; what was queued before runs all the same. */
TEST(stop_runs_what_is_queued_and_refuses_what_comes_after) {
  probe_t probe;
  uv_thread_t stopper;
  int n_posted;
  int n_ignored = 0;
  int err;

  probe_start(&probe);
  CHECK_INT(tnk_runtime_post(probe.runtime, block, &probe), TNK_OK);
  uv_sem_wait(&probe.reached);
  for (n_posted = 0; n_posted < 100; n_posted++)
    CHECK_INT(tnk_runtime_post(probe.runtime, count, &probe), TNK_OK);
  CHECK_INT(tnk_runtime_post(probe.runtime, stop_inside_again, &probe), TNK_OK);
  CHECK_INT(uv_thread_create(&stopper, stop_from_thread, &probe), 0);
  while ((err = tnk_runtime_post(probe.runtime, ignore, NULL)) == TNK_OK)
    n_ignored++;
  CHECK_INT(err, TNK_ECLOSED);
  uv_sem_post(&probe.go_on);
  uv_thread_join(&stopper);
  CHECK_INT(probe.n_run, 100);
  CHECK_INT(probe.result, TNK_EREENTRANT);
  uv_sem_destroy(&probe.reached);
  uv_sem_destroy(&probe.go_on);
}

static void on_handle_closed(uv_handle_t *handle) {
  probe_t *probe = handle->data;

  probe->n_closed++;
}

static void on_timer(uv_timer_t *timer) {
  probe_t *probe = timer->data;

  probe->n_run++;
  uv_close((uv_handle_t *)timer, on_handle_closed);
}

static void start_timer(uv_loop_t *loop, void *user) {
  probe_t *probe = user;

  uv_timer_init(loop, &probe->timer);
  probe->timer.data = probe;
  uv_timer_start(&probe->timer, on_timer, 1, 0);
}

TEST(stop_waits_for_handles_that_keep_a_loop_alive) {
  probe_t probe;

  probe_start(&probe);
  CHECK_INT(tnk_runtime_post(probe.runtime, start_timer, &probe), TNK_OK);
  probe_stop(&probe);
  CHECK_INT(probe.n_run, 1);
  CHECK_INT(probe.n_closed, 1);
}

static void leave_idle(uv_loop_t *loop, void *user) {
  probe_t *probe = user;

  uv_idle_init(loop, &probe->idle);
}

TEST(stop_closes_handles_that_do_not) {
  probe_t probe;

  probe_start(&probe);
  CHECK_INT(tnk_runtime_post(probe.runtime, leave_idle, &probe), TNK_OK);
  probe_stop(&probe);
  CHECK(uv_is_closing((uv_handle_t *)&probe.idle));
}

static void stop_loop(uv_loop_t *loop, void *user) {
  (void)user;
  uv_stop(loop);
}

TEST(stopping_the_loop_itself_does_not_end_the_runtime) {
  probe_t probe;

  probe_start(&probe);
  CHECK_INT(tnk_runtime_post(probe.runtime, stop_loop, NULL), TNK_OK);
  CHECK_INT(tnk_runtime_post(probe.runtime, block, &probe), TNK_OK);
  uv_sem_wait(&probe.reached);
  uv_sem_post(&probe.go_on);
  CHECK_INT(tnk_runtime_post(probe.runtime, count, &probe), TNK_OK);
  probe_stop(&probe);
  CHECK_INT(probe.n_run, 1);
}

static void on_context_closed(void *user) {
  probe_t *probe = user;

  probe->n_closed++;
}

static void wait_inside(uv_loop_t *loop, void *user) {
  const tnk_logger_t logger = {TNK_LOG_NONE, NULL, NULL};
  static tnk__context_t context; /* outlives this call: it closes later */
  probe_t *probe = user;
  tnk_promise_t *promise;

  CHECK_INT(tnk__context_open(&context, loop, test_allocator(), &logger),
            TNK_OK);
  promise = tnk__promise_new(&context, NULL, NULL);
  probe->result = tnk_wait(promise);
  tnk__promise_resolve(promise, TNK__RESULT_NONE, NULL, NULL);
  tnk_promise_unref(promise);
  tnk__context_close(&context, on_context_closed, probe);
}

TEST(a_posted_function_may_not_wait) {
  probe_t probe;

  probe_start(&probe);
  CHECK_INT(tnk_runtime_post(probe.runtime, wait_inside, &probe), TNK_OK);
  probe_stop(&probe);
  CHECK_INT(probe.result, TNK_EREENTRANT);
  CHECK_INT(probe.n_closed, 1);
}

static void on_health(tnk_promise_t *promise, int status, void *user) {
  probe_t *probe = user;

  (void)promise;
  probe->result = status;
}

/* Nobody listens on port 1, so the call is repeated for as long as it may. */
static void open_and_ask(uv_loop_t *loop, tnk_promise_cb cb, probe_t *probe) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_service_t *service;

  options.base_url = "http://127.0.0.1:1";
  options.api_key = "tml-key";
  options.allocator = test_allocator();
  CHECK_INT(tnk_service_open(&service, loop, &options, NULL, 0), TNK_OK);
  tnk_then(tnk_service_health(service), cb, probe);
}

static void leave_service(uv_loop_t *loop, void *user) {
  open_and_ask(loop, on_health, user);
}

/* With the time that a rejection gives it, the program opens another one. */
static void on_first_health(tnk_promise_t *promise, int status, void *user) {
  probe_t *probe = user;

  (void)promise;
  CHECK_INT(status, TNK_ECLOSED);
  leave_service(probe->loop, probe);
}

static void leave_two_services(uv_loop_t *loop, void *user) {
  probe_t *probe = user;

  probe->loop = loop;
  open_and_ask(loop, on_first_health, probe);
}

TEST(stop_closes_the_services_that_were_left_open) {
  probe_t probe;

  probe_start(&probe);
  CHECK_INT(tnk_runtime_post(probe.runtime, leave_service, &probe), TNK_OK);
  probe_stop(&probe);
  CHECK_INT(probe.result, TNK_ECLOSED);
}

TEST(stop_closes_a_service_that_was_opened_while_it_closed_another) {
  probe_t probe;

  probe_start(&probe);
  CHECK_INT(tnk_runtime_post(probe.runtime, leave_two_services, &probe),
            TNK_OK);
  probe_stop(&probe);
  CHECK_INT(probe.result, TNK_ECLOSED);
}

static void keep_promise(uv_loop_t *loop, void *user) {
  probe_t *probe = user;
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_service_t *service;

  options.base_url = "http://127.0.0.1:1";
  options.api_key = "tml-key";
  options.allocator = test_allocator();
  CHECK_INT(tnk_service_open(&service, loop, &options, NULL, 0), TNK_OK);
  probe->promise = tnk_service_health(service);
  tnk_then(tnk_promise_ref(probe->promise), on_health, probe);
  uv_sem_post(&probe->reached);
}

TEST(a_promise_is_let_go_of_on_any_thread) {
  probe_t probe;

  probe_start(&probe);
  CHECK_INT(tnk_runtime_post(probe.runtime, keep_promise, &probe), TNK_OK);
  uv_sem_wait(&probe.reached);
  CHECK_INT(tnk_runtime_unref(probe.runtime, NULL), TNK_OK);
  CHECK_INT(tnk_runtime_unref(NULL, probe.promise), TNK_EINVAL);
  CHECK_INT(tnk_runtime_unref(probe.runtime, probe.promise), TNK_OK);
  probe_stop(&probe);
  CHECK_INT(probe.result, TNK_ECLOSED);
  CHECK_INT(test_alloc_live(), 0);
}

TEST(nothing_is_asked_of_no_runtime) {
  CHECK_INT(tnk_runtime_start(NULL), TNK_EINVAL);
  probe_t probe;

  CHECK_INT(tnk_runtime_stop(NULL), TNK_OK);
  CHECK_INT(tnk_runtime_post(NULL, count, NULL), TNK_EINVAL);
  probe_start(&probe);
  CHECK_INT(tnk_runtime_post(probe.runtime, NULL, NULL), TNK_EINVAL);
  probe_stop(&probe);
}

TEST(without_memory_start_and_post_say_so) {
  tnk_runtime_t *runtime = (tnk_runtime_t *)&runtime;
  probe_t probe;

  test_alloc_fail_at(0);
  CHECK_INT(tnk__runtime_start(&runtime, test_allocator()), TNK_ENOMEM);
  CHECK(runtime == NULL);
  probe_start(&probe);
  test_alloc_fail_at(0);
  CHECK_INT(tnk_runtime_post(probe.runtime, count, &probe), TNK_ENOMEM);
  CHECK_INT(tnk_runtime_post(probe.runtime, count, &probe), TNK_OK);
  probe_stop(&probe);
  CHECK_INT(probe.n_run, 1);
}

static void never_posted(uv_loop_t *loop, void *user) {
  (void)loop;
  (void)user;
}

TEST(runtime_in_a_forked_child_is_refused) {
  tnk_runtime_t *runtime;
  int status;
  pid_t child;

  CHECK_INT(tnk_runtime_start(&runtime), TNK_OK);
  child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20); /* to wait for a thread that is not there */
    _exit(tnk_runtime_post(runtime, never_posted, NULL) == TNK_EFORKED &&
                  tnk_runtime_stop(runtime) == TNK_EFORKED
              ? 0
              : 1);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_INT(WEXITSTATUS(status), 0);
  CHECK_INT(tnk_runtime_stop(runtime), TNK_OK);
}

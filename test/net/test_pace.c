/* SPDX-License-Identifier: MIT */
#include "lib/io/net/net.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "loop/fixture.h"

typedef struct {
  tnk__pace_step_t step;
  tnk__pace_t *pace;
  int n_run;
  int again; /* ask once more from inside the step */
} worker_t;

static void on_run(tnk__pace_step_t *step) {
  worker_t *worker = tnk__container_of(step, worker_t, step);

  worker->n_run++;
  if (worker->again)
    CHECK_INT(tnk__pace_ask(worker->pace, step), 0);
  worker->again = 0;
}

enum { N = 7 };

typedef struct {
  context_t context;
  tnk__pace_t pace;
  worker_t workers[N];
} crowd_t;

static void crowd_open(crowd_t *crowd) {
  int i;

  memset(crowd, 0, sizeof(*crowd));
  context_open(&crowd->context);
  tnk__pace_init(&crowd->pace, &crowd->context.loop);
  for (i = 0; i < N; i++) {
    tnk__pace_step_init(&crowd->workers[i].step, on_run);
    crowd->workers[i].pace = &crowd->pace;
  }
}

static int ask(crowd_t *crowd, int i) {
  return tnk__pace_ask(&crowd->pace, &crowd->workers[i].step);
}

static int n_run(const crowd_t *crowd) {
  int n = 0;
  int i;

  for (i = 0; i < N; i++)
    n += crowd->workers[i].n_run;
  return n;
}

TEST(so_many_steps_a_turn_in_order) {
  crowd_t crowd;
  int i;

  crowd_open(&crowd);
  for (i = 0; i < N; i++)
    CHECK_INT(ask(&crowd, i), i < TNK__PACE_STEPS);
  CHECK_INT(n_run(&crowd), 0);
  context_turn(&crowd.context);
  CHECK_INT(n_run(&crowd), 2);
  CHECK_INT(crowd.workers[2].n_run + crowd.workers[3].n_run, 2);
  /* Who comes later waits behind those who wait. */
  CHECK_INT(ask(&crowd, 0), 0);
  context_turn(&crowd.context);
  CHECK_INT(n_run(&crowd), 4);
  context_turn(&crowd.context);
  CHECK_INT(n_run(&crowd), 6);
  CHECK_INT(crowd.workers[0].n_run, 1);
  tnk__pace_deinit(&crowd.pace);
  context_close(&crowd.context);
}

TEST(a_quiet_pace_does_not_keep_the_loop_alive) {
  crowd_t crowd;

  crowd_open(&crowd);
  CHECK_INT(ask(&crowd, 0), 1);
  uv_run(&crowd.context.uv, UV_RUN_DEFAULT);
  CHECK_INT(ask(&crowd, 0), 1);
  tnk__pace_deinit(&crowd.pace);
  context_close(&crowd.context);
}

TEST(a_step_may_ask_again_and_may_be_forgotten) {
  crowd_t crowd;
  int i;

  crowd_open(&crowd);
  for (i = 0; i < 6; i++)
    ask(&crowd, i);
  crowd.workers[2].again = 1;
  tnk__pace_forget(&crowd.workers[3].step);
  uv_run(&crowd.context.uv, UV_RUN_DEFAULT);
  CHECK_INT(crowd.workers[2].n_run, 2);
  CHECK_INT(crowd.workers[3].n_run, 0);
  tnk__pace_deinit(&crowd.pace);
  context_close(&crowd.context);
}

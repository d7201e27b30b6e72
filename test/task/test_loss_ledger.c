/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* mkdtemp() */
#include <unistd.h>

#include "lib/ledger/ledger.h"
#include "support/tree.h"
#include "task/moments.h"
#include "tnk/ledger.h"

/*
 * Runs with a ledger, as in examples/sft.c, whose server is killed at every
 * moment. With recovery, the program waits for tnk_training_ready() and
 * continues from its step. Without it, the program opens a new service and its
 * ledger again. In every cell of the table the run has the losses and the
 * weights of a run whose server is never killed.
 */

enum {
  N_STEPS = 24,
  EVERY = 4,
  STEP_MS = 1000,
  LIMIT_MS = 240000,
  MAX_REFUSALS = 12,
  MAX_LOST = 32,
  UNKNOWN = -1, /* in place of a result that was lost */
  /* The second delay of refusals that follow others within a minute: a second
   * loss is reported so much later, unless the session shows it. */
  DELAY_MS = 1000
};

typedef struct {
  moment_t moment;
  state_t state;
  int recovers;
  int listens; /* has on_recovery; or knows by tnk_training_ready() alone */
  numbers_t numbers;
  int is_fast;
} cell_t;

/* What a run is made of. */
typedef struct {
  double losses[N_STEPS];
  double weights[N_STEPS];
} course_t;

typedef struct {
  world_t world;
  const cell_t *cell;
  killer_t killer;
  tnk__ledger_disk_t disk;
  char dir[64];
  tnk_ledger_t *ledger;
  tnk_promise_t *opening;
  tnk_promise_t *making;
  int is_new; /* the model is made, because the ledger has no state */
  tnk_promise_t *ready;
  int wants_ready;
  tnk_promise_t *pass;
  tnk_promise_t *step;
  tnk_promise_t *save;
  unsigned at;      /* the steps that the weights have */
  uint64_t next_ms; /* when the next step begins */
  int n_good_steps; /* since the last kill */
  int n_reopened;
  int n_not_found;
  int n_others; /* other errors than TNK_ESESSION */
  char other[200];
  char lost[MAX_LOST][64]; /* what was reported as lost */
  int n_lost;
  int n_twice; /* reports of a loss that was reported before */
  int is_over;
  course_t course;
} run_t;

static tnk_promise_t **promises_of(run_t *run, size_t i) {
  tnk_promise_t **all[] = {&run->opening, &run->making, &run->ready,
                           &run->pass,    &run->step,   &run->save};

  return i < sizeof(all) / sizeof(all[0]) ? all[i] : NULL;
}

static void drop(tnk_promise_t **promise) {
  tnk_promise_unref(*promise);
  *promise = NULL;
}

static void drop_all(run_t *run) {
  for (size_t i = 0; promises_of(run, i) != NULL; i++)
    if (*promises_of(run, i) != NULL)
      drop(promises_of(run, i));
}

/* ---- Reports ---- */

static void report(run_t *run) {
  if (run->world.reported_ms == 0)
    run->world.reported_ms = world_now(&run->world);
}

static void note(run_t *run, const char *what) {
  for (int i = 0; i < run->n_lost; i++)
    run->n_twice += strcmp(run->lost[i], what) == 0;
  CHECK(run->n_lost < MAX_LOST);
  snprintf(run->lost[run->n_lost++], sizeof(run->lost[0]), "%s", what);
}

/* A session or a client is reported in each way once after a kill, and no id is
 * reported again. */
static void report_once(run_t *run, const char *way, const char *client) {
  char what[64];

  report(run);
  snprintf(what, sizeof(what), "%s %.40s", way, client);
  note(run, what);
  snprintf(what, sizeof(what), "%s %s kill %d", way,
           strchr(client, ':') != NULL ? "model" : "session",
           run->world.n_kills);
  note(run, what);
}

static void on_recovered(const tnk_recovery_event_t *event, void *user) {
  run_t *run = user;

  if (event->state == TNK_RECOVERY_DETECTED)
    report_once(run, "detected", event->client);
  if (event->state == TNK_RECOVERY_COMPLETED)
    run->wants_ready |= event->training != NULL;
}

static void on_state(const char *client, tnk_queue_state_t state,
                     const char *reason, void *user) {
  (void)reason;
  if (state == TNK_QUEUE_SESSION_LOST)
    report_once(user, "session", client);
  if (state == TNK_QUEUE_MEMORY_LOST)
    report_once(user, "memory", client);
}

/* ---- The service ---- */

static int no_sync(int fd) {
  (void)fd;
  return 0;
}

static int no_folder(const char *path) {
  (void)path;
  return 0;
}

static void open_service(run_t *run) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.recovery = run->cell->recovers ? TNK_YES : TNK_NO;
  options.on_recovery = run->cell->listens ? on_recovered : NULL;
  options.recovery_user = run;
  options.recovery_poll_ms = UINT64_MAX;
  options.on_queue_state = on_state;
  options.queue_state_user = run;
  script_open_service(&run->world.script, options);
  run->disk = tnk__ledger_disk;
  run->disk.sync = no_sync;
  run->disk.sync_folder = no_folder;
  run->world.script.service->ledgers.disk = &run->disk;
}

/* A new process of the program. */
static void reopen(run_t *run) {
  script_t *script = &run->world.script;
  const uint64_t now = world_now(&run->world);

  tnk_service_close(script->service, script_closed, script);
  mock_wait_flag(script->mock, &script->is_closed, 1);
  script->is_closed = 0;
  drop_all(run);
  heard_close(&script->heard);
  memset(&script->heard, 0, sizeof(script->heard));
  run->ledger = NULL;
  script->training = NULL;
  run->n_reopened++;
  open_service(run);
  script->service->root.context.fake_now = now;
}

/* The pool has real time. */
static int is_writing(const run_t *run) {
  const tnk__list_t *open = &run->world.script.service->ledgers.open;

  TNK__LIST_FOREACH (node, open) {
    const tnk_ledger_t *ledger = tnk__container_of(node, tnk_ledger_t, link);
    if (ledger->is_reading || ledger->pen.is_busy)
      return 1;
  }
  return 0;
}

/* ---- The program ---- */

/* A strict server refuses to run a step twice. The step is done, and its
 * metrics are lost. */
static int was_run(const run_t *run, const tnk_promise_t *promise) {
  return promise == run->step && tnk_promise_status(promise) == TNK_ECONFLICT &&
         tnk_promise_error(promise)->ran == TNK_RAN_YES;
}

/* 1: it has settled, with *status. */
static int over(run_t *run, tnk_promise_t *promise, int *status) {
  if (promise == NULL || tnk_promise_state(promise) == TNK_PENDING)
    return 0;
  *status = tnk_promise_status(promise);
  if (*status == TNK_OK || *status == TNK_ESESSION || was_run(run, promise))
    return 1;
  run->n_not_found += *status == TNK_ENOTFOUND || *status == TNK_EEXPIRED;
  run->n_others++;
  snprintf(run->other, sizeof(run->other), "%s", tnk_promise_text(promise));
  return 1;
}

/* 1: the program has a new service. */
static int failed(run_t *run) {
  if (!run->cell->recovers) {
    reopen(run);
    return 1;
  }
  run->wants_ready = 1;
  return 0;
}

/* The ledger and the model, as tnk_must_ledger() and tnk_must_resume() do it.
 */
static void begin(run_t *run) {
  script_t *script = &run->world.script;
  tnk_ledger_options_t options = TNK_LEDGER_OPTIONS_INIT;
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  int status;

  options.every_steps = EVERY;
  lora.base_model = "base";
  if (run->ledger == NULL && run->opening == NULL)
    run->opening = tnk_ledger_open(script->service, run->dir, &options);
  if (run->ledger == NULL && over(run, run->opening, &status)) {
    CHECK_INT(status, TNK_OK);
    run->ledger = tnk_promise_ledger(run->opening);
  }
  if (run->ledger == NULL)
    return;
  if (run->making == NULL) {
    run->is_new = 0;
    run->making = tnk_ledger_resume(run->ledger, NULL);
  } else if (!run->is_new && tnk_promise_status(run->making) == TNK_ENOTFOUND) {
    CHECK_INT(run->world.n_saved, 0);
    run->is_new = 1;
    drop(&run->making);
    run->making = tnk_service_create_lora(script->service, &lora);
  } else if (over(run, run->making, &status)) {
    run->is_new = 0;
    script->training = tnk_promise_training(run->making);
    drop(&run->making);
    if (status == TNK_OK)
      run->wants_ready = 1;
    else
      failed(run);
  }
}

static void take_step(run_t *run) {
  const tnk_metrics_t *metrics = tnk_pass_metrics(tnk_promise_pass(run->pass));

  CHECK(run->at < N_STEPS);
  run->course.losses[run->at] = tnk_metrics_get(metrics, "loss:sum");
  run->course.weights[run->at] =
      was_run(run, run->step)
          ? UNKNOWN
          : tnk_metrics_get(tnk_promise_metrics(run->step), "grad_norm");
  run->world.expected = (long)++run->at;
  run->n_good_steps++;
  run->next_ms = world_now(&run->world) + STEP_MS;
}

/* What has settled. 1: there is a new service. */
static int settle(run_t *run) {
  int a = TNK_OK;
  int b = TNK_OK;

  if (over(run, run->save, &a)) {
    drop(&run->save);
    if (a != TNK_OK && failed(run))
      return 1;
  }
  if (run->pass != NULL && over(run, run->pass, &a) &&
      over(run, run->step, &b)) {
    if (a == TNK_OK && was_run(run, run->step))
      b = TNK_OK;
    if (a == TNK_OK && b == TNK_OK)
      take_step(run);
    drop(&run->pass);
    drop(&run->step);
    if ((a != TNK_OK || b != TNK_OK) && failed(run))
      return 1;
  }
  if (over(run, run->ready, &a)) {
    if (a == TNK_OK) {
      run->at = (unsigned)tnk_promise_saved(run->ready)->n_steps;
      run->world.expected = (long)run->at;
    }
    drop(&run->ready);
    return a != TNK_OK && failed(run);
  }
  return 0;
}

/* Data that no other step has. */
static tnk_promise_t *pass(run_t *run) {
  static const int64_t targets[] = {12, 13};
  const int32_t tokens[] = {11, 100 + (int32_t)run->at};
  const tnk_datum_t datum = {.input = {.tokens = tokens, .n_tokens = 2},
                             .targets = targets};

  return tnk_training_forward_backward(run->world.script.training, &datum, 1,
                                       NULL);
}

static void train(run_t *run) {
  script_t *script = &run->world.script;
  tnk_ledger_save_t how = TNK_LEDGER_SAVE_INIT;

  if (settle(run) || run->save != NULL || run->pass != NULL ||
      run->ready != NULL)
    return;
  if (run->wants_ready) {
    run->wants_ready = 0;
    run->ready = tnk_training_ready(script->training);
  } else if (tnk_ledger_due(run->ledger, script->training)) {
    run->save = tnk_ledger_save(run->ledger, script->training, &how);
  } else if (run->at == N_STEPS) {
    run->is_over = 1;
  } else if (world_now(&run->world) >= run->next_ms) {
    run->pass = pass(run);
    run->step = script_step(script);
  }
}

/* The program ends and is started again, and resuming kills the server. */
static void restart_program(run_t *run) {
  if (run->killer.moment != IN_RESUME || run->n_reopened > 0 ||
      run->at != N_STEPS_BEFORE || run->killer.n_due == 0)
    return;
  reopen(run);
  killer_of(&run->killer, "/api/v1/load_weights");
}

static void watch(run_t *run, int dies) {
  if (dies)
    run->n_good_steps = 0;
}

static void tick(run_t *run) {
  script_t *script = &run->world.script;

  watch(run, killer_watch(&run->killer, run->n_good_steps > 0));
  restart_program(run);
  for (int i = 0; i < 4; i++) {
    if (script->training == NULL)
      begin(run);
    else
      train(run);
    for (int k = 0; k < 3 || is_writing(run); k++) {
      mock_turns(script->mock, 1);
      if (run->world.is_dying)
        watch(run, killer_strikes(&run->killer));
    }
  }
  script_advance(script, TICK_MS);
}

/* ---- A cell ---- */

static void describe(const cell_t *cell, char *to, size_t size) {
  snprintf(to, size,
           "moment %d, state %d, recovery %d, listens %d, numbers %d, fast %d",
           (int)cell->moment, (int)cell->state, cell->recovers, cell->listens,
           (int)cell->numbers, cell->is_fast);
}

#define HOLDS(condition)                                                       \
  do {                                                                         \
    if (!(condition))                                                          \
      test_fail(__FILE__, __LINE__, "%s: %s; %s", #condition, text,            \
                run->other);                                                   \
  } while (0)

static void judge(run_t *run, const course_t *course) {
  const cell_t *cell = run->cell;
  const world_t *world = &run->world;
  const int is_delayed = world->n_kills > 1 && cell->state == STATE_OTHERS;
  const tnk_ledger_entry_t *last;
  int n_unknown = 0;
  char text[256];

  describe(cell, text, sizeof(text));
  HOLDS(run->n_not_found == 0);
  HOLDS(run->n_others == 0);
  HOLDS(run->is_over);
  HOLDS(run->killer.n_due == 0);
  HOLDS(world->n_wrong == 0);
  HOLDS(run->n_twice == 0);
  HOLDS(!cell->recovers || run->n_reopened == (cell->moment == IN_RESUME));
  for (int i = 0; i < 400; i++)
    HOLDS(world->n_refusals[i] <= MAX_REFUSALS);
  if (world->revealed_ms != 0)
    HOLDS(world->reported_ms != 0 &&
          world->reported_ms <=
              world->revealed_ms + 2 * TICK_MS + (is_delayed ? DELAY_MS : 0));
  last = tnk_ledger_last(run->ledger);
  HOLDS(last != NULL && last->n_steps == N_STEPS);
  for (int i = 0; course != NULL && i < N_STEPS; i++) {
    HOLDS(run->course.losses[i] == course->losses[i]);
    HOLDS(run->course.weights[i] == course->weights[i] ||
          (run->course.weights[i] == UNKNOWN && n_unknown++ == 0));
  }
}

static void run_cell(const cell_t *cell, const course_t *course,
                     course_t *own) {
  run_t run;

  memset(&run, 0, sizeof(run));
  run.cell = cell;
  snprintf(run.dir, sizeof(run.dir), "/tmp/tnk-loss-XXXXXX");
  CHECK(mkdtemp(run.dir) != NULL);
  script_begin(&run.world.script);
  open_service(&run);
  world_serve(&run.world);
  run.world.numbers = cell->numbers;
  run.world.state = cell->state;
  run.world.has_names = 1;
  killer_arm(&run.killer, &run.world, cell->moment, cell->is_fast);
  run.killer.n_due *= course != NULL;
  while (!run.is_over && world_now(&run.world) < 1000000 + LIMIT_MS)
    tick(&run);
  judge(&run, course);
  if (own != NULL)
    *own = run.course;
  if (run.world.is_down)
    world_start(&run.world);
  script_close(&run.world.script);
  drop_all(&run);
  remove_below(run.dir);
  rmdir(run.dir);
}

/* ---- The table ---- */

static int is_possible(const cell_t *cell) {
  /* Before there is a session, nothing can be lost. */
  if (cell->moment < AFTER_SESSION && cell->state != STATE_NONE)
    return 0;
  /* A number that is run again is a step too many, which nobody sees. */
  if (cell->moment == AFTER_STEP && cell->state == STATE_FULL &&
      cell->is_fast && cell->numbers == NUMBERS_LENIENT)
    return 0;
  /* The second kill comes with the new session, or with the request that
   * restores weights. A server with all its state needs no session, and no
   * weights unless a restart is suspected. */
  if (cell->moment >= IN_RECOVERY && !cell->recovers)
    return 0;
  if (cell->moment == IN_RECOVERY && cell->state != STATE_NONE)
    return 0;
  if (cell->moment == IN_RESTORE && cell->state == STATE_FULL && cell->is_fast)
    return 0;
  /* An older state is known by the refused connections alone, unless numbers
   * tell. */
  if (cell->state == STATE_OLDER && cell->is_fast &&
      cell->numbers != NUMBERS_STRICT)
    return 0;
  /* Without recovery there are no such reports. */
  return cell->recovers || !cell->listens;
}

/* Every so-many-th cell is run, as in test_loss_matrix.c. */
static size_t stride(void) {
  const char *wish = getenv("TNK_TEST_LOSSES");
  const char *version = getenv("TNK_TEST_HTTP");

  if (wish != NULL && atoi(wish) > 0)
    return (size_t)atoi(wish);
  return version != NULL && strcmp(version, "2") == 0 ? 7 : 1;
}

static void run_row(moment_t moment) {
  const cell_t plain = {.moment = N_MOMENTS};
  course_t course;
  size_t n = 0;
  size_t states[N_STATES] = {0}, recovers[2] = {0}, numbers[3] = {0};
  size_t n_possible = 0;

  run_cell(&plain, NULL, &course);
  for (int i = 0; i < N_STATES * 2 * 2 * 3 * 2; i++) {
    cell_t cell = {.moment = moment};
    int k = i;

    cell.state = (state_t)(k % N_STATES), k /= N_STATES;
    cell.recovers = k % 2, k /= 2;
    cell.listens = k % 2, k /= 2;
    cell.numbers = (numbers_t)(k % 3), k /= 3;
    cell.is_fast = k;
    if (!is_possible(&cell) || n_possible++ % stride() != 0)
      continue;
    run_cell(&cell, &course, NULL);
    states[cell.state]++;
    recovers[cell.recovers]++;
    numbers[cell.numbers]++;
    n++;
  }
  printf(
      "# %zu of %zu cells; state: full %zu, none %zu, older %zu, others %zu; "
      "recovery %zu, none %zu; numbers: buffered %zu, lenient %zu, strict "
      "%zu\n",
      n, n_possible, states[STATE_FULL], states[STATE_NONE],
      states[STATE_OLDER], states[STATE_OTHERS], recovers[1], recovers[0],
      numbers[NUMBERS_BUFFERED], numbers[NUMBERS_LENIENT],
      numbers[NUMBERS_STRICT]);
}

#define ROW(name, moment)                                                      \
  TEST_LIMIT(Q6_the_server_of_a_run_is_killed_##name, 120) {                   \
    run_row(moment);                                                           \
  }

ROW(before_the_configuration, BEFORE_CONFIG)
ROW(after_the_configuration, AFTER_CONFIG)
ROW(before_the_session, BEFORE_SESSION)
ROW(after_the_session, AFTER_SESSION)
ROW(before_the_first_heartbeat, BEFORE_HEARTBEAT)
ROW(between_heartbeats, BETWEEN_HEARTBEATS)
ROW(before_a_step, BEFORE_STEP)
ROW(after_a_step, AFTER_STEP)
ROW(before_a_save, BEFORE_SAVE)
ROW(after_a_save, AFTER_SAVE)
ROW(when_the_run_is_resumed, IN_RESUME)
ROW(in_a_recovery, IN_RECOVERY)
ROW(in_a_restore, IN_RESTORE)
ROW(twice, TWICE)

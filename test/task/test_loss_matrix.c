/* SPDX-License-Identifier: MIT */
#include "task/moments.h"

/*
 * A server is killed and started again at every moment of a service's life. The
 * program trains and samples as programs do: after a failure it calls again at
 * once, unless the client says when it can be used again. In every cell the
 * loss is reported with the first answer that shows it, nothing fails with
 * TNK_ENOTFOUND, refusals are slowed down, no optimizer step runs on weights
 * that the program does not expect, and with recovery all goes on.
 */

enum {
  MAX_REFUSALS = 12,
  TRAINS = 1,
  SAMPLES = 2,
  CALM_MS = 20000,
  PAUSE_MS = 500, /* between the calls of a program that is calm */
  EVE_MS = 12000, /* the end of the calm before the first kill */
  /* The first delay of refusals that follow others within a minute: a second
   * loss is reported so much later, unless the session shows it. */
  DELAY_MS = 500
};

typedef struct {
  moment_t moment;
  state_t state;
  int recovers;
  int is_busy;
  int clients; /* TRAINS, SAMPLES or both */
  numbers_t numbers;
  int is_fast; /* it is there again before anybody connects */
} cell_t;

typedef struct {
  world_t world;
  const cell_t *cell;
  killer_t killer;
  int is_saved;
  int is_lost; /* the training has ended, and nothing mends it */
  tnk_promise_t *making[2];
  tnk_promise_t *pass;
  tnk_promise_t *step;
  tnk_promise_t *save;
  tnk_promise_t *ready;
  tnk_promise_t *sample;
  int n_good_steps; /* since the last kill */
  int n_good_samples;
  int n_failed;
  int n_not_found;
  int n_session_lost; /* reports since the last kill */
  int wants_step;     /* of an idle program */
  int wants_sample;
  int is_failing;   /* the call that ended last has failed */
  uint64_t calm_ms; /* when the last kill is that long ago */
} run_t;

/* Before each tick. */
static void watch(run_t *run) {
  const int works = run->n_good_steps > 0 || run->n_good_samples > 0;

  if (!killer_watch(&run->killer, works))
    return;
  run->n_good_steps = run->n_good_samples = run->n_session_lost = 0;
  if (works && run->killer.moment == TWICE && run->world.n_kills == 2)
    run->wants_step = run->wants_sample = 1;
}

static void die(run_t *run) {
  if (run->world.is_dying && killer_strikes(&run->killer))
    run->n_good_steps = run->n_good_samples = run->n_session_lost = 0;
}

/* ---- The program ---- */

static void on_recovered(const tnk_recovery_event_t *event, void *user) {
  run_t *run = user;

  if (event->state == TNK_RECOVERY_COMPLETED && event->training != NULL)
    run->world.expected = (long)event->n_steps;
  if (event->state == TNK_RECOVERY_DETECTED && run->world.reported_ms == 0)
    run->world.reported_ms = world_now(&run->world);
}

static void on_state(const char *client, tnk_queue_state_t state,
                     const char *reason, void *user) {
  run_t *run = user;

  (void)client;
  (void)reason;
  run->n_session_lost += state == TNK_QUEUE_SESSION_LOST;
  if ((state == TNK_QUEUE_SESSION_LOST || state == TNK_QUEUE_MEMORY_LOST) &&
      run->world.reported_ms == 0)
    run->world.reported_ms = world_now(&run->world);
}

/* 1: it has settled, with *status, and is forgotten. */
static int over(run_t *run, tnk_promise_t **promise, int *status) {
  if (*promise == NULL || tnk_promise_state(*promise) == TNK_PENDING)
    return 0;
  *status = tnk_promise_status(*promise);
  run->n_not_found += *status == TNK_ENOTFOUND || *status == TNK_EEXPIRED;
  run->is_failing = *status != TNK_OK;
  run->n_failed += *status != TNK_OK;
  return 1;
}

static void drop(tnk_promise_t **promise) {
  tnk_promise_unref(*promise);
  *promise = NULL;
}

/* A client that is being made has nobody to tell but who waits for it. */
static void made(run_t *run, int status) {
  if (status == TNK_ESESSION && run->world.reported_ms == 0)
    run->world.reported_ms = world_now(&run->world);
}

static void make(run_t *run) {
  script_t *script = &run->world.script;
  tnk_lora_options_t lora = TNK_LORA_OPTIONS_INIT;
  tnk_sampling_options_t sampling = TNK_SAMPLING_OPTIONS_INIT;
  int status;

  lora.base_model = sampling.base_model = "base";
  if (over(run, &run->making[0], &status)) {
    made(run, status);
    script->training = tnk_promise_training(run->making[0]);
    drop(&run->making[0]);
  }
  if (over(run, &run->making[1], &status)) {
    made(run, status);
    script->sampling = tnk_promise_sampling(run->making[1]);
    drop(&run->making[1]);
  }
  if ((run->cell->clients & TRAINS) && script->training == NULL &&
      run->making[0] == NULL)
    run->making[0] = tnk_service_create_lora(script->service, &lora);
  if ((run->cell->clients & SAMPLES) && script->sampling == NULL &&
      run->making[1] == NULL)
    run->making[1] = tnk_service_create_sampling(script->service, &sampling);
}

/* The program goes back to where the client says that it is. */
static void after_failure(run_t *run, int status) {
  if (status == TNK_ESESSION && run->cell->recovers && run->ready == NULL)
    run->ready = tnk_training_ready(run->world.script.training);
}

static void settle_training(run_t *run) {
  int a = TNK_OK, b = TNK_OK;

  if (over(run, &run->ready, &a)) {
    if (a == TNK_OK)
      run->world.expected = (long)tnk_promise_saved(run->ready)->n_steps;
    else
      run->is_lost = 1;
    drop(&run->ready);
  }
  if (over(run, &run->save, &a)) {
    run->is_saved |= a == TNK_OK;
    if (a != TNK_OK)
      after_failure(run, a);
    drop(&run->save);
  }
  if (!over(run, &run->pass, &a) || !over(run, &run->step, &b))
    return;
  if (a == TNK_OK && b == TNK_OK) {
    run->world.expected++;
    run->n_good_steps++;
    run->wants_step = 0;
  } else {
    after_failure(run, a != TNK_OK ? a : b);
  }
  drop(&run->pass);
  drop(&run->step);
}

static void train(run_t *run) {
  script_t *script = &run->world.script;

  settle_training(run);
  if (run->ready != NULL || run->save != NULL || run->pass != NULL ||
      run->is_lost || !(run->cell->is_busy || run->wants_step))
    return;
  if (run->world.expected == 2 && !run->is_saved) {
    run->save = tnk_training_save_state(script->training, "two", NULL);
    return;
  }
  run->pass = script_pass(script, 1);
  run->step = script_step(script);
}

static void sample(run_t *run) {
  int status;

  if (over(run, &run->sample, &status)) {
    run->n_good_samples += status == TNK_OK;
    run->wants_sample &= status != TNK_OK;
    drop(&run->sample);
  }
  if (run->sample == NULL && (run->cell->is_busy || run->wants_sample))
    run->sample = script_sample(&run->world.script);
}

/* Whether the next kill is far away, and so is the last one. */
static int is_calm(run_t *run) {
  const uint64_t now = world_now(&run->world);

  if (run->killer.n_due > 0 && run->world.n_kills == 0)
    return run->cell->moment >= BETWEEN_HEARTBEATS && now < 1000000 + EVE_MS;
  if (run->killer.n_due > 0 || run->world.is_down)
    run->calm_ms = now + CALM_MS;
  return now >= run->calm_ms;
}

/* A program that is busy without a pause needs most of the time of this table.
 * So it calls once a tick where it works, and has pauses while it is calm. */
static int n_rounds(run_t *run) {
  const int is_pause = world_now(&run->world) % PAUSE_MS != 0;

  if (is_calm(run))
    return !run->cell->is_busy || run->is_failing || !is_pause;
  return !run->cell->is_busy || run->is_failing ? 4 : 1;
}

/* One step each tick where it works, and a new call at once where it fails. */
static void tick(run_t *run) {
  script_t *script = &run->world.script;

  watch(run);
  for (int i = n_rounds(run); i > 0; i--) {
    make(run);
    if (script->training != NULL)
      train(run);
    if (script->sampling != NULL)
      sample(run);
    for (int k = 0; k < 3; k++) {
      mock_turns(script->mock, 1);
      die(run);
    }
  }
  script_advance(script, TICK_MS);
}

static void live(run_t *run, uint64_t ms) {
  const uint64_t end = world_now(&run->world) + ms;

  while (world_now(&run->world) < end)
    tick(run);
}

/* ---- A cell ---- */

static void describe(const cell_t *cell, char *to, size_t size) {
  snprintf(to, size,
           "moment %d, state %d, recovery %d, busy %d, clients %d, numbers %d, "
           "fast %d",
           (int)cell->moment, (int)cell->state, cell->recovers, cell->is_busy,
           cell->clients, (int)cell->numbers, cell->is_fast);
}

#define HOLDS(condition)                                                       \
  do {                                                                         \
    if (!(condition))                                                          \
      test_fail(__FILE__, __LINE__, "%s: %s", #condition, text);               \
  } while (0)

/* The server dies before there is a session, so nothing can be lost: the start
 * is repeated, no call fails, and no loss is reported, with recovery or
 * without. */
static void judge_lossless(const run_t *run, const char *text) {
  HOLDS(run->n_failed == 0);
  HOLDS(run->world.revealed_ms == 0);
  HOLDS(run->world.reported_ms == 0 && run->n_session_lost == 0);
  if (run->cell->clients & SAMPLES)
    HOLDS(run->n_good_samples > 0);
  if (run->cell->clients & TRAINS)
    HOLDS(run->n_good_steps > 0);
}

static void judge(run_t *run) {
  const cell_t *cell = run->cell;
  const world_t *world = &run->world;
  const int is_delayed = world->n_kills > 1 && cell->state == STATE_OTHERS;
  char text[256];

  describe(cell, text, sizeof(text));
  HOLDS(run->killer.n_due == 0);
  HOLDS(run->n_not_found == 0);
  HOLDS(run->n_session_lost <= 1);
  HOLDS(world->n_wrong == 0);
  for (int i = 0; i < 400; i++)
    HOLDS(world->n_refusals[i] <= MAX_REFUSALS);
  if (world->revealed_ms != 0)
    HOLDS(world->reported_ms != 0 &&
          world->reported_ms <=
              world->revealed_ms + 2 * TICK_MS + (is_delayed ? DELAY_MS : 0));
  if (cell->moment == BEFORE_CONFIG || cell->moment == BEFORE_SESSION)
    judge_lossless(run, text);
  if (!cell->recovers && world->revealed_ms != 0)
    return;
  if (cell->clients & SAMPLES)
    HOLDS(run->n_good_samples > 0);
  if (cell->clients & TRAINS && (cell->recovers || cell->state == STATE_FULL) &&
      !(cell->state == STATE_FULL && !cell->recovers && !cell->is_fast))
    HOLDS(run->n_good_steps > 0);
}

static void open_run(run_t *run, const cell_t *cell) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  memset(run, 0, sizeof(*run));
  run->cell = cell;
  options.recovery = cell->recovers ? TNK_YES : TNK_NO;
  /* Half of the programs know by tnk_training_ready() alone. */
  options.on_recovery = cell->is_busy ? NULL : on_recovered;
  options.recovery_user = run;
  options.recovery_poll_ms = UINT64_MAX;
  options.on_queue_state = on_state;
  options.queue_state_user = run;
  script_open_with(&run->world.script, options);
  world_serve(&run->world);
  run->world.numbers = cell->numbers;
  run->world.state = cell->state;
  killer_arm(&run->killer, &run->world, cell->moment, cell->is_fast);
}

static void close_run(run_t *run) {
  tnk_promise_t **all[] = {&run->making[0], &run->making[1], &run->pass,
                           &run->step,      &run->save,      &run->ready,
                           &run->sample};

  if (run->world.is_down)
    world_start(&run->world);
  script_close(&run->world.script);
  for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
    if (*all[i] != NULL)
      drop(all[i]);
}

/* An idle program makes three steps and a sample, and one of each in the end.
 */
static void run_cell(const cell_t *cell) {
  run_t run;

  open_run(&run, cell);
  for (int i = 0; i < 3; i++) {
    run.wants_step = run.wants_sample = 1;
    live(&run, 1000);
  }
  live(&run, 57000);
  run.wants_step = run.wants_sample = 1;
  live(&run, 40000);
  judge(&run);
  close_run(&run);
}

/* ---- The table ---- */

static int is_possible(const cell_t *cell) {
  /* Before there is a session, nothing can be lost. */
  if (cell->moment < AFTER_SESSION && cell->state != STATE_NONE)
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
  if (cell->moment == IN_RESTORE && !(cell->clients & TRAINS))
    return 0;
  /* An older state is known by the refused connections alone, unless numbers
   * tell. */
  if (cell->state == STATE_OLDER && cell->is_fast &&
      cell->numbers != NUMBERS_STRICT)
    return 0;
  /* Numbers are of trainings. */
  return (cell->clients & TRAINS) || cell->numbers == NUMBERS_BUFFERED;
}

/* Every so-many-th cell is run: each of HTTP/1.1, and of HTTP/2, which has the
 * same code above the connection, a seventh. 7 divides the length of no column,
 * so some cells of each column remain. Right after the session was created,
 * what the server remembers makes little difference, and a third of these cells
 * is enough. TNK_TEST_LOSSES sets another number. */
static size_t stride(const cell_t *cell) {
  const char *wish = getenv("TNK_TEST_LOSSES");
  const char *version = getenv("TNK_TEST_HTTP");

  if (wish != NULL && atoi(wish) > 0)
    return (size_t)atoi(wish);
  if (version != NULL && strcmp(version, "2") == 0)
    return 7;
  return cell->moment == AFTER_SESSION && cell->state != STATE_NONE ? 3 : 1;
}

/* How many cells of a row have each value. */
typedef struct {
  size_t states[N_STATES], clients[4], numbers[3];
  size_t recovers[2], is_busy[2], is_fast[2];
} counts_t;

static void count(counts_t *counts, const cell_t *cell) {
  counts->states[cell->state]++;
  counts->clients[cell->clients]++;
  counts->numbers[cell->numbers]++;
  counts->recovers[cell->recovers]++;
  counts->is_busy[cell->is_busy]++;
  counts->is_fast[cell->is_fast]++;
}

static void print_counts(const counts_t *counts, size_t n, size_t n_possible) {
  const char *version = getenv("TNK_TEST_HTTP");

  printf("# %zu of %zu cells over HTTP/%s\n", n, n_possible,
         version != NULL ? version : "1.1");
  printf("#   state: full %zu, none %zu, older %zu, others %zu\n",
         counts->states[STATE_FULL], counts->states[STATE_NONE],
         counts->states[STATE_OLDER], counts->states[STATE_OTHERS]);
  printf("#   clients: training %zu, sampling %zu, both %zu; busy %zu, idle "
         "%zu\n",
         counts->clients[TRAINS], counts->clients[SAMPLES],
         counts->clients[TRAINS | SAMPLES], counts->is_busy[1],
         counts->is_busy[0]);
  printf("#   numbers: buffered %zu, lenient %zu, strict %zu; recovery %zu, "
         "none %zu; back at once %zu, later %zu\n",
         counts->numbers[NUMBERS_BUFFERED], counts->numbers[NUMBERS_LENIENT],
         counts->numbers[NUMBERS_STRICT], counts->recovers[1],
         counts->recovers[0], counts->is_fast[1], counts->is_fast[0]);
}

/* `clients`: those of the cells; 0 for all. */
static void run_row(moment_t moment, int clients) {
  size_t n = 0;
  size_t n_possible = 0;
  counts_t counts = {.states = {0}};

  for (int i = 0; i < N_STATES * 2 * 2 * 3 * 3 * 2; i++) {
    int k = i;
    cell_t cell = {.moment = moment};

    cell.state = (state_t)(k % N_STATES), k /= N_STATES;
    cell.recovers = k % 2, k /= 2;
    cell.is_busy = k % 2, k /= 2;
    cell.clients = 1 + k % 3, k /= 3;
    cell.numbers = (numbers_t)(k % 3), k /= 3;
    cell.is_fast = k;
    if ((clients != 0 && cell.clients != clients) || !is_possible(&cell) ||
        n_possible++ % stride(&cell) != 0)
      continue;
    run_cell(&cell);
    count(&counts, &cell);
    n++;
  }
  print_counts(&counts, n, n_possible);
}

#define ROW(name, moment, clients)                                             \
  TEST_LIMIT(Q6_the_server_is_killed_##name, 120) {                            \
    run_row(moment, clients);                                                  \
  }
/* The rows with more cells are a case for each kind of client, so that a slow
 * machine has time for them too. */
#define ROWS(name, moment)                                                     \
  ROW(name##_of_training, moment, TRAINS)                                      \
  ROW(name##_of_sampling, moment, SAMPLES)                                     \
  ROW(name##_of_both, moment, TRAINS | SAMPLES)

ROW(before_the_configuration, BEFORE_CONFIG, 0)
ROW(after_the_configuration, AFTER_CONFIG, 0)
ROW(before_the_session, BEFORE_SESSION, 0)
ROW(after_the_session, AFTER_SESSION, 0)
ROWS(before_the_first_heartbeat, BEFORE_HEARTBEAT)
ROWS(between_heartbeats, BETWEEN_HEARTBEATS)
ROW(in_a_recovery, IN_RECOVERY, 0)
ROWS(in_a_restore, IN_RESTORE)
ROWS(twice, TWICE)

/* SPDX-License-Identifier: MIT */
/*
 * Every operation of the public API against a peer that does its worst at every
 * point of a connection's life, over both versions of HTTP, with and without
 * TLS, directly and through proxies. Each cell checks that the promise settles
 * exactly once and in time (bounds.h), that nothing spins meanwhile, that the
 * service works again when the peer does, and that closing leaves nothing.
 */
#include <signal.h>
#include <sys/wait.h>

#include "silence/bounds.h"
#include "silence_functions.h"

/* What is missing cannot be: a proxy for http URLs gets requests over HTTP/1.1,
 * CONNECT is for TLS alone, and SOCKS proxies have no TLS. */
static const transport_t transports[] = {
    {"http1", 0, 0, WAY_DIRECT, 0},
    {"http1, through a proxy", 0, 0, WAY_FORWARD, 0},
    {"http1, SOCKS", 0, 0, WAY_SOCKS, 0},
    {"http1, TLS", 0, 1, WAY_DIRECT, 0},
    {"http1, TLS, CONNECT", 0, 1, WAY_CONNECT, 0},
    {"http1, TLS, SOCKS", 0, 1, WAY_SOCKS, 0},
    {"http1, through a TLS proxy", 0, 0, WAY_FORWARD, 1},
    {"http1, TLS, CONNECT over TLS", 0, 1, WAY_CONNECT, 1},
    {"http2", 1, 0, WAY_DIRECT, 0},
    {"http2, SOCKS", 1, 0, WAY_SOCKS, 0},
    {"http2, TLS", 1, 1, WAY_DIRECT, 0},
    {"http2, TLS, CONNECT", 1, 1, WAY_CONNECT, 0},
    {"http2, TLS, SOCKS", 1, 1, WAY_SOCKS, 0},
    {"http2, TLS, CONNECT over TLS", 1, 1, WAY_CONNECT, 1},
};

/* ---- What is impossible ---- */

/* The reason why a cell cannot be, or NULL. */
static const char *impossible(const operation_t *op,
                              const transport_t *transport, const fate_t *fate,
                              const course_t *course, size_t stage) {
  if (op->needs == NEEDS_HUB && transport->is_http2 && !transport->is_tls)
    return "a hub speaks HTTP/2 over TLS alone";
  if ((fate->of & OF_TLS) && !needs_trust(transport))
    return "there is no handshake without TLS";
  if ((fate->of & OF_TUNNEL) && transport->way != WAY_CONNECT &&
      transport->way != WAY_SOCKS)
    return "nobody makes a tunnel";
  if ((fate->of & OF_HTTP2) && !transport->is_http2)
    return "HTTP/1.1 has no frames";
  if ((fate->of & OF_HTTP1) && transport->is_http2)
    return "HTTP/2 has no lines";
  if ((fate->of & OF_POLLS) && course->first_poll == SIZE_MAX)
    return "the operation does not poll";
  if ((fate->of & OF_POLLS) && stage != course->first_poll)
    return "polls begin elsewhere";
  return NULL;
}

/* ---- The peer's side ---- */

static int is_own(const char *path) {
  return strstr(path, "/session_heartbeat") != NULL ||
         strstr(path, "/dynamic_config") != NULL ||
         strstr(path, "/finish") != NULL ||
         strstr(path, "/cancel_future") != NULL;
}

static void arm(world_t *world) {
  if (world->is_armed)
    return;
  world->is_armed = 1;
  world->next_tick_ms = world_now(world);
  if (world->fate->arm != NULL)
    world->fate->arm(world, world->fate);
}

static void strike(world_t *world, mock_request_t *request) {
  if (world->first_struck == SIZE_MAX) {
    world->first_struck = mock_n_requests(world->script.mock) - 1;
    while (mock_request(world->script.mock, world->first_struck) != request)
      world->first_struck--;
  }
  world->fate->act(world, request);
}

/* Every request comes here first. */
static void on_request(mock_request_t *request, void *user) {
  world_t *world = user;
  const fate_t *fate = world->fate;
  size_t n;

  if (!world->is_counting || is_own(request->path)) {
    if (fate != NULL && world->is_armed && fate->act != NULL)
      strike(world, request);
    else
      mock_pass(request);
    return;
  }
  n = world->n_seen++;
  if (n < MAX_SEEN)
    snprintf(world->seen[n], sizeof(world->seen[n]), "%s %s", request->method,
             request->path);
  if (fate != NULL && fate->act != NULL && n >= world->stage) {
    arm(world);
    strike(world, request);
    return;
  }
  if (fate != NULL && n == world->stage && !world->is_armed) {
    arm(world);
    if (request->is_gone)
      return;
  }
  mock_pass(request);
}

/* ---- Time ---- */

static int has_held(world_t *world) {
  mock_server_t *mock = world->script.mock;

  for (size_t i = world->first_struck; i < mock_n_requests(mock); i++) {
    const mock_request_t *request = mock_request(mock, i);
    if (!request->is_answered && !request->is_gone)
      return 1;
  }
  return 0;
}

static int ticks(world_t *world) {
  const fate_t *fate = world->fate;

  return fate != NULL && world->is_armed && fate->tick != NULL &&
         (fate->act == NULL || has_held(world));
}

/* Run until it is over or so much time has passed; returns *flag. */
static int run_for(world_t *world, const int *flag, uint64_t ms) {
  const uint64_t end = world_now(world) + ms;

  for (;;) {
    uint64_t to = end;

    world_rest(world);
    if (*flag > 0 || world_now(world) >= end)
      return *flag;
    if (ticks(world)) {
      if (world->next_tick_ms <= world_now(world)) {
        world->next_tick_ms = world_now(world) + world->fate->every_ms;
        world->fate->tick(world);
        continue;
      }
      to = world->next_tick_ms < to ? world->next_tick_ms : to;
    }
    world_jump(world, to);
  }
}

static void wait_ok(world_t *world, outcome_t *outcome, const char *what) {
  if (!run_for(world, &outcome->n_done, HEALED_MS))
    test_fail(__FILE__, __LINE__, "%s did not settle in %d ms", what,
              HEALED_MS);
  if (outcome->status != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s: %s", what, outcome->text);
}

/* ---- A world with what the operation needs ---- */

static void made(world_t *world, tnk_promise_t *promise) {
  outcome_t outcome;

  outcome_of(&outcome, promise);
  wait_ok(world, &outcome, "what the operation needs");
  if (tnk_promise_training(outcome.promise) != NULL)
    world->script.training = tnk_promise_training(outcome.promise);
  else
    world->script.sampling = tnk_promise_sampling(outcome.promise);
  outcome_drop(&outcome);
}

static uv_timer_t keep; /* so that the loop always waits for something */

static void never(uv_timer_t *timer) {
  (void)timer;
}

static void make_needed(world_t *world) {
  const operation_t *op = world->op;

  if (op->needs == NEEDS_TRAINING || op->needs == NEEDS_LEDGER)
    made(world, start_lora(&world->script));
  if (op->needs == NEEDS_SAMPLING)
    made(world, start_sampler(&world->script));
  if (op->needs == NEEDS_LEDGER) {
    outcome_of(&world->kept, open_ledger(world));
    wait_ok(world, &world->kept, "the ledger");
  }
  if (op->run == NULL && op->start == NULL && !op->is_background) {
    outcome_of(&world->kept, list_checkpoints(&world->script));
    wait_ok(world, &world->kept, "the first page");
  }
}

static void open_world(world_t *world, const operation_t *op,
                       const transport_t *transport, const fate_t *fate) {
  char proxy[64];

  world_begin(world, transport, fate != NULL && wants_front(fate));
  world->op = op;
  CHECK_INT(uv_timer_init(&world->script.uv, &keep), 0);
  CHECK_INT(uv_timer_start(&keep, never, 3600000, 0), 0);
  way_proxy(world, proxy);
  mock_on(world->script.mock, "POST", "/api/v1/retrieve_future", reply_result,
          world);
  if (op->needs == NEEDS_HUB)
    open_hub(world, proxy);
  else
    open_service(world, op->needs == NEEDS_COMMAND ? "echo tml-canary-1" : NULL,
                 proxy);
  if (op->prepare != NULL)
    op->prepare(world);
  mock_on(world->script.mock, NULL, NULL, on_request, world);
  make_needed(world);
}

static void start(world_t *world) {
  const operation_t *op = world->op;

  world->n_events = n_events(world);
  world->n_timers = 0;
  world->is_counting = 1;
  if (world->fate != NULL && world->stage == 0 && world->fate->act == NULL)
    arm(world);
  if (op->is_background) {
    if (world->fate != NULL)
      arm(world);
    return;
  }
  world->promise =
      op->run != NULL ? op->run(&world->script)
      : op->start != NULL
          ? op->start(world)
          : tnk_rest_next_page(world->script.service,
                               tnk_promise_page(world->kept.promise));
  outcome_of(&world->outcome, world->promise);
  if (op->act != NULL)
    op->act(world);
}

/* ---- The end ---- */

static void end_world(world_t *world) {
  script_t *script = &world->script;
  tnk_stats_t stats = TNK_STATS_INIT;
  const uint64_t began_ms = world_now(world);
  tnk__context_t *context = world->context;

  outcome_drop(&world->outcome);
  outcome_drop(&world->kept);
  if (world->hub != NULL) {
    tnk_hub_close(world->hub, on_hub_closed, world);
  } else {
    CHECK_INT(tnk_service_stats(&stats, script->service), TNK_OK);
    CHECK_INT(stats.n_double_settles, 0);
    tnk_service_close(script->service, script_closed, script);
  }
  for (int turns = 0; !script->is_closed; turns++) {
    uint64_t now;
    uv_run(&script->uv, UV_RUN_NOWAIT);
    if (script->is_closed || is_waiting_for_others(world) || turns % 8 != 7 ||
        !is_quiet(world))
      continue;
    now = world_now(world);
    if (now - began_ms > CLOSE_MS)
      test_fail(__FILE__, __LINE__, "it is not closed after %d ms", CLOSE_MS);
    CHECK(next_due(world) != UINT64_MAX);
    tnk__context_advance(context, next_due(world) - now);
  }
  heal(world);
  way_close(world);
  uv_close((uv_handle_t *)&keep, NULL);
  mock_close(script->mock);
  uv_run(&script->uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&script->uv), 0);
  heard_close(&script->heard);
  free(script->sent);
  if (world->dir[0] != '\0') {
    remove_below(world->dir);
    rmdir(world->dir);
  }
}

static int n_descriptors(void) {
  DIR *dir = opendir("/proc/self/fd");
  int n = 0;

  while (dir != NULL && readdir(dir) != NULL)
    n++;
  if (dir != NULL)
    closedir(dir);
  return n;
}

/* ---- A cell ---- */

static void check_spin(world_t *world, uint64_t ms) {
  const size_t most_timers = BURST + (size_t)(ms * TIMERS_PER_S / 1000);
  const size_t most_events = BURST + (size_t)(ms * EVENTS_PER_S / 1000);
  const size_t n = n_events(world) - world->n_events;

  if (world->n_timers > most_timers || n > most_events)
    test_fail(__FILE__, __LINE__,
              "it spins: %zu timers, %zu requests and connections in %llu ms",
              world->n_timers, n, (unsigned long long)ms);
}

/* What the client has tried. The peer does not see an attempt that ends while
 * it waits for a stream on a kept connection, so retries count as well. */
static size_t n_attempts(const world_t *world) {
  const tnk__context_t *context = world->hub != NULL
                                      ? &world->hub->root.context
                                      : &world->script.service->root.context;

  return n_events(world) + (size_t)context->counters.n_retries;
}

/* An operation that may wait without a limit has to keep trying, to report, and
 * to succeed when the peer works again. */
static void check_alive(world_t *world) {
  const uint64_t began_ms = world_now(world);
  size_t n;
  int no = 0;

  run_for(world, &no, 2 * ALIVE_MS);
  n = n_attempts(world);
  run_for(world, &no, ALIVE_MS);
  check_spin(world, world_now(world) - began_ms);
  if (world->fate->is_slow || world->n_states[TNK_QUEUE_SESSION_LOST] > 0)
    return; /* bytes come on one request; or nothing is left to try for */
  if (n_attempts(world) == n && world->outcome.n_done == 0)
    test_fail(__FILE__, __LINE__, "no attempt was made in %d ms", ALIVE_MS);
}

static void check_works(world_t *world) {
  outcome_t outcome;

  if (world->hub != NULL)
    return;
  outcome_of(&outcome, tnk_service_health(world->script.service));
  if (!run_for(world, &outcome.n_done, HEALED_MS))
    test_fail(__FILE__, __LINE__, "it does not work again");
  /* A server that lacks it was not asked again. */
  if (outcome.status != TNK_OK && outcome.status != TNK_EUNSUPPORTED)
    test_fail(__FILE__, __LINE__, "it does not work again: %s", outcome.text);
  outcome_drop(&outcome);
}

/* The request that the fate has struck, or is about to. */
static const char *struck_path(const course_t *course, size_t stage) {
  return course->paths[stage < course->n ? stage : course->n - 1];
}

/* Training goes over HTTP/1.1 where it can, so that what befalls HTTP/2 may
 * leave its submission alone and strike the polls. */
static int was_accepted(const world_t *world, uint64_t bound) {
  char text[600];

  tnk_promise_explain(world->promise, text, sizeof(text));
  if (strstr(text, "was accepted") == NULL)
    test_fail(__FILE__, __LINE__, "no end in %llu ms: %s",
              (unsigned long long)bound, text);
  return 1;
}

/* What only adds to a result, and what is done when a status says so, however
 * its body ends. */
static int may_succeed(const operation_t *op, const char *path) {
  return is_optional(path) || op->act != NULL || op->run == publish ||
         op->run == unpublish || op->run == delete_it;
}

/* What is not sent again when its connection has broken. */
static int is_made_once(const char *path) {
  return strstr(path, "/commit/weights-final") != NULL;
}

static void check_status(const world_t *world, const course_t *course,
                         size_t stage) {
  const operation_t *op = world->op;
  const char *path = course->paths[stage];

  if (is_poll_path(path))
    return;
  if (world->fate->verdict == MUST_SUCCEED && world->outcome.status != TNK_OK &&
      op->act == NULL && !is_made_once(path))
    test_fail(__FILE__, __LINE__, "it failed: %s", world->outcome.text);
  if (world->fate->verdict == MUST_FAIL && world->outcome.status == TNK_OK &&
      !may_succeed(op, path))
    test_fail(__FILE__, __LINE__, "it succeeded");
}

/* Whatever keeps an operation waiting for long is reported: as a state of the
 * client, or in the log. Bytes that arrive slowly are progress, and nobody
 * waits for requests of the service's own. */
static void check_told(const world_t *world, uint64_t waited_ms) {
  const script_t *script = &world->script;
  int n = script->n_warnings + script->n_errors;

  for (size_t i = 0; i < sizeof(world->n_states) / sizeof(world->n_states[0]);
       i++)
    n += i == TNK_QUEUE_ACTIVE ? 0 : world->n_states[i];
  if (waited_ms >= TOLD_MS && n == 0 && !world->fate->is_slow &&
      !world->op->is_background)
    test_fail(__FILE__, __LINE__, "nothing was reported in %llu ms",
              (unsigned long long)waited_ms);
}

static void run_cell(const operation_t *op, const transport_t *transport,
                     const fate_t *fate, const course_t *course, size_t stage,
                     int heals) {
  static world_t world;
  const size_t n_blocks = test_alloc_live();
  const int n_files = n_descriptors();
  uint64_t bound;
  uint64_t began_ms;

  open_world(&world, op, transport, fate);
  world.fate = fate;
  world.stage = stage;
  start(&world);
  began_ms = world_now(&world);
  bound = op->is_background ? FOREVER : bound_ms(op, fate, course, stage);
  if (run_for(&world, &world.outcome.n_done,
              bound != FOREVER ? bound : ALIVE_MS)) {
    check_spin(&world, world_now(&world) - began_ms);
    check_status(&world, course, stage);
  } else if (bound == FOREVER || was_accepted(&world, bound)) {
    check_alive(&world);
    heals = 1;
  }
  check_told(&world, world_now(&world) - began_ms);
  if (heals) {
    heal(&world);
    if (world.promise != NULL &&
        !run_for(&world, &world.outcome.n_done, HEALED_MS))
      test_fail(__FILE__, __LINE__, "no end after the peer is well again");
    check_works(&world);
  }
  end_world(&world);
  CHECK_INT(test_alloc_live(), n_blocks);
  CHECK_INT(n_descriptors(), n_files);
}

/* The course of the operation when nothing befalls it. */
static void find_course(const operation_t *op, const transport_t *transport,
                        course_t *course) {
  static world_t world;

  memset(course, 0, sizeof(*course));
  course->first_poll = SIZE_MAX;
  if (op->is_background) {
    course->n = 1;
    return;
  }
  open_world(&world, op, transport, NULL);
  start(&world);
  if (!run_for(&world, &world.outcome.n_done, HEALED_MS) ||
      (world.outcome.status != TNK_OK && op->act == NULL))
    test_fail(__FILE__, __LINE__, "%s: %s", op->name, world.outcome.text);
  if (getenv("TNK_TEST_SILENCE_COURSE") != NULL)
    for (size_t i = 0; i < world.n_seen && i < MAX_SEEN; i++)
      printf("# %s: %s\n", op->name, world.seen[i]);
  if (getenv("TNK_TEST_SILENCE_COURSE") != NULL)
    printf("# front accepted %d, mock %zu\n", world.front.server.n_accepted,
           mock_n_connections(world.script.mock));
  if (world.n_seen > MAX_STAGES)
    test_fail(__FILE__, __LINE__, "%s makes %zu requests", op->name,
              world.n_seen);
  course->n = world.n_seen;
  for (size_t i = 0; i < course->n; i++) {
    snprintf(course->paths[i], sizeof(course->paths[i]), "%s", world.seen[i]);
    if (course->first_poll == SIZE_MAX && is_poll_path(world.seen[i]))
      course->first_poll = i;
  }
  end_world(&world);
}

/* ---- The matrix ---- */

typedef struct {
  size_t n_cells;
  size_t n_failed;
  size_t n_impossible;
  size_t by_operation[N_OPERATIONS];
  size_t by_fate[N_FATES];
} counts_t;

/* Every so-many-th cell; 1: all. Each operation and each fate has its turn with
 * any number that does not divide 7. */
static size_t stride(void) {
  const char *text = getenv("TNK_TEST_SILENCE");

  if (text != NULL && strcmp(text, "all") == 0)
    return 1;
  return text != NULL && atoi(text) > 0 ? (size_t)atoi(text) : 29;
}

static int is_chosen(size_t i_op, size_t i_fate, size_t i_transport,
                     size_t stage) {
  return (i_op + 7 * i_fate + 3 * i_transport + 5 * stage) % stride() == 0;
}

/* A cell in a process of its own, so that those behind it run even if it
 * fails. Returns 1 when it has failed. */
static int run_apart(const char *name, const operation_t *op,
                     const transport_t *transport, const fate_t *fate,
                     const course_t *course, size_t stage, int heals) {
  int status = 0;
  pid_t pid;

  fflush(stdout);
  pid = fork();
  CHECK(pid >= 0);
  if (pid == 0) {
    alarm(20);
    run_cell(op, transport, fate, course, stage, heals);
    fflush(stdout);
    _exit(0);
  }
  CHECK_INT(waitpid(pid, &status, 0), pid);
  if (status != 0)
    printf("# FAILED (%d): %s\n", status, name);
  return status != 0;
}

static void run_stage(size_t i_op, size_t i_transport, size_t stage,
                      const course_t *course, counts_t *counts) {
  const char *only = getenv("TNK_TEST_SILENCE_ONLY");
  const int goes_on = getenv("TNK_TEST_SILENCE_GO_ON") != NULL;
  const operation_t *op = &operations[i_op];
  const transport_t *transport = &transports[i_transport];
  char name[300];

  for (size_t i = 0; i < N_FATES; i++) {
    const fate_t *fate = &fates[i];
    const int heals = (i_op + i + stage) % 2 == 0;

    if (impossible(op, transport, fate, course, stage) != NULL) {
      counts->n_impossible++;
      continue;
    }
    snprintf(name, sizeof(name), "%s: %s, request %zu (%s): %s, %s",
             transport->name, op->name, stage, struck_path(course, stage),
             fate->point, fate->behavior);
    if (only != NULL ? strstr(name, only) == NULL
                     : !is_chosen(i_op, i, i_transport, stage))
      continue;
    test_context(name);
    counts->n_cells++;
    counts->by_operation[i_op]++;
    counts->by_fate[i]++;
    if (goes_on)
      counts->n_failed +=
          (size_t)run_apart(name, op, transport, fate, course, stage, heals);
    else
      run_cell(op, transport, fate, course, stage, heals);
  }
}

static void print_counts(const transport_t *transport, const counts_t *counts) {
  const char *point = "";

  printf("# %s: %zu cells, %zu impossible\n", transport->name, counts->n_cells,
         counts->n_impossible);
  printf("#   by operation:");
  for (size_t i = 0; i < N_OPERATIONS; i++)
    printf(" %s %zu;", operations[i].name, counts->by_operation[i]);
  printf("\n#   by point and behavior:");
  for (size_t i = 0; i < N_FATES; i++) {
    if (strcmp(point, fates[i].point) != 0)
      printf("\n#     %s:", fates[i].point);
    point = fates[i].point;
    printf(" %s %zu;", fates[i].behavior, counts->by_fate[i]);
  }
  printf("\n");
}

static void run_matrix(size_t i_transport) {
  static counts_t counts;

  identities();
  memset(&counts, 0, sizeof(counts));
  for (size_t i = 0; i < N_OPERATIONS; i++) {
    course_t course;

    if (operations[i].needs == NEEDS_HUB && transports[i_transport].is_http2 &&
        !transports[i_transport].is_tls)
      continue; /* as impossible() says */
    test_context(operations[i].name);
    find_course(&operations[i], &transports[i_transport], &course);
    for (size_t stage = 0; stage < course.n; stage++)
      run_stage(i, i_transport, stage, &course, &counts);
  }
  print_counts(&transports[i_transport], &counts);
  identities_free();
  CHECK_INT(counts.n_failed, 0);
}

TEST_LIMIT(http1, 3600) {
  run_matrix(0);
}
TEST_LIMIT(http1_through_a_proxy, 3600) {
  run_matrix(1);
}
TEST_LIMIT(http1_through_SOCKS, 3600) {
  run_matrix(2);
}
TEST_LIMIT(http1_with_TLS, 3600) {
  run_matrix(3);
}
TEST_LIMIT(http1_with_TLS_through_a_tunnel, 3600) {
  run_matrix(4);
}
TEST_LIMIT(http1_with_TLS_through_SOCKS, 3600) {
  run_matrix(5);
}
TEST_LIMIT(http1_through_a_proxy_over_TLS, 3600) {
  run_matrix(6);
}
TEST_LIMIT(http1_with_TLS_through_a_tunnel_over_TLS, 3600) {
  run_matrix(7);
}
#if TNK__HAS_HTTP2
TEST_LIMIT(http2, 3600) {
  run_matrix(8);
}
TEST_LIMIT(http2_through_SOCKS, 3600) {
  run_matrix(9);
}
TEST_LIMIT(http2_with_TLS, 3600) {
  run_matrix(10);
}
TEST_LIMIT(http2_with_TLS_through_a_tunnel, 3600) {
  run_matrix(11);
}
TEST_LIMIT(http2_with_TLS_through_SOCKS, 3600) {
  run_matrix(12);
}
TEST_LIMIT(http2_with_TLS_through_a_tunnel_over_TLS, 3600) {
  run_matrix(13);
}
#endif

/* ---- Completeness ---- */

/* These make no request of their own. What tnk_training_ready() waits for is
 * tried by the table of losses, test/task/test_loss_matrix.c. Only the disk can
 * keep tnk_numbers_sync() waiting. */
static int is_a_combinator(const char *name) {
  static const char *const names[] = {"tnk_all",
                                      "tnk_all_settled",
                                      "tnk_quorum",
                                      "tnk_with_timeout",
                                      "tnk_promise_ref",
                                      "tnk_promise_child",
                                      "tnk_training_ready",
                                      "tnk_numbers_sync"};

  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (strcmp(name, names[i]) == 0)
      return 1;
  return 0;
}

TEST(every_operation_of_the_headers_has_a_row) {
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
    size_t k = 0;

    while (k < N_OPERATIONS && strcmp(operations[k].name, functions[i]) != 0)
      k++;
    if (k == N_OPERATIONS && !is_a_combinator(functions[i]))
      test_fail(__FILE__, __LINE__, "%s has no row", functions[i]);
  }
}

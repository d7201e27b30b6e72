/* SPDX-License-Identifier: MIT */
#include "task/moments.h"

/*
 * The matrix of losses for a client that joins the sampler of another service.
 * The owner of the sampler is a second service on the same loop. The server is
 * killed and started again at every moment of the joined client's life, or the
 * owner ends its session. In every cell each promise settles, the loss is
 * reported with the first answer that shows it, nothing fails with
 * TNK_ENOTFOUND, refusals are slowed down, and the joined client takes no other
 * session for its own: not the one that its service has beside it, and not the
 * one that the owner opens later. If the owner recovers, a new export works.
 */

enum {
  /* In a second, with calls begun in the moment of the first refusal (four
   * rounds of a tick), which end at once, heartbeats, and two repeated polls.
   * Without any delay it would be 80. */
  MAX_REFUSALS = 20,
  N_IN_FLIGHT = 2,
  CLONE = 1000000000,
  WAIT_MS = 45000, /* a doubt lasts 30 s, the last back-off 10 s */
  BEAT_MS = 10000,
  DELAY_MS = 500 /* the first delay of a second loss within a minute */
};

typedef enum {
  JOIN_BEFORE_CONFIG,
  JOIN_AFTER_CONFIG,
  IN_JOIN, /* the server dies of the call that joins */
  AFTER_JOIN,
  JOIN_BEFORE_HEARTBEAT,
  JOIN_BETWEEN_HEARTBEATS,
  JOIN_TWICE,
  OWNER_ENDS, /* the server lives on */
  N_JOIN_MOMENTS
} join_moment_t;

typedef enum {
  OWNER_RECOVERS,
  OWNER_GONE, /* it dies with the server */
  N_OWNERS
} owner_t;

typedef struct {
  join_moment_t moment;
  state_t state; /* STATE_OLDER is from before the client's own session */
  owner_t owner;
  int recovers; /* the service with the joined client */
  int is_busy;
  int is_numbered; /* the server has join_sampling_session */
  int has_own;     /* the service has a session and a sampler of its own */
  int is_fast;     /* it is there again before anybody connects */
} cell_t;

typedef struct {
  world_t world;
  const cell_t *cell;
  killer_t killer;
  char text[256]; /* the cell in words */

  tnk_service_t *owner; /* NULL: it is closing, or closed */
  tnk_sampling_t *owned;
  tnk_promise_t *owner_sample;
  int is_owner_closed;
  int is_owner_dead;

  /* The export that was joined last, and what it names. */
  char exported[512];
  char session[32];
  char sampler[32];
  tnk_promise_t *joining; /* the client is script.sampling */
  tnk_promise_t *samples[N_IN_FLIGHT];
  char in[N_IN_FLIGHT][32]; /* the sessions that they are in */
  int began[N_IN_FLIGHT];   /* after so many losses */
  tnk_sampling_t *own;
  tnk_promise_t *making;
  tnk_promise_t *own_sample;

  char held[192]; /* the future of a sample that is not done */
  int n_configs;  /* answered to the client's service */
  int n_numbered;
  int n_old; /* samplers at the time of a kill that an older state follows */
  int has_ended;  /* the owner has ended its session */
  int is_lost;    /* the joined sampler cannot work any more */
  int wants;      /* samples of an idle program */
  int wants_own;  /* the same of the service's own sampler */
  int is_over;    /* no more calls */
  int is_failing; /* the call that ended last has failed */

  int n_not_found;
  int n_blamed;    /* errors that name another session */
  int n_wrong_seq; /* numbers of the owner */
  int n_told;      /* reports of the end of the sampler's session */
  int n_strange;   /* reports about a session that the service does not use, or
                      that a sampler is lost and not its session */
  int n_recovered; /* events about the recovery of the joined client */
  uint64_t
      back_ms; /* when the server was started again, or the session ended */
  int n_good;  /* since the last kill, of the joined client */
  int n_own_good;
  uint64_t n_own_refusals[400]; /* by second, in the service's own session */
  int n_session_errors;
} run_t;

/* ---- The server ---- */

/* A handler of loss.h, with what it needs to know who has sent a request. */
typedef struct {
  const char *path;
  mock_handler_t handler;
  run_t *run;
} route_t;

static int is_of_owner(const mock_request_t *request) {
  return mock_header(request, "x-owner") != NULL;
}

/* Whether a request is about the sampler that was joined. */
static int is_of_joined(const run_t *run, const mock_request_t *request) {
  char session[64], sampler[64], future[192];

  if (is_of_owner(request))
    return 0;
  world_text(request, "session_id", session, sizeof(session));
  world_text(request, "sampling_session_id", sampler, sizeof(sampler));
  world_text(request, "request_id", future, sizeof(future));
  if (future[0] != '\0')
    return strcmp(strrchr(future, ':') + 1, run->sampler) == 0;
  return strcmp(session, run->session) == 0 ||
         strcmp(sampler, run->sampler) == 0;
}

/* The owner's refusals, and those in the own session, show nothing about the
 * joined client. A poll is repeated first, because a server may know a result
 * later. Before there is a client, only the call that makes it counts. */
static void serve(mock_request_t *request, void *user) {
  const route_t *route = user;
  run_t *run = route->run;
  world_t *world = &run->world;
  const uint64_t second = world_second(world);
  const uint64_t revealed_ms = world->revealed_ms;
  const uint64_t n_refusals = world->n_refusals[second];

  route->handler(request, world);
  world->revealed_ms = revealed_ms;
  if (world->n_refusals[second] == n_refusals)
    return;
  if (!is_of_joined(run, request)) {
    world->n_refusals[second] = n_refusals;
    run->n_own_refusals[second] += !is_of_owner(request);
  } else if (revealed_ms == 0 && strstr(route->path, "retrieve") == NULL &&
             (run->joining == NULL || strstr(route->path, "join") != NULL)) {
    world->revealed_ms = world_now(world);
  }
}

static run_t *run_of(world_t *world) {
  return tnk__container_of(world, run_t, world);
}

static void config(mock_request_t *request, void *user) {
  run_t *run = run_of(user);

  if (world_is_dead(user, request))
    return;
  run->n_configs += !is_of_owner(request);
  mock_reply_json(request, 200,
                  run->cell->is_numbered
                      ? "{\"sample_join_sampling_session\":true}"
                      : "{}");
}

/* Whether the server has forgotten a sampler that has not gone with all. */
static int is_unknown_sampler(const run_t *run, const char *id) {
  const int number = atoi(id + strlen("sampler-"));

  return number < run->world.first_sampler ||
         (run->n_old > 0 && number > 0 && number < run->n_old) ||
         (run->has_ended && number == 0);
}

static void join(mock_request_t *request, void *user) {
  run_t *run = run_of(user);
  char id[64], text[96];

  if (world_is_dead(user, request))
    return;
  world_text(request, "sampling_session_id", id, sizeof(id));
  if (is_unknown_sampler(run, id)) {
    world_refuse(user, request, 404, "Sampling session", id);
    return;
  }
  snprintf(text, sizeof(text), "{\"client_counter\":%d}", ++run->n_numbered);
  mock_reply_json(request, 200, text);
}

static void asample(mock_request_t *request, void *user) {
  run_t *run = run_of(user);
  char id[64];

  if (world_is_dead(user, request))
    return;
  world_text(request, "sampling_session_id", id, sizeof(id));
  run->n_wrong_seq +=
      is_of_joined(run, request) && script_number(request, "seq_id") < CLONE;
  if (is_unknown_sampler(run, id))
    world_refuse(user, request, 404, "Sampling session", id);
  else
    world_sample(request, user);
}

/* One sample of a busy program is not done before the first kill. */
static int is_held(run_t *run, const mock_request_t *request) {
  char id[192];

  if (!run->cell->is_busy || !is_of_joined(run, request) ||
      run->killer.n_due == 0 || run->world.n_kills > 0)
    return 0;
  world_text(request, "request_id", id, sizeof(id));
  if (run->held[0] == '\0')
    snprintf(run->held, sizeof(run->held), "%s", id);
  return strcmp(run->held, id) == 0;
}

static void poll(mock_request_t *request, void *user) {
  if (world_is_dead(user, request))
    return;
  if (is_held(run_of(user), request))
    mock_reply_json(request, 408, "{\"queue_state\":\"active\"}");
  else
    world_poll(request, user);
}

static void heartbeat(mock_request_t *request, void *user) {
  const run_t *run = run_of(user);
  char id[64];

  if (world_is_dead(user, request))
    return;
  world_text(request, "session_id", id, sizeof(id));
  if (run->has_ended && strcmp(id, "session-0") == 0)
    world_refuse(user, request, 410, "Session", id);
  else
    world_heartbeat(request, user);
}

static void finish(mock_request_t *request, void *user) {
  run_t *run = run_of(user);

  if (run->is_owner_dead) {
    mock_reset(request, NULL);
  } else if (!world_is_dead(user, request)) {
    run->has_ended |= is_of_owner(request);
    run->back_ms = world_now(user);
    run->n_good = run->n_own_good = run->n_session_errors = 0;
    mock_reply_json(request, 200, "{}");
  }
}

static void serve_all(run_t *run) {
  static _Thread_local route_t routes[] = {
      {"/api/v1/client/config", config, NULL},
      {"/api/v1/session_heartbeat", heartbeat, NULL},
      {"/api/v1/join_sampling_session", join, NULL},
      {"/api/v1/asample", asample, NULL},
      {"/api/v1/retrieve_future", poll, NULL},
      {"/api/v1/create_sampling_session", world_create_sampler, NULL},
      {"/api/v1/sessions/session-0/finish", finish, NULL}};

  world_serve(&run->world);
  for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
    routes[i].run = run;
    mock_on(run->world.script.mock, "POST", routes[i].path, serve, &routes[i]);
  }
}

/* ---- Death ---- */

static void on_owner_closed(void *user) {
  ((run_t *)user)->is_owner_closed = 1;
}

static void close_owner(run_t *run) {
  if (run->owner == NULL)
    return;
  tnk_service_close(run->owner, on_owner_closed, run);
  run->owner = NULL;
}

/* The server is dead. An older state has the owner's session alone. */
static void note_kill(run_t *run) {
  world_t *world = &run->world;

  run->n_good = run->n_own_good = run->n_session_errors = run->n_told = 0;
  run->back_ms = world_now(world);
  if (world->state == STATE_OLDER) {
    run->n_old = world->n_samplers;
    for (int i = 1; i < world->n_sessions; i++)
      snprintf(world->sessions[i], sizeof(world->sessions[i]), "forgotten");
  }
  if (run->cell->owner == OWNER_GONE) {
    run->is_owner_dead = 1;
    close_owner(run);
  }
}

static void want(run_t *run) {
  run->wants = N_IN_FLIGHT;
  run->wants_own = 1;
}

/* An idle program that works again calls once more behind the second kill. */
static void strike(run_t *run) {
  if (!killer_strikes(&run->killer))
    return;
  note_kill(run);
  if (run->world.n_kills == 2)
    want(run);
}

/* Between two turns of the loop. */
static void die(run_t *run) {
  const world_t *world = &run->world;
  const join_moment_t moment = run->cell->moment;

  if (world->is_dying ||
      (run->killer.n_due > 0 && world->n_kills == 0 &&
       ((moment == JOIN_AFTER_CONFIG && run->n_configs > 0) ||
        (moment == AFTER_JOIN && world->script.sampling != NULL))))
    strike(run);
}

/* Before each tick. */
static void watch(run_t *run) {
  killer_t *killer = &run->killer;
  world_t *world = &run->world;
  const uint64_t age = world_now(world) - 1000000;
  const join_moment_t moment = run->cell->moment;

  if (killer->up_ms != 0 && world_now(world) >= killer->up_ms) {
    killer->up_ms = 0;
    run->back_ms = world_now(world);
    world_start(world);
  }
  if (moment == OWNER_ENDS && age >= 14000)
    close_owner(run);
  if (killer->n_due == 0 || world->is_down)
    return;
  if (world->n_kills == 0
          ? (moment == JOIN_BEFORE_HEARTBEAT && age >= 5000) ||
                (moment >= JOIN_BETWEEN_HEARTBEATS && age >= 14000)
          : moment == JOIN_TWICE && run->n_good > 0)
    strike(run);
}

static void arm(run_t *run) {
  const cell_t *cell = run->cell;

  run->killer = (killer_t){.world = &run->world, .is_fast = cell->is_fast};
  run->killer.n_due = cell->moment == OWNER_ENDS   ? 0
                      : cell->moment == JOIN_TWICE ? 2
                                                   : 1;
  if (cell->moment == JOIN_BEFORE_CONFIG)
    killer_of(&run->killer, "/api/v1/client/config");
  if (cell->moment == IN_JOIN)
    killer_of(&run->killer, "/api/v1/join_sampling_session");
}

/* ---- The owner ---- */

static void take_export(run_t *run) {
  tnk__sampler_text_t read = {0};
  tnk__arena_t arena;
  const char *why;

  snprintf(run->exported, sizeof(run->exported), "%s",
           tnk_sampling_export(run->owned));
  tnk__arena_init(&arena, tnk__allocator_default(), TNK__MIB);
  CHECK_INT(tnk__sampler_text_read(&read, &arena, run->exported, &why), TNK_OK);
  snprintf(run->session, sizeof(run->session), "%s", read.session_id);
  snprintf(run->sampler, sizeof(run->sampler), "%s", read.sampling_session_id);
  tnk__arena_deinit(&arena);
}

static void open_owner(run_t *run) {
  static const tnk_pair_t header = {"x-owner", "1"};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_sampling_options_t sampling = TNK_SAMPLING_OPTIONS_INIT;
  script_t *script = &run->world.script;
  outcome_t outcome;

  options.api_key = script_key();
  options.base_url = mock_url(script->mock);
  options.allocator = test_allocator();
  options.limiter_scope = TNK_LIMITER_PRIVATE;
  options.headers = &header;
  options.n_headers = 1;
  options.recovery = TNK_YES;
  options.recovery_poll_ms = UINT64_MAX;
  if (mock_over_http2())
    options.http_version = TNK_HTTP_2_PRIOR_KNOWLEDGE;
  CHECK_INT(tnk_service_open(&run->owner, &script->uv, &options, NULL, 0),
            TNK_OK);
  tnk__context_fake_clock(&run->owner->root.context, 1000000);
  sampling.base_model = "base";
  script_ok(script, &outcome,
            tnk_service_create_sampling(run->owner, &sampling));
  run->owned = tnk_promise_sampling(outcome.promise);
  outcome_drop(&outcome);
  take_export(run);
  CHECK_STR(run->session, "session-0");
}

/* Forget a promise that has settled. */
static int over(tnk_promise_t **promise, int *status) {
  if (*promise == NULL || tnk_promise_state(*promise) == TNK_PENDING)
    return 0;
  *status = tnk_promise_status(*promise);
  return 1;
}

static void drop(tnk_promise_t **promise) {
  tnk_promise_unref(*promise);
  *promise = NULL;
}

/* It samples now and then, which shows it that its sampler is lost. */
static void run_owner(run_t *run) {
  int status;

  if (over(&run->owner_sample, &status))
    drop(&run->owner_sample);
  if (run->owner != NULL && run->owner_sample == NULL && !run->is_over &&
      world_now(&run->world) % 1000 == 0)
    run->owner_sample =
        tnk_sampling_sample(run->owned, script_prompt(), NULL, NULL);
}

/* ---- The program ---- */

static void report(run_t *run) {
  run->is_lost = 1;
  if (run->world.reported_ms == 0)
    run->world.reported_ms = world_now(&run->world);
}

static void on_state(const char *client, tnk_queue_state_t state,
                     const char *reason, void *user) {
  run_t *run = user;
  const char *own = tnk_service_session_id(run->world.script.service);

  (void)reason;
  if (state == TNK_QUEUE_SESSION_LOST && strcmp(client, run->session) == 0)
    run->n_told++;
  else if (state == TNK_QUEUE_SESSION_LOST)
    run->n_strange += own == NULL || strcmp(client, own) != 0;
  else if (state == TNK_QUEUE_MEMORY_LOST && strcmp(client, run->sampler) == 0)
    run->n_strange +=
        run->has_ended || !world_knows_session(&run->world, run->session);
  if ((state == TNK_QUEUE_SESSION_LOST && strcmp(client, run->session) == 0) ||
      (state == TNK_QUEUE_MEMORY_LOST && strcmp(client, run->sampler) == 0))
    report(run);
}

static void on_recovery(const tnk_recovery_event_t *event, void *user) {
  run_t *run = user;

  run->n_recovered +=
      event->sampling != NULL && event->sampling == run->world.script.sampling;
}

/* Whether a message names another session than that one. */
static int names_other(const char *text, const char *session) {
  static const char word[] = "session-";

  while ((text = strstr(text, word)) != NULL) {
    const size_t n = strlen(word) + strspn(text + strlen(word), "0123456789");

    if (n > strlen(word) &&
        (n != strlen(session) || strncmp(text, session, n) != 0))
      return 1;
    text += n;
  }
  return 0;
}

/* 1: it has settled, with *status. */
static int settled(run_t *run, tnk_promise_t **promise, int *status) {
  if (!over(promise, status))
    return 0;
  run->is_failing = *status != TNK_OK;
  run->n_not_found += *status == TNK_ENOTFOUND || *status == TNK_EEXPIRED;
  return 1;
}

/* The same for a call of the joined client. */
static int settled_in(run_t *run, tnk_promise_t **promise, const char *session,
                      int *status) {
  if (!settled(run, promise, status))
    return 0;
  run->n_session_errors += *status == TNK_ESESSION;
  run->n_blamed += *status == TNK_ESESSION &&
                   names_other(tnk_promise_text(*promise), session);
  return 1;
}

/* The same for a call in the service's own session. */
static int settled_in_own(run_t *run, tnk_promise_t **promise, int *status) {
  if (!settled(run, promise, status))
    return 0;
  run->n_blamed += *status == TNK_ESESSION &&
                   strstr(tnk_promise_text(*promise), run->session) != NULL;
  return 1;
}

/* The owner has another sampler by now, which takes the place of the lost
 * one. */
static void renew(run_t *run) {
  script_t *script = &run->world.script;

  if (!run->is_lost || run->joining != NULL || run->owner == NULL ||
      strcmp(tnk_sampling_id(run->owned), run->sampler) == 0)
    return;
  if (script->sampling != NULL)
    tnk_sampling_close(script->sampling, NULL, NULL);
  script->sampling = NULL;
  take_export(run);
  run->is_lost = run->n_told = 0;
}

static void join_theirs(run_t *run) {
  script_t *script = &run->world.script;
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  int status;

  if (settled_in(run, &run->joining, run->session, &status)) {
    /* A client that is being made has nobody to tell but who waits for it. */
    if (status == TNK_ESESSION)
      report(run);
    script->sampling = tnk_promise_sampling(run->joining);
    drop(&run->joining);
  }
  renew(run);
  options.exported = run->exported;
  if (script->sampling == NULL && run->joining == NULL && !run->is_over &&
      (run->cell->is_busy || run->wants > 0))
    run->joining = tnk_service_create_sampling(script->service, &options);
}

/* A sample from before the last of them proves nothing. */
static int n_losses(const run_t *run) {
  return run->world.n_kills + run->has_ended;
}

static void sample_theirs(run_t *run) {
  script_t *script = &run->world.script;
  int status;

  for (int i = 0; i < N_IN_FLIGHT; i++) {
    if (settled_in(run, &run->samples[i], run->in[i], &status)) {
      run->n_good += status == TNK_OK && run->began[i] == n_losses(run);
      run->wants -= status == TNK_OK && run->wants > 0;
      drop(&run->samples[i]);
    }
    if (script->sampling != NULL && run->samples[i] == NULL && !run->is_over &&
        (run->cell->is_busy || run->wants > i)) {
      run->samples[i] = script_sample(script);
      snprintf(run->in[i], sizeof(run->in[i]), "%s", run->session);
      run->began[i] = n_losses(run);
    }
  }
}

static void use_own(run_t *run) {
  script_t *script = &run->world.script;
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  int status;

  if (settled_in_own(run, &run->making, &status)) {
    run->own = tnk_promise_sampling(run->making);
    drop(&run->making);
  }
  if (settled_in_own(run, &run->own_sample, &status)) {
    run->n_own_good += status == TNK_OK;
    run->wants_own &= status != TNK_OK;
    drop(&run->own_sample);
  }
  if (run->is_over || !(run->cell->is_busy || run->wants_own))
    return;
  options.base_model = "base";
  if (run->own == NULL && run->making == NULL)
    run->making = tnk_service_create_sampling(script->service, &options);
  if (run->own != NULL && run->own_sample == NULL)
    run->own_sample =
        tnk_sampling_sample(run->own, script_prompt(), NULL, NULL);
}

/* A new call at once where one fails. */
static void tick(run_t *run, uint64_t ms) {
  script_t *script = &run->world.script;

  watch(run);
  for (int i = run->is_failing ? 4 : 1; i > 0; i--) {
    run_owner(run);
    join_theirs(run);
    sample_theirs(run);
    if (run->cell->has_own)
      use_own(run);
    for (int k = 0; k < 3; k++) {
      mock_turns(script->mock, 1);
      die(run);
    }
  }
  if (!run->is_owner_closed && run->owner != NULL)
    tnk__context_advance(&run->owner->root.context, ms);
  script_advance(script, ms);
  die(run);
}

static void live(run_t *run, uint64_t ms) {
  const uint64_t end = world_now(&run->world) + ms;

  while (world_now(&run->world) < end)
    tick(run, TICK_MS);
}

/* ---- A cell ---- */

#define HOLDS(condition)                                                       \
  do {                                                                         \
    if (!(condition))                                                          \
      test_fail(__FILE__, __LINE__, "%s: %s", #condition, run->text);          \
  } while (0)

static void describe(run_t *run) {
  const cell_t *cell = run->cell;

  snprintf(run->text, sizeof(run->text),
           "moment %d, state %d, owner %d, recovery %d, busy %d, numbered %d, "
           "own %d, fast %d",
           (int)cell->moment, (int)cell->state, (int)cell->owner,
           cell->recovers, cell->is_busy, cell->is_numbered, cell->has_own,
           cell->is_fast);
}

static int outlives(const cell_t *cell) {
  return cell->moment != OWNER_ENDS &&
         (cell->state == STATE_FULL || cell->state == STATE_OLDER);
}

/* The session is gone, and the client was there before: it need not call. */
static int is_told_by_heartbeats(const cell_t *cell) {
  return cell->moment == OWNER_ENDS ||
         (cell->state == STATE_NONE && cell->moment >= AFTER_JOIN);
}

static int is_pending(const run_t *run) {
  int n =
      run->joining != NULL || run->making != NULL || run->own_sample != NULL;

  for (int i = 0; i < N_IN_FLIGHT; i++)
    n += run->samples[i] != NULL;
  return n > 0;
}

static void judge(run_t *run) {
  const cell_t *cell = run->cell;
  const world_t *world = &run->world;
  const int is_delayed = world->n_kills > 1;

  HOLDS(run->killer.n_due == 0);
  HOLDS(run->n_not_found == 0);
  HOLDS(run->n_blamed == 0);
  HOLDS(run->n_wrong_seq == 0);
  HOLDS(run->n_strange == 0);
  HOLDS(run->n_recovered == 0);
  HOLDS(run->n_told <= 1);
  for (int i = 0; i < 400; i++)
    HOLDS(world->n_refusals[i] <= MAX_REFUSALS &&
          run->n_own_refusals[i] <= MAX_REFUSALS);
  HOLDS(outlives(cell) || world->revealed_ms != 0);
  if (world->revealed_ms != 0)
    HOLDS(world->reported_ms != 0 &&
          world->reported_ms <=
              world->revealed_ms + 2 * TICK_MS + (is_delayed ? DELAY_MS : 0));
  if (is_told_by_heartbeats(cell))
    HOLDS(world->reported_ms <= run->back_ms + BEAT_MS + 2 * TICK_MS);
  if (outlives(cell) ||
      (cell->owner == OWNER_RECOVERS && cell->moment != OWNER_ENDS))
    HOLDS(run->n_good > 0);
  else
    HOLDS(run->n_good == 0 && run->n_session_errors > 0);
  if (cell->has_own && (cell->recovers || cell->state == STATE_FULL))
    HOLDS(run->n_own_good > 0);
}

static void open_run(run_t *run, const cell_t *cell) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  run->cell = cell;
  describe(run);
  options.recovery = cell->recovers ? TNK_YES : TNK_NO;
  options.recovery_poll_ms = UINT64_MAX;
  options.limiter_scope = TNK_LIMITER_PRIVATE;
  options.on_queue_state = on_state;
  options.queue_state_user = run;
  options.on_recovery = on_recovery;
  options.recovery_user = run;
  script_open_with(&run->world.script, options);
  serve_all(run);
  run->world.state = cell->state;
  open_owner(run);
  arm(run);
}

static void close_run(run_t *run) {
  mock_server_t *mock = run->world.script.mock;

  if (run->world.is_down)
    world_start(&run->world);
  close_owner(run);
  mock_wait_flag(mock, &run->is_owner_closed, 1);
  if (run->owner_sample != NULL)
    drop(&run->owner_sample);
  script_close(&run->world.script);
}

/* The last samples have to fail where there is nothing to sample from. */
static void run_cell(const cell_t *cell) {
  run_t *run = calloc(1, sizeof(*run));
  uint64_t end;

  CHECK(run != NULL);
  open_run(run, cell);
  for (int i = 0; i < 3; i++) {
    want(run);
    live(run, 1000);
  }
  live(run, 37000);
  want(run);
  live(run, 20000);
  run->is_over = 1;
  end = world_now(&run->world) + WAIT_MS;
  while (is_pending(run) && world_now(&run->world) < end)
    tick(run, 1000);
  HOLDS(!is_pending(run));
  judge(run);
  close_run(run);
  free(run);
}

/* ---- The table ---- */

static int is_possible(const cell_t *cell) {
  /* The owner's session ends while the server lives on. */
  if (cell->moment == OWNER_ENDS)
    return cell->state == STATE_FULL && cell->owner == OWNER_GONE &&
           cell->is_fast;
  if (cell->moment == IN_JOIN && !cell->is_numbered)
    return 0;
  /* It dies again once the client works, with or without another export. */
  if (cell->moment == JOIN_TWICE && cell->owner == OWNER_GONE)
    return 0;
  /* An older state lacks the session that the client's service had opened. */
  return cell->state != STATE_OLDER ||
         (cell->has_own && cell->moment >= AFTER_JOIN);
}

/* Every so-many-th cell is run, as in test_loss_matrix.c. */
static size_t stride(void) {
  const char *wish = getenv("TNK_TEST_LOSSES");

  if (wish != NULL && atoi(wish) > 0)
    return (size_t)atoi(wish);
  return mock_over_http2() ? 7 : 1;
}

/* How many cells of a row have each value. */
typedef struct {
  size_t n, n_possible;
  size_t states[N_STATES], owners[N_OWNERS];
  size_t recovers[2], is_busy[2], is_numbered[2], has_own[2], is_fast[2];
} counts_t;

static void count(counts_t *counts, const cell_t *cell) {
  counts->n++;
  counts->states[cell->state]++;
  counts->owners[cell->owner]++;
  counts->recovers[cell->recovers]++;
  counts->is_busy[cell->is_busy]++;
  counts->is_numbered[cell->is_numbered]++;
  counts->has_own[cell->has_own]++;
  counts->is_fast[cell->is_fast]++;
}

static void print_counts(const counts_t *counts) {
  printf("# %zu of %zu cells over HTTP/%s\n", counts->n, counts->n_possible,
         mock_over_http2() ? "2" : "1.1");
  printf("#   state: full %zu, none %zu, older %zu, others %zu; owner: "
         "recovers %zu, gone %zu\n",
         counts->states[STATE_FULL], counts->states[STATE_NONE],
         counts->states[STATE_OLDER], counts->states[STATE_OTHERS],
         counts->owners[OWNER_RECOVERS], counts->owners[OWNER_GONE]);
  printf("#   recovery %zu, none %zu; busy %zu, idle %zu; own session %zu, "
         "none %zu\n",
         counts->recovers[1], counts->recovers[0], counts->is_busy[1],
         counts->is_busy[0], counts->has_own[1], counts->has_own[0]);
  printf("#   numbered by the server %zu, drawn %zu; back at once %zu, later "
         "%zu\n",
         counts->is_numbered[1], counts->is_numbered[0], counts->is_fast[1],
         counts->is_fast[0]);
}

/* `part`: the cells without a session of the service's own, or those with
 * one; N_PARTS for all. */
enum { N_PARTS = 2 };

static void run_row(join_moment_t moment, int part) {
  counts_t counts = {0};

  for (int i = 0; i < N_STATES * N_OWNERS * 2 * 2 * 2 * 2 * 2; i++) {
    int k = i;
    cell_t cell = {.moment = moment};

    cell.state = (state_t)(k % N_STATES), k /= N_STATES;
    cell.owner = (owner_t)(k % N_OWNERS), k /= N_OWNERS;
    cell.recovers = k % 2, k /= 2;
    cell.is_busy = k % 2, k /= 2;
    cell.is_numbered = k % 2, k /= 2;
    cell.has_own = k % 2, k /= 2;
    cell.is_fast = k;
    if ((part < N_PARTS && cell.has_own != part) || !is_possible(&cell) ||
        counts.n_possible++ % stride() != 0)
      continue;
    run_cell(&cell);
    count(&counts, &cell);
  }
  print_counts(&counts);
}

#define ROW(name, moment, part)                                                \
  TEST_LIMIT(Q6_of_a_joined_client_the_server_is_killed_##name, 120) {         \
    run_row(moment, part);                                                     \
  }
/* The rows with more cells are two cases, so that a slow machine has time for
 * them too. */
#define ROWS(name, moment)                                                     \
  ROW(name##_alone, moment, 0)                                                 \
  ROW(name##_beside_an_own_session, moment, 1)

ROWS(before_the_configuration, JOIN_BEFORE_CONFIG)
ROWS(after_the_configuration, JOIN_AFTER_CONFIG)
ROW(while_joining, IN_JOIN, N_PARTS)
ROWS(after_the_join, AFTER_JOIN)
ROWS(before_the_first_heartbeat, JOIN_BEFORE_HEARTBEAT)
ROWS(between_heartbeats, JOIN_BETWEEN_HEARTBEATS)
ROW(twice, JOIN_TWICE, N_PARTS)

TEST_LIMIT(Q6_of_a_joined_client_the_owner_ends_the_session, 120) {
  run_row(OWNER_ENDS, N_PARTS);
}

/* SPDX-License-Identifier: MIT */
/*
 * Every operation is cut short at every turn of the loop between its call and
 * its end: it must settle exactly once, leak nothing and leave no hole among
 * the numbers of its client.
 */
#include "task/kinds.h"

static const char in_a_row[] =
    "{\"fwdbwd_max_chunk_len\":1,\"parallel_fwdbwd_chunks\":false}";
static const char side_by_side[] = "{\"fwdbwd_max_chunk_len\":1}";
static const char compressed[] = "{\"proto_compress_fwdbwd\":true}";

/* After the second the thread pool is waited for, which may be slower than any
 * number of turns of the loop. */
enum { MAX_TURNS = 400, PATIENT_TURNS = 200 };

/* What the operation meets. */
typedef enum {
  ROAD_PLAIN,
  ROAD_HARD,   /* every request is turned away first, results take time */
  ROAD_FRESH,  /* the service has not been used before */
  ROAD_QUEUED, /* another operation of the client is being submitted */
  ROAD_TOLD,   /* the server wants to know of samples that are given up */
  N_ROADS
} road_t;

typedef void (*cut_t)(script_t *script, const script_kind_t *kind,
                      tnk_promise_t *promise);

static void cut_nothing(script_t *script, const script_kind_t *kind,
                        tnk_promise_t *promise) {
  (void)script;
  (void)kind;
  (void)promise;
}

static void cut_promise(script_t *script, const script_kind_t *kind,
                        tnk_promise_t *promise) {
  (void)script;
  (void)kind;
  tnk_promise_cancel(promise);
}

static void cut_client(script_t *script, const script_kind_t *kind,
                       tnk_promise_t *promise) {
  (void)promise;
  if (kind->owner == OWNER_TRAINING)
    tnk_training_close(script->training, NULL, NULL);
  else if (kind->owner == OWNER_SAMPLING)
    tnk_sampling_close(script->sampling, NULL, NULL);
  else
    return;
  script->training = NULL;
  script->sampling = NULL;
}

static void cut_service(script_t *script, const script_kind_t *kind,
                        tnk_promise_t *promise) {
  (void)kind;
  (void)promise;
  tnk_service_close(script->service, script_closed, script);
}

static void cut_connections(script_t *script, const script_kind_t *kind,
                            tnk_promise_t *promise) {
  (void)kind;
  (void)promise;
  for (size_t i = 0; i < mock_n_requests(script->mock); i++) {
    mock_request_t *request = mock_request(script->mock, i);
    if (!request->is_answered && !request->is_gone)
      mock_reset(request, NULL);
  }
  mock_close_idle(script->mock, 1);
}

static void check_end(const script_kind_t *kind, int turns,
                      const outcome_t *outcome, int code) {
  if (outcome->n_done != 1 ||
      (outcome->status != TNK_OK && outcome->status != code))
    test_fail(__FILE__, __LINE__, "%s cut after %d turns: settled %d times, %s",
              kind->name, turns, outcome->n_done, outcome->text);
}

/* ---- Roads ---- */

static void make_hard(script_t *script, const script_kind_t *kind) {
  static const char future[] = "/api/v1/retrieve_future";
  char path[64];

  snprintf(path, sizeof(path), "/api/v1/%s", kind->call);
  mock_json_once(script->mock, NULL, path,
                 kind->owner == OWNER_SAMPLING ? 429 : 503, "{}");
  mock_json_once(script->mock, "POST", future, 200,
                 "{\"type\":\"try_again\",\"request_id\":\"r\","
                 "\"queue_state\":\"paused_capacity\"}");
  mock_json_once(script->mock, "POST", future, 408, "{}");
  mock_json_once(script->mock, "POST", future, 200,
                 "{\"status\":\"complete_metadata\","
                 "\"response_payload_size\":100}");
}

/* The submission that the operation is queued behind. */
static script_held_t front;

static void accept_front(script_t *script) {
  if (front.n > 0 && !front.requests[0]->is_answered &&
      !front.requests[0]->is_gone)
    script_accept(front.requests[0], script);
  front.n = 0;
}

static void open_road(script_t *script, const script_kind_t *kind,
                      const char *flags, road_t road) {
  if (road == ROAD_FRESH) {
    script_open(script);
  } else {
    script_open_for(script, kind, flags);
    script->service->session.start.dynamic.sample_cancel = road == ROAD_TOLD;
    mock_json(script->mock, "POST", "/api/v1/cancel_future", 200, "{}");
  }
  if (road == ROAD_HARD)
    make_hard(script, kind);
  if (road == ROAD_QUEUED && script->training != NULL) {
    front.n = 0;
    mock_once(script->mock, "POST", "/api/v1/save_weights", script_hold,
              &front);
    tnk_promise_unref(start_save(script));
  }
}

static void step_on(script_t *script, road_t road, int turn) {
  if (road == ROAD_HARD)
    tnk__context_advance(&script->service->root.context, 200);
  while (turn >= PATIENT_TURNS && script_is_packing(script))
    uv_run(&script->uv, UV_RUN_ONCE);
  mock_turns(script->mock, 1);
  if (road == ROAD_QUEUED && turn == 5)
    accept_front(script);
}

/* 1 when the operation was over before it was cut. */
static int run(const script_kind_t *kind, const char *flags, road_t road,
               cut_t cut, int code, int turns) {
  script_t script;
  outcome_t outcome;
  tnk_promise_t *promise;
  tnk_stats_t stats = TNK_STATS_INIT;
  int was_done;

  open_road(&script, kind, flags, road);
  promise = kind->start(&script);
  outcome_of(&outcome, tnk_promise_ref(promise));
  for (int i = 0; i < turns && outcome.n_done == 0; i++)
    step_on(&script, road, i);
  was_done = outcome.n_done;
  cut(&script, kind, promise);
  tnk_promise_unref(promise);
  if (cut == cut_service) {
    script_end(&script);
  } else {
    script_turns(&script);
    if (road == ROAD_QUEUED)
      accept_front(&script);
    script_settle(&script, &outcome);
    script_check_next(&script);
    tnk_service_stats(&stats, script.service);
    CHECK_INT(stats.n_pending, 0);
    script_close(&script);
  }
  check_end(kind, turns, &outcome, code);
  outcome_drop(&outcome);
  return was_done;
}

static void run_all(const script_kind_t *kind, const char *flags, road_t road,
                    cut_t cut, int code) {
  int turns = 0;

  while (!run(kind, flags, road, cut, code, turns))
    CHECK(++turns < MAX_TURNS);
}

static void cut_each(road_t road, cut_t cut, int code) {
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    const script_kind_t *kind = &script_kinds[i];
    if (road == ROAD_FRESH && kind->owner != OWNER_SERVICE)
      continue;
    if (road == ROAD_QUEUED && kind->owner != OWNER_TRAINING)
      continue;
    if (road == ROAD_TOLD && kind->owner != OWNER_SAMPLING)
      continue;
    run_all(kind, NULL, road, cut, code);
  }
}

static void cut_passes(cut_t cut, int code) {
  static const char *const flags[] = {in_a_row, side_by_side, compressed};

  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    if (strcmp(script_kinds[i].call, "forward_backward") != 0)
      continue;
    for (size_t k = 0; k < sizeof(flags) / sizeof(flags[0]); k++)
      run_all(&script_kinds[i], flags[k], ROAD_PLAIN, cut, code);
  }
}

/* Samples that wait together. */
static void cut_batched(cut_t cut, int code) {
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    if (script_kinds[i].owner != OWNER_SAMPLING)
      continue;
    run_all(&script_kinds[i], script_batched, ROAD_PLAIN, cut, code);
    run_all(&script_kinds[i], script_batched, ROAD_HARD, cut, code);
    run_all(&script_kinds[i], script_batched, ROAD_TOLD, cut, code);
  }
}

TEST_LIMIT(S1_7_samples_that_wait_together_cut_at_every_turn, 60) {
  cut_batched(cut_promise, TNK_ECANCELED);
  cut_batched(cut_client, TNK_ECLOSED);
  cut_batched(cut_service, TNK_ECLOSED);
  cut_batched(cut_connections, TNK_OK);
  CHECK(script_n_batches > 0);
}

TEST_LIMIT(S1_7_nothing_cut_succeeds, 60) {
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++)
    for (road_t road = ROAD_PLAIN; road <= ROAD_HARD; road++)
      CHECK(run(&script_kinds[i], NULL, road, cut_nothing, TNK_OK, MAX_TURNS));
}

TEST_LIMIT(S1_7_the_promise_canceled_at_every_turn, 60) {
  for (road_t road = ROAD_PLAIN; road < N_ROADS; road++)
    cut_each(road, cut_promise, TNK_ECANCELED);
}

TEST_LIMIT(S4_9_the_client_closed_at_every_turn, 60) {
  for (road_t road = ROAD_PLAIN; road < N_ROADS; road++)
    cut_each(road, cut_client, TNK_ECLOSED);
}

TEST_LIMIT(S4_7_the_service_closed_at_every_turn, 60) {
  for (road_t road = ROAD_PLAIN; road < N_ROADS; road++)
    cut_each(road, cut_service, TNK_ECLOSED);
}

TEST_LIMIT(S3_20_the_connections_cut_at_every_turn, 60) {
  for (road_t road = ROAD_PLAIN; road < N_ROADS; road++)
    cut_each(road, cut_connections, TNK_OK);
}

TEST_LIMIT(S1_7_passes_in_chunks_canceled_at_every_turn, 60) {
  cut_passes(cut_promise, TNK_ECANCELED);
}

TEST_LIMIT(S1_7_passes_in_chunks_closed_at_every_turn, 60) {
  cut_passes(cut_client, TNK_ECLOSED);
  cut_passes(cut_service, TNK_ECLOSED);
}

TEST_LIMIT(S3_20_passes_in_chunks_cut_off_at_every_turn, 60) {
  cut_passes(cut_connections, TNK_OK);
}

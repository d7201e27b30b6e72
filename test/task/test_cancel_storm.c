/* SPDX-License-Identifier: MIT */
#include "support/mock_http2.h"
#include "task/script.h"

/*
 * Thousands of queued training operations, canceled and timed out at random
 * while a server with faults works on them. The server of these tests is as
 * strict as a real one: a request waits for those before it, so a hole in the
 * numbers would hang everything behind it.
 */
enum { N_OPS = 10000, MAX_SEQ = 40000, N_SEEDS = 50 };

/* Servers of HTTP/2 take so many resets in so long for an attack. */
enum { MAX_RESETS = 200, RESETS_MS = 30000 };

typedef struct {
  tnk_promise_t *promise;
  int n_settled;
  int status;
} op_t;

typedef struct {
  script_t script;
  uint64_t random;
  op_t *ops;
  size_t n_settled;
  size_t n_status[4]; /* succeeded, canceled, timed out, anything else */
  size_t head;        /* those before it have settled */
  /* The server: 0, or one more than the number of examples it has. */
  unsigned char *has;
  long long contiguous; /* all numbers up to it have come */
  long long last;       /* the highest that has come */
  int is_calm;
} storm_t;

static storm_t storm;

static uint32_t rnd(uint32_t n) {
  storm.random = storm.random * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(storm.random >> 33) % n;
}

/* ---- The server ---- */

static void commit(const mock_request_t *request, const script_sent_t *sent) {
  CHECK(sent->seq >= 1 && sent->seq < MAX_SEQ);
  if (storm.has[sent->seq] == 0) {
    storm.has[sent->seq] = (unsigned char)(1 + sent->n_data);
  } else if (storm.has[sent->seq] != 1 + sent->n_data) {
    /* Of a request that had come already, only a repeat may come. */
    test_fail(__FILE__, __LINE__,
              "number %lld of %lld had %d examples and comes again on "
              "connection %d as %s: %.300s",
              sent->seq, storm.last, storm.has[sent->seq] - 1,
              (int)request->connection, sent->call,
              (const char *)request->body);
  }
  while (storm.has[storm.contiguous + 1] != 0)
    storm.contiguous++;
  if (sent->seq > storm.last)
    storm.last = sent->seq;
  /* Side by side, the first of three parts comes last, and its number is free
   * again when that never happens: the next one fills the hole. */
  CHECK(storm.last - storm.contiguous <= 32);
}

static void on_submit(mock_request_t *request, void *user) {
  uint32_t fate = storm.is_calm ? 99 : rnd(100);
  script_sent_t sent;
  char text[128];

  (void)user;
  script_read(request, &sent);
  if (fate < 4) {
    mock_reply_json(request, 503, "{}");
    return;
  }
  if (fate < 6) {
    mock_reset(request, NULL);
    return;
  }
  commit(request, &sent);
  snprintf(text, sizeof(text), "{\"request_id\":\"%s:%lld:%zu\"}", sent.call,
           sent.seq, sent.n_data);
  if (fate < 9)
    mock_reset(request, NULL); /* the work is done, the answer is lost */
  else if (fate < 12)
    mock_reply_json(request, 500, "{}");
  else if (fate < 40)
    mock_reply_json_after(request, 1 + rnd(200), 200, text);
  else
    mock_reply_json(request, 200, text);
}

/* Results come in order: what waits for a number that never comes hangs. */
static void on_poll(mock_request_t *request, void *user) {
  const char *id = strstr((const char *)request->body, "\":\"");
  long long seq;

  CHECK(id != NULL);
  seq = atoll(strchr(id + 3, ':') + 1);
  if (seq > storm.contiguous || (!storm.is_calm && rnd(5) == 0))
    mock_reply_json_after(request, 1 + rnd(300), 408, "{}");
  else
    script_result(request, user);
}

/* ---- The operations ---- */

static void cancel_somebody(void) {
  size_t from = storm.head;
  size_t span = N_OPS - from;

  if (span == 0)
    return;
  /* Half of them at the head, where the requests are. */
  if (rnd(2) == 0 && span > 6)
    span = 6;
  tnk_promise_cancel(storm.ops[from + rnd((uint32_t)span)].promise);
}

static void on_settled(tnk_promise_t *promise, int status, void *user) {
  op_t *op = user;

  (void)promise;
  CHECK_INT(++op->n_settled, 1);
  op->status = status;
  storm.n_settled++;
  storm.n_status[status == TNK_OK          ? 0
                 : status == TNK_ECANCELED ? 1
                 : status == TNK_ETIMEDOUT ? 2
                                           : 3]++;
  if (rnd(10) == 0 && !storm.is_calm)
    cancel_somebody(); /* from inside a callback */
}

static tnk_promise_t *submit(void) {
  tnk_promise_t *promise = rnd(4) > 0 ? script_step(&storm.script)
                                      : script_pass(&storm.script, 1 + rnd(3));

  if (rnd(8) == 0)
    promise = tnk_with_timeout(promise, rnd(60000));
  return promise;
}

static void open_storm(uint64_t seed) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  mock_server_t *mock;

  memset(&storm, 0, sizeof(storm));
  storm.random = seed * 2654435761u + 1;
  storm.ops = calloc(N_OPS, sizeof(*storm.ops));
  storm.has = calloc(MAX_SEQ, 1);
  CHECK(storm.ops != NULL && storm.has != NULL);
  /* The network of a busy machine may stall for minutes of the storm's time.
   * The number of a request that is not repeated any more would be taken again.
   */
  options.patience_ms = UINT64_MAX;
  script_open_with(&storm.script, options);
  mock = storm.script.mock;
  mock_set_reset_guard(mock, MAX_RESETS, RESETS_MS);
  script_flags(&storm.script, seed % 2 == 0
                                  ? "{\"fwdbwd_max_chunk_len\":1}"
                                  : "{\"fwdbwd_max_chunk_len\":1,"
                                    "\"parallel_fwdbwd_chunks\":false}");
  script_train(&storm.script);
  mock_on(mock, "POST", "/api/v1/forward_backward", on_submit, NULL);
  mock_on(mock, "POST", "/api/v1/optim_step", on_submit, NULL);
  mock_on(mock, "POST", "/api/v1/retrieve_future", on_poll, NULL);
}

static void ride_out(uint32_t max_cancels) {
  int patience = 0;

  while (storm.n_settled < N_OPS) {
    size_t before = storm.n_settled;
    for (uint32_t n = rnd(max_cancels); n > 0; n--)
      cancel_somebody();
    tnk__context_advance(&storm.script.service->root.context, rnd(100));
    /* The network of a busy machine may stall for minutes of this time. */
    if (rnd(300) == 0)
      for (int i = 0; i < 130; i++)
        tnk__context_advance(&storm.script.service->root.context, 5000);
    mock_turns(storm.script.mock, 3);
    while (storm.head < N_OPS && storm.ops[storm.head].n_settled > 0)
      storm.head++;
    patience = storm.n_settled > before ? 0 : patience + 1;
    if (patience > 20000) {
      char text[512];
      tnk_promise_explain(storm.ops[storm.head].promise, text, sizeof(text));
      test_fail(__FILE__, __LINE__, "operation %zu hangs: %s", storm.head,
                text);
    }
  }
}

static void check_storm(void) {
  outcome_t outcome;
  tnk_stats_t stats = TNK_STATS_INIT;

  /* The client still trains, under the very next number. */
  storm.is_calm = 1;
  outcome_of(&outcome, script_step(&storm.script));
  while (outcome.n_done == 0)
    script_advance(&storm.script, 1000);
  CHECK_INT(outcome.status, TNK_OK);
  outcome_drop(&outcome);
  CHECK_INT(storm.contiguous, storm.last);
  CHECK_INT(mock_n_calmed(storm.script.mock), 0);
  CHECK_INT(storm.n_status[3], 0);
  CHECK(storm.n_status[0] > 0 && storm.n_status[1] > 0 &&
        storm.n_status[2] > 0);
  for (size_t i = 0; i < N_OPS; i++)
    CHECK_INT(storm.ops[i].n_settled, 1);
  tnk_service_stats(&stats, storm.script.service);
  CHECK_INT(stats.n_pending, 0);
}

static void run_storm(uint64_t seed) {
  open_storm(seed);
  for (int i = 0; i < N_OPS; i++) {
    storm.ops[i].promise = submit();
    tnk_then(tnk_promise_ref(storm.ops[i].promise), on_settled, &storm.ops[i]);
  }
  ride_out(2 + (uint32_t)(seed % 10) * 4);
  check_storm();
  if (seed % 10 == 0)
    printf("# seed %u: %zu succeeded, %zu canceled, %zu timed out; numbers 1 "
           "to %lld came without a hole; at most %zu resets in %d s\n",
           (unsigned)seed, storm.n_status[0], storm.n_status[1],
           storm.n_status[2], storm.last, mock_most_resets(storm.script.mock),
           RESETS_MS / 1000);
  for (size_t i = 0; i < N_OPS; i++)
    tnk_promise_unref(storm.ops[i].promise);
  script_close(&storm.script);
  free(storm.ops);
  free(storm.has);
}

/* TNK_TEST_STORMS sets how many of the seeds are run. */
static uint64_t n_seeds(void) {
  const char *wish = getenv("TNK_TEST_STORMS");

  return wish != NULL && atoi(wish) > 0 ? (uint64_t)atoi(wish) : N_SEEDS;
}

static void run_seeds(uint64_t first) {
  for (uint64_t seed = first; seed < n_seeds(); seed += 5)
    run_storm(seed);
}

TEST_LIMIT(S1_7_storm_of_cancels_seeds_0_mod_5, 300) {
  run_seeds(0);
}

TEST_LIMIT(S1_7_storm_of_cancels_seeds_1_mod_5, 300) {
  run_seeds(1);
}

TEST_LIMIT(S1_7_storm_of_cancels_seeds_2_mod_5, 300) {
  run_seeds(2);
}

TEST_LIMIT(S1_7_storm_of_cancels_seeds_3_mod_5, 300) {
  run_seeds(3);
}

TEST_LIMIT(S1_7_storm_of_cancels_seeds_4_mod_5, 300) {
  run_seeds(4);
}

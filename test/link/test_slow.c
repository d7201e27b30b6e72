/* SPDX-License-Identifier: MIT */
/*
 * Narrow links: bytes take their time, and none are sent twice.
 */
#include "link/road.h"

/* ---- A large pass ---- */

enum { N_DATA = 320, LENGTH = 5120 };

typedef struct {
  tnk_datum_t data[N_DATA];
  int32_t tokens[LENGTH];
  int64_t targets[LENGTH];
} pass_t;

/* About 20 MB on the wire. */
static const tnk_datum_t *large_data(void) {
  static pass_t pass;

  for (int i = 0; i < LENGTH; i++) {
    pass.tokens[i] = 100000 + i;
    pass.targets[i] = 100001 + i;
  }
  for (int i = 0; i < N_DATA; i++)
    pass.data[i] =
        (tnk_datum_t){.input = {.tokens = pass.tokens, .n_tokens = LENGTH},
                      .targets = pass.targets};
  return pass.data;
}

static tnk_promise_t *large_pass(road_t *road) {
  return tnk_training_forward_backward(road->script.training, large_data(),
                                       N_DATA, NULL);
}

/* The bytes of all passes that came whole. */
static size_t n_pass_bytes(const road_t *road) {
  const mock_server_t *mock = road->script.mock;
  size_t n = 0;

  for (size_t i = 0; i < mock_n_requests(mock); i++) {
    const mock_request_t *request = mock_request(mock, i);
    if (request->is_complete &&
        strcmp(request->path, "/api/v1/forward_backward") == 0)
      n += request->body_len;
  }
  return n;
}

/* A pass over a link of so many thousand bits a second: how long it takes. */
static uint64_t send_pass(road_t *road, unsigned kbit, size_t *n_bytes) {
  outcome_t outcome;
  char words[32];
  uint64_t took;
  uint64_t n_up;

  road_open(road);
  script_train(&road->script);
  snprintf(words, sizeof(words), "rate %u", kbit);
  road_tell(road, words);
  n_up = road_counts(road)->n_bytes[0];
  outcome_of(&outcome, large_pass(road));
  took = road_ok(road, &outcome, 3600000);
  outcome_drop(&outcome);
  *n_bytes = n_pass_bytes(road);
  CHECK(*n_bytes > 19000000);
  n_up = road_counts(road)->n_bytes[0] - n_up;
  printf("# %zu bytes in %llu ms at %u kbit/s, %llu bytes sent\n", *n_bytes,
         (unsigned long long)took, kbit, (unsigned long long)n_up);
  /* The heads of requests, polls and heartbeats. */
  CHECK(n_up < *n_bytes + *n_bytes / 50);
  return took;
}

static void check_pass(unsigned kbit) {
  tnk_stats_t stats = TNK_STATS_INIT;
  size_t n_bytes;
  uint64_t took;
  road_t road;

  took = send_pass(&road, kbit, &n_bytes);
  CHECK(took * kbit / 8 <= n_bytes + n_bytes / 10);
  tnk_service_stats(&stats, road.script.service);
  CHECK_INT(stats.n_retries, 0);
  /* What moves is no stall, however long it takes. */
  CHECK_INT(stats.n_stalls, 0);
  road_close(&road);
}

TEST_LIMIT(link_slow_pass_at_1_mbit_takes_the_time_of_its_bytes, 60) {
  check_pass(1000);
}

TEST_LIMIT(link_slow_pass_at_a_quarter_of_a_mbit, 60) {
  check_pass(250);
}

TEST_LIMIT(link_slow_pass_at_20_mbit, 60) {
  check_pass(20000);
}

/* ---- Beside held polls ---- */

enum { N_POLLS = 500, PERIOD_MS = 20 };

typedef struct {
  road_t road;
  mock_request_t *held[N_POLLS];
  uint64_t answered_ms[N_POLLS]; /* when the last poll was; 0: never */
  uint64_t most_ms;              /* from then until the next one came */
  size_t n_came;
  size_t next;
  int is_measured;
} polls_t;

/* "asample:17:0" */
static int sample_of(const mock_request_t *request) {
  const char *at = strstr((const char *)request->body, "\"asample:");

  return at != NULL ? atoi(at + strlen("\"asample:")) : -1;
}

static void on_poll(mock_request_t *request, void *user) {
  polls_t *polls = user;
  const int i = sample_of(request);
  uint64_t took;

  if (i < 0) {
    script_result(request, &polls->road.script);
    return;
  }
  CHECK(i < N_POLLS);
  polls->held[i] = request;
  if (polls->answered_ms[i] == 0)
    return;
  took = test_link_clock(polls->road.link)->fake_now - polls->answered_ms[i];
  polls->n_came++;
  if (polls->is_measured && took > polls->most_ms)
    polls->most_ms = took;
}

/* One poll in turn ends without a result. */
static void answer_one(polls_t *polls) {
  const size_t i = polls->next++ % N_POLLS;

  CHECK(polls->held[i] != NULL);
  polls->answered_ms[i] = test_link_clock(polls->road.link)->fake_now;
  mock_reply_json(polls->held[i], 200,
                  "{\"type\":\"try_again\",\"request_id\":\"r\","
                  "\"queue_state\":\"active\"}");
}

static void answer_for(polls_t *polls, uint64_t ms) {
  for (; ms >= PERIOD_MS; ms -= PERIOD_MS) {
    answer_one(polls);
    road_run(&polls->road, PERIOD_MS);
  }
}

static void open_polls(polls_t *polls, outcome_t *samples) {
  road_t *road = &polls->road;

  road_open(road);
  script_train(&road->script);
  script_sampler(&road->script);
  mock_on(road->script.mock, "POST", "/api/v1/retrieve_future", on_poll, polls);
  for (size_t i = 0; i < N_POLLS; i++)
    outcome_of(&samples[i], script_sample(&road->script));
  road_run(road, 500);
  for (size_t i = 0; i < N_POLLS; i++)
    CHECK(polls->held[i] != NULL);
  road_tell(road, "delay 25");
  road_tell(road, "rate 20000");
  road_tell(road, "queue 65536");
}

TEST_LIMIT(link_slow_pass_beside_500_held_polls_delays_none_of_them, 60) {
  static polls_t polls;
  static outcome_t samples[N_POLLS];
  outcome_t outcome;
  uint64_t alone_ms;
  uint64_t began;

  open_polls(&polls, samples);
  polls.is_measured = 1;
  answer_for(&polls, 4000);
  alone_ms = polls.most_ms;
  CHECK(polls.n_came > 150);
  began = polls.road.n_passed;
  outcome_of(&outcome, large_pass(&polls.road));
  while (outcome.n_done == 0 && polls.road.n_passed - began < 60000)
    answer_for(&polls, PERIOD_MS);
  CHECK_INT(outcome.status, TNK_OK);
  printf("# polls came at most %llu ms late, alone %llu; the pass took %llu\n",
         (unsigned long long)polls.most_ms, (unsigned long long)alone_ms,
         (unsigned long long)(polls.road.n_passed - began));
  CHECK(polls.most_ms <= alone_ms + 100);
  /* The polls take little of the rate. Over HTTP/2 without TLS training goes
   * that way too, and what bounds it is the window that the server grants. */
  if (getenv("TNK_TEST_HTTP") == NULL)
    CHECK((polls.road.n_passed - began) * 2500 <
          n_pass_bytes(&polls.road) / 10 * 11);
  CHECK(road_counts(&polls.road)->most_queued[0] <= 65536);
  outcome_drop(&outcome);
  road_tell(&polls.road, "reset");
  tnk_sampling_close(polls.road.script.sampling, NULL, NULL);
  road_settle(&polls.road);
  outcome_drop_all(samples, N_POLLS);
  road_close(&polls.road);
}

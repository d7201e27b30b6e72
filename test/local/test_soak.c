/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "local/fast.h"
#include "lib/io/http/client.h"
#include "tools/local/call/state.h"
#include "tls_peer.h"
#include "support/test.h"
#include "tnk/tnk.h"

/*
 * Very many samples while a part of all requests goes wrong: each promise
 * settles once, each sample is run once, and nothing piles up; over HTTP/1.1,
 * and over HTTP/2 and TLS. How many is in TNK_TEST_SOAK; without it few.
 * `.ci/run` does many.
 */

enum {
  IN_FLIGHT = 200,
  N_DEFAULT = 4000,
  SPEED = 500,
  /* A sample that is not paid for pauses for up to an hour, in which the others
   * go on; its result must not have given way meanwhile. */
  MAX_RESULTS = 32768,
  /* Idle connections are closed within this time of the client's clock. */
  REST_MS = 600000,
  BLOCKS_A_CONNECTION = 200,
  /* Before these the server still fills its store of results. */
  N_STEADY = 80000
};

typedef struct {
  uv_loop_t uv;
  local_faults_t *faults;
  local_server_t *server;
  tnk_service_t *service;
  tnk_sampling_t *sampling;
  fast_clock_t clock;
  tls_kit_t *tls;   /* NULL: the server has none */
  unsigned percent; /* of the requests go wrong */
  size_t n_samples;
  size_t n_started;
  size_t n_settled;
  size_t n_rejected;
  size_t n_unpaid;  /* of them: 402 for more than an hour of flying time */
  size_t n_wrong;   /* results of another request */
  uint8_t *settled; /* for each sample */
} soak_t;

typedef struct {
  soak_t *soak;
  size_t i;
} one_t;

/* ---- One sample ---- */

static int32_t length_of(size_t i) {
  return 1 + (int32_t)(i % 3);
}

static void on_sample(tnk_promise_t *promise, int status, void *user) {
  one_t *one = user;
  soak_t *soak = one->soak;
  size_t n = 0;

  CHECK_INT(soak->settled[one->i]++, 0);
  soak->n_settled++;
  if (status != TNK_OK) {
    soak->n_rejected++;
    soak->n_unpaid += status == TNK_EBILLING;
    if (status != TNK_EBILLING && status != TNK_EPROTO &&
        status != TNK_ETOOBIG && status != TNK_ENOTFOUND)
      test_fail(__FILE__, __LINE__, "%s", tnk_promise_text(promise));
  } else {
    const tnk_samples_t *samples = tnk_promise_samples(promise);
    tnk_samples_tokens(samples, 0, &n);
    /* The model may end the text before. */
    if (tnk_samples_stop_reason(samples, 0) == TNK_STOP_LENGTH ||
        (int32_t)n > length_of(one->i))
      soak->n_wrong += (int32_t)n != length_of(one->i);
  }
  free(one);
}

static void start_one(soak_t *soak) {
  static const int32_t token = ' ';
  tnk_chunk_t chunk = tnk_chunk_text(&token, 1);
  tnk_model_input_t prompt = {.chunks = &chunk, .n_chunks = 1};
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  one_t *one = malloc(sizeof(*one));

  CHECK(one != NULL);
  *one = (one_t){soak, soak->n_started++};
  params.max_tokens = length_of(one->i);
  params.seed = (int64_t)one->i;
  tnk_then(tnk_sampling_sample(soak->sampling, &prompt, &params, NULL),
           on_sample, one);
}

/* ---- Both ends ---- */

static void open_soak(soak_t *soak, const char *faults) {
  local_options_t server = LOCAL_OPTIONS_INIT;
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_sampling_options_t sampler = TNK_SAMPLING_OPTIONS_INIT;
  tnk_promise_t *promise;
  char why[512] = "";
  char url[64];

  CHECK_INT(uv_loop_init(&soak->uv), 0);
  soak->faults = local_faults_new(test_allocator());
  CHECK(soak->faults != NULL);
  server.faults = soak->faults;
  server.max_results = MAX_RESULTS;
  server.hold_ms = 80; /* of the 90 that a poll may take */
  if (soak->tls != NULL) {
    server.tls_cert = options.ca_file = soak->tls->cert;
    server.tls_key = soak->tls->key;
  }
  CHECK_INT(local_server_open(&soak->server, &soak->uv, &server), TNK_OK);
  snprintf(url, sizeof(url), "http%s://127.0.0.1:%d",
           soak->tls != NULL ? "s" : "", local_server_port(soak->server));
  options.base_url = url;
  options.api_key = "tml-test";
  options.allocator = test_allocator();
  if (tnk_service_open(&soak->service, &soak->uv, &options, why, sizeof(why)) !=
      TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", why);
  sampler.base_model = "tnk/byte-lm";
  promise = tnk_service_create_sampling(soak->service, &sampler);
  CHECK_INT(tnk_wait(promise), TNK_OK);
  soak->sampling = tnk_promise_sampling(promise);
  tnk_promise_unref(promise);
  fast_start(&soak->clock, &soak->uv, soak->service, SPEED);
  if (local_faults_set(soak->faults, faults, why, sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", why);
}

static void close_soak(soak_t *soak) {
  fast_stop(&soak->clock);
  tnk_service_close(soak->service, NULL, NULL);
  uv_run(&soak->uv, UV_RUN_NOWAIT);
  local_server_close(soak->server, NULL, NULL);
  uv_run(&soak->uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&soak->uv), 0);
  local_faults_free(soak->faults);
}

static long rss_kib(void) {
  FILE *file = fopen("/proc/self/statm", "r");
  long total = 0;
  long resident = 0;

  if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2)
    test_skip("no /proc/self/statm");
  fclose(file);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static size_t n_descriptors(void) {
  DIR *dir = opendir("/proc/self/fd");
  size_t n = 0;

  if (dir == NULL)
    test_skip("no /proc/self/fd");
  while (readdir(dir) != NULL)
    n++;
  closedir(dir);
  return n;
}

static void run_until(soak_t *soak, size_t n) {
  while (soak->n_settled < n) {
    while (soak->n_started < soak->n_samples &&
           soak->n_started - soak->n_settled < IN_FLIGHT)
      start_one(soak);
    uv_run(&soak->uv, UV_RUN_ONCE);
  }
}

/*
 * The fewest blocks while no sample is in flight and idle connections close.
 * While samples run, the number depends on the moment: each connection of
 * HTTP/2 has more than a hundred, and their number goes up and down.
 */
static size_t n_blocks_at_rest(soak_t *soak) {
  const tnk__context_t *context = &soak->service->root.context;
  size_t fewest = SIZE_MAX;
  uint64_t end;

  while (soak->n_settled < soak->n_started)
    uv_run(&soak->uv, UV_RUN_ONCE);
  end = context->fake_now + REST_MS;
  while (context->fake_now < end) {
    const size_t n = test_alloc_live();

    fewest = n < fewest ? n : fewest;
    uv_run(&soak->uv, UV_RUN_ONCE);
  }
  return fewest;
}

/* Those that can end a sample, or give it the result of another. */
static uint64_t n_fatal_faults(const soak_t *soak) {
  static const char *const names[] = {
      "404",          "bad_json",         "bad_proto", "wrong_type",
      "other_answer", "duplicate_header", "oversized"};
  uint64_t n = 0;

  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
    n += local_faults_count(soak->faults, names[i]);
  return n;
}

static void check_counts(const soak_t *soak, uint64_t n_made) {
  uint64_t n_submitted;
  tnk_stats_t stats = TNK_STATS_INIT;

  tnk_service_stats(&stats, soak->service);
  printf("# %zu samples, %llu faults, %zu rejected, %zu mistaken, "
         "%llu requests, %llu repeats, %llu resubmits after %llu of 410\n",
         soak->n_settled,
         (unsigned long long)local_faults_count(soak->faults, NULL),
         soak->n_rejected, soak->n_wrong, (unsigned long long)stats.n_requests,
         (unsigned long long)stats.n_retries,
         (unsigned long long)stats.n_resubmits,
         (unsigned long long)local_faults_count(soak->faults, "410"));
  /* None is lost, none comes twice. */
  CHECK_INT(soak->n_settled, soak->n_samples);
  for (size_t i = 0; i < soak->n_samples; i++)
    CHECK_INT(soak->settled[i], 1);
  CHECK_INT(stats.n_double_settles, 0);
  CHECK_INT(stats.n_pending, 0);
  /* What is rejected, a fault has rejected. */
  CHECK(soak->n_rejected - soak->n_unpaid + soak->n_wrong <=
        n_fatal_faults(soak));
  CHECK(soak->n_wrong <= local_faults_count(soak->faults, "other_answer"));
  /* Each submission is run once, whatever became of its answer; only the
   * unpaid ones may not have got that far. */
  n_submitted = soak->n_samples + stats.n_resubmits;
  CHECK(n_made <= n_submitted);
  CHECK(n_made >= n_submitted - soak->n_unpaid);
  CHECK(stats.n_resubmits <= local_faults_count(soak->faults, "410"));
  CHECK(local_faults_count(soak->faults, NULL) >
        stats.n_requests * soak->percent / 200);
}

/* Sanitizers keep freed memory for a while. */
static int can_measure_memory(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return 0;
#else
  return 1;
#endif
#else
  return 1;
#endif
}

static void run_soak(soak_t *soak) {
  const char *wish = getenv("TNK_TEST_SOAK");
  uint64_t n_made;
  size_t n_blocks[2];
  long kib[2];
  char faults[32];

  snprintf(faults, sizeof(faults), "seed=1,all=%u%%", soak->percent);
  soak->n_samples = wish != NULL ? (size_t)strtoul(wish, NULL, 10) : N_DEFAULT;
  soak->settled = calloc(soak->n_samples, 1);
  CHECK(soak->settled != NULL);
  open_soak(soak, faults);
  n_made = soak->server->n_made;
  for (size_t i = 0; i < 2; i++) {
    run_until(soak, soak->n_samples * (i + 1) / 2);
    kib[i] = rss_kib();
    n_blocks[i] = n_blocks_at_rest(soak);
  }
  check_counts(soak, soak->server->n_made - n_made);
  printf("# at half and at the end: %ld and %ld KiB, %zu and %zu blocks\n",
         kib[0], kib[1], n_blocks[0], n_blocks[1]);
  /* The second rest may keep one connection more for its heartbeats. */
  CHECK(n_blocks[1] <= n_blocks[0] + BLOCKS_A_CONNECTION);
  if (can_measure_memory() && soak->n_samples >= N_STEADY)
    CHECK(kib[1] <= kib[0] + kib[0] / 50 + 1024);
}

static void end_soak(soak_t *soak, size_t n_open) {
  close_soak(soak);
  CHECK_INT(n_descriptors(), n_open);
  free(soak->settled);
}

TEST_LIMIT(S0_3_soak_with_a_tenth_of_faults, 100) {
  soak_t soak = {.percent = 10};
  const size_t n_open = n_descriptors();

  run_soak(&soak);
  end_soak(&soak, n_open);
}

TEST_LIMIT(S0_3_soak_over_HTTP_2_and_TLS_with_a_twentieth_of_faults, 100) {
  tls_kit_t tls;
  soak_t soak = {.tls = &tls, .percent = 5};
  tnk_stats_t stats = TNK_STATS_INIT;
  const size_t n_open = n_descriptors();

  tls_kit_open(&tls, NULL);
  run_soak(&soak);
  tnk_service_stats(&stats, soak.service);
  printf("# %u connections\n", stats.max_connections);
  /* That it was HTTP/2: of the other one, each poll has a connection. */
  if (tnk__http2_library() != NULL)
    CHECK(stats.max_connections < IN_FLIGHT / 2);
  end_soak(&soak, n_open);
  tls_kit_close(&tls);
}

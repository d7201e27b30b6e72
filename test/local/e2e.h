/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_LOCAL_E2E_H
#define TNK_TEST_LOCAL_E2E_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/api/service.h"
#include "support/test.h"
#include "tls_peer.h"
#include "tnk/tnk.h"
#include "tools/local/server.h"

/*
 * The library and the local server on one loop, in real time. What arrives at
 * the server is written down.
 *
 * TNK_TEST_WIRE says what is between them: "http2" is HTTP/2 without TLS, "tls"
 * TLS and what both prefer, "tls-1.1" HTTP/1.1 over it; else HTTP/1.1.
 */
enum { E2E_MAX_SEEN = 60000 };

typedef struct {
  char call[32];
  int64_t seq;
  int status; /* of the answer; 0 while there is none */
} e2e_seen_t;

typedef struct {
  uv_loop_t uv;
  local_server_t *server;
  tnk_service_t *service;
  tnk_training_t *training;
  e2e_seen_t *seen;
  size_t n_seen;
  size_t n_seen_h2; /* that ever came by HTTP/2 */
  uint64_t first_n; /* the server's number of seen[0] */
  const char *wire; /* as above; "": plain */
  tls_kit_t tls;    /* where it is TLS */
  int n_closed;
  local_faults_t *faults;      /* none at first, see e2e_faults() */
  int n_losses;                /* of the server's memory, by what it seemed */
  int heeds_losses;            /* does not train on by itself then */
  int n_ended;                 /* sessions that the server has ended */
  tnk_recovery_cb on_recovery; /* NULL: recovery is off */
  void *recovery_user;
} e2e_t;

static inline void e2e_on_request(void *user, const local_seen_t *seen) {
  e2e_t *e2e = user;
  const char *slash = strrchr(seen->path, '/');
  size_t i;

  if (seen->status != 0) {
    for (i = 0; i < e2e->n_seen; i++)
      if (e2e->first_n + i == seen->n)
        e2e->seen[i].status = seen->status;
    return;
  }
  CHECK(e2e->n_seen < E2E_MAX_SEEN);
  e2e->n_seen_h2 += strcmp(seen->version, "HTTP/2") == 0;
  if (e2e->n_seen == 0)
    e2e->first_n = seen->n;
  i = e2e->n_seen++;
  snprintf(e2e->seen[i].call, sizeof(e2e->seen[i].call), "%s",
           slash != NULL ? slash + 1 : seen->path);
  e2e->seen[i].seq = seen->seq_id;
  e2e->seen[i].status = 0;
}

/* From now on these go wrong. */
static inline void e2e_faults(e2e_t *e2e, const char *text) {
  char why[512] = "";

  if (local_faults_set(e2e->faults, text, why, sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", why);
}

static inline void e2e_closed(void *user) {
  ((e2e_t *)user)->n_closed++;
}

static inline void e2e_start_server(e2e_t *e2e, local_options_t options) {
  char why[256] = "";

  if (strncmp(e2e->wire, "tls", 3) == 0) {
    options.tls_cert = e2e->tls.cert;
    options.tls_key = e2e->tls.key;
  }
  options.on_request = e2e_on_request;
  options.faults = e2e->faults;
  options.user = e2e;
  options.why = why;
  options.n_why = sizeof(why);
  e2e->n_seen = 0;
  if (local_server_open(&e2e->server, &e2e->uv, &options) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", why);
}

static inline void e2e_stop_server(e2e_t *e2e) {
  int n = e2e->n_closed;

  local_server_close(e2e->server, e2e_closed, e2e);
  while (e2e->n_closed == n)
    uv_run(&e2e->uv, UV_RUN_ONCE);
}

/* Faults make a server seem to have lost its memory that has not: the program
 * knows better. */
static inline void e2e_on_state(const char *client, tnk_queue_state_t state,
                                const char *reason, void *user) {
  e2e_t *e2e = user;

  (void)client;
  (void)reason;
  e2e->n_ended += state == TNK_QUEUE_SESSION_LOST;
  if (state != TNK_QUEUE_MEMORY_LOST)
    return;
  e2e->n_losses++;
  if (!e2e->heeds_losses)
    CHECK_INT(tnk_training_go_on(e2e->training), TNK_OK);
}

static inline void e2e_start_client(e2e_t *e2e) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  char url[64];
  char text[256];

  snprintf(url, sizeof(url), "http%s://127.0.0.1:%d",
           strncmp(e2e->wire, "tls", 3) == 0 ? "s" : "",
           local_server_port(e2e->server));
  if (strncmp(e2e->wire, "tls", 3) == 0)
    options.ca_file = e2e->tls.cert;
  if (strcmp(e2e->wire, "http2") == 0)
    options.http_version = TNK_HTTP_2_PRIOR_KNOWLEDGE;
  else if (strcmp(e2e->wire, "tls") != 0)
    options.http_version = TNK_HTTP_1_1;
  options.base_url = url;
  options.on_queue_state = e2e_on_state;
  options.queue_state_user = e2e;
  options.recovery = e2e->on_recovery != NULL ? TNK_YES : TNK_NO;
  options.on_recovery = e2e->on_recovery;
  options.recovery_user = e2e->recovery_user;
  options.api_key = "tml-test";
  options.allocator = test_allocator();
  if (tnk_service_open(&e2e->service, &e2e->uv, &options, text, sizeof(text)) !=
      TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", text);
}

static inline void e2e_stop_client(e2e_t *e2e) {
  int n = e2e->n_closed;
  tnk_stats_t stats = TNK_STATS_INIT;

  tnk_service_stats(&stats, e2e->service);
  CHECK_INT(stats.n_double_settles, 0);
  tnk_service_close(e2e->service, e2e_closed, e2e);
  while (e2e->n_closed == n)
    uv_run(&e2e->uv, UV_RUN_ONCE);
}

static inline void e2e_open(e2e_t *e2e, local_options_t options) {
  const char *wire = getenv("TNK_TEST_WIRE");

  memset(e2e, 0, sizeof(*e2e));
  e2e->wire = wire != NULL ? wire : "";
  if (strncmp(e2e->wire, "tls", 3) == 0)
    tls_kit_open(&e2e->tls, NULL);
  e2e->seen = calloc(E2E_MAX_SEEN, sizeof(*e2e->seen));
  CHECK(e2e->seen != NULL);
  e2e->faults = local_faults_new(test_allocator());
  CHECK(e2e->faults != NULL);
  CHECK_INT(uv_loop_init(&e2e->uv), 0);
  e2e_start_server(e2e, options);
  e2e_start_client(e2e);
}

static inline void e2e_close(e2e_t *e2e) {
  int has_h2 = strcmp(e2e->wire, "tls") == 0 || strcmp(e2e->wire, "http2") == 0;

  e2e_stop_client(e2e);
  e2e_stop_server(e2e);
  CHECK_INT(e2e->n_seen_h2 > 0, has_h2);
  if (strncmp(e2e->wire, "tls", 3) == 0)
    tls_kit_close(&e2e->tls);
  uv_run(&e2e->uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&e2e->uv), 0);
  local_faults_free(e2e->faults);
  free(e2e->seen);
}

/* Wait; the promise must resolve, and is handed on. */
static inline tnk_promise_t *e2e_ok(tnk_promise_t *promise) {
  CHECK(promise != NULL);
  if (tnk_wait(promise) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", tnk_promise_text(promise));
  return promise;
}

static inline void e2e_done(tnk_promise_t *promise) {
  tnk_promise_unref(e2e_ok(promise));
}

/* What comes of it is the training client from now on. */
static inline tnk_training_t *e2e_client(e2e_t *e2e, tnk_promise_t *promise) {
  e2e->training = tnk_promise_training(e2e_ok(promise));
  tnk_promise_unref(promise);
  return e2e->training;
}

static inline tnk_training_t *e2e_train(e2e_t *e2e, uint32_t rank) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;

  options.base_model = "tnk/byte-lm";
  options.rank = rank;
  options.seed = 7;
  return e2e_client(e2e, tnk_service_create_lora(e2e->service, &options));
}

/* ---- Samples ---- */

/* A sampler with the weights as they are now. */
static inline tnk_sampling_t *e2e_snapshot(e2e_t *e2e) {
  tnk_promise_t *promise = e2e_ok(tnk_training_save_weights_and_get_sampling(
      e2e->training, TNK_SAMPLING_SNAPSHOT, NULL));
  tnk_sampling_t *sampling = tnk_promise_sampling(promise);

  tnk_promise_unref(promise);
  return sampling;
}

/* `options` may be NULL. */
static inline tnk_promise_t *e2e_sample(tnk_sampling_t *sampling,
                                        int32_t max_tokens, int64_t seed,
                                        const tnk_sample_options_t *options) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  static const int32_t tokens[] = {'t', 'h', 'e', ' '};
  tnk_chunk_t chunk = tnk_chunk_text(tokens, 4);
  tnk_model_input_t prompt = {.chunks = &chunk, .n_chunks = 1};

  params.max_tokens = max_tokens;
  params.seed = seed;
  return tnk_sampling_sample(sampling, &prompt, &params, options);
}

/* How many of a crowd have ended. */
typedef struct {
  int n_settled;
  int n_failed;
} e2e_tally_t;

static inline void e2e_tally(tnk_promise_t *promise, int status, void *user) {
  e2e_tally_t *tally = user;

  tally->n_settled++;
  if (status != TNK_OK && tally->n_failed++ == 0)
    printf("# %s\n", tnk_promise_text(promise));
}

static inline void e2e_until_settled(e2e_t *e2e, const e2e_tally_t *tally,
                                     int n) {
  while (tally->n_settled < n)
    uv_run(&e2e->uv, UV_RUN_ONCE);
}

/* ---- Data: a run of one sentence ---- */

enum { E2E_LENGTH = 24 };

typedef struct {
  int32_t tokens[E2E_LENGTH];
  int64_t targets[E2E_LENGTH];
  tnk_chunk_t chunk;
  tnk_loss_input_t input;
  tnk_datum_t datum;
} e2e_example_t;

static inline const tnk_datum_t *e2e_datum(e2e_example_t *ex, size_t start) {
  static const char text[] =
      "the quick brown fox jumps over the lazy dog and runs; ";

  for (size_t i = 0; i < E2E_LENGTH; i++) {
    ex->tokens[i] = text[(start + i) % (sizeof(text) - 1)];
    ex->targets[i] = text[(start + i + 1) % (sizeof(text) - 1)];
  }
  ex->chunk = tnk_chunk_text(ex->tokens, E2E_LENGTH);
  ex->input = (tnk_loss_input_t){"target_tokens",
                                 tnk_tensor_i64(ex->targets, E2E_LENGTH)};
  ex->datum = (tnk_datum_t){.input = {.chunks = &ex->chunk, .n_chunks = 1}};
  ex->datum.loss_inputs = &ex->input;
  ex->datum.n_loss_inputs = 1;
  return &ex->datum;
}

/* One pass over the example that begins at `start`. */
static inline tnk_promise_t *e2e_pass(e2e_t *e2e, size_t start) {
  e2e_example_t ex;

  return tnk_training_forward_backward(e2e->training, e2e_datum(&ex, start), 1,
                                       NULL);
}

static inline tnk_promise_t *e2e_step(e2e_t *e2e) {
  tnk_optim_t step = TNK_OPTIM_INIT;

  step.learning_rate = 0.01;
  return tnk_training_optim_step(e2e->training, &step);
}

static inline double e2e_loss(tnk_promise_t *promise) {
  double loss = tnk_pass_loss(tnk_promise_pass(e2e_ok(promise)));

  tnk_promise_unref(promise);
  return loss;
}

#endif

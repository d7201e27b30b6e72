/* SPDX-License-Identifier: MIT */
#include "../local/fast.h"
#include "rig.h"

/* Other weights by POST /tnk/sampler, and who waits meanwhile. */

static const char weights[] = "{\"base_model\":\"tnk/byte-lm\"}";

static int ask_weights(rig_t *rig, const char *body) {
  return peer_end(rig, ask(rig, "/tnk/sampler", body));
}

TEST_LIMIT(other_weights_are_asked_for, 20) {
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, NEVER);
  peer = ask(&rig, "/tnk/sampler", weights);
  until_closed(&rig, peer);
  CHECK(strstr(peer->got, "{\"version\":1}") != NULL);
  CHECK_INT(peer_end(&rig, peer), 200);
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  rig_close(&rig);
}

/* A request that comes before the first model waits for it: until it is there
 * or has failed, until the client leaves, and for a minute at most. */
TEST_LIMIT(a_request_waits_for_the_first_model, 60) {
  static const struct {
    const char *fault;
    int status;
  } cases[] = {{"", 200}, {"404/create_sampling_session", 503}};

  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
    tnk_promise_t *promise;
    peer_t *peers[3];
    rig_t rig;

    rig_open(&rig, NEVER);
    e2e_faults(&rig.e2e, cases[i].fault);
    options.base_model = "tnk/byte-lm";
    promise = tnk_gateway_use(rig.gateway, &options);
    for (int k = 0; k < 3; k++)
      peers[k] = chat(&rig);
    while (tnk_promise_state(promise) == TNK_PENDING ||
           rig.gateway->n_jobs + rig.gateway->stats.n_failed +
                   rig.gateway->stats.n_answered <
               3)
      uv_run(&rig.e2e.uv, UV_RUN_ONCE);
    for (int k = 0; k < 3; k++)
      CHECK_INT(peer_end(&rig, peers[k]), cases[i].status);
    CHECK_INT(rig.gateway->n_jobs, 0);
    tnk_promise_unref(promise);
    rig_close(&rig);
  }
}

/* Holds a request; the model never comes. */
static peer_t *hold(rig_t *rig) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  peer_t *peer;

  rig_open(rig, NEVER);
  e2e_faults(&rig->e2e, "503/create_sampling_session");
  options.base_model = "tnk/byte-lm";
  tnk_promise_unref(tnk_gateway_use(rig->gateway, &options));
  peer = chat(rig);
  while (rig->gateway->n_jobs == 0)
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
  return peer;
}

TEST_LIMIT(a_request_waits_for_the_first_model_a_minute_at_most, 20) {
  peer_t *peer;
  rig_t rig;

  peer = hold(&rig);
  tnk__gw_jobs_keep(rig.gateway, uv_now(&rig.e2e.uv) + 50000);
  CHECK_INT(rig.gateway->n_jobs, 1);
  tnk__gw_jobs_keep(rig.gateway, uv_now(&rig.e2e.uv) + 60000);
  CHECK_INT(rig.gateway->n_jobs, 0);
  CHECK_INT(peer_end(&rig, peer), 503);
  rig_close(&rig);
}

TEST_LIMIT(a_client_can_leave_while_it_waits_for_the_first_model, 20) {
  peer_t *peer;
  rig_t rig;

  peer = hold(&rig);
  peer_close(peer);
  while (rig.gateway->n_jobs > 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(peer_end(&rig, peer), 0);
  rig_close(&rig);
}

TEST_LIMIT(closing_ends_who_waits_for_the_first_model, 20) {
  peer_t *peer;
  rig_t rig;

  peer = hold(&rig);
  rig_close(&rig);
  free(peer);
}

/* What is wrong is the client's, the service's, or passes; those of before stay
 * in use. */
TEST_LIMIT(weights_that_do_not_come_change_nothing, 60) {
  static const struct {
    const char *fault;
    int status;
    const char *text;
  } cases[] = {
      {"401/create_sampling_session", 502, "\"message\":\"the service: "},
      {"403/create_sampling_session", 502, "\"message\":\"the service: "},
      {"404/create_sampling_session", 404, "\"message\":\"the service: "},
      {"422/create_sampling_session", 400, "\"message\":\"the service: "},
      {"402/create_sampling_session", 402, "\"message\":\"the service: "}};
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;
  rig_t rig;

  rig_open(&rig, 0);
  for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
    peer_t *peer;

    e2e_faults(&rig.e2e, cases[i].fault);
    peer = ask(&rig, "/tnk/sampler", weights);
    until_closed(&rig, peer);
    CHECK(strstr(peer->got, cases[i].text) != NULL);
    CHECK_INT(peer_end(&rig, peer), cases[i].status);
    CHECK_INT(tnk_gateway_stats(&stats, rig.gateway), TNK_OK);
    CHECK_INT(stats.version, 1);
    CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  }
  e2e_faults(&rig.e2e, "");
  CHECK_INT(ask_weights(&rig, "{\"base_model\":1}"), 400);
  CHECK_INT(ask_weights(&rig, "[]"), 400);
  CHECK_INT(ask_weights(&rig, "{}"), 400);
  CHECK_INT(ask_weights(&rig, weights), 200);
  CHECK_INT(tnk_gateway_stats(&stats, rig.gateway), TNK_OK);
  CHECK(stats.version > 1);
  rig_close(&rig);
}

/* The gateway answers 502 when the library has given the service up. */
TEST_LIMIT(a_service_that_is_gone_is_told, 60) {
  fast_clock_t clock;
  rig_t rig;

  rig_open(&rig, 0);
  fast_start(&clock, &rig.e2e.uv, rig.e2e.service, 1000);
  e2e_faults(&rig.e2e, "503/create_sampling_session");
  CHECK_INT(ask_weights(&rig, weights), 502);
  e2e_faults(&rig.e2e, "");
  CHECK_INT(peer_end(&rig, chat(&rig)), 200);
  fast_stop(&clock);
  rig_close(&rig);
}

/* Until the weights are being made. */
static peer_t *ask_and_wait(rig_t *rig) {
  peer_t *peer;

  /* Those of before are in use when something was served with them. */
  CHECK_INT(peer_end(rig, chat(rig)), 200);
  CHECK(tnk__list_empty(&rig->gateway->uses));
  peer = ask(rig, "/tnk/sampler", weights);
  while (tnk__list_empty(&rig->gateway->uses))
    uv_run(&rig->e2e.uv, UV_RUN_ONCE);
  return peer;
}

/* Who hangs up has asked all the same. */
TEST_LIMIT(weights_come_although_nobody_waits, 20) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, 0);
  peer = ask_and_wait(&rig);
  peer_close(peer);
  while (!tnk__list_empty(&rig.gateway->uses))
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(peer_end(&rig, peer), 0);
  CHECK_INT(tnk_gateway_stats(&stats, rig.gateway), TNK_OK);
  CHECK_INT(stats.version, 2);
  rig_close(&rig);
}

TEST_LIMIT(closing_ends_who_waits_for_weights, 20) {
  peer_t *peer;
  rig_t rig;

  rig_open(&rig, 0);
  peer = ask_and_wait(&rig);
  tnk_gateway_close(rig.gateway, on_closed, &rig);
  while (rig.n_closed == 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  CHECK_INT(peer_end(&rig, peer), 0);
  e2e_close(&rig.e2e);
}

TEST_LIMIT(each_allocation_fails_in_turn, 60) {
  tnk_gateway_stats_t stats = TNK_GATEWAY_STATS_INIT;
  int n_refused = 0;
  int did_fail = 1;
  rig_t rig;

  rig_open(&rig, 0);
  for (long n = 0; did_fail; n++) {
    peer_t *peer = ask(&rig, "/tnk/sampler", weights);
    int status;

    test_alloc_fail_at(n);
    status = peer_end(&rig, peer);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    if (!did_fail)
      CHECK_INT(status, 200);
    n_refused += status != 200;
    CHECK(tnk__list_empty(&rig.gateway->uses));
  }
  CHECK(n_refused > 0);
  CHECK_INT(tnk_gateway_stats(&stats, rig.gateway), TNK_OK);
  CHECK_INT(stats.version, rig.gateway->version);
  rig_close(&rig);
}

/* ---- Keep-alives ---- */

/* By a clock of its own; the gateway's timer does not fire within the test.
 * What is no stream gets its head after three times the interval. */
TEST_LIMIT(a_stream_hears_something_in_time, 20) {
  enum { HOUR = 3600000, N_LOOKS = 40 };
  static const char body[] =
      "{\"stream\":true,\"max_tokens\":3,\"messages\":[{\"role\":\"user\","
      "\"content\":\"hi\"}]}";
  tnk__gw_job_t *job, *whole;
  uint64_t first, last, began = 0;
  peer_t *other;
  peer_t *peer;
  int n = 0;
  rig_t rig;

  rig_open_with(&rig, LONG_MS, NULL, 0, HOUR);
  peer = ask(&rig, "/v1/chat/completions", body);
  until_sampled(&rig, 1);
  other = chat(&rig);
  until_sampled(&rig, 2);
  job = tnk__container_of(rig.gateway->jobs.next, tnk__gw_job_t, link);
  CHECK(job->ask.is_stream);
  whole = tnk__container_of(job->link.next, tnk__gw_job_t, link);
  last = first = whole->told_ms;
  job->told_ms = first;
  for (uint64_t now = last, i = 0; i < N_LOOKS;
       now += rig.gateway->keep_tick_ms, i++) {
    CHECK(now - last <= HOUR);
    tnk__gw_jobs_keep(rig.gateway, now);
    if (whole->is_begun && began == 0)
      began = now;
    if (job->told_ms == last)
      continue;
    /* Not more often than that needs. */
    CHECK(now - last > HOUR / 2);
    last = now;
    /* The first of all is the head. */
    if (n++ == 0)
      until_got(&rig, peer, "\r\n\r\n", 1);
    else
      until_got(&rig, peer, ": keep-alive\n\n", n - 1);
  }
  CHECK_INT(n, (N_LOOKS - 1) / 3);
  CHECK(began - first > (uint64_t)2 * HOUR);
  CHECK(began - first <= (uint64_t)3 * HOUR);
  until_got(&rig, other, "\r\n\r\n", 1);
  peer_close(peer);
  peer_close(other);
  CHECK_INT(peer_end(&rig, peer), 200);
  CHECK_INT(peer_end(&rig, other), 200);
  rig_close(&rig);
}

/* SPDX-License-Identifier: MIT */
#include "task/script.h"

/*
 * The sentence for every state an operation can wait in. Each test brings an
 * operation into one state and compares the whole sentence; time stands still
 * but for what the test adds.
 */

static char sentence[1024];

static const char *explain(const tnk_promise_t *promise) {
  size_t n = tnk_promise_explain(promise, sentence, sizeof(sentence));

  CHECK_INT(n, strlen(sentence));
  CHECK(strstr(sentence, "canary") == NULL);
  return sentence;
}

/* Turn the loop until the sentence begins like that. */
static void explain_until(script_t *script, const tnk_promise_t *promise,
                          const char *begin) {
  for (int i = 0; i < 1000; i++) {
    if (strncmp(explain(promise), begin, strlen(begin)) == 0)
      return;
    mock_turns(script->mock, 1);
  }
  CHECK_STR(sentence, begin);
}

static void hold(script_t *script, const char *path) {
  mock_on(script->mock, NULL, path, mock_hold, NULL);
}

static mock_request_t *last(script_t *script, const char *path) {
  size_t n = mock_count(script->mock, NULL, path);

  CHECK(n > 0);
  return mock_find(script->mock, NULL, path, n - 1);
}

/* The end of a test: whatever is pending is closed with the service. */
static void end(script_t *script, tnk_promise_t **promises, size_t n) {
  for (size_t i = 0; i < n; i++)
    tnk_then(promises[i], NULL, NULL);
  script_close(script);
}

#define FB "/api/v1/forward_backward"
#define STEP "/api/v1/optim_step"
#define POLL "/api/v1/retrieve_future"
#define SAMPLE "/api/v1/asample"

/* ---- The session ---- */

TEST(explain_start_up_and_requests) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;
  tnk_promise_t *p;
  script_t script;

  script_open(&script);
  hold(&script, "/api/v1/client/config");
  hold(&script, "/api/v1/create_model");
  options.base_model = "base";
  p = tnk_service_create_lora(script.service, &options);
  script_turns(&script);
  script_advance(&script, 1500);
  CHECK_STR(explain(p),
            "create_lora: waits for the session to be set up; client/config "
            "waits for the server's answer, attempt 1, since 1.5 s");
  mock_release(script.mock, 200, "{}");
  script_turns(&script);
  CHECK_STR(explain(p), "create_lora: waits for the server's answer, attempt "
                        "1, since 0 ms");
  hold(&script, POLL);
  mock_release(script.mock, 200, "{\"request_id\":\"create_model:0:0\"}");
  script_turns(&script);
  script_advance(&script, 10000);
  CHECK_STR(explain(p),
            "create_lora: was accepted 10.0 s ago as create_model:0:0; poll 1 "
            "of its result waits for the server's answer, attempt 1, since "
            "10.0 s");
  end(&script, &p, 1);
}

TEST(explain_a_place_in_a_lane) {
  tnk_promise_t *p[19];
  script_t script;

  script_open(&script);
  hold(&script, "/api/v1/healthz");
  for (int i = 0; i < 19; i++)
    p[i] = tnk_service_health(script.service);
  CHECK_STR(explain(p[0]), "healthz: is about to be sent");
  script_turns(&script);
  CHECK_STR(explain(p[3]),
            "healthz: waits for the server's answer, attempt 1, since 0 ms");
  CHECK_STR(explain(p[18]),
            "healthz: waits for one of the 16 slots for requests, with "
            "2 ahead, attempt 1, since 0 ms");
  end(&script, p, 19);
}

TEST(explain_a_connection_and_a_body_on_its_way) {
  tnk_promise_t *p;
  char text[128];
  script_t script;

  script_open(&script);
  hold(&script, "/api/v1/healthz");
  p = tnk_service_health(script.service);
  explain_until(&script, p, "healthz: waits for a connection");
  snprintf(text, sizeof(text),
           "healthz: waits for a connection to 127.0.0.1:%u (1 on the way), "
           "attempt 1, since 0 ms",
           (unsigned)mock_port(script.mock));
  CHECK_STR(explain(p), text);
  script_turns(&script);
  mock_begin(last(&script, "/api/v1/healthz"), 200, "Content-Length: 9\r\n");
  mock_piece(last(&script, "/api/v1/healthz"), "{\"st", 4);
  script_turns(&script);
  CHECK_STR(explain(p), "healthz: receives the server's answer, 4 bytes so "
                        "far, attempt 1, since 0 ms");
  end(&script, &p, 1);
}

/* ---- One call ---- */

TEST(explain_the_pause_before_the_next_attempt) {
  tnk_promise_t *p;
  script_t script;

  script_open_train(&script);
  mock_on(script.mock, NULL, STEP, mock_hold, NULL);
  p = script_step(&script);
  CHECK_STR(explain(p), "optim_step: has its turn and is about to be sent");
  script_turns(&script);
  mock_reply(last(&script, STEP), 503, "Retry-After: 7\r\n", "", 0);
  script_turns(&script);
  CHECK_STR(explain(p), "optim_step: pauses after attempt 1 failed (HTTP 503), "
                        "attempt 2 follows in 7.0 s");
  /* While the loop is late the attempt is due, and not begun. */
  script_late(&script, 7500);
  CHECK_STR(explain(p), "optim_step: pauses after attempt 1 failed (HTTP 503), "
                        "attempt 2 follows in 0 ms");
  script_advance(&script, 0);
  CHECK_STR(explain(p), "optim_step: waits for the server's answer, attempt "
                        "2, since 0 ms; the one before failed (HTTP 503)");
  mock_reply(last(&script, STEP), 402, NULL, "{}", 2);
  script_turns(&script);
  CHECK_STR(explain(p),
            "optim_step: pauses because the service refuses for billing "
            "reasons (HTTP 402), attempt 3 follows in 5.0 s");
  mock_on(script.mock, NULL, STEP, mock_reset, NULL);
  script_advance(&script, 5000);
  /* The connection was kept, so that it went out twice. */
  explain_until(&script, p,
                "optim_step: pauses after attempt 4 failed (connection failed "
                "or was lost), attempt 5 follows in ");
  end(&script, &p, 1);
}

TEST(explain_a_poll_with_the_state_of_the_queue) {
  tnk_promise_t *p;
  script_t script;

  script_open_train(&script);
  hold(&script, POLL);
  p = script_step(&script);
  script_turns(&script);
  script_advance(&script, 20000);
  mock_reply_json(last(&script, POLL), 200,
                  "{\"type\":\"try_again\",\"queue_state\":\"paused_capacity\","
                  "\"queue_state_reason\":\"no\\ngpu\"}");
  script_turns(&script);
  script_advance(&script, 3000);
  CHECK_STR(explain(p),
            "optim_step: was accepted 23.0 s ago as optim_step:1:0; poll 2 of "
            "its result waits for the server's answer, attempt 1, since 3.0 s; "
            "3.0 s ago its queue was paused for lack of capacity (no gpu)");
  mock_reply(last(&script, POLL), 429, "Retry-After: 8\r\n", "{}", 2);
  script_turns(&script);
  CHECK_STR(explain(p),
            "optim_step: was accepted 23.0 s ago as optim_step:1:0; poll 3 of "
            "its result follows in 8.0 s; the last poll failed (HTTP 429); 3.0 "
            "s ago its queue was paused for lack of capacity (no gpu)");
  script_late(&script, 9000);
  CHECK(strstr(explain(p), "poll 3 of its result follows in 0 ms;") != NULL);
  end(&script, &p, 1);
}

TEST(explain_room_for_a_large_result) {
  static const char ready[] =
      "{\"status\":\"complete_metadata\",\"response_payload_size\":900}";
  tnk_promise_t *p[2];
  script_t script;

  script_open(&script);
  script_flags(&script, "{\"inflight_response_bytes_semaphore_size\":100}");
  script_train(&script);
  hold(&script, POLL);
  for (int i = 0; i < 2; i++)
    p[i] = script_step(&script);
  script_turns(&script);
  CHECK_INT(mock_n_held(script.mock), 2);
  mock_release(script.mock, 200, ready);
  script_turns(&script);
  CHECK_STR(explain(p[0]),
            "optim_step: was accepted 0 ms ago as optim_step:1:0; poll 2 of "
            "its result waits for the server's answer, attempt 1, since 0 ms");
  CHECK_STR(explain(p[1]),
            "optim_step: was accepted 0 ms ago as optim_step:2:0; its result "
            "of 900 bytes is ready and waits for room: 900 of the 100 bytes "
            "for results are taken");
  end(&script, p, 2);
}

/* ---- Training ---- */

TEST(explain_the_turn) {
  tnk_promise_t *p[4];
  script_t script;

  script_open_train(&script);
  hold(&script, FB);
  p[0] = script_pass(&script, 1);
  for (int i = 1; i < 4; i++)
    p[i] = script_step(&script);
  script_turns(&script);
  script_advance(&script, 3000);
  CHECK_STR(explain(p[1]),
            "optim_step: waits for its turn behind 1 operation, since 3.0 s; "
            "the first of them, forward_backward, waits for the server's "
            "answer, attempt 1, since 3.0 s");
  CHECK_STR(explain(p[3]),
            "optim_step: waits for its turn behind 3 operations, since 3.0 s; "
            "the first of them, forward_backward, waits for the server's "
            "answer, attempt 1, since 3.0 s");
  tnk_promise_cancel(p[0]);
  CHECK_STR(explain(p[0]), "has failed: forward_backward: canceled; "
                           "it may have been run");
  CHECK_STR(explain(p[1]),
            "optim_step: waits for its turn behind 1 operation, since 3.0 s; "
            "the first of them, forward_backward, is canceled, but its "
            "request may still be accepted");
  end(&script, p, 4);
}

static void open_chunks(script_t *script, const char *flags) {
  script_open(script);
  script_flags(script, flags);
  script_train(script);
  hold(script, POLL);
}

TEST(explain_chunks_one_after_the_other) {
  tnk_promise_t *p;
  script_t script;

  open_chunks(&script, "{\"fwdbwd_max_chunk_len\":1,"
                       "\"parallel_fwdbwd_chunks\":false}");
  hold(&script, FB);
  mock_once(script.mock, "POST", FB, script_accept, &script);
  p = script_pass(&script, 3);
  script_turns(&script);
  CHECK_STR(explain(p),
            "forward_backward: part 2 of 3 (1 accepted, 0 done) waits for the "
            "server's answer, attempt 1, since 0 ms");
  mock_on(script.mock, "POST", FB, script_accept, &script);
  script_accept(last(&script, FB), &script);
  script_turns(&script);
  script_result(mock_find(script.mock, "POST", POLL, 2), NULL);
  script_turns(&script);
  CHECK_STR(explain(p),
            "forward_backward: part 1 of 3 (3 accepted, 1 done) was accepted "
            "0 ms ago as forward_backward:1:1; poll 1 of its result waits for "
            "the server's answer, attempt 1, since 0 ms");
  end(&script, &p, 1);
}

TEST(explain_chunks_side_by_side) {
  tnk_promise_t *p;
  script_t script;

  open_chunks(&script, "{\"fwdbwd_max_chunk_len\":1}");
  hold(&script, FB);
  p = script_pass(&script, 3);
  script_turns(&script);
  /* The first one goes last. */
  CHECK_STR(explain(p),
            "forward_backward: part 2 of 3 (0 accepted, 0 done) waits for the "
            "server's answer, attempt 1, since 0 ms");
  script_accept(mock_find(script.mock, "POST", FB, 0), &script);
  script_accept(mock_find(script.mock, "POST", FB, 1), &script);
  script_turns(&script);
  CHECK_STR(explain(p),
            "forward_backward: part 1 of 3 (2 accepted, 0 done) waits for the "
            "server's answer, attempt 1, since 0 ms");
  end(&script, &p, 1);
}

TEST(explain_the_byte_budget) {
  tnk_training_t *other;
  tnk_promise_t *p[3];
  script_t script;

  script_open(&script);
  script_flags(&script, "{\"fwdbwd_dispatch_bytes_semaphore_size\":1}");
  other = script_train(&script);
  script_train(&script);
  hold(&script, FB);
  p[0] = script_pass(&script, 1);
  script_turns(&script);
  p[1] = tnk_training_forward_backward(other, script_data(1), 1, NULL);
  script_turns(&script);
  script_advance(&script, 200);
  CHECK_STR(explain(p[1]),
            "forward_backward: waits for bytes of the dispatch budget (24 of "
            "1 are taken, 0 ahead of it), since 200 ms");
  end(&script, p, 2);
}

static void block(uv_work_t *work) {
  uv_sem_wait(work->data);
}

static void unblocked(uv_work_t *work, int status) {
  (void)work;
  CHECK_INT(status, 0);
}

TEST(explain_compression) {
  uv_work_t work[4];
  tnk_promise_t *p;
  script_t script;
  uv_sem_t gate;

  CHECK_INT(uv_sem_init(&gate, 0), 0);
  script_open(&script);
  script_flags(&script, "{\"proto_compress_fwdbwd\":true}");
  script_train(&script);
  hold(&script, FB);
  for (int i = 0; i < 4; i++) { /* all of libuv's threads */
    work[i].data = &gate;
    CHECK_INT(uv_queue_work(&script.uv, &work[i], block, unblocked), 0);
  }
  p = script_pass(&script, 1);
  script_turns(&script);
  CHECK(strstr(explain(p), "forward_backward: is being compressed (") ==
        sentence);
  CHECK(strstr(sentence, " bytes), since 0 ms") != NULL);
  for (int i = 0; i < 4; i++)
    uv_sem_post(&gate);
  mock_wait(script.mock, mock_n_requests(script.mock) + 1);
  script_turns(&script);
  CHECK_STR(explain(p), "forward_backward: waits for the server's answer, "
                        "attempt 1, since 0 ms");
  end(&script, &p, 1);
  uv_sem_destroy(&gate);
}

static int loss(tnk_custom_loss_t *io, void *user) {
  tnk_promise_t **p = user;

  CHECK_STR(explain(*p), "forward_backward_custom: has all its results, and "
                         "the caller's function is running");
  io->loss = 1;
  return 0;
}

TEST(explain_a_custom_loss) {
  outcome_t outcome;
  tnk_promise_t *p;
  script_t script;

  script_open_train(&script);
  p = tnk_training_forward_backward_custom(script.training, script_data(1), 1,
                                           loss, &p, NULL);
  script_ok(&script, &outcome, p);
  CHECK_STR(explain(outcome.promise), "has succeeded");
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Samples ---- */

TEST(explain_the_queues_of_samples) {
  tnk_promise_t *p[70];
  script_t script;

  script_open(&script);
  script_sampler(&script);
  hold(&script, SAMPLE);
  for (int i = 0; i < 70; i++)
    p[i] = script_sample(&script);
  CHECK_STR(explain(p[0]), "sample: is about to be submitted");
  mock_turns(script.mock, 60);
  script_advance(&script, 2000);
  CHECK_STR(explain(p[0]),
            "sample: waits for the server's answer, attempt 1, since 2.0 s");
  CHECK_STR(explain(p[69]),
            "sample: waits for one of the 64 slots for submissions, with 5 "
            "ahead of it, since 2.0 s");
  end(&script, p, 70);
}

TEST(explain_samples_under_way_and_their_bytes) {
  tnk_promise_t *p[4];
  script_t script;

  script_open(&script);
  script_sampler(&script);
  tnk__semaphore_set_limit(&script.service->session.limits.sample_running, 3);
  tnk__budget_set_size(&script.service->session.limits.sample_bytes, 1);
  hold(&script, SAMPLE);
  for (int i = 0; i < 4; i++)
    p[i] = script_sample(&script);
  script_turns(&script);
  CHECK_STR(explain(p[2]),
            "sample: waits for bytes of the dispatch budget (20 of 1 are "
            "taken, 1 ahead of it), since 0 ms");
  CHECK_STR(explain(p[3]),
            "sample: waits for one of the 3 slots for samples under way, "
            "with 0 ahead of it, since 0 ms");
  end(&script, p, 4);
}

TEST(explain_a_back_off_and_what_it_leaves) {
  enum { N = 13 };
  tnk_promise_t *p[N];
  script_t script;

  script_open(&script);
  script_sampler(&script);
  hold(&script, SAMPLE);
  for (int i = 0; i < N; i++)
    p[i] = script_sample(&script);
  mock_turns(script.mock, 60);
  for (size_t i = 0; i < N; i++)
    mock_reply(mock_find(script.mock, "POST", SAMPLE, i), 429,
               "Retry-After: 3\r\n", "{}", 2);
  mock_turns(script.mock, 60);
  script_advance(&script, 500);
  CHECK_STR(explain(p[2]), "sample: waits for the end of a back-off, in 2.5 s, "
                           "with 2 ahead of it, since 500 ms");
  script_later(&script, 2500);
  CHECK_STR(explain(p[12]),
            "sample: waits for one of the 10 slots that a recent back-off has "
            "left, with 2 ahead of it, since 3.0 s");
  end(&script, p, N);
}

TEST(explain_a_sample_that_is_submitted_anew) {
  tnk_promise_t *p;
  script_t script;

  script_open(&script);
  script_sampler(&script);
  hold(&script, POLL);
  p = script_sample(&script);
  script_turns(&script);
  mock_reply(last(&script, POLL), 410, NULL, "{}", 2);
  script_turns(&script);
  CHECK(strstr(explain(p), "sample: is submitted again (resubmission 1) in ") ==
        sentence);
  script_late(&script, 60000);
  CHECK_STR(explain(p), "sample: is submitted again (resubmission 1) in 0 ms");
  end(&script, &p, 1);
}

/* ---- Groups, and what is no promise ---- */

TEST(explain_groups) {
  tnk_promise_t *parts[3];
  tnk_promise_t *all;
  tnk_promise_t *timed;
  script_t script;

  script_open_train(&script);
  hold(&script, STEP);
  mock_turns(script.mock, 5);
  for (int i = 0; i < 3; i++)
    parts[i] = script_step(&script);
  tnk_promise_cancel(parts[1]);
  script_turns(&script);
  all = tnk_all_settled(parts, 3);
  CHECK_STR(explain(all),
            "waits for 2 of 3 promises; the first of them: optim_step: waits "
            "for the server's answer, attempt 1, since 0 ms");
  timed = tnk_with_timeout(all, 4000);
  script_advance(&script, 1500);
  CHECK_STR(explain(timed),
            "times out in 2.5 s; waits for 2 of 3 promises; the first of them: "
            "optim_step: waits for the server's answer, attempt 1, since "
            "1.5 s");
  end(&script, &timed, 1);
}

TEST(explain_is_cut_and_measured) {
  char small[8];
  tnk_promise_t *p;
  script_t script;
  size_t n;

  CHECK_STR(explain(NULL), "there is no such promise");
  script_open(&script);
  hold(&script, "/api/v1/healthz");
  p = tnk_service_health(script.service);
  n = tnk_promise_explain(p, NULL, 0);
  CHECK_INT(n, strlen("healthz: is about to be sent"));
  CHECK_INT(tnk_promise_explain(p, small, sizeof(small)), n);
  CHECK_STR(small, "healthz");
  /* It has nothing to do with memory. */
  test_alloc_fail_at(0);
  CHECK_STR(explain(p), "healthz: is about to be sent");
  CHECK(!test_alloc_did_fail());
  test_alloc_fail_at(-1);
  end(&script, &p, 1);
}

/* ---- States that last for a turn of the loop ---- */

TEST(explain_every_step_of_an_exchange) {
  tnk_promise_t *p;
  script_t script;

  script_open(&script);
  p = tnk_service_health(script.service);
  explain_until(&script, p, "healthz: is about to be sent");
  explain_until(&script, p,
                "healthz: goes out in the next turns of the loop, "
                "attempt 1, since 0 ms");
  explain_until(&script, p, "healthz: waits for a connection");
  explain_until(&script, p, "healthz: waits for the server's answer");
  explain_until(&script, p,
                "healthz: has its answer, which is about to be "
                "read, attempt 1, since 0 ms");
  explain_until(&script, p, "has succeeded");
  end(&script, &p, 1);
}

TEST(explain_a_failure_that_is_about_to_be_told) {
  int found = 0;

  for (long n = 0; n < 40 && !found; n++) {
    tnk_promise_t *p;
    script_t script;
    script_open(&script);
    p = tnk_service_health(script.service);
    test_alloc_fail_at(n);
    mock_turns(script.mock, 1);
    test_alloc_fail_at(-1);
    found = strcmp(explain(p), "healthz: cannot be sent and is about to fail: "
                               "out of memory") == 0;
    end(&script, &p, 1);
  }
  CHECK(found);
}

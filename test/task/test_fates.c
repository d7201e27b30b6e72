/* SPDX-License-Identifier: MIT */
/* What becomes of sequence numbers when the server refuses, counts
 * differently, or cannot be heard. */
#include "lib/client/train/seq.h"
#include "task/kinds.h"

static const char fb_path[] = "/api/v1/forward_backward";
static const char step_path[] = "/api/v1/optim_step";

/* ---- One kind of failure for all kinds of operations ---- */

static void cut_in_body(mock_request_t *request, void *user) {
  (void)script_note(user, request);
  mock_reply_cut(request, 200, NULL, "{\"request_id\":\"x:1:1\"}", 22, 60);
}

static void answer_badly(mock_request_t *request, void *user) {
  (void)script_note(user, request);
  mock_reply_json(request, 200, "{\"request_id\":");
}

static void cut_conflict(mock_request_t *request, void *user) {
  static const char body[400] = "{\"detail\":\"";

  (void)user;
  mock_reply_cut(request, 409, NULL, body, sizeof(body), 200);
}

static void refuse(mock_request_t *request, void *user) {
  (void)user;
  mock_reply_json(request, 422, "{\"detail\":\"no\"}");
}

/* A page from something in between, and then the server's own word. */
static void answer_with_page(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, "Content-Type: text/html\r\n", "<html>", 6);
}

/* A chunk of a size that is no number, or on HTTP/2 more than the head said. */
static void answer_in_pieces(mock_request_t *request, void *user) {
  (void)script_note(user, request);
  mock_begin(request, 200,
             request->stream_id > 0 ? "Content-Length: 1\r\n"
                                    : "Transfer-Encoding: chunked\r\n");
  mock_piece(request, "xyz\r\n", 5);
  mock_end(request, 1);
}

/* The middle one of three fails with these answers; how does it end, and which
 * number does the third one have? */
static void check_middle_with(size_t kind, const mock_handler_t *handlers,
                              size_t n, int code, long long next) {
  script_t script;
  outcome_t outcomes[3];
  char path[64];

  snprintf(path, sizeof(path), "/api/v1/%s", script_kinds[kind].call);
  script_open_train(&script);
  /* The server reads protobuf, so a refusal is not about the form. */
  script_ok(&script, &outcomes[0], script_pass(&script, 1));
  for (size_t i = 0; i < n; i++)
    mock_once(script.mock, "POST", path, handlers[i], &script);
  outcome_of(&outcomes[1], script_kinds[kind].start(&script));
  outcome_of(&outcomes[2], script_pass(&script, 2));
  for (int i = 0; i < 20 && outcomes[2].n_done == 0; i++)
    script_advance(&script, 30000);
  outcome_fails(&script, &outcomes[1], code);
  outcome_ok(&script, &outcomes[2]);
  script_check_sent(&script, script.n_sent - 1, "forward_backward", next);
  outcome_drop_all(outcomes, 3);
  script_close(&script);
}

static void check_middle(size_t kind, mock_handler_t handler, int code,
                         long long next) {
  check_middle_with(kind, &handler, 1, code, next);
}

TEST_LIMIT(S0_3_a_refusal_gives_the_number_back_whatever_it_was, 20) {
  for (size_t i = 0; i < SCRIPT_N_NUMBERED; i++)
    check_middle(i, refuse, TNK_EREQUEST, 2);
}

TEST_LIMIT(S0_3_an_answer_that_means_nothing_is_asked_for_again, 20) {
  for (size_t i = 0; i < SCRIPT_N_NUMBERED; i++) {
    check_middle(i, answer_badly, TNK_OK, 3);
    check_middle(i, answer_in_pieces, TNK_OK, 3);
  }
}

TEST_LIMIT(S0_3_answers_that_mean_nothing_use_the_number_up, 20) {
  static const mock_handler_t thrice[] = {answer_badly, answer_badly,
                                          answer_badly};

  for (size_t i = 0; i < SCRIPT_N_NUMBERED; i++)
    check_middle_with(i, thrice, 3, TNK_EPROTO, 3);
}

/* It was not the server that accepted. */
TEST_LIMIT(S0_3_a_page_from_elsewhere_uses_no_number_up, 20) {
  static const mock_handler_t both[] = {answer_with_page, refuse};

  for (size_t i = 0; i < SCRIPT_N_NUMBERED; i++)
    check_middle_with(i, both, 2, TNK_EREQUEST, 2);
}

TEST_LIMIT(S0_3_a_broken_answer_is_asked_for_again, 20) {
  for (size_t i = 0; i < SCRIPT_N_NUMBERED; i++)
    check_middle(i, cut_in_body, TNK_OK, 3);
}

TEST_LIMIT(S0_3_a_lost_connection_is_no_failure, 20) {
  for (size_t i = 0; i < SCRIPT_N_NUMBERED; i++)
    check_middle(i, mock_reset, TNK_OK, 3);
}

/* ---- Refused before anything was sent ---- */

TEST(S0_3_a_server_that_is_gone_takes_no_number) {
  script_t script;
  outcome_t outcomes[3];

  script_open_train(&script);
  mock_stop_listening(script.mock);
  mock_close_idle(script.mock, 0);
  script_turns(&script);
  outcome_of(&outcomes[0], script_pass(&script, 1));
  outcome_of(&outcomes[1], script_step(&script));
  for (int i = 0; i < 40 && outcomes[1].n_done == 0; i++) {
    script_advance(&script, 30000);
    script_turns(&script);
  }
  outcome_fails(&script, &outcomes[0], TNK_ECONN);
  outcome_fails(&script, &outcomes[1], TNK_ECONN);
  CHECK(tnk_promise_error(outcomes[0].promise)->cause != 0);
  CHECK(script.training->failed == NULL);
  CHECK_INT(script.training->turns.next, 1);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

/* ---- The server counts differently ---- */

/* A server that takes exactly the number that it waits for. */
typedef struct {
  script_t *script;
  long long expected;
  int says_so;        /* in a 409; otherwise a 422 without a number */
  int counts_refused; /* a number that it refused is used */
  long long refuse;   /* this number, once, for another reason */
} counter_t;

static void count(mock_request_t *request, void *user) {
  counter_t *counter = user;
  script_sent_t sent;
  char text[128];

  script_read(request, &sent);
  if (sent.seq == counter->refuse) {
    counter->refuse = -1;
    counter->expected += counter->counts_refused;
    mock_reply_json(request, 422, "{\"detail\":\"no such loss\"}");
  } else if (sent.seq == counter->expected) {
    counter->expected++;
    script_accept(request, counter->script);
  } else if (counter->says_so) {
    snprintf(text, sizeof(text), "{\"detail\":\"expected %lld, got %lld\"}",
             counter->expected, sent.seq);
    mock_reply_json(request, 409, text);
  } else {
    mock_reply_json(request, 422, "{\"detail\":\"out of order\"}");
  }
}

static void open_counted(script_t *script, counter_t *counter) {
  script_open_train(script);
  counter->script = script;
  mock_on(script->mock, "POST", fb_path, count, counter);
  mock_on(script->mock, "POST", step_path, count, counter);
}

TEST(S4_14_a_number_that_is_too_low_is_healed) {
  script_t script;
  counter_t counter = {.expected = 7, .says_so = 1, .refuse = -1};
  outcome_t outcomes[2];

  open_counted(&script, &counter);
  outcome_of(&outcomes[0], script_pass(&script, 1));
  outcome_of(&outcomes[1], script_step(&script));
  outcome_ok(&script, &outcomes[0]);
  outcome_ok(&script, &outcomes[1]);
  script_check_sent(&script, 0, "forward_backward", 7);
  script_check_sent(&script, 1, "optim_step", 8);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

TEST(S4_14_a_number_that_is_too_high_is_healed) {
  script_t script;
  counter_t counter = {.expected = 1, .says_so = 1, .refuse = -1};
  outcome_t outcomes[4];

  open_counted(&script, &counter);
  script_ok(&script, &outcomes[0], script_step(&script));
  mock_json_once(script.mock, "POST", "/api/v1/retrieve_future", 422, "{}");
  script_fails(&script, &outcomes[1], script_step(&script), TNK_EFAILED);
  counter.expected = 2; /* it forgot one that failed */
  outcome_of(&outcomes[2], script_pass(&script, 1));
  outcome_of(&outcomes[3], script_step(&script));
  outcome_ok(&script, &outcomes[2]);
  outcome_ok(&script, &outcomes[3]);
  script_check_sent(&script, 2, "forward_backward", 2);
  script_check_sent(&script, 3, "optim_step", 3);
  outcome_drop_all(outcomes, 4);
  script_close(&script);
}

static void never_content(mock_request_t *request, void *user) {
  script_sent_t sent;
  char text[128];

  (void)user;
  script_read(request, &sent);
  snprintf(text, sizeof(text), "{\"detail\":\"expected %lld, got %lld\"}",
           sent.seq + 1, sent.seq);
  mock_reply_json(request, 409, text);
}

TEST(S4_14_a_server_that_is_never_content_is_given_up) {
  script_t script;
  outcome_t outcomes[2];

  script_open_train(&script);
  mock_on(script.mock, "POST", fb_path, never_content, NULL);
  script_fails(&script, &outcomes[0], script_pass(&script, 1), TNK_ECONFLICT);
  CHECK_INT(mock_count(script.mock, "POST", fb_path), 4);
  CHECK(strstr(outcomes[0].text, "expected 5, got 4") != NULL);
  script_ok(&script, &outcomes[1], script_step(&script));
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

TEST(S4_14_what_a_future_says_of_a_number_is_used_by_the_next) {
  script_t script;
  counter_t counter = {.expected = 1, .says_so = 1, .refuse = -1};
  outcome_t outcomes[2];

  open_counted(&script, &counter);
  mock_json_once(script.mock, "POST", "/api/v1/retrieve_future", 409,
                 "{\"detail\":\"expected 5, got 1\"}");
  script_fails(&script, &outcomes[0], script_pass(&script, 1), TNK_ECONFLICT);
  counter.expected = 5;
  script_ok(&script, &outcomes[1], script_step(&script));
  script_check_sent(&script, script.n_sent - 1, "optim_step", 5);
  CHECK_INT(mock_count(script.mock, "POST", step_path), 1);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

/* ---- Numbers and names that are taken ---- */

typedef struct {
  script_t *script;
  long long n_taken; /* the numbers 1 to this are somebody else's */
  int status;
  const char *text;
} taken_t;

static void refuse_taken(mock_request_t *request, void *user) {
  const taken_t *taken = user;
  script_sent_t sent;

  script_read(request, &sent);
  if (sent.seq <= taken->n_taken)
    mock_reply_json(request, taken->status, taken->text);
  else
    script_accept(request, taken->script);
}

static const char reused[] =
    "{\"detail\":\"Training request sequence number was reused\"}";

TEST(S4_14_numbers_that_others_have_used_are_left_out) {
  for (int i = 0; i < 2; i++) {
    script_t script;
    taken_t taken = {&script, 3, i == 0 ? 409 : 422, reused};
    outcome_t outcomes[2];

    script_open(&script);
    script_train(&script);
    mock_on(script.mock, "POST", step_path, refuse_taken, &taken);
    outcome_of(&outcomes[0], script_step(&script));
    outcome_of(&outcomes[1], script_pass(&script, 1));
    outcome_ok(&script, &outcomes[0]); /* no time passes */
    outcome_ok(&script, &outcomes[1]);
    script_check_sent(&script, 0, "optim_step", 4);
    script_check_sent(&script, 1, "forward_backward", 5);
    outcome_drop_all(outcomes, 2);
    script_close(&script);
  }
}

TEST(S4_14_who_meets_only_used_numbers_gives_up_at_once) {
  script_t script;
  taken_t taken = {&script, 12, 409, reused};
  outcome_t outcomes[2];

  script_open(&script);
  script_train(&script);
  mock_on(script.mock, "POST", step_path, refuse_taken, &taken);
  outcome_of(&outcomes[0], script_step(&script));
  outcome_fails(&script, &outcomes[0], TNK_ECONFLICT);
  CHECK(strstr(outcomes[0].text, "was reused") != NULL);
  CHECK_INT(mock_count(script.mock, "POST", step_path), 9);
  /* Those are known now. */
  outcome_of(&outcomes[1], script_step(&script));
  outcome_ok(&script, &outcomes[1]);
  script_check_sent(&script, 0, "optim_step", 13);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

static const char *const save_paths[] = {"/api/v1/save_weights",
                                         "/api/v1/save_weights_for_sampler",
                                         "/api/v1/save_weights_external"};

static tnk_promise_t *(*const start_saves[])(script_t *) = {
    start_save, start_save_sampler, start_save_external};

/* A save whose first attempt is lost meets a name that exists. On an idle
 * connection a loss is repeated at once, and known only from the next one. */
static void save_in_doubt(script_t *script, size_t kind, outcome_t *outcome) {
  script_open(script);
  script_train(script);
  for (int i = 0; i < 2; i++)
    mock_once(script->mock, "POST", save_paths[kind], mock_reset, NULL);
  mock_json_once(script->mock, "POST", save_paths[kind], 409,
                 "{\"detail\":\"Checkpoint 'a' already exists\"}");
  outcome_of(outcome, start_saves[kind](script));
  script_settle(script, outcome);
  outcome_fails(script, outcome, TNK_ECONFLICT);
  CHECK_INT(mock_count(script->mock, "POST", save_paths[kind]), 3);
}

/* The server has never heard of the number and would wait for it. */
TEST(S4_14_a_name_that_exists_leaves_no_hole) {
  for (size_t kind = 0; kind < 3; kind++) {
    script_t script;
    outcome_t outcomes[2];

    save_in_doubt(&script, kind, &outcomes[0]);
    outcome_of(&outcomes[1], script_step(&script));
    outcome_ok(&script, &outcomes[1]);
    script_check_sent(&script, 0, "optim_step", 1);
    outcome_drop_all(outcomes, 2);
    script_close(&script);
  }
}

/* Or it has it, and says so in one way or another. */
TEST(S4_14_a_name_that_was_our_own_uses_the_number_up) {
  static const taken_t answers[] = {
      {NULL, 1, 409, reused},
      {NULL, 1, 422, "{\"detail\":\"out of order\"}"},
      {NULL, 1, 409, "{\"detail\":\"expected 2, got 1\"}"},
      {NULL, 1, 409, "{\"detail\":\"conflict\"}"}};

  for (size_t kind = 0; kind < 3; kind++) {
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
      script_t script;
      taken_t taken = answers[i];
      outcome_t outcomes[3];

      save_in_doubt(&script, kind, &outcomes[0]);
      taken.script = &script;
      mock_on(script.mock, "POST", step_path, refuse_taken, &taken);
      outcome_of(&outcomes[1], script_step(&script));
      outcome_of(&outcomes[2], script_step(&script));
      script_settle(&script, &outcomes[2]);
      outcome_ok(&script, &outcomes[1]);
      outcome_ok(&script, &outcomes[2]);
      script_check_sent(&script, 0, "optim_step", 2);
      script_check_sent(&script, 1, "optim_step", 3);
      outcome_drop_all(outcomes, 3);
      script_close(&script);
    }
  }
}

/* It could have been about the number. */
TEST(S4_14_a_conflict_of_a_save_that_broke_off_is_asked_for_again) {
  static const char path[] = "/api/v1/save_weights";
  script_t script;
  outcome_t outcome;

  script_open(&script);
  script_train(&script);
  mock_once(script.mock, "POST", path, cut_conflict, NULL);
  mock_json_once(script.mock, "POST", path, 409,
                 "{\"detail\":\"expected 5, got 1\"}");
  outcome_of(&outcome, start_save(&script));
  script_settle(&script, &outcome);
  outcome_ok(&script, &outcome);
  script_check_sent(&script, 0, "save_weights", 5);
  outcome_drop(&outcome);
  script_close(&script);
}

/* ---- Numbers that were refused once ---- */

TEST(S0_3_servers_that_count_refused_numbers_are_followed) {
  script_t script;
  counter_t counter = {.expected = 1, .counts_refused = 1, .refuse = 2};
  outcome_t outcomes[4];

  open_counted(&script, &counter);
  for (int i = 0; i < 4; i++)
    outcome_of(&outcomes[i], script_step(&script));
  outcome_ok(&script, &outcomes[0]);
  outcome_fails(&script, &outcomes[1], TNK_EREQUEST);
  outcome_ok(&script, &outcomes[2]);
  outcome_ok(&script, &outcomes[3]);
  /* 2 was tried again in vain, so 3 and 4 follow. */
  CHECK_INT(mock_count(script.mock, "POST", step_path), 5);
  script_check_sent(&script, 1, "optim_step", 3);
  script_check_sent(&script, 2, "optim_step", 4);
  outcome_drop_all(outcomes, 4);
  script_close(&script);
}

TEST(S0_3_servers_that_do_not_count_refused_numbers_are_followed) {
  script_t script;
  counter_t counter = {.expected = 1, .refuse = 2};
  outcome_t outcomes[4];

  open_counted(&script, &counter);
  for (int i = 0; i < 4; i++)
    outcome_of(&outcomes[i], script_step(&script));
  outcome_fails(&script, &outcomes[1], TNK_EREQUEST);
  outcome_ok(&script, &outcomes[2]);
  outcome_ok(&script, &outcomes[3]);
  CHECK_INT(mock_count(script.mock, "POST", step_path), 4);
  script_check_sent(&script, 1, "optim_step", 2);
  script_check_sent(&script, 2, "optim_step", 3);
  outcome_drop_all(outcomes, 4);
  script_close(&script);
}

TEST(S0_3_a_request_that_is_wrong_is_not_blamed_on_its_number) {
  script_t script;
  outcome_t outcomes[3];

  script_open_train(&script);
  mock_json(script.mock, "POST", fb_path, 422, "{\"detail\":\"no such loss\"}");
  outcome_of(&outcomes[0], script_pass(&script, 1));
  outcome_of(&outcomes[1], script_pass(&script, 1));
  outcome_fails(&script, &outcomes[0], TNK_EREQUEST);
  outcome_fails(&script, &outcomes[1], TNK_EREQUEST);
  CHECK(strstr(outcomes[1].text, "no such loss") != NULL);
  CHECK(mock_count(script.mock, "POST", fb_path) <=
        2 + TNK__NUMBER_MAX_SUSPECTS);
  script_ok(&script, &outcomes[2], script_step(&script));
  /* All were refused, so the first number is still the next. */
  script_check_sent(&script, 0, "optim_step", 1);
  outcome_drop_all(outcomes, 3);
  script_close(&script);
}

/* ---- Fates that stay unknown ---- */

TEST_LIMIT(S1_7_an_unknown_fate_fails_what_waits_behind_it, 20) {
  script_t script;
  outcome_t outcomes[4];
  outcome_t late;

  script_open_train(&script);
  mock_on(script.mock, "POST", fb_path, mock_reset, NULL);
  outcome_of(&outcomes[0], script_step(&script));
  for (int i = 1; i < 4; i++)
    outcome_of(&outcomes[i], script_pass(&script, 1));
  for (int i = 0; i < 40 && outcomes[3].n_done == 0; i++)
    script_advance(&script, 30000);
  outcome_ok(&script, &outcomes[0]);
  outcome_fails(&script, &outcomes[1], TNK_ECONN);
  check_ran(&outcomes[1], TNK_RAN_UNKNOWN, "; it may have been run");
  for (int i = 2; i < 4; i++) {
    outcome_fails(&script, &outcomes[i], TNK_ECONN);
    check_ran(&outcomes[i], TNK_RAN_NO, "; later operations were not run");
    CHECK_INT(strncmp(outcomes[i].text, outcomes[1].text,
                      strlen(outcomes[1].text) - 21),
              0);
  }
  CHECK_INT(script.n_errors, 0);
  /* What is called now goes under the number that may be free. */
  script_ok(&script, &late, script_step(&script));
  script_check_sent(&script, 1, "optim_step", 2);
  CHECK(strstr(script.last_log, "number 2, whose outcome was unknown, had not "
                                "been run") != NULL);
  outcome_drop(&late);
  outcome_drop_all(outcomes, 4);
  script_close(&script);
}

TEST(S1_7_another_client_of_the_service_is_not_concerned) {
  script_t script;
  tnk_training_t *broken;
  outcome_t outcomes[2];

  mock_only_http1("over HTTP/2 a reset takes along what shares its connection");
  script_open(&script);
  broken = script_train(&script);
  mock_on(script.mock, "POST", fb_path, mock_reset, NULL);
  outcome_of(&outcomes[0],
             tnk_training_forward_backward(broken, script_data(1), 1, NULL));
  script_train(&script);
  for (int i = 0; i < 40 && outcomes[0].n_done == 0; i++)
    script_advance(&script, 30000);
  outcome_fails(&script, &outcomes[0], TNK_ECONN);
  CHECK(strstr(outcomes[0].text, "connection reset by peer") != NULL);
  CHECK(tnk_promise_error(outcomes[0].promise)->message == NULL);
  script_ok(&script, &outcomes[1], script_step(&script));
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

/* Canceled while its fate is open: the number is not free yet. */
TEST(S3_6c_S4_8_a_canceled_submission_is_followed_and_counted) {
  script_t script;
  tnk_stats_t stats = TNK_STATS_INIT;
  script_held_t held = {.n = 0};
  outcome_t outcomes[2];
  tnk_promise_t *promise;

  script_open_train(&script);
  mock_once(script.mock, "POST", fb_path, script_hold, &held);
  promise = script_pass(&script, 1);
  outcome_of(&outcomes[0], tnk_promise_ref(promise));
  mock_wait_flag(script.mock, &held.n, 1);
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
  outcome_fails(&script, &outcomes[0], TNK_ECANCELED);
  outcome_of(&outcomes[1], script_step(&script));
  script_turns(&script);
  CHECK_INT(script.n_sent, 0);
  tnk_service_stats(&stats, script.service);
  CHECK_INT(stats.n_late_events, 0);
  script_accept(held.requests[0], &script);
  outcome_ok(&script, &outcomes[1]);
  script_check_sent(&script, 1, "optim_step", 2);
  CHECK_INT(mock_count(script.mock, "POST", "/api/v1/retrieve_future"), 2);
  tnk_service_stats(&stats, script.service);
  CHECK_INT(stats.n_late_events, 1);
  outcome_drop_all(outcomes, 2);
  script_close(&script);
}

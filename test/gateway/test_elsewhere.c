/* SPDX-License-Identifier: MIT */
#include <unistd.h>

#include "gateway/again.h"
#include "gateway/elsewhere.h"
#include "lib/wire/format/json_read.h"
#include "rig.h"

/* Requests that a client repeats at another gateway. The lines of the other
 * gateway are the test's, and so is the time. The record is a file, so that the
 * own lines can be read. */

enum { SAMPLING_MS = 300 };

#define RETRY "X-Stainless-Retry-Count: 1\r\n"
#define FIRST "X-Stainless-Retry-Count: 0\r\n"
#define KEY "Idempotency-Key: a-key\r\n"
#define OTHER "4294967297" /* number of the request of the other gateway */

static char record_path[64];
static rig_t rig;
static int is_away; /* the store */

const char *__wrap_tnk__gw_record_why(const tnk__gw_record_t *record);

const char *__wrap_tnk__gw_record_why(const tnk__gw_record_t *record) {
  (void)record;
  return is_away ? "the store is away" : NULL;
}

static void open_rig(uint64_t latency_ms) {
  int fd;

  snprintf(record_path, sizeof(record_path), "/tmp/tnk-gateway-XXXXXX");
  fd = mkstemp(record_path);
  CHECK(fd >= 0);
  close(fd);
  rig_open_with(&rig, latency_ms, record_path, 0, 0);
  rig.gateway->elsewhere.is_on = 1;
}

static void close_rig(void) {
  rig_close(&rig);
  unlink(record_path);
}

static peer_t *post(const char *session, const char *header, const char *text) {
  peer_t *peer = ask(&rig, "", "");
  char body[256];

  snprintf(body, sizeof(body),
           "{\"max_tokens\":3,\"messages\":[{\"role\":\"user\","
           "\"content\":\"%s\"}]}",
           text);
  snprintf(peer->request, sizeof(peer->request),
           "POST %s/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
           "Connection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
           session, header, strlen(body), body);
  return peer;
}

typedef struct {
  tnk__gw_waiter_t waiter;
  int n_done;
} flush_t;

static void on_flushed(tnk__gw_waiter_t *waiter, int err) {
  CHECK_INT(err, TNK_OK);
  tnk__container_of(waiter, flush_t, waiter)->n_done++;
}

/* A file is only written when somebody waits for that. */
static void flush_record(void) {
  flush_t flush = {.waiter.done = on_flushed};

  if (tnk__gw_record_wait(rig.gateway->record, &flush.waiter) == 0)
    while (flush.n_done == 0)
      uv_run(&rig.e2e.uv, UV_RUN_ONCE);
}

static char latest[4096];

/* Count the own lines of a type. `latest` receives the last one, or "". */
static size_t n_lines(const char *type) {
  static char line[sizeof(latest)];
  char wanted[64];
  size_t n = 0;
  FILE *file;

  flush_record();
  file = fopen(record_path, "rb");
  CHECK(file != NULL);
  latest[0] = '\0';
  snprintf(wanted, sizeof(wanted), "{\"type\":\"%s\"", type);
  while (fgets(line, sizeof(line), file) != NULL)
    if (strncmp(line, wanted, strlen(wanted)) == 0) {
      memcpy(latest, line, sizeof(latest));
      n++;
    }
  fclose(file);
  return n;
}

static const char *own_line(const char *type) {
  (void)n_lines(type);
  return latest;
}

static void until_line(const char *type) {
  while (own_line(type)[0] == '\0')
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
}

/* The other gateway has written this line. */
static int take(const char *text) {
  json_t *line;
  int err;

  CHECK_INT(tnk__json_parse_object(&line, text, strlen(text)), TNK_OK);
  err = tnk__gw_elsewhere_take(rig.gateway, tnk__json_str(line, "type"), line);
  json_decref(line);
  return err;
}

static void told(const char *type, const char *more) {
  char text[256];

  snprintf(text, sizeof(text), "{\"type\":\"%s\",\"number\":" OTHER "%s}", type,
           more);
  CHECK_INT(take(text), TNK_OK);
}

/* The other gateway has asked for what this one has asked for last, in the
 * session "you". */
static void asked_elsewhere(void) {
  const char *own = own_line("asked");
  const char *session = strstr(own, ",\"session\":\"me\"");
  char text[1024];

  CHECK(session != NULL);
  snprintf(text, sizeof(text),
           "{\"type\":\"asked\",\"number\":" OTHER ",\"session\":\"you\"%s",
           session + strlen(",\"session\":\"me\""));
  CHECK_INT(take(text), TNK_OK);
}

/* A request of another gateway that has this header and the text "hi". Its
 * hashes are those of an own request. */
static void begin(uint64_t latency_ms, const char *header) {
  open_rig(latency_ms);
  CHECK_INT(peer_end(&rig, post("/s/me", header, "hi")), 200);
  CHECK_INT(n_calls(&rig, "asample"), 1);
  asked_elsewhere();
}

static void tick(uint64_t ms) {
  tnk__gw_elsewhere_tick(rig.gateway, uv_now(&rig.e2e.uv) + ms);
}

static size_t n_turns(const char *name) {
  const tnk__gw_session_t *session =
      tnk__gw_record_session(rig.gateway->record, name);

  return session != NULL ? session->n_turns : 0;
}

#define ANSWER ",\"text\":\"{\\\"id\\\":\\\"theirs\\\"}\""

static void expect_theirs(peer_t *peer) {
  until_closed(&rig, peer);
  CHECK(strstr(peer->got, "\r\n\r\n{\"id\":\"theirs\"}") != NULL);
  CHECK_INT(peer_end(&rig, peer), 200);
  CHECK_INT(n_calls(&rig, "asample"), 1);
  CHECK_INT(n_turns("you"), 0);
}

static void expect_own(peer_t *peer) {
  until_closed(&rig, peer);
  CHECK(strstr(peer->got, "theirs") == NULL);
  CHECK_INT(peer_end(&rig, peer), 200);
  CHECK_INT(n_calls(&rig, "asample"), 2);
  CHECK_INT(n_turns("you"), 1);
}

/* ---- Requests that others have ---- */

TEST_LIMIT(an_answer_of_another_gateway_is_sent_again, 60) {
  begin(0, KEY);
  told("answer", ANSWER);
  expect_theirs(post("/s/you", KEY, "hi"));
  expect_theirs(post("/s/you", KEY, "hi"));
  close_rig();

  begin(0, FIRST);
  told("answer", ANSWER);
  expect_theirs(post("/s/you", RETRY, "hi"));
  close_rig();
}

TEST_LIMIT(a_new_request_is_not_a_repeated_one, 60) {
  static const char *const headers[][2] = {
      {FIRST, FIRST}, {"", ""}, {KEY, RETRY}, {FIRST, KEY}};

  for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
    begin(0, headers[i][0]);
    told("answer", ANSWER);
    expect_own(post("/s/you", headers[i][1], "hi"));
    close_rig();
  }
}

TEST_LIMIT(a_key_is_of_one_body_at_all_gateways, 60) {
  static const char *const ends[] = {"answer", "failed", "here"};

  for (size_t i = 0; i < 3; i++) {
    peer_t *peer;

    begin(0, KEY);
    told(ends[i], i == 0 ? ANSWER : "");
    peer = post("/s/you", KEY, "ho");
    until_closed(&rig, peer);
    CHECK(strstr(peer->got, "was used with another request") != NULL);
    CHECK_INT(peer_end(&rig, peer), 422);
    close_rig();
  }
}

TEST_LIMIT(an_answer_of_another_gateway_is_waited_for, 60) {
  static const char *const headers[] = {KEY, RETRY, ""};

  for (size_t i = 0; i < 3; i++) {
    peer_t *peers[2];

    begin(0, i == 0 ? KEY : FIRST);
    peers[0] = post("/s/you", headers[i], "hi");
    until_line("again");
    CHECK(strstr(own_line("again"), "\"number\":" OTHER) != NULL);
    peers[1] = post("/s/you", headers[i], "hi");
    while (rig.gateway->n_jobs < 2)
      uv_run(&rig.e2e.uv, UV_RUN_ONCE);
    told("answer", ANSWER);
    expect_theirs(peers[0]);
    expect_theirs(peers[1]);
    close_rig();
  }
}

TEST_LIMIT(what_fails_elsewhere_is_sampled_here, 60) {
  static const char *const ends[] = {"failed", "gone"};

  for (size_t i = 0; i < 2; i++) {
    peer_t *peers[2];

    begin(SAMPLING_MS, KEY);
    for (size_t k = 0; k < 2; k++)
      peers[k] = post("/s/you", KEY, "hi");
    while (rig.gateway->n_jobs < 2)
      uv_run(&rig.e2e.uv, UV_RUN_ONCE);
    told(ends[i], "");
    expect_own(peers[0]);
    expect_own(peers[1]);
    close_rig();
  }
}

TEST_LIMIT(a_gateway_that_is_silent_is_not_waited_for, 60) {
  peer_t *peer;

  uint64_t began_ms;

  begin(0, KEY);
  began_ms = uv_now(&rig.e2e.uv);
  peer = post("/s/you", KEY, "hi");
  until_line("again");
  tnk__gw_elsewhere_tick(rig.gateway, began_ms + TNK__GW_ELSEWHERE_MS - 1);
  CHECK_INT(rig.gateway->n_jobs, 1);
  CHECK_INT(n_calls(&rig, "asample"), 1);
  tick(TNK__GW_ELSEWHERE_MS);
  expect_own(peer);
  close_rig();
}

/* As long as it says that it is here. */
TEST_LIMIT(a_gateway_that_is_alive_is_waited_for, 60) {
  uint64_t began_ms;
  peer_t *peer;

  begin(0, KEY);
  peer = post("/s/you", KEY, "hi");
  until_line("again");
  began_ms = uv_now(&rig.e2e.uv);
  /* The loop's time passes only here. */
  while (uv_now(&rig.e2e.uv) < began_ms + 20)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  told("here", "");
  tnk__gw_elsewhere_tick(rig.gateway, began_ms + 10 + TNK__GW_ELSEWHERE_MS);
  CHECK_INT(n_calls(&rig, "asample"), 1);
  CHECK_INT(rig.gateway->n_jobs, 1);
  while (n_lines("again") < 2)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  told("answer", ANSWER);
  expect_theirs(peer);
  close_rig();
}

/* While the store is away, no line of the other gateway can come. */
TEST_LIMIT(a_store_that_is_away_is_waited_for_thirty_seconds, 60) {
  for (int returns = 0; returns < 2; returns++) {
    uint64_t began_ms;
    peer_t *peer;

    begin(0, KEY);
    peer = post("/s/you", KEY, "hi");
    until_line("again");
    began_ms = uv_now(&rig.e2e.uv);
    tnk__gw_elsewhere_tick(rig.gateway, began_ms);
    is_away = 1;
    tnk__gw_elsewhere_tick(rig.gateway,
                           began_ms + TNK__GW_ELSEWHERE_AWAY_MS - 1);
    CHECK_INT(rig.gateway->n_jobs, 1);
    if (returns) {
      is_away = 0;
      told("answer", ANSWER);
      expect_theirs(peer);
    } else {
      tnk__gw_elsewhere_tick(rig.gateway, began_ms + TNK__GW_ELSEWHERE_AWAY_MS);
      until_closed(&rig, peer);
      CHECK(strstr(peer->got, "cannot be recorded") != NULL);
      CHECK_INT(peer_end(&rig, peer), 503);
      CHECK_INT(n_calls(&rig, "asample"), 1);
      /* The other gateway may have the answer later. */
      is_away = 0;
      told("answer", ANSWER);
      expect_theirs(post("/s/you", KEY, "hi"));
    }
    close_rig();
  }
}

TEST_LIMIT(clients_may_go_while_they_wait, 60) {
  peer_t *peers[2];

  begin(0, KEY);
  for (size_t i = 0; i < 2; i++)
    peers[i] = post("/s/you", KEY, "hi");
  while (rig.gateway->n_jobs < 2)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  peer_close(peers[0]);
  while (rig.gateway->n_jobs > 1)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  peer_close(peers[1]);
  while (rig.gateway->n_jobs > 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  tick(TNK__GW_ELSEWHERE_MS * 2);
  CHECK_INT(n_calls(&rig, "asample"), 1);
  (void)peer_end(&rig, peers[0]);
  (void)peer_end(&rig, peers[1]);
  expect_own(post("/s/you", "", "ho"));
  close_rig();
}

TEST_LIMIT(closing_ends_those_who_wait, 60) {
  peer_t *peer;

  begin(0, KEY);
  peer = post("/s/you", KEY, "hi");
  until_line("again");
  close_rig();
  free(peer);
}

/* ---- Requests that others repeat ---- */

static void wanted_elsewhere(void) {
  const char *number = strstr(own_line("asked"), "\"number\":");
  char text[128];

  CHECK(number != NULL);
  snprintf(text, sizeof(text), "{\"type\":\"again\",\"number\":%ld}",
           strtol(number + strlen("\"number\":"), NULL, 10));
  CHECK_INT(take(text), TNK_OK);
}

/* A sample without a client is recorded when another gateway has one. */
TEST_LIMIT(samples_are_given_to_other_gateways, 60) {
  for (int is_early = 0; is_early < 2; is_early++) {
    peer_t *peer;

    open_rig(SAMPLING_MS);
    peer = post("/s/me", FIRST, "hi");
    until_sampled(&rig, 1);
    peer_close(peer);
    while (rig.gateway->stats.n_gone == 0)
      uv_run(&rig.e2e.uv, UV_RUN_ONCE);
    while (!is_early && rig.gateway->again.n_kept == 0)
      uv_run(&rig.e2e.uv, UV_RUN_ONCE);
    CHECK_INT(n_turns("me"), 0);
    until_line("asked");
    wanted_elsewhere();
    until_line("here");
    until_line("answer");
    CHECK(strstr(own_line("answer"), "chat.completion") != NULL);
    CHECK_INT(n_turns("me"), 1);
    CHECK_INT(n_calls(&rig, "asample"), 1);
    CHECK_INT(rig.gateway->n_jobs, 0);
    (void)peer_end(&rig, peer);
    close_rig();
  }
}

TEST_LIMIT(nothing_is_said_of_requests_that_have_ended, 60) {
  begin(0, KEY);
  wanted_elsewhere();
  told("again", "");
  told("here", "");
  tick(0);
  CHECK_STR(own_line("here"), "");
  close_rig();
}

/* ---- Two gateways that get a request at the same time ---- */

/* The record is a file, which does not return the own lines: the test does. */
static void read_own(void) {
  char text[sizeof(latest)];

  memcpy(text, own_line("asked"), sizeof(text));
  CHECK_INT(take(text), TNK_OK);
}

/* The other gateway has asked for what this one is asking for. `body` replaces
 * the hash of the body, if it is not NULL. */
static void asked_too(const char *body) {
  const char *own = own_line("asked");
  const char *session = strstr(own, ",\"session\":");
  char text[1024];

  CHECK(session != NULL);
  snprintf(text, sizeof(text), "{\"type\":\"asked\",\"number\":" OTHER "%s",
           session);
  if (body != NULL)
    memcpy(strstr(text, "\"body\":\"") + strlen("\"body\":\""), body,
           strlen(body));
  CHECK_INT(take(text), TNK_OK);
}

static peer_t *begin_claim(const char *header) {
  peer_t *peer;

  open_rig(0);
  CHECK_INT(peer_end(&rig, post("/s/me", header, "ho")), 200);
  rig.gateway->elsewhere.has_claims = 1;
  peer = post("/s/you", header, "hi");
  while (n_lines("asked") < 2)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  /* The own line is written, and has not been read. */
  for (int i = 0; i < 20; i++)
    uv_run(&rig.e2e.uv, UV_RUN_NOWAIT);
  tick(0);
  CHECK_INT(n_calls(&rig, "asample"), 1);
  return peer;
}

static const char *const claiming[] = {KEY, RETRY, ""};

TEST_LIMIT(the_first_of_two_gateways_samples, 60) {
  for (size_t i = 0; i < 3; i++)
    for (int others = 0; others < 2; others++) {
      peer_t *peer = begin_claim(claiming[i]);

      read_own();
      if (others)
        asked_too(NULL);
      expect_own(peer);
      CHECK_STR(own_line("gone"), "");
      close_rig();
    }
}

TEST_LIMIT(the_second_of_two_gateways_waits, 60) {
  for (size_t i = 0; i < 3; i++)
    for (int is_early = 0; is_early < 2; is_early++) {
      peer_t *peer = begin_claim(claiming[i]);

      asked_too(NULL);
      read_own();
      /* The answer may be there before the wait begins. */
      if (!is_early)
        until_line("again");
      told("answer", ANSWER);
      expect_theirs(peer);
      until_line("gone");
      close_rig();
    }
}

/* Without an answer of the other gateway, the request is asked for again. */
TEST_LIMIT(a_claim_is_repeated_if_the_first_one_fails, 60) {
  static const char *const ends[] = {"failed", "gone"};

  for (size_t i = 0; i < 2; i++)
    for (int moment = 0; moment < 3; moment++) {
      peer_t *peer = begin_claim(KEY);

      asked_too(NULL);
      if (moment == 0)
        told(ends[i], "");
      read_own();
      if (moment == 1)
        told(ends[i], "");
      if (moment == 2) {
        until_line("again");
        told(ends[i], "");
        while (n_lines("asked") < 3)
          uv_run(&rig.e2e.uv, UV_RUN_ONCE);
        read_own();
      }
      expect_own(peer);
      close_rig();
    }
}

TEST_LIMIT(a_key_with_another_body_loses_its_claim, 60) {
  peer_t *peer = begin_claim(KEY);

  asked_too("0123456789abcdef");
  read_own();
  until_closed(&rig, peer);
  CHECK(strstr(peer->got, "was used with another request") != NULL);
  CHECK_INT(peer_end(&rig, peer), 422);
  CHECK_INT(n_calls(&rig, "asample"), 1);
  close_rig();
}

/* The store is away, or has lost the line. */
TEST_LIMIT(a_claim_waits_for_its_line_thirty_seconds, 60) {
  for (int lost = 0; lost < 2; lost++) {
    peer_t *peer = begin_claim(KEY);
    const tnk__gw_job_t *job =
        tnk__container_of(tnk__list_first(&rig.gateway->elsewhere.claims),
                          const tnk__gw_job_t, follow);
    uint64_t end_ms = job->claimed_ms + TNK__GW_ELSEWHERE_AWAY_MS;

    is_away = !lost;
    tnk__gw_elsewhere_tick(rig.gateway, end_ms - 1);
    CHECK_INT(rig.gateway->n_jobs, 1);
    tnk__gw_elsewhere_tick(rig.gateway, end_ms);
    is_away = 0;
    until_closed(&rig, peer);
    CHECK(strstr(peer->got, "cannot be recorded") != NULL);
    CHECK_INT(peer_end(&rig, peer), 503);
    CHECK_INT(n_calls(&rig, "asample"), 1);
    until_line("gone");
    close_rig();
  }
}

TEST_LIMIT(a_client_may_go_during_a_claim, 60) {
  peer_t *peer = begin_claim(KEY);

  peer_close(peer);
  while (rig.gateway->n_jobs > 0)
    uv_run(&rig.e2e.uv, UV_RUN_ONCE);
  until_line("gone");
  read_own();
  tick(0);
  CHECK_INT(n_calls(&rig, "asample"), 1);
  (void)peer_end(&rig, peer);
  close_rig();

  peer = begin_claim(KEY);
  close_rig();
  free(peer);
}

TEST_LIMIT(each_allocation_of_a_claim_fails_in_turn, 60) {
  int did_fail = 1;

  for (long n = 0; did_fail; n++) {
    peer_t *peer = begin_claim(KEY);
    char own[sizeof(latest)];

    asked_too(NULL);
    memcpy(own, own_line("asked"), sizeof(own));
    test_alloc_fail_at(n);
    (void)take(own);
    tick(0);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    told("answer", ANSWER);
    expect_theirs(peer);
    close_rig();
  }
}

/* Nobody else may get these at the same time. */
TEST_LIMIT(other_requests_need_no_claim, 60) {
  static const char *const headers[][2] = {{"/s/you", FIRST}, {"", ""}};

  for (size_t i = 0; i < 2; i++) {
    open_rig(0);
    rig.gateway->elsewhere.has_claims = 1;
    CHECK_INT(peer_end(&rig, post(headers[i][0], headers[i][1], "hi")), 200);
    CHECK_INT(n_calls(&rig, "asample"), 1);
    close_rig();
  }
}

/* ---- Lines ---- */

TEST_LIMIT(malformed_lines_are_refused, 20) {
  static const char *const all[] = {
      "{\"type\":\"again\"}",
      "{\"type\":\"here\",\"number\":0}",
      "{\"type\":\"asked\",\"number\":5,\"body\":\"\",\"session\":\"s\"}",
      "{\"type\":\"asked\",\"number\":5,\"session\":\"s\",\"body\":"
      "\"0123456789abcdef0123456789abcdef\",\"key\":\"x\"}",
      "{\"type\":\"asked\",\"number\":5,\"body\":"
      "\"0123456789abcdef0123456789abcdef\"}",
      "{\"type\":\"answer\",\"number\":" OTHER "}",
      "{\"type\":\"answer\",\"number\":" OTHER ",\"text\":1}"};

  begin(0, KEY);
  for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
    test_context(all[i]);
    CHECK_INT(take(all[i]), TNK_EPROTO);
  }
  CHECK_INT(take("{\"type\":\"asked\",\"number\":5,\"session\":\"s\"}"),
            TNK_OK);
  CHECK_INT(take("{\"type\":\"else\"}"), TNK_OK);
  close_rig();
}

/* Answers are known for as long as those of this gateway, up to a limit. */
TEST_LIMIT(requests_of_others_are_forgotten, 60) {
  tnk__gw_elsewhere_t *all;
  char text[512];

  begin(0, KEY);
  all = &rig.gateway->elsewhere;
  told("answer", ANSWER);
  CHECK(all->n == 1 && all->n_bytes > 0);
  for (int i = 0; i < TNK__GW_MAX_ELSEWHERE; i++) {
    snprintf(text, sizeof(text),
             "{\"type\":\"asked\",\"number\":%d,\"session\":\"s%d\",\"body\":"
             "\"0123456789abcdef0123456789abcdef\"}",
             i + 1000, i);
    CHECK_INT(take(text), TNK_OK);
  }
  CHECK(all->n == TNK__GW_MAX_ELSEWHERE && all->n_bytes == 0);
  close_rig();
}

TEST_LIMIT(each_allocation_of_a_wait_fails_in_turn, 60) {
  int did_fail = 1;

  for (long n = 0; did_fail; n++) {
    peer_t *peer;

    begin(0, KEY);
    peer = post("/s/you", KEY, "hi");
    while (strlen(peer->request) > 0 && rig.gateway->n_jobs == 0)
      uv_run(&rig.e2e.uv, UV_RUN_ONCE);
    test_alloc_fail_at(n);
    {
      char text[256];

      snprintf(text, sizeof(text),
               "{\"type\":\"answer\",\"number\":" OTHER ANSWER "}");
      (void)take(text);
    }
    tick(TNK__GW_ELSEWHERE_MS + 1000);
    until_closed(&rig, peer);
    did_fail = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    if (!did_fail)
      CHECK(strstr(peer->got, "theirs") != NULL);
    (void)peer_end(&rig, peer);
    close_rig();
  }
}

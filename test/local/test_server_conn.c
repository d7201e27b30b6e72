/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "support/test.h"

/* Connections that are too many, and what HTTP allows but few clients send. */

TEST(a_connection_too_many_takes_the_place_of_an_idle_one) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  exchange_t *idle[3];
  rig_t rig;

  options.max_connections = 3;
  rig_open(&rig, &options);
  for (int i = 0; i < 3; i++) {
    idle[i] = rig_send(&rig, "GET", "/api/v1/healthz", NULL, NULL, 0);
    rig_wait(idle[i], 1);
    CHECK_INT(idle[i]->status, 200);
  }
  CHECK_INT(rig_status(rig_send(&rig, "GET", "/api/v1/healthz", NULL, NULL, 0)),
            200);
  CHECK(local_server_counts(rig.server).n_connections <= 3);
  for (int i = 0; i < 3; i++)
    rig_free(idle[i]);
  rig_close(&rig);
}

/* Both connections hold polls for a step that waits for the number before it,
 * which could never arrive if nobody made room. */
TEST(a_connection_too_many_takes_the_place_of_the_oldest_poll) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  exchange_t *polls[2];
  char session[96];
  char model[96];
  char step[96];
  rig_t rig;

  options.max_connections = 2;
  rig_open(&rig, &options);
  rig_session(&rig, session);
  rig_model(&rig, session, model);
  rig_id(rig_step(&rig, model, 2, 0.1), step);
  for (int i = 0; i < 2; i++)
    polls[i] =
        rig_start(&rig, "retrieve_future", "{\"request_id\":\"%s\"}", step);
  while (local_server_counts(rig.server).n_waiting < 2)
    uv_run(&rig.loop, UV_RUN_ONCE);
  rig_free(rig_done(&rig, rig_step(&rig, model, 1, 0.1)));
  rig_wait(polls[0], 1);
  CHECK_INT(polls[0]->status, 200);
  CHECK_STR(rig_text(polls[0], "type"), "try_again");
  CHECK(polls[0]->closed);
  rig_wait(polls[1], 1);
  CHECK_INT(polls[1]->status, 200);
  rig_free(polls[0]);
  rig_free(polls[1]);
  rig_close(&rig);
}

TEST(head_is_answered_without_a_body) {
  static const char two[] = "HEAD /api/v1/healthz HTTP/1.1\r\n\r\n"
                            "HEAD /api/v1/telemetry HTTP/1.1\r\n\r\n"
                            "GET /api/v1/healthz HTTP/1.1\r\n"
                            "Connection: close\r\n\r\n";
  exchange_t *x;
  const char *at;
  int n = 0;
  rig_t rig;

  rig_open(&rig, NULL);
  x = rig_raw(&rig, two, sizeof(two) - 1);
  x->is_raw = 1;
  while (!x->closed)
    uv_run(&rig.loop, UV_RUN_ONCE);
  for (at = x->raw; (at = strstr(at, "HTTP/1.1 ")) != NULL; at += 9) {
    CHECK_INT(atoi(at + 9), n == 1 ? 405 : 200);
    n++;
  }
  CHECK_INT(n, 3);
  at = strchr(x->raw, '{');
  CHECK(at != NULL && strchr(at + 1, '{') == NULL);
  rig_free(x);
  rig_close(&rig);
}

TEST(a_target_may_be_absolute) {
  static const char request[] =
      "GET http://127.0.0.1/api/v1/healthz HTTP/1.1\r\n\r\n";
  rig_t rig;

  rig_open(&rig, NULL);
  CHECK_INT(rig_status(rig_raw(&rig, request, sizeof(request) - 1)), 200);
  CHECK_INT(rig_status(rig_raw(&rig, "GET http://a HTTP/1.1\r\n\r\n", 25)),
            400);
  rig_close(&rig);
}

/* More than the system takes off the sender at once, and the sender reads only
 * when it has sent all: a server that hung up with some of it unread would
 * answer with a reset. */
TEST(a_refusal_arrives_though_more_is_on_its_way) {
  enum { N = 4 << 20 };
  char *big = malloc(N);
  exchange_t *x;
  rig_t rig;

  CHECK(big != NULL);
  memset(big, 'a', N);
  memcpy(big, "GET / HTTP/1.1\r\nA: ", 19);
  rig_open(&rig, NULL);
  x = rig_raw(&rig, big, N);
  x->sends_first = 1;
  rig_wait(x, 1);
  CHECK(!x->reset);
  CHECK_INT(x->status, 431);
  while (!x->closed)
    uv_run(&rig.loop, UV_RUN_ONCE);
  CHECK(!x->reset);
  rig_free(x);
  rig_close(&rig);
  free(big);
}

TEST(a_chunk_that_cannot_fit_is_refused_when_it_is_announced) {
  static const char request[] = "POST /api/v1/telemetry HTTP/1.1\r\n"
                                "Transfer-Encoding: chunked\r\n\r\n"
                                "ffffffffffffffff\r\n";
  rig_t rig;

  rig_open(&rig, NULL);
  CHECK_INT(rig_status(rig_raw(&rig, request, sizeof(request) - 1)), 413);
  rig_close(&rig);
}

TEST(a_number_that_is_too_large_is_told_apart) {
  static const char *const bodies[] = {"{\"a\":123456789012345678901234}",
                                       "{\"a\":1e999}"};
  rig_t rig;

  rig_open(&rig, NULL);
  for (int i = 0; i < 2; i++) {
    exchange_t *x = rig_post(&rig, "telemetry", "%s", bodies[i]);

    CHECK_INT(x->status, 422);
    CHECK(strstr(x->body, "a number that is too large") != NULL);
    rig_free(x);
  }
  rig_close(&rig);
}

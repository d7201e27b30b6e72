/* SPDX-License-Identifier: MIT */
/* The same over TLS, against a server that says what it is told to. */
#include "fixture.h"
#include "peer.h"

typedef struct {
  fixture_t f;
  peer_t peer;
} secure_t;

static void secure_open(secure_t *s, const char *address, const char *answer,
                        int ends) {
  const test_cert_t leaf = {.address = address};
  tnk__http_options_t options = {.ca_file = s->peer.ca_path};

  peer_init(&s->peer, leaf);
  s->peer.answer = answer;
  s->peer.request_end = "\r\n\r\nbody";
  s->peer.ends = ends;
  fixture_open_with(&s->f, &options);
  peer_open(&s->peer, &s->f.c.uv);
}

static void secure_close(secure_t *s) {
  test_server_close(&s->peer.server);
  fixture_close(&s->f);
  peer_free(&s->peer);
}

static void secure_call(secure_t *s, call_t *call) {
  tnk__http_request_t request =
      request_to(s->f.mock, TNK__LANE_TRAIN, "POST", "/x");

  request.origin.port = (uint16_t)s->peer.server.port;
  request.origin.is_tls = 1;
  request.body = "body";
  request.body_len = 4;
  call_init(&s->f, call);
  CHECK_INT(tnk__exchange_start(&s->f.http, &call->ex, &request), TNK_OK);
  call_wait(&s->f, call);
}

TEST(one_handshake_for_many_exchanges) {
  secure_t s;
  call_t call;

  secure_open(&s, "127.0.0.1", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
              0);
  for (int i = 0; i < 5; i++) {
    secure_call(&s, &call);
    CHECK_INT(call.err, TNK_OK);
    CHECK_INT(call.status, 200);
    CHECK_STR(call.body, "ok");
  }
  CHECK_INT(s.peer.n_requests, 5);
  CHECK_INT(s.peer.server.n_handshakes, 1);
  secure_close(&s);
}

/* Nothing is sent to a server that is not the one it should be. */
TEST(a_wrong_certificate_gets_no_byte) {
  secure_t s;
  call_t call;

  secure_open(&s, "127.0.0.2", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
              0);
  secure_call(&s, &call);
  CHECK_INT(call.err, TNK_ECERT);
  CHECK_STR(call.detail, "certificate is for 127.0.0.2, not for 127.0.0.1");
  CHECK_INT(call.sent, 0);
  CHECK_INT(call.n_sent, 0);
  CHECK_INT(s.peer.n_requests, 0);
  CHECK_INT(s.peer.server.n_received, 0);
  secure_close(&s);
}

/* The certificate changes under a client that has been here before, and has a
 * session to resume: to one of another authority, then to a new one of ours. */
TEST(a_certificate_that_changes) {
  static const test_cert_t other = {.subject = "CN=other authority",
                                    .is_ca = 1};
  test_cert_t cert = {.address = "127.0.0.1"};
  test_identity_t strange_ca;
  test_identity_t strange;
  test_identity_t renewed;
  secure_t s;
  call_t call;

  secure_open(&s, "127.0.0.1", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
              1);
  test_identity_make(&strange_ca, &other);
  cert.issuer = &strange_ca;
  test_identity_make(&strange, &cert);
  cert.issuer = &s.peer.ca;
  test_identity_make(&renewed, &cert);
  secure_call(&s, &call);
  CHECK_INT(call.err, TNK_OK);
  s.peer.server.options.identity = &strange;
  test_server_configure(&s.peer.server);
  secure_call(&s, &call);
  CHECK_INT(call.err, TNK_ECERT);
  CHECK_INT(call.sent, 0);
  CHECK_INT(s.peer.n_requests, 1);
  s.peer.server.options.identity = &renewed;
  test_server_configure(&s.peer.server);
  secure_call(&s, &call);
  CHECK_INT(call.err, TNK_OK);
  CHECK_STR(call.body, "ok");
  CHECK_INT(s.peer.n_requests, 2);
  secure_close(&s);
  test_identity_free(&renewed);
  test_identity_free(&strange);
  test_identity_free(&strange_ca);
}

/* Without TLS's goodbye the end of the stream may be an attacker's. */
TEST(an_end_without_goodbye_ends_no_answer) {
  static const struct {
    const char *answer;
    int ends;
    int err;
  } rows[] = {
      {"HTTP/1.1 200 OK\r\n\r\nto the end", 1, TNK_OK},
      {"HTTP/1.1 200 OK\r\n\r\nto the end", 2, TNK_ECONN},
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nto the end", 2, TNK_OK},
      {"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nto the end", 1, TNK_ECONN},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    secure_t s;
    call_t call;
    secure_open(&s, "127.0.0.1", rows[i].answer, rows[i].ends);
    secure_call(&s, &call);
    CHECK_INT(call.err, rows[i].err);
    CHECK_INT(call.status, 200);
    CHECK_STR(call.body, "to the end");
    secure_close(&s);
  }
}

TEST(certificates_that_cannot_be_read) {
  const tnk__http_options_t options = {.ca_file = "/nonexistent/ca.pem"};
  context_t c;
  tnk__http_t http;

  context_open(&c);
  CHECK_INT(tnk__http_open(&http, &c.loop, &options), TNK_ECERT);
  tnk__http_close(&http);
  context_close(&c);
}

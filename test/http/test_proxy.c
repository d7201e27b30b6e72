/* SPDX-License-Identifier: MIT */
/* Exchanges through proxies: tunnels for https://, whole URLs for http://. */
#include "support/proxy.h"

#include <stdlib.h>

#include "fixture.h"
#include "lib/wire/format/proxy.h"
#include "peer.h"

#define BASIC "Basic dXNlcjpzZWNyZXQ="

/* A fixture whose mock is the proxy for http://, and a second proxy in front
 * of a server with TLS. */
typedef struct {
  fixture_t f;
  peer_t peer;
  test_proxy_t proxy;
  tnk__proxies_t proxies;
  char no_proxy[64];
} way_t;

static void parse(tnk__proxy_t *out, int port) {
  static const tnk_pair_t header = {"X-Team", "seven"};
  const char *why = NULL;
  char text[64];

  snprintf(text, sizeof(text), "http://user:secret@127.0.0.1:%d", port);
  CHECK_INT(tnk__proxy_parse(out, test_allocator(), text, &header, 1, &why),
            TNK_OK);
}

/* `address`: the server's, in its certificate. */
static void way_open_at(way_t *way, const char *address) {
  const test_cert_t leaf = {.dns = "far.test", .address = address};
  tnk__http_options_t options = {.ca_file = way->peer.ca_path,
                                 .proxies = &way->proxies};

  memset(way, 0, sizeof(*way));
  way->proxies.no_proxy = way->no_proxy;
  peer_init(&way->peer, leaf);
  fixture_open_with(&way->f, &options);
  peer_open(&way->peer, &way->f.c.uv);
  test_proxy_open(&way->proxy, &way->f.c.uv, way->peer.server.port, 0);
  parse(&way->proxies.https, way->proxy.server.port);
  parse(&way->proxies.http, mock_port(way->f.mock));
}

static void way_open(way_t *way) {
  way_open_at(way, NULL);
}

static void way_close(way_t *way) {
  test_server_close(&way->peer.server);
  test_proxy_close(&way->proxy);
  fixture_close(&way->f);
  way->proxies.no_proxy = NULL;
  tnk__proxies_deinit(&way->proxies, test_allocator());
  peer_free(&way->peer);
}

static int way_start(way_t *way, call_t *call, const char *host, int port,
                     int is_tls) {
  static const tnk_pair_t key = {"X-API-Key", "tml-key"};
  tnk__http_request_t request =
      request_to(way->f.mock, TNK__LANE_CONTROL, "GET", "/x?y=z");

  request.origin = (tnk__origin_t){host, (uint16_t)port, is_tls};
  request.headers = &key;
  request.n_headers = 1;
  call_init(&way->f, call);
  return tnk__exchange_start(&way->f.http, &call->ex, &request);
}

static void way_call(way_t *way, call_t *call, const char *host, int port,
                     int is_tls) {
  CHECK_INT(way_start(way, call, host, port, is_tls), TNK_OK);
  call_wait(&way->f, call);
}

TEST(A16_one_tunnel_for_many_exchanges) {
  way_t way;
  call_t call;

  way_open(&way);
  for (int i = 0; i < 5; i++) {
    way_call(&way, &call, "far.test", 443, 1);
    if (call.err != TNK_OK)
      test_fail(__FILE__, __LINE__, "%s", call.detail);
    CHECK_STR(call.body, "ok");
  }
  CHECK_INT(way.peer.n_requests, 5);
  CHECK_INT(way.proxy.n_asked, 1);
  CHECK_INT(way.peer.server.n_handshakes, 1);
  CHECK_INT(mock_n_requests(way.f.mock), 0);
  way_close(&way);
}

/* A proxy that grants few tunnels and refuses more of them: what was refused
 * waits for the tunnels there are. */
TEST(A16_refused_tunnels_wait_for_those_that_work) {
  call_t first;
  call_t second;
  way_t way;

  way_open(&way);
  way.peer.request_end = "(nothing)"; /* it does not answer yet */
  CHECK_INT(way_start(&way, &first, "far.test", 443, 1), TNK_OK);
  TEST_RUN_UNTIL(&way.f.c.uv, way.peer.n > 0);
  way.proxy.answer = "HTTP/1.1 403 Forbidden\r\n\r\n";
  CHECK_INT(way_start(&way, &second, "far.test", 443, 1), TNK_OK);
  TEST_RUN_UNTIL(&way.f.c.uv, way.proxy.n_asked == 2);
  for (int i = 0; i < 100; i++)
    uv_run(&way.f.c.uv, UV_RUN_NOWAIT);
  CHECK_INT(second.n_done, 0);
  way.peer.request_end = "\r\n\r\n";
  way.peer.n = 0;
  test_conn_write(way.peer.server.conns, way.peer.answer,
                  strlen(way.peer.answer));
  call_wait(&way.f, &second);
  CHECK_INT(first.err, TNK_OK);
  CHECK_INT(second.err, TNK_OK);
  CHECK_INT(way.peer.server.n_accepted, 1);
  way_close(&way);
}

/* As Squid with `acl maxconn`: it counts the connections of a client with each
 * request, answers 403 where there are too many, and closes nothing. */
typedef struct {
  size_t max;
  int names_itself;
  int n_denied;
} limiter_t;

static void limit(mock_request_t *request, void *user) {
  static const char denied[] = "X-Squid-Error: ERR_ACCESS_DENIED 0\r\n";
  limiter_t *limiter = user;

  if (mock_n_open(request->server) > limiter->max) {
    limiter->n_denied++;
    mock_reply(request, 403, limiter->names_itself ? denied : NULL, "no", 2);
  } else {
    mock_reply_json_after(request, 300, 200, "{}");
  }
}

static void run_limited(limiter_t *limiter, call_t *calls, int n) {
  way_t way;

  way_open(&way);
  mock_on(way.f.mock, NULL, NULL, limit, limiter);
  for (int i = 0; i < n; i++) {
    CHECK_INT(way_start(&way, &calls[i], "far.test", 80, 0), TNK_OK);
    calls[i].ex.lane = TNK__LANE_CONTROL;
    for (int k = 0; i == 0 && k < 1000 && calls[0].n_done == 0; k++) {
      mock_turns(way.f.mock, 5);
      tnk__context_advance(&way.f.c.loop, 100);
    }
  }
  for (int i = 0; i < n; i++)
    for (int k = 0; k < 10000 && calls[i].n_done == 0; k++) {
      mock_turns(way.f.mock, 5);
      tnk__context_advance(&way.f.c.loop, 100);
    }
  way_close(&way);
}

/* Requests that a proxy has refused, as there were too many connections, wait
 * for those that work, as tunnels do. */
TEST_LIMIT(A16_too_many_connections_to_a_proxy_wait, 20) {
  enum { N = 40 };

  for (size_t max = 1; max < 4; max++) {
    limiter_t limiter = {max, 1, 0};
    static call_t calls[N];
    run_limited(&limiter, calls, N);
    CHECK(limiter.n_denied > 0);
    for (int i = 0; i < N; i++) {
      CHECK_INT(calls[i].err, TNK_OK);
      if (calls[i].status != 200)
        test_fail(__FILE__, __LINE__, "max %zu: call %d: %d", max, i,
                  calls[i].status);
    }
  }
}

/* A 403 of the service is the caller's, and so is one that a proxy gives to the
 * only connection that there is. */
TEST(A16_other_refusals_by_a_proxy_are_told) {
  enum { N = 4 };
  limiter_t service = {1, 0, 0}, forbidden = {0, 1, 0};
  call_t calls[N];

  run_limited(&service, calls, N);
  CHECK(service.n_denied > 0);
  CHECK_INT(calls[N - 1].status == 200 || calls[N - 1].status == 403, 1);
  run_limited(&forbidden, calls, 1);
  CHECK_INT(forbidden.n_denied, 1);
  CHECK_INT(calls[0].err, TNK_OK);
  CHECK_INT(calls[0].status, 403);
}

/* Who gets what: the proxy the credentials, the server the key. */
TEST(P10_secrets_go_to_their_owners) {
  way_t way;
  call_t call;

  way_open(&way);
  way_call(&way, &call, "far.test", 443, 1);
  CHECK_INT(call.err, TNK_OK);
  CHECK_STR(way.proxy.head, "CONNECT far.test:443 HTTP/1.1\r\n"
                            "Host: far.test:443\r\n"
                            "Proxy-Authorization: " BASIC "\r\n"
                            "X-Team: seven\r\n\r\n");
  CHECK(strstr(way.peer.request, "GET /x?y=z HTTP/1.1\r\nHost: far.test\r\n") ==
        way.peer.request);
  CHECK(strstr(way.peer.request, "X-API-Key: tml-key\r\n") != NULL);
  CHECK(strstr(way.peer.request, "Proxy") == NULL);
  CHECK(strstr(way.peer.request, "X-Team") == NULL);
  way_close(&way);
}

/* Each origin has a tunnel of its own. */
TEST(A16_no_tunnel_serves_another_origin) {
  way_t way;
  call_t call;

  way_open(&way);
  way_call(&way, &call, "far.test", 443, 1);
  CHECK_INT(call.err, TNK_OK);
  way_call(&way, &call, "far.test", 8443, 1);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(way.proxy.n_asked, 2);
  CHECK(strstr(way.proxy.head, "CONNECT far.test:8443 ") == way.proxy.head);
  CHECK(strstr(way.peer.request, "Host: far.test:8443\r\n") != NULL);
  way_call(&way, &call, "other.test", 443, 1);
  CHECK_INT(call.err, TNK_ECERT);
  CHECK_INT(call.sent, 0);
  CHECK_INT(way.peer.n_requests, 2);
  way_close(&way);
}

TEST(A16_a_tunnel_that_ended_is_made_anew) {
  way_t way;
  call_t call;

  way_open(&way);
  way.peer.ends = 1;
  for (int i = 1; i <= 3; i++) {
    way_call(&way, &call, "far.test", 443, 1);
    CHECK_INT(call.err, TNK_OK);
    TEST_RUN_UNTIL(&way.f.c.uv, way.f.http.n_connections == 0);
    CHECK_INT(way.proxy.n_asked, i);
  }
  /* The session goes on, though by another tunnel. */
  CHECK_INT(way.peer.server.n_resumed, 2);
  way_close(&way);
}

TEST(A16_http_goes_to_the_proxy_as_a_whole_url) {
  const mock_request_t *request;
  way_t way;
  call_t call;

  way_open(&way);
  mock_on(way.f.mock, NULL, NULL, mock_hold, NULL);
  for (int i = 0; i < 3; i++) {
    CHECK_INT(way_start(&way, &call, "far.test", i < 2 ? 8080 : 80, 0), TNK_OK);
    mock_wait(way.f.mock, (size_t)i + 1);
    mock_release(way.f.mock, 200, "{}");
    call_wait(&way.f, &call);
    CHECK_INT(call.err, TNK_OK);
    CHECK_INT(call.status, 200);
  }
  /* The connection is kept, for the same origin. */
  CHECK_INT(mock_n_connections(way.f.mock), 2);
  request = mock_request(way.f.mock, 1);
  CHECK_STR(request->target, "http://far.test:8080/x?y=z");
  CHECK_STR(mock_header(request, "Host"), "far.test:8080");
  CHECK_STR(mock_header(request, "Proxy-Authorization"), BASIC);
  CHECK_STR(mock_header(request, "X-Team"), "seven");
  CHECK_STR(mock_request(way.f.mock, 2)->target, "http://far.test/x?y=z");
  CHECK_INT(way.proxy.n_asked, 0);
  way_close(&way);
}

/* A 407 is never the service's, neither are its words. */
TEST(A16_http_refused_by_the_proxy) {
  way_t way;
  call_t call;
  char text[256];

  way_open(&way);
  mock_json(way.f.mock, NULL, NULL, 407, "{\"detail\":\"" BASIC "\"}");
  way_call(&way, &call, "far.test", 80, 0);
  CHECK_INT(call.err, TNK_EPROXY);
  snprintf(text, sizeof(call.detail),
           "proxy 127.0.0.1:%d refused the request: 407 Proxy Authentication "
           "Required: it rejects the given user and password",
           (int)mock_port(way.f.mock));
  CHECK_STR(call.detail, text);
  CHECK_INT(way.f.http.n_connections, 0);
  way_close(&way);
}

/* Nothing of the request has left: it is safe to repeat. */
TEST_LIMIT(A16_a_refused_tunnel_has_sent_nothing, 20) {
  static const struct {
    const char *answer;
    int err;
  } rows[] = {{"HTTP/1.1 503 x\r\n\r\n", TNK_ECONN},
              {"HTTP/1.1 502 x\r\n\r\n", TNK_ECONN},
              {"HTTP/1.1 407 x\r\n\r\n", TNK_EPROXY}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    way_t way;
    call_t call;
    way_open(&way);
    way.proxy.answer = rows[i].answer;
    way_call(&way, &call, "far.test", 443, 1);
    CHECK_INT(call.err, rows[i].err);
    CHECK_INT(call.sent, 0);
    CHECK_INT(call.n_sent, 0);
    CHECK_INT(call.status, 0);
    way.proxy.answer = NULL;
    way_call(&way, &call, "far.test", 443, 1);
    CHECK_INT(call.err, TNK_OK);
    way_close(&way);
  }
}

/* ---- Proxies of other kinds ---- */

static void parse_url(tnk__proxy_t *out, const char *scheme, int port) {
  const char *why = NULL;
  char text[64];

  tnk__proxy_deinit(out, test_allocator());
  snprintf(text, sizeof(text), "%s://user:secret@127.0.0.1:%d", scheme, port);
  CHECK_INT(tnk__proxy_parse(out, test_allocator(), text, NULL, 0, &why),
            TNK_OK);
}

/* With TLS and without there is a tunnel, and the request is as ever. */
TEST(A16_exchanges_by_socks) {
  way_t way;
  call_t call;
  const mock_request_t *request;

  way_open(&way);
  way.proxy.is_socks = 1;
  way.proxy.login = "user secret";
  parse_url(&way.proxies.https, "socks5h", way.proxy.server.port);
  parse_url(&way.proxies.http, "socks5h", way.proxy.server.port);
  way_call(&way, &call, "far.test", 443, 1);
  if (call.err != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", call.detail);
  CHECK(strstr(way.peer.request, "GET /x?y=z HTTP/1.1\r\nHost: far.test\r\n") ==
        way.peer.request);
  CHECK(strstr(way.peer.request, "Proxy") == NULL);
  way.proxy.target_port = mock_port(way.f.mock);
  mock_json(way.f.mock, "GET", "/x", 407, "{}");
  way_call(&way, &call, "far.test", 80, 0);
  CHECK_INT(call.err, TNK_OK); /* nobody but the server has said so */
  CHECK_INT(call.status, 407);
  request = mock_request(way.f.mock, 0);
  CHECK_STR(request->target, "/x?y=z");
  CHECK_STR(mock_header(request, "Host"), "far.test");
  CHECK_STR(mock_header(request, "Proxy-Authorization"), NULL);
  CHECK_INT(way.proxy.n_asked, 2);
  way_close(&way);
}

/* What goes to a proxy of HTTP without TLS goes to this one with TLS. */
TEST(A16_requests_to_a_proxy_with_tls) {
  way_t way;
  call_t call;

  way_open_at(&way, "127.0.0.1");
  parse_url(&way.proxies.http, "https", way.peer.server.port);
  way_call(&way, &call, "near.test", 80, 0);
  if (call.err != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", call.detail);
  CHECK(strstr(way.peer.request, "GET http://near.test/x?y=z HTTP/1.1\r\n") ==
        way.peer.request);
  CHECK(strstr(way.peer.request, "Proxy-Authorization: " BASIC "\r\n") != NULL);
  CHECK_INT(way.peer.server.n_handshakes, 1);
  CHECK_INT(way.proxy.n_asked, 0);
  way_close(&way);
}

TEST(NO_PROXY_hosts_are_reached_directly) {
  way_t way;
  call_t call;

  way_open(&way);
  snprintf(way.no_proxy, sizeof(way.no_proxy), "127.0.0.1");
  mock_json(way.f.mock, "GET", "/x", 200, "{}");
  way_call(&way, &call, "127.0.0.1", mock_port(way.f.mock), 0);
  CHECK_INT(call.err, TNK_OK);
  CHECK_STR(mock_request(way.f.mock, 0)->target, "/x?y=z");
  CHECK_STR(mock_header(mock_request(way.f.mock, 0), "Proxy-Authorization"),
            NULL);
  CHECK_STR(mock_header(mock_request(way.f.mock, 0), "X-Team"), NULL);
  way_call(&way, &call, "127.0.0.1", way.peer.server.port, 1);
  CHECK_INT(call.err, TNK_ECERT);
  CHECK_INT(way.proxy.n_asked, 0);
  way_close(&way);
}

TEST(A16_what_waits_names_the_proxy) {
  char said[256], expected[256];
  tnk__text_t text;
  way_t way;
  call_t call;

  way_open(&way);
  way.proxy.answer = "";
  CHECK_INT(way_start(&way, &call, "far.test", 443, 1), TNK_OK);
  TEST_RUN_UNTIL(&way.f.c.uv, way.proxy.n_asked > 0);
  tnk__text_init(&text, said, sizeof(said));
  tnk__exchange_describe(&call.ex, &text);
  snprintf(expected, sizeof(expected),
           "waits for a connection to far.test:443 through proxy "
           "127.0.0.1:%d (1 on the way)",
           way.proxy.server.port);
  CHECK_STR(said, expected);
  tnk__exchange_cancel(&call.ex);
  way_close(&way);
}

TEST(A16_a_proxy_that_cannot_be_used) {
  way_t way;
  call_t call;

  way_open(&way);
  tnk__proxy_deinit(&way.proxies.https, test_allocator());
  way.proxies.https.why = "of no use";
  CHECK_INT(way_start(&way, &call, "far.test", 443, 1), TNK_EPROXY);
  CHECK(!tnk__exchange_is_active(&call.ex));
  way_close(&way);
}

TEST_LIMIT(A16_exchanges_without_memory, 60) {
  for (int is_tls = 0; is_tls < 2; is_tls++) {
    int failed = 1;
    for (long n = 0; failed; n++) {
      way_t way;
      call_t call;
      int err;
      way_open(&way);
      mock_json(way.f.mock, NULL, NULL, 200, "{}");
      test_alloc_fail_at(n);
      err = way_start(&way, &call, "far.test", 443, is_tls);
      if (err == TNK_OK) {
        call_wait(&way.f, &call);
        err = call.err;
      }
      failed = test_alloc_did_fail();
      test_alloc_fail_at(-1);
      CHECK(err == TNK_OK || (failed && err == TNK_ENOMEM));
      way_close(&way);
    }
  }
}

/* SPDX-License-Identifier: MIT */
/*
 * Downloads over TLS.
 */
#include "hub/bench.h"
#include "support/tls_server.h"

typedef struct {
  bench_t bench;
  test_identity_t ca;
  test_identity_t leaf;
  char ca_path[256];
  test_server_t server;
  char answer[300];
} secure_t;

static void on_request(test_conn_t *conn, const unsigned char *data, size_t n) {
  const secure_t *s = conn->server->options.user;

  /* A request is small enough to come at once. */
  if (n > 4 && memcmp(data + n - 4, "\r\n\r\n", 4) == 0)
    test_conn_write(conn, s->answer, strlen(s->answer));
}

static void secure_open(secure_t *s) {
  const test_cert_t authority = {.subject = "CN=test authority", .is_ca = 1};
  const test_cert_t leaf = {.address = "127.0.0.1", .issuer = &s->ca};
  test_server_options_t server = {.on_read = on_request, .user = s};
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;

  bench_open(&s->bench);
  bench_close_hub(&s->bench);
  test_identity_make(&s->ca, &authority);
  test_identity_save(&s->ca, s->ca_path, sizeof(s->ca_path));
  test_identity_make(&s->leaf, &leaf);
  server.identity = &s->leaf;
  test_server_open(&s->server, &s->bench.uv, &server);
  options.ca_file = s->ca_path;
  bench_open_hub(&s->bench, &options);
}

static void secure_close(secure_t *s) {
  test_server_close(&s->server);
  bench_close(&s->bench);
  test_identity_free(&s->leaf);
  test_identity_free(&s->ca);
  CHECK_INT(unlink(s->ca_path), 0);
}

static void secure_get(secure_t *s, outcome_t *outcome) {
  char url[100];
  char path[200];

  snprintf(url, sizeof(url), "https://127.0.0.1:%d/x", s->server.port);
  snprintf(path, sizeof(path), "%s/file", s->bench.dir);
  outcome_of(outcome, tnk_hub_download(s->bench.hub, url, path, NULL));
  outcome_wait(&s->bench, outcome);
}

TEST_LIMIT(K11_downloads_over_tls_never_go_on_without_it, 20) {
  outcome_t outcome;
  secure_t s;

  secure_open(&s);
  snprintf(s.answer, sizeof(s.answer),
           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  secure_get(&s, &outcome);
  CHECK_INT(outcome.status, TNK_OK);
  bench_check_file(&s.bench, "file", "hello");
  outcome_drop(&outcome);
  snprintf(s.answer, sizeof(s.answer),
           "HTTP/1.1 302 Found\r\nLocation: %s/y\r\n"
           "Content-Length: 0\r\n\r\n",
           mock_url(s.bench.mock));
  secure_get(&s, &outcome);
  CHECK_INT(outcome.status, TNK_EPROTO);
  CHECK(strstr(outcome.text, "https to http") != NULL);
  CHECK_INT(mock_n_requests(s.bench.mock), 0);
  bench_check_file(&s.bench, "file", "hello");
  outcome_drop(&outcome);
  secure_close(&s);
}

/* SPDX-License-Identifier: MIT */
#include <mbedtls/pem.h>
#include <mbedtls/pk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "server/http.h"
#include "support/test.h"
#include "tnk/error.h"

/* TLS at the server's end. That of HTTP/2 over it is in test_server_h2_tls.c,
 * where there is HTTP/2. */

static const local_options_t defaults = LOCAL_OPTIONS_INIT;

static int none_connected(const local_counts_t *counts) {
  return counts->n_connections == 0;
}

TEST(http_over_tls) {
  static const char both[] = "GET /api/v1/healthz HTTP/1.1\r\n\r\n"
                             "GET /api/v1/healthz HTTP/1.1\r\n"
                             "Connection: close\r\n\r\n";
  exchange_t *x;
  tls_kit_t kit;
  rig_t rig;

  tls_kit_open(&kit, NULL);
  rig_open_tls(&rig, defaults, &kit);
  x = rig_raw(&rig, both, sizeof(both) - 1);
  rig_wait(x, 2);
  CHECK_INT(x->status, 200);
  CHECK_STR(x->body, "{\"status\":\"ok\"}");
  while (!x->closed)
    uv_run(&rig.loop, UV_RUN_ONCE);
  CHECK(x->tls->has_goodbye && !x->reset);
  CHECK_STR(tls_peer_alpn(x->tls), "");
  rig_free(x);
  rig_close(&rig);
  tls_kit_close(&kit);
}

TEST(the_protocol_is_agreed_upon) {
  static const char *const offers[][3] = {{"http/1.1", NULL},
                                          {"http/1.1", "h2", NULL},
                                          {"h2", "http/1.1", NULL},
                                          {"spdy/3", NULL}};
  tls_kit_t kit;
  rig_t rig;

  for (size_t i = 0; i < 4; i++) {
    const char *wanted = i == 0 || !tnk__srv_has_h2() ? "http/1.1" : "h2";
    exchange_t *x;

    tls_kit_open(&kit, offers[i]);
    rig_open_tls(&rig, defaults, &kit);
    x = rig_raw(&rig, "", 0);
    while (!x->tls->is_open && !x->closed)
      uv_run(&rig.loop, UV_RUN_ONCE);
    CHECK_INT(x->tls->is_open, i < 3);
    if (i < 3)
      CHECK_STR(tls_peer_alpn(x->tls), wanted);
    rig_free(x);
    rig_close(&rig);
    tls_kit_close(&kit);
  }
}

static int n_checked;

static int on_certificate(void *user, mbedtls_x509_crt *crt, int depth,
                          uint32_t *flags) {
  (void)user;
  (void)crt;
  (void)depth;
  (void)flags;
  n_checked++;
  return 0;
}

/* Whoever comes again shows a ticket, and no certificate is sent. */
TEST(tickets) {
  tls_kit_t kit;
  rig_t rig;

  for (int is_old = 0; is_old < 2; is_old++) {
    n_checked = 0;
    tls_kit_open(&kit, NULL);
    if (is_old)
      tls_kit_only_1_2(&kit);
    mbedtls_ssl_conf_verify(&kit.config, on_certificate, NULL);
    rig_open_tls(&rig, defaults, &kit);
    for (int i = 0; i < 4; i++)
      CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
    CHECK_INT(n_checked, 1);
    rig_close(&rig);
    tls_kit_close(&kit);
  }
}

TEST(large_bodies_over_tls) {
  enum { N = 3 << 20 };
  char *big = malloc(N + 3);
  exchange_t *x;
  tls_kit_t kit;
  rig_t rig;

  CHECK(big != NULL);
  memset(big, ' ', N);
  memcpy(big + N, "{}", 3);
  tls_kit_open(&kit, NULL);
  rig_open_tls(&rig, defaults, &kit);
  x = rig_send(&rig, "POST", "/api/v1/telemetry",
               "Content-Type: application/json\r\n", big, N + 2);
  rig_wait(x, 1);
  CHECK_INT(x->status, 200);
  rig_free(x);
  rig_close(&rig);
  tls_kit_close(&kit);
  free(big);
}

/* More than what is kept of it at a time: reading stops and goes on. */
TEST_LIMIT(thousands_of_pipelined_requests_over_tls, 30) {
  static const char one[] = "GET /api/v1/healthz HTTP/1.1\r\n\r\n";
  enum { N = 8000 };
  char *all = malloc(N * sizeof(one));
  size_t n = 0;
  exchange_t *x;
  tls_kit_t kit;
  rig_t rig;

  CHECK(all != NULL);
  for (int i = 0; i < N; i++) {
    memcpy(all + n, one, sizeof(one) - 1);
    n += sizeof(one) - 1;
  }
  tls_kit_open(&kit, NULL);
  rig_open_tls(&rig, defaults, &kit);
  x = rig_raw(&rig, all, n);
  rig_wait(x, N);
  CHECK_INT(x->n_done, N);
  rig_free(x);
  rig_close(&rig);
  tls_kit_close(&kit);
  free(all);
}

/* ---- Those who do it wrong ---- */

TEST(garbage_instead_of_a_handshake) {
  static const char *const garbage[] = {
      "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\xff\xff garbage",
      "\x16\x03\x01\x00\x04\x01\x00\x00\x00", "PRI * HTTP/2.0\r\n\r\n"};
  uint64_t state = 1;
  tls_kit_t kit;
  rig_t rig;

  tls_kit_open(&kit, NULL);
  rig_open_tls(&rig, defaults, &kit);
  for (size_t i = 0; i < 40; i++) {
    char noise[300];
    exchange_t *x;

    rig.tls = NULL;
    for (size_t k = 0; k < sizeof(noise); k++)
      noise[k] = (char)test_random(&state);
    if (i < 4)
      x = rig_raw(&rig, garbage[i],
                  i == 2 ? 9 : strlen(garbage[i])); /* it has NULs */
    else
      x = rig_raw(&rig, noise, sizeof(noise));
    x->is_raw = 1;
    for (int k = 0; k < 10 && !x->closed; k++)
      uv_run(&rig.loop, UV_RUN_NOWAIT);
    rig_free(x);
    rig.tls = &kit;
  }
  CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
  rig_until(&rig, none_connected);
  rig_close(&rig);
  tls_kit_close(&kit);
}

/* In pieces, and not at all: others are served meanwhile. */
TEST(handshakes_that_take_their_time) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  exchange_t *silent;
  exchange_t *crowd[30];
  tls_kit_t kit;
  rig_t rig;

  tls_kit_open(&kit, NULL);
  rig_open_tls(&rig, options, &kit);
  rig.tls = NULL;
  silent = rig_raw(&rig, "\x16\x03\x01", 3);
  silent->is_raw = 1;
  rig.tls = &kit;
  for (int i = 0; i < 30; i++)
    crowd[i] = rig_send(&rig, "GET", "/api/v1/healthz", NULL, NULL, 0);
  for (int i = 0; i < 30; i++)
    CHECK_INT(rig_status(crowd[i]), 200);
  CHECK(!silent->closed);
  rig_free(silent);
  rig_close(&rig);
  options.idle_ms = 50;
  rig_open_tls(&rig, options, &kit);
  rig.tls = NULL;
  silent = rig_raw(&rig, "\x16\x03\x01", 3);
  silent->is_raw = 1;
  while (!silent->closed)
    uv_run(&rig.loop, UV_RUN_ONCE);
  rig_free(silent);
  rig_close(&rig);
  tls_kit_close(&kit);
}

/* Closing with handshakes in every state. */
TEST(closing_during_handshakes) {
  exchange_t *x[4];
  tls_kit_t kit;
  rig_t rig;

  for (int turns = 0; turns < 12; turns++) {
    tls_kit_open(&kit, NULL);
    rig_open_tls(&rig, defaults, &kit);
    for (int i = 0; i < 4; i++)
      x[i] = rig_send(&rig, "GET", "/api/v1/healthz", NULL, NULL, 0);
    for (int i = 0; i < turns; i++)
      uv_run(&rig.loop, UV_RUN_NOWAIT);
    local_server_close(rig.server, NULL, NULL);
    uv_run(&rig.loop, UV_RUN_NOWAIT);
    for (int i = 0; i < 4; i++)
      rig_free(x[i]);
    uv_run(&rig.loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&rig.loop), 0);
    tls_kit_close(&kit);
  }
}

/* ---- Files ---- */

static void refused(const char *cert, const char *key, const char *wanted) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  local_server_t *server;
  uv_loop_t loop;
  char why[256] = "";

  CHECK_INT(uv_loop_init(&loop), 0);
  options.why = why;
  options.n_why = sizeof(why);
  options.tls_cert = cert;
  options.tls_key = key;
  CHECK(local_server_open(&server, &loop, &options) < 0);
  if (strcmp(why, wanted) != 0)
    test_fail(__FILE__, __LINE__, "%s\nwanted: %s", why, wanted);
  uv_run(&loop, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&loop), 0);
}

TEST(files_that_cannot_be_used) {
  char path[] = "/tmp/tnk-test-XXXXXX";
  int fd = mkstemp(path);
  char wanted[256];
  tls_kit_t kit;
  tls_kit_t other;

  CHECK(fd >= 0);
  CHECK(write(fd, "no PEM\n", 7) == 7);
  close(fd);
  tls_kit_open(&kit, NULL);
  tls_kit_open(&other, NULL);
  refused(kit.cert, NULL,
          "a certificate needs its key, and a key its certificate");
  refused(NULL, kit.key,
          "a certificate needs its key, and a key its certificate");
  refused("/nowhere/cert.pem", kit.key,
          "cannot read the certificate in /nowhere/cert.pem: no such file or "
          "directory");
  refused(kit.cert, "/tmp",
          "cannot read the key in /tmp: illegal operation on a directory");
  snprintf(wanted, sizeof(wanted), "cannot parse a certificate in %s", path);
  refused(path, kit.key, wanted);
  snprintf(wanted, sizeof(wanted), "cannot parse a private key in %s",
           kit.cert);
  refused(kit.cert, kit.cert, wanted);
  snprintf(wanted, sizeof(wanted),
           "the key in %s does not belong to the certificate", other.key);
  refused(kit.cert, other.key, wanted);
  tls_kit_close(&other);
  tls_kit_close(&kit);
  remove(path);
}

/* ---- Without memory ---- */

TEST_LIMIT(requests_without_memory, 60) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  tls_kit_t kit;
  int hit = 1;
  rig_t rig;

  options.alloc = test_allocator();
  tls_kit_open(&kit, NULL);
  rig_open_tls(&rig, options, &kit);
  for (long n = 0; hit; n++) {
    exchange_t *x = rig_send(&rig, "GET", "/api/v1/healthz", NULL, NULL, 0);

    test_alloc_fail_at(n);
    rig_wait(x, 1);
    hit = test_alloc_did_fail();
    test_alloc_fail_at(-1);
    rig_free(x);
    CHECK_INT(rig_status(rig_get(&rig, "healthz")), 200);
  }
  rig_close(&rig);
  CHECK_INT(test_alloc_live(), 0);
  tls_kit_close(&kit);
}

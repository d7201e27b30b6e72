/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "support/mock_internal.h"
#include "support/test.h"

/* What is set and counted of HTTP/2, for which no session is needed. */

int mock_over_http2(void) {
  const char *version = getenv("TNK_TEST_HTTP");

  return version != NULL && strcmp(version, "2") == 0;
}

void mock_only_http1(const char *why) {
  if (mock_over_http2())
    test_skip(why);
}

void mock_set_http2(mock_server_t *server, int http2) {
  server->h2.is_unknown = !http2;
}

void mock_set_http1(mock_server_t *server, int http1) {
  server->h2.is_alone = !http1;
}

void mock_set_pongs(mock_server_t *server, int pongs) {
  server->h2.no_pongs = !pongs;
}

void mock_set_reset_guard(mock_server_t *server, size_t max, uint64_t ms) {
  server->h2.max_resets = max;
  server->h2.resets_ms = ms;
}

size_t mock_n_sessions(const mock_server_t *server) {
  return server->h2.n_sessions;
}

size_t mock_n_streams(const mock_server_t *server) {
  return server->h2.n_streams;
}

size_t mock_most_streams(const mock_server_t *server) {
  return server->h2.most_streams;
}

size_t mock_n_refused(const mock_server_t *server) {
  return server->h2.n_refused;
}

size_t mock_n_resets(const mock_server_t *server) {
  return server->h2.n_resets;
}

size_t mock_most_resets(const mock_server_t *server) {
  return server->h2.most_resets;
}

size_t mock_n_calmed(const mock_server_t *server) {
  return server->h2.n_calmed;
}

size_t mock_n_pings(const mock_server_t *server) {
  return server->h2.n_pings;
}

size_t mock_n_goaways(const mock_server_t *server) {
  return server->h2.n_goaways;
}

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_MOCK_HTTP2_H
#define TNK_TEST_SUPPORT_MOCK_HTTP2_H

#include <stddef.h>
#include <stdint.h>

#include "support/mock_server.h"

/*
 * What only HTTP/2 has: the scripted server's settings, streams and frames.
 * Without nghttp2 a connection of HTTP/2 fails the test.
 *
 * Connections are told by their numbers, from 0 in order of their coming;
 * MOCK_ALL stands for all that are open. Those that are closed, and those of
 * HTTP/1.1, are left out.
 */
enum { MOCK_ALL = -1 };

/* Identifiers of settings (RFC 9113, 6.5.2). */
enum {
  MOCK_TABLE_SIZE = 1,
  MOCK_PUSH = 2,
  MOCK_MAX_STREAMS = 3,
  MOCK_WINDOW = 4,
  MOCK_MAX_FRAME = 5,
  MOCK_MAX_HEAD = 6
};

/* Codes of errors (section 7). */
enum {
  MOCK_NO_ERROR = 0,
  MOCK_PROTOCOL_ERROR = 1,
  MOCK_INTERNAL_ERROR = 2,
  MOCK_FLOW_CONTROL_ERROR = 3,
  MOCK_SETTINGS_TIMEOUT = 4,
  MOCK_STREAM_CLOSED = 5,
  MOCK_FRAME_SIZE_ERROR = 6,
  MOCK_REFUSED_STREAM = 7,
  MOCK_CANCEL = 8,
  MOCK_COMPRESSION_ERROR = 9,
  MOCK_CONNECT_ERROR = 10,
  MOCK_ENHANCE_YOUR_CALM = 11,
  MOCK_INADEQUATE_SECURITY = 12,
  MOCK_HTTP_1_1_REQUIRED = 13,
  MOCK_N_CODES
};

/* Types of frames (section 6). */
enum {
  MOCK_DATA = 0,
  MOCK_HEADERS = 1,
  MOCK_RST_STREAM = 3,
  MOCK_SETTINGS = 4,
  MOCK_PUSH_PROMISE = 5,
  MOCK_PING = 6,
  MOCK_GOAWAY = 7,
  MOCK_WINDOW_UPDATE = 8,
  MOCK_CONTINUATION = 9
};

/* A setting of the connections to come; those that are open are told at once.
 */
void mock_setting(mock_server_t *server, uint32_t id, uint32_t value);
/* What the client's settings say on a connection, or the default. */
uint32_t mock_client_setting(mock_server_t *server, int connection,
                             uint32_t id);

/* Answers. They do nothing when the request is gone, or came over HTTP/1.1. */
/* End the stream with a code: at once, or behind a whole answer. */
void mock_rst(mock_request_t *request, uint32_t code);
/* The same as a handler; `user` points to the code, a uint32_t. */
void mock_rst_with(mock_request_t *request, void *user);
/* mock_end() with trailers, which are lines that end with \r\n. */
void mock_end_with(mock_request_t *request, const char *trailers);

/* Connections. */
/* GOAWAY. `last` is the last stream that will be answered: MOCK_LAST for the
 * last one that has come, 2^31-1 to announce that more is to follow. The
 * connection closes when its streams have ended. */
enum { MOCK_LAST = -1 };
void mock_goaway(mock_server_t *server, int connection, int32_t last,
                 uint32_t code);
void mock_close_connection(mock_server_t *server, int connection, int reset);
/* A frame as it is, whatever the session thinks of it. */
void mock_frame(mock_server_t *server, int connection, uint8_t type,
                uint8_t flags, int32_t stream, const void *payload, size_t n);
/* The same, with a head that says another length. */
void mock_frame_of(mock_server_t *server, int connection, uint8_t type,
                   uint8_t flags, int32_t stream, const void *payload, size_t n,
                   size_t told);

/* Manners. */
/* 0: answer the preface of HTTP/2 with a 400 of HTTP/1.1, and close. */
void mock_set_http2(mock_server_t *server, int http2);
/* 0: answer HTTP/1.1 as a server of HTTP/2 alone does, with SETTINGS and a
 * GOAWAY, and close. */
void mock_set_http1(mock_server_t *server, int http1);
/* Say nothing on HTTP/2, not even the settings, until it is switched off. */
void mock_set_silent(mock_server_t *server, int silent);
/* 0: never open a window again; 1: open what was kept shut. */
void mock_set_windows(mock_server_t *server, int open);
/* So many bytes may come on each connection that is open, whatever is on it. */
void mock_set_connection_window(mock_server_t *server, int32_t n);
/* 0: leave PINGs without an answer. */
void mock_set_pongs(mock_server_t *server, int pongs);
/* Guard against resets: more than max in so much time (on the clock of
 * mock_set_clock()) end a connection with ENHANCE_YOUR_CALM. */
void mock_set_reset_guard(mock_server_t *server, size_t max, uint64_t ms);

/* What came. */
size_t mock_n_sessions(const mock_server_t *server); /* of HTTP/2, so far */
size_t mock_n_streams(const mock_server_t *server);  /* open now */
/* The most that were open at once on one connection. */
size_t mock_most_streams(const mock_server_t *server);
/* Streams over the limit that we had set: refused, and no requests. */
size_t mock_n_refused(const mock_server_t *server);
size_t mock_n_resets(const mock_server_t *server);
/* The most within the guard's time on one connection. */
size_t mock_most_resets(const mock_server_t *server);
size_t mock_n_calmed(const mock_server_t *server); /* times the guard acted */
size_t mock_n_pings(const mock_server_t *server);
size_t mock_n_goaways(const mock_server_t *server); /* of the client */

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_MOCK_SESSION_H
#define TNK_TEST_SUPPORT_MOCK_SESSION_H

#include <nghttp2/nghttp2.h>

#include "support/mock_internal.h"

/* What mock_http2.c (sessions) and mock_manners.c (what tests do to them)
 * share. */

struct mock_stream {
  tnk__list_t link;
  mock_session_t *session;
  int32_t id;
  mock_message_t message;
  mock_text_t body; /* of the answer; `body_at` bytes of it are sent */
  size_t body_at;
  mock_text_t trailers;
  size_t owed; /* bytes for which no window has been opened */
  int has_begun;
  int is_ended;
  int is_cut;
  int is_sent; /* with END_STREAM */
  int has_rst; /* to be sent after that */
  uint32_t rst;
};

struct mock_session {
  nghttp2_session *nghttp2;
  mock_conn_t *conn;
  tnk__list_t streams;
  size_t n_streams;
  size_t owed;
  uint64_t *resets; /* when they came */
  size_t n_resets;
  size_t first_reset; /* of those within the guard's time */
  int is_reading;
  int may_fail; /* a frame of the test's own, or a GOAWAY, has gone out */
  int finishes; /* GOAWAY is out, and the connection closes after its streams */
};

/* Tell the client the settings from the first-th on. */
void mock__http2_settings(mock_session_t *session, size_t first);

#endif

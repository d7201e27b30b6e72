/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_CALLS_FUTURE_H
#define TNK_LIB_WIRE_MESSAGE_CALLS_FUTURE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"

/* Request bodies of the calls about futures; responses are in
 * lib/wire/message/answer.h. The rules of lib/wire/message/calls_session.h
 * apply. */

/* Write a poll. With allow_metadata_only, the server may send only the size of
 * a large result at first. */
void tnk__retrieve_future_write(tnk__buf_t *out, const char *request_id,
                                int allow_metadata_only);
void tnk__cancel_future_write(tnk__buf_t *out, const char *request_id);

/* retrieve_futures asks which samples of a sampling session have ended. */
typedef struct {
  const char *sampling_session_id;
  uint64_t clone;      /* clone of the sampler; 0: the original */
  int64_t prev_cursor; /* cursor of the previous response; 0 at first */
  int at_once;         /* return at once instead of waiting for news */
  /* Samples whose results were received, sorted. */
  const char *const *retrieved;
  size_t n_retrieved;
} tnk__batch_request_t;

void tnk__retrieve_futures_write(tnk__buf_t *out,
                                 const tnk__batch_request_t *request);

/* A sample that has succeeded or failed. */
typedef struct {
  const char *request_id;
  uint64_t result_bytes; /* 0: not stated, or the sample failed */
} tnk__completion_t;

typedef struct {
  int64_t cursor;
  const tnk__completion_t *completions;
  size_t n;
} tnk__batch_answer_t;

/* Read the response. Elements in an unknown state are skipped. Returns
 * TNK_EPROTO if the list or the cursor is missing. */
int tnk__retrieve_futures_read(tnk__batch_answer_t *out, tnk__arena_t *arena,
                               const uint8_t *body, size_t n);

#endif

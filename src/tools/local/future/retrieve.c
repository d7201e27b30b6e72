/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tinker.pb-c.h"
#include "tnk/error.h"
#include "tools/local/future/future.h"

/* ---- Results as JSON ---- */

/* Results are stored as protobuf, so that they are written only once; this file
 * parses our own encoding. */

static int32_t int32_at(const ProtobufCBinaryData *bytes, size_t i) {
  int32_t value;

  memcpy(&value, bytes->data + i * sizeof(value), sizeof(value));
  return value;
}

static float float_at(const ProtobufCBinaryData *bytes, size_t i) {
  float value;

  memcpy(&value, bytes->data + i * sizeof(value), sizeof(value));
  return value;
}

static int64_t int64_at(const ProtobufCBinaryData *bytes, size_t i) {
  int64_t value;

  memcpy(&value, bytes->data + i * sizeof(value), sizeof(value));
  return value;
}

/* NaN becomes null. */
static void put_floats(tnk__json_writer_t *w,
                       const ProtobufCBinaryData *bytes) {
  tnk__json_begin_array(w);
  for (size_t i = 0; i < bytes->len / sizeof(float); i++)
    tnk__json_float(w, float_at(bytes, i));
  tnk__json_end(w);
}

static void put_topk(tnk__json_writer_t *w,
                     const TinkerPublic__TopkLogprobs *t) {
  tnk__json_begin_array(w);
  for (size_t row = 0; row < t->length; row++) {
    size_t at = row * t->k;

    /* The first cell shows whether a row was scored (sample/sample.c). */
    if (float_at(&t->logprobs, at) <= -99999.0f) {
      tnk__json_null(w);
      continue;
    }
    tnk__json_begin_array(w);
    for (size_t i = at; i < at + t->k; i++) {
      tnk__json_begin_array(w);
      tnk__json_int(w, int32_at(&t->token_ids, i));
      tnk__json_float(w, float_at(&t->logprobs, i));
      tnk__json_end(w);
    }
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

static void put_sequence(tnk__json_writer_t *w,
                         const TinkerPublic__SampledSequence *s) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "stop_reason",
                     s->stop_reason ==
                             TINKER_PUBLIC__STOP_REASON__STOP_REASON_LENGTH
                         ? "length"
                         : "stop");
  tnk__json_put_array(w, "tokens");
  for (size_t i = 0; i < s->tokens.len / sizeof(int32_t); i++)
    tnk__json_int(w, int32_at(&s->tokens, i));
  tnk__json_end(w);
  tnk__json_key(w, "logprobs");
  if (s->has_logprobs_case != 0)
    put_floats(w, &s->logprobs);
  else
    tnk__json_null(w);
  if (s->has_topk_sampled_logprobs_case != 0) {
    tnk__json_key(w, "topk_sampled_logprobs");
    put_topk(w, s->topk_sampled_logprobs);
  }
  tnk__json_end(w);
}

static void put_sample(tnk__json_writer_t *w,
                       const TinkerPublic__SampleResponse *r) {
  tnk__json_begin_object(w);
  tnk__json_put_array(w, "sequences");
  for (size_t i = 0; i < r->n_sequences; i++)
    put_sequence(w, r->sequences[i]);
  tnk__json_end(w);
  tnk__json_key(w, "prompt_logprobs");
  if (r->has_prompt_logprobs_case != 0)
    put_floats(w, &r->prompt_logprobs);
  else
    tnk__json_null(w);
  tnk__json_key(w, "topk_prompt_logprobs");
  if (r->has_topk_prompt_logprobs_case != 0)
    put_topk(w, r->topk_prompt_logprobs);
  else
    tnk__json_null(w);
  tnk__json_put_text(w, "type", "sample");
  tnk__json_end(w);
}

/* Example i of a record's field. */
static void put_tensor(tnk__json_writer_t *w,
                       const TinkerPublic__BatchedTensor *t, size_t i) {
  size_t from = (size_t)int64_at(&t->offsets, i);
  size_t to = (size_t)int64_at(&t->offsets, i + 1);
  ProtobufCBinaryData part = {to - from, t->data.data + from};
  int64_t n = (int64_t)(part.len / sizeof(float));
  int64_t trailing = t->n_trailing_shape > 0 ? t->trailing_shape[0] : 1;

  tnk__json_begin_object(w);
  tnk__json_key(w, "data");
  put_floats(w, &part);
  tnk__json_put_text(w, "dtype", "float32");
  tnk__json_put_array(w, "shape");
  tnk__json_int(w, n / trailing);
  if (t->n_trailing_shape > 0)
    tnk__json_int(w, trailing);
  tnk__json_end(w);
  tnk__json_end(w);
}

static void put_outputs(tnk__json_writer_t *w,
                        const TinkerPublic__ForwardBackwardOutput *o) {
  tnk__json_begin_array(w);
  for (size_t r = 0; r < o->n_loss_fn_outputs; r++) {
    const TinkerPublic__ArrayRecord *record = o->loss_fn_outputs[r];

    for (size_t i = 0; i < (size_t)record->num_datums; i++) {
      tnk__json_begin_object(w);
      for (size_t f = 0; f < record->n_fields; f++) {
        tnk__json_key(w, record->fields[f]->key);
        put_tensor(w, record->fields[f]->value, i);
      }
      tnk__json_end(w);
    }
  }
  tnk__json_end(w);
}

static void put_pass(tnk__json_writer_t *w,
                     const TinkerPublic__ForwardBackwardOutput *o) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "loss_fn_output_type", o->loss_fn_output_type);
  tnk__json_key(w, "loss_fn_outputs");
  put_outputs(w, o);
  tnk__json_put_object(w, "metrics");
  for (size_t i = 0; i < o->n_metrics; i++)
    tnk__json_put_double(w, o->metrics[i]->key, o->metrics[i]->value);
  tnk__json_end(w);
  tnk__json_end(w);
}

void local_result_json(tnk__buf_t *out, int is_sample, const uint8_t *proto,
                       size_t n) {
  tnk__json_writer_t w;
  TinkerPublic__SampleResponse *sample = NULL;
  TinkerPublic__ForwardBackwardOutput *pass = NULL;

  tnk__json_writer_init(&w, out);
  if (is_sample)
    sample = tinker_public__sample_response__unpack(NULL, n, proto);
  else
    pass = tinker_public__forward_backward_output__unpack(NULL, n, proto);
  if (sample != NULL)
    put_sample(&w, sample);
  else if (pass != NULL)
    put_pass(&w, pass);
  else
    out->err = TNK_ENOMEM;
  tinker_public__sample_response__free_unpacked(sample, NULL);
  tinker_public__forward_backward_output__free_unpacked(pass, NULL);
  if (out->err == TNK_OK && tnk__json_finish(&w) != TNK_OK)
    out->err = TNK_EINTERNAL;
}

/* ---- Polls ---- */

/*
 * A poll is answered at once if the result is available. Otherwise it is held
 * until the result is available, the hold time expires, or the client
 * disconnects.
 */

typedef struct {
  local_waiter_t waiter;
  local_hold_t hold;
  local_future_t *future;
  tnk__srv_req_t *req;
  int metadata; /* the answer may be the size of the result */
} wait_t;

/* Ends the wait and returns its data. Called before the answer, because after
 * that the connection may handle its next request. */
static wait_t end_wait(wait_t *wait) {
  local_server_t *server = wait->future->server;
  const wait_t was = *wait;

  tnk__list_remove(&wait->waiter.link);
  local_hold_stop(server, &wait->hold);
  tnk__free(server->alloc, wait);
  return was;
}

static void reply_failure(local_future_t *future, tnk__srv_req_t *req) {
  const char *text =
      future->result != NULL ? (const char *)future->result : "Request failed";
  local_out_t out;

  if (future->server->options.sequence == LOCAL_LENIENT) {
    local_reply_error(req, future->status >= 500 ? 500 : 400, "%s", text);
    return;
  }
  /* A lost result has a separate status in every server. */
  if (future->server->options.sequence == LOCAL_STRICT ||
      future->status == 410) {
    local_reply_error(req, future->status, "%s", text);
    return;
  }
  local_out_begin(&out, future->server->alloc);
  tnk__json_put_text(&out.w, "error", text);
  tnk__json_put_text(&out.w, "category", future->category);
  local_out_reply(&out, req, 200);
}

static int accepts_proto(const tnk__srv_req_t *req) {
  const char *accept = tnk__srv_req_header(req, "accept");

  return accept != NULL && strstr(accept, "application/x-protobuf") != NULL;
}

static void reply_metadata(local_future_t *future, tnk__srv_req_t *req) {
  local_out_t out;

  local_out_begin(&out, future->server->alloc);
  tnk__json_put_text(&out.w, "status", "complete_metadata");
  tnk__json_put_text(&out.w, "request_id", future->id);
  tnk__json_put_int(&out.w, "response_payload_size", (int64_t)future->n_result);
  local_out_reply(&out, req, 200);
}

static void reply_settled(local_future_t *future, tnk__srv_req_t *req,
                          int metadata) {
  const local_server_t *server = future->server;
  uint8_t *copy;
  tnk__buf_t json;

  future->is_fetched = 1;
  if (future->status != 200) {
    reply_failure(future, req);
    return;
  }
  if (metadata && server->options.metadata_from > 0 &&
      future->n_result >= server->options.metadata_from) {
    future->is_fetched = 0;
    reply_metadata(future, req);
    return;
  }
  /* Results are stored as protobuf; JSON is generated on request. */
  if (future->is_proto &&
      (server->options.json_results || !accepts_proto(req))) {
    tnk__buf_init(&json, server->alloc, (size_t)1 << 30);
    local_result_json(&json, future->kind == LOCAL_SAMPLE, future->result,
                      future->n_result);
    local_reply_buf(req, 200, &json);
    return;
  }
  copy = tnk__malloc(server->alloc, future->n_result);
  if (copy == NULL) {
    local_reply_error(req, 503, "Out of memory");
    return;
  }
  if (future->n_result > 0)
    memcpy(copy, future->result, future->n_result);
  tnk__srv_req_reply(req, 200,
                     future->is_proto ? "application/x-protobuf"
                                      : "application/json",
                     NULL, copy, future->n_result);
}

static const char *queue_state(const local_future_t *future) {
  /* A request that waits for a gap to close does not indicate missing
   * capacity. */
  return future->server->n_pending > 64 ? "paused_capacity" : "active";
}

static void reply_not_yet(local_future_t *future, tnk__srv_req_t *req) {
  local_out_t out;

  if (future->server->options.sequence == LOCAL_LENIENT) {
    local_reply_error(req, 408, "Timeout waiting for result");
    return;
  }
  local_out_begin(&out, future->server->alloc);
  tnk__json_put_text(&out.w, "type", "try_again");
  tnk__json_put_text(&out.w, "request_id", future->id);
  tnk__json_put_text(&out.w, "queue_state", queue_state(future));
  local_out_reply(&out, req, 200);
}

static void on_held(local_timer_t *timer) {
  const wait_t was = end_wait(tnk__container_of(timer, wait_t, hold.timer));

  reply_not_yet(was.future, was.req);
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  (void)req;
  end_wait(user);
}

static void on_settled(local_waiter_t *waiter) {
  const wait_t was = end_wait(tnk__container_of(waiter, wait_t, waiter));

  reply_settled(was.future, was.req, was.metadata);
}

/* An id of this server that is no longer known is gone; any other id never
 * existed. */
static void reply_unknown(local_call_t *call, const char *id) {
  const char *dash = strchr(id, '-');
  const local_server_t *server = call->server;
  size_t n_run = strlen(server->run);

  /* The part before the dash is random for each start of a server, so ids of an
   * earlier server are unknown, not gone. */
  if (dash != NULL && (size_t)(dash - id) == n_run &&
      memcmp(id, server->run, n_run) == 0 && dash[1] >= '1' && dash[1] <= '9' &&
      strtoull(dash + 1, NULL, 10) <= server->n_made)
    local_reply_error(call->req, 410, "The result of %s was dropped", id);
  else
    local_reply_error(call->req, 404, "Future not found: %s", id);
}

static void hold(local_call_t *call, local_future_t *future, int metadata) {
  local_server_t *server = call->server;
  wait_t *wait = tnk__calloc(server->alloc, 1, sizeof(*wait));

  if (wait == NULL) {
    local_reply_error(call->req, 503, "Out of memory");
    return;
  }
  wait->waiter.wake = on_settled;
  wait->future = future;
  wait->req = call->req;
  wait->metadata = metadata;
  tnk__list_append(&future->waiters, &wait->waiter.link);
  tnk__srv_req_park(call->req, on_gone, wait);
  local_hold_start(server, &wait->hold, on_held);
}

void local_retrieve_future(local_call_t *call) {
  local_future_t *future;
  const char *id = NULL;
  int metadata = 0;

  if (!local_need_text(call, "request_id", &id) ||
      !local_want_bool(call, "allow_metadata_only", &metadata))
    return;
  future = local_future_find(call->server, id);
  if (future == NULL)
    reply_unknown(call, id);
  else if (future->state == LOCAL_FUTURE_SETTLED)
    reply_settled(future, call->req, metadata);
  else if (call->server->options.hold_ms == 0)
    reply_not_yet(future, call->req);
  else
    hold(call, future, metadata);
}

void local_cancel_future(local_call_t *call) {
  local_future_t *future;
  const char *id = NULL;

  if (!local_need_text(call, "request_id", &id))
    return;
  future = local_future_find(call->server, id);
  if (future == NULL) {
    reply_unknown(call, id);
    return;
  }
  /* Only samples can be canceled. A training step has its place in the order
   * and runs. */
  if (future->state == LOCAL_FUTURE_PENDING && future->kind == LOCAL_SAMPLE &&
      future->cancel != NULL) {
    future->is_canceled = 1;
    future->cancel(future->owner);
  }
  local_reply_text(call->req, 200, "{\"type\":\"cancel_future\"}");
}

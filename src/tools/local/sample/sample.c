/* SPDX-License-Identifier: MIT */
#include "tools/local/sample/record.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/pb.h"
#include "tools/local/future/future.h"
#include "tools/local/sample/sampler.h"

/* ---- Results ---- */

/* Writes a finished draw as a SampleResponse. */

/* Cells in a row of best tokens that was not scored. */
static const float MASKED = -99999.0f;

typedef struct {
  const local_sample_t *sample;
  uint32_t i;
} sequence_t;

typedef struct {
  const int32_t *tokens;
  const float *logprobs;
  size_t k;
  size_t length;
} topk_t;

/* A row that was not scored holds token -1. On the wire its cells are (0,
 * -99999), which no scored cell can have. */
static void topk(tnk__pb_t *pb, const void *message) {
  const topk_t *t = message;
  size_t n = t->k * t->length;
  uint8_t *ids = tnk__pb_open(pb, 1, n * sizeof(int32_t));
  uint8_t *values = tnk__pb_open(pb, 2, n * sizeof(float));

  for (size_t i = 0; i < n && ids != NULL; i++) {
    int32_t id = t->tokens[i] < 0 ? 0 : t->tokens[i];
    float value = t->tokens[i] < 0 ? MASKED : t->logprobs[i];

    memcpy(ids + i * sizeof(id), &id, sizeof(id));
    memcpy(values + i * sizeof(value), &value, sizeof(value));
  }
  tnk__pb_varint(pb, 3, t->k);
  tnk__pb_varint(pb, 4, t->length);
}

static void sequence(tnk__pb_t *pb, const void *message) {
  const sequence_t *s = message;
  tnk__lm_sample_t out = tnk__lm_draw_sample(s->sample->draw, s->i);
  topk_t best = {out.topk_tokens, out.topk_logprobs,
                 s->sample->options.topk_sample, out.n_tokens};

  if (out.reason == TNK__LM_LENGTH)
    tnk__pb_varint(pb, 1, 1);
  tnk__pb_bytes(pb, 2, out.tokens, out.n_tokens * sizeof(int32_t));
  if (out.n_tokens > 0)
    tnk__pb_bytes(pb, 3, out.logprobs, out.n_tokens * sizeof(float));
  if (best.k > 0 && best.tokens != NULL && best.length > 0)
    tnk__pb_message(pb, 4, topk, &best);
}

/* ---- Results: tensors about the prompt ---- */

typedef struct {
  const void *data;
  size_t n_bytes;
  unsigned dtype;
  int64_t shape[2];
  const local_sample_t *sparse; /* its layout, or NULL */
} tensor_t;

/* The requested cells of a sparse request, in the order of its lists. */
static void csr(tnk__pb_t *pb, const void *message) {
  const tensor_t *t = message;
  const local_sample_t *s = t->sparse;
  uint8_t *at = tnk__pb_open(pb, 1, s->n_asked * sizeof(float));

  for (int64_t r = 0; r < t->shape[0] && at != NULL; r++)
    for (int64_t i = s->crow[r]; i < s->crow[r + 1]; i++) {
      memcpy(at, (const float *)t->data + r * t->shape[1] + s->col[i],
             sizeof(float));
      at += sizeof(float);
    }
  tnk__pb_bytes(pb, 2, s->crow, ((size_t)t->shape[0] + 1) * sizeof(int64_t));
  tnk__pb_bytes(pb, 3, s->col, s->n_asked * sizeof(int64_t));
}

static void tensor(tnk__pb_t *pb, const void *message) {
  const tensor_t *t = message;

  if (t->sparse != NULL)
    tnk__pb_message(pb, 2, csr, t);
  else
    tnk__pb_bytes(pb, 1, t->data, t->n_bytes);
  tnk__pb_varint(pb, 3, t->dtype);
  tnk__pb_packed(pb, 4, t->shape, 2);
}

static tensor_t about_prompt(const local_sample_t *sample, const void *data,
                             size_t k, unsigned dtype) {
  size_t rows = sample->options.n_prompt - 1;

  return (tensor_t){.data = data,
                    .n_bytes = rows * k * 4,
                    .dtype = dtype,
                    .shape = {(int64_t)rows, (int64_t)k}};
}

static void alternatives(tnk__pb_t *pb, const void *message) {
  const local_sample_t *sample = message;
  tnk__lm_prompt_t prompt = tnk__lm_draw_prompt(sample->draw);
  size_t k = sample->options.n_alternatives;
  tensor_t tokens = about_prompt(sample, prompt.alt_tokens, k, 3);
  tensor_t logprobs = about_prompt(sample, prompt.alt_logprobs, k, 1);

  tnk__pb_message(pb, 1, tensor, &tokens);
  tnk__pb_message(pb, 2, tensor, &logprobs);
}

static void response(tnk__pb_t *pb, const local_sample_t *sample) {
  const tnk__lm_draw_options_t *o = &sample->options;
  tnk__lm_prompt_t prompt = tnk__lm_draw_prompt(sample->draw);

  for (uint32_t i = 0; i < o->n_samples; i++) {
    sequence_t s = {sample, i};

    tnk__pb_message(pb, 1, sequence, &s);
  }
  if (prompt.logprobs != NULL && o->prompt_logprobs)
    tnk__pb_bytes(pb, 2, prompt.logprobs, o->n_prompt * sizeof(float));
  if (prompt.topk_tokens != NULL && o->topk_prompt > 0) {
    topk_t best = {prompt.topk_tokens, prompt.topk_logprobs, o->topk_prompt,
                   o->n_prompt};

    tnk__pb_message(pb, 3, topk, &best);
  }
  if (prompt.ask_logprobs != NULL && o->n_ask > 0) {
    tensor_t asked = about_prompt(sample, prompt.ask_logprobs, o->n_ask, 1);

    asked.sparse = sample->crow != NULL ? sample : NULL;
    tnk__pb_message(pb, 5, tensor, &asked);
  }
  if (prompt.alt_tokens != NULL && o->n_alternatives > 0)
    tnk__pb_message(pb, 6, alternatives, sample);
}

static void sample_write(tnk__buf_t *out, const local_sample_t *sample) {
  tnk__pb_t pb = {0};

  response(&pb, sample);
  pb = tnk__pb_whole(tnk__buf_reserve(out, pb.n));
  if (pb.at == NULL)
    return;
  response(&pb, sample);
  out->len += pb.n;
}

/* ---- Samples ---- */

/*
 * A sample waits in the lane of its sampling session until it is moved to
 * `drawing`. The samples there share the threads slice by slice. Their number
 * is small, because each has a cache of the size of its context. Lanes are
 * served in turn. A lane without a running sample may exceed the usual number,
 * so that a client with thousands of samples does not block the others. A lane
 * is in the order of arrival. A lane whose first sample needs weights from the
 * disk waits for them.
 */

enum { MAX_DRAWING = 32, MAX_EXTRA = 32, SLICE_TOKENS = 64 };

#define SAMPLE(p) tnk__container_of(p, local_sample_t, link)

static void pump(local_server_t *server);
static void on_loaded(local_weights_t *weights);

void local_sample_free(local_sample_t *sample) {
  tnk__list_remove(&sample->link);
  tnk__lm_draw_free(sample->draw);
  if (sample->weights != NULL)
    local_weights_unref(sample->weights);
  tnk__arena_deinit(&sample->arena);
  tnk__free(sample->server->alloc, sample);
}

static int on_thread(local_job_t *job) {
  local_sample_t *sample = tnk__container_of(job, local_sample_t, job);
  int done = 0;

  /* On the thread, because it copies the prompt. */
  if (sample->draw == NULL)
    sample->err =
        tnk__lm_draw_new(&sample->draw, sample->weights->lm, &sample->options,
                         sample->server->alloc, &sample->why);
  if (sample->err == TNK_OK)
    sample->err = tnk__lm_draw_step(sample->draw, SLICE_TOKENS, &done);
  return done || sample->err != TNK_OK;
}

/* Record the sample's use and times. */
static void note_run(const local_sample_t *sample) {
  const local_server_t *server = sample->server;
  local_span_t span = {.name = "sample",
                       .begin_ms = sample->begin_ms,
                       .end_ms = local_now_ms(server),
                       .seq = -1,
                       .track = -1};
  double n_tokens = 0;

  if (sample->begin_ms == 0)
    return;
  memcpy(span.session, sample->payer, sizeof(span.session));
  local_ledger_span(server, &span);
  if (sample->err != TNK_OK || sample->future->is_canceled)
    return;
  for (uint32_t i = 0; i < sample->options.n_samples; i++)
    n_tokens += (double)tnk__lm_draw_sample(sample->draw, i).n_tokens;
  local_ledger_use(server, LOCAL_USE_PREFILL, sample->payer,
                   (double)sample->options.n_prompt);
  local_ledger_use(server, LOCAL_USE_SAMPLE, sample->payer, n_tokens);
}

/* Write the sequences to the log, if there is one. */
static int log_drawn(const local_sample_t *sample) {
  local_drawn_t *log = sample->server->options.sample_log;
  const tnk__lm_draw_options_t *o = &sample->options;
  local_drawn_line_t *lines;
  int err;

  if (log == NULL)
    return TNK_OK;
  lines = tnk__calloc(sample->server->alloc, o->n_samples, sizeof(*lines));
  if (lines == NULL)
    return TNK_ENOMEM;
  for (uint32_t i = 0; i < o->n_samples; i++) {
    const tnk__lm_sample_t drawn = tnk__lm_draw_sample(sample->draw, i);

    lines[i] =
        (local_drawn_line_t){.request_id = sample->future->id,
                             .index = i,
                             .weights = sample->path,
                             .prompt = o->prompt,
                             .n_prompt = o->n_prompt,
                             .tokens = drawn.tokens,
                             .logprobs = drawn.logprobs,
                             .n_tokens = drawn.n_tokens,
                             .is_length = drawn.reason == TNK__LM_LENGTH};
  }
  err = local_drawn_write(log, lines, o->n_samples);
  tnk__free(sample->server->alloc, lines);
  return err;
}

static void settle(local_sample_t *sample) {
  local_future_t *future = sample->future;
  tnk__buf_t buf;

  note_run(sample);
  if (future->is_canceled) {
    local_future_fail(future, 410, "user", "The request was cancelled");
    return;
  }
  if (sample->err != TNK_OK) {
    local_future_fail_code(future, sample->err, sample->why.text);
    return;
  }
  if (log_drawn(sample) != TNK_OK) {
    local_future_fail(future, 500, "server",
                      "The sample could not be written to the sample log");
    return;
  }
  tnk__buf_init(&buf, sample->server->alloc, (size_t)1 << 30);
  if (sample->is_streamed)
    local_stream_write(&buf, sample);
  else
    sample_write(&buf, sample);
  /* A sequence without its record cannot be used for training. */
  if (sample->session[0] != '\0' && local_records_add(sample) != TNK_OK)
    buf.err = TNK_ENOMEM;
  if (sample->is_streamed)
    local_future_json(future, &buf);
  else
    local_future_proto(future, &buf);
}

static void on_done(local_job_t *job) {
  local_sample_t *sample = tnk__container_of(job, local_sample_t, job);
  local_server_t *server = sample->server;

  server->n_drawing--;
  if (sample->lane != NULL)
    sample->lane->n_drawing--;
  if (!server->closing)
    settle(sample);
  local_sample_free(sample);
  if (!server->closing)
    pump(server);
}

static void draw(local_sample_t *sample, local_lane_t *lane) {
  local_server_t *server = sample->server;

  tnk__list_remove(&sample->link);
  tnk__list_append(&server->drawing, &sample->link);
  sample->lane = lane;
  sample->begin_ms = local_now_ms(server);
  lane->n_drawing++;
  server->n_drawing++;
  sample->job.lane = 1;
  sample->job.run = on_thread;
  sample->job.done = on_done;
  local_job_start(&server->work, &sample->job);
}

#define LANE(p) tnk__container_of(p, local_lane_t, link)

/* The next lane; it is moved behind the others. NULL: no lane may start a
 * sample. */
static local_lane_t *next_lane(local_server_t *server) {
  if (server->n_drawing >= MAX_DRAWING + MAX_EXTRA)
    return NULL;
  TNK__LIST_FOREACH_SAFE (node, next, &server->lanes) {
    local_lane_t *lane = LANE(node);

    if (tnk__list_empty(&lane->samples)) {
      tnk__list_remove(node);
      continue;
    }
    if (server->n_drawing >= MAX_DRAWING && lane->n_drawing > 0)
      continue;
    tnk__list_remove(node);
    tnk__list_append(&server->lanes, node);
    return lane;
  }
  return NULL;
}

static void pump(local_server_t *server) {
  local_lane_t *lane;

  while ((lane = next_lane(server)) != NULL) {
    local_sample_t *sample = SAMPLE(lane->samples.next);

    if (sample->weights->lm != NULL) {
      draw(sample, lane);
      continue;
    }
    tnk__list_remove(&lane->link);
    tnk__list_append(&sample->weights->waiting, &lane->link);
    local_weights_load(sample->weights, on_loaded);
  }
}

static void enter_lane(local_server_t *server, local_lane_t *lane,
                       local_sample_t *sample) {
  tnk__list_remove(&sample->link);
  tnk__list_append(&lane->samples, &sample->link);
  if (tnk__list_empty(&lane->link))
    tnk__list_append(&server->lanes, &lane->link);
}

void local_lane_end(local_server_t *server, local_lane_t *lane) {
  tnk__list_remove(&lane->link);
  while (!tnk__list_empty(&lane->samples))
    enter_lane(server, &server->loose, SAMPLE(lane->samples.next));
  TNK__LIST_FOREACH (node, &server->drawing) {
    if (SAMPLE(node)->lane == lane)
      SAMPLE(node)->lane = NULL;
  }
}

static void cancel(void *owner) {
  local_sample_t *sample = owner;

  if (sample->job.active) {
    local_job_cancel(&sample->server->work, &sample->job);
    return;
  }
  settle(sample);
  local_sample_free(sample);
}

void local_sample_start(local_sample_t *sample, local_lane_t *lane) {
  sample->future->cancel = cancel;
  sample->future->owner = sample;
  enter_lane(sample->server, lane, sample);
  pump(sample->server);
}

/* Fail the samples of a lane that need weights which could not be loaded. */
static void fail_lane(local_lane_t *lane, const local_weights_t *weights) {
  int err = weights->err;
  tnk__lm_why_t why = weights->why;

  TNK__LIST_FOREACH_SAFE (node, next, &lane->samples) {
    local_sample_t *sample = SAMPLE(node);

    if (sample->weights != weights)
      continue;
    sample->err = err;
    sample->why = why;
    settle(sample);
    local_sample_free(sample);
  }
}

static void on_loaded(local_weights_t *weights) {
  local_server_t *server = weights->server;
  tnk__list_t *node;

  /* The reference keeps it alive when the last failing sample is freed. */
  weights->refs++;
  while ((node = tnk__list_pop(&weights->waiting)) != NULL) {
    tnk__list_append(&server->lanes, node);
    if (weights->err != TNK_OK)
      fail_lane(LANE(node), weights);
  }
  local_weights_unref(weights);
  pump(server);
}

void local_samples_free(local_server_t *server) {
  while (!tnk__list_empty(&server->loose.samples))
    local_sample_free(SAMPLE(server->loose.samples.next));
}

/* ---- Batched polls ---- */

/*
 * Batched polls: a client of a sampling session asks which of its samples have
 * finished since a cursor. Each completion gets the session's next cursor.
 */

typedef struct {
  tnk__list_t link; /* in local_sampler_t.polls */
  local_hold_t hold;
  tnk__srv_req_t *req;
  local_sampler_t *sampler;
  uint64_t clone;
  uint64_t prev;
} poll_t;

#define POLL(p) tnk__container_of(p, poll_t, link)
#define FUTURE(p) tnk__container_of(p, local_future_t, in_sampler)

/* Limit for one answer; the client fetches the rest with the cursor. */
enum { MAX_COMPLETIONS = 4096 };

static int is_new(const local_future_t *future, uint64_t clone, uint64_t prev) {
  return future->state == LOCAL_FUTURE_SETTLED && future->clone == clone &&
         future->cursor > prev;
}

static int has_news(const local_sampler_t *sampler, uint64_t clone,
                    uint64_t prev) {
  TNK__LIST_FOREACH (node, &sampler->futures) {
    if (is_new(FUTURE(node), clone, prev))
      return 1;
  }
  return 0;
}

static void reply_news(tnk__srv_req_t *req, const local_sampler_t *sampler,
                       uint64_t clone, uint64_t prev) {
  uint64_t cursor = prev;
  size_t n = 0;
  local_out_t out;

  local_out_begin(&out, sampler->server->alloc);
  tnk__json_put_array(&out.w, "completions");
  /* Completions are in the order of their cursors. */
  TNK__LIST_FOREACH (node, &sampler->futures) {
    const local_future_t *future = FUTURE(node);

    if (!is_new(future, clone, prev) || n == MAX_COMPLETIONS)
      continue;
    n++;
    cursor = future->cursor;
    tnk__json_begin_object(&out.w);
    tnk__json_put_text(&out.w, "state",
                       future->status == 200 ? "finished" : "failed");
    tnk__json_put_text(&out.w, "request_id", future->id);
    if (future->status == 200)
      tnk__json_put_int(&out.w, "response_payload_uncompressed_size",
                        (int64_t)future->n_result);
    tnk__json_end(&out.w);
  }
  tnk__json_end(&out.w);
  tnk__json_put_int(&out.w, "cursor", (int64_t)cursor);
  local_out_reply(&out, req, 200);
}

static void free_poll(poll_t *poll) {
  local_server_t *server = poll->sampler->server;

  tnk__list_remove(&poll->link);
  local_hold_stop(server, &poll->hold);
  tnk__free(server->alloc, poll);
}

static void answer(poll_t *poll) {
  poll_t copy = *poll;

  free_poll(poll);
  reply_news(copy.req, copy.sampler, copy.clone, copy.prev);
}

static void on_held(local_timer_t *timer) {
  answer(tnk__container_of(timer, poll_t, hold.timer));
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  (void)req;
  free_poll(user);
}

void local_batch_settled(local_future_t *future) {
  local_sampler_t *sampler = future->sampler;

  if (sampler == NULL)
    return;
  future->cursor = ++sampler->cursor;
  /* Append it, because the list is in the order of cursors. */
  tnk__list_remove(&future->in_sampler);
  tnk__list_append(&sampler->futures, &future->in_sampler);
  /* Usually each client has one poll. */
  TNK__LIST_FOREACH (node, &sampler->polls) {
    if (POLL(node)->clone == future->clone) {
      /* The answer is sent from the timer. So samples that settle together are
       * reported together, and no answer is sent inside this call. */
      local_timer_start(&sampler->server->timers, &POLL(node)->hold.timer, 0,
                        on_held);
    }
  }
}

void local_batch_end(local_sampler_t *sampler) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&sampler->polls)) != NULL) {
    tnk__srv_req_t *req = POLL(node)->req;

    free_poll(POLL(node));
    local_reply_error(req, 404, "Sampling session is over");
  }
}

/* ---- Batched polls: the request ---- */

static void hold(local_call_t *call, local_sampler_t *sampler, uint64_t clone,
                 uint64_t prev) {
  local_server_t *server = call->server;
  poll_t *poll = tnk__calloc(server->alloc, 1, sizeof(*poll));

  if (poll == NULL) {
    local_reply_error(call->req, 503, "Out of memory");
    return;
  }
  *poll = (poll_t){
      .req = call->req, .sampler = sampler, .clone = clone, .prev = prev};
  tnk__list_append(&sampler->polls, &poll->link);
  tnk__srv_req_park(call->req, on_gone, poll);
  local_hold_start(server, &poll->hold, on_held);
}

void local_batch_poll(local_call_t *call, local_sampler_t *sampler,
                      uint64_t clone, uint64_t prev, int may_wait) {
  if (!may_wait || has_news(sampler, clone, prev))
    reply_news(call->req, sampler, clone, prev);
  else
    hold(call, sampler, clone, prev);
}

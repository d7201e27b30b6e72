/* SPDX-License-Identifier: MIT */
/*
 * A sample whose tokens arrive one at a time, in the response to its
 * submission. Until its call is sent, and when it fails before the first token,
 * it behaves like any other sample.
 *
 *   submitted --its first part--> accepted: resources of the submission are
 *     returned
 *   accepted --tokens--> passed on --the end of the sequence--> ended
 *   ended --the response is over, or has lingered--> settled
 *   passed on --anything else--> settled, with the number of tokens so far
 *
 * on_event() calls the program, which may free the sample inside of its
 * callback.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/client/call/events.h"
#include "lib/client/sample/sample.h"
#include "lib/wire/message/answer.h"

/* MAX_TOKENS: tokens of a sequence, more than any context has. */
enum {
  SILENCE_MS = 600000,
  MAX_TOKENS = 16 * 1024 * 1024,
  MAX_WORDS = 160,
  MAX_FAILURE = 64 * 1024
};

typedef struct {
  tnk__sample_t sample;
  tnk__events_t events;
  tnk__timer_t timer;  /* runs after its end */
  tnk__buf_t tokens;   /* int32_t */
  tnk__buf_t logprobs; /* float; NaN if none was sent */
  uint64_t n_received; /* in bytes */
  uint64_t heard_ms;   /* when the last part arrived */
  tnk_stream_token_cb on_token;
  void *user;
  uint32_t n;        /* number of tokens */
  uint32_t accepted; /* the last accepted attempt; 0: none */
  uint32_t silence_ms;
  tnk_stop_reason_t stop_reason;
  uint8_t has_logprobs;
} stream_t;

static stream_t *stream_of(tnk__sample_t *sample) {
  return tnk__container_of(sample, stream_t, sample);
}

static const stream_t *stream_of_const(const tnk__sample_t *sample) {
  return tnk__container_of_const(sample, stream_t, sample);
}

static stream_t *stream_of_call(tnk__call_t *call) {
  tnk__job_t *job = tnk__container_of(call, tnk__job_t, future.call);

  return stream_of(tnk__container_of(job, tnk__sample_t, job));
}

static tnk__call_t *call_of(stream_t *stream) {
  return &stream->sample.job.future.call;
}

static tnk__context_t *context_of(const stream_t *stream) {
  return tnk__session_of(stream->sample.job.future.call.endpoint)->context;
}

/* ---- The end ---- */

static void fail(stream_t *stream, int code, const char *words) {
  tnk_error_t pub = {.code = code,
                     .n_attempts = call_of(stream)->tries.n_attempts};
  char text[MAX_WORDS];
  tnk__error_t *error;

  snprintf(text, sizeof(text), "%s after %u tokens", words,
           (unsigned)stream->n);
  error = tnk__error_with(&context_of(stream)->alloc,
                          tnk__sample_name(TNK__SAMPLE_STREAM), &pub, text);
  tnk__sample_fail(&stream->sample, error);
  tnk__error_unref(error);
}

static void fail_code(stream_t *stream, int code) {
  tnk__sample_fail_text(&stream->sample, code, NULL);
}

/* The server reports a failure. The tokens that were passed on were used. */
static void fail_with(stream_t *stream, const tnk__sse_event_t *event) {
  const tnk_allocator_t *alloc = &context_of(stream)->alloc;
  tnk__failure_t failure = {0};
  tnk_error_t pub = {.code = TNK_EFAILED,
                     .http_status = 200,
                     .n_attempts = call_of(stream)->tries.n_attempts};
  char what[MAX_WORDS];
  tnk__error_t *error;
  tnk__arena_t arena;

  tnk__arena_init(&arena, alloc, TNK__MIB);
  if (event->n <= MAX_FAILURE &&
      tnk__failure_read(&failure, &arena, (const uint8_t *)event->data,
                        event->n) == TNK_OK) {
    tnk__call_hide(call_of(stream), failure.message);
    pub.message = failure.message;
    pub.category = failure.category;
    pub.retry_after_ms = failure.retry_after_ms;
  }
  snprintf(what, sizeof(what), "%s after %u tokens",
           tnk__sample_name(TNK__SAMPLE_STREAM), (unsigned)stream->n);
  error = tnk__error_from(alloc, what, &pub);
  tnk__arena_deinit(&arena);
  tnk__sample_settle(&stream->sample, stream->n == 0);
  tnk__sample_fail(&stream->sample, error);
  tnk__error_unref(error);
}

/* The result, in a new arena, or NULL without memory. */
static tnk_samples_t *make_samples(const stream_t *stream) {
  const size_t n = stream->n;
  tnk__sequence_t *sequence;
  tnk_samples_t *samples;
  tnk__arena_t arena;

  tnk__arena_init(&arena, &context_of(stream)->alloc,
                  stream->tokens.len + stream->logprobs.len + TNK__MIB);
  samples = tnk__arena_calloc(&arena, 1, sizeof(*samples));
  sequence = tnk__arena_calloc(&arena, 1, sizeof(*sequence));
  if (samples != NULL && sequence != NULL && n > 0) {
    sequence->tokens =
        tnk__arena_copy(&arena, stream->tokens.data, stream->tokens.len);
    sequence->n_tokens = n;
    if (stream->has_logprobs) {
      sequence->logprobs =
          tnk__arena_copy(&arena, stream->logprobs.data, stream->logprobs.len);
      sequence->n_logprobs = n;
    }
  }
  if (samples == NULL || sequence == NULL ||
      (n > 0 && sequence->tokens == NULL) ||
      (sequence->n_logprobs > 0 && sequence->logprobs == NULL)) {
    tnk__arena_deinit(&arena);
    return NULL;
  }
  sequence->stop_reason = stream->stop_reason;
  samples->sequences = sequence;
  samples->n_sequences = 1;
  samples->arena = arena;
  return samples;
}

static void resolve(stream_t *stream) {
  tnk__call_t *call = call_of(stream);
  tnk_samples_t *samples = make_samples(stream);

  if (samples == NULL) {
    fail_code(stream, TNK_ENOMEM);
    return;
  }
  if (call->owner.operation != 0)
    tnk__call_tell(call, &(tnk_event_t){.phase = TNK_PHASE_RESULT,
                                        .bytes = stream->n_received,
                                        .status = 200});
  tnk__sample_resolve(&stream->sample, samples);
}

static void on_lingered(tnk__timer_t *timer) {
  resolve(tnk__container_of(timer, stream_t, timer));
}

/* ---- Tokens ---- */

/* Keep a token. Returns NULL, or the reason for a failure with its code. */
static const char *keep(stream_t *stream, const tnk__sample_chunk_t *chunk,
                        int *code) {
  const uint32_t max = stream->sample.max_tokens;

  *code = TNK_EPROTO;
  if (chunk->index >= 0 && chunk->index != (int64_t)stream->n)
    return "the stream has left out tokens, or repeats them,";
  if (max > 0 && stream->n >= max)
    return "the stream has more tokens than were asked for,";
  *code = TNK_ETOOBIG;
  if (stream->n >= MAX_TOKENS)
    return "the stream has no end,";
  tnk__buf_append(&stream->tokens, &chunk->token, sizeof(chunk->token));
  tnk__buf_append(&stream->logprobs, &chunk->logprob, sizeof(chunk->logprob));
  *code = TNK_ENOMEM;
  if (stream->tokens.err != TNK_OK || stream->logprobs.err != TNK_OK)
    return "no memory is left for the tokens";
  if (!isnan(chunk->logprob))
    stream->has_logprobs = 1;
  stream->n++;
  return NULL;
}

/* Pass the token to the program. Returns 0 if the sample was freed. */
static int tell(stream_t *stream, const tnk__sample_chunk_t *chunk,
                const int *is_gone) {
  const tnk_stream_token_t told = {.token = chunk->token,
                                   .index = stream->n - 1,
                                   .logprob = chunk->logprob,
                                   .text = chunk->text};
  int refused;

  if (stream->on_token == NULL)
    return 1;
  tnk__callout_begin();
  refused = stream->on_token(&told, stream->user);
  tnk__callout_end();
  if (*is_gone)
    return 0;
  if (refused)
    fail_code(stream, TNK_ECANCELED);
  return !refused;
}

/* Servers count the sequence, or the prompt and the sequence. */
static int is_short(const stream_t *stream, int64_t n_total) {
  const tnk__sample_t *sample = &stream->sample;

  return n_total >= 0 && n_total != (int64_t)stream->n &&
         n_total != (int64_t)stream->n + sample->n_prompt_tokens &&
         !(sample->is_uncounted && n_total > (int64_t)stream->n);
}

static void take(stream_t *stream, const tnk__sample_chunk_t *chunk,
                 const int *is_gone) {
  const char *words = NULL;
  int code = TNK_EPROTO;

  /* Tokens that were passed on must not be drawn again. */
  if (chunk->has_token || chunk->is_end)
    call_of(stream)->request.once = 1;
  if (chunk->has_token)
    words = keep(stream, chunk, &code);
  if (words == NULL && chunk->has_token && !tell(stream, chunk, is_gone))
    return;
  if (words == NULL && chunk->is_end && is_short(stream, chunk->n_total)) {
    code = TNK_EPROTO;
    words = "the server counts other tokens than have come,";
  }
  if (words != NULL) {
    fail(stream, code, words);
    return;
  }
  if (chunk->is_end) {
    stream->stop_reason = chunk->stop_reason;
    stream->events.is_ended = 1;
  }
}

static void on_event(tnk__events_t *events, const tnk__sse_event_t *event,
                     const int *is_gone) {
  stream_t *stream = tnk__container_of(events, stream_t, events);
  tnk__sample_chunk_t chunk;
  int err;

  if (strcmp(event->type, "error") == 0) {
    fail_with(stream, event);
    return;
  }
  err = tnk__sample_chunk_read(&chunk, event->data, event->n);
  if (err == TNK_ENOMEM)
    fail_code(stream, err);
  else if (err != TNK_OK)
    fail(stream, err, "the stream has an event that cannot be read,");
  else if (chunk.is_error)
    fail_with(stream, event);
  else
    take(stream, &chunk, is_gone);
  if (err == TNK_OK)
    tnk__sample_chunk_clear(&chunk);
}

/* ---- The answer ---- */

/* Returns whether reading continues. Otherwise the sample is over and was
 * freed. */
static int goes_on(stream_t *stream, int got) {
  const char *words = got < 0 ? tnk__events_words(got) : NULL;

  if (words != NULL)
    fail(stream, got, words);
  else if (got < 0)
    fail_code(stream, got);
  return got > 0;
}

/* The server has begun with this attempt. Resources of the submission are
 * returned; the request itself stays until the end of the response. */
static void note_accepted(stream_t *stream) {
  tnk__sample_t *sample = &stream->sample;

  if (stream->accepted == call_of(stream)->tries.n_attempts)
    return;
  stream->accepted = call_of(stream)->tries.n_attempts;
  sample->job.is_accepted = 1;
  sample->job.ran = TNK_RAN_YES;
  tnk__sample_give_back(sample);
  sample->slot_ticket = 0;
  sample->throttle_ticket = 0;
  if (call_of(stream)->owner.operation != 0)
    tnk__call_tell(call_of(stream),
                   &(tnk_event_t){.phase = TNK_PHASE_ACCEPTED, .status = 200});
}

static void on_part(tnk__call_t *call) {
  stream_t *stream = stream_of_call(call);
  tnk__context_t *context = context_of(stream);
  tnk__totals_t *totals = call->owner.totals;
  size_t n = 0;
  int got;

  note_accepted(stream);
  tnk__sample_moved(&stream->sample);
  stream->heard_ms = tnk__context_now_ms(context);
  got = tnk__events_take(&stream->events, call, &n);
  if (got == 0 || !goes_on(stream, got))
    return;
  stream->n_received += n;
  tnk__totals_received(totals, n);
  if (stream->events.is_ended && !tnk__timer_is_active(&stream->timer))
    tnk__timer_start(context, &stream->timer, TNK__EVENTS_LINGER_MS,
                     on_lingered);
}

/* Before the first token it is a sample with a lost response. */
static void end_truncated(stream_t *stream, const tnk__reply_t *reply) {
  const char *words =
      tnk__sse_end(&stream->events.sse) == TNK_OK
          ? "the stream was truncated: it ended without a finish_reason,"
          : "the stream was truncated: it ended within an event,";
  const tnk_error_t pub = {.code = TNK_ECONN,
                           .n_attempts = call_of(stream)->tries.n_attempts};
  tnk__reply_t lost = *reply;
  char text[MAX_WORDS];

  if (stream->n > 0) {
    fail(stream, TNK_ECONN, words);
    return;
  }
  snprintf(text, sizeof(text), "%s after 0 tokens", words);
  lost.error =
      tnk__error_with(&context_of(stream)->alloc,
                      tnk__sample_name(TNK__SAMPLE_STREAM), &pub, text);
  lost.verdict = (tnk__verdict_t){.action = TNK__ACTION_FAIL, .err = TNK_ECONN};
  tnk__sample_fail_reply(&stream->sample, &lost);
  tnk__error_unref(lost.error);
}

static void on_done(tnk__call_t *call, const tnk__reply_t *reply) {
  stream_t *stream = stream_of_call(call);
  int got;

  if (reply->status / 100 == 2)
    note_accepted(stream);
  got = tnk__events_finish(&stream->events, call, reply);
  if (got == 0 || !goes_on(stream, got))
    return;
  if (reply->status / 100 == 2)
    stream->n_received += reply->body_len;
  if (stream->events.is_ended)
    resolve(stream);
  else if (reply->error == NULL)
    end_truncated(stream, reply);
  else if (stream->n == 0)
    tnk__sample_fail_reply(&stream->sample, reply);
  else
    fail(stream, reply->error->pub.code,
         reply->error->pub.code == TNK_ETIMEDOUT ? "the stream fell silent"
                                                 : "the stream broke off");
}

/* ---- Lifetime ---- */

size_t tnk__streamed_size(void) {
  return sizeof(stream_t);
}

int tnk__streamed_has_begun(const tnk__sample_t *sample) {
  return stream_of_const(sample)->n > 0;
}

void tnk__streamed_init(tnk__sample_t *sample,
                        const tnk_sample_stream_options_t *options) {
  const tnk_allocator_t *alloc =
      &tnk__session_of(sample->job.future.call.endpoint)->context->alloc;
  stream_t *stream = stream_of(sample);

  tnk__events_init(&stream->events, alloc, on_event);
  tnk__buf_init(&stream->tokens, alloc, MAX_TOKENS * sizeof(int32_t));
  tnk__buf_init(&stream->logprobs, alloc, MAX_TOKENS * sizeof(float));
  stream->on_token = options->on_token;
  stream->user = options->user;
  stream->silence_ms =
      options->silence_ms > 0 ? (uint32_t)options->silence_ms : SILENCE_MS;
}

void tnk__streamed_deinit(tnk__sample_t *sample) {
  stream_t *stream = stream_of(sample);

  tnk__timer_stop(&stream->timer);
  tnk__events_deinit(&stream->events);
  tnk__buf_deinit(&stream->tokens);
  tnk__buf_deinit(&stream->logprobs);
}

void tnk__streamed_start(tnk__sample_t *sample) {
  stream_t *stream = stream_of(sample);
  tnk__call_t *call = call_of(stream);

  stream->accepted = 0;
  stream->events.attempt = 0;
  sample->job.is_accepted = 0;
  call->request.on_part = on_part;
  call->request.timeout_ms = stream->silence_ms;
  call->request.body = sample->body.data;
  call->request.body_len = sample->body.len;
  tnk__call_start(call, on_done);
}

void tnk__streamed_explain(const tnk__sample_t *sample, tnk__text_t *out) {
  const stream_t *stream = stream_of_const(sample);

  if (stream->n == 0) {
    tnk__call_explain(&sample->job.future.call, out);
    return;
  }
  tnk__text_printf(out, "%u tokens have come, the last of them before ",
                   (unsigned)stream->n);
  tnk__text_time(out,
                 tnk__context_now_ms(context_of(stream)) - stream->heard_ms);
}

/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tools/local/call/tensor.h"
#include "tools/local/lm/lm.h"
#include "tools/local/sample/sampler.h"

/* ---- Streams ---- */

/*
 * Samples as streams of events: one event for each token, and one for the end.
 * All events are sent when the sample is complete.
 */

/* U+FFFD, in place of bytes that are not a character. */
static const char replacement[] = "\xef\xbf\xbd";

/* A client that waits for its stream. */
typedef struct {
  local_waiter_t waiter;
  local_future_t *future;
  tnk__srv_req_t *req;
} held_t;

/* ---- Streams: text ---- */

static size_t put(char *out, size_t n, const void *bytes, size_t n_bytes) {
  memcpy(out + n, bytes, n_bytes);
  return n + n_bytes;
}

size_t local_text_add(local_text_t *text, int32_t token, int is_last,
                      char out[LOCAL_TEXT_MAX]) {
  const int is_byte = token < TNK__LM_BOS;
  const char *name = is_byte                ? ""
                     : token == TNK__LM_BOS ? TNK__LM_BOS_TEXT
                                            : TNK__LM_EOS_TEXT;
  size_t at = 0;
  size_t n = 0;

  if (is_byte)
    text->bytes[text->n++] = (uint8_t)token;
  while (at < text->n) {
    size_t bad;
    int is_cut;
    const size_t length =
        tnk__utf8_check(text->bytes + at, text->n - at, &bad, &is_cut);

    if (is_cut && is_byte && !is_last)
      break;
    if (length > 0 && text->bytes[at] != 0) {
      n = put(out, n, text->bytes + at, length);
      at += length;
    } else {
      n = put(out, n, replacement, sizeof(replacement) - 1);
      at += bad;
    }
  }
  text->n -= at;
  memmove(text->bytes, text->bytes + at, text->n);
  return put(out, n, name, strlen(name));
}

/* ---- Streams: writing ---- */

static void begin(tnk__json_writer_t *w, tnk__buf_t *out) {
  tnk__buf_text(out, "data: ");
  tnk__json_writer_init(w, out);
  tnk__json_begin_object(w);
}

static void end(tnk__json_writer_t *w, tnk__buf_t *out) {
  tnk__json_end(w);
  tnk__json_finish(w);
  tnk__buf_text(out, "\n\n");
}

/* Without a tokenizer, only bytes have a known text. */
static int has_text(const local_sample_t *sample) {
  const local_options_t *options = &sample->server->options;

  return options->n_vocab == 0 && !options->has_tokenizer;
}

void local_stream_write(tnk__buf_t *out, const local_sample_t *sample) {
  const tnk__lm_sample_t drawn = tnk__lm_draw_sample(sample->draw, 0);
  const int is_told = has_text(sample);
  local_text_t text = {.n = 0};
  tnk__json_writer_t w;
  char piece[LOCAL_TEXT_MAX];

  for (size_t i = 0; i < drawn.n_tokens; i++) {
    begin(&w, out);
    if (is_told) {
      const int is_last = i + 1 == drawn.n_tokens;

      tnk__json_key(&w, "token");
      tnk__json_text_n(&w, piece,
                       local_text_add(&text, drawn.tokens[i], is_last, piece));
    }
    tnk__json_put_int(&w, "token_id", drawn.tokens[i]);
    tnk__json_put_int(&w, "index", (int64_t)i);
    tnk__json_key(&w, "logprob");
    tnk__json_float(&w, drawn.logprobs[i]);
    end(&w, out);
  }
  begin(&w, out);
  tnk__json_put_text(&w, "finish_reason",
                     drawn.reason == TNK__LM_LENGTH ? "length" : "stop");
  tnk__json_put_int(&w, "total_tokens", (int64_t)drawn.n_tokens);
  end(&w, out);
  tnk__buf_text(out, "data: [DONE]\n\n");
}

/* ---- Streams: waiting ---- */

static void reply(const local_future_t *future, tnk__srv_req_t *req) {
  uint8_t *copy;

  if (future->status != 200) {
    local_reply_error(req, future->status, "%s",
                      future->result != NULL ? (const char *)future->result
                                             : "Request failed");
    return;
  }
  copy = tnk__malloc(future->server->alloc, future->n_result);
  if (copy == NULL) {
    local_reply_error(req, 503, "Out of memory");
    return;
  }
  memcpy(copy, future->result, future->n_result);
  tnk__srv_req_reply(req, 200, "text/event-stream",
                     "Cache-Control: no-cache\r\n", copy, future->n_result);
}

static held_t end_wait(held_t *held) {
  const held_t was = *held;

  tnk__list_remove(&held->waiter.link);
  tnk__free(was.future->server->alloc, held);
  return was;
}

static void on_settled(local_waiter_t *waiter) {
  const held_t was = end_wait(tnk__container_of(waiter, held_t, waiter));

  reply(was.future, was.req);
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  local_future_t *future = end_wait(user).future;

  (void)req;
  if (future->server->closing || future->state != LOCAL_FUTURE_PENDING ||
      future->cancel == NULL || !tnk__list_empty(&future->waiters))
    return;
  future->is_canceled = 1;
  future->cancel(future->owner);
}

/* Answer with the result of such a future, now or when it is settled. If the
 * client disconnects, the draw is canceled. */
static void stream_answer(tnk__srv_req_t *req, local_future_t *future) {
  held_t *held;

  if (future->state == LOCAL_FUTURE_SETTLED) {
    reply(future, req);
    return;
  }
  held = tnk__calloc(future->server->alloc, 1, sizeof(*held));
  if (held == NULL) {
    local_reply_error(req, 503, "Out of memory");
    return;
  }
  held->waiter.wake = on_settled;
  held->future = future;
  held->req = req;
  tnk__list_append(&future->waiters, &held->waiter.link);
  tnk__srv_req_park(req, on_gone, held);
}

/* ---- Requests ---- */

/* Parses sampling requests. */

/* Limits of one request: its tokens, logprobs and ids stay in memory until they
 * are fetched. */
enum { MAX_SAMPLES = 1024, MAX_STOPS = 256 };

/* Each refusal writes a sentence to `why`, which is answered with 422. */
typedef struct {
  local_call_t *call;
  local_sample_t *sample;
  tnk__lm_draw_options_t *options;
  int record; /* record the sample for training */
  tnk__lm_why_t why;
} reader_t;

static int refuse(reader_t *r, const char *text) {
  return tnk__lm_refuse(&r->why, TNK_EINVAL, "%s", text);
}

/* ---- Requests: stop ---- */

static int stop_tokens(reader_t *r, const json_t *list) {
  size_t n = json_array_size(list);
  int32_t *tokens = tnk__arena_calloc(&r->sample->arena, n, sizeof(*tokens));

  if (tokens == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    const json_t *token = json_array_get(list, i);

    if (!json_is_integer(token) || json_integer_value(token) < 0 ||
        json_integer_value(token) > INT32_MAX)
      return refuse(r, "stop must be all token ids or all strings");
    tokens[i] = (int32_t)json_integer_value(token);
  }
  r->options->stop_tokens = tokens;
  r->options->n_stop_tokens = n;
  return TNK_OK;
}

static int stop_texts(reader_t *r, const json_t *stop) {
  size_t n = json_is_string(stop) ? 1 : json_array_size(stop);
  tnk__lm_text_t *texts =
      tnk__arena_calloc(&r->sample->arena, n, sizeof(*texts));

  if (texts == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < n; i++) {
    const json_t *text = json_is_string(stop) ? stop : json_array_get(stop, i);

    if (!json_is_string(text))
      return refuse(r, "stop must be all token ids or all strings");
    if (json_string_length(text) == 0)
      return refuse(r, "a stop string must not be empty");
    texts[i].length = json_string_length(text);
    texts[i].bytes = tnk__arena_copy(&r->sample->arena, json_string_value(text),
                                     json_string_length(text));
    if (texts[i].bytes == NULL)
      return TNK_ENOMEM;
  }
  r->options->stop_texts = texts;
  r->options->n_stop_texts = n;
  return TNK_OK;
}

static int read_stop(reader_t *r, const json_t *stop) {
  r->options->stop_kind = TNK__LM_STOP_EOS;
  if (stop == NULL || json_is_null(stop))
    return TNK_OK;
  if (json_is_string(stop) &&
      r->call->server->options.sequence == LOCAL_LENIENT)
    return refuse(r, "stop should be a valid list");
  r->options->stop_kind = TNK__LM_STOP_LISTED;
  if (json_is_string(stop))
    return stop_texts(r, stop);
  if (!json_is_array(stop) || json_array_size(stop) > MAX_STOPS)
    return refuse(r, "stop must be a string or a list of at most 256");
  if (json_is_string(json_array_get(stop, 0)))
    return stop_texts(r, stop);
  return stop_tokens(r, stop);
}

/* ---- Requests: parameters ---- */

static int integer(reader_t *r, const json_t *object, const char *key,
                   int64_t min, int64_t max, int64_t *out) {
  if (tnk__json_get_int(object, key, min, max, out) != TNK__JSON_WRONG)
    return TNK_OK;
  return tnk__lm_refuse(&r->why, TNK_EINVAL,
                        "%s must be a whole number from %lld to %lld", key,
                        (long long)min, (long long)max);
}

static int number(reader_t *r, const json_t *object, const char *key,
                  double min, double *out) {
  if (tnk__json_get_double(object, key, out) != TNK__JSON_WRONG && *out >= min)
    return TNK_OK;
  return tnk__lm_refuse(&r->why, TNK_EINVAL,
                        "%s must be a number of at least %g", key, min);
}

static int random_seed(uint64_t *seed) {
  return uv_random(NULL, NULL, seed, sizeof(*seed), 0, NULL) == 0 ? TNK_OK
                                                                  : TNK_EFAILED;
}

static int read_params(reader_t *r, const json_t *params) {
  tnk__lm_draw_options_t *o = r->options;
  int64_t max_tokens = 0;
  int64_t seed = -1;
  int err;

  o->temperature = 1;
  o->top_p = 1;
  o->top_k = -1;
  err = integer(r, params, "max_tokens", 1, INT32_MAX, &max_tokens);
  if (err == TNK_OK)
    err = integer(r, params, "seed", INT64_MIN, INT64_MAX, &seed);
  if (err == TNK_OK)
    err = integer(r, params, "top_k", INT64_MIN, INT64_MAX, &o->top_k);
  if (err == TNK_OK)
    err = number(r, params, "temperature", 0, &o->temperature);
  if (err == TNK_OK)
    err = number(r, params, "top_p", 0, &o->top_p);
  if (err == TNK_OK && !(o->top_p > 0 && o->top_p <= 1))
    err = refuse(r, "top_p must be above 0 and at most 1");
  if (err == TNK_OK)
    err = read_stop(r, json_object_get(params, "stop"));
  o->max_tokens = (uint32_t)max_tokens;
  o->seed = (uint64_t)seed;
  if (err == TNK_OK && !json_is_integer(json_object_get(params, "seed")))
    err = random_seed(&o->seed);
  return err;
}

/* ---- Requests: extra outputs ---- */

static int read_targets(reader_t *r, const json_t *tensor) {
  local_tensor_t t;
  size_t rows = r->options->n_prompt - 1;
  int err = local_tensor_json(&t, &r->sample->arena, tensor, -1, &r->why);

  if (err != TNK_OK)
    return err;
  if (t.ints == NULL || t.n_dims != 2 || t.shape[0] != (int64_t)rows ||
      t.shape[1] < 1)
    return refuse(r, "target_prompt_logprobs must be int64 of shape [L-1, K]");
  r->options->ask = t.ints;
  r->options->n_ask = (size_t)t.shape[1];
  r->sample->n_asked = t.n_listed;
  r->sample->crow = t.crow;
  r->sample->col = t.col;
  return TNK_OK;
}

static int read_outputs(reader_t *r, const json_t *body) {
  tnk__lm_draw_options_t *o = r->options;
  const json_t *targets = NULL;
  int64_t topk_prompt = 0;
  int64_t topk_sample = 0;
  int64_t last_n = 0;
  int64_t alternatives = 0;
  int prompt_logprobs = 0;
  int record = 0;
  int err = integer(r, body, "topk_prompt_logprobs", 0, TNK__LM_MAX_TOPK,
                    &topk_prompt);

  if (err == TNK_OK)
    err = integer(r, body, "topk_sample_logprobs", 0, TNK__LM_MAX_TOPK,
                  &topk_sample);
  if (err == TNK_OK)
    err = integer(r, body, "prompt_logprobs_last_n", 1, TNK__LM_MAX_CONTEXT,
                  &last_n);
  if (err == TNK_OK)
    err = integer(r, body, "prompt_alt_tokens_k", 0, 1024, &alternatives);
  if (err == TNK_OK && tnk__json_get_bool(body, "prompt_logprobs",
                                          &prompt_logprobs) == TNK__JSON_WRONG)
    err = refuse(r, "prompt_logprobs must be true or false");
  if (err == TNK_OK && tnk__json_get_bool(body, "record_stability_info",
                                          &record) == TNK__JSON_WRONG)
    err = refuse(r, "record_stability_info must be true or false");
  r->record = record;
  if (err == TNK_OK && tnk__json_get_object(body, "target_prompt_logprobs",
                                            &targets) == TNK__JSON_WRONG)
    err = refuse(r, "target_prompt_logprobs must be a tensor");
  o->topk_prompt = (uint32_t)topk_prompt;
  o->topk_sample = (uint32_t)topk_sample;
  o->last_n = (uint32_t)last_n;
  o->n_alternatives = (uint32_t)alternatives;
  o->prompt_logprobs = prompt_logprobs != 0;
  if (err == TNK_OK && targets != NULL)
    err = read_targets(r, targets);
  return err;
}

static int read_all(reader_t *r, const json_t *body) {
  tnk__lm_draw_options_t *o = r->options;
  const json_t *params = NULL;
  int64_t n_samples = 1;
  int err = integer(r, body, "num_samples", 1, MAX_SAMPLES, &n_samples);

  o->n_samples = (uint32_t)n_samples;
  if (err == TNK_OK && r->sample->is_streamed && n_samples != 1)
    err = refuse(r, "num_samples must be 1 in a stream");
  if (err == TNK_OK)
    err = local_tokens_json(&r->sample->arena, tnk__json_obj(body, "prompt"),
                            &o->prompt, &o->n_prompt, &r->why);
  if (err == TNK_OK && o->n_prompt == 0)
    err = refuse(r, "The prompt is empty");
  if (err == TNK_OK && o->n_prompt > TNK__LM_MAX_CONTEXT)
    err = refuse(r, "The prompt is longer than the context");
  if (err == TNK_OK)
    err = tnk__lm_tokens_check(o->prompt, o->n_prompt, o->n_vocab, "prompt",
                               &r->why);
  if (err == TNK_OK &&
      tnk__json_get_object(body, "sampling_params", &params) != TNK__JSON_FOUND)
    err = refuse(r, "sampling_params is missing");
  if (err == TNK_OK)
    err = read_params(r, params);
  return err == TNK_OK ? read_outputs(r, body) : err;
}

/* ---- Requests: the request ---- */

static local_sample_t *sample_new(local_server_t *server) {
  local_sample_t *sample = tnk__calloc(server->alloc, 1, sizeof(*sample));

  if (sample == NULL)
    return NULL;
  sample->server = server;
  tnk__list_init(&sample->link);
  tnk__arena_init(&sample->arena, server->alloc, TNK__MAX_REQUEST_BODY);
  return sample;
}

/* One id for each sample, derived from the request's id. */
static void reply_accepted(local_call_t *call, const char *request_id,
                           uint32_t n) {
  tnk__json_writer_t w;
  tnk__buf_t ids;
  const char *text;

  tnk__buf_init(&ids, call->server->alloc, (size_t)1 << 24);
  tnk__json_writer_init(&w, &ids);
  tnk__json_begin_array(&w);
  for (uint32_t i = 0; i < n; i++) {
    char id[LOCAL_ID + 16];

    snprintf(id, sizeof(id), "%s-%u", request_id, (unsigned)i);
    tnk__json_text(&w, id);
  }
  tnk__json_end(&w);
  text = tnk__buf_cstr(&ids);
  local_reply_future(call, request_id, NULL, text);
  tnk__buf_deinit(&ids);
}

/* Answer with the same tokens again while they are kept. */
static int answer_stream_again(local_call_t *call, const char *request_id) {
  local_future_t *future = local_future_find(call->server, request_id);

  if (future == NULL || future->is_canceled)
    return 0;
  stream_answer(call->req, future);
  return 1;
}

/* Only the buffering server detects repeats of samples. Returns 1 if
 * answered. */
static int answer_repeat(local_call_t *call, const local_sample_t *sample,
                         const local_sampler_t *sampler, int64_t seq,
                         uint64_t hash) {
  local_seq_t *seen;

  if (sampler == NULL || seq < 0 ||
      call->server->options.sequence != LOCAL_BUFFERED)
    return 0;
  seen = local_seqs_find(&sampler->seqs, seq);
  if (seen == NULL)
    return 0;
  if (seen->hash == hash && sample->is_streamed)
    return answer_stream_again(call, seen->request_id);
  if (seen->hash == hash)
    reply_accepted(call, seen->request_id, sample->options.n_samples);
  else
    local_reply_error(call->req, 422,
                      "Sampling request sequence number was reused: %lld",
                      (long long)seq);
  return 1;
}

/* The path is needed for the log. */
static int note_path(local_sample_t *sample, const local_place_t *place) {
  char path[LOCAL_PATH];

  if (place == NULL || sample->server->options.sample_log == NULL)
    return TNK_OK;
  local_place_text(place, path);
  sample->path = tnk__arena_copy(&sample->arena, path, strlen(path) + 1);
  return sample->path != NULL ? TNK_OK : TNK_ENOMEM;
}

static void accept_sample(local_call_t *call, const local_sample_t *sample,
                          local_sampler_t *sampler, int64_t seq) {
  if (sampler != NULL) {
    sample->future->sampler = sampler;
    sample->future->settled = local_batch_settled;
    /* Clients number their samples from clone * 10^9 on, so the number
     * identifies the client. */
    sample->future->clone = seq > 0 ? (uint64_t)seq / 1000000000u : 0;
    tnk__list_append(&sampler->futures, &sample->future->in_sampler);
  }
  reply_accepted(call, sample->future->id, sample->options.n_samples);
}

static void submit(local_call_t *call, local_sample_t *sample,
                   local_sampler_t *sampler, int64_t seq,
                   const local_place_t *place) {
  local_server_t *server = call->server;
  uint64_t hash =
      local_hash(sample->is_streamed ? 3 : 2, call->bytes, call->n_bytes);
  char dir[LOCAL_FILE] = "";
  int full = 0;

  if (answer_repeat(call, sample, sampler, seq, hash)) {
    local_sample_free(sample);
    return;
  }
  if (note_path(sample, place) == TNK_OK &&
      (place == NULL || local_place_dir(server, place, dir)))
    sample->weights = local_weights_get(server, dir);
  if (sample->weights != NULL)
    sample->future = local_future_new(server, LOCAL_SAMPLE, &full);
  if (sample->future == NULL) {
    local_sample_free(sample);
    local_reply_error(call->req, full ? 429 : 503,
                      full ? "Too many requests are pending" : "Out of memory");
    return;
  }
  if (sampler != NULL && seq >= 0)
    local_seqs_add(&sampler->seqs, seq, hash, sample->future->id);
  if (sample->is_streamed)
    stream_answer(call->req, sample->future);
  else
    accept_sample(call, sample, sampler, seq);
  local_sample_start(sample, sampler != NULL ? &sampler->lane : &server->loose);
}

/* Get the sampler and number of the request; returns 0 if answered. */
static int read_sampler(local_call_t *call, const char *id, int64_t *seq,
                        local_sampler_t **sampler) {
  if (!local_want_int(call, "seq_id", 0, INT64_MAX, seq))
    return 0;
  if (*seq < 0 && call->server->options.sequence != LOCAL_BUFFERED) {
    local_reply_invalid(call->req, "missing", "seq_id", "Field required");
    return 0;
  }
  *sampler = local_sampler_find(call->server, id);
  if (*sampler != NULL)
    return 1;
  local_reply_error(call->req, 404, "Sampling session not found: %s", id);
  return 0;
}

static void take(local_call_t *call, int is_streamed) {
  const char *id = NULL;
  local_sampler_t *sampler = NULL;
  local_place_t place = {0};
  int64_t seq = -1;
  int is_base = 0;
  reader_t r = {.call = call};
  int err;

  if (!local_want_text(call, "sampling_session_id", &id))
    return;
  if (id != NULL ? !read_sampler(call, id, &seq, &sampler)
                 : !local_read_source(call, &place, &is_base))
    return;
  if (sampler != NULL) {
    place = sampler->place;
    is_base = sampler->is_base;
  }
  r.sample = sample_new(call->server);
  if (r.sample == NULL) {
    local_reply_error(call->req, 503, "Out of memory");
    return;
  }
  r.sample->is_streamed = is_streamed;
  r.options = &r.sample->options;
  r.options->n_vocab = call->server->options.n_vocab;
  err = read_all(&r, call->body);
  if (err == TNK_OK) {
    if (sampler != NULL)
      memcpy(r.sample->payer, sampler->session->id, sizeof(r.sample->payer));
    /* Without a session or an id, later passes could not refer to the
     * sequences. */
    if (r.record && sampler != NULL && !is_streamed)
      memcpy(r.sample->session, sampler->session->id,
             sizeof(r.sample->session));
    submit(call, r.sample, sampler, seq, is_base ? NULL : &place);
    return;
  }
  local_sample_free(r.sample);
  if (err == TNK_ENOMEM)
    local_reply_error(call->req, 503, "Out of memory");
  else
    local_reply_invalid(call->req, "value_error", NULL, r.why.text);
}

void local_asample(local_call_t *call) {
  take(call, 0);
}

void local_stream_sample(local_call_t *call) {
  take(call, 1);
}

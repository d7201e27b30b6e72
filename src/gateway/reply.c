/* SPDX-License-Identifier: MIT */
#include "gateway/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/begin.h"
#include "gateway/form.h"
#include "gateway/record/key.h"
#include "gateway/stop.h"
#include "gateway/talk.h"
#include "gateway/wire/write.h"
#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

enum {
  /* Ids that the parser gets at a time in a stream. Each such group makes a
   * delta. */
  IDS_A_DELTA = 4,
  /* Maximum depth of the arguments of a call. The recorded line has six levels
   * around them, and must not exceed the limit when it is read again. */
  MAX_DEPTH = TNK__MAX_JSON_DEPTH - 6
};

static int no_memory(tnk__gw_fault_t *fault) {
  return tnk__gw_fault(fault, 500, NULL, "out of memory");
}

/* ---- Parsing the samples ---- */

typedef struct {
  tnk__gw_said_t *said;
  uint64_t number; /* number of the turn, used for ids of calls */
  int n_calls;
} listener_t;

static void on_delta(const tnk_chat_delta_t *delta, void *user) {
  listener_t *listener = user;
  tnk__gw_said_t *said = listener->said;
  char id[64];

  switch (delta->kind) {
  case TNK_CHAT_DELTA_THINKING:
    tnk__gw_said_add(said, TNK__GW_THINKING, delta->text, delta->n);
    break;
  case TNK_CHAT_DELTA_CALL_BEGIN:
    /* Ids that the model generates may repeat in a conversation. */
    (void)snprintf(id, sizeof(id), "call_%" PRIu64 "_%d", listener->number,
                   listener->n_calls++);
    tnk__gw_said_call(
        said, delta->id != NULL && delta->id[0] != '\0' ? delta->id : id,
        delta->name != NULL ? delta->name : "");
    break;
  case TNK_CHAT_DELTA_ARGUMENTS:
    tnk__gw_said_add(said, TNK__GW_ARGUMENTS, delta->text, delta->n);
    break;
  case TNK_CHAT_DELTA_CALL_END:
    break;
  case TNK_CHAT_DELTA_CONTENT:
  case TNK_CHAT_DELTA_UNPARSED: /* the client may be able to use it */
    tnk__gw_said_add(said, TNK__GW_CONTENT, delta->text, delta->n);
    break;
  }
}

/* Parse the ids of a forced call first. They belong to the prompt, but the
 * client receives them as the start of the call. */
static int parse(const tnk__gw_job_t *job, tnk__gw_choice_t *choice,
                 listener_t *listener, tnk__gw_fault_t *fault) {
  size_t step = job->ask.is_stream ? IDS_A_DELTA : choice->n_ids + 1;
  size_t n_before = choice->n_prompt - job->n_forced;
  tnk_chat_parser_t *parser;
  const char *json;
  int err;

  if (tnk__gw_talk_parser(job, choice->prompt, n_before, &parser, fault) != 0)
    return -1;
  err = tnk_chat_parser_feed(parser, choice->prompt + n_before, job->n_forced,
                             on_delta, listener);
  if (job->begun != NULL)
    for (size_t kind = 0; kind < TNK__GW_KINDS; kind++)
      choice->given[kind] =
          tnk__gw_said_length(listener->said, (tnk__gw_piece_kind_t)kind);
  for (size_t i = 0; err == TNK_OK && i < choice->n_ids; i += step) {
    size_t n = choice->n_ids - i;

    err = tnk_chat_parser_feed(parser, choice->ids + i, n < step ? n : step,
                               on_delta, listener);
  }
  if (err == TNK_OK)
    err = tnk_chat_parser_finish(parser, on_delta, listener, &json, NULL);
  tnk_chat_parser_free(parser);
  if (err == TNK_OK)
    err = tnk__gw_said_error(listener->said);
  return err == TNK_OK
             ? 0
             : tnk__gw_fault(fault, 500, NULL, "the answer cannot be read: %s",
                             tnk_strerror(err));
}

/* Remove the tokens after the first stop. They belong neither to the response
 * nor to the turns that continue it. */
static int end_at_stop(const tnk__gw_job_t *job, tnk__gw_choice_t *choice,
                       tnk__gw_fault_t *fault) {
  size_t n = choice->n_ids;
  int err = tnk__gw_stops_cut(job, choice->ids, &n);

  if (err != TNK_OK)
    return tnk__gw_fault(fault, 500, NULL, "the answer cannot be read: %s",
                         tnk_strerror(err));
  if (n < choice->n_ids)
    choice->end = TNK__GW_END_STOP;
  choice->n_ids = n;
  return 0;
}

static void cut(const tnk__gw_job_t *job, tnk__gw_choice_t *choice) {
  const char *const *stops = tnk_chat_template_stops(job->gateway->template_);
  size_t n = 0;
  int found;

  found = tnk__gw_said_cut(&choice->said, job->ask.stops, job->ask.n_stops,
                           choice->given[TNK__GW_CONTENT]);
  if (found >= 0)
    choice->stop = job->ask.stops[found];
  if (job->ask.api == TNK__GW_COMPLETION)
    return;
  while (stops[n] != NULL)
    n++;
  (void)tnk__gw_said_cut(&choice->said, stops, n,
                         choice->given[TNK__GW_CONTENT]);
}

static int say(const tnk__gw_job_t *job, tnk__gw_choice_t *choice,
               uint64_t number, tnk__gw_fault_t *fault) {
  listener_t listener = {.said = &choice->said, .number = number};

  if (parse(job, choice, &listener, fault) != 0)
    return -1;
  tnk__gw_prefill_match(job, choice);
  cut(job, choice);
  if (choice->end == TNK__GW_END_STOP &&
      tnk__gw_said_has(&choice->said, TNK__GW_CALL) > 0)
    choice->end = TNK__GW_END_CALLS;
  return 0;
}

/* ---- Recording ---- */

static int set_text(json_t *object, const char *key, const tnk__buf_t *text) {
  json_t *value =
      json_stringn(text->len > 0 ? (const char *)text->data : "", text->len);

  return json_object_set_new(object, key, value);
}

/* Returns whether a value has at most this many levels. */
static int is_flat(json_t *value, int n_levels) {
  const char *name;
  json_t *child;
  size_t i;

  if (!json_is_object(value) && !json_is_array(value))
    return 1;
  if (n_levels == 0)
    return 0;
  json_object_foreach(value, name, child) {
    if (!is_flat(child, n_levels - 1))
      return 0;
  }
  json_array_foreach(value, i, child) {
    if (!is_flat(child, n_levels - 1))
      return 0;
  }
  return 1;
}

static json_t *call_of(const tnk__gw_said_t *said, size_t i, tnk__buf_t *text) {
  const tnk__gw_piece_t *piece = tnk__gw_said_piece(said, i);
  const char *name = tnk__gw_said_text(said, piece);
  json_t *arguments = NULL;

  tnk__buf_clear(text);
  (void)tnk__gw_said_join(said, TNK__GW_ARGUMENTS, i + 1, text);
  (void)tnk__json_parse(&arguments, text->data, text->len);
  if (arguments == NULL || !is_flat(arguments, MAX_DEPTH)) {
    json_decref(arguments);
    arguments = json_object();
  }
  return json_pack("{s:s%, s:s, s:{s:s%, s:o}}", "id", name + piece->n,
                   piece->n_id, "type", "function", "function", "name", name,
                   piece->n, "arguments", arguments);
}

static int set_calls(json_t *message, const tnk__gw_said_t *said,
                     tnk__buf_t *text) {
  json_t *calls = json_array();
  int err = 0;

  for (size_t i = 0; err == 0 && i < tnk__gw_said_count(said); i++)
    if (tnk__gw_said_piece(said, i)->kind == TNK__GW_CALL)
      err = json_array_append_new(calls, call_of(said, i, text));
  return err == 0 ? json_object_set_new(message, "tool_calls", calls) : -1;
}

/* The response as a message. NULL: out of memory. */
static json_t *message_of(const tnk_gateway_t *gateway,
                          const tnk__gw_said_t *said) {
  json_t *message = json_pack("{s:s}", "role", "assistant");
  tnk__buf_t text;
  int err;

  tnk__buf_init(&text, &gateway->alloc, SIZE_MAX);
  (void)tnk__gw_said_join(said, TNK__GW_CONTENT, 0, &text);
  err = set_text(message, "content", &text);
  if (err == 0 && tnk__gw_said_has(said, TNK__GW_THINKING) > 0) {
    tnk__buf_clear(&text);
    (void)tnk__gw_said_join(said, TNK__GW_THINKING, 0, &text);
    err = set_text(message, "reasoning_content", &text);
  }
  if (err == 0 && tnk__gw_said_has(said, TNK__GW_CALL) > 0)
    err = set_calls(message, said, &text);
  tnk__buf_deinit(&text);
  if (err == 0)
    return message;
  json_decref(message);
  return NULL;
}

/* The new messages of the conversation, from `first` on, and the response. */
static json_t *news_of(const tnk__gw_job_t *job, size_t first,
                       const json_t *message) {
  const json_t *messages = json_object_get(job->doc, "messages");
  json_t *news = json_array();
  int err = news == NULL;

  for (size_t i = first; err == 0 && i < json_array_size(messages); i++)
    err = json_array_append(news, json_array_get(messages, i));
  if (err == 0)
    err = json_array_append(news, (json_t *)(uintptr_t)message);
  if (err == 0)
    return news;
  json_decref(news);
  return NULL;
}

static const char *const apis[] = {[TNK__GW_CHAT] = "chat",
                                   [TNK__GW_COMPLETION] = "completion",
                                   [TNK__GW_RESPONSE] = "response",
                                   [TNK__GW_MESSAGE] = "message"};

/* The key of the conversation before the response. No conversation continues
 * from a plain prompt. */
static uint64_t key_of(const tnk__gw_job_t *job,
                       const tnk__gw_choice_t *choice) {
  return job->chat != NULL ? job->key
                           : tnk__gw_hash(2, choice->prompt,
                                          choice->n_prompt * sizeof(int32_t));
}

static int record(const tnk__gw_job_t *job, const tnk__gw_choice_t *choice,
                  const char *sequence, int64_t made_s,
                  tnk__gw_fault_t *fault) {
  const tnk_gateway_t *gateway = job->gateway;
  json_t *message = message_of(gateway, &choice->said);
  json_t *news = NULL;
  tnk__gw_turn_new_t turn = {.session = job->session,
                             .request = job->number,
                             .api = apis[job->ask.api],
                             .sampled = choice->ids,
                             .n_sampled = choice->n_ids,
                             .logprobs = choice->logprobs,
                             .sequence = sequence,
                             .n_forced = job->n_forced,
                             .fits = tnk__gw_form_verdict(choice),
                             .misfit = choice->misfit,
                             .attempt = tnk__gw_form_attempt(job),
                             .version = job->sampler->version,
                             .made_s = made_s};
  tnk__gw_turn_t *made;
  size_t n_before = job->n_before;
  int err = TNK_ENOMEM;

  if (tnk__gw_check_session(gateway, job->session, fault) != 0)
    return -1;
  /* The record may have dropped the parent since the prompt was made. */
  turn.parent = job->parent != 0
                    ? tnk__gw_record_turn(gateway->record, job->parent)
                    : NULL;
  if (turn.parent == NULL) {
    n_before = 0;
    turn.tools = json_object_get(job->doc, "tools");
  }
  turn.prompt = choice->prompt + n_before;
  turn.n_prompt = choice->n_prompt - n_before;
  turn.end = choice->end == TNK__GW_END_LENGTH ? "length" : "stop";
  if (message != NULL)
    news = news_of(job, turn.parent != NULL ? job->first : 0, message);
  if (news != NULL) {
    turn.messages = news;
    turn.key = tnk__gw_key_add(key_of(job, choice), message);
    err = tnk__gw_record_add(gateway->record, &turn, &made);
  }
  json_decref(message);
  json_decref(news);
  return err == TNK_OK ? 0
                       : tnk__gw_fault(fault, 500, NULL,
                                       "the answer cannot be recorded: %s",
                                       tnk_strerror(err));
}

/* ---- The response ---- */

static int take_bytes(const char *bytes, size_t n, void *user) {
  return tnk__buf_append(user, bytes, n);
}

static int text_of(void *user, int32_t id, tnk__buf_t *out) {
  const tnk_chat_tokenizer_t *tokenizer =
      &((const tnk_gateway_t *)user)->tokenizer;

  return tokenizer->plugin->decode(tokenizer->tokenizer, &id, 1, 0, take_bytes,
                                   out, NULL, 0);
}

static const char *model_of(const tnk__gw_job_t *job) {
  const char *name = job->gateway->model;

  if (name == NULL)
    name = tnk_sampling_base_model(job->sampler->sampling);
  return name != NULL ? name : job->sampler->name;
}

/* Fill a response from sample `i` of a prompt. */
static void set_choice(tnk__gw_choice_t *choice, const tnk_samples_t *samples,
                       size_t i) {
  size_t n_logprobs;

  choice->ids = tnk_samples_tokens(samples, i, &choice->n_ids);
  choice->logprobs = tnk_samples_logprobs(samples, i, &n_logprobs);
  if (n_logprobs != choice->n_ids)
    choice->logprobs = NULL;
  choice->top = tnk_samples_topk(samples, i);
  choice->end = tnk_samples_stop_reason(samples, i) == TNK_STOP_LENGTH
                    ? TNK__GW_END_LENGTH
                    : TNK__GW_END_STOP;
}

static int set_prompt(const tnk__gw_job_t *job, tnk__gw_choice_t *choice,
                      const tnk_samples_t *samples, size_t at,
                      tnk__gw_fault_t *fault) {
  size_t n_logprobs;

  choice->prompt = tnk__gw_prompt_at(job, at, &choice->n_prompt);
  if (!job->ask.echo || !job->ask.with_logprobs)
    return 0;
  choice->prompt_logprobs = tnk_samples_prompt_logprobs(samples, &n_logprobs);
  choice->prompt_top = tnk_samples_prompt_topk(samples);
  return choice->prompt_logprobs != NULL && n_logprobs == choice->n_prompt
             ? 0
             : tnk__gw_fault(fault, 502, "echo",
                             "echo: the service gave no log-probabilities of "
                             "the prompt");
}

static int make_choice(tnk__gw_job_t *job, tnk__gw_choice_t *choice,
                       const char *sequence, int64_t made_s,
                       tnk__gw_fault_t *fault) {
  if (end_at_stop(job, choice, fault) != 0)
    return -1;
  job->gateway->stats.n_tokens += choice->n_ids;
  job->n_sampled += choice->n_ids;
  if (say(job, choice, tnk__gw_record_next(job->gateway->record), fault) != 0 ||
      tnk__gw_form_check(job, choice, fault) != 0 ||
      record(job, choice, sequence, made_s, fault) != 0)
    return -1;
  tnk__gw_prefill_cut(job, choice);
  return 0;
}

static const tnk_samples_t *samples_at(const tnk__gw_job_t *job, size_t i) {
  return tnk_promise_samples(tnk__gw_draw_at(job, i));
}

static size_t count_choices(const tnk__gw_job_t *job) {
  size_t n = 0;

  for (size_t i = 0; i < tnk__gw_n_prompts(job); i++)
    n += tnk_samples_count(samples_at(job, i));
  return n;
}

/* Make the responses, in the order of the prompts. Nothing is recorded if the
 * service has not answered in full. */
static int make_choices(tnk__gw_job_t *job, tnk__gw_answer_t *answer,
                        tnk__gw_choice_t *choices, tnk__gw_fault_t *fault) {
  tnk__gw_choice_t *choice = choices;

  for (size_t at = 0; at < tnk__gw_n_prompts(job); at++) {
    const tnk_samples_t *samples = samples_at(job, at);
    size_t n = tnk_samples_count(samples);
    int32_t n_cached = tnk_samples_cache_hit_tokens(samples);

    if (n == 0)
      return tnk__gw_fault(fault, 502, NULL, "the service gave no answer");
    answer->n_cached += n_cached > 0 ? (size_t)n_cached : 0;
    for (size_t i = 0; i < n; i++, choice++) {
      set_choice(choice, samples, i);
      if (set_prompt(job, choice, samples, at, fault) != 0)
        return -1;
    }
  }
  choice = choices;
  for (size_t at = 0; at < tnk__gw_n_prompts(job); at++)
    for (size_t i = 0; i < tnk_samples_count(samples_at(job, at)); i++)
      if (make_choice(job, choice++,
                      tnk_samples_sequence_id(samples_at(job, at), i),
                      answer->made_s, fault) != 0)
        return -1;
  return 0;
}

int tnk__gw_reply(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  tnk_gateway_t *gateway = job->gateway;
  size_t n = count_choices(job);
  tnk__gw_choice_t *choices =
      tnk__calloc(&gateway->alloc, n + 1, sizeof(*choices));
  tnk__gw_answer_t answer = {.ask = &job->ask,
                             .model = model_of(job),
                             .choices = choices,
                             .n_choices = n,
                             .n_prompt = job->ids.len / sizeof(int32_t),
                             .text_of = text_of,
                             .user = gateway};
  uv_timeval64_t now = {0};
  int err;

  if (choices == NULL)
    return no_memory(fault);
  tnk__buf_clear(&job->answer); /* of an earlier attempt */
  (void)uv_gettimeofday(&now);
  answer.made_s = now.tv_sec;
  answer.number = tnk__gw_record_next(gateway->record);
  for (size_t i = 0; i < n; i++)
    tnk__gw_said_init(&choices[i].said, &gateway->alloc);
  err = make_choices(job, &answer, choices, fault);
  if (answer.n_cached > answer.n_prompt)
    answer.n_cached = answer.n_prompt;
  if (err == 0 && tnk__gw_answer_write(&answer, &job->answer) != TNK_OK)
    err = no_memory(fault);
  job->answer_number = answer.number;
  job->answer_ends = 0;
  job->n_cached = answer.n_cached;
  job->is_misfit = 0;
  for (size_t i = 0; i < n; i++) {
    job->answer_ends |= 1U << choices[i].end;
    job->is_misfit |= tnk__gw_form_verdict(&choices[i]) < 0;
    tnk__gw_said_deinit(&choices[i].said);
  }
  tnk__free(&gateway->alloc, choices);
  return err;
}

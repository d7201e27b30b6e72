/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/wire/parts.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/*
 * Responses of /v1/responses: one choice, as output items. Runs of pieces make
 * items: thinking makes a reasoning item, content a message, and a call a
 * function call. A stream starts each item, sends it piece by piece, and then
 * sends it whole.
 */

typedef struct {
  const tnk__gw_answer_t *answer;
  const tnk__gw_choice_t *choice;
  tnk__buf_t *out;
  tnk__gw_w_t w;
  int64_t sequence; /* number of the next event */
} stream_t;

static const char *const types[] = {[TNK__GW_THINKING] = "reasoning",
                                    [TNK__GW_CONTENT] = "message",
                                    [TNK__GW_CALL] = "function_call"};

/* The index after the last piece of the item that starts at piece `i`. */
static size_t item_end(const tnk__gw_said_t *said, size_t i) {
  tnk__gw_piece_kind_t kind = tnk__gw_said_piece(said, i)->kind;

  if (kind == TNK__GW_CALL)
    kind = TNK__GW_ARGUMENTS;
  for (i++; i < tnk__gw_said_count(said); i++)
    if (tnk__gw_said_piece(said, i)->kind != kind)
      break;
  return i;
}

static int is_complete(const tnk__gw_choice_t *choice) {
  return choice->end != TNK__GW_END_LENGTH;
}

/* ---- Items ---- */

static void put_text(tnk__gw_w_t *w, const tnk__gw_said_t *said, size_t from,
                     size_t to) {
  tnk__buf_t text;

  tnk__buf_init(&text, w->buf->alloc, SIZE_MAX);
  for (size_t i = from; i < to; i++)
    tnk__buf_append(&text, tnk__gw_said_text(said, tnk__gw_said_piece(said, i)),
                    tnk__gw_said_piece(said, i)->n);
  if (text.err != TNK_OK)
    w->buf->err = text.err;
  tnk__gw_text(w, (const char *)text.data, text.len);
  tnk__buf_deinit(&text);
}

/* Write a part of an item's content, with the text from piece `from` on. The
 * log-probabilities cover the whole response, because the tokens of an item are
 * not known. */
static void put_part(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                     size_t from, size_t to) {
  const tnk__gw_choice_t *choice = &answer->choices[0];
  int is_thinking =
      tnk__gw_said_piece(&choice->said, from)->kind == TNK__GW_THINKING;

  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type", is_thinking ? "reasoning_text" : "output_text");
  tnk__json_key(w, "text");
  put_text(w, &choice->said, from, to);
  if (!is_thinking) {
    tnk__json_key(w, "annotations");
    tnk__json_begin_array(w);
    tnk__json_end(w);
    tnk__json_key(w, "logprobs");
    tnk__json_begin_array(w);
    for (size_t i = 0; answer->ask->with_logprobs && to > from &&
                       choice->logprobs != NULL && i < choice->n_ids;
         i++)
      tnk__gw_token(w, answer, choice, i, 1);
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

static void put_item_name(tnk__gw_w_t *w, const char *key,
                          const tnk__gw_answer_t *answer, size_t item) {
  static const char *const prefixes[] = {[TNK__GW_THINKING] = "rs",
                                         [TNK__GW_CONTENT] = "msg",
                                         [TNK__GW_CALL] = "fc"};
  const tnk__gw_said_t *said = &answer->choices[0].said;
  const tnk__gw_piece_kind_t kind = tnk__gw_said_piece(said, item)->kind;
  size_t n = 0; /* items of this kind before it, see ../response.c */
  char name[64];

  for (size_t i = 0; i < item; i = item_end(said, i))
    n += tnk__gw_said_piece(said, i)->kind == kind;
  (void)snprintf(name, sizeof(name), "%s_%" PRIu64 "_%zu", prefixes[kind],
                 answer->number, n);
  tnk__json_put_text(w, key, name);
}

/* Write the item that starts at piece `from`. If `to` equals `from`, the item
 * is still empty. */
static void put_item(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                     size_t from, size_t to) {
  const tnk__gw_choice_t *choice = &answer->choices[0];
  const tnk__gw_said_t *said = &choice->said;
  const tnk__gw_piece_t *piece = tnk__gw_said_piece(said, from);
  int is_begin = to == from;

  tnk__json_begin_object(w);
  put_item_name(w, "id", answer, from);
  tnk__json_put_text(w, "type", types[piece->kind]);
  tnk__json_put_text(w, "status",
                     is_begin                        ? "in_progress"
                     : is_complete(choice)           ? "completed"
                     : to < tnk__gw_said_count(said) ? "completed"
                                                     : "incomplete");
  if (piece->kind == TNK__GW_CALL) {
    tnk__gw_put_call_id(w, "call_id", said, piece);
    tnk__json_key(w, "name");
    tnk__gw_text(w, tnk__gw_said_text(said, piece), piece->n);
    if (is_begin)
      tnk__json_put_text(w, "arguments", "");
    else
      tnk__gw_put_arguments(w, "arguments", said, from, 1);
  } else {
    if (piece->kind == TNK__GW_CONTENT) {
      tnk__json_put_text(w, "role", "assistant");
    } else {
      tnk__json_key(w, "summary");
      tnk__json_begin_array(w);
      tnk__json_end(w);
    }
    tnk__json_key(w, "content");
    tnk__json_begin_array(w);
    if (!is_begin)
      put_part(w, answer, from, to);
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

/* ---- The response object ---- */

static void put_usage(tnk__gw_w_t *w, const tnk__gw_answer_t *answer) {
  size_t n = tnk__gw_n_sampled(answer);

  tnk__json_key(w, "usage");
  tnk__json_begin_object(w);
  tnk__json_put_int(w, "input_tokens", (int64_t)answer->n_prompt);
  tnk__json_key(w, "input_tokens_details");
  tnk__json_begin_object(w);
  tnk__json_put_int(w, "cached_tokens", (int64_t)answer->n_cached);
  tnk__json_end(w);
  tnk__json_put_int(w, "output_tokens", (int64_t)n);
  tnk__json_key(w, "output_tokens_details");
  tnk__json_begin_object(w);
  tnk__json_put_int(w, "reasoning_tokens", 0);
  tnk__json_end(w);
  tnk__json_put_int(w, "total_tokens", (int64_t)(answer->n_prompt + n));
  tnk__json_end(w);
}

/* Write a member of the request unchanged; `otherwise` is JSON. */
static void put_echo(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                     const char *name, const char *otherwise) {
  const json_t *value = json_object_get(answer->ask->body, name);
  char *text =
      value != NULL ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

  tnk__json_key(w, name);
  if (text != NULL)
    tnk__json_raw(w, text, strlen(text));
  else
    tnk__json_raw(w, otherwise, strlen(otherwise));
  tnk__json_free_string(text);
}

static void put_response(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                         int is_begin) {
  const tnk__gw_choice_t *choice = &answer->choices[0];
  int is_cut = !is_begin && !is_complete(choice);
  char name[TNK__GW_MAX_NAME];

  tnk__json_begin_object(w);
  tnk__gw_name(TNK__GW_RESPONSE, answer->number, name);
  tnk__json_put_text(w, "id", name);
  tnk__json_put_text(w, "object", "response");
  tnk__json_put_int(w, "created_at", answer->made_s);
  tnk__json_put_text(w, "status",
                     is_begin ? "in_progress"
                     : is_cut ? "incomplete"
                              : "completed");
  tnk__json_put_text(w, "error", NULL);
  tnk__json_key(w, "incomplete_details");
  if (is_cut)
    tnk__json_raw(w, "{\"reason\":\"max_output_tokens\"}", 30);
  else
    tnk__json_null(w);
  put_echo(w, answer, "instructions", "null");
  put_echo(w, answer, "max_output_tokens", "null");
  tnk__json_put_text(w, "model", answer->model);
  tnk__json_key(w, "output");
  tnk__json_begin_array(w);
  for (size_t i = 0; !is_begin && i < tnk__gw_said_count(&choice->said);) {
    size_t next = item_end(&choice->said, i);

    put_item(w, answer, i, next);
    i = next;
  }
  tnk__json_end(w);
  put_echo(w, answer, "parallel_tool_calls", "true");
  put_echo(w, answer, "previous_response_id", "null");
  put_echo(w, answer, "temperature", "1.0");
  put_echo(w, answer, "tool_choice", "\"auto\"");
  put_echo(w, answer, "tools", "[]");
  put_echo(w, answer, "top_p", "1.0");
  put_echo(w, answer, "metadata", "{}");
  put_echo(w, answer, "store", "true");
  if (is_begin)
    tnk__json_put_text(w, "usage", NULL);
  else
    put_usage(w, answer);
  tnk__json_end(w);
}

/* ---- Events ---- */

static void begin(stream_t *s, const char *event) {
  tnk__gw_event(&s->w, s->out, event);
  tnk__json_put_text(&s->w, "type", event);
  tnk__json_put_int(&s->w, "sequence_number", s->sequence++);
}

static void end(stream_t *s) {
  tnk__gw_event_end(&s->w, s->out);
}

static void tell_response(stream_t *s, const char *event, int is_begin) {
  begin(s, event);
  tnk__json_key(&s->w, "response");
  put_response(&s->w, s->answer, is_begin);
  end(s);
}

/* Begin an event of the `n`-th item, which starts at piece `from`. */
static void begin_of(stream_t *s, const char *event, size_t from, int64_t n) {
  begin(s, event);
  put_item_name(&s->w, "item_id", s->answer, from);
  tnk__json_put_int(&s->w, "output_index", n);
}

static void tell_item(stream_t *s, const char *event, size_t from, size_t to,
                      int64_t n) {
  begin(s, event);
  tnk__json_put_int(&s->w, "output_index", n);
  tnk__json_key(&s->w, "item");
  put_item(&s->w, s->answer, from, to);
  end(s);
}

static void tell_part(stream_t *s, const char *event, size_t from, size_t to,
                      int64_t n) {
  begin_of(s, event, from, n);
  tnk__json_put_int(&s->w, "content_index", 0);
  tnk__json_key(&s->w, "part");
  put_part(&s->w, s->answer, from, to);
  end(s);
}

/* The log-probabilities come with the whole item. */
static void put_no_logprobs(tnk__gw_w_t *w) {
  tnk__json_key(w, "logprobs");
  tnk__json_raw(w, "[]", 2);
}

static void tell_texts(stream_t *s, size_t from, size_t to, int64_t n) {
  const tnk__gw_said_t *said = &s->choice->said;
  int is_thinking = tnk__gw_said_piece(said, from)->kind == TNK__GW_THINKING;

  tell_part(s, "response.content_part.added", from, from, n);
  for (size_t i = from; i < to; i++) {
    begin_of(s,
             is_thinking ? "response.reasoning_text.delta"
                         : "response.output_text.delta",
             from, n);
    tnk__json_put_int(&s->w, "content_index", 0);
    tnk__json_key(&s->w, "delta");
    put_text(&s->w, said, i, i + 1);
    if (!is_thinking)
      put_no_logprobs(&s->w);
    end(s);
  }
  begin_of(s,
           is_thinking ? "response.reasoning_text.done"
                       : "response.output_text.done",
           from, n);
  tnk__json_put_int(&s->w, "content_index", 0);
  tnk__json_key(&s->w, "text");
  put_text(&s->w, said, from, to);
  if (!is_thinking)
    put_no_logprobs(&s->w);
  end(s);
  tell_part(s, "response.content_part.done", from, to, n);
}

static void tell_call(stream_t *s, size_t from, size_t to, int64_t n) {
  const tnk__gw_said_t *said = &s->choice->said;
  const tnk__gw_piece_t *call = tnk__gw_said_piece(said, from);

  for (size_t i = from + 1; i < to; i++) {
    begin_of(s, "response.function_call_arguments.delta", from, n);
    tnk__json_key(&s->w, "delta");
    put_text(&s->w, said, i, i + 1);
    end(s);
  }
  begin_of(s, "response.function_call_arguments.done", from, n);
  tnk__json_key(&s->w, "name");
  tnk__gw_text(&s->w, tnk__gw_said_text(said, call), call->n);
  tnk__gw_put_arguments(&s->w, "arguments", said, from, 1);
  end(s);
}

static int write_stream(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  stream_t s = {.answer = answer, .choice = &answer->choices[0], .out = out};
  const tnk__gw_said_t *said = &s.choice->said;
  int64_t n = 0;

  tell_response(&s, "response.created", 1);
  tell_response(&s, "response.in_progress", 1);
  for (size_t i = 0; i < tnk__gw_said_count(said); n++) {
    size_t next = item_end(said, i);

    tell_item(&s, "response.output_item.added", i, i, n);
    if (tnk__gw_said_piece(said, i)->kind == TNK__GW_CALL)
      tell_call(&s, i, next, n);
    else
      tell_texts(&s, i, next, n);
    tell_item(&s, "response.output_item.done", i, next, n);
    i = next;
  }
  tell_response(
      &s, is_complete(s.choice) ? "response.completed" : "response.incomplete",
      0);
  return out->err;
}

int tnk__gw_response_write(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  tnk__gw_w_t w;

  if (answer->ask->is_stream)
    return write_stream(answer, out);
  tnk__json_writer_init(&w, out);
  put_response(&w, answer, 0);
  return tnk__json_finish(&w);
}

/* SPDX-License-Identifier: MIT */
#include "gateway/wire/parts.h"
#include "tnk/error.h"

/* Responses of /v1/messages: one choice, as content blocks. */

/* Signature of thinking blocks. It is never verified. Clients take thinking
 * without a signature for the output of another model, and send it as a message
 * of the user. */
#define SIGNATURE "tnk"

typedef struct {
  const tnk__gw_answer_t *answer;
  const tnk__gw_choice_t *choice;
  tnk__buf_t *out;
  tnk__gw_w_t w;
  int64_t
      block; /* index of the open block, or of the next one if none is open */
  int is_open;
  tnk__gw_piece_kind_t kind; /* kind of the open block */
} stream_t;

static const char *end_of(const tnk__gw_choice_t *choice) {
  if (choice->stop != NULL)
    return "stop_sequence";
  if (choice->end == TNK__GW_END_CALLS)
    return "tool_use";
  return choice->end == TNK__GW_END_LENGTH ? "max_tokens" : "end_turn";
}

static void put_usage(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                      size_t n_out) {
  tnk__json_key(w, "usage");
  tnk__json_begin_object(w);
  tnk__json_put_int(w, "input_tokens",
                    (int64_t)(answer->n_prompt - answer->n_cached));
  tnk__json_put_int(w, "cache_creation_input_tokens", 0);
  tnk__json_put_int(w, "cache_read_input_tokens", (int64_t)answer->n_cached);
  tnk__json_put_int(w, "output_tokens", (int64_t)n_out);
  tnk__json_end(w);
}

static void put_head(tnk__gw_w_t *w, const tnk__gw_answer_t *answer) {
  char name[TNK__GW_MAX_NAME];

  tnk__gw_name(TNK__GW_MESSAGE, answer->number, name);
  tnk__json_put_text(w, "id", name);
  tnk__json_put_text(w, "type", "message");
  tnk__json_put_text(w, "role", "assistant");
  tnk__json_put_text(w, "model", answer->model);
}

/* ---- Whole responses ---- */

static int is_same_block(const tnk__gw_piece_t *a, const tnk__gw_piece_t *b) {
  return a->kind == b->kind && a->kind != TNK__GW_CALL;
}

/* Write pieces of the same kind in a row as one block. Returns the index after
 * them. */
static size_t put_text_block(tnk__gw_w_t *w, const tnk__gw_said_t *said,
                             size_t i) {
  const tnk__gw_piece_t *first = tnk__gw_said_piece(said, i);
  int is_thinking = first->kind == TNK__GW_THINKING;
  tnk__buf_t text;

  tnk__buf_init(&text, w->buf->alloc, SIZE_MAX);
  for (; i < tnk__gw_said_count(said) &&
         is_same_block(tnk__gw_said_piece(said, i), first);
       i++)
    tnk__buf_append(&text, tnk__gw_said_text(said, tnk__gw_said_piece(said, i)),
                    tnk__gw_said_piece(said, i)->n);
  if (text.err != TNK_OK)
    w->buf->err = text.err;
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type", is_thinking ? "thinking" : "text");
  tnk__json_key(w, is_thinking ? "thinking" : "text");
  tnk__gw_text(w, (const char *)text.data, text.len);
  if (is_thinking)
    tnk__json_put_text(w, "signature", SIGNATURE);
  tnk__json_end(w);
  tnk__buf_deinit(&text);
  return i;
}

static void put_call_block(tnk__gw_w_t *w, const tnk__gw_said_t *said,
                           size_t i) {
  const tnk__gw_piece_t *piece = tnk__gw_said_piece(said, i);

  tnk__json_begin_object(w);
  tnk__json_put_text(w, "type", "tool_use");
  tnk__gw_put_call_id(w, "id", said, piece);
  tnk__json_key(w, "name");
  tnk__gw_text(w, tnk__gw_said_text(said, piece), piece->n);
  tnk__gw_put_arguments(w, "input", said, i, 0);
  tnk__json_end(w);
}

static int write_whole(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  const tnk__gw_choice_t *choice = &answer->choices[0];
  const tnk__gw_said_t *said = &choice->said;
  tnk__gw_w_t w;
  size_t i = 0;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  put_head(&w, answer);
  tnk__json_key(&w, "content");
  tnk__json_begin_array(&w);
  while (i < tnk__gw_said_count(said)) {
    tnk__gw_piece_kind_t kind = tnk__gw_said_piece(said, i)->kind;

    if (kind == TNK__GW_THINKING || kind == TNK__GW_CONTENT) {
      i = put_text_block(&w, said, i);
      continue;
    }
    if (kind == TNK__GW_CALL)
      put_call_block(&w, said, i);
    i++;
  }
  tnk__json_end(&w);
  tnk__json_put_text(&w, "stop_reason", end_of(choice));
  tnk__json_put_text(&w, "stop_sequence", choice->stop);
  put_usage(&w, answer, choice->n_ids);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

/* ---- Streams ---- */

static void begin(stream_t *s, const char *event) {
  tnk__gw_event(&s->w, s->out, event);
  tnk__json_put_text(&s->w, "type", event);
}

static void end(stream_t *s) {
  tnk__gw_event_end(&s->w, s->out);
}

static void put_signature(stream_t *s) {
  begin(s, "content_block_delta");
  tnk__json_put_int(&s->w, "index", s->block);
  tnk__json_key(&s->w, "delta");
  tnk__json_begin_object(&s->w);
  tnk__json_put_text(&s->w, "type", "signature_delta");
  tnk__json_put_text(&s->w, "signature", SIGNATURE);
  tnk__json_end(&s->w);
  end(s);
}

static void close_block(stream_t *s) {
  if (!s->is_open)
    return;
  if (s->kind == TNK__GW_THINKING)
    put_signature(s);
  begin(s, "content_block_stop");
  tnk__json_put_int(&s->w, "index", s->block);
  end(s);
  s->is_open = 0;
  s->block++;
}

static void open_block(stream_t *s, const tnk__gw_piece_t *piece) {
  const tnk__gw_said_t *said = &s->choice->said;

  begin(s, "content_block_start");
  tnk__json_put_int(&s->w, "index", s->block);
  tnk__json_key(&s->w, "content_block");
  tnk__json_begin_object(&s->w);
  if (piece->kind == TNK__GW_CALL) {
    tnk__json_put_text(&s->w, "type", "tool_use");
    tnk__gw_put_call_id(&s->w, "id", said, piece);
    tnk__json_key(&s->w, "name");
    tnk__gw_text(&s->w, tnk__gw_said_text(said, piece), piece->n);
    tnk__json_key(&s->w, "input");
    tnk__json_begin_object(&s->w);
    tnk__json_end(&s->w);
  } else if (piece->kind == TNK__GW_THINKING) {
    tnk__json_put_text(&s->w, "type", "thinking");
    tnk__json_put_text(&s->w, "thinking", "");
    tnk__json_put_text(&s->w, "signature", "");
  } else {
    tnk__json_put_text(&s->w, "type", "text");
    tnk__json_put_text(&s->w, "text", "");
  }
  tnk__json_end(&s->w);
  end(s);
  s->is_open = 1;
  s->kind = piece->kind;
}

static void put_delta(stream_t *s, const tnk__gw_piece_t *piece) {
  static const char *const types[] = {[TNK__GW_THINKING] = "thinking_delta",
                                      [TNK__GW_CONTENT] = "text_delta",
                                      [TNK__GW_CALL] = "",
                                      [TNK__GW_ARGUMENTS] = "input_json_delta"};
  static const char *const names[] = {[TNK__GW_THINKING] = "thinking",
                                      [TNK__GW_CONTENT] = "text",
                                      [TNK__GW_CALL] = "",
                                      [TNK__GW_ARGUMENTS] = "partial_json"};

  begin(s, "content_block_delta");
  tnk__json_put_int(&s->w, "index", s->block);
  tnk__json_key(&s->w, "delta");
  tnk__json_begin_object(&s->w);
  tnk__json_put_text(&s->w, "type", types[piece->kind]);
  tnk__json_key(&s->w, names[piece->kind]);
  tnk__gw_text(&s->w, tnk__gw_said_text(&s->choice->said, piece), piece->n);
  tnk__json_end(&s->w);
  end(s);
}

static void put_piece(stream_t *s, const tnk__gw_piece_t *piece) {
  int goes_on = piece->kind == TNK__GW_ARGUMENTS
                    ? s->kind == TNK__GW_CALL
                    : piece->kind != TNK__GW_CALL && piece->kind == s->kind;

  if (!s->is_open || !goes_on) {
    close_block(s);
    open_block(s, piece);
  }
  if (piece->kind != TNK__GW_CALL)
    put_delta(s, piece);
}

static int write_stream(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  stream_t s = {.answer = answer, .choice = &answer->choices[0], .out = out};

  begin(&s, "message_start");
  tnk__json_key(&s.w, "message");
  tnk__json_begin_object(&s.w);
  put_head(&s.w, answer);
  tnk__json_key(&s.w, "content");
  tnk__json_begin_array(&s.w);
  tnk__json_end(&s.w);
  tnk__json_put_text(&s.w, "stop_reason", NULL);
  tnk__json_put_text(&s.w, "stop_sequence", NULL);
  put_usage(&s.w, answer, 0);
  tnk__json_end(&s.w);
  end(&s);
  for (size_t i = 0; i < tnk__gw_said_count(&s.choice->said); i++)
    put_piece(&s, tnk__gw_said_piece(&s.choice->said, i));
  close_block(&s);
  begin(&s, "message_delta");
  tnk__json_key(&s.w, "delta");
  tnk__json_begin_object(&s.w);
  tnk__json_put_text(&s.w, "stop_reason", end_of(s.choice));
  tnk__json_put_text(&s.w, "stop_sequence", s.choice->stop);
  tnk__json_end(&s.w);
  put_usage(&s.w, answer, s.choice->n_ids);
  end(&s);
  begin(&s, "message_stop");
  end(&s);
  return out->err;
}

int tnk__gw_message_write(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  return answer->ask->is_stream ? write_stream(answer, out)
                                : write_whole(answer, out);
}

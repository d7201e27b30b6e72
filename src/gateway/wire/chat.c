/* SPDX-License-Identifier: MIT */
#include "gateway/wire/parts.h"

/* Responses of /v1/chat/completions. */

static const char *const ends[] = {[TNK__GW_END_STOP] = "stop",
                                   [TNK__GW_END_LENGTH] = "length",
                                   [TNK__GW_END_CALLS] = "tool_calls"};

static void put_logprobs(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                         const tnk__gw_choice_t *choice) {
  tnk__json_key(w, "logprobs");
  if (!answer->ask->with_logprobs || choice->logprobs == NULL) {
    tnk__json_null(w);
    return;
  }
  tnk__json_begin_object(w);
  tnk__json_key(w, "content");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < choice->n_ids; i++)
    tnk__gw_token(w, answer, choice, i, 1);
  tnk__json_end(w);
  tnk__json_key(w, "refusal");
  tnk__json_null(w);
  tnk__json_end(w);
}

/* ---- Whole responses ---- */

static void put_calls(tnk__gw_w_t *w, const tnk__gw_said_t *said) {
  tnk__json_key(w, "tool_calls");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < tnk__gw_said_count(said); i++) {
    const tnk__gw_piece_t *piece = tnk__gw_said_piece(said, i);

    if (piece->kind != TNK__GW_CALL)
      continue;
    tnk__json_begin_object(w);
    tnk__gw_put_call_id(w, "id", said, piece);
    tnk__json_put_text(w, "type", "function");
    tnk__json_key(w, "function");
    tnk__json_begin_object(w);
    tnk__json_key(w, "name");
    tnk__gw_text(w, tnk__gw_said_text(said, piece), piece->n);
    tnk__gw_put_arguments(w, "arguments", said, i, 1);
    tnk__json_end(w);
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

static void put_choice(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                       size_t index) {
  const tnk__gw_choice_t *choice = &answer->choices[index];
  int has_calls = tnk__gw_said_has(&choice->said, TNK__GW_CALL) > 0;

  tnk__json_begin_object(w);
  tnk__json_put_int(w, "index", (int64_t)index);
  tnk__json_key(w, "message");
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "role", "assistant");
  tnk__gw_put_joined(w, "content", &choice->said, TNK__GW_CONTENT, has_calls);
  if (tnk__gw_said_has(&choice->said, TNK__GW_THINKING) > 0)
    tnk__gw_put_joined(w, "reasoning_content", &choice->said, TNK__GW_THINKING,
                       0);
  tnk__json_put_text(w, "refusal", NULL);
  if (has_calls)
    put_calls(w, &choice->said);
  tnk__json_end(w);
  put_logprobs(w, answer, choice);
  tnk__json_put_text(w, "finish_reason", ends[choice->end]);
  tnk__json_end(w);
}

static int write_whole(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  tnk__gw_w_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__gw_put_head(&w, answer, TNK__GW_CHAT, "chat.completion");
  tnk__json_key(&w, "choices");
  tnk__json_begin_array(&w);
  for (size_t i = 0; i < answer->n_choices; i++)
    put_choice(&w, answer, i);
  tnk__json_end(&w);
  tnk__gw_put_usage(&w, answer);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

/* ---- Streams ---- */

static void begin_chunk(tnk__gw_w_t *w, tnk__buf_t *out,
                        const tnk__gw_answer_t *answer, size_t index) {
  tnk__gw_event(w, out, NULL);
  tnk__gw_put_head(w, answer, TNK__GW_CHAT, "chat.completion.chunk");
  tnk__json_key(w, "choices");
  tnk__json_begin_array(w);
  tnk__json_begin_object(w);
  tnk__json_put_int(w, "index", (int64_t)index);
  tnk__json_key(w, "delta");
  tnk__json_begin_object(w);
}

/* End a chunk after its delta. `choice` is NULL in all chunks but the last. */
static void end_chunk(tnk__gw_w_t *w, tnk__buf_t *out,
                      const tnk__gw_answer_t *answer,
                      const tnk__gw_choice_t *choice) {
  tnk__json_end(w);
  if (choice != NULL && answer->ask->with_logprobs)
    put_logprobs(w, answer, choice);
  tnk__json_put_text(w, "finish_reason",
                     choice != NULL ? ends[choice->end] : NULL);
  tnk__json_end(w);
  tnk__json_end(w);
  tnk__gw_event_end(w, out);
}

static void put_call_delta(tnk__gw_w_t *w, const tnk__gw_said_t *said,
                           const tnk__gw_piece_t *piece, int64_t n_call) {
  tnk__json_key(w, "tool_calls");
  tnk__json_begin_array(w);
  tnk__json_begin_object(w);
  tnk__json_put_int(w, "index", n_call);
  if (piece->kind == TNK__GW_CALL) {
    tnk__gw_put_call_id(w, "id", said, piece);
    tnk__json_put_text(w, "type", "function");
  }
  tnk__json_key(w, "function");
  tnk__json_begin_object(w);
  if (piece->kind == TNK__GW_CALL) {
    tnk__json_key(w, "name");
    tnk__gw_text(w, tnk__gw_said_text(said, piece), piece->n);
    tnk__json_put_text(w, "arguments", "");
  } else {
    tnk__json_key(w, "arguments");
    tnk__gw_text(w, tnk__gw_said_text(said, piece), piece->n);
  }
  tnk__json_end(w);
  tnk__json_end(w);
  tnk__json_end(w);
}

static void stream_choice(const tnk__gw_answer_t *answer, tnk__buf_t *out,
                          size_t index) {
  const tnk__gw_choice_t *choice = &answer->choices[index];
  const tnk__gw_said_t *said = &choice->said;
  int64_t n_call = -1;
  tnk__gw_w_t w;

  begin_chunk(&w, out, answer, index);
  tnk__json_put_text(&w, "role", "assistant");
  tnk__json_put_text(&w, "content", "");
  end_chunk(&w, out, answer, NULL);
  for (size_t i = 0; i < tnk__gw_said_count(said); i++) {
    const tnk__gw_piece_t *piece = tnk__gw_said_piece(said, i);

    n_call += piece->kind == TNK__GW_CALL;
    begin_chunk(&w, out, answer, index);
    if (piece->kind == TNK__GW_CALL || piece->kind == TNK__GW_ARGUMENTS) {
      put_call_delta(&w, said, piece, n_call);
    } else {
      tnk__json_key(&w, piece->kind == TNK__GW_CONTENT ? "content"
                                                       : "reasoning_content");
      tnk__gw_text(&w, tnk__gw_said_text(said, piece), piece->n);
    }
    end_chunk(&w, out, answer, NULL);
  }
  begin_chunk(&w, out, answer, index);
  end_chunk(&w, out, answer, choice);
}

static int write_stream(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  for (size_t i = 0; i < answer->n_choices; i++)
    stream_choice(answer, out, i);
  return tnk__gw_put_last(out, answer, TNK__GW_CHAT, "chat.completion.chunk");
}

int tnk__gw_chat_write(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  return answer->ask->is_stream ? write_stream(answer, out)
                                : write_whole(answer, out);
}

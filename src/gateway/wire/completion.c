/* SPDX-License-Identifier: MIT */
#include "gateway/wire/parts.h"
#include "tnk/error.h"

/* Responses of /v1/completions. */

/* ---- Log-probabilities, in parallel lists ---- */

static void put_token(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                      int32_t id, int is_key) {
  tnk__buf_t text;

  tnk__buf_init(&text, w->buf->alloc, 4096);
  (void)answer->text_of(answer->user, id, &text);
  for (size_t i = 0; is_key && i < text.len; i++)
    if (text.data[i] >= 0x80 || text.data[i] < ' ')
      text.data[i] = '?'; /* keys must be UTF-8, and clients do not use them */
  if (text.err != TNK_OK)
    w->buf->err = text.err;
  else if (is_key)
    tnk__json_key_n(w, text.len > 0 ? (const char *)text.data : "", text.len);
  else
    tnk__gw_text(w, (const char *)text.data, text.len);
  tnk__buf_deinit(&text);
}

static void put_top(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                    const tnk_topk_t *top, size_t i) {
  tnk__json_begin_object(w);
  for (size_t k = 0; i < top->length && k < top->k; k++) {
    size_t at = i * top->k + k;

    if (top->ids[at] == 0 && top->logprobs[at] == -99999.0f)
      break; /* the rest of the row is unused */
    put_token(w, answer, top->ids[at], 1);
    tnk__json_float(w, top->logprobs[at]);
  }
  tnk__json_end(w);
}

/* Write the byte offset of each token in the text. */
static void put_offsets(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                        const tnk__gw_choice_t *choice) {
  tnk__buf_t text;
  int64_t at = 0;

  tnk__json_key(w, "text_offset");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < choice->n_ids; i++) {
    tnk__json_int(w, at);
    tnk__buf_init(&text, w->buf->alloc, 4096);
    (void)answer->text_of(answer->user, choice->ids[i], &text);
    at += (int64_t)text.len;
    if (text.err != TNK_OK)
      w->buf->err = text.err;
    tnk__buf_deinit(&text);
  }
  tnk__json_end(w);
}

static void put_logprobs(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                         const tnk__gw_choice_t *choice) {
  tnk__json_key(w, "logprobs");
  if (!answer->ask->with_logprobs || choice->logprobs == NULL) {
    tnk__json_null(w);
    return;
  }
  tnk__json_begin_object(w);
  tnk__json_key(w, "tokens");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < choice->n_ids; i++)
    put_token(w, answer, choice->ids[i], 0);
  tnk__json_end(w);
  tnk__json_key(w, "token_logprobs");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < choice->n_ids; i++)
    tnk__json_float(w, choice->logprobs[i]);
  tnk__json_end(w);
  tnk__json_key(w, "top_logprobs");
  if (choice->top == NULL) {
    tnk__json_null(w);
  } else {
    tnk__json_begin_array(w);
    for (size_t i = 0; i < choice->n_ids; i++)
      put_top(w, answer, choice->top, i);
    tnk__json_end(w);
  }
  put_offsets(w, answer, choice);
  tnk__json_end(w);
}

static const char *end_of(const tnk__gw_choice_t *choice) {
  return choice->end == TNK__GW_END_LENGTH ? "length" : "stop";
}

/* ---- Whole responses and streams ---- */

static int write_whole(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  tnk__gw_w_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__gw_put_head(&w, answer, TNK__GW_COMPLETION, "text_completion");
  tnk__json_key(&w, "choices");
  tnk__json_begin_array(&w);
  for (size_t i = 0; i < answer->n_choices; i++) {
    const tnk__gw_choice_t *choice = &answer->choices[i];

    tnk__json_begin_object(&w);
    tnk__gw_put_joined(&w, "text", &choice->said, TNK__GW_CONTENT, 0);
    tnk__json_put_int(&w, "index", (int64_t)i);
    put_logprobs(&w, answer, choice);
    tnk__json_put_text(&w, "finish_reason", end_of(choice));
    tnk__json_end(&w);
  }
  tnk__json_end(&w);
  tnk__gw_put_usage(&w, answer);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

/* `piece` is NULL at the end. */
static void put_chunk(const tnk__gw_answer_t *answer, tnk__buf_t *out,
                      size_t index, const tnk__gw_piece_t *piece) {
  const tnk__gw_choice_t *choice = &answer->choices[index];
  tnk__gw_w_t w;

  tnk__gw_event(&w, out, NULL);
  tnk__gw_put_head(&w, answer, TNK__GW_COMPLETION, "text_completion");
  tnk__json_key(&w, "choices");
  tnk__json_begin_array(&w);
  tnk__json_begin_object(&w);
  tnk__json_key(&w, "text");
  if (piece != NULL)
    tnk__gw_text(&w, tnk__gw_said_text(&choice->said, piece), piece->n);
  else
    tnk__json_text(&w, "");
  tnk__json_put_int(&w, "index", (int64_t)index);
  if (piece == NULL)
    put_logprobs(&w, answer, choice);
  else
    tnk__json_put_text(&w, "logprobs", NULL);
  tnk__json_put_text(&w, "finish_reason",
                     piece == NULL ? end_of(choice) : NULL);
  tnk__json_end(&w);
  tnk__json_end(&w);
  tnk__gw_event_end(&w, out);
}

static int write_stream(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  tnk__gw_w_t w;

  for (size_t i = 0; i < answer->n_choices; i++) {
    const tnk__gw_said_t *said = &answer->choices[i].said;

    for (size_t k = 0; k < tnk__gw_said_count(said); k++)
      put_chunk(answer, out, i, tnk__gw_said_piece(said, k));
    put_chunk(answer, out, i, NULL);
  }
  if (answer->ask->with_usage) {
    tnk__gw_event(&w, out, NULL);
    tnk__gw_put_head(&w, answer, TNK__GW_COMPLETION, "text_completion");
    tnk__json_key(&w, "choices");
    tnk__json_begin_array(&w);
    tnk__json_end(&w);
    tnk__gw_put_usage(&w, answer);
    tnk__gw_event_end(&w, out);
  }
  return tnk__buf_text(out, "data: [DONE]\n\n");
}

int tnk__gw_completion_write(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  return answer->ask->is_stream ? write_stream(answer, out)
                                : write_whole(answer, out);
}

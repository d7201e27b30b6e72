/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "gateway/wire/parts.h"
#include "tnk/error.h"

/* Responses of /v1/completions. */

/* ---- Log-probabilities, in parallel lists ---- */

/* Tokens in a row: those of the response, or of the prompt before it. */
typedef struct {
  const int32_t *ids;
  const float *logprobs;
  const tnk_topk_t *top;
  size_t n;
} run_t;

enum { MAX_RUNS = 2, MAX_TEXT = 64 << 20 };

/* Returns the number of runs. */
static size_t runs_of(const tnk__gw_answer_t *answer,
                      const tnk__gw_choice_t *choice, run_t *runs) {
  size_t n = 0;

  if (answer->ask->echo)
    runs[n++] = (run_t){choice->prompt, choice->prompt_logprobs,
                        choice->prompt_top, choice->n_prompt};
  runs[n++] =
      (run_t){choice->ids, choice->logprobs, choice->top, choice->n_ids};
  return n;
}

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

/* Write the entry of a token in a list. `at` is the byte offset of the token in
 * the text, and is advanced by the list of offsets. */
typedef void (*put_entry_t)(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                            const run_t *run, size_t i, int64_t *at);

static void put_text_of(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                        const run_t *run, size_t i, int64_t *at) {
  (void)at;
  put_token(w, answer, run->ids[i], 0);
}

static void put_logprob(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                        const run_t *run, size_t i, int64_t *at) {
  (void)answer;
  (void)at;
  if (isnan(run->logprobs[i])) /* the first token of a prompt has none */
    tnk__json_null(w);
  else
    tnk__json_float(w, run->logprobs[i]);
}

static void put_top(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                    const run_t *run, size_t i, int64_t *at) {
  const tnk_topk_t *top = run->top;

  (void)at;
  if (top == NULL || isnan(run->logprobs[i])) {
    tnk__json_null(w);
    return;
  }
  tnk__json_begin_object(w);
  for (size_t k = 0; i < top->length && k < top->k; k++) {
    size_t cell = i * top->k + k;

    if (top->ids[cell] == 0 && top->logprobs[cell] == -99999.0f)
      break; /* the rest of the row is unused */
    put_token(w, answer, top->ids[cell], 1);
    tnk__json_float(w, top->logprobs[cell]);
  }
  tnk__json_end(w);
}

static void put_offset(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                       const run_t *run, size_t i, int64_t *at) {
  tnk__buf_t text;

  tnk__json_int(w, *at);
  tnk__buf_init(&text, w->buf->alloc, 4096);
  (void)answer->text_of(answer->user, run->ids[i], &text);
  *at += (int64_t)text.len;
  if (text.err != TNK_OK)
    w->buf->err = text.err;
  tnk__buf_deinit(&text);
}

static void put_list(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                     const tnk__gw_choice_t *choice, const char *name,
                     put_entry_t put) {
  run_t runs[MAX_RUNS];
  size_t n = runs_of(answer, choice, runs);
  int64_t at = 0;

  tnk__json_key(w, name);
  tnk__json_begin_array(w);
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i < runs[k].n; i++)
      put(w, answer, &runs[k], i, &at);
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
  put_list(w, answer, choice, "tokens", put_text_of);
  put_list(w, answer, choice, "token_logprobs", put_logprob);
  if (choice->top == NULL)
    tnk__json_put_text(w, "top_logprobs", NULL);
  else
    put_list(w, answer, choice, "top_logprobs", put_top);
  put_list(w, answer, choice, "text_offset", put_offset);
  tnk__json_end(w);
}

/* ---- Texts ---- */

/* Append the text of the prompt. An id may be a part of a character. */
static int add_prompt(const tnk__gw_answer_t *answer,
                      const tnk__gw_choice_t *choice, tnk__buf_t *out) {
  for (size_t i = 0; i < choice->n_prompt; i++)
    (void)answer->text_of(answer->user, choice->prompt[i], out);
  return out->err;
}

/* Write a member with the text of a response, which may start with the prompt.
 * `with_said` is 0 for only the prompt. */
static void put_whole(tnk__gw_w_t *w, const tnk__gw_answer_t *answer,
                      const tnk__gw_choice_t *choice, int with_said) {
  tnk__buf_t text;

  tnk__json_key(w, "text");
  tnk__buf_init(&text, w->buf->alloc, MAX_TEXT);
  if (answer->ask->echo)
    (void)add_prompt(answer, choice, &text);
  if (with_said)
    (void)tnk__gw_said_join(&choice->said, TNK__GW_CONTENT, 0, &text);
  if (text.err != TNK_OK)
    w->buf->err = text.err;
  else
    tnk__gw_text(w, (const char *)text.data, text.len);
  tnk__buf_deinit(&text);
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
    put_whole(&w, answer, choice, 1);
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

/* What a chunk of a stream has. */
typedef enum { PROMPT, PIECE, END } chunk_t;

/* `piece` is only used for PIECE. */
static void put_chunk(const tnk__gw_answer_t *answer, tnk__buf_t *out,
                      size_t index, chunk_t chunk,
                      const tnk__gw_piece_t *piece) {
  const tnk__gw_choice_t *choice = &answer->choices[index];
  tnk__gw_w_t w;

  tnk__gw_event(&w, out, NULL);
  tnk__gw_put_head(&w, answer, TNK__GW_COMPLETION, "text_completion");
  tnk__json_key(&w, "choices");
  tnk__json_begin_array(&w);
  tnk__json_begin_object(&w);
  if (chunk == PROMPT) {
    put_whole(&w, answer, choice, 0);
  } else {
    tnk__json_key(&w, "text");
    if (chunk == PIECE)
      tnk__gw_text(&w, tnk__gw_said_text(&choice->said, piece), piece->n);
    else
      tnk__json_text(&w, "");
  }
  tnk__json_put_int(&w, "index", (int64_t)index);
  if (chunk == END)
    put_logprobs(&w, answer, choice);
  else
    tnk__json_put_text(&w, "logprobs", NULL);
  tnk__json_put_text(&w, "finish_reason", chunk == END ? end_of(choice) : NULL);
  tnk__json_end(&w);
  tnk__json_end(&w);
  tnk__gw_event_end(&w, out);
}

static int write_stream(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  for (size_t i = 0; i < answer->n_choices; i++) {
    const tnk__gw_said_t *said = &answer->choices[i].said;

    if (answer->ask->echo)
      put_chunk(answer, out, i, PROMPT, NULL);
    for (size_t k = 0; k < tnk__gw_said_count(said); k++)
      put_chunk(answer, out, i, PIECE, tnk__gw_said_piece(said, k));
    put_chunk(answer, out, i, END, NULL);
  }
  return tnk__gw_put_last(out, answer, TNK__GW_COMPLETION, "text_completion");
}

int tnk__gw_completion_write(const tnk__gw_answer_t *answer, tnk__buf_t *out) {
  return answer->ask->is_stream ? write_stream(answer, out)
                                : write_whole(answer, out);
}

#include <string.h>

#include "lib/wire/data/data_json.h"
#include "lib/wire/format/json_write.h"
#include "lib/wire/format/number_text.h"
#include "lib/wire/message/sample_wire.h"
#include "tnk/error.h"

static void put_stop(tnk__json_writer_t *w,
                     const tnk_sampling_params_t *params) {
  if (params->stop_tokens != NULL) {
    tnk__json_key(w, "stop");
    tnk__json_int32s(w, params->stop_tokens, params->n_stop_tokens);
  } else if (params->stop_texts != NULL) {
    tnk__json_key(w, "stop");
    tnk__json_begin_array(w);
    for (size_t i = 0; i < params->n_stop_texts; i++)
      tnk__json_text(w, params->stop_texts[i]);
    tnk__json_end(w);
  }
}

static double double_or(double value, double absent) {
  return value != TNK_ABSENT ? value : absent;
}

/* The last three are always sent; absent ones are sent as their defaults. */
static void put_params(tnk__json_writer_t *w,
                       const tnk_sampling_params_t *params) {
  tnk__json_key(w, "sampling_params");
  tnk__json_begin_object(w);
  if (params->max_tokens != TNK_ABSENT)
    tnk__json_put_int(w, "max_tokens", params->max_tokens);
  if (params->seed != TNK_ABSENT)
    tnk__json_put_int(w, "seed", params->seed);
  put_stop(w, params);
  /* With a decimal point, as the official client sends these two. */
  tnk__json_put_double(w, "temperature", double_or(params->temperature, 1.0));
  tnk__json_put_int(w, "top_k",
                    params->top_k != TNK_ABSENT ? params->top_k : -1);
  tnk__json_put_double(w, "top_p", double_or(params->top_p, 1.0));
  tnk__json_end(w);
}

static void put_target(tnk__json_writer_t *w,
                       const tnk__sample_request_t *request,
                       tnk__sample_seq_t *seq) {
  size_t id_at;

  if (request->base_model != NULL)
    tnk__json_put_text(w, "base_model", request->base_model);
  if (request->model_path != NULL)
    tnk__json_put_text(w, "model_path", request->model_path);
  if (request->sampling_session_id == NULL)
    return;
  tnk__json_key(w, "sampling_session_id");
  id_at = w->buf->len;
  tnk__json_text(w, request->sampling_session_id);
  seq->id_n = (uint32_t)(w->buf->len - id_at);
  tnk__json_key(w, "seq_id");
  /* A sample that is submitted again gets another number. Its prompt may be
   * long and is not written again. */
  seq->at = w->buf->len;
  tnk__json_int(w, request->seq_id);
  seq->n = (uint32_t)(w->buf->len - seq->at);
}

/* Options that version 0.25 of the official client does not send are omitted if
 * they have their defaults. Some servers reject unknown members. */
static void put_options(tnk__json_writer_t *w,
                        const tnk__sample_request_t *request,
                        const tnk_sample_options_t *options) {
  tnk__json_put_bool(w, "prompt_logprobs", options->prompt_logprobs == TNK_YES);
  tnk__json_put_int(w, "topk_prompt_logprobs", options->topk_prompt_logprobs);
  if (options->topk_sample_logprobs > 0)
    tnk__json_put_int(w, "topk_sample_logprobs", options->topk_sample_logprobs);
  if (options->target_prompt_logprobs != NULL) {
    tnk__json_key(w, "target_prompt_logprobs");
    tnk__data_json_tensor(w, options->target_prompt_logprobs);
  }
  if (options->prompt_alt_tokens_k > 0)
    tnk__json_put_int(w, "prompt_alt_tokens_k", options->prompt_alt_tokens_k);
  if (options->prompt_logprobs_last_n > 0)
    tnk__json_put_int(w, "prompt_logprobs_last_n",
                      options->prompt_logprobs_last_n);
  if (request->record_stability_info)
    tnk__json_put_bool(w, "record_stability_info",
                       request->record_stability_info);
}

int tnk__sample_write(tnk__buf_t *out, const tnk__sample_request_t *request,
                      tnk__sample_seq_t *seq) {
  static const tnk_sampling_params_t no_params = TNK_SAMPLING_PARAMS_INIT;
  static const tnk_sample_options_t no_options;
  const tnk_sample_options_t *options =
      request->options == NULL ? &no_options : request->options;
  tnk__sample_seq_t ignored;
  tnk__json_writer_t w;

  if (seq == NULL)
    seq = &ignored;
  *seq = (tnk__sample_seq_t){0};
  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_int(&w, "num_samples",
                    options->n_samples == 0 ? 1 : options->n_samples);
  tnk__json_key(&w, "prompt");
  tnk__data_json_input(&w, request->prompt);
  put_params(&w, request->params == NULL ? &no_params : request->params);
  put_target(&w, request, seq);
  put_options(&w, request, options);
  tnk__json_put_text(&w, "type", "sample");
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

/* Replace `n_old` bytes. */
static int replace(tnk__buf_t *out, size_t at, size_t n_old, const void *text,
                   size_t n) {
  const size_t behind = at + n_old;

  if (out->err != TNK_OK ||
      (n > n_old && tnk__buf_reserve(out, n - n_old) == NULL))
    return out->err;
  memmove(out->data + at + n, out->data + behind, out->len - behind);
  memcpy(out->data + at, text, n);
  out->len = out->len - n_old + n;
  return TNK_OK;
}

int tnk__sample_renumber(tnk__buf_t *out, tnk__sample_seq_t *seq,
                         int64_t seq_id) {
  char text[TNK__NUMBER_TEXT];
  const size_t n = tnk__int_text(text, seq_id);
  int err;

  if (seq->n == 0)
    return out->err;
  err = replace(out, seq->at, seq->n, text, n);
  if (err == TNK_OK)
    seq->n = (uint32_t)n;
  return err;
}

/* The text between the id and the number. */
enum { GAP = sizeof(",\"seq_id\":") - 1 };

int tnk__sample_retarget(tnk__buf_t *out, tnk__sample_seq_t *seq,
                         const char *sampling_session_id) {
  const size_t id_at = seq->at - GAP - seq->id_n;
  tnk__json_writer_t w;
  tnk__buf_t id;
  int err;

  if (seq->n == 0)
    return out->err;
  tnk__buf_init(&id, out->alloc, out->max);
  tnk__json_writer_init(&w, &id);
  tnk__json_text(&w, sampling_session_id);
  err = tnk__json_finish(&w);
  if (err == TNK_OK)
    err = replace(out, id_at, seq->id_n, id.data, id.len);
  if (err == TNK_OK) {
    seq->at = seq->at - seq->id_n + id.len;
    seq->id_n = (uint32_t)id.len;
  }
  tnk__buf_deinit(&id);
  return err;
}

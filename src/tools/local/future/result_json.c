#include "tools/local/future/result_json.h"

#include <string.h>

#include "lib/wire/format/json_write.h"
#include "tinker.pb-c.h"
#include "tnk/error.h"

/* Results are stored as protobuf, so that they are written only once; this file
 * parses our own encoding. */

static int32_t int32_at(const ProtobufCBinaryData *bytes, size_t i) {
  int32_t value;

  memcpy(&value, bytes->data + i * sizeof(value), sizeof(value));
  return value;
}

static float float_at(const ProtobufCBinaryData *bytes, size_t i) {
  float value;

  memcpy(&value, bytes->data + i * sizeof(value), sizeof(value));
  return value;
}

static int64_t int64_at(const ProtobufCBinaryData *bytes, size_t i) {
  int64_t value;

  memcpy(&value, bytes->data + i * sizeof(value), sizeof(value));
  return value;
}

/* NaN becomes null. */
static void put_floats(tnk__json_writer_t *w,
                       const ProtobufCBinaryData *bytes) {
  tnk__json_begin_array(w);
  for (size_t i = 0; i < bytes->len / sizeof(float); i++)
    tnk__json_float(w, float_at(bytes, i));
  tnk__json_end(w);
}

static void put_topk(tnk__json_writer_t *w,
                     const TinkerPublic__TopkLogprobs *t) {
  tnk__json_begin_array(w);
  for (size_t row = 0; row < t->length; row++) {
    size_t at = row * t->k;

    /* The first cell shows whether a row was scored (sample_write.c). */
    if (float_at(&t->logprobs, at) <= -99999.0f) {
      tnk__json_null(w);
      continue;
    }
    tnk__json_begin_array(w);
    for (size_t i = at; i < at + t->k; i++) {
      tnk__json_begin_array(w);
      tnk__json_int(w, int32_at(&t->token_ids, i));
      tnk__json_float(w, float_at(&t->logprobs, i));
      tnk__json_end(w);
    }
    tnk__json_end(w);
  }
  tnk__json_end(w);
}

static void put_sequence(tnk__json_writer_t *w,
                         const TinkerPublic__SampledSequence *s) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "stop_reason",
                     s->stop_reason ==
                             TINKER_PUBLIC__STOP_REASON__STOP_REASON_LENGTH
                         ? "length"
                         : "stop");
  tnk__json_key(w, "tokens");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < s->tokens.len / sizeof(int32_t); i++)
    tnk__json_int(w, int32_at(&s->tokens, i));
  tnk__json_end(w);
  tnk__json_key(w, "logprobs");
  if (s->has_logprobs_case != 0)
    put_floats(w, &s->logprobs);
  else
    tnk__json_null(w);
  if (s->has_topk_sampled_logprobs_case != 0) {
    tnk__json_key(w, "topk_sampled_logprobs");
    put_topk(w, s->topk_sampled_logprobs);
  }
  tnk__json_end(w);
}

static void put_sample(tnk__json_writer_t *w,
                       const TinkerPublic__SampleResponse *r) {
  tnk__json_begin_object(w);
  tnk__json_key(w, "sequences");
  tnk__json_begin_array(w);
  for (size_t i = 0; i < r->n_sequences; i++)
    put_sequence(w, r->sequences[i]);
  tnk__json_end(w);
  tnk__json_key(w, "prompt_logprobs");
  if (r->has_prompt_logprobs_case != 0)
    put_floats(w, &r->prompt_logprobs);
  else
    tnk__json_null(w);
  tnk__json_key(w, "topk_prompt_logprobs");
  if (r->has_topk_prompt_logprobs_case != 0)
    put_topk(w, r->topk_prompt_logprobs);
  else
    tnk__json_null(w);
  tnk__json_put_text(w, "type", "sample");
  tnk__json_end(w);
}

/* Example i of a record's field. */
static void put_tensor(tnk__json_writer_t *w,
                       const TinkerPublic__BatchedTensor *t, size_t i) {
  size_t from = (size_t)int64_at(&t->offsets, i);
  size_t to = (size_t)int64_at(&t->offsets, i + 1);
  ProtobufCBinaryData part = {to - from, t->data.data + from};
  int64_t n = (int64_t)(part.len / sizeof(float));
  int64_t trailing = t->n_trailing_shape > 0 ? t->trailing_shape[0] : 1;

  tnk__json_begin_object(w);
  tnk__json_key(w, "data");
  put_floats(w, &part);
  tnk__json_put_text(w, "dtype", "float32");
  tnk__json_key(w, "shape");
  tnk__json_begin_array(w);
  tnk__json_int(w, n / trailing);
  if (t->n_trailing_shape > 0)
    tnk__json_int(w, trailing);
  tnk__json_end(w);
  tnk__json_end(w);
}

static void put_outputs(tnk__json_writer_t *w,
                        const TinkerPublic__ForwardBackwardOutput *o) {
  tnk__json_begin_array(w);
  for (size_t r = 0; r < o->n_loss_fn_outputs; r++) {
    const TinkerPublic__ArrayRecord *record = o->loss_fn_outputs[r];

    for (size_t i = 0; i < (size_t)record->num_datums; i++) {
      tnk__json_begin_object(w);
      for (size_t f = 0; f < record->n_fields; f++) {
        tnk__json_key(w, record->fields[f]->key);
        put_tensor(w, record->fields[f]->value, i);
      }
      tnk__json_end(w);
    }
  }
  tnk__json_end(w);
}

static void put_pass(tnk__json_writer_t *w,
                     const TinkerPublic__ForwardBackwardOutput *o) {
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "loss_fn_output_type", o->loss_fn_output_type);
  tnk__json_key(w, "loss_fn_outputs");
  put_outputs(w, o);
  tnk__json_key(w, "metrics");
  tnk__json_begin_object(w);
  for (size_t i = 0; i < o->n_metrics; i++)
    tnk__json_put_double(w, o->metrics[i]->key, o->metrics[i]->value);
  tnk__json_end(w);
  tnk__json_end(w);
}

void local_result_json(tnk__buf_t *out, int is_sample, const uint8_t *proto,
                       size_t n) {
  tnk__json_writer_t w;
  TinkerPublic__SampleResponse *sample = NULL;
  TinkerPublic__ForwardBackwardOutput *pass = NULL;

  tnk__json_writer_init(&w, out);
  if (is_sample)
    sample = tinker_public__sample_response__unpack(NULL, n, proto);
  else
    pass = tinker_public__forward_backward_output__unpack(NULL, n, proto);
  if (sample != NULL)
    put_sample(&w, sample);
  else if (pass != NULL)
    put_pass(&w, pass);
  else
    out->err = TNK_ENOMEM;
  tinker_public__sample_response__free_unpacked(sample, NULL);
  tinker_public__forward_backward_output__free_unpacked(pass, NULL);
  if (out->err == TNK_OK && tnk__json_finish(&w) != TNK_OK)
    out->err = TNK_EINTERNAL;
}

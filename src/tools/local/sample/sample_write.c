#include <string.h>

#include "lib/wire/format/pb.h"
#include "tools/local/sample/sampler.h"

/* Writes a finished draw as a SampleResponse. */

/* Cells in a row of best tokens that was not scored. */
static const float MASKED = -99999.0f;

typedef struct {
  const local_sample_t *sample;
  uint32_t i;
} sequence_t;

typedef struct {
  const int32_t *tokens;
  const float *logprobs;
  size_t k;
  size_t length;
} topk_t;

/* A row that was not scored holds token -1. On the wire its cells are (0,
 * -99999), which no scored cell can have. */
static void topk(tnk__pb_t *pb, const void *message) {
  const topk_t *t = message;
  size_t n = t->k * t->length;
  uint8_t *ids = tnk__pb_open(pb, 1, n * sizeof(int32_t));
  uint8_t *values = tnk__pb_open(pb, 2, n * sizeof(float));

  for (size_t i = 0; i < n && ids != NULL; i++) {
    int32_t id = t->tokens[i] < 0 ? 0 : t->tokens[i];
    float value = t->tokens[i] < 0 ? MASKED : t->logprobs[i];

    memcpy(ids + i * sizeof(id), &id, sizeof(id));
    memcpy(values + i * sizeof(value), &value, sizeof(value));
  }
  tnk__pb_varint(pb, 3, t->k);
  tnk__pb_varint(pb, 4, t->length);
}

static void sequence(tnk__pb_t *pb, const void *message) {
  const sequence_t *s = message;
  tnk__lm_sample_t out = tnk__lm_draw_sample(s->sample->draw, s->i);
  topk_t best = {out.topk_tokens, out.topk_logprobs,
                 s->sample->options.topk_sample, out.n_tokens};

  if (out.reason == TNK__LM_LENGTH)
    tnk__pb_varint(pb, 1, 1);
  tnk__pb_bytes(pb, 2, out.tokens, out.n_tokens * sizeof(int32_t));
  if (out.n_tokens > 0)
    tnk__pb_bytes(pb, 3, out.logprobs, out.n_tokens * sizeof(float));
  if (best.k > 0 && best.tokens != NULL && best.length > 0)
    tnk__pb_message(pb, 4, topk, &best);
}

/* ---- Tensors about the prompt ---- */

typedef struct {
  const void *data;
  size_t n_bytes;
  unsigned dtype;
  int64_t shape[2];
  const local_sample_t *sparse; /* its layout, or NULL */
} tensor_t;

/* The requested cells of a sparse request, in the order of its lists. */
static void csr(tnk__pb_t *pb, const void *message) {
  const tensor_t *t = message;
  const local_sample_t *s = t->sparse;
  uint8_t *at = tnk__pb_open(pb, 1, s->n_asked * sizeof(float));

  for (int64_t r = 0; r < t->shape[0] && at != NULL; r++)
    for (int64_t i = s->crow[r]; i < s->crow[r + 1]; i++) {
      memcpy(at, (const float *)t->data + r * t->shape[1] + s->col[i],
             sizeof(float));
      at += sizeof(float);
    }
  tnk__pb_bytes(pb, 2, s->crow, ((size_t)t->shape[0] + 1) * sizeof(int64_t));
  tnk__pb_bytes(pb, 3, s->col, s->n_asked * sizeof(int64_t));
}

static void tensor(tnk__pb_t *pb, const void *message) {
  const tensor_t *t = message;

  if (t->sparse != NULL)
    tnk__pb_message(pb, 2, csr, t);
  else
    tnk__pb_bytes(pb, 1, t->data, t->n_bytes);
  tnk__pb_varint(pb, 3, t->dtype);
  tnk__pb_packed(pb, 4, t->shape, 2);
}

static tensor_t about_prompt(const local_sample_t *sample, const void *data,
                             size_t k, unsigned dtype) {
  size_t rows = sample->options.n_prompt - 1;

  return (tensor_t){.data = data,
                    .n_bytes = rows * k * 4,
                    .dtype = dtype,
                    .shape = {(int64_t)rows, (int64_t)k}};
}

static void alternatives(tnk__pb_t *pb, const void *message) {
  const local_sample_t *sample = message;
  tnk__lm_prompt_t prompt = tnk__lm_draw_prompt(sample->draw);
  size_t k = sample->options.n_alternatives;
  tensor_t tokens = about_prompt(sample, prompt.alt_tokens, k, 3);
  tensor_t logprobs = about_prompt(sample, prompt.alt_logprobs, k, 1);

  tnk__pb_message(pb, 1, tensor, &tokens);
  tnk__pb_message(pb, 2, tensor, &logprobs);
}

static void response(tnk__pb_t *pb, const local_sample_t *sample) {
  const tnk__lm_draw_options_t *o = &sample->options;
  tnk__lm_prompt_t prompt = tnk__lm_draw_prompt(sample->draw);

  for (uint32_t i = 0; i < o->n_samples; i++) {
    sequence_t s = {sample, i};

    tnk__pb_message(pb, 1, sequence, &s);
  }
  if (prompt.logprobs != NULL && o->prompt_logprobs)
    tnk__pb_bytes(pb, 2, prompt.logprobs, o->n_prompt * sizeof(float));
  if (prompt.topk_tokens != NULL && o->topk_prompt > 0) {
    topk_t best = {prompt.topk_tokens, prompt.topk_logprobs, o->topk_prompt,
                   o->n_prompt};

    tnk__pb_message(pb, 3, topk, &best);
  }
  if (prompt.ask_logprobs != NULL && o->n_ask > 0) {
    tensor_t asked = about_prompt(sample, prompt.ask_logprobs, o->n_ask, 1);

    asked.sparse = sample->crow != NULL ? sample : NULL;
    tnk__pb_message(pb, 5, tensor, &asked);
  }
  if (prompt.alt_tokens != NULL && o->n_alternatives > 0)
    tnk__pb_message(pb, 6, alternatives, sample);
}

void local_sample_write(tnk__buf_t *out, const local_sample_t *sample) {
  tnk__pb_t pb = {0};

  response(&pb, sample);
  pb = tnk__pb_whole(tnk__buf_reserve(out, pb.n));
  if (pb.at == NULL)
    return;
  response(&pb, sample);
  out->len += pb.n;
}

/* Bodies of training and sampling requests: few tokens, with small ids that
 * every vocabulary has. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/zstd.h"
#include "lib/wire/message/fwdbwd.h"
#include "tnk/training.h"
#include "tools/conform/state.h"

enum { MAX_BODY = 1 << 20 };

static const int32_t tokens[] = {104, 101, 108, 108};
static const int64_t targets[] = {101, 108, 108, 111};

const tnk_datum_t conform_datum = {.input = {.tokens = tokens, .n_tokens = 4},
                                   .targets = targets};

/* Remove the sequence number 1 from a request; it stands for 0. It follows the
 * model id, which is a string with a tag and its length. */
static void drop_number(tnk__buf_t *out, size_t n_model) {
  const size_t at = (n_model >= 128 ? 3 : 2) + n_model;

  memmove(out->data + at, out->data + at + 2, out->len - at - 2);
  out->len -= 2;
}

static int write_pass(tnk__buf_t *out, const char *model, int64_t seq,
                      const conform_pass_t *pass) {
  const tnk_loss_setting_t setting = {.name = pass->setting, .number = 0.5};
  tnk__fwdbwd_writer_t writer;
  const tnk__fwdbwd_t request = {
      .model_id = model,
      .seq_id = seq > 0 ? seq : 1,
      .data = pass->data != NULL ? pass->data : &conform_datum,
      .n_data = pass->data != NULL ? pass->n_data : 1,
      .loss_fn = pass->loss != NULL ? pass->loss : "cross_entropy",
      .settings = &setting,
      .n_settings = pass->setting != NULL,
      .forward_only = pass->forward_only};
  uint8_t *to;

  if (tnk__fwdbwd_begin(&writer, &request) != TNK_OK)
    return -1;
  to = tnk__buf_reserve(out, writer.len);
  if (to == NULL)
    return -1;
  out->len += tnk__fwdbwd_piece(&writer, 0, to, writer.len);
  if (seq <= 0)
    drop_number(out, strlen(model));
  return 0;
}

int conform_zstd(tnk__buf_t *out, const void *data, size_t n) {
  tnk__zstd_t zstd = {0};
  int err = tnk__zstd_begin(&zstd, tnk__allocator_default(), n);

  if (err == TNK_OK)
    err = tnk__zstd_feed(&zstd, out, data, n, 1);
  tnk__zstd_deinit(&zstd);
  return err;
}

conform_call_t *conform_pass(conform_t *c, const char *model, int64_t seq,
                             const conform_pass_t *pass) {
  static const conform_pass_t plain = {0};
  conform_ask_t ask = {.method = "POST",
                       .path = "forward_backward",
                       .type = "application/x-protobuf"};
  conform_call_t *call;
  tnk__buf_t body;
  tnk__buf_t packed;
  int err;

  if (pass == NULL)
    pass = &plain;
  tnk__buf_init(&body, tnk__allocator_default(), MAX_BODY);
  tnk__buf_init(&packed, tnk__allocator_default(), MAX_BODY);
  err = write_pass(&body, model, seq, pass);
  if (err == 0 && pass->is_zstd)
    err = conform_zstd(&packed, body.data, body.len);
  ask.body = pass->is_zstd ? packed.data : body.data;
  ask.n_body = pass->is_zstd ? packed.len : body.len;
  ask.encoding = pass->is_zstd ? "zstd" : NULL;
  ask.idempotency_key = pass->idempotency_key;
  if (err != 0) /* An empty body is refused; the rule sees that. */
    ask.n_body = 0;
  call = conform_ask(c, &ask);
  tnk__buf_deinit(&body);
  tnk__buf_deinit(&packed);
  return call;
}

json_t *conform_step_body(const char *model, int64_t seq) {
  return json_pack("{s:s,s:I,s:s,s:{s:f,s:f,s:f,s:f,s:f,s:f}}", "model_id",
                   model, "seq_id", (json_int_t)seq, "type", "optim_step",
                   "adam_params", "learning_rate", 0.0001, "beta1", 0.9,
                   "beta2", 0.95, "eps", 1e-12, "weight_decay", 0.0,
                   "grad_clip_norm", 0.0);
}

conform_call_t *conform_step(conform_t *c, const char *model, int64_t seq) {
  return conform_post(c, "optim_step", conform_step_body(model, seq));
}

conform_call_t *conform_load(conform_t *c, const char *model, int64_t seq,
                             const char *path) {
  return conform_post(c, "load_weights",
                      json_pack("{s:s,s:I,s:s,s:b,s:s}", "model_id", model,
                                "seq_id", (json_int_t)seq, "path", path,
                                "optimizer", 0, "type", "load_weights"));
}

/* Merge the members of `from` into `to`. */
static void merge(json_t *to, json_t *from) {
  if (from != NULL)
    json_object_update(to, from);
  json_decref(from);
}

conform_call_t *conform_sample(conform_t *c, const char *sampler, int64_t seq,
                               json_t *params, json_t *more) {
  json_t *p = json_pack("{s:i,s:f,s:i,s:f}", "max_tokens", 4, "temperature",
                        1.0, "top_k", -1, "top_p", 1.0);
  json_t *body;

  merge(p, params);
  body =
      json_pack("{s:i,s:{s:[{s:[i,i,i],s:s}]},s:o,s:b,s:i,s:s}", "num_samples",
                1, "prompt", "chunks", "tokens", 104, 101, 108, "type",
                "encoded_text", "sampling_params", p, "prompt_logprobs", 0,
                "topk_prompt_logprobs", 0, "type", "sample");
  if (sampler != NULL) {
    json_object_set_new(body, "sampling_session_id", json_string(sampler));
    json_object_set_new(body, "seq_id", json_integer(seq));
  }
  merge(body, more);
  return conform_post(c, "asample", body);
}

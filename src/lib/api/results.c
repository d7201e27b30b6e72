/* SPDX-License-Identifier: MIT */
/* The results of promises, by type. */
#include <stdio.h>

#include "lib/base/misuse.h"
#include "lib/wire/message/results.h"
#include "lib/files/hub/tokenizer.h"
#include "lib/io/loop/promise.h"
#include "lib/client/sample/sampling.h"
#include "lib/client/service/service.h"
#include "lib/client/train/training.h"
#include "tnk/push.h"
#include "lib/files/weights/weights.h"
#include "tnk/hosted.h"
#include "tnk/rest.h"
#include "tnk/train.h"

#define VALUE(promise, KIND)                                                   \
  (TNK__HANDLE(promise, PROMISE)                                               \
       ? tnk__promise_value(promise, TNK__RESULT_##KIND)                       \
       : NULL)

tnk_training_t *tnk_promise_training(const tnk_promise_t *promise) {
  tnk_training_t *training = VALUE(promise, TRAINING);

  return training != NULL && !training->closing ? training : NULL;
}

tnk_sampling_t *tnk_promise_sampling(const tnk_promise_t *promise) {
  tnk_sampling_t *sampling = VALUE(promise, SAMPLING);

  return sampling != NULL && !sampling->closing ? sampling : NULL;
}

/* Wait for a client and release the promise. Returns NULL with an error
 * message. */
static void *take(tnk_promise_t *promise, tnk__result_kind_t type, char *why,
                  size_t why_size) {
  const int err = tnk_wait(promise);
  const char *text = "";
  void *value = NULL;

  if (err == TNK_OK && type == TNK__RESULT_TRAINING)
    value = tnk_promise_training(promise);
  else if (err == TNK_OK)
    value = tnk_promise_sampling(promise);
  /* If the wait itself fails, the promise has no error. */
  if (err != TNK_OK)
    text = tnk_promise_status(promise) == err ? tnk_promise_text(promise)
                                              : tnk_strerror(err);
  else if (value == NULL)
    text = "the promise holds no client of this kind, or a closed one";
  if (why != NULL && why_size > 0)
    snprintf(why, why_size, "%s", text);
  tnk_promise_unref(promise);
  return value;
}

tnk_training_t *tnk_take_training(tnk_promise_t *promise, char *why,
                                  size_t why_size) {
  return take(promise, TNK__RESULT_TRAINING, why, why_size);
}

tnk_sampling_t *tnk_take_sampling(tnk_promise_t *promise, char *why,
                                  size_t why_size) {
  return take(promise, TNK__RESULT_SAMPLING, why, why_size);
}

const tnk_pass_t *tnk_promise_pass(const tnk_promise_t *promise) {
  return VALUE(promise, PASS);
}

const tnk_eval_t *tnk_promise_eval(const tnk_promise_t *promise) {
  return VALUE(promise, EVAL);
}

const tnk_samples_t *tnk_promise_samples(const tnk_promise_t *promise) {
  return VALUE(promise, SAMPLES);
}

const float *tnk_promise_logprobs(const tnk_promise_t *promise, size_t *n) {
  const tnk_samples_t *samples = VALUE(promise, LOGPROBS);

  if (n != NULL)
    *n = samples != NULL ? samples->n_prompt_logprobs : 0;
  return samples != NULL ? samples->prompt_logprobs : NULL;
}

const tnk_metrics_t *tnk_promise_metrics(const tnk_promise_t *promise) {
  return VALUE(promise, METRICS);
}

const char *tnk_promise_path(const tnk_promise_t *promise) {
  const char *path = VALUE(promise, PATH);
  const tnk_saved_t *saved = VALUE(promise, SAVED);

  return saved != NULL ? saved->path : path;
}

const tnk_saved_t *tnk_promise_saved(const tnk_promise_t *promise) {
  return VALUE(promise, SAVED);
}

const tnk_loss_t *tnk_promise_loss(const tnk_promise_t *promise) {
  return VALUE(promise, LOSS);
}

const tnk_capabilities_t *
tnk_promise_capabilities(const tnk_promise_t *promise) {
  return tnk__query_value(VALUE(promise, CAPABILITIES));
}

const tnk_page_t *tnk_promise_page(const tnk_promise_t *promise) {
  return VALUE(promise, PAGE);
}

const tnk_pushed_t *tnk_promise_pushed(const tnk_promise_t *promise) {
  return VALUE(promise, PUSHED);
}

const tnk_hosted_t *tnk_promise_hosted(const tnk_promise_t *promise) {
  return VALUE(promise, HOSTED);
}

const tnk_weights_t *tnk_promise_weights(const tnk_promise_t *promise) {
  return tnk__weights_value(VALUE(promise, WEIGHTS));
}

void *tnk_promise_tokenizer(const tnk_promise_t *promise) {
  return tnk__tokenizer_value(VALUE(promise, TOKENIZER));
}

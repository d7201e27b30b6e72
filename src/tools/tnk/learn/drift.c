/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/drift.h"

#include "lib/wire/data/data.h"

/* Add an example. The tensors of the command's own data are f64 or f32. */
static void add(learn_drift_t *drift, const tnk_datum_t *datum,
                const tnk_tensor_t *trained) {
  const tnk_loss_input_t sampled =
      tnk__datum_input_at(datum, tnk__datum_find(datum, "logprobs"));

  if (trained == NULL || trained->dtype != TNK_F32 || trained->crow != NULL ||
      trained->n_values != sampled.tensor.n_values)
    return;
  for (size_t t = 0; t < trained->n_values; t++) {
    const double q = tnk__tensor_float(&sampled.tensor, t);
    const double r = (double)((const float *)trained->data)[t] - q;

    if (!(q < 0))
      continue;
    drift->n++;
    drift->k1 -= r;
    drift->k2 += r * r / 2;
    drift->surprise -= q;
  }
}

void learn_drift_add(learn_drift_t *drift, const tnk_promise_t *pass,
                     const tnk_datum_t *data, size_t n) {
  const tnk_pass_t *result = tnk_promise_pass(pass);

  for (size_t i = 0; i < tnk_pass_count(result) && i < n; i++)
    add(drift, &data[i], tnk_pass_tensor(result, i, "logprobs"));
}

/* The cookbook has these metrics under longer names. */
size_t learn_drift_means(tnk_number_t *out, const learn_drift_t *drift) {
  if (!(drift->n > 0))
    return 0;
  out[0] = (tnk_number_t){"kl", drift->k1 / drift->n};
  out[1] = (tnk_number_t){"kl_k2", drift->k2 / drift->n};
  out[2] = (tnk_number_t){"entropy", drift->surprise / drift->n};
  return LEARN_N_DRIFT;
}

size_t learn_drift(tnk_number_t *out, const tnk_promise_t *pass,
                   const tnk_datum_t *data, size_t n) {
  learn_drift_t drift = {0};

  learn_drift_add(&drift, pass, data, n);
  return learn_drift_means(out, &drift);
}

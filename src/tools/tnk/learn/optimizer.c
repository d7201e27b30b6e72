/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/optimizer.h"

const char *const learn_optimizers[] = {
    [TNK_OPTIMIZER_ADAMW] = "adamw",
    [TNK_OPTIMIZER_DIMUON] = "dimuon",
    NULL,
};

const char *learn_optimizer_check(const learn_optimizer_t *args) {
  if (args->beta1 >= 1)
    return "--beta1 must be below 1";
  if (args->beta2 >= 1)
    return "--beta2 must be below 1";
  if (args->family == TNK_OPTIMIZER_DIMUON &&
      (args->beta2 >= 0 || args->eps > 0 || args->weight_decay >= 0))
    return "--beta2, --eps and --weight-decay need --optimizer adamw";
  return NULL;
}

/* The number for the library. */
static double given(double x) {
  return x < 0 ? TNK_ABSENT : x;
}

tnk_optim_t learn_optim(const learn_optimizer_t *args, double rate) {
  tnk_optim_t optim = TNK_OPTIM_INIT;

  optim.optimizer = (tnk_optimizer_t)args->family;
  optim.learning_rate = rate;
  optim.beta1 = given(args->beta1);
  optim.beta2 = given(args->beta2);
  optim.eps = given(args->eps);
  optim.weight_decay = given(args->weight_decay);
  optim.grad_clip_norm = given(args->clip_norm);
  return optim;
}

json_t *learn_optimizer_add(json_t *options, const learn_optimizer_t *args) {
  const struct {
    const char *name;
    double value;
  } numbers[] = {
      {"beta1", args->beta1},
      {"beta2", args->beta2},
      {"eps", args->eps},
      {"weight-decay", args->weight_decay},
      {"clip-norm", args->clip_norm},
  };
  int err = options == NULL;

  if (!err)
    err = json_object_set_new(options, "optimizer",
                              args->family != TNK_OPTIMIZER_ADAMW
                                  ? json_string(learn_optimizers[args->family])
                                  : json_null());
  for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers) && !err; i++)
    err = json_object_set_new(
        options, numbers[i].name,
        numbers[i].value >= 0 ? json_real(numbers[i].value) : json_null());
  if (!err)
    return options;
  json_decref(options);
  return NULL;
}

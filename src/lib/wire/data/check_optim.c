#include <math.h>
#include <string.h>

#include "lib/wire/data/check.h"
#include "lib/wire/data/check_where.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

int tnk__check_optimizer_json(const char *json, char *text, size_t size) {
  tnk__where_t where = {.text = text, .size = size};
  const char *type;
  json_t *object;
  int err = tnk__check_text("the optimizer's JSON", json, text, size);

  if (err != TNK_OK)
    return err;
  err = tnk__json_parse_object(&object, json, strlen(json));
  if (err == TNK_ENOMEM)
    return err;
  if (err != TNK_OK)
    return tnk__refuse(&where, "the optimizer's JSON is not an object");
  type = tnk__json_str(object, "type");
  if (type == NULL || type[0] == '\0')
    err =
        tnk__refuse(&where, "the optimizer's JSON has no text under \"type\"");
  json_decref(object);
  return err;
}

/* Check a parameter that must be in [low, high). */
static int check_range(const tnk__where_t *where, const char *name,
                       double value, double low, double high) {
  if (value == TNK_ABSENT)
    return TNK_OK;
  if (!isfinite(value))
    return tnk__refuse(where, "%s is not a finite number", name);
  /* Only the bounds 0 and 1 appear in the sentence. HUGE_VAL means no bound,
   * because every finite value is below it. */
  if (value < low)
    return tnk__refuse(where, "%s is below %d", name, (int)low);
  if (value >= high)
    return tnk__refuse(where, "%s is not below %d", name, (int)high);
  return TNK_OK;
}

static int check_no(const tnk__where_t *where, const char *name, double value) {
  return value == TNK_ABSENT
             ? TNK_OK
             : tnk__refuse(where, "%s is not for this optimizer", name);
}

static int check_adam(const tnk__where_t *where, const tnk_optim_t *optim) {
  int err =
      check_range(where, "learning_rate", optim->learning_rate, 0, HUGE_VAL);

  if (err == TNK_OK)
    err = check_range(where, "beta1", optim->beta1, 0, 1);
  if (err == TNK_OK)
    err = check_range(where, "beta2", optim->beta2, 0, 1);
  if (err == TNK_OK)
    err = check_range(where, "eps", optim->eps, 0, HUGE_VAL);
  if (err == TNK_OK && optim->eps == 0)
    err = tnk__refuse(where, "eps is not above 0");
  if (err == TNK_OK)
    err = check_range(where, "weight_decay", optim->weight_decay, 0, HUGE_VAL);
  if (err == TNK_OK)
    err = check_range(where, "grad_clip_norm", optim->grad_clip_norm, 0,
                      HUGE_VAL);
  return err;
}

static int check_no_adam(const tnk__where_t *where, const tnk_optim_t *optim) {
  int err = check_no(where, "beta2", optim->beta2);

  if (err == TNK_OK)
    err = check_no(where, "eps", optim->eps);
  if (err == TNK_OK)
    err = check_no(where, "weight_decay", optim->weight_decay);
  return err;
}

static int check_dimuon(const tnk__where_t *where, const tnk_optim_t *optim) {
  int err = TNK_OK;

  if (optim->learning_rate == TNK_ABSENT)
    return tnk__refuse(where, "learning_rate is missing");
  err = check_range(where, "learning_rate", optim->learning_rate, 0, HUGE_VAL);
  if (err == TNK_OK)
    err = check_range(where, "beta1", optim->beta1, 0, 1);
  if (err == TNK_OK && !isfinite(optim->grad_clip_norm))
    err = tnk__refuse(where, "grad_clip_norm is not a finite number");
  if (err == TNK_OK)
    err = check_no_adam(where, optim);
  return err;
}

static int check_raw(const tnk__where_t *where, const tnk_optim_t *optim) {
  int err = tnk__check_optimizer_json(optim->json, where->text, where->size);

  if (err == TNK_OK)
    err = check_no(where, "learning_rate", optim->learning_rate);
  if (err == TNK_OK)
    err = check_no(where, "beta1", optim->beta1);
  if (err == TNK_OK)
    err = check_no(where, "grad_clip_norm", optim->grad_clip_norm);
  if (err == TNK_OK)
    err = check_no_adam(where, optim);
  return err;
}

int tnk__check_optim(const tnk_optim_t *optim, char *text, size_t size) {
  tnk__where_t where = {.text = text, .size = size};

  if (optim->optimizer == TNK_OPTIMIZER_RAW)
    return check_raw(&where, optim);
  if (optim->json != NULL)
    return tnk__refuse(&where, "json is given, and optimizer is not "
                               "TNK_OPTIMIZER_RAW");
  if (optim->optimizer == TNK_OPTIMIZER_ADAMW)
    return check_adam(&where, optim);
  if (optim->optimizer == TNK_OPTIMIZER_DIMUON)
    return check_dimuon(&where, optim);
  return tnk__refuse(&where, "the optimizer is of no known kind");
}

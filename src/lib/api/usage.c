#include "tnk/usage.h"

#include "lib/api/service.h"
#include "lib/base/options.h"
#include "lib/client/sample/sampling.h"
#include "lib/client/train/training.h"

static int fill(tnk_totals_t *out, const tnk_totals_t *own) {
  return out != NULL ? TNK__FILL(tnk_totals_t, out, own) : TNK_EINVAL;
}

/* ---- Of a service ---- */

static int fill_service(tnk_totals_t *out, const tnk_service_t *service,
                        const tnk__totals_t *totals) {
  const tnk__purse_t *purse = &service->session.limits.purse;
  tnk_totals_t own;

  tnk__totals_show(&own, totals);
  own.n_reserved_tokens = purse->taken_tokens;
  own.reserved_usd = (double)purse->taken_cost / (double)TNK__USD;
  return fill(out, &own);
}

int tnk_service_totals(tnk_totals_t *out, const tnk_service_t *service) {
  static const tnk_totals_t none = TNK_TOTALS_INIT;
  tnk__totals_t totals;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return fill(out, &none);
  totals = tnk__session_used(&service->session);
  return fill_service(out, service, &totals);
}

int tnk_service_run_totals(tnk_totals_t *out, const tnk_service_t *service) {
  static const tnk_totals_t none = TNK_TOTALS_INIT;
  tnk__totals_t totals;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return fill(out, &none);
  totals = tnk__session_run_used(&service->session);
  return fill_service(out, service, &totals);
}

/* ---- Of a client ---- */

static int fill_client(tnk_totals_t *out, const tnk__totals_t *totals) {
  static const tnk__totals_t none = {0};
  tnk_totals_t own;

  tnk__totals_show(&own, totals != NULL ? totals : &none);
  return fill(out, &own);
}

int tnk_training_totals(tnk_totals_t *out, const tnk_training_t *training) {
  const int is_open = TNK__HANDLE(training, TRAINING) && !training->closing;

  return fill_client(out, is_open ? &training->totals : NULL);
}

int tnk_sampling_totals(tnk_totals_t *out, const tnk_sampling_t *sampling) {
  const int is_open = TNK__HANDLE(sampling, SAMPLING) && !sampling->closing;

  return fill_client(out, is_open ? &sampling->totals : NULL);
}

#include "tnk/usage.h"

#include "api/service.h"
#include "base/options.h"
#include "task/sample/sampling.h"
#include "task/train/training.h"

static double usd(uint64_t parts) {
  return (double)parts / (double)TNK__USD;
}

static tnk_totals_t show(const tnk__totals_t *totals) {
  tnk_totals_t out = TNK_TOTALS_INIT;

  out.n_prompt_tokens = totals->prompt_tokens;
  out.n_cached_tokens = totals->cached_tokens;
  out.n_sampled_tokens = totals->sampled_tokens;
  out.n_trained_tokens = totals->trained_tokens;
  out.n_doubtful_tokens = totals->doubtful_tokens;
  out.n_unpriced_tokens = totals->unpriced_tokens;
  out.cost_usd = usd(totals->cost);
  out.doubtful_usd = usd(totals->doubtful_cost);
  out.n_requests = totals->n_requests;
  out.n_bytes_sent = totals->n_bytes_sent;
  out.n_bytes_received = totals->n_bytes_received;
  return out;
}

static int fill(tnk_totals_t *out, const tnk_totals_t *own) {
  return out != NULL ? TNK__FILL(tnk_totals_t, out, own) : TNK_EINVAL;
}

/* ---- Of a service ---- */

/* The requests of a service are counted where they leave. */
static tnk__totals_t used(const tnk_service_t *service) {
  const tnk__counters_t *counters = &service->root.context.counters;
  tnk__totals_t totals = service->session.purse.used;

  totals.n_requests = counters->n_requests;
  totals.n_bytes_sent = counters->n_bytes_sent;
  totals.n_bytes_received = counters->n_bytes_received;
  return totals;
}

static int fill_service(tnk_totals_t *out, const tnk_service_t *service,
                        const tnk__totals_t *totals) {
  tnk_totals_t own = show(totals);

  own.n_reserved_tokens = service->session.purse.taken_tokens;
  own.reserved_usd = usd(service->session.purse.taken_cost);
  return fill(out, &own);
}

int tnk_service_totals(tnk_totals_t *out, const tnk_service_t *service) {
  static const tnk_totals_t none = TNK_TOTALS_INIT;
  tnk__totals_t totals;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return fill(out, &none);
  totals = used(service);
  return fill_service(out, service, &totals);
}

int tnk_service_run_totals(tnk_totals_t *out, const tnk_service_t *service) {
  static const tnk_totals_t none = TNK_TOTALS_INIT;
  tnk__totals_t totals;
  tnk__totals_t own;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return fill(out, &none);
  totals = service->session.purse.before;
  own = used(service);
  tnk__totals_add(&totals, &own);
  return fill_service(out, service, &totals);
}

/* ---- Of a client ---- */

static int fill_client(tnk_totals_t *out, const tnk__totals_t *totals) {
  static const tnk__totals_t none = {0};
  const tnk_totals_t own = show(totals != NULL ? totals : &none);

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

/* SPDX-License-Identifier: MIT */
#include "tnk/usage.h"

#include "lib/api/service.h"
#include "lib/base/options.h"
#include "lib/client/sample/sampling.h"
#include "lib/client/train/training.h"

/* ---- Statistics ---- */

/*
 * The counts of a service.
 */

static void count(tnk_stats_t *out, const tnk_service_t *service) {
  const tnk__counters_t *counters = &service->root.context.counters;
  const uint64_t *retries = service->session.endpoint.n_retries_by;

  out->n_requests = counters->n_requests;
  out->n_retries = counters->n_retries;
  out->n_late_events = counters->n_late_events;
  out->n_double_settles = counters->n_double_settles;
  out->n_bytes_sent = counters->n_bytes_sent;
  out->n_bytes_received = counters->n_bytes_received;
  out->n_pending = (uint32_t)service->root.context.n_pending;
  out->n_connections = (uint32_t)service->root.http.n_connections;
  out->max_connections = (uint32_t)service->root.http.max_connections;
  out->n_polls = (uint32_t)tnk__http_n_polls(&service->root.http);
  out->n_retries_connect = retries[TNK__RETRY_CONNECT];
  out->n_retries_lost = retries[TNK__RETRY_LOST];
  out->n_retries_timeout = retries[TNK__RETRY_TIMEOUT];
  out->n_retries_rate = retries[TNK__RETRY_RATE];
  out->n_retries_billing = retries[TNK__RETRY_BILLING];
  out->n_retries_server = retries[TNK__RETRY_SERVER];
  out->n_retries_other = retries[TNK__RETRY_OTHER];
  out->n_resubmits = counters->n_resubmits;
  out->n_stalls = counters->n_stalls;
  out->loop_lag_ms = counters->lag_ms;
  out->max_loop_lag_ms = counters->max_lag_ms;
}

int tnk_service_stats(tnk_stats_t *out, const tnk_service_t *service) {
  tnk_stats_t own = TNK_STATS_INIT;

  if (TNK__HANDLE_AT(service, root.magic, SERVICE))
    count(&own, service);
  return out != NULL ? TNK__FILL(tnk_stats_t, out, &own) : TNK_EINVAL;
}

/* ---- Usage ---- */

static int fill(tnk_totals_t *out, const tnk_totals_t *own) {
  return out != NULL ? TNK__FILL(tnk_totals_t, out, own) : TNK_EINVAL;
}

/* ---- Usage: of a service ---- */

static int fill_service(tnk_totals_t *out, const tnk_service_t *service,
                        const tnk__totals_t *totals) {
  const tnk__allowance_t *allowance = &service->session.limits.allowance;
  tnk_totals_t own;

  tnk__totals_show(&own, totals);
  own.n_reserved_tokens = allowance->taken_tokens;
  own.reserved_usd = (double)allowance->taken_cost / (double)TNK__USD;
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

/* ---- Usage: of a client ---- */

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

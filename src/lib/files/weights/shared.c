/* SPDX-License-Identifier: MIT */
/* The shared state of a service's downloads, and its end. */
#include "lib/files/weights/weights.h"

#include "lib/base/alloc.h"
#include "lib/files/weights/job.h"

/* Limit for the removal of exports at the end of the service. */
enum { PATIENCE_MS = 5000 };
enum { MAX_STORES = 256 };

static int open_stores(tnk__weights_t *weights) {
  const tnk_service_options_t *o = &weights->session->config->options;
  tnk__http_options_t options = {0};
  int err;

  if (weights->is_open)
    return TNK_OK;
  options.ca_file = o->ca_file;
  options.proxies = &weights->session->config->proxies;
  options.connect_timeout_ms = o->connect_timeout_ms;
  /* Large files use one connection each, for full speed. */
  options.version = TNK__HTTP_1_1;
  options.max_in_flight[TNK__LANE_CONTROL] = MAX_STORES;
  options.max_in_flight[TNK__LANE_POLL] = 1; /* not used */
  options.max_in_flight[TNK__LANE_TRAIN_POLL] = 1;
  err = tnk__http_open(&weights->http, weights->session->context, &options);
  weights->is_open = err == TNK_OK;
  return err;
}

tnk_promise_t *tnk__weights_download(tnk__weights_t *weights, const char *path,
                                     const char *directory,
                                     const tnk_weights_options_t *options,
                                     const uint8_t *identity) {
  const int err = open_stores(weights);

  if (err != TNK_OK)
    return tnk__promise_rejected(weights->session->context,
                                 tnk__error_static(err));
  return tnk__weights_job_start(weights, path, directory, options, identity);
}

/* ---- The end ---- */

static void on_nothing_left(tnk__deferred_t *deferred) {
  tnk__weights_t *weights =
      tnk__container_of(deferred, tnk__weights_t, nothing_left);

  tnk__timer_stop(&weights->patience);
  weights->closed(weights->session);
}

static void swept(tnk__weights_t *weights) {
  if (weights->closed != NULL && weights->n_late == 0 &&
      tnk__list_empty(&weights->sweeps))
    tnk__defer(weights->session->context, &weights->nothing_left);
}

void tnk__weights_init(tnk__weights_t *weights, tnk__session_t *session) {
  *weights = (tnk__weights_t){.session = session};
  tnk__list_init(&weights->jobs);
  tnk__list_init(&weights->sweeps);
  tnk__deferred_init(&weights->nothing_left, on_nothing_left);
  weights->swept = swept;
}

void tnk__weights_shut(tnk__weights_t *weights) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&weights->jobs)) != NULL)
    tnk__weights_job_fail(tnk__container_of(node, tnk__weights_job_t, link),
                          tnk__error_static(TNK_ECLOSED));
  if (weights->is_open)
    tnk__http_close(&weights->http);
  weights->is_open = 0;
}

static void on_impatient(tnk__timer_t *timer) {
  tnk__weights_t *weights = tnk__container_of(timer, tnk__weights_t, patience);

  tnk__weights_sweeps_stop(weights);
  swept(weights);
}

void tnk__weights_close(tnk__weights_t *weights,
                        void (*closed)(tnk__session_t *session)) {
  weights->closed = closed;
  tnk__timer_start(weights->session->context, &weights->patience, PATIENCE_MS,
                   on_impatient);
  swept(weights);
}

/* SPDX-License-Identifier: MIT */
#include "lib/api/otlp.h"

#include "lib/api/config.h"
#include "lib/base/alloc.h"
#include "lib/base/options.h"
#include "lib/observe/traceparent.h"
#include "lib/otlp/encode.h"
#include "lib/otlp/operations.h"
#include "tnk/error.h"

/* ---- Opening ---- */

static tnk_otlp_t *otlp_of(tnk__root_t *root) {
  return tnk__container_of(root, tnk_otlp_t, root);
}

static void close_left(tnk__root_t *root) {
  tnk_otlp_close(otlp_of(root), NULL, NULL);
}

static void free_rest(tnk__root_t *root) {
  tnk_otlp_t *otlp = otlp_of(root);

  if (otlp->core.context != NULL)
    tnk__otlp_operations_deinit(&otlp->core);
  tnk__otlp_deinit(&otlp->core);
  tnk__proxies_deinit(&otlp->proxies, &root->alloc);
}

static const tnk__root_kind_t kind = {.magic = TNK__MAGIC_OTLP,
                                      .size = sizeof(tnk_otlp_t),
                                      .close = close_left,
                                      .free_rest = free_rest};

/* A proxy of the second target that cannot be used is reported when it is
 * needed. */
static int load_proxies(tnk_otlp_t *otlp, const char **why) {
  const tnk__otlp_target_t *targets = otlp->core.settings.targets;
  const tnk__location_t *at = &targets[!targets[0].is_on].at;
  const tnk__proxy_options_t from = {0};
  const tnk__url_t url = {
      .host = at->host, .port = at->port, .is_tls = at->is_tls, .path = ""};

  return tnk__proxies_load(&otlp->proxies, &otlp->root.alloc, &from, &url, why);
}

static const char *check(const tnk_otlp_options_t *options) {
  tnk__traceparent_t parent;

  if (options->traceparent != NULL &&
      !tnk__traceparent_read(&parent, options->traceparent))
    return "traceparent is not 00-<32 digits>-<16 digits>-<2 digits>, in "
           "hexadecimal";
  return NULL;
}

static int open_parts(tnk_otlp_t *otlp, uv_loop_t *loop,
                      const tnk_otlp_options_t *options, const char **why) {
  tnk__otlp_settings_t *settings = &otlp->core.settings;
  tnk__http_options_t http = {.proxies = &otlp->proxies};
  int err;

  *why = check(options);
  if (*why != NULL)
    return TNK_EINVAL;
  err = load_proxies(otlp, why);
  if (err != TNK_OK)
    return err;
  http.ca_file = settings->ca_file;
  http.cert_file = settings->cert_file;
  http.key_file = settings->key_file;
  http.load_trust = settings->ca_file != NULL;
  err = tnk__root_start(&otlp->root, loop, options->logger, &http, why);
  if (err == TNK_OK)
    err = tnk__otlp_open(&otlp->core, &otlp->root.context, &otlp->root.http,
                         options);
  else if (err == TNK_ECERT)
    *why = "OTEL_EXPORTER_OTLP_CERTIFICATE cannot be read as certificates";
  else if (err == TNK_EFILE)
    *why = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE or "
           "OTEL_EXPORTER_OTLP_CLIENT_KEY cannot be used";
  return err;
}

/* Returns whether there is something to export, or an error in *err. */
static int is_wanted(tnk_otlp_t *otlp, int *err, char *why) {
  *err = tnk__otlp_settings_read(&otlp->core.settings, &otlp->root.alloc,
                                 tnk__env, why, TNK__MAX_WHY);
  return *err == TNK_OK && tnk__otlp_settings_are_on(&otlp->core.settings);
}

int tnk_otlp_open(tnk_otlp_t **out, uv_loop_t *loop,
                  const tnk_otlp_options_t *options, char *why,
                  size_t why_size) {
  tnk_otlp_options_t own = TNK_OTLP_OPTIONS_INIT;
  char text[TNK__MAX_WHY] = "";
  const char *said = text;
  tnk__root_t *root = NULL;
  int err;

  if (out == NULL)
    return tnk__root_say(why, why_size, TNK_EINVAL, "out is NULL");
  *out = NULL;
  err = TNK__LOAD(tnk_otlp_options_t, &own, options, text, sizeof(text));
  if (err == TNK_OK)
    err = tnk__root_new(&root, &kind, loop, own.allocator, &said);
  if (err == TNK_OK) {
    if (is_wanted(otlp_of(root), &err, text)) {
      err = open_parts(otlp_of(root), loop, &own, &said);
    } else {
      /* Free the memory, as after any failure. */
      tnk__root_finish(root, TNK_ENOMEM, NULL, NULL, 0);
      said = text[0] != '\0' ? text : NULL;
      root = NULL;
    }
  }
  if (root == NULL)
    return tnk__root_say(why, why_size, err, said);
  tnk__root_finish(root, err, said, why, why_size);
  *out = err == TNK_OK ? otlp_of(root) : NULL;
  return err;
}

/* ---- Closing ---- */

static void on_flushed(tnk__otlp_t *core) {
  tnk__root_end_close(&tnk__container_of(core, tnk_otlp_t, core)->root);
}

void tnk_otlp_close(tnk_otlp_t *otlp, tnk_close_cb cb, void *user) {
  if (!TNK__HANDLE_AT(otlp, root.magic, OTLP) ||
      !tnk__root_begin_close(&otlp->root, cb, user))
    return;
  tnk__otlp_close(&otlp->core, on_flushed);
}

int tnk_otlp_stats(tnk_otlp_stats_t *out, const tnk_otlp_t *otlp) {
  tnk_otlp_stats_t stats = TNK_OTLP_STATS_INIT;

  if (out == NULL)
    return TNK_EINVAL;
  if (TNK__HANDLE_AT(otlp, root.magic, OTLP)) {
    stats.n_exported = otlp->core.n_exported;
    stats.n_dropped = otlp->core.n_dropped;
    stats.n_queued = tnk__otlp_n_waiting(&otlp->core);
  }
  return TNK__FILL(tnk_otlp_stats_t, out, &stats);
}

/* ---- Traces ---- */

void tnk_otlp_event(const tnk_event_t *event, void *user) {
  tnk_otlp_t *otlp = user;

  if (event != NULL && TNK__HANDLE_AT(otlp, root.magic, OTLP))
    tnk__otlp_observe(&otlp->core, event);
}

void tnk_otlp_begin(tnk_otlp_span_t *out, tnk_otlp_t *otlp,
                    const char *traceparent) {
  if (out == NULL)
    return;
  *out = (tnk_otlp_span_t){.span_id = 0};
  if (TNK__HANDLE_AT(otlp, root.magic, OTLP))
    tnk__otlp_begin(&otlp->core, out, traceparent);
}

void tnk_otlp_end(tnk_otlp_t *otlp, const tnk_otlp_span_t *span,
                  const tnk_otlp_end_t *end) {
  if (TNK__HANDLE_AT(otlp, root.magic, OTLP) && span != NULL && end != NULL &&
      end->name != NULL)
    tnk__otlp_end(&otlp->core, span, end, NULL, 0);
}

void tnk_otlp_set_parent(tnk_otlp_t *otlp, const tnk_otlp_span_t *span) {
  if (!TNK__HANDLE_AT(otlp, root.magic, OTLP))
    return;
  otlp->core.parent = span != NULL ? *span : (tnk_otlp_span_t){.span_id = 0};
  /* It is a span of this process, whatever its own parent is. */
  otlp->core.parent.is_remote = 0;
}

/* ---- Metrics ---- */

int tnk_otlp_add_source(tnk_otlp_t *otlp, tnk_otlp_source_cb cb, void *user) {
  if (cb == NULL)
    return TNK_EINVAL;
  return TNK__HANDLE_AT(otlp, root.magic, OTLP)
             ? tnk__otlp_add_source(&otlp->core, cb, user)
             : TNK_OK;
}

void tnk_otlp_remove_source(tnk_otlp_t *otlp, tnk_otlp_source_cb cb,
                            void *user) {
  if (TNK__HANDLE_AT(otlp, root.magic, OTLP))
    tnk__otlp_remove_source(&otlp->core, cb, user);
}

void tnk_otlp_put_numbers(tnk_otlp_metrics_t *out,
                          const tnk_otlp_metric_t *metric,
                          const tnk_otlp_number_t *points, size_t n_points) {
  if (out == NULL || metric == NULL || metric->name == NULL ||
      (points == NULL && n_points > 0))
    return;
  tnk__otlp_put_numbers(&out->out,
                        &(tnk__otlp_period_t){out->start_unix_ns, out->unix_ns},
                        metric, points, n_points);
}

void tnk_otlp_put_histograms(tnk_otlp_metrics_t *out,
                             const tnk_otlp_metric_t *metric,
                             const tnk_otlp_histogram_t *points,
                             size_t n_points) {
  if (out == NULL || metric == NULL || metric->name == NULL ||
      (points == NULL && n_points > 0))
    return;
  tnk__otlp_put_histograms(
      &out->out, &(tnk__otlp_period_t){out->start_unix_ns, out->unix_ns},
      metric, points, n_points);
}

/* SPDX-License-Identifier: MIT */
#include "lib/otlp/exporter.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/observe/traceparent.h"
#include "lib/otlp/encode.h"
#include "tnk/error.h"

enum {
  MAX_SPAN = 64 << 10, /* bytes */
  /* Bytes of spans in a request. A single span always fits. */
  MAX_BATCH = 1 << 20,
  MAX_METRICS = 16 << 20,
  N_RESOURCE = 8 /* attributes that do not come from the environment */
};

/* An encoded span in the queue. */
typedef struct {
  tnk__list_t link;
  size_t n;
  uint8_t data[];
} queued_t;

#define QUEUED(node) tnk__container_of(node, queued_t, link)

static tnk__otlp_sender_t *traces_of(tnk__otlp_t *otlp) {
  return &otlp->senders[TNK__OTLP_TRACES];
}

static tnk__otlp_sender_t *metrics_of(tnk__otlp_t *otlp) {
  return &otlp->senders[TNK__OTLP_METRICS];
}

static uint64_t unix_now(const tnk__otlp_t *otlp) {
  return tnk__context_unix_ns(otlp->context,
                              tnk__context_now_ns(otlp->context));
}

/* ---- Traces: requests ---- */

static void on_batch(tnk__timer_t *timer);

/* Move spans to the request. Returns their number, or 0 without memory; they
 * stay queued then. */
static size_t fill_batch(tnk__otlp_t *otlp, tnk__buf_t *body) {
  size_t n = 0, n_bytes = 0;

  TNK__LIST_FOREACH (node, &otlp->queue) {
    if (n == otlp->settings.max_batch ||
        (n > 0 && n_bytes + QUEUED(node)->n > MAX_BATCH))
      break;
    n_bytes += QUEUED(node)->n;
    n++;
  }
  /* The head is short, apart from the resource. */
  if (tnk__buf_reserve(body, otlp->resource.len + 128 + n_bytes) == NULL) {
    tnk__buf_deinit(body);
    return 0;
  }
  tnk__otlp_put_head(body, &otlp->resource, n_bytes);
  for (size_t i = 0; i < n; i++) {
    queued_t *queued = QUEUED(tnk__list_pop(&otlp->queue));

    tnk__buf_append(body, queued->data, queued->n);
    tnk__free(&otlp->context->alloc, queued);
  }
  otlp->n_queued -= n;
  return n;
}

/* Send a batch if the sender is idle. A batch that is not full waits for the
 * delay. */
static void send_traces(tnk__otlp_t *otlp, int is_due) {
  tnk__otlp_sender_t *sender = traces_of(otlp);
  size_t n = 0;

  if (sender->state != TNK__OTLP_IDLE || otlp->n_queued == 0)
    return;
  if (is_due || otlp->is_closing || otlp->n_queued >= otlp->settings.max_batch)
    n = fill_batch(otlp, &sender->body);
  if (n > 0) {
    tnk__timer_stop(&otlp->batch_timer);
    tnk__otlp_sender_start(sender, n);
  } else if (!tnk__timer_is_active(&otlp->batch_timer)) {
    tnk__timer_start_background(otlp->context, &otlp->batch_timer,
                                otlp->settings.batch_delay_ms, on_batch);
  }
}

static void on_batch(tnk__timer_t *timer) {
  send_traces(tnk__container_of(timer, tnk__otlp_t, batch_timer), 1);
}

/* ---- Traces: spans ---- */

static void drop(tnk__otlp_t *otlp, const char *why) {
  otlp->n_dropped++;
  if (otlp->has_warned_full)
    return;
  otlp->has_warned_full = 1;
  tnk__log(&otlp->context->logger, TNK_LOG_WARN, "otlp",
           "traces: spans are dropped: %s; further ones are not logged", why);
}

static void queue_span(tnk__otlp_t *otlp, const tnk__buf_t *encoded) {
  queued_t *queued;

  if (encoded->err != TNK_OK) {
    drop(otlp,
         encoded->err == TNK_ENOMEM ? "out of memory" : "a span is too large");
    return;
  }
  if (otlp->n_queued >= otlp->settings.max_queue) {
    drop(otlp, "the queue is full, because the collector is too slow or "
               "unavailable");
    return;
  }
  queued = tnk__malloc(&otlp->context->alloc, sizeof(*queued) + encoded->len);
  if (queued == NULL) {
    drop(otlp, "out of memory");
    return;
  }
  queued->n = encoded->len;
  memcpy(queued->data, encoded->data, encoded->len);
  tnk__list_append(&otlp->queue, &queued->link);
  otlp->n_queued++;
  /* Requests are made later, and not inside the caller's request. */
  if (otlp->n_queued == 1 || otlp->n_queued >= otlp->settings.max_batch)
    tnk__defer(otlp->context, &otlp->due);
}

void tnk__otlp_end(tnk__otlp_t *otlp, const tnk_otlp_span_t *span,
                   const tnk_otlp_end_t *end, const tnk__buf_t *events,
                   uint32_t n_dropped_events) {
  const tnk__context_t *context = otlp->context;
  const uint64_t end_ns =
      end->end_ns > 0 ? end->end_ns : tnk__context_now_ns(context);
  const tnk__otlp_record_t record = {
      .span = span,
      .end = end,
      .start_unix_ns = tnk__context_unix_ns(context, span->start_ns),
      .end_unix_ns = tnk__context_unix_ns(context, end_ns),
      .events = events,
      .n_dropped_events = n_dropped_events};

  if (span->span_id == 0 || !span->is_sampled || otlp->is_closing)
    return;
  tnk__buf_clear(&otlp->scratch);
  tnk__otlp_put_span(&otlp->scratch, &record);
  queue_span(otlp, &otlp->scratch);
}

/* ---- Traces: the beginning of a span ---- */

static uint64_t new_id(tnk__otlp_t *otlp) {
  uint64_t id;

  do
    id = tnk__context_random(otlp->context);
  while (id == 0);
  return id;
}

/* The sampler for a span without a parent, or for any if parents do not
 * matter. The same trace gets the same decision in each process. */
static int is_sampled(const tnk__otlp_t *otlp, const uint8_t trace_id[16]) {
  uint64_t low = 0;

  if (otlp->settings.sampler != TNK__OTLP_RATIO)
    return otlp->settings.sampler == TNK__OTLP_ALWAYS_ON;
  for (int i = 8; i < 16; i++)
    low = low << 8 | trace_id[i];
  return (double)(low >> 1) <
         otlp->settings.ratio * (double)(UINT64_C(1) << 63);
}

void tnk__otlp_begin_below(tnk__otlp_t *otlp, tnk_otlp_span_t *out,
                           const tnk_otlp_span_t *parent) {
  *out = (tnk_otlp_span_t){.span_id = new_id(otlp),
                           .start_ns = tnk__context_now_ns(otlp->context)};
  if (parent != NULL && parent->span_id != 0) {
    memcpy(out->trace_id, parent->trace_id, sizeof(out->trace_id));
    out->parent_id = parent->span_id;
    out->is_remote = parent->is_remote;
  } else {
    const uint64_t high = new_id(otlp), low = new_id(otlp);

    memcpy(out->trace_id, &high, sizeof(high));
    memcpy(out->trace_id + sizeof(high), &low, sizeof(low));
  }
  out->is_sampled = out->parent_id != 0 && otlp->settings.follows_parent
                        ? parent->is_sampled
                        : is_sampled(otlp, out->trace_id);
}

static uint8_t nibble(char c) {
  return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Read a header into a span of another process. Returns 0 if it is invalid. */
static int read_parent(tnk_otlp_span_t *out, const char *traceparent) {
  tnk__traceparent_t parent;

  *out = (tnk_otlp_span_t){.is_remote = 1};
  if (traceparent == NULL || !tnk__traceparent_read(&parent, traceparent))
    return 0;
  for (size_t i = 0; i < sizeof(out->trace_id); i++)
    out->trace_id[i] = (uint8_t)(nibble(parent.trace_id[2 * i]) << 4 |
                                 nibble(parent.trace_id[2 * i + 1]));
  for (int i = 0; i < 16; i++)
    out->span_id = out->span_id << 4 | nibble(parent.span_id[i]);
  out->is_sampled = nibble(parent.flags[1]) & 1;
  return 1;
}

void tnk__otlp_begin(tnk__otlp_t *otlp, tnk_otlp_span_t *out,
                     const char *traceparent) {
  tnk_otlp_span_t parent;

  if (!otlp->settings.targets[TNK__OTLP_TRACES].is_on) {
    *out = (tnk_otlp_span_t){.span_id = 0};
    return;
  }
  tnk__otlp_begin_below(otlp, out,
                        read_parent(&parent, traceparent) ? &parent : NULL);
}

/* ---- Metrics ---- */

static void call_source(tnk__otlp_t *otlp, const tnk__otlp_source_t *source,
                        tnk_otlp_metrics_t *out) {
  out->start_unix_ns = otlp->start_unix_ns;
  out->unix_ns = unix_now(otlp);
  tnk__callout_begin();
  source->cb(out, source->user);
  tnk__callout_end();
}

/* The exporter's own metrics. */
static void put_own(const tnk__otlp_t *otlp, tnk_otlp_metrics_t *out) {
  const tnk__otlp_period_t period = {otlp->start_unix_ns, unix_now(otlp)};
  const struct {
    tnk_otlp_metric_t metric;
    uint64_t value;
  } rows[] = {{{.name = "tnk.otlp.exported_spans",
                .unit = "{span}",
                .description = "Spans that the collector has accepted.",
                .is_counter = 1},
               otlp->n_exported},
              {{.name = "tnk.otlp.dropped_spans",
                .unit = "{span}",
                .description = "Spans that were dropped.",
                .is_counter = 1},
               otlp->n_dropped}};

  if (!otlp->settings.targets[TNK__OTLP_TRACES].is_on)
    return;
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
    tnk__otlp_put_numbers(&out->out, &period, &rows[i].metric,
                          &(tnk_otlp_number_t){.value = (int64_t)rows[i].value},
                          1);
}

/* Metrics are cumulative, so an interval without memory or with a slow
 * collector loses nothing. */
static void send_metrics(tnk__otlp_t *otlp) {
  tnk__otlp_sender_t *sender = metrics_of(otlp);
  tnk_otlp_metrics_t all;

  if (sender->state != TNK__OTLP_IDLE)
    return;
  tnk__buf_init(&all.out, &otlp->context->alloc, MAX_METRICS);
  tnk__buf_append(&all.out, otlp->last.out.data, otlp->last.out.len);
  put_own(otlp, &all);
  TNK__LIST_FOREACH (node, &otlp->sources) {
    call_source(otlp, tnk__container_of(node, tnk__otlp_source_t, link), &all);
  }
  tnk__otlp_put_head(&sender->body, &otlp->resource, all.out.len);
  tnk__buf_append(&sender->body, all.out.data, all.out.len);
  if (all.out.err == TNK_OK && sender->body.err == TNK_OK && all.out.len > 0) {
    tnk__buf_clear(&otlp->last.out);
    tnk__otlp_sender_start(sender, 0);
  } else {
    tnk__buf_deinit(&sender->body);
    tnk__buf_clear(&sender->body);
  }
  tnk__buf_deinit(&all.out);
}

static void on_interval(tnk__timer_t *timer) {
  tnk__otlp_t *otlp = tnk__container_of(timer, tnk__otlp_t, metrics_timer);

  tnk__timer_start_background(otlp->context, timer,
                              otlp->settings.metrics_interval_ms, on_interval);
  send_metrics(otlp);
}

int tnk__otlp_add_source(tnk__otlp_t *otlp, tnk_otlp_source_cb cb, void *user) {
  tnk__otlp_source_t *source;

  if (otlp->is_closing)
    return TNK_ECLOSED;
  source = tnk__calloc(&otlp->context->alloc, 1, sizeof(*source));
  if (source == NULL)
    return TNK_ENOMEM;
  source->cb = cb;
  source->user = user;
  tnk__list_append(&otlp->sources, &source->link);
  return TNK_OK;
}

void tnk__otlp_remove_source(tnk__otlp_t *otlp, tnk_otlp_source_cb cb,
                             void *user) {
  TNK__LIST_FOREACH_SAFE (node, next, &otlp->sources) {
    tnk__otlp_source_t *source =
        tnk__container_of(node, tnk__otlp_source_t, link);

    if (source->cb != cb || source->user != user)
      continue;
    if (metrics_of(otlp)->target->is_on)
      call_source(otlp, source, &otlp->last);
    /* Without memory its last values are lost, and nothing else. */
    if (otlp->last.out.err != TNK_OK)
      tnk__buf_clear(&otlp->last.out);
    tnk__list_remove(node);
    tnk__free(&otlp->context->alloc, source);
  }
}

/* ---- Closing ---- */

static size_t drop_queue(tnk__otlp_t *otlp) {
  const size_t n = otlp->n_queued;
  tnk__list_t *node;

  while ((node = tnk__list_pop(&otlp->queue)) != NULL)
    tnk__free(&otlp->context->alloc, QUEUED(node));
  otlp->n_queued = 0;
  return n;
}

static void end_flush(tnk__otlp_t *otlp) {
  void (*flushed)(tnk__otlp_t * self) = otlp->flushed;

  tnk__timer_stop(&otlp->flush_timer);
  tnk__timer_stop(&otlp->batch_timer);
  tnk__defer_cancel(&otlp->due);
  otlp->flushed = NULL;
  if (flushed != NULL)
    flushed(otlp);
}

static void on_flush_late(tnk__timer_t *timer) {
  tnk__otlp_t *otlp = tnk__container_of(timer, tnk__otlp_t, flush_timer);
  size_t n = drop_queue(otlp);

  for (int i = 0; i < TNK__OTLP_SIGNALS; i++)
    n += tnk__otlp_sender_cancel(&otlp->senders[i]);
  otlp->n_dropped += n;
  tnk__log(&otlp->context->logger, TNK_LOG_WARN, "otlp",
           "the collector did not take everything within %llu ms: %zu spans "
           "are lost",
           (unsigned long long)otlp->settings.batch_patience_ms, n);
  end_flush(otlp);
}

/* A request can wait for its next attempt, or for a pause that the collector
 * has asked for. */
static int is_flushed(const tnk__otlp_t *otlp) {
  for (int i = 0; i < TNK__OTLP_SIGNALS; i++)
    if (otlp->senders[i].state == TNK__OTLP_SENDING ||
        otlp->senders[i].body.len > 0)
      return 0;
  return otlp->n_queued == 0 && otlp->has_last_metrics;
}

static void on_due(tnk__deferred_t *call) {
  tnk__otlp_t *otlp = tnk__container_of(call, tnk__otlp_t, due);

  send_traces(otlp, 0);
  if (!otlp->is_closing)
    return;
  if (!otlp->has_last_metrics && metrics_of(otlp)->state == TNK__OTLP_IDLE) {
    otlp->has_last_metrics = 1;
    send_metrics(otlp);
  }
  if (is_flushed(otlp))
    end_flush(otlp);
}

void tnk__otlp_sent(tnk__otlp_sender_t *sender, size_t n_good, size_t n_bad) {
  tnk__otlp_t *otlp = sender->owner;

  otlp->n_exported += n_good;
  otlp->n_dropped += n_bad;
  if (n_good > 0)
    otlp->has_warned_full = 0;
  tnk__defer(otlp->context, &otlp->due);
}

void tnk__otlp_close(tnk__otlp_t *otlp, void (*flushed)(tnk__otlp_t *self)) {
  otlp->is_closing = 1;
  otlp->flushed = flushed;
  otlp->has_last_metrics = !metrics_of(otlp)->target->is_on;
  tnk__timer_stop(&otlp->batch_timer);
  tnk__timer_stop(&otlp->metrics_timer);
  tnk__timer_start(otlp->context, &otlp->flush_timer,
                   otlp->settings.batch_patience_ms, on_flush_late);
  tnk__defer(otlp->context, &otlp->due);
}

uint64_t tnk__otlp_n_waiting(const tnk__otlp_t *otlp) {
  return otlp->n_queued + otlp->senders[TNK__OTLP_TRACES].n_items;
}

/* ---- Opening ---- */

/* The attributes of this process. Later ones with the same key are dropped, and
 * the order is that of precedence. */
static void put_resource(tnk__otlp_t *otlp, const tnk_otlp_options_t *options) {
  const tnk__otlp_settings_t *settings = &otlp->settings;
  tnk_otlp_attribute_t all[N_RESOURCE + 256];
  char instance[33];
  size_t n = 0, n_kept = 0;
  int pid = (int)uv_os_getpid();

  (void)snprintf(instance, sizeof(instance), "%016llx%016llx",
                 (unsigned long long)new_id(otlp),
                 (unsigned long long)new_id(otlp));
  if (settings->service_name != NULL)
    all[n++] = (tnk_otlp_attribute_t){.key = "service.name",
                                      .text = settings->service_name};
  for (size_t i = 0; i < settings->n_resource; i++)
    all[n++] = settings->resource[i];
  all[n++] = (tnk_otlp_attribute_t){
      .key = "service.name",
      .text = options->service_name != NULL ? options->service_name : "tnk"};
  all[n++] = (tnk_otlp_attribute_t){.key = "service.version",
                                    .text = options->service_version};
  all[n++] =
      (tnk_otlp_attribute_t){.key = "service.instance.id", .text = instance};
  all[n++] = (tnk_otlp_attribute_t){
      .key = "process.pid", .type = TNK_OTLP_INTEGER, .integer = pid};
  all[n++] = (tnk_otlp_attribute_t){.key = "telemetry.sdk.name", .text = "tnk"};
  all[n++] =
      (tnk_otlp_attribute_t){.key = "telemetry.sdk.language", .text = "c"};
  all[n++] = (tnk_otlp_attribute_t){.key = "telemetry.sdk.version",
                                    .text = TNK_VERSION_STRING};
  for (size_t i = 0; i < n; i++) {
    size_t k = 0;

    while (k < n_kept && strcmp(all[k].key, all[i].key) != 0)
      k++;
    if (k == n_kept)
      all[n_kept++] = all[i];
  }
  tnk__otlp_put_resource(&otlp->resource, all, n_kept);
}

int tnk__otlp_open(tnk__otlp_t *otlp, tnk__context_t *context,
                   tnk__http_t *http, const tnk_otlp_options_t *options) {
  const tnk__otlp_settings_t *settings = &otlp->settings;

  otlp->context = context;
  otlp->http = http;
  tnk__list_init(&otlp->queue);
  tnk__list_init(&otlp->sources);
  tnk__deferred_init(&otlp->due, on_due);
  tnk__buf_init(&otlp->resource, &context->alloc, SIZE_MAX);
  tnk__buf_init(&otlp->scratch, &context->alloc, MAX_SPAN);
  tnk__buf_init(&otlp->last.out, &context->alloc, MAX_METRICS);
  tnk__otlp_sender_init(traces_of(otlp), otlp, TNK__OTLP_TRACES,
                        settings->batch_patience_ms);
  tnk__otlp_sender_init(metrics_of(otlp), otlp, TNK__OTLP_METRICS,
                        settings->metrics_patience_ms);
  otlp->start_unix_ns = unix_now(otlp);
  (void)read_parent(&otlp->of_option, options->traceparent);
  put_resource(otlp, options);
  if (otlp->resource.err != TNK_OK)
    return TNK_ENOMEM;
  if (metrics_of(otlp)->target->is_on)
    tnk__timer_start_background(context, &otlp->metrics_timer,
                                settings->metrics_interval_ms, on_interval);
  return TNK_OK;
}

void tnk__otlp_deinit(tnk__otlp_t *otlp) {
  if (otlp->context != NULL) {
    tnk__list_t *node;

    (void)drop_queue(otlp);
    while ((node = tnk__list_pop(&otlp->sources)) != NULL)
      tnk__free(&otlp->context->alloc,
                tnk__container_of(node, tnk__otlp_source_t, link));
    for (int i = 0; i < TNK__OTLP_SIGNALS; i++)
      tnk__otlp_sender_deinit(&otlp->senders[i]);
    tnk__buf_deinit(&otlp->resource);
    tnk__buf_deinit(&otlp->scratch);
    tnk__buf_deinit(&otlp->last.out);
  }
  tnk__otlp_settings_deinit(&otlp->settings);
}

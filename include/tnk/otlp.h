/* SPDX-License-Identifier: MIT */
#ifndef TNK_OTLP_H
#define TNK_OTLP_H

#include "tnk/observe.h"
#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Export of traces and metrics to a collector of OpenTelemetry, by OTLP over
 * HTTP with protobuf. An exporter runs on the caller's loop.
 *
 *     tnk_otlp_t *otlp;
 *     if (tnk_otlp_open(&otlp, &loop, NULL, why, sizeof(why)) != TNK_OK)
 *       return fail(why);
 *     options.observer = tnk_otlp_event;
 *     options.observer_user = otlp;
 *     ...
 *     tnk_otlp_close(otlp, on_closed, NULL);  (after the service has closed)
 *
 * The environment configures it. Nothing is exported unless one of these
 * variables is set: OTEL_EXPORTER_OTLP_ENDPOINT, such as
 * http://127.0.0.1:4318, or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or
 * OTEL_EXPORTER_OTLP_METRICS_ENDPOINT, which are used without appending
 * /v1/traces or /v1/metrics. The exporter is then NULL, and every function of
 * this header accepts NULL.
 *
 * These variables are read too, with the meaning and the defaults of the
 * OpenTelemetry specification:
 *   OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER ("otlp" or
 *   "none"), OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES;
 *   OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION ("gzip" or "none") and
 *   _PROTOCOL (only "http/protobuf"), each also with TRACES_ or METRICS_ before
 *   its last word; OTEL_EXPORTER_OTLP_CERTIFICATE, _CLIENT_CERTIFICATE and
 *   _CLIENT_KEY; OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE (only
 *   "cumulative");
 *   OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG; OTEL_BSP_SCHEDULE_DELAY,
 *   OTEL_BSP_EXPORT_TIMEOUT, OTEL_BSP_MAX_QUEUE_SIZE,
 *   OTEL_BSP_MAX_EXPORT_BATCH_SIZE, OTEL_METRIC_EXPORT_INTERVAL and
 *   OTEL_METRIC_EXPORT_TIMEOUT.
 *
 * An export never delays the caller. Ended spans are queued, up to
 * OTEL_BSP_MAX_QUEUE_SIZE. Further spans are dropped and counted. A batch is
 * sent again after 429, 502, 503, 504 and lost connections, until
 * OTEL_BSP_EXPORT_TIMEOUT has passed since its first attempt; then its spans
 * are dropped. The logger gets one warning for each outage.
 *
 * The headers of OTEL_EXPORTER_OTLP_HEADERS are never logged and never part of
 * an error.
 */

/** An exporter on one loop. */
typedef struct tnk_otlp tnk_otlp_t;

/** Options of an exporter. 0 or NULL selects the default. */
typedef struct {
  size_t size; /**< Set by TNK_OTLP_OPTIONS_INIT. */
  /** Name of the service in all exported data. OTEL_SERVICE_NAME and
   * OTEL_RESOURCE_ATTRIBUTES take precedence. NULL means "tnk". */
  const char *service_name;
  const char *service_version; /**< NULL means none. */
  /** Header traceparent of W3C Trace Context: the parent of operations that
   * have no other parent. NULL means that each operation begins a trace. */
  const char *traceparent;
  const tnk_allocator_t *allocator; /**< NULL means malloc(). Copied. */
  const tnk_logger_t *logger;       /**< NULL means no log. Copied. */
} tnk_otlp_options_t;

#define TNK_OTLP_OPTIONS_INIT TNK_SIZED(tnk_otlp_options_t)

/**
 * Open an exporter that the environment configures.
 *
 * @param[out] out  The exporter. The caller closes it. NULL on failure, and
 *                  with TNK_OK if the environment asks for no export.
 * @param loop      Must outlive the exporter. After a failure it may have to
 *                  run once more before it can be closed.
 * @param options   NULL for defaults. Copied.
 * @param why       On failure, receives one sentence, which names the variable;
 *                  may be NULL.
 * @param why_size  Size of @p why in bytes; a longer sentence is truncated.
 *
 * @return TNK_OK, or TNK_EINVAL (an argument or a variable is invalid),
 *         TNK_ENOTSUP (an option that this library does not know), TNK_ECERT
 *         (OTEL_EXPORTER_OTLP_CERTIFICATE cannot be read), TNK_EFILE (the
 *         client certificate or its key cannot be used), TNK_ESYSTEM,
 *         TNK_ENOMEM.
 * Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_otlp_open(tnk_otlp_t **out, uv_loop_t *loop,
                          const tnk_otlp_options_t *options, char *why,
                          size_t why_size);

/**
 * Close an exporter. It first exports what is queued, for at most
 * OTEL_BSP_EXPORT_TIMEOUT. Operations in progress are not exported. After the
 * callback the handle is invalid. Close it after the service that it observes,
 * because the service reports until it has closed.
 *
 * @param otlp  NULL does nothing and does not call @p cb.
 * @param cb    May be NULL.
 * @param user  Passed to @p cb.
 * Never fails. Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_otlp_close(tnk_otlp_t *otlp, tnk_close_cb cb, void *user);

/** Counters of an exporter. */
typedef struct {
  size_t size;         /**< Set by TNK_OTLP_STATS_INIT. */
  uint64_t n_exported; /**< Spans that the collector has accepted. */
  /** Spans that were dropped: the queue was full, the collector rejected them
   * or was unavailable, or memory was exhausted. */
  uint64_t n_dropped;
  uint64_t n_queued; /**< Spans that wait or are being sent. */
} tnk_otlp_stats_t;

#define TNK_OTLP_STATS_INIT TNK_SIZED(tnk_otlp_stats_t)

/**
 * Read the counters of an exporter.
 *
 * @param[out] out  Initialize it with TNK_OTLP_STATS_INIT. Members that this
 *                  library does not know are set to 0.
 * @param otlp      NULL sets all counters to 0.
 *
 * @return TNK_OK, or TNK_EINVAL if `size` is not a size of tnk_otlp_stats_t.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_otlp_stats(tnk_otlp_stats_t *out, const tnk_otlp_t *otlp);

/**
 * Export each operation of a service as a span. This function is a
 * tnk_observe_cb. An exporter can observe one service or one hub, because each
 * numbers its operations separately.
 *
 * The span has the name of the operation and an event for each phase. A failed
 * operation has status ERROR, and `error.type` is the name of its code. A span
 * contains no prompt, no body and no credential.
 *
 * @param otlp  The exporter; NULL does nothing.
 * Thread: loop thread. Since: 0.1
 */
TNK_API void tnk_otlp_event(const tnk_event_t *event, void *otlp);

/*
 * Spans of the program itself.
 */

/** A span that has begun. A zeroed one is not exported. Since: 0.1 */
typedef struct {
  uint8_t trace_id[16];
  uint64_t span_id;   /**< 0: not exported, and no parent of other spans. */
  uint64_t parent_id; /**< 0: the span begins its trace. */
  uint64_t start_ns;  /**< Start, in nanoseconds of the clock of uv_hrtime(). */
  int is_remote;      /**< The parent is a span of another process. */
  int is_sampled;     /**< 0: it has ids, but is not exported. */
} tnk_otlp_span_t;

/** The type of an attribute. */
typedef enum {
  TNK_OTLP_TEXT = 0,
  TNK_OTLP_INTEGER = 1,
  TNK_OTLP_NUMBER = 2,
  TNK_OTLP_BOOL = 3, /**< `integer` is 0 or not. */
  TNK_OTLP_TEXTS = 4 /**< An array of strings. */
} tnk_otlp_type_t;

/** An attribute of a span or of a metric. Since: 0.1 */
typedef struct {
  const char *key; /**< NULL omits the attribute. */
  tnk_otlp_type_t type;
  const char *text; /**< NULL omits an attribute of type TNK_OTLP_TEXT. */
  const char *const *texts; /**< [n_texts] strings. */
  size_t n_texts;
  int64_t integer;
  double number;
} tnk_otlp_attribute_t;

/** The side of a request that a span describes. */
typedef enum {
  TNK_OTLP_INTERNAL = 1,
  TNK_OTLP_SERVER = 2,
  TNK_OTLP_CLIENT = 3
} tnk_otlp_kind_t;

/** The end of a span. Since: 0.1 */
typedef struct {
  const char *name; /**< Required. */
  tnk_otlp_kind_t kind;
  int is_error;    /**< The status of the span is ERROR. */
  uint64_t end_ns; /**< Clock of uv_hrtime(). 0 means now. */
  const tnk_otlp_attribute_t *attributes; /**< [n_attributes] */
  size_t n_attributes;
} tnk_otlp_end_t;

/**
 * Begin a span. The sampler of OTEL_TRACES_SAMPLER decides whether it is
 * exported.
 *
 * @param[out] out     The span. The caller may drop it without ending it.
 * @param otlp         NULL sets all members of @p out to 0.
 * @param traceparent  Header traceparent of the request that the span
 *                     describes. NULL and an invalid header begin a trace.
 * Never fails. Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_otlp_begin(tnk_otlp_span_t *out, tnk_otlp_t *otlp,
                            const char *traceparent);

/**
 * End a span and queue it. A span that is not sampled does nothing.
 *
 * @param span  The span; end it once. @param end  Copied, with its strings.
 * Never fails: without memory the span is dropped and counted.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_otlp_end(tnk_otlp_t *otlp, const tnk_otlp_span_t *span,
                          const tnk_otlp_end_t *end);

/**
 * Set the parent of the operations that begin next (see tnk_otlp_event()). Set
 * it before a call of this library, and reset it after the call.
 *
 * @param otlp  NULL does nothing.
 * @param span  Copied. NULL and a zeroed span reset it.
 * Never fails. Thread: loop thread. Since: 0.1
 */
TNK_API void tnk_otlp_set_parent(tnk_otlp_t *otlp, const tnk_otlp_span_t *span);

/*
 * Metrics. A source writes the values of its metrics when it is called, each
 * OTEL_METRIC_EXPORT_INTERVAL.
 */

/** Receives the metrics of a source. */
typedef struct tnk_otlp_metrics tnk_otlp_metrics_t;

/**
 * Called when metrics are exported. It must not call this library, except for
 * tnk_otlp_put_numbers() and tnk_otlp_put_histograms().
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_otlp_source_cb)(tnk_otlp_metrics_t *out, void *user);

/** A metric. Since: 0.1 */
typedef struct {
  const char *name; /**< Required. */
  const char *unit; /**< UCUM, such as "s" or "{token}"; NULL means none. */
  const char *description; /**< NULL means none. */
  /** A counter, which never falls. 0 means a gauge. Ignored for histograms. */
  int is_counter;
} tnk_otlp_metric_t;

/** A value of a metric. Since: 0.1 */
typedef struct {
  const tnk_otlp_attribute_t *attributes; /**< [n_attributes] */
  size_t n_attributes;
  int64_t value;
} tnk_otlp_number_t;

/** A histogram of a metric, with all values since the exporter was opened.
 * Since: 0.1 */
typedef struct {
  const tnk_otlp_attribute_t *attributes; /**< [n_attributes] */
  size_t n_attributes;
  const double *bounds; /**< [n_bounds] rising; each belongs to its bucket. */
  size_t n_bounds;
  const uint64_t *counts; /**< [n_bounds + 1] values in each bucket. */
  double sum;             /**< Of all values. */
} tnk_otlp_histogram_t;

/**
 * Add a source of metrics.
 *
 * @param otlp  NULL does nothing.
 * @param cb    Called each interval, until the source is removed.
 * @param user  Passed to @p cb.
 * @return TNK_OK; TNK_EINVAL (@p cb is NULL); TNK_ECLOSED; TNK_ENOMEM.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_otlp_add_source(tnk_otlp_t *otlp, tnk_otlp_source_cb cb,
                                void *user);

/**
 * Remove a source. It is called once more inside this function, so that its
 * last values are exported. Remove every source before the exporter is closed.
 *
 * @param otlp  NULL does nothing.
 * @param cb    The function, with the same @p user.
 * @param user  An unknown source does nothing.
 * Never fails. Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_otlp_remove_source(tnk_otlp_t *otlp, tnk_otlp_source_cb cb,
                                    void *user);

/**
 * Write a metric of integers. For a tnk_otlp_source_cb.
 *
 * @param out     The first argument of the tnk_otlp_source_cb.
 * @param metric  Copied. @param points  [n_points] Copied.
 * Never fails: without memory the metrics of this interval are omitted.
 * Thread: loop thread. Since: 0.1
 */
TNK_API void tnk_otlp_put_numbers(tnk_otlp_metrics_t *out,
                                  const tnk_otlp_metric_t *metric,
                                  const tnk_otlp_number_t *points,
                                  size_t n_points);

/** Write a metric of histograms, as tnk_otlp_put_numbers() does. Thread: loop
 * thread. Since: 0.1 */
TNK_API void tnk_otlp_put_histograms(tnk_otlp_metrics_t *out,
                                     const tnk_otlp_metric_t *metric,
                                     const tnk_otlp_histogram_t *points,
                                     size_t n_points);

#ifdef __cplusplus
}
#endif

#endif

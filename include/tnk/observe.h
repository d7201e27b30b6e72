/* SPDX-License-Identifier: MIT */
#ifndef TNK_OBSERVE_H
#define TNK_OBSERVE_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Observers show each step of an operation and how long it takes.
 *
 *     static void on_event(const tnk_event_t *event, void *user) {
 *       if (event->phase == TNK_PHASE_FAILED)
 *         fprintf(user, "%s: %s\n", event->name, tnk_err_name(event->code));
 *     }
 *
 *     options.observer = on_event;
 *     options.observer_user = stderr;
 *
 * The library sends none of this data anywhere. Without an observer, each step
 * costs one comparison.
 *
 * A ledger's operations report only their start and their end. The requests
 * that they make to the service are separate operations. A hub has its own
 * observer and numbers its operations separately. Downloads for a single call,
 * and downloads of weights, report their requests. Files of models, tokenizers
 * and pushes report only start and end, because several calls may wait for the
 * same file.
 *
 * Some requests belong to no single call of the program: the start of the
 * session, heartbeats, and polls for many operations at once. They are not
 * reported. An operation that depends on them reports TNK_WAITS_FOR_SESSION or
 * HELD. The dump of the service shows these requests.
 */

/**
 * The phases of an operation, in order.
 *
 * QUEUED comes first and once. Each request of the operation then reports SENT,
 * ACCEPTED, HELD and RESULT. A request without a future, such as a list of
 * runs, reports only SENT and RESULT. SENT and HELD are repeated after each
 * failed attempt. An operation that makes several requests in sequence, such as
 * a custom loss, repeats all of them. WAITS may come before any of these
 * phases.
 *
 * DECODED or FAILED ends the operation, exactly once. FAILED may come at any
 * point, for example when the operation is canceled. DELIVERED comes last. It
 * is missing if the program never reads the outcome.
 *
 * Only DELIVERED can follow the end of an operation, even if one of its
 * requests is still in flight.
 */
typedef enum {
  TNK_PHASE_QUEUED = 0,   /**< The program has made the call. */
  TNK_PHASE_WAITS = 1,    /**< It waits; `waits_for` has the reason. */
  TNK_PHASE_SENT = 2,     /**< A request was handed to a connection. */
  TNK_PHASE_ACCEPTED = 3, /**< The service has accepted the request. */
  /** The library polls for the result, for this operation or for many at
   * once. */
  TNK_PHASE_HELD = 4,
  TNK_PHASE_RESULT = 5,  /**< A result was received, not yet decoded. */
  TNK_PHASE_DECODED = 6, /**< It was decoded, and the promise is resolved. */
  TNK_PHASE_FAILED = 7,  /**< The promise is rejected. */
  /** The first callback of the promise is about to be called, or the program
   * has read the outcome. */
  TNK_PHASE_DELIVERED = 8
} tnk_phase_t;

/** Why an operation waits. */
typedef enum {
  TNK_WAITS_FOR_NOTHING = 0,  /**< In all phases except WAITS. */
  TNK_WAITS_FOR_SESSION = 1,  /**< The start of the service's session. */
  TNK_WAITS_FOR_TURN = 2,     /**< Earlier operations of the same client. */
  TNK_WAITS_FOR_SLOT = 3,     /**< A limit on concurrent operations. */
  TNK_WAITS_FOR_BYTES = 4,    /**< The byte budget of requests or results. */
  TNK_WAITS_FOR_BACK_OFF = 5, /**< The end of the backoff of all samples. */
  TNK_WAITS_FOR_TOKEN = 6,    /**< A credential. */
  TNK_WAITS_FOR_WORKER = 7,   /**< A thread that compresses the request. */
  /** A connection for a request that is ready. Not reported for a request that
   * is sent at once. */
  TNK_WAITS_FOR_CONNECTION = 8,
  /** The next attempt. `attempt`, `status` and `code` describe the last one. */
  TNK_WAITS_FOR_RETRY = 9,
  TNK_WAITS_FOR_POLL = 10, /**< The next poll for the result. */
  /** The function of a custom loss, from its call until it responds. */
  TNK_WAITS_FOR_LOSS = 11
} tnk_waits_for_t;

/** One step of one operation. Members that do not apply are 0 or NULL. Members
 * may be added at the end. Since: 0.1 */
typedef struct {
  tnk_phase_t phase;
  tnk_waits_for_t waits_for;
  /** Number of the operation, from 1 in the order of the calls. Each service
   * and each hub counts separately. */
  uint64_t operation;
  /** Time of the step, in nanoseconds of the clock of uv_hrtime(). It never
   * decreases from one event to the next. */
  uint64_t time_ns;
  /** The operation's name, such as "forward_backward". */
  const char *name;
  /** Model id or sampling session id of the client. Set with QUEUED only. */
  const char *client;
  /** Index of the request, from 0, if the operation is split into several. */
  uint32_t part;
  /** Attempt at a request, or poll for a result, from 1. */
  uint32_t attempt;
  /** Size of a body in bytes. SENT and HELD: the request body, as sent. RESULT:
   * the response body, after decompression. */
  uint64_t bytes;
  int status; /**< HTTP status of the response. */
  int code;   /**< Set with FAILED and TNK_WAITS_FOR_RETRY; see error.h. */
  /** The service's id of the request. Set with ACCEPTED, and with RESULT and
   * FAILED if it is known. */
  const char *request_id;
  /** Span id in the header traceparent, set with SENT and HELD. 0 without
   * tnk_service_options_t.traceparent. */
  uint64_t span;
} tnk_event_t;

/**
 * Called for every step of every operation of a service or a hub.
 *
 * Unlike other callbacks it is called inside calls of this library, as a logger
 * is. It must return soon. It must not call this library, except for the
 * functions of this header. An event contains no credential, no prompt and no
 * body.
 *
 * @param event  Valid until the return, including its strings.
 * @param user   tnk_service_options_t.observer_user.
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_observe_cb)(const tnk_event_t *event, void *user);

/** One observer in a tnk_observers_t. Since: 0.1 */
typedef struct {
  tnk_observe_cb call; /**< NULL is skipped. */
  void *user;          /**< Passed to `call`. */
} tnk_observer_t;

/** Several observers, for tnk_observe_each(). Since: 0.1 */
typedef struct {
  const tnk_observer_t *items; /**< Owned by the caller. */
  size_t n;
} tnk_observers_t;

/**
 * Call several observers with each event, in their order. This function is a
 * tnk_observe_cb.
 *
 *     const tnk_observer_t both[] = {{tnk_trace_event, trace},
 *                                    {tnk_meter_event, meter}};
 *     tnk_observers_t observers = {both, 2};
 *     options.observer = tnk_observe_each;
 *     options.observer_user = &observers;
 *
 * @param event      NULL does nothing.
 * @param observers  A tnk_observers_t. It and its items must outlive the
 *                   service. NULL does nothing.
 * Thread: loop thread. Since: 0.1
 */
TNK_API void tnk_observe_each(const tnk_event_t *event, void *observers);

/*
 * A trace of operations, for Perfetto's viewer. Each client has a group of
 * tracks. Each operation is a slice from its call to its end, which contains a
 * slice for each phase. If an operation has several requests, the second and
 * later ones have separate tracks. The trace uses the clock of the events, so
 * the traces of several programs on one machine can be compared.
 *
 *     tnk_trace_t *trace;
 *     if (tnk_trace_open(&trace, "run.pftrace", NULL) == TNK_OK) {
 *       options.observer = tnk_trace_event;
 *       options.observer_user = trace;
 *     }
 *     ...
 *     err = tnk_trace_close(trace);  (after the service has closed)
 */

/** A trace that is open for writing. */
typedef struct tnk_trace tnk_trace_t;

/**
 * Create a trace of one service, in Perfetto's format.
 *
 * @param[out] out   The trace; the caller must close it. NULL on failure.
 * @param path       The file; an existing file is replaced.
 * @param allocator  Copied; NULL for malloc and its family.
 *
 * @return TNK_OK; TNK_EINVAL for NULL; TNK_EFILE for a file that cannot be
 *         written; TNK_ENOMEM.
 * Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_trace_open(tnk_trace_t **out, const char *path,
                           const tnk_allocator_t *allocator);

/**
 * Add an event to a trace. This function is a tnk_observe_cb: use it as the
 * observer, or call it from one. The trace must receive every event from the
 * first one on.
 *
 * It writes to the file in blocks of 64 KiB. After the first failure nothing
 * more is written, and tnk_trace_close() returns the error.
 *
 * @param trace  The trace; NULL does nothing.
 * Thread: loop thread. Since: 0.1
 */
TNK_API void tnk_trace_event(const tnk_event_t *event, void *trace);

/**
 * Write the rest of the trace, and free it. No event may follow, so close the
 * trace after its service has closed. Exception: an observer of your own that
 * calls tnk_trace_event() can stop doing so earlier.
 *
 * @param trace  NULL does nothing.
 *
 * @return TNK_OK; or the first error: TNK_EFILE, TNK_ENOMEM.
 * Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_trace_close(tnk_trace_t *trace);

/*
 * Metrics for Prometheus, by the name of the operation: outcomes, durations,
 * time in each phase, attempts, retries and bytes. The library opens no port.
 * The program serves the text itself, or saves it to the folder that
 * node_exporter reads.
 */

/** Counters of the events of one service. */
typedef struct tnk_meter tnk_meter_t;

/**
 * Create a meter for one service.
 *
 * @param allocator  Copied; NULL for malloc and its family.
 * @return The meter; the caller must free it. NULL if memory is exhausted.
 * Thread: any. Since: 0.1
 */
TNK_API tnk_meter_t *tnk_meter_new(const tnk_allocator_t *allocator);

/**
 * Count an event. This function is a tnk_observe_cb: use it as the observer, or
 * call it from one. If memory is exhausted, the operation is not counted.
 *
 * @param meter  NULL does nothing.
 * Thread: loop thread. Since: 0.1
 */
TNK_API void tnk_meter_event(const tnk_event_t *event, void *meter);

/**
 * Write the metrics in the text exposition format of Prometheus (version
 * 0.0.4).
 *
 * @param text       Buffer for the string and its NUL. May be NULL, to get the
 *                   length only.
 * @param text_size  Size of @p text in bytes. A longer string is truncated; the
 *                   NUL is written unless the size is 0.
 *
 * @return The length of the whole string. 0 if memory is exhausted, or if the
 *         meter is NULL.
 * Thread: loop thread. Since: 0.1
 */
TNK_API size_t tnk_meter_text(const tnk_meter_t *meter, char *text,
                              size_t text_size);

/**
 * Save the string of tnk_meter_text() to a file. The file is replaced as a
 * whole, so a reader never sees a partial file.
 *
 * @param path  The file. Its name with ".new" appended is used for the new
 *              version.
 *
 * @return TNK_OK; TNK_EINVAL for NULL; TNK_EFILE; TNK_ENOMEM.
 * Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_meter_save(const tnk_meter_t *meter, const char *path);

/** Free the meter. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_meter_free(tnk_meter_t *meter);

/** One metric of a training run. Since: 0.1 */
typedef struct {
  const char *key; /**< For example "train/loss". */
  double value;
} tnk_number_t;

/**
 * Append a line to a file of metrics, for example
 * {"step":7,"train/loss":0.25}. This is the format of metrics.jsonl, which
 * the cookbook's logger writes. The line is written as a whole, before the
 * function returns. If a crash has truncated the previous line, the new line
 * still begins on a separate line.
 *
 * @param path     The file. It is created if it does not exist.
 * @param step     Step of the line. TNK_ABSENT writes a line without one.
 * @param numbers  [n] metrics. A value that is not finite is written as null.
 *
 * @return TNK_OK; TNK_EINVAL for NULL and for a key that is not UTF-8;
 * TNK_EFILE; TNK_ENOMEM. Thread: any. Since: 0.1
 */
TNK_API int tnk_numbers_append(const char *path, int64_t step,
                               const tnk_number_t *numbers, size_t n);

/** Get the name of a phase, such as "accepted"; "" for an unknown phase. The
 * string is static. Thread: any. Since: 0.1 */
TNK_API const char *tnk_phase_name(tnk_phase_t phase);
/** Get the name of a tnk_waits_for_t, such as "back-off"; "" for an unknown
 * value. The string is static. Thread: any. Since: 0.1 */
TNK_API const char *tnk_waits_for_name(tnk_waits_for_t what);

#ifdef __cplusplus
}
#endif

#endif

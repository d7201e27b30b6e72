#ifndef TNK_OBSERVE_H
#define TNK_OBSERVE_H

#include "tnk/common.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * To see what operations do and where their time goes.
 *
 *     static void on_event(const tnk_event_t *event, void *user) {
 *       if (event->phase == TNK_PHASE_FAILED)
 *         fprintf(user, "%s: %s\n", event->name, tnk_err_name(event->code));
 *     }
 *
 *     options.observer = on_event;
 *     options.observer_user = stderr;
 *
 * Nothing of this is sent to anybody. Where no observer is set it costs one
 * comparison at each place where it would be called. Calls of a ledger are told
 * from their beginning to their end, and what they ask the service for as
 * operations of their own. A hub has an observer of its own, with numbers of
 * its own. What it downloads for one call is told with its requests, as are
 * files of weights; files of models, tokenizers and what is pushed from their
 * beginning to their end, as several calls may wait for the same file.
 *
 * Not told of: requests that the service makes for itself, its start,
 * heartbeats and polls for many operations together, as they belong to no call
 * of the program and what waits for them says so (TNK_WAITS_FOR_SESSION, HELD);
 * the dump of the service tells of them.
 */

/**
 * What becomes of an operation, in the order in which it comes.
 *
 * QUEUED is the first one, once. Then for each request of the operation SENT,
 * ACCEPTED, HELD and RESULT, of which a question to the service has only SENT
 * and RESULT; SENT and HELD again after each failed attempt, and all of them
 * again where an operation makes several requests one after the other, as a
 * custom loss does. WAITS stands wherever something is waited for first.
 * DECODED or FAILED ends the operation, once, at whatever point it comes, also
 * when it is canceled; DELIVERED is the last one, unless nobody ever looks.
 *
 * After the end nothing more is told of an operation but DELIVERED, though a
 * request of it may still be on its way.
 */
typedef enum {
  TNK_PHASE_QUEUED = 0,   /**< The program has called. */
  TNK_PHASE_WAITS = 1,    /**< For what `waits_for` says. */
  TNK_PHASE_SENT = 2,     /**< A request has been handed to a connection. */
  TNK_PHASE_ACCEPTED = 3, /**< The service has taken it. */
  /** It is with the service, and the library holds a question for its result:
   * one poll each, or one for many together. */
  TNK_PHASE_HELD = 4,
  TNK_PHASE_RESULT = 5,  /**< A result has come, not yet read. */
  TNK_PHASE_DECODED = 6, /**< It is read, and the promise is resolved. */
  TNK_PHASE_FAILED = 7,  /**< The promise is rejected. */
  /** The first callback of the promise is about to be called, or the program
   * has looked at the outcome. */
  TNK_PHASE_DELIVERED = 8
} tnk_phase_t;

/** What an operation waits for. */
typedef enum {
  TNK_WAITS_FOR_NOTHING = 0,  /**< Of all phases but WAITS. */
  TNK_WAITS_FOR_SESSION = 1,  /**< The start of the service's session. */
  TNK_WAITS_FOR_TURN = 2,     /**< Operations of its client before it. */
  TNK_WAITS_FOR_SLOT = 3,     /**< One of a limited number of places. */
  TNK_WAITS_FOR_BYTES = 4,    /**< Room for what is sent, or for a result. */
  TNK_WAITS_FOR_BACK_OFF = 5, /**< The end of a pause for all samples. */
  TNK_WAITS_FOR_TOKEN = 6,    /**< A credential. */
  TNK_WAITS_FOR_WORKER = 7,   /**< A thread that compresses it. */
  /** Its request is ready to go. Not told of one that goes at once. */
  TNK_WAITS_FOR_CONNECTION = 8,
  /** The next attempt; `attempt`, `status` and `code` tell how the last one
   * ended. */
  TNK_WAITS_FOR_RETRY = 9,
  TNK_WAITS_FOR_POLL = 10, /**< The next question for its result. */
  /** The function of a custom loss, from its call to its answer. */
  TNK_WAITS_FOR_LOSS = 11
} tnk_waits_for_t;

/** One step of one operation. What does not apply is 0 or NULL. Members may be
 * added at the end. Since: 0.1 */
typedef struct {
  tnk_phase_t phase;
  tnk_waits_for_t waits_for;
  /** The operation: from 1 in the order of the calls, in this service or hub
   * alone. */
  uint64_t operation;
  /** When, in nanoseconds of the clock that uv_hrtime() reads. Never less than
   * in the event before. */
  uint64_t time_ns;
  /** What was called, such as "forward_backward", or what that calls on. */
  const char *name;
  /** The client's: model id, or sampling session id; told with QUEUED. */
  const char *client;
  /** Where an operation is cut into several requests, which of them this is
   * about, from 0. */
  uint32_t part;
  /** Attempt at a request, or question for a result, from 1. */
  uint32_t attempt;
  /** SENT and HELD: of the request's body; RESULT: of the answer's. As on the
   * wire for requests, unpacked for answers. */
  uint64_t bytes;
  int status; /**< HTTP status of what came. */
  int code;   /**< FAILED and TNK_WAITS_FOR_RETRY: see error.h. */
  /** The service's name of the request, from ACCEPTED on. */
  const char *request_id;
  /** SENT and HELD: the id of the span in the header traceparent, where
   * tnk_service_options_t.traceparent is given. */
  uint64_t span;
} tnk_event_t;

/**
 * Hears of every step of every operation of a service, or of a hub.
 *
 * It is no callback like others but runs inside calls, as a logger does: it
 * must return soon and must not call this library, except for what is in this
 * header. An event holds no credential, no prompt and no body.
 *
 * @param event  Its texts too are valid until the return.
 * @param user   tnk_service_options_t.observer_user.
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_observe_cb)(const tnk_event_t *event, void *user);

/** One observer of several. Since: 0.1 */
typedef struct {
  tnk_observe_cb call; /**< NULL is skipped. */
  void *user;          /**< Passed to `call`. */
} tnk_observer_t;

/** Several observers, for tnk_observe_each(). Since: 0.1 */
typedef struct {
  const tnk_observer_t *items; /**< The caller's. */
  size_t n;
} tnk_observers_t;

/**
 * Call several observers with each event, in their order. A tnk_observe_cb.
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
 * A trace of what operations did, to be opened with Perfetto's viewer: for each
 * client a group of tracks, for each operation a slice from its call to its
 * end, with slices of its phases in it, and for further parts of it tracks of
 * their own. Its clock is that of the events, so that traces of several
 * programs on one machine can be laid side by side.
 *
 *     tnk_trace_t *trace;
 *     if (tnk_trace_open(&trace, "run.pftrace", NULL) == TNK_OK) {
 *       options.observer = tnk_trace_event;
 *       options.observer_user = trace;
 *     }
 *     ...
 *     err = tnk_trace_close(trace);  (when the service is gone)
 */

/** A trace that is being written. */
typedef struct tnk_trace tnk_trace_t;

/**
 * Begin a trace, of one service.
 *
 * @param[out] out   To be closed by the caller. NULL on failure.
 * @param path       Written from the start. Perfetto's format.
 * @param allocator  Copied; NULL for malloc and its family.
 *
 * @return TNK_OK; TNK_EINVAL for NULL; TNK_EFILE for a file that cannot be
 *         written; TNK_ENOMEM.
 * Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_trace_open(tnk_trace_t **out, const char *path,
                           const tnk_allocator_t *allocator);

/**
 * Write an event down. A tnk_observe_cb, so that it can be the observer itself
 * or be called by one, for all events from the first.
 *
 * It writes to the file, in pieces of 64 KiB. What fails stays for
 * tnk_trace_close(), and nothing is written any more then.
 *
 * @param trace  The trace; NULL does nothing.
 * Thread: loop thread. Since: 0.1
 */
TNK_API void tnk_trace_event(const tnk_event_t *event, void *trace);

/**
 * Write the rest, and free the trace. No event may follow: close it when the
 * service is gone, or has another observer in between.
 *
 * @param trace  NULL does nothing.
 *
 * @return TNK_OK; or what has failed first: TNK_EFILE, TNK_ENOMEM.
 * Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_trace_close(tnk_trace_t *trace);

/*
 * Numbers for Prometheus: how many operations ended and how, how long they
 * took and in which phases, attempts, repeats and bytes, by the name of the
 * operation. Nothing listens: the text goes where the program puts it, such as
 * an answer of its own server, or the folder that node_exporter reads.
 */

/** Adds up what an observer hears. */
typedef struct tnk_meter tnk_meter_t;

/**
 * A meter, of one service.
 *
 * @param allocator  Copied; NULL for malloc and its family.
 * @return To be freed by the caller; NULL when there is no memory.
 * Thread: any. Since: 0.1
 */
TNK_API tnk_meter_t *tnk_meter_new(const tnk_allocator_t *allocator);

/**
 * Count an event. A tnk_observe_cb, so that it can be the observer itself or be
 * called by one. An operation that there is no memory for is left out.
 *
 * @param meter  NULL does nothing.
 * Thread: loop thread. Since: 0.1
 */
TNK_API void tnk_meter_event(const tnk_event_t *event, void *meter);

/**
 * The numbers, as text in the exposition format of Prometheus (version 0.0.4).
 *
 * @param text       May be NULL; ends with a NUL if there is room for one.
 * @param text_size  Bytes at @p text; a longer text is cut.
 *
 * @return The length of the whole text; 0 when there is no memory, and for a
 *         meter that is NULL.
 * Thread: loop thread. Since: 0.1
 */
TNK_API size_t tnk_meter_text(const tnk_meter_t *meter, char *text,
                              size_t text_size);

/**
 * Write that text to a file, which is the old one or the new one at any time.
 *
 * @param path  A name beside it, with ".new" behind, is used meanwhile.
 *
 * @return TNK_OK; TNK_EINVAL for NULL; TNK_EFILE; TNK_ENOMEM.
 * Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_meter_save(const tnk_meter_t *meter, const char *path);

/** Free the meter. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_meter_free(tnk_meter_t *meter);

/** One number of a training run. Since: 0.1 */
typedef struct {
  const char *key; /**< Such as "train/loss". */
  double value;
} tnk_number_t;

/**
 * Append a line to a file of metrics, as the cookbook's logger does to
 * metrics.jsonl: {"step": 7, "train/loss": 0.25}. It is written at once and as
 * a whole; a line that a crash has cut before it stays a line of its own.
 *
 * @param path     Made if it is not there.
 * @param step     TNK_ABSENT: the line has none.
 * @param numbers  [n]. What is not finite is null.
 *
 * @return TNK_OK; TNK_EINVAL for NULL and for a key that is not UTF-8;
 * TNK_EFILE; TNK_ENOMEM. Thread: any. Since: 0.1
 */
TNK_API int tnk_numbers_append(const char *path, int64_t step,
                               const tnk_number_t *numbers, size_t n);

/** The name of a phase, such as "accepted"; "" for a number that is none.
 * Static text. Thread: any. Since: 0.1 */
TNK_API const char *tnk_phase_name(tnk_phase_t phase);
/** The same of what is waited for, such as "back-off". Static text.
 * Thread: any. Since: 0.1 */
TNK_API const char *tnk_waits_for_name(tnk_waits_for_t what);

#ifdef __cplusplus
}
#endif

#endif

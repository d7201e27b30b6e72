/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_OTLP_EXPORTER_H
#define TNK_LIB_OTLP_EXPORTER_H

#include "lib/base/buf.h"
#include "lib/io/http/client.h"
#include "lib/io/loop/context.h"
#include "lib/otlp/settings.h"

struct tnk__otlp;
struct tnk__otlp_operation;

typedef enum {
  TNK__OTLP_IDLE = 0,
  TNK__OTLP_SENDING, /* an attempt is in progress; the timer is its limit */
  TNK__OTLP_PAUSING  /* the timer ends the pause */
} tnk__otlp_state_t;

/*
 * Sends the requests of one kind, one at a time. `body` is the request, which
 * is empty while there is none. It can be empty while PAUSING, because a
 * collector may ask for a pause that the request does not survive.
 */
typedef struct {
  struct tnk__otlp *owner;
  const tnk__otlp_target_t *target;
  tnk__otlp_state_t state;
  tnk__exchange_t exchange;
  tnk__timer_t timer;
  tnk__buf_t body;
  int is_gzip; /* `body` is compressed */
  size_t n_items;
  uint32_t n_retries;
  uint64_t patience_ms; /* for all attempts at a request */
  uint64_t began_ms;    /* time of its first attempt */
  int is_down;          /* a failure was logged, and no success since */
} tnk__otlp_sender_t;

/* A source of metrics. */
typedef struct {
  tnk__list_t link;
  tnk_otlp_source_cb cb;
  void *user;
} tnk__otlp_source_t;

/* What a source writes to. */
struct tnk_otlp_metrics {
  tnk__buf_t out;
  uint64_t start_unix_ns;
  uint64_t unix_ns;
};

/* The operations of one service that have begun, see operations.h. */
typedef struct {
  struct tnk__otlp_operation **buckets;
  size_t n_buckets; /* a power of two, or 0 */
  size_t n;
} tnk__otlp_operations_t;

/*
 * An exporter: a queue of encoded spans, sources of metrics, and a sender for
 * each kind.
 *
 * States: open. Closing: everything queued is sent at once, within the patience
 * of a batch. Then `flushed` is called, from the loop, and nothing refers to
 * the exporter's parts any more.
 *
 * Timers and requests do not keep the loop alive, except while it is closing.
 */
typedef struct tnk__otlp {
  tnk__context_t *context;
  tnk__http_t *http;
  tnk__otlp_settings_t settings;
  tnk__buf_t resource; /* encoded */
  tnk__otlp_sender_t senders[TNK__OTLP_SIGNALS];
  /* Traces. */
  tnk__list_t queue; /* encoded spans */
  size_t n_queued;
  tnk__buf_t scratch;        /* the span that is being encoded */
  tnk__timer_t batch_timer;  /* until a batch that is not full is sent */
  tnk__deferred_t due;       /* something can be sent, or closing has ended */
  int has_warned_full;       /* since the last success */
  tnk_otlp_span_t parent;    /* of operations that begin now; or zeroed */
  tnk_otlp_span_t of_option; /* of other operations; or zeroed */
  tnk__otlp_operations_t operations;
  uint64_t n_exported;
  uint64_t n_dropped;
  /* Metrics. */
  tnk__list_t sources;
  tnk_otlp_metrics_t last;    /* the last values of sources that are removed */
  tnk__timer_t metrics_timer; /* until the next interval */
  uint64_t start_unix_ns;
  int is_closing;
  int has_last_metrics; /* they are being sent, or have been */
  tnk__timer_t flush_timer;
  void (*flushed)(struct tnk__otlp *self);
} tnk__otlp_t;

/* Start an exporter whose `settings` are read, with a target. Other members
 * must be zeroed. TNK_OK or TNK_ENOMEM; call tnk__otlp_deinit() in every case.
 */
int tnk__otlp_open(tnk__otlp_t *otlp, tnk__context_t *context,
                   tnk__http_t *http, const tnk_otlp_options_t *options);
/* Send what is queued, and call `flushed` later. */
void tnk__otlp_close(tnk__otlp_t *otlp, void (*flushed)(tnk__otlp_t *self));
void tnk__otlp_deinit(tnk__otlp_t *otlp);

/* The functions of tnk/otlp.h, for an exporter that exists. */
void tnk__otlp_begin(tnk__otlp_t *otlp, tnk_otlp_span_t *out,
                     const char *traceparent);
/* Begin a span below one of this process, or below one of another process. */
void tnk__otlp_begin_below(tnk__otlp_t *otlp, tnk_otlp_span_t *out,
                           const tnk_otlp_span_t *parent);
/* `events` may be NULL. */
void tnk__otlp_end(tnk__otlp_t *otlp, const tnk_otlp_span_t *span,
                   const tnk_otlp_end_t *end, const tnk__buf_t *events,
                   uint32_t n_dropped_events);
int tnk__otlp_add_source(tnk__otlp_t *otlp, tnk_otlp_source_cb cb, void *user);
void tnk__otlp_remove_source(tnk__otlp_t *otlp, tnk_otlp_source_cb cb,
                             void *user);
uint64_t tnk__otlp_n_waiting(const tnk__otlp_t *otlp);

/* ---- sender.c ---- */

void tnk__otlp_sender_init(tnk__otlp_sender_t *sender, tnk__otlp_t *owner,
                           tnk__otlp_signal_t signal, uint64_t patience_ms);
void tnk__otlp_sender_deinit(tnk__otlp_sender_t *sender);
/* Send `body`, which the caller has filled while the sender was IDLE. */
void tnk__otlp_sender_start(tnk__otlp_sender_t *sender, size_t n_items);
/* Give up the request in progress. Returns the number of its items. */
size_t tnk__otlp_sender_cancel(tnk__otlp_sender_t *sender);
/* The sender is idle, `n_good` of its last items were accepted, and n_bad were
 * not. Defined by the owner. */
void tnk__otlp_sent(tnk__otlp_sender_t *sender, size_t n_good, size_t n_bad);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_OBSERVE_METER_H
#define TNK_LIB_OBSERVE_METER_H

#include "lib/base/buf.h"
#include "tnk/observe.h"

/* Where time is spent: the phases, then the reasons for waiting. */
enum {
  TNK__N_PHASES = TNK_PHASE_DELIVERED + 1,
  TNK__N_SPANS = TNK__N_PHASES + TNK_WAITS_FOR_LOSS + 1,
  TNK__N_BUCKETS = 16, /* the last one has no upper bound */
  TNK__MAX_KINDS = 64, /* of operations; the last one counts the rest */
  TNK__MAX_CODES = 32  /* of errors per kind; the last one counts the rest */
};

typedef struct {
  int code;
  uint64_t n;
} tnk__meter_failure_t;

/* The statistics of operations with one name. */
typedef struct {
  const char *name;
  uint64_t n_pending;
  uint64_t n_ok;
  uint64_t n_sent;
  uint64_t n_retries;
  uint64_t bytes_sent;
  uint64_t bytes_received;
  uint64_t span_ns[TNK__N_SPANS];
  uint64_t took_ns;
  uint64_t n_by_time[TNK__N_BUCKETS];
  tnk__meter_failure_t failures[TNK__MAX_CODES];
  size_t n_failures;
} tnk__meter_kind_t;

/* An operation in progress; `operation` 0: free slot. */
typedef struct {
  uint64_t operation;
  uint64_t begin_ns;
  uint64_t since_ns; /* start of its span */
  uint8_t span;
  uint8_t kind;
} tnk__meter_live_t;

/* Aggregates an observer's events and writes them in Prometheus's text
 * format. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__meter_kind_t *kinds;
  size_t n_kinds;
  size_t max_kinds;
  tnk__meter_live_t *live; /* hash table with open addressing */
  size_t n_live;
  size_t n_places; /* size of the table: a power of two, or 0 */
  uint64_t n_lost; /* operations that were not counted, without memory */
} tnk__meter_t;

void tnk__meter_init(tnk__meter_t *meter, const tnk_allocator_t *alloc);
void tnk__meter_deinit(tnk__meter_t *meter);
void tnk__meter_event(const tnk_event_t *event, tnk__meter_t *meter);
/* Append the metrics as text. */
void tnk__meter_write(const tnk__meter_t *meter, tnk__buf_t *out);

#endif

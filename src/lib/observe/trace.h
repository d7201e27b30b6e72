/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_OBSERVE_TRACE_H
#define TNK_LIB_OBSERVE_TRACE_H

#include "lib/base/buf.h"
#include "tnk/observe.h"

/* Sizes: a step without a name; a step with a name, in whole words; the largest
 * step, with three strings. */
enum {
  TNK__TRACE_UNNAMED = 32,
  TNK__TRACE_NAMED = 40,
  TNK__TRACE_MAX_PACKET = 640
};

/* An operation with several requests, whose tracks end with the operation. */
typedef struct {
  uint64_t operation;
  uint32_t n_parts;
} tnk__trace_split_t;

/*
 * Writes an observer's events as a Perfetto trace: tracks of slices.
 *
 *   the process
 *     a client
 *       an operation, from its call to its end: one slice, with the slices
 *       of its phases inside, one after the other
 *         its second request, its third ...: slices of phases
 *
 * A phase lasts until the next event of its request. Bytes are appended to
 * `out`. Its owner takes them away when `full` is called. `err` of `out` is the
 * error of the trace.
 */
typedef struct {
  tnk__buf_t *out;
  void (*full)(tnk__buf_t *out); /* NULL: the buffer grows */
  const tnk_allocator_t *alloc;
  tnk__trace_split_t *splits;
  size_t n_splits;
  size_t max_splits;
  char **clients;
  size_t n_clients;
  size_t max_clients;
  /* Steps to copy, with the high bits of the current time and track. */
  uint8_t end[TNK__TRACE_UNNAMED];
  uint8_t begin[TNK__TRACE_NAMED];
  uint64_t high_time;
  uint64_t high_track;
  /* The opening of an operation with that name and client track, with the same
   * high bits, and the offset of its slice. */
  const char *opening_name; /* NULL: none */
  uint64_t opening_client;
  size_t opening_slice;
  size_t opening_len;
  uint8_t opening[TNK__TRACE_MAX_PACKET];
} tnk__trace_t;

/* Start a trace of this process. `full` is called if `out` has no space; NULL:
 * `out` grows. */
void tnk__trace_init(tnk__trace_t *trace, const tnk_allocator_t *alloc,
                     tnk__buf_t *out, void (*full)(tnk__buf_t *out), int pid);
void tnk__trace_deinit(tnk__trace_t *trace);
void tnk__trace_event(const tnk_event_t *event, tnk__trace_t *trace);

#endif

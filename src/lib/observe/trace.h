#ifndef TNK_LIB_OBSERVE_TRACE_H
#define TNK_LIB_OBSERVE_TRACE_H

#include "lib/base/buf.h"
#include "tnk/observe.h"

/* Bytes of a step without a name; and with one, in whole words; and of any,
 * with three texts. */
enum {
  TNK__TRACE_UNNAMED = 32,
  TNK__TRACE_NAMED = 40,
  TNK__TRACE_MAX_PACKET = 640
};

/* An operation of several parts, whose tracks have to be ended with it. */
typedef struct {
  uint64_t operation;
  uint32_t n_parts;
} tnk__trace_split_t;

/*
 * Writes what an observer hears as a trace of Perfetto: tracks of slices.
 *
 *   the process
 *     a client
 *       an operation, from its call to its end: one slice, with those of its
 *       phases inside, one after the other
 *         its second part, its third ...: slices of phases
 *
 * A phase lasts until the next event of its part. Bytes go to the end of `out`,
 * whose owner takes them away, and is asked to when they do not fit in; `err`
 * of that is the trace's.
 */
typedef struct {
  tnk__buf_t *out;
  void (*full)(tnk__buf_t *out); /* NULL: it grows */
  const tnk_allocator_t *alloc;
  tnk__trace_split_t *splits;
  size_t n_splits;
  size_t max_splits;
  char **clients;
  size_t n_clients;
  size_t max_clients;
  /* Steps to copy from, and the high bits of the time and of the track that are
   * in them. */
  uint8_t end[TNK__TRACE_UNNAMED];
  uint8_t begin[TNK__TRACE_NAMED];
  uint64_t high_time;
  uint64_t high_track;
  /* What an operation of that name and of the client with that track begins
   * with, with the same high bits, and where its slice does. */
  const char *opening_name; /* NULL: there is none */
  uint64_t opening_client;
  size_t opening_slice;
  size_t opening_len;
  uint8_t opening[TNK__TRACE_MAX_PACKET];
} tnk__trace_t;

/* Begin a trace of this process. `full` takes away what is in `out` when there
 * is no room for more; NULL: it grows. */
void tnk__trace_init(tnk__trace_t *trace, const tnk_allocator_t *alloc,
                     tnk__buf_t *out, void (*full)(tnk__buf_t *out), int pid);
void tnk__trace_deinit(tnk__trace_t *trace);
void tnk__trace_event(const tnk_event_t *event, tnk__trace_t *trace);

#endif

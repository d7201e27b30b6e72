/* SPDX-License-Identifier: MIT */
#include "lib/observe/trace.h"

#include <stdint.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/le.h"
#include "tnk/error.h"
#include "tnk/version.h"

/* Protobuf encoding for traces. Each function writes to memory with enough
 * space and returns the end of the written bytes. */

enum {
  MAX_TEXT = 128, /* longer strings are cut */
  WIDE = 9,       /* size of a fixed varint */
  LOW = 4,        /* size of its first part */
  LOW_BITS = 28   /* bits in the first part */
};

static inline uint8_t *put_varint(uint8_t *at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = (uint8_t)(value | 0x80);
    value >>= 7;
  }
  *at++ = (uint8_t)value;
  return at;
}

static inline uint8_t *put_uint(uint8_t *at, uint32_t field, uint64_t value) {
  return put_varint(put_varint(at, field), value);
}

static inline size_t text_len(const char *text) {
  const size_t n = strlen(text);

  return n < MAX_TEXT ? n : MAX_TEXT;
}

static inline uint8_t *put_bytes(uint8_t *at, uint32_t field, const char *text,
                                 size_t n) {
  at = put_varint(put_varint(at, field), n);
  memcpy(at, text, n);
  return at + n;
}

static inline uint8_t *put_text(uint8_t *at, uint32_t field, const char *text) {
  return put_bytes(at, field, text, text_len(text));
}

/* The lowest 28 bits in four bytes, each with the continuation bit. */
static inline uint32_t seven_each(uint64_t value) {
  uint32_t x = (uint32_t)value;

  x = (x & 0x00003fff) | (x & 0x0fffc000) << 2;
  x = (x & 0x007f007f) | (x & 0x3f803f80) << 1;
  return x | 0x80808080;
}

/* Write the part of a nine-byte varint after its lowest 28 bits. */
static inline void put_high(uint8_t *at, uint64_t high) {
  tnk__le_put32(at, seven_each(high));
  at[4] = high >> 28 & 0x7f;
}

/* Write a varint of nine bytes, which holds 63 bits. */
static inline uint8_t *put_wide(uint8_t *at, uint64_t value) {
  tnk__le_put32(at, seven_each(value));
  put_high(at + LOW, value >> LOW_BITS);
  return at + WIDE;
}

/* Write a length in two bytes. */
static inline void put_length(uint8_t *at, size_t n) {
  at[0] = (uint8_t)(n | 0x80);
  at[1] = (uint8_t)(n >> 7);
}

/* Begin a message with a length that is set later. */
static inline uint8_t *begin_message(uint8_t *at, uint32_t field,
                                     uint8_t **message) {
  *message = put_varint(at, field);
  return *message + 2;
}

static inline void end_message(uint8_t *message, const uint8_t *at) {
  put_length(message, (size_t)(at - message) - 2);
}

/* Constants that the parts of a trace share. */

/* Tags of the fields. */
enum {
  VARINT = 0,
  LENGTH = 2,
  PACKET = 1 << 3 | LENGTH,
  TIMESTAMP = 8 << 3 | VARINT,
  SEQUENCE = 10 << 3 | VARINT,
  TRACK_EVENT = 11 << 3 | LENGTH,
  NAMES = 12 << 3 | LENGTH,
  FLAGS = 13 << 3 | VARINT,
  TRACK_DESCRIPTOR = 60 << 3 | LENGTH,
  UUID = 1 << 3 | VARINT,
  TRACK_NAME = 2 << 3 | LENGTH,
  TRACK_PROCESS = 3 << 3 | LENGTH,
  PARENT = 5 << 3 | VARINT,
  PID = 1 << 3 | VARINT,
  PROCESS_NAME = 6 << 3 | LENGTH,
  ANNOTATION = 4 << 3 | LENGTH,
  EVENT_TYPE = 9 << 3 | VARINT,
  EVENT_ID = 10 << 3 | VARINT, /* of its name */
  EVENT_TRACK = 11 << 3 | VARINT,
  EVENT_NAME = 23 << 3 | LENGTH,
  ANNOTATION_ID = 1 << 3 | VARINT,
  ANNOTATION_UINT = 3 << 3 | VARINT,
  ANNOTATION_TEXT = 6 << 3 | LENGTH,
  NAMES_EVENT = 2 << 3 | LENGTH,
  NAMES_ANNOTATION = 3 << 3 | LENGTH,
  NAME_ID = 1 << 3 | VARINT,
  NAME_TEXT = 2 << 3 | LENGTH
};

/* Values of a packet's flags about names. */
enum { NAMES_BEGIN = 1, NAMES_NEEDED = 2 };

/* Numbers of the annotations' names and of the phases' names, which the waiting
 * reasons follow. All are below 128, so each is a varint of one byte. */
enum {
  ATTEMPT = 1,
  BYTES,
  STATUS,
  CODE,
  REQUEST_ID,
  OPERATION,
  N_ANNOTATIONS,
  PHASES = 1,
  WAITS = 32
};

/* The track of the process; the tracks of clients follow. */
enum { PROCESS = 1 };

/* ---- The head ---- */

/*
 * The head of a trace: repeated names, and the process.
 */

enum { TNK__TRACE_MAX_HEAD = 2048 };

static uint8_t *put_name(uint8_t *at, uint32_t field, uint8_t id,
                         const char *text, const char *more) {
  uint8_t *message;
  uint8_t *name;

  at = begin_message(at, field, &message);
  at = put_uint(at, NAME_ID, id);
  at = begin_message(at, NAME_TEXT, &name);
  for (; *text != '\0'; text++)
    *at++ = (uint8_t)*text;
  for (; *more != '\0'; more++)
    *at++ = (uint8_t)*more;
  end_message(name, at);
  end_message(message, at);
  return at;
}

static uint8_t *put_names(uint8_t *at) {
  static const char *const annotations[N_ANNOTATIONS] = {
      [ATTEMPT] = "attempt",       [BYTES] = "bytes",
      [STATUS] = "status",         [CODE] = "code",
      [REQUEST_ID] = "request_id", [OPERATION] = "operation"};
  uint8_t *packet;
  uint8_t *names;

  at = begin_message(at, PACKET, &packet);
  at = put_uint(at, SEQUENCE, 1);
  at = put_uint(at, FLAGS, NAMES_BEGIN);
  at = begin_message(at, NAMES, &names);
  for (uint8_t i = 0; tnk_phase_name(i)[0] != '\0'; i++)
    at =
        put_name(at, NAMES_EVENT, (uint8_t)(PHASES + i), tnk_phase_name(i), "");
  at = put_name(at, NAMES_EVENT, WAITS, "waits", "");
  for (uint8_t i = 1; tnk_waits_for_name(i)[0] != '\0'; i++)
    at = put_name(at, NAMES_EVENT, (uint8_t)(WAITS + i), "waits for ",
                  tnk_waits_for_name(i));
  for (int i = 1; i < N_ANNOTATIONS; i++)
    at = put_name(at, NAMES_ANNOTATION, (uint8_t)i, annotations[i], "");
  end_message(names, at);
  end_message(packet, at);
  return at;
}

static uint8_t *put_process(uint8_t *at, int pid) {
  uint8_t *packet;
  uint8_t *inner;
  uint8_t *process;

  at = begin_message(at, PACKET, &packet);
  at = put_uint(at, SEQUENCE, 1);
  at = begin_message(at, TRACK_DESCRIPTOR, &inner);
  at = put_uint(at, UUID, PROCESS);
  at = begin_message(at, TRACK_PROCESS, &process);
  at = put_uint(at, PID, (uint64_t)pid);
  at = put_text(at, PROCESS_NAME, "tnk " TNK_VERSION_STRING);
  end_message(process, at);
  end_message(inner, at);
  end_message(packet, at);
  return at;
}

/* Write the head of a trace to `at`, which has TNK__TRACE_MAX_HEAD bytes.
 * Returns its end. */
static uint8_t *trace_put_head(uint8_t *at, int pid) {
  return put_process(put_names(at), pid);
}

/* ---- The trace ---- */

/*
 * Perfetto's messages Trace, TracePacket, TrackDescriptor and TrackEvent, with
 * the required fields only. An operation has about twenty packets. Therefore
 * each step is copied from a pattern of fixed length, and only time and track
 * are filled in. Varints and lengths always use all of their bytes, which
 * protobuf allows. Repeated names are sent once in the first packet and are
 * numbers after that (the head).
 */

enum {
  MAX_PACKET = TNK__TRACE_MAX_PACKET,
  MAX_EVENT = 4 * MAX_PACKET,
  MAX_CLIENTS = 4096,
  OPERATION_BITS = 40
};

#define OPERATIONS (UINT64_C(1) << 62)

typedef enum { BEGIN = 1, END = 2, INSTANT = 3 } kind_t;

/* Keeps rare cases out of the common code path. */
#define RARE __attribute__((noinline, cold))

/* ---- The trace: space ---- */

RARE static uint8_t *make_room(const tnk__trace_t *trace, size_t n) {
  if (trace->full != NULL)
    trace->full(trace->out);
  return tnk__buf_reserve(trace->out, n);
}

static inline int has_room(const tnk__trace_t *trace, size_t n) {
  const tnk__buf_t *out = trace->out;

  return out->cap - out->len > n && out->err == TNK_OK;
}

/* End of the written bytes. */
static inline uint8_t *end_of(const tnk__trace_t *trace) {
  return trace->out->data + trace->out->len;
}

/* Reserve n bytes; NULL without memory or after a failure. */
static inline uint8_t *room(const tnk__trace_t *trace, size_t n) {
  return has_room(trace, n) ? end_of(trace) : make_room(trace, n);
}

static inline void keep(const tnk__trace_t *trace, const uint8_t *at) {
  trace->out->len = (size_t)(at - trace->out->data);
}

/* ---- The trace: numbers of tracks ---- */

/* Tracks of operations have a bit that tracks of clients do not have. */
static inline uint64_t track_of(uint64_t operation, uint32_t part) {
  return OPERATIONS | (uint64_t)part << OPERATION_BITS | operation;
}

/* ---- The trace: packets of tracks ---- */

/* Offset of a new track's number in its packet. */
enum { AT_NEW_TRACK = 10 };

/* Write a track with a parent; the parent is a short varint. */
static inline uint8_t *put_track(uint8_t *at, const uint8_t track[WIDE],
                                 uint64_t parent, const char *name, size_t n) {
  uint8_t *packet;
  uint8_t *inner;

  at = begin_message(at, PACKET, &packet);
  at = put_uint(at, SEQUENCE, 1);
  at = begin_message(at, TRACK_DESCRIPTOR, &inner);
  *at++ = UUID;
  memcpy(at, track, WIDE);
  at = put_uint(at + WIDE, PARENT, parent);
  at = put_bytes(at, TRACK_NAME, name, n);
  end_message(inner, at);
  end_message(packet, at);
  return at;
}

static void write_track(const tnk__trace_t *trace, uint64_t track,
                        uint64_t parent, const char *name) {
  uint8_t *at = room(trace, MAX_PACKET);
  uint8_t wide[WIDE];

  if (at == NULL)
    return;
  put_wide(wide, track);
  keep(trace, put_track(at, wide, parent, name, text_len(name)));
}

/* ---- The trace: packets of steps ---- */

static uint8_t name_of(const tnk_event_t *event) {
  const unsigned what = (unsigned)event->waits_for;

  if (event->phase != TNK_PHASE_WAITS)
    return (uint8_t)(PHASES + event->phase);
  return (uint8_t)(what <= TNK_WAITS_FOR_LOSS ? WAITS + what : WAITS);
}

/* Offsets in a step. A step without a name ends earlier. */
enum {
  AT_LENGTH = 1,
  BEHIND_LENGTH = 3,
  AT_TIME = 8,
  AT_INNER = 18,
  BEHIND_INNER = 20,
  AT_KIND = 21,
  AT_TRACK = 23,
  UNNAMED = TNK__TRACE_UNNAMED,
  AT_NAME = 33,
  NAMED = 34
};

/* Write the pattern of a step, without time and track. */
static void write_pattern(uint8_t *at, size_t n, kind_t kind) {
  static const uint8_t begin[AT_TIME] = {
      PACKET, 0, 0, SEQUENCE, 1, FLAGS, NAMES_NEEDED, TIMESTAMP};

  memcpy(at, begin, AT_TIME);
  put_length(at + AT_LENGTH, n - BEHIND_LENGTH);
  at[AT_INNER - 1] = TRACK_EVENT;
  put_length(at + AT_INNER, n - BEHIND_INNER);
  at[AT_KIND - 1] = EVENT_TYPE;
  at[AT_KIND] = (uint8_t)kind;
  at[AT_TRACK - 1] = EVENT_TRACK;
  if (n == NAMED)
    at[AT_NAME - 1] = EVENT_ID;
}

RARE static void set_high(tnk__trace_t *trace, uint64_t time, uint64_t track) {
  trace->high_time = time;
  trace->high_track = track;
  trace->opening_name = NULL;
  put_high(trace->end + AT_TIME + LOW, time);
  put_high(trace->end + AT_TRACK + LOW, track);
  put_high(trace->begin + AT_TIME + LOW, time);
  put_high(trace->begin + AT_TRACK + LOW, track);
}

/* The low bits of an event's time and track, as encoded in its steps. */
typedef struct {
  uint32_t time;
  uint32_t track;
} stamp_t;

static inline int has_high(const tnk__trace_t *trace, uint64_t time_ns,
                           uint64_t track) {
  return time_ns >> LOW_BITS == trace->high_time &&
         track >> LOW_BITS == trace->high_track;
}

static inline stamp_t low_of(uint64_t time_ns, uint64_t track) {
  return (stamp_t){seven_each(time_ns), seven_each(track)};
}

/* Updates the high bits in the patterns if necessary. */
static inline stamp_t stamp_of(tnk__trace_t *trace, uint64_t time_ns,
                               uint64_t operation, uint32_t part) {
  const uint64_t track = track_of(operation, part);

  if (!has_high(trace, time_ns, track))
    set_high(trace, time_ns >> LOW_BITS, track >> LOW_BITS);
  return low_of(time_ns, track);
}

static inline void put_stamp(uint8_t *at, stamp_t stamp) {
  tnk__le_put32(at + AT_TIME, stamp.time);
  tnk__le_put32(at + AT_TRACK, stamp.track);
}

/* Write a step that ends a slice; returns its end. */
static inline uint8_t *put_end(const tnk__trace_t *trace, uint8_t *at,
                               stamp_t stamp) {
  memcpy(at, trace->end, sizeof(trace->end));
  put_stamp(at, stamp);
  return at + UNNAMED;
}

/* Write a step that begins a slice, with the number of a known name.
 * Annotations may follow, then end_step(). */
static inline uint8_t *put_begin(const tnk__trace_t *trace, uint8_t *at,
                                 stamp_t stamp, uint8_t name) {
  memcpy(at, trace->begin, sizeof(trace->begin));
  put_stamp(at, stamp);
  at[AT_NAME] = name;
  return at + NAMED;
}

/* Set the lengths of a step with additional fields. */
static inline uint8_t *end_step(uint8_t *step, uint8_t *at) {
  put_length(step + AT_LENGTH, (size_t)(at - step) - BEHIND_LENGTH);
  put_length(step + AT_INNER, (size_t)(at - step) - BEHIND_INNER);
  return at;
}

/* Write the header of an annotation with a number of n bytes. */
static inline uint8_t *begin_number(uint8_t *at, uint8_t name, uint8_t n) {
  enum { HEAD = 5 };
  const uint8_t head[HEAD] = {ANNOTATION, (uint8_t)(HEAD - 2 + n),
                              ANNOTATION_ID, name, ANNOTATION_UINT};

  memcpy(at, head, HEAD);
  return at + HEAD;
}

static inline uint8_t *put_wide_number(uint8_t *at, uint8_t name,
                                       uint64_t value) {
  return put_wide(begin_number(at, name, WIDE), value);
}

/* Write an annotation with a number. Most numbers fit into a varint of four
 * bytes. */
static inline uint8_t *put_number(uint8_t *at, uint8_t name, uint64_t value) {
  if (value >> LOW_BITS != 0)
    return put_wide_number(at, name, value);
  at = begin_number(at, name, LOW);
  tnk__le_put32(at, seven_each(value) & 0x7fffffff);
  return at + LOW;
}

static uint8_t *put_word(uint8_t *at, uint8_t name, const char *text) {
  enum { HEAD = 8, BEHIND_LENGTHS = 3 };
  const size_t n = text_len(text);
  const uint8_t head[HEAD] = {ANNOTATION,    0,    0,
                              ANNOTATION_ID, name, ANNOTATION_TEXT};

  memcpy(at, head, HEAD);
  put_length(at + 1, HEAD - BEHIND_LENGTHS + n);
  put_length(at + HEAD - 2, n);
  memcpy(at + HEAD, text, n);
  return at + HEAD + n;
}

/* Success is not written. The request id is written when it is new, and again
 * for a failure. */
RARE static uint8_t *put_all_facts(uint8_t *at, const tnk_event_t *event) {
  if (event->attempt > 1)
    at = put_number(at, ATTEMPT, event->attempt);
  if (event->bytes > 0)
    at = put_number(at, BYTES, event->bytes);
  if (event->status != 0 && event->status != 200)
    at = put_number(at, STATUS, (uint64_t)event->status);
  if (event->code != TNK_OK)
    at = put_word(at, CODE, tnk_err_name(event->code));
  if (event->request_id != NULL &&
      (event->phase == TNK_PHASE_ACCEPTED || event->phase == TNK_PHASE_FAILED))
    at = put_word(at, REQUEST_ID, event->request_id);
  return at;
}

/* For all phases except ACCEPTED, which always has an id. */
static inline int has_rare_facts(const tnk_event_t *event) {
  return event->attempt > 1 || (event->status != 0 && event->status != 200) ||
         event->code != TNK_OK;
}

static inline uint8_t *put_facts(uint8_t *at, const tnk_event_t *event) {
  if (has_rare_facts(event) || event->phase == TNK_PHASE_ACCEPTED)
    return put_all_facts(at, event);
  return event->bytes > 0 ? put_number(at, BYTES, event->bytes) : at;
}

/* ---- The trace: tracks ---- */

/* The track of a client: a known one or a new one. Clients over the limit share
 * the track of the process. */
static uint64_t client_track(tnk__trace_t *trace, const char *client) {
  size_t i = trace->n_clients;
  char **clients = trace->clients;

  if (client == NULL)
    return PROCESS;
  while (i-- > 0)
    if (strcmp(clients[i], client) == 0)
      return PROCESS + 1 + i;
  if (trace->n_clients == trace->max_clients) {
    const size_t max = trace->max_clients > 0 ? 2 * trace->max_clients : 8;
    if (max > MAX_CLIENTS)
      return PROCESS;
    clients = tnk__realloc(trace->alloc, clients, max * sizeof(*clients));
    if (clients == NULL)
      return PROCESS;
    trace->clients = clients;
    trace->max_clients = max;
  }
  i = trace->n_clients;
  clients[i] = tnk__strdup(trace->alloc, client);
  if (clients[i] == NULL)
    return PROCESS;
  trace->n_clients++;
  write_track(trace, PROCESS + 1 + i, PROCESS, client);
  return PROCESS + 1 + i;
}

static tnk__trace_split_t *find_split(tnk__trace_t *trace, uint64_t operation) {
  for (size_t i = 0; i < trace->n_splits; i++)
    if (trace->splits[i].operation == operation)
      return &trace->splits[i];
  return NULL;
}

static tnk__trace_split_t *add_split(tnk__trace_t *trace, uint64_t operation) {
  const size_t max = trace->max_splits > 0 ? 2 * trace->max_splits : 8;
  tnk__trace_split_t *splits = trace->splits;

  if (trace->n_splits == trace->max_splits) {
    splits = tnk__realloc(trace->alloc, splits, max * sizeof(*splits));
    if (splits == NULL) {
      trace->out->err = TNK_ENOMEM;
      return NULL;
    }
    trace->splits = splits;
    trace->max_splits = max;
  }
  splits[trace->n_splits] =
      (tnk__trace_split_t){.operation = operation, .n_parts = 1};
  return &splits[trace->n_splits++];
}

/* ---- The trace: slices ---- */

/* Returns whether there is space for an event of the first request, and the
 * patterns have its high bits. Almost always true. */
static inline int is_ready(const tnk__trace_t *trace,
                           const tnk_event_t *event) {
  return has_room(trace, MAX_EVENT) &&
         has_high(trace, event->time_ns, track_of(event->operation, 0));
}

/* Returns 0 without memory or after a failure. */
RARE static int make_ready(tnk__trace_t *trace, const tnk_event_t *event) {
  set_high(trace, event->time_ns >> LOW_BITS,
           track_of(event->operation, 0) >> LOW_BITS);
  return room(trace, MAX_EVENT) != NULL;
}

static void end_slice(tnk__trace_t *trace, uint64_t operation, uint32_t part,
                      uint64_t time_ns) {
  const stamp_t stamp = stamp_of(trace, time_ns, operation, part);
  uint8_t *at = room(trace, MAX_PACKET);

  if (at != NULL)
    keep(trace, put_end(trace, at, stamp));
}

static inline uint8_t *put_phase(const tnk__trace_t *trace, uint8_t *at,
                                 stamp_t stamp, const tnk_event_t *event) {
  uint8_t *facts = put_begin(trace, at, stamp, name_of(event));
  uint8_t *end = put_facts(facts, event);

  return end != facts ? end_step(at, end) : end;
}

static void begin_phase(tnk__trace_t *trace, const tnk_event_t *event) {
  const stamp_t stamp =
      stamp_of(trace, event->time_ns, event->operation, event->part);
  uint8_t *at = room(trace, MAX_PACKET);

  if (at != NULL)
    keep(trace, put_phase(trace, at, stamp, event));
}

/* Write the opening of an operation: its track, its slice and the slice of its
 * first phase. The next opening with the same client and name differs only in
 * the low bits of time and track, and in the operation's number. The number
 * comes last in the slice. */
RARE static void write_opening(tnk__trace_t *trace, const tnk_event_t *event,
                               uint64_t client) {
  const stamp_t none = {0, 0};
  const size_t n = text_len(event->name);
  uint8_t *slice =
      put_track(trace->opening, trace->end + AT_TRACK, client, event->name, n);
  uint8_t *at = put_end(trace, slice, none);

  slice[AT_KIND] = BEGIN;
  at = put_bytes(at, EVENT_NAME, event->name, n);
  at = end_step(slice, put_wide_number(at, OPERATION, event->operation));
  at = put_begin(trace, at, none, PHASES + TNK_PHASE_QUEUED);
  trace->opening_name = event->name;
  trace->opening_client = client;
  trace->opening_slice = (size_t)(slice - trace->opening);
  trace->opening_len = (size_t)(at - trace->opening);
}

static void begin_operation(const tnk_event_t *event, tnk__trace_t *trace) {
  const uint64_t client = client_track(trace, event->client);
  const stamp_t stamp = low_of(event->time_ns, event->operation);
  uint8_t *at = end_of(trace);

  if (trace->opening_name != event->name || trace->opening_client != client)
    write_opening(trace, event, client);
  memcpy(at, trace->opening, trace->opening_len);
  tnk__le_put32(at + AT_NEW_TRACK, stamp.track);
  put_stamp(at + trace->opening_slice, stamp);
  at += trace->opening_len - NAMED;
  tnk__le_put32(at - WIDE, stamp.track);
  put_stamp(at, stamp);
  keep(trace, at + NAMED);
}

/* The first event of a request also creates the tracks of the requests before
 * it. */
static int is_new_part(tnk__trace_t *trace, const tnk_event_t *event) {
  tnk_event_t queued = {.phase = TNK_PHASE_QUEUED,
                        .operation = event->operation,
                        .time_ns = event->time_ns};
  const uint64_t parent = track_of(event->operation, 0);
  tnk__trace_split_t *split = find_split(trace, event->operation);

  if (split == NULL)
    split = add_split(trace, event->operation);
  if (split == NULL || event->part < split->n_parts)
    return 0;
  for (; split->n_parts < event->part; split->n_parts++) {
    queued.part = split->n_parts;
    write_track(trace, track_of(event->operation, queued.part), parent, "part");
    begin_phase(trace, &queued);
  }
  write_track(trace, track_of(event->operation, split->n_parts++), parent,
              "part");
  return 1;
}

/* The slices of additional requests end first. */
RARE static int end_parts(tnk__trace_t *trace, const tnk_event_t *event) {
  tnk__trace_split_t *split = find_split(trace, event->operation);

  if (split == NULL)
    return 1;
  for (uint32_t part = split->n_parts; part-- > 1;)
    end_slice(trace, event->operation, part, event->time_ns);
  *split = trace->splits[--trace->n_splits];
  return make_ready(trace, event);
}

static void end_operation(const tnk_event_t *event, tnk__trace_t *trace) {
  const stamp_t stamp = low_of(event->time_ns, event->operation);
  uint8_t *step;
  uint8_t *facts;
  uint8_t *at;

  if (trace->n_splits > 0 && !end_parts(trace, event))
    return;
  step = put_end(trace, end_of(trace), stamp);
  facts = put_end(trace, step, stamp);
  at = put_facts(facts, event);
  keep(trace, at != facts ? end_step(step, at) : at);
}

static void delivered(const tnk_event_t *event, tnk__trace_t *trace) {
  const stamp_t stamp = low_of(event->time_ns, event->operation);
  uint8_t *at = end_of(trace);

  keep(trace, put_begin(trace, at, stamp, name_of(event)));
  at[AT_KIND] = INSTANT;
}

RARE static void next_phase_at_length(const tnk_event_t *event,
                                      tnk__trace_t *trace) {
  if (event->part == 0 || !is_new_part(trace, event))
    end_slice(trace, event->operation, event->part, event->time_ns);
  begin_phase(trace, event);
}

static inline void put_next(const tnk_event_t *event, tnk__trace_t *trace,
                            const char *request_id) {
  const stamp_t stamp = low_of(event->time_ns, event->operation);
  uint8_t *step;
  uint8_t *at;

  if (event->part != 0 || has_rare_facts(event)) {
    next_phase_at_length(event, trace);
    return;
  }
  step = put_end(trace, end_of(trace), stamp);
  at = put_begin(trace, step, stamp, name_of(event));
  if (event->bytes > 0)
    at = end_step(step, put_number(at, BYTES, event->bytes));
  if (request_id != NULL)
    at = end_step(step, put_word(at, REQUEST_ID, request_id));
  keep(trace, at);
}

static void next_phase(const tnk_event_t *event, tnk__trace_t *trace) {
  put_next(event, trace, NULL);
}

static void accepted(const tnk_event_t *event, tnk__trace_t *trace) {
  put_next(event, trace, event->request_id);
}

/* Indexed by phase. Separate functions keep the common one small. */
static void (*const steps[])(const tnk_event_t *, tnk__trace_t *) = {
    [TNK_PHASE_QUEUED] = begin_operation, [TNK_PHASE_WAITS] = next_phase,
    [TNK_PHASE_SENT] = next_phase,        [TNK_PHASE_ACCEPTED] = accepted,
    [TNK_PHASE_HELD] = next_phase,        [TNK_PHASE_RESULT] = next_phase,
    [TNK_PHASE_DECODED] = end_operation,  [TNK_PHASE_FAILED] = end_operation,
    [TNK_PHASE_DELIVERED] = delivered};

RARE static void make_ready_and_step(const tnk_event_t *event,
                                     tnk__trace_t *trace) {
  if (make_ready(trace, event))
    steps[event->phase](event, trace);
}

void tnk__trace_event(const tnk_event_t *event, tnk__trace_t *trace) {
  if ((size_t)event->phase >= sizeof(steps) / sizeof(steps[0]))
    return;
  if (is_ready(trace, event))
    steps[event->phase](event, trace);
  else
    make_ready_and_step(event, trace);
}

void tnk__trace_init(tnk__trace_t *trace, const tnk_allocator_t *alloc,
                     tnk__buf_t *out, void (*full)(tnk__buf_t *out), int pid) {
  uint8_t *at;

  memset(trace, 0, sizeof(*trace));
  trace->alloc = alloc;
  trace->out = out;
  trace->full = full;
  write_pattern(trace->end, UNNAMED, END);
  write_pattern(trace->begin, NAMED, BEGIN);
  set_high(trace, 0, 0);
  at = room(trace, TNK__TRACE_MAX_HEAD);
  if (at != NULL)
    keep(trace, trace_put_head(at, pid));
}

void tnk__trace_deinit(tnk__trace_t *trace) {
  for (size_t i = 0; i < trace->n_clients; i++)
    tnk__free(trace->alloc, trace->clients[i]);
  tnk__free(trace->alloc, trace->clients);
  tnk__free(trace->alloc, trace->splits);
}

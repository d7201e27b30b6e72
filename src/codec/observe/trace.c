/*
 * Perfetto's messages Trace, TracePacket, TrackDescriptor and TrackEvent, as
 * far as they are needed. There are some twenty packets for each operation, so
 * a step is copied from a pattern of fixed length, in which time and track are
 * filled in: varints and lengths take all of their bytes whatever they are,
 * which protobuf allows. Names that come again are told once, in the first
 * packet, and are numbers from there on.
 */
#include "codec/observe/trace.h"

#include <string.h>

#include "base/alloc.h"
#include "codec/observe/trace_bytes.h"
#include "tnk/error.h"
#include "tnk/version.h"

enum {
  MAX_PACKET = 640, /* with three texts */
  MAX_NAMES = 1024,
  MAX_CLIENTS = 4096,
  PROCESS = 1, /* its track; those of clients follow */
  OPERATION_BITS = 40
};

#define OPERATIONS (UINT64_C(1) << 62)

/* Fields, as they stand in front of their values. */
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

/* What the flags of a packet say of names. */
enum { NAMES_BEGIN = 1, NAMES_NEEDED = 2 };

typedef enum { BEGIN = 1, END = 2, INSTANT = 3 } kind_t;

/* Names of annotations, and those of phases, which are followed by those of
 * what is waited for. All are below 128, a varint of one byte. */
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

/* ---- Room ---- */

static uint8_t *make_room(const tnk__trace_t *trace, size_t n) {
  if (trace->full != NULL)
    trace->full(trace->out);
  return tnk__buf_reserve(trace->out, n);
}

/* Room for `n` more bytes; NULL without memory, and after a failure. */
static inline uint8_t *room(const tnk__trace_t *trace, size_t n) {
  const tnk__buf_t *out = trace->out;

  if (out->cap - out->len <= n || out->err != TNK_OK)
    return make_room(trace, n);
  return out->data + out->len;
}

static inline void keep(const tnk__trace_t *trace, const uint8_t *at) {
  trace->out->len = (size_t)(at - trace->out->data);
}

/* ---- Numbers of tracks ---- */

/* Those of operations have a bit that no client's has. */
static inline uint64_t track_of(uint64_t operation, uint32_t part) {
  return OPERATIONS | (uint64_t)part << OPERATION_BITS | operation;
}

/* The same as a varint. That of the first part, which most are, has few bits to
 * be spread. */
static inline wide_t wide_track_of(uint64_t operation, uint32_t part) {
  uint64_t x = operation;

  if ((operation >> 28 | part) != 0)
    return wide_of(track_of(operation, part));
  x = (x & 0x3fff) | (x & 0xfffc000) << 2;
  x = (x & 0x7f007f) | (x & 0x3f803f80) << 1;
  return (wide_t){x | 0x8080808080808080, OPERATIONS >> 56};
}

/* ---- Packets of tracks ---- */

/* A track that is below another one. */
static inline uint8_t *put_track(uint8_t *at, wide_t track, uint64_t parent,
                                 const char *name, size_t n) {
  uint8_t *packet;
  uint8_t *inner;

  at = begin_message(at, PACKET, &packet);
  at = put_uint(at, SEQUENCE, 1);
  at = begin_message(at, TRACK_DESCRIPTOR, &inner);
  *at++ = UUID;
  put_wide(at, track);
  at = put_uint(at + WIDE, PARENT, parent);
  at = put_bytes(at, TRACK_NAME, name, n);
  end_message(inner, at);
  end_message(packet, at);
  return at;
}

static void write_track(const tnk__trace_t *trace, uint64_t track,
                        uint64_t parent, const char *name) {
  uint8_t *at = room(trace, MAX_PACKET);

  if (at != NULL)
    keep(trace, put_track(at, wide_of(track), parent, name, text_len(name)));
}

static void write_process(const tnk__trace_t *trace, int pid) {
  uint8_t *at = room(trace, MAX_PACKET);
  uint8_t *packet;
  uint8_t *inner;
  uint8_t *process;

  if (at == NULL)
    return;
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
  keep(trace, at);
}

/* ---- Names ---- */

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

static void write_names(const tnk__trace_t *trace) {
  static const char *const annotations[N_ANNOTATIONS] = {
      [ATTEMPT] = "attempt",       [BYTES] = "bytes",
      [STATUS] = "status",         [CODE] = "code",
      [REQUEST_ID] = "request_id", [OPERATION] = "operation"};
  uint8_t *at = room(trace, MAX_NAMES);
  uint8_t *packet;
  uint8_t *names;

  if (at == NULL)
    return;
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
  keep(trace, at);
}

static uint8_t name_of(const tnk_event_t *event) {
  const unsigned what = (unsigned)event->waits_for;

  if (event->phase != TNK_PHASE_WAITS)
    return (uint8_t)(PHASES + event->phase);
  return (uint8_t)(what <= TNK_WAITS_FOR_LOSS ? WAITS + what : WAITS);
}

/* ---- Packets of steps ---- */

/* Where the parts of a step stand. One without a name ends before that. */
enum {
  AT_LENGTH = 1,
  BEHIND_LENGTH = 3,
  AT_TIME = 8,
  AT_INNER = 18,
  BEHIND_INNER = 20,
  AT_KIND = 21,
  AT_TRACK = 23,
  UNNAMED = 32,
  AT_NAME = 33,
  NAMED = 34,
  NUMBER = 8,  /* an annotation of up to 21 bits */
  PATTERN = 40 /* what is copied, in whole words */
};

static const uint8_t pattern[PATTERN] = {PACKET,
                                         0x80 | (UNNAMED - BEHIND_LENGTH),
                                         0,
                                         SEQUENCE,
                                         1,
                                         FLAGS,
                                         NAMES_NEEDED,
                                         TIMESTAMP,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         TRACK_EVENT,
                                         0x80 | (UNNAMED - BEHIND_INNER),
                                         0,
                                         EVENT_TYPE,
                                         END,
                                         EVENT_TRACK,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         0,
                                         EVENT_ID,
                                         0};

/* The time of an event and its track, as they stand in its steps. */
typedef struct {
  wide_t time;
  wide_t track;
} stamp_t;

static inline stamp_t stamp_of(uint64_t time_ns, uint64_t operation,
                               uint32_t part) {
  return (stamp_t){wide_of(time_ns), wide_track_of(operation, part)};
}

/* A step that ends a slice; returns where the next one begins. */
static inline uint8_t *put_end(uint8_t *at, stamp_t stamp) {
  memcpy(at, pattern, PATTERN);
  put_wide(at + AT_TIME, stamp.time);
  put_wide(at + AT_TRACK, stamp.track);
  return at + UNNAMED;
}

/* The lengths of a step of which more than the pattern has been written. */
static inline uint8_t *end_step(uint8_t *step, uint8_t *at) {
  put_length(step + AT_LENGTH, (size_t)(at - step) - BEHIND_LENGTH);
  put_length(step + AT_INNER, (size_t)(at - step) - BEHIND_INNER);
  return at;
}

/* A step with a name out of those told before. Facts may follow, then
 * end_step(). */
static inline uint8_t *put_named(uint8_t *at, stamp_t stamp, kind_t kind,
                                 uint8_t name) {
  put_end(at, stamp);
  at[AT_KIND] = (uint8_t)kind;
  at[AT_NAME] = name;
  return at + NAMED;
}

static inline uint8_t *put_number(uint8_t *at, uint8_t name, uint64_t value) {
  uint8_t *end = at + NUMBER;

  at[0] = ANNOTATION;
  at[1] = NUMBER - 2;
  at[2] = ANNOTATION_ID;
  at[3] = name;
  at[4] = ANNOTATION_UINT;
  at[5] = (uint8_t)(value | 0x80);
  at[6] = (uint8_t)(value >> 7 | 0x80);
  at[7] = value >> 14 & 0x7f;
  if (value >> 21 != 0) {
    end = put_varint(at + 5, value);
    at[1] = (uint8_t)(end - at - 2);
  }
  return end;
}

static uint8_t *put_word(uint8_t *at, uint8_t name, const char *text) {
  uint8_t *message;

  at = begin_message(at, ANNOTATION, &message);
  at = put_uint(at, ANNOTATION_ID, name);
  at = put_text(at, ANNOTATION_TEXT, text);
  end_message(message, at);
  return at;
}

/* That all is well is not told. The id of a request is told once, when it is
 * new, and again where it went wrong. */
static inline uint8_t *put_facts(uint8_t *at, const tnk_event_t *event) {
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

/* ---- Tracks ---- */

/* The track of a client, which is new or among the last ones; too many clients
 * share that of the process. */
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

/* ---- Slices ---- */

static void end_slice(const tnk__trace_t *trace, uint64_t operation,
                      uint32_t part, uint64_t time_ns) {
  const stamp_t stamp = stamp_of(time_ns, operation, part);
  uint8_t *at = room(trace, MAX_PACKET);

  if (at != NULL)
    keep(trace, put_end(at, stamp));
}

static inline uint8_t *put_phase(uint8_t *at, stamp_t stamp,
                                 const tnk_event_t *event) {
  uint8_t *facts = put_named(at, stamp, BEGIN, name_of(event));

  return end_step(at, put_facts(facts, event));
}

static void begin_phase(const tnk__trace_t *trace, const tnk_event_t *event) {
  const stamp_t stamp = stamp_of(event->time_ns, event->operation, event->part);
  uint8_t *at = room(trace, MAX_PACKET);

  if (at != NULL)
    keep(trace, put_phase(at, stamp, event));
}

static inline void put_next(const tnk__trace_t *trace,
                            const tnk_event_t *event) {
  const stamp_t stamp = stamp_of(event->time_ns, event->operation, event->part);
  uint8_t *at = room(trace, 2 * MAX_PACKET);

  if (at != NULL)
    keep(trace, put_phase(put_end(at, stamp), stamp, event));
}

static void begin_operation(tnk__trace_t *trace, const tnk_event_t *event) {
  const uint64_t parent = client_track(trace, event->client);
  const stamp_t stamp = stamp_of(event->time_ns, event->operation, 0);
  const size_t n = text_len(event->name);
  uint8_t *at = room(trace, 3 * MAX_PACKET);
  uint8_t *step;

  if (at == NULL)
    return;
  step = put_track(at, stamp.track, parent, event->name, n);
  at = put_end(step, stamp);
  step[AT_KIND] = BEGIN;
  at = put_bytes(at, EVENT_NAME, event->name, n);
  at = end_step(step, put_number(at, OPERATION, event->operation));
  keep(trace, put_phase(at, stamp, event));
}

/* The first event of a part brings the tracks of those before it as well. */
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

static void next_phase_of_part(tnk__trace_t *trace, const tnk_event_t *event) {
  if (is_new_part(trace, event))
    begin_phase(trace, event);
  else
    put_next(trace, event);
}

static void end_operation(tnk__trace_t *trace, const tnk_event_t *event) {
  const stamp_t stamp = stamp_of(event->time_ns, event->operation, 0);
  tnk__trace_split_t *split =
      trace->n_splits > 0 ? find_split(trace, event->operation) : NULL;
  uint8_t *step;
  uint8_t *at;

  if (split != NULL) {
    for (uint32_t part = split->n_parts; part-- > 1;)
      end_slice(trace, event->operation, part, event->time_ns);
    *split = trace->splits[--trace->n_splits];
  }
  at = room(trace, 2 * MAX_PACKET);
  if (at == NULL)
    return;
  step = put_end(at, stamp);
  at = put_facts(put_end(step, stamp), event);
  keep(trace, end_step(step, at));
}

static void delivered(tnk__trace_t *trace, const tnk_event_t *event) {
  const stamp_t stamp = stamp_of(event->time_ns, event->operation, 0);
  uint8_t *at = room(trace, MAX_PACKET);

  if (at != NULL)
    keep(trace, end_step(at, put_named(at, stamp, INSTANT, name_of(event))));
}

static void next_phase(tnk__trace_t *trace, const tnk_event_t *event) {
  if (event->part == 0)
    put_next(trace, event);
  else
    next_phase_of_part(trace, event);
}

/* By phase. Each of them is a function of its own, so that the one for most
 * events stays small. */
static void (*const steps[])(tnk__trace_t *, const tnk_event_t *) = {
    [TNK_PHASE_QUEUED] = begin_operation, [TNK_PHASE_WAITS] = next_phase,
    [TNK_PHASE_SENT] = next_phase,        [TNK_PHASE_ACCEPTED] = next_phase,
    [TNK_PHASE_HELD] = next_phase,        [TNK_PHASE_RESULT] = next_phase,
    [TNK_PHASE_DECODED] = end_operation,  [TNK_PHASE_FAILED] = end_operation,
    [TNK_PHASE_DELIVERED] = delivered};

void tnk__trace_event(tnk__trace_t *trace, const tnk_event_t *event) {
  if ((size_t)event->phase < sizeof(steps) / sizeof(steps[0]))
    steps[event->phase](trace, event);
}

void tnk__trace_init(tnk__trace_t *trace, const tnk_allocator_t *alloc,
                     tnk__buf_t *out, void (*full)(tnk__buf_t *out), int pid) {
  memset(trace, 0, sizeof(*trace));
  trace->alloc = alloc;
  trace->out = out;
  trace->full = full;
  write_names(trace);
  write_process(trace, pid);
}

void tnk__trace_deinit(tnk__trace_t *trace) {
  for (size_t i = 0; i < trace->n_clients; i++)
    tnk__free(trace->alloc, trace->clients[i]);
  tnk__free(trace->alloc, trace->clients);
  tnk__free(trace->alloc, trace->splits);
}

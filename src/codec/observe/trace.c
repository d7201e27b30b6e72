/*
 * Perfetto's messages Trace, TracePacket, TrackDescriptor and TrackEvent, as
 * far as they are needed. A packet is written once, straight to where it goes,
 * as there are some twenty for each operation: lengths take two bytes whatever
 * they are, which protobuf allows, and are filled in at its end.
 */
#include "codec/observe/trace.h"

#include <string.h>

#include "base/alloc.h"
#include "tnk/error.h"
#include "tnk/version.h"

enum {
  MAX_TEXT = 128,   /* what is longer is cut */
  MAX_PACKET = 640, /* with three texts */
  MAX_CLIENTS = 4096,
  PROCESS = 1, /* its track; those of clients follow */
  PART_BITS = 24
};

/* Fields, as they stand in front of their values. */
enum {
  VARINT = 0,
  LENGTH = 2,
  PACKET = 1 << 3 | LENGTH,
  TIMESTAMP = 8 << 3 | VARINT,
  SEQUENCE = 10 << 3 | VARINT,
  TRACK_EVENT = 11 << 3 | LENGTH,
  TRACK_DESCRIPTOR = 60 << 3 | LENGTH,
  UUID = 1 << 3 | VARINT,
  TRACK_NAME = 2 << 3 | LENGTH,
  TRACK_PROCESS = 3 << 3 | LENGTH,
  PARENT = 5 << 3 | VARINT,
  PID = 1 << 3 | VARINT,
  PROCESS_NAME = 6 << 3 | LENGTH,
  ANNOTATION = 4 << 3 | LENGTH,
  EVENT_TYPE = 9 << 3 | VARINT,
  EVENT_TRACK = 11 << 3 | VARINT,
  EVENT_NAME = 23 << 3 | LENGTH,
  ANNOTATION_NAME = 10 << 3 | LENGTH,
  ANNOTATION_UINT = 3 << 3 | VARINT,
  ANNOTATION_TEXT = 6 << 3 | LENGTH
};

typedef enum { BEGIN = 1, END = 2, INSTANT = 3 } kind_t;

/* ---- Bytes ---- */

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

static inline uint8_t *put_text(uint8_t *at, uint32_t field, const char *text) {
  size_t n = strlen(text);

  n = n < MAX_TEXT ? n : MAX_TEXT;
  at = put_varint(put_varint(at, field), n);
  memcpy(at, text, n);
  return at + n;
}

/* Where a message begins whose length is not known yet. */
static inline uint8_t *begin_message(uint8_t *at, uint32_t field,
                                     uint8_t **message) {
  *message = put_varint(at, field);
  return *message + 2;
}

static inline void end_message(uint8_t *message, const uint8_t *at) {
  const size_t n = (size_t)(at - message) - 2;

  message[0] = (uint8_t)(n | 0x80);
  message[1] = (uint8_t)(n >> 7);
}

/* NULL without memory. */
static uint8_t *begin_packet(tnk__trace_t *trace) {
  uint8_t *at = tnk__buf_reserve(trace->out, MAX_PACKET);

  if (at == NULL)
    return NULL;
  at = begin_message(at, PACKET, &trace->packet);
  return put_uint(at, SEQUENCE, 1);
}

static void end_packet(tnk__trace_t *trace, const uint8_t *at) {
  end_message(trace->inner, at);
  end_message(trace->packet, at);
  trace->out->len += (size_t)(at - trace->packet) + 1;
}

/* ---- Packets ---- */

static uint8_t *begin_event(tnk__trace_t *trace, kind_t kind, uint64_t track,
                            uint64_t time_ns) {
  uint8_t *at = begin_packet(trace);

  if (at == NULL)
    return NULL;
  if (trace->time_ns != time_ns || trace->n_time == 0) {
    trace->time_ns = time_ns;
    trace->n_time =
        (size_t)(put_uint(trace->time, TIMESTAMP, time_ns) - trace->time);
  }
  memcpy(at, trace->time, sizeof(trace->time)); /* a length that is known */
  at += trace->n_time;
  at = begin_message(at, TRACK_EVENT, &trace->inner);
  at = put_uint(at, EVENT_TYPE, kind);
  return put_uint(at, EVENT_TRACK, track);
}

static uint8_t *put_number(uint8_t *at, const char *name, uint64_t value) {
  uint8_t *message;

  at = begin_message(at, ANNOTATION, &message);
  at = put_text(at, ANNOTATION_NAME, name);
  at = put_uint(at, ANNOTATION_UINT, value);
  end_message(message, at);
  return at;
}

static uint8_t *put_word(uint8_t *at, const char *name, const char *text) {
  uint8_t *message;

  at = begin_message(at, ANNOTATION, &message);
  at = put_text(at, ANNOTATION_NAME, name);
  at = put_text(at, ANNOTATION_TEXT, text);
  end_message(message, at);
  return at;
}

static uint8_t *put_facts(uint8_t *at, const tnk_event_t *event) {
  if (event->attempt > 1)
    at = put_number(at, "attempt", event->attempt);
  if (event->bytes > 0)
    at = put_number(at, "bytes", event->bytes);
  if (event->status != 0)
    at = put_number(at, "status", (uint64_t)event->status);
  if (event->code != TNK_OK)
    at = put_word(at, "code", tnk_err_name(event->code));
  if (event->request_id != NULL)
    at = put_word(at, "request_id", event->request_id);
  return at;
}

static void write_track(tnk__trace_t *trace, uint64_t track, uint64_t parent,
                        const char *name) {
  uint8_t *at = begin_packet(trace);

  if (at == NULL)
    return;
  at = begin_message(at, TRACK_DESCRIPTOR, &trace->inner);
  at = put_uint(at, UUID, track);
  at = put_uint(at, PARENT, parent);
  at = put_text(at, TRACK_NAME, name);
  end_packet(trace, at);
}

static void write_process(tnk__trace_t *trace, int pid) {
  uint8_t *at = begin_packet(trace);
  uint8_t *process;

  if (at == NULL)
    return;
  at = begin_message(at, TRACK_DESCRIPTOR, &trace->inner);
  at = put_uint(at, UUID, PROCESS);
  at = begin_message(at, TRACK_PROCESS, &process);
  at = put_uint(at, PID, (uint64_t)pid);
  at = put_text(at, PROCESS_NAME, "tnk " TNK_VERSION_STRING);
  end_message(process, at);
  end_packet(trace, at);
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

static uint64_t track_of(uint64_t operation, uint32_t part) {
  return operation << PART_BITS | (part + 1);
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

static void end_slice(tnk__trace_t *trace, uint64_t track, uint64_t time_ns) {
  uint8_t *at = begin_event(trace, END, track, time_ns);

  if (at != NULL)
    end_packet(trace, at);
}

static void begin_phase(tnk__trace_t *trace, uint64_t track,
                        const tnk_event_t *event) {
  static const char *const waits[] = {
      [TNK_WAITS_FOR_NOTHING] = "waits",
      [TNK_WAITS_FOR_SESSION] = "waits for session",
      [TNK_WAITS_FOR_TURN] = "waits for turn",
      [TNK_WAITS_FOR_SLOT] = "waits for slot",
      [TNK_WAITS_FOR_BYTES] = "waits for bytes",
      [TNK_WAITS_FOR_BACK_OFF] = "waits for back-off",
      [TNK_WAITS_FOR_TOKEN] = "waits for token",
      [TNK_WAITS_FOR_WORKER] = "waits for worker",
      [TNK_WAITS_FOR_CONNECTION] = "waits for connection",
      [TNK_WAITS_FOR_RETRY] = "waits for retry",
      [TNK_WAITS_FOR_POLL] = "waits for poll"};
  const size_t n = sizeof(waits) / sizeof(waits[0]);
  const size_t what = (size_t)event->waits_for;
  uint8_t *at = begin_event(trace, BEGIN, track, event->time_ns);

  if (at == NULL)
    return;
  at = put_text(at, EVENT_NAME,
                event->phase != TNK_PHASE_WAITS ? tnk_phase_name(event->phase)
                : what < n                      ? waits[what]
                                                : waits[0]);
  at = put_facts(at, event);
  end_packet(trace, at);
}

static void begin_operation(tnk__trace_t *trace, const tnk_event_t *event) {
  const uint64_t track = track_of(event->operation, 0);
  const uint64_t parent = client_track(trace, event->client);
  uint8_t *at;

  write_track(trace, track, parent, event->name);
  at = begin_event(trace, BEGIN, track, event->time_ns);
  if (at == NULL)
    return;
  at = put_text(at, EVENT_NAME, event->name);
  at = put_number(at, "operation", event->operation);
  end_packet(trace, at);
  begin_phase(trace, track, event);
}

/* The first event of a part brings the tracks of those before it as well. */
static int is_new_part(tnk__trace_t *trace, const tnk_event_t *event) {
  const tnk_event_t queued = {.phase = TNK_PHASE_QUEUED,
                              .time_ns = event->time_ns};
  const uint64_t parent = track_of(event->operation, 0);
  tnk__trace_split_t *split;

  if (event->part == 0)
    return 0;
  split = find_split(trace, event->operation);
  if (split == NULL)
    split = add_split(trace, event->operation);
  if (split == NULL || event->part < split->n_parts)
    return 0;
  for (; split->n_parts < event->part; split->n_parts++) {
    write_track(trace, parent + split->n_parts, parent, "part");
    begin_phase(trace, parent + split->n_parts, &queued);
  }
  write_track(trace, parent + split->n_parts++, parent, "part");
  return 1;
}

static void end_operation(tnk__trace_t *trace, const tnk_event_t *event) {
  const uint64_t track = track_of(event->operation, 0);
  tnk__trace_split_t *split =
      trace->n_splits > 0 ? find_split(trace, event->operation) : NULL;
  uint8_t *at;

  if (split != NULL) {
    for (uint32_t part = split->n_parts; part-- > 1;)
      end_slice(trace, track_of(event->operation, part), event->time_ns);
    *split = trace->splits[--trace->n_splits];
  }
  end_slice(trace, track, event->time_ns);
  at = begin_event(trace, END, track, event->time_ns);
  if (at != NULL)
    end_packet(trace, put_facts(at, event));
}

static void delivered(tnk__trace_t *trace, const tnk_event_t *event) {
  uint8_t *at = begin_event(trace, INSTANT, track_of(event->operation, 0),
                            event->time_ns);

  if (at != NULL)
    end_packet(trace, put_text(at, EVENT_NAME, tnk_phase_name(event->phase)));
}

void tnk__trace_event(tnk__trace_t *trace, const tnk_event_t *event) {
  const uint64_t track = track_of(event->operation, event->part);

  switch (event->phase) {
  case TNK_PHASE_QUEUED:
    begin_operation(trace, event);
    break;
  case TNK_PHASE_DECODED:
  case TNK_PHASE_FAILED:
    end_operation(trace, event);
    break;
  case TNK_PHASE_DELIVERED:
    delivered(trace, event);
    break;
  default:
    if (!is_new_part(trace, event))
      end_slice(trace, track, event->time_ns);
    begin_phase(trace, track, event);
    break;
  }
}

void tnk__trace_init(tnk__trace_t *trace, const tnk_allocator_t *alloc,
                     tnk__buf_t *out, int pid) {
  memset(trace, 0, sizeof(*trace));
  trace->alloc = alloc;
  trace->out = out;
  write_process(trace, pid);
}

void tnk__trace_deinit(tnk__trace_t *trace) {
  for (size_t i = 0; i < trace->n_clients; i++)
    tnk__free(trace->alloc, trace->clients[i]);
  tnk__free(trace->alloc, trace->clients);
  tnk__free(trace->alloc, trace->splits);
}

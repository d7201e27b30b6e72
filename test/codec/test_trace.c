/* SPDX-License-Identifier: MIT */
/* A trace of Perfetto: numbers and times of any size. That it is whole, nested
 * and true test/interop/trace looks at, with a program's events. */
#include <string.h>

#include "lib/observe/trace.h"
#include "support/test.h"
#include "tnk/error.h"

typedef struct {
  const uint8_t *at;
  const uint8_t *end;
} bytes_t;

static uint64_t read_varint(bytes_t *in) {
  uint64_t value = 0;

  for (unsigned shift = 0;; shift += 7) {
    CHECK(in->at < in->end && shift < 64);
    value |= (uint64_t)(*in->at & 0x7f) << shift;
    if (*in->at++ < 0x80)
      return value;
  }
}

/* The first field of that number in a message: its bytes, or what it says. */
static int find(bytes_t in, uint64_t field, bytes_t *message, uint64_t *value) {
  while (in.at < in.end) {
    const uint64_t tag = read_varint(&in);
    const uint64_t number = read_varint(&in);
    if (tag % 8 == 2) {
      CHECK(number <= (uint64_t)(in.end - in.at));
      *message = (bytes_t){in.at, in.at + number};
      in.at += number;
    } else {
      CHECK_INT(tag % 8, 0);
      *value = number;
    }
    if (tag / 8 == field)
      return 1;
  }
  return 0;
}

static bytes_t message_in(bytes_t in, uint64_t field) {
  bytes_t message = {NULL, NULL};
  uint64_t none;

  CHECK(find(in, field, &message, &none));
  return message;
}

static uint64_t number_in(bytes_t in, uint64_t field) {
  bytes_t none;
  uint64_t value = 0;

  CHECK(find(in, field, &none, &value));
  return value;
}

/* Fields of Perfetto's messages. */
enum {
  TIMESTAMP = 8,
  TRACK_EVENT = 11,
  DESCRIPTOR = 60,
  UUID = 1,
  PARENT = 5,
  ANNOTATION = 4,
  UINT = 3,
  KIND = 9,
  TRACK = 11
};

/* The next packet of a trace. */
static bytes_t next_packet(bytes_t *in) {
  uint64_t n;

  CHECK(in->at < in->end);
  CHECK_INT(read_varint(in), 1 << 3 | 2);
  n = read_varint(in);
  CHECK(n <= (uint64_t)(in->end - in->at));
  in->at += n;
  return (bytes_t){in->at - n, in->at};
}

typedef enum { BEGIN = 1, END = 2, INSTANT = 3 } kind_t;

/* A step of that time, kind and track; returns its event. */
static bytes_t check_step(bytes_t *in, uint64_t time_ns, kind_t kind,
                          uint64_t track) {
  const bytes_t packet = next_packet(in);
  const bytes_t event = message_in(packet, TRACK_EVENT);

  CHECK_INT(number_in(packet, TIMESTAMP), time_ns);
  CHECK_INT(number_in(event, KIND), kind);
  CHECK_INT(number_in(event, TRACK), track);
  return event;
}

static uint64_t check_number(bytes_t event) {
  return number_in(message_in(event, ANNOTATION), UINT);
}

/* ---- The trace ---- */

static tnk__trace_t trace;
static tnk__buf_t out;

static void tell(tnk_event_t event) {
  event.name = "sample";
  event.client = "sampler-0";
  tnk__trace_event(&event, &trace);
}

static void setup(void) {
  tnk__buf_init(&out, test_allocator(), 1 << 20);
  tnk__trace_init(&trace, test_allocator(), &out, NULL, 1);
  /* The client's track is told with the first of its operations. */
  tell((tnk_event_t){.operation = 1});
  tell((tnk_event_t){.operation = 1, .phase = TNK_PHASE_DECODED});
}

static void teardown(void) {
  CHECK_INT(out.err, TNK_OK);
  tnk__trace_deinit(&trace);
  tnk__buf_deinit(&out);
}

/* The life of one operation, with a step each `step_ns`. */
static void check_life(uint64_t operation, uint64_t begin_ns, uint64_t step_ns,
                       uint64_t n_bytes) {
  const size_t from = out.len;
  const uint64_t track = UINT64_C(1) << 62 | operation;
  uint64_t t = begin_ns;
  bytes_t in;

  tell((tnk_event_t){.operation = operation, .time_ns = t});
  tell((tnk_event_t){.operation = operation,
                     .time_ns = t + step_ns,
                     .phase = TNK_PHASE_SENT,
                     .attempt = 1,
                     .bytes = n_bytes});
  tell((tnk_event_t){.operation = operation,
                     .time_ns = t + 2 * step_ns,
                     .phase = TNK_PHASE_DECODED});
  tell((tnk_event_t){.operation = operation,
                     .time_ns = t + 3 * step_ns,
                     .phase = TNK_PHASE_DELIVERED});
  in = (bytes_t){out.data + from, out.data + out.len};
  CHECK_INT(number_in(message_in(next_packet(&in), DESCRIPTOR), UUID), track);
  CHECK_INT(check_number(check_step(&in, t, BEGIN, track)), operation);
  check_step(&in, t, BEGIN, track);
  t += step_ns;
  check_step(&in, t, END, track);
  CHECK_INT(check_number(check_step(&in, t, BEGIN, track)), n_bytes);
  t += step_ns;
  check_step(&in, t, END, track);
  check_step(&in, t, END, track);
  check_step(&in, t + step_ns, INSTANT, track);
  CHECK(in.at == in.end);
}

#define NS_PER_DAY UINT64_C(86400000000000)

/* Steps are copied from patterns, in which the lowest 28 bits are filled in. */
TEST(observe_P4_a_trace_has_numbers_and_times_of_any_size) {
  static const uint64_t operations[] = {2,
                                        (UINT64_C(1) << 28) - 1,
                                        UINT64_C(1) << 28,
                                        (UINT64_C(1) << 28) + 5,
                                        3, /* and back */
                                        UINT64_C(0x123456789),
                                        (UINT64_C(1) << 40) - 1};

  setup();
  for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
    check_life(operations[i], 5, 1, 100);
    check_life(operations[i], (UINT64_C(1) << 28) - 1, 1, 1);
    check_life(operations[i], 400 * NS_PER_DAY, UINT64_C(1) << 28, 1);
    check_life(operations[i], 400 * NS_PER_DAY, 7, (UINT64_C(1) << 28) - 1);
    check_life(operations[i], 400 * NS_PER_DAY, 7, UINT64_C(1) << 28);
    check_life(operations[i], 400 * NS_PER_DAY, 7, UINT64_C(1) << 62);
  }
  teardown();
}

/* What an operation begins with is kept for the next one. */
TEST(observe_P4_a_trace_tells_clients_and_names_apart) {
  static const char *const names[] = {"sample", "forward", "sample"};
  static const char *const clients[] = {"a", "b", "a", "b"};
  bytes_t in, packet, track;
  size_t from;

  setup();
  for (size_t i = 0; i < 2; i++) /* their tracks */
    tnk__trace_event(
        &(tnk_event_t){.name = "x", .client = clients[i], .operation = 10 + i},
        &trace);
  from = out.len;
  for (size_t i = 0; i < 12; i++)
    tnk__trace_event(&(tnk_event_t){.name = names[i % 3],
                                    .client = clients[i / 3],
                                    .operation = 20 + i},
                     &trace);
  in = (bytes_t){out.data + from, out.data + out.len};
  for (size_t i = 0; i < 12; i++) {
    packet = next_packet(&in);
    track = message_in(packet, DESCRIPTOR);
    CHECK_INT(number_in(track, PARENT), 3 + i / 3 % 2);
    track = message_in(track, 2);
    CHECK_INT(track.end - track.at, strlen(names[i % 3]));
    CHECK(memcmp(track.at, names[i % 3], strlen(names[i % 3])) == 0);
    next_packet(&in);
    next_packet(&in);
  }
  teardown();
}

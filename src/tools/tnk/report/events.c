/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/events.h"

#include <math.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/le.h"
#include "tnk/error.h"
#include "tools/tnk/report/steps.h"

/* Fields of the messages, as wire type and number. */
enum {
  EVENT_TIME = 1 << 3 | 1,    /* double */
  EVENT_STEP = 2 << 3,        /* int64 */
  EVENT_VERSION = 3 << 3 | 2, /* string */
  EVENT_SUMMARY = 5 << 3 | 2,
  EVENT_SESSION = 7 << 3 | 2,
  SUMMARY_VALUE = 1 << 3 | 2,
  VALUE_TAG = 1 << 3 | 2,    /* string */
  VALUE_NUMBER = 2 << 3 | 5, /* float */
  SESSION_STATUS = 1 << 3,
  SESSION_START = 1
};

/* Larger than the numbers of a line of metrics. */
enum { MAX_EVENT = 4 << 20 };

typedef struct {
  FILE *to;
  const report_data_t *data;
  tnk__buf_t event;
  tnk__buf_t summary; /* the values of a line */
  tnk__buf_t part;    /* one of them */
  report_steps_t steps;
} writer_t;

/* ---- Records ---- */

/* CRC-32C (Castagnoli), bit by bit reflected. */
static uint32_t crc32c(const uint8_t *data, size_t n) {
  static uint32_t table[256];
  uint32_t crc = 0xffffffff;

  for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
    uint32_t entry = i;

    for (int bit = 0; bit < 8; bit++)
      entry = entry >> 1 ^ (entry & 1 ? UINT32_C(0x82f63b78) : 0);
    table[i] = entry;
  }
  for (size_t i = 0; i < n; i++)
    crc = crc >> 8 ^ table[(crc ^ data[i]) & 0xff];
  return crc ^ 0xffffffff;
}

/* A record has masked checksums, because data may have a checksum itself. */
static uint32_t masked(const uint8_t *data, size_t n) {
  const uint32_t crc = crc32c(data, n);

  return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static void put_record(FILE *to, const uint8_t *data, size_t n) {
  uint8_t head[12], tail[4];

  tnk__le_put64(head, n);
  tnk__le_put32(head + 8, masked(head, 8));
  tnk__le_put32(tail, masked(data, n));
  (void)fwrite(head, 1, sizeof(head), to);
  (void)fwrite(data, 1, n, to);
  (void)fwrite(tail, 1, sizeof(tail), to);
}

/* ---- Messages ---- */

static void put_varint(tnk__buf_t *out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    tnk__buf_byte(out, (uint8_t)(value | 0x80));
  tnk__buf_byte(out, (uint8_t)value);
}

static void put_bytes(tnk__buf_t *out, int field, const void *data, size_t n) {
  put_varint(out, (uint64_t)field);
  put_varint(out, n);
  tnk__buf_append(out, data, n);
}

static void begin_event(writer_t *writer, int64_t step) {
  const double time_s = report_steps_time(writer->data, step);
  uint64_t bits;
  uint8_t time[8];

  memcpy(&bits, &time_s, sizeof(bits));
  tnk__le_put64(time, bits);
  tnk__buf_clear(&writer->event);
  put_varint(&writer->event, EVENT_TIME);
  tnk__buf_append(&writer->event, time, sizeof(time));
  put_varint(&writer->event, EVENT_STEP);
  put_varint(&writer->event, (uint64_t)step);
}

static int end_event(writer_t *writer) {
  if (writer->event.err != TNK_OK || writer->summary.err != TNK_OK ||
      writer->part.err != TNK_OK)
    return TNK_ENOMEM;
  put_record(writer->to, writer->event.data, writer->event.len);
  return TNK_OK;
}

static int put_version(writer_t *writer) {
  static const char version[] = "brain.Event:2";

  begin_event(writer, 0);
  put_bytes(&writer->event, EVENT_VERSION, version, sizeof(version) - 1);
  return end_event(writer);
}

/* Forget the steps from this one on. */
static int put_restart(writer_t *writer, int64_t step) {
  static const uint8_t start[] = {SESSION_STATUS, SESSION_START};

  begin_event(writer, step);
  put_bytes(&writer->event, EVENT_SESSION, start, sizeof(start));
  return end_event(writer);
}

/* Add a value to the summary. */
static void put_value(writer_t *writer, const char *key, double value) {
  /* null is not a number. A value that is too large for a float becomes
   * infinite. */
  const float number = (float)value;
  tnk__buf_t *part = &writer->part;
  uint32_t bits;
  uint8_t data[4];

  memcpy(&bits, &number, sizeof(bits));
  tnk__le_put32(data, bits);
  tnk__buf_clear(part);
  put_bytes(part, VALUE_TAG, key, strlen(key));
  put_varint(part, VALUE_NUMBER);
  tnk__buf_append(part, data, sizeof(data));
  put_bytes(&writer->summary, SUMMARY_VALUE, part->data, part->len);
}

static int put_line(const json_t *line, void *user) {
  writer_t *writer = user;
  const char *key;
  json_t *value;
  int64_t step;
  int is_back;
  int err = TNK_OK;

  if (!report_steps_next(&writer->steps, line, &step, &is_back))
    return TNK_EPROTO;
  if (is_back)
    err = put_restart(writer, step);
  tnk__buf_clear(&writer->summary);
  json_object_foreach((json_t *)line, key, value) {
    if (strcmp(key, "step") == 0 ||
        (!json_is_number(value) && !json_is_null(value)))
      continue;
    put_value(writer, key,
              json_is_null(value) ? NAN : json_number_value(value));
  }
  if (writer->summary.len == 0 || err != TNK_OK)
    return err;
  begin_event(writer, step);
  put_bytes(&writer->event, EVENT_SUMMARY, writer->summary.data,
            writer->summary.len);
  return end_event(writer);
}

int report_events_put(FILE *to, const report_data_t *data) {
  writer_t writer = {.to = to, .data = data};
  tnk__buf_t *const bufs[] = {&writer.event, &writer.summary, &writer.part};
  report_lines_t lines;
  int err;

  report_steps_init(&writer.steps, &data->run);
  for (size_t i = 0; i < 3; i++)
    tnk__buf_init(bufs[i], tnk__allocator_default(), MAX_EVENT);
  err = put_version(&writer);
  if (err == TNK_OK)
    err = report_lines_read(&lines, data->run.metrics, put_line, &writer);
  for (size_t i = 0; i < 3; i++)
    tnk__buf_deinit(bufs[i]);
  return err;
}

/* SPDX-License-Identifier: MIT */
#include "lib/otlp/encode.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/format/le.h"
#include "tnk/version.h"

/* ---- Fields ---- */

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5, MAX_VARINT = 10 };

static size_t write_varint(uint8_t out[MAX_VARINT], uint64_t value) {
  size_t n = 0;

  do {
    uint8_t byte = (uint8_t)(value & 0x7f);

    value >>= 7;
    out[n++] = (uint8_t)(value != 0 ? byte | 0x80 : byte);
  } while (value != 0);
  return n;
}

static void put_raw(tnk__buf_t *out, uint64_t value) {
  uint8_t bytes[MAX_VARINT];

  tnk__buf_append(out, bytes, write_varint(bytes, value));
}

static void put_tag(tnk__buf_t *out, uint32_t field, uint32_t type) {
  put_raw(out, (uint64_t)field << 3 | type);
}

static void put_varint(tnk__buf_t *out, uint32_t field, uint64_t value) {
  put_tag(out, field, VARINT);
  put_raw(out, value);
}

static void put_fixed64(tnk__buf_t *out, uint32_t field, uint64_t value) {
  uint8_t bytes[8];

  put_tag(out, field, FIXED64);
  tnk__le_put64(bytes, value);
  tnk__buf_append(out, bytes, sizeof(bytes));
}

static void put_double(tnk__buf_t *out, uint32_t field, double value) {
  uint64_t bits;

  memcpy(&bits, &value, sizeof(bits));
  put_fixed64(out, field, bits);
}

static void put_bytes(tnk__buf_t *out, uint32_t field, const void *data,
                      size_t n) {
  put_tag(out, field, LENGTH);
  put_raw(out, n);
  tnk__buf_append(out, data, n);
}

/* Copy a string, with '?' for each byte that is not UTF-8. */
static void put_text(tnk__buf_t *out, uint32_t field, const char *text) {
  const size_t n = strlen(text);

  put_bytes(out, field, text, n);
  if (out->err != TNK_OK || tnk__utf8_valid((const uint8_t *)text, n) == n)
    return;
  for (size_t i = 0; i < n;) {
    const size_t good = tnk__utf8_valid((const uint8_t *)text + i, n - i);

    i += good;
    if (i < n)
      out->data[out->len - n + i++] = '?';
  }
}

static void put_id(tnk__buf_t *out, uint32_t field, uint64_t id) {
  uint8_t bytes[8];

  for (int i = 0; i < 8; i++)
    bytes[i] = (uint8_t)(id >> (56 - 8 * i));
  put_bytes(out, field, bytes, sizeof(bytes));
}

/* Begin a message. Returns its position, for end_message(). */
static size_t begin_message(tnk__buf_t *out, uint32_t field) {
  put_tag(out, field, LENGTH);
  return out->len;
}

/* The length precedes the message, so the message is moved. */
static void end_message(tnk__buf_t *out, size_t start) {
  uint8_t bytes[MAX_VARINT];
  size_t n, n_length;

  if (out->err != TNK_OK)
    return;
  n = out->len - start;
  n_length = write_varint(bytes, n);
  if (tnk__buf_reserve(out, n_length) == NULL)
    return;
  memmove(out->data + start + n_length, out->data + start, n);
  memcpy(out->data + start, bytes, n_length);
  out->len += n_length;
}

/* ---- Attributes ---- */

static void put_string_value(tnk__buf_t *out, uint32_t field,
                             const char *text) {
  const size_t value = begin_message(out, field);

  put_text(out, 1, text);
  end_message(out, value);
}

static void put_texts(tnk__buf_t *out, const tnk_otlp_attribute_t *attribute) {
  const size_t array = begin_message(out, 5);

  for (size_t i = 0; i < attribute->n_texts; i++)
    put_string_value(out, 1, attribute->texts[i]);
  end_message(out, array);
}

static void put_value(tnk__buf_t *out, const tnk_otlp_attribute_t *attribute) {
  switch (attribute->type) {
  case TNK_OTLP_TEXT:
    put_text(out, 1, attribute->text);
    break;
  case TNK_OTLP_BOOL:
    put_varint(out, 2, attribute->integer != 0);
    break;
  case TNK_OTLP_INTEGER:
    put_varint(out, 3, (uint64_t)attribute->integer);
    break;
  case TNK_OTLP_NUMBER:
    put_double(out, 4, attribute->number);
    break;
  case TNK_OTLP_TEXTS:
    put_texts(out, attribute);
    break;
  }
}

static void put_attributes(tnk__buf_t *out, uint32_t field,
                           const tnk_otlp_attribute_t *attributes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const tnk_otlp_attribute_t *attribute = &attributes[i];
    size_t pair, value;

    if (attribute->key == NULL ||
        (attribute->type == TNK_OTLP_TEXT && attribute->text == NULL))
      continue;
    pair = begin_message(out, field);
    put_text(out, 1, attribute->key);
    value = begin_message(out, 2);
    put_value(out, attribute);
    end_message(out, value);
    end_message(out, pair);
  }
}

/* ---- Spans ---- */

/* Bits of Span.flags. */
enum { IS_SAMPLED = 0x001, KNOWS_REMOTE = 0x100, IS_REMOTE = 0x200 };

enum { STATUS_ERROR = 2 };

void tnk__otlp_put_event(tnk__buf_t *out, const char *name, uint64_t unix_ns,
                         const tnk_otlp_attribute_t *attributes, size_t n) {
  const size_t event = begin_message(out, 11);

  put_fixed64(out, 1, unix_ns);
  put_text(out, 2, name);
  put_attributes(out, 3, attributes, n);
  end_message(out, event);
}

static void put_flags(tnk__buf_t *out, const tnk_otlp_span_t *span) {
  uint32_t flags = KNOWS_REMOTE;
  uint8_t bytes[4];

  if (span->is_sampled)
    flags |= IS_SAMPLED;
  if (span->is_remote)
    flags |= IS_REMOTE;
  tnk__le_put32(bytes, flags);
  put_tag(out, 16, FIXED32);
  tnk__buf_append(out, bytes, sizeof(bytes));
}

void tnk__otlp_put_span(tnk__buf_t *out, const tnk__otlp_record_t *record) {
  const tnk_otlp_span_t *span = record->span;
  const tnk_otlp_end_t *end = record->end;
  const size_t start = begin_message(out, 2);

  put_bytes(out, 1, span->trace_id, sizeof(span->trace_id));
  put_id(out, 2, span->span_id);
  if (span->parent_id != 0)
    put_id(out, 4, span->parent_id);
  put_text(out, 5, end->name);
  put_varint(out, 6, (uint64_t)end->kind);
  put_fixed64(out, 7, record->start_unix_ns);
  put_fixed64(out, 8, record->end_unix_ns);
  put_attributes(out, 9, end->attributes, end->n_attributes);
  if (record->events != NULL && record->events->len > 0)
    tnk__buf_append(out, record->events->data, record->events->len);
  if (record->n_dropped_events > 0)
    put_varint(out, 12, record->n_dropped_events);
  if (end->is_error) {
    const size_t status = begin_message(out, 15);

    put_varint(out, 3, STATUS_ERROR);
    end_message(out, status);
  }
  put_flags(out, span);
  end_message(out, start);
}

/* ---- Metrics ---- */

enum { CUMULATIVE = 2 };

static void put_period(tnk__buf_t *out, const tnk__otlp_period_t *period) {
  put_fixed64(out, 2, period->start_unix_ns);
  put_fixed64(out, 3, period->unix_ns);
}

static size_t begin_metric(tnk__buf_t *out, const tnk_otlp_metric_t *metric) {
  const size_t start = begin_message(out, 2);

  put_text(out, 1, metric->name);
  if (metric->description != NULL)
    put_text(out, 2, metric->description);
  if (metric->unit != NULL)
    put_text(out, 3, metric->unit);
  return start;
}

void tnk__otlp_put_numbers(tnk__buf_t *out, const tnk__otlp_period_t *period,
                           const tnk_otlp_metric_t *metric,
                           const tnk_otlp_number_t *points, size_t n) {
  const size_t start = begin_metric(out, metric);
  const size_t data = begin_message(out, metric->is_counter ? 7 : 5);

  for (size_t i = 0; i < n; i++) {
    const size_t point = begin_message(out, 1);

    put_period(out, period);
    put_fixed64(out, 6, (uint64_t)points[i].value);
    put_attributes(out, 7, points[i].attributes, points[i].n_attributes);
    end_message(out, point);
  }
  if (metric->is_counter) {
    put_varint(out, 2, CUMULATIVE);
    put_varint(out, 3, 1);
  }
  end_message(out, data);
  end_message(out, start);
}

static void put_histogram(tnk__buf_t *out, const tnk__otlp_period_t *period,
                          const tnk_otlp_histogram_t *histogram) {
  const size_t point = begin_message(out, 1);
  uint64_t n = 0;
  size_t array;

  for (size_t i = 0; i <= histogram->n_bounds; i++)
    n += histogram->counts[i];
  put_period(out, period);
  put_fixed64(out, 4, n);
  put_double(out, 5, histogram->sum);
  array = begin_message(out, 6);
  for (size_t i = 0; i <= histogram->n_bounds; i++) {
    uint8_t bytes[8];

    tnk__le_put64(bytes, histogram->counts[i]);
    tnk__buf_append(out, bytes, sizeof(bytes));
  }
  end_message(out, array);
  array = begin_message(out, 7);
  for (size_t i = 0; i < histogram->n_bounds; i++) {
    uint8_t bytes[8];
    uint64_t bits;

    memcpy(&bits, &histogram->bounds[i], sizeof(bits));
    tnk__le_put64(bytes, bits);
    tnk__buf_append(out, bytes, sizeof(bytes));
  }
  end_message(out, array);
  put_attributes(out, 9, histogram->attributes, histogram->n_attributes);
  end_message(out, point);
}

void tnk__otlp_put_histograms(tnk__buf_t *out, const tnk__otlp_period_t *period,
                              const tnk_otlp_metric_t *metric,
                              const tnk_otlp_histogram_t *points, size_t n) {
  const size_t start = begin_metric(out, metric);
  const size_t data = begin_message(out, 9);

  for (size_t i = 0; i < n; i++)
    put_histogram(out, period, &points[i]);
  put_varint(out, 2, CUMULATIVE);
  end_message(out, data);
  end_message(out, start);
}

/* ---- Requests ---- */

void tnk__otlp_put_resource(tnk__buf_t *out,
                            const tnk_otlp_attribute_t *attributes, size_t n) {
  const size_t start = begin_message(out, 1);

  put_attributes(out, 1, attributes, n);
  end_message(out, start);
}

void tnk__otlp_put_head(tnk__buf_t *out, const tnk__buf_t *resource,
                        size_t n_items) {
  /* The scope's name and version, each with its tag and its length. */
  const size_t n_scope =
      2 + sizeof("tnk") - 1 + 2 + sizeof(TNK_VERSION_STRING) - 1;
  const size_t n_all = 2 + n_scope + n_items;
  uint8_t bytes[MAX_VARINT];

  put_tag(out, 1, LENGTH);
  put_raw(out, resource->len + 1 + write_varint(bytes, n_all) + n_all);
  tnk__buf_append(out, resource->data, resource->len);
  put_tag(out, 2, LENGTH);
  put_raw(out, n_all);
  put_tag(out, 1, LENGTH);
  put_raw(out, n_scope);
  put_text(out, 1, "tnk");
  put_text(out, 2, TNK_VERSION_STRING);
}

/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/utf8.h"
#include "lib/observe/dump_file.h"
#include "lib/observe/meter.h"
#include "lib/observe/trace.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"
#include "tnk/observe.h"

/* ---- Names ---- */

const char *tnk_phase_name(tnk_phase_t phase) {
  static const char *const names[] = {
      [TNK_PHASE_QUEUED] = "queued",      [TNK_PHASE_WAITS] = "waits",
      [TNK_PHASE_SENT] = "sent",          [TNK_PHASE_ACCEPTED] = "accepted",
      [TNK_PHASE_HELD] = "held",          [TNK_PHASE_RESULT] = "result",
      [TNK_PHASE_DECODED] = "decoded",    [TNK_PHASE_FAILED] = "failed",
      [TNK_PHASE_DELIVERED] = "delivered"};
  const size_t n = sizeof(names) / sizeof(names[0]);

  return (size_t)phase < n ? names[phase] : "";
}

const char *tnk_waits_for_name(tnk_waits_for_t what) {
  static const char *const names[] = {[TNK_WAITS_FOR_NOTHING] = "nothing",
                                      [TNK_WAITS_FOR_SESSION] = "session",
                                      [TNK_WAITS_FOR_TURN] = "turn",
                                      [TNK_WAITS_FOR_SLOT] = "slot",
                                      [TNK_WAITS_FOR_BYTES] = "bytes",
                                      [TNK_WAITS_FOR_BACK_OFF] = "back-off",
                                      [TNK_WAITS_FOR_TOKEN] = "token",
                                      [TNK_WAITS_FOR_WORKER] = "worker",
                                      [TNK_WAITS_FOR_CONNECTION] = "connection",
                                      [TNK_WAITS_FOR_RETRY] = "retry",
                                      [TNK_WAITS_FOR_POLL] = "poll",
                                      [TNK_WAITS_FOR_LOSS] = "loss"};
  const size_t n = sizeof(names) / sizeof(names[0]);

  return (size_t)what < n ? names[what] : "";
}

/* ---- Observing ---- */

/* Writes an observer's events to files. */

enum {
  PIECE = 64 * 1024, /* size of one write */
  MAX_METRICS = 16 * 1024 * 1024
};

void tnk_observe_each(const tnk_event_t *event, void *user) {
  const tnk_observers_t *observers = user;

  if (event == NULL || observers == NULL)
    return;
  for (size_t i = 0; i < observers->n; i++)
    if (observers->items[i].call != NULL)
      observers->items[i].call(event, observers->items[i].user);
}

struct tnk_trace {
  tnk__trace_t trace;
  tnk_allocator_t alloc;
  tnk__buf_t buf; /* its `err` is the first error, which is kept */
  int fd;
};

static void flush(tnk__buf_t *buf) {
  tnk_trace_t *trace = tnk__container_of(buf, tnk_trace_t, buf);

  if (buf->err != TNK_OK)
    return;
  buf->err = tnk__file_write(trace->fd, buf->data, buf->len);
  buf->len = 0;
}

int tnk_trace_open(tnk_trace_t **out, const char *path,
                   const tnk_allocator_t *allocator) {
  const tnk_allocator_t *alloc =
      allocator != NULL ? allocator : tnk__allocator_default();
  tnk_trace_t *trace;

  if (out == NULL)
    return TNK_EINVAL;
  *out = NULL;
  if (path == NULL)
    return TNK_EINVAL;
  trace = tnk__calloc(alloc, 1, sizeof(*trace));
  if (trace == NULL)
    return TNK_ENOMEM;
  trace->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (trace->fd < 0) {
    tnk__free(alloc, trace);
    return TNK_EFILE;
  }
  trace->alloc = *alloc;
  tnk__buf_init(&trace->buf, &trace->alloc, PIECE);
  if (tnk__buf_reserve(&trace->buf, PIECE) == NULL) {
    close(trace->fd);
    tnk__free(alloc, trace);
    return TNK_ENOMEM;
  }
  tnk__trace_init(&trace->trace, &trace->alloc, &trace->buf, flush,
                  (int)getpid());
  *out = trace;
  return TNK_OK;
}

void tnk_trace_event(const tnk_event_t *event, void *user) {
  tnk_trace_t *trace = user;

  if (trace != NULL)
    tnk__trace_event(event, &trace->trace);
}

int tnk_trace_close(tnk_trace_t *trace) {
  tnk_allocator_t alloc;
  int err;

  if (trace == NULL)
    return TNK_OK;
  flush(&trace->buf);
  err = trace->buf.err;
  if (close(trace->fd) != 0 && err == TNK_OK)
    err = TNK_EFILE;
  alloc = trace->alloc;
  tnk__trace_deinit(&trace->trace);
  tnk__buf_deinit(&trace->buf);
  tnk__free(&alloc, trace);
  return err;
}

/* ---- Observing: numbers for Prometheus ---- */

struct tnk_meter {
  tnk__meter_t meter;
  tnk_allocator_t alloc;
};

tnk_meter_t *tnk_meter_new(const tnk_allocator_t *allocator) {
  const tnk_allocator_t *alloc =
      allocator != NULL ? allocator : tnk__allocator_default();
  tnk_meter_t *meter = tnk__calloc(alloc, 1, sizeof(*meter));

  if (meter == NULL)
    return NULL;
  meter->alloc = *alloc;
  tnk__meter_init(&meter->meter, &meter->alloc);
  return meter;
}

void tnk_meter_free(tnk_meter_t *meter) {
  tnk_allocator_t alloc;

  if (meter == NULL)
    return;
  alloc = meter->alloc;
  tnk__meter_deinit(&meter->meter);
  tnk__free(&alloc, meter);
}

void tnk_meter_event(const tnk_event_t *event, void *user) {
  tnk_meter_t *meter = user;

  if (meter != NULL)
    tnk__meter_event(event, &meter->meter);
}

/* The caller frees `out`, also after a failure. */
static int meter_text(const tnk_meter_t *meter, tnk__buf_t *out) {
  tnk__buf_init(out, &meter->alloc, MAX_METRICS);
  tnk__meter_write(&meter->meter, out);
  return out->err;
}

size_t tnk_meter_text(const tnk_meter_t *meter, char *text, size_t text_size) {
  tnk__buf_t buf;
  size_t n = 0;
  size_t fits;

  if (text != NULL && text_size > 0)
    text[0] = '\0';
  if (meter == NULL)
    return 0;
  if (meter_text(meter, &buf) == TNK_OK)
    n = buf.len;
  if (text != NULL && text_size > 0 && n > 0) {
    fits = n < text_size ? n : text_size - 1;
    memcpy(text, buf.data, fits);
    text[fits] = '\0';
  }
  tnk__buf_deinit(&buf);
  return n;
}

int tnk_meter_save(const tnk_meter_t *meter, const char *path) {
  tnk__buf_t buf;
  int err;

  if (meter == NULL || path == NULL)
    return TNK_EINVAL;
  err = meter_text(meter, &buf);
  if (err == TNK_OK)
    err = tnk__file_replace(&meter->alloc, path, buf.data, buf.len);
  tnk__buf_deinit(&buf);
  return err;
}

/* ---- Observing: numbers of a run ---- */

static int write_numbers(tnk__buf_t *out, int64_t step,
                         const tnk_number_t *numbers, size_t n) {
  tnk__json_writer_t json;

  tnk__json_writer_init(&json, out);
  tnk__json_begin_object(&json);
  if (step != TNK_ABSENT)
    tnk__json_put_int(&json, "step", step);
  for (size_t i = 0; i < n; i++)
    tnk__json_put_double(&json, numbers[i].key, numbers[i].value);
  tnk__json_end(&json);
  tnk__buf_byte(out, '\n');
  return tnk__json_finish(&json);
}

static int is_utf8(const char *text) {
  const size_t n = strlen(text);

  return tnk__utf8_valid((const uint8_t *)text, n) == n;
}

/* Returns whether the last line of a file has no newline. */
static int is_torn(int fd) {
  const off_t size = lseek(fd, 0, SEEK_END);
  char last = '\n';

  return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

int tnk_numbers_append(const char *path, int64_t step,
                       const tnk_number_t *numbers, size_t n) {
  tnk__buf_t buf;
  int err;
  int fd;

  if (path == NULL || (numbers == NULL && n > 0))
    return TNK_EINVAL;
  for (size_t i = 0; i < n; i++)
    if (numbers[i].key == NULL || !is_utf8(numbers[i].key))
      return TNK_EINVAL;
  tnk__buf_init(&buf, tnk__allocator_default(), MAX_METRICS);
  tnk__buf_byte(&buf, '\n');
  err = write_numbers(&buf, step, numbers, n);
  if (err == TNK_OK) {
    fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    err = fd < 0 ? TNK_EFILE : TNK_OK;
  }
  if (err == TNK_OK) {
    const size_t skip = is_torn(fd) ? 0 : 1;
    err = tnk__file_write(fd, buf.data + skip, buf.len - skip);
    if (close(fd) != 0 && err == TNK_OK)
      err = TNK_EFILE;
  }
  tnk__buf_deinit(&buf);
  return err;
}

/* SPDX-License-Identifier: MIT */
#include "lib/observe/meter.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

enum { MIN_PLACES = 64 };

/* ---- Operations in progress ---- */

/* Consecutive numbers are spread over the table, so that searches end early. */
static size_t place_of(const tnk__meter_t *meter, uint64_t operation) {
  return (size_t)(operation * 0x9e3779b97f4a7c15u >> 32) &
         (meter->n_places - 1);
}

/* The slot of an operation, or the free slot where the search ends. */
static inline tnk__meter_live_t *search(const tnk__meter_t *meter,
                                        uint64_t operation) {
  size_t i = place_of(meter, operation);

  while (meter->live[i].operation != operation && meter->live[i].operation != 0)
    i = (i + 1) & (meter->n_places - 1);
  return &meter->live[i];
}

/* NULL: unknown operation. */
static inline tnk__meter_live_t *find(const tnk__meter_t *meter,
                                      uint64_t operation) {
  tnk__meter_live_t *live;

  if (meter->n_live == 0)
    return NULL;
  live = search(meter, operation);
  return live->operation != 0 ? live : NULL;
}

static int grow(tnk__meter_t *meter) {
  tnk__meter_live_t *old = meter->live;
  const size_t n_old = meter->n_places;
  const size_t n = n_old > 0 ? 2 * n_old : MIN_PLACES;
  tnk__meter_live_t *live = tnk__calloc(meter->alloc, n, sizeof(*live));

  if (live == NULL)
    return TNK_ENOMEM;
  meter->live = live;
  meter->n_places = n;
  for (size_t i = 0; i < n_old; i++)
    if (old[i].operation != 0)
      *search(meter, old[i].operation) = old[i];
  tnk__free(meter->alloc, old);
  return TNK_OK;
}

/* Entries after the freed slot are moved up if a search would no longer find
 * them. */
static void take_out(tnk__meter_t *meter, tnk__meter_live_t *live) {
  const size_t mask = meter->n_places - 1;
  size_t hole = (size_t)(live - meter->live);
  size_t i = hole;

  for (;;) {
    size_t home;
    i = (i + 1) & mask;
    if (meter->live[i].operation == 0)
      break;
    home = place_of(meter, meter->live[i].operation);
    if (((i - home) & mask) < ((i - hole) & mask))
      continue;
    meter->live[hole] = meter->live[i];
    hole = i;
  }
  meter->live[hole].operation = 0;
  meter->n_live--;
}

/* ---- Kinds ---- */

static int more_kinds(tnk__meter_t *meter) {
  const size_t max = meter->max_kinds > 0 ? 2 * meter->max_kinds : 8;
  tnk__meter_kind_t *kinds =
      tnk__realloc(meter->alloc, meter->kinds, max * sizeof(*kinds));

  if (kinds == NULL)
    return TNK_ENOMEM;
  meter->kinds = kinds;
  meter->max_kinds = max;
  return TNK_OK;
}

/* NULL without memory. Names are static, so pointers are compared first. */
static tnk__meter_kind_t *kind_of(tnk__meter_t *meter, const char *name) {
  const size_t n = meter->n_kinds;

  for (size_t i = 0; i < n; i++)
    if (meter->kinds[i].name == name || strcmp(meter->kinds[i].name, name) == 0)
      return &meter->kinds[i];
  if (n == TNK__MAX_KINDS)
    return &meter->kinds[n - 1];
  if (n == meter->max_kinds && more_kinds(meter) != TNK_OK)
    return NULL;
  memset(&meter->kinds[n], 0, sizeof(meter->kinds[n]));
  meter->kinds[n].name = n + 1 == TNK__MAX_KINDS ? "other" : name;
  meter->n_kinds++;
  return &meter->kinds[n];
}

static void note_failure(tnk__meter_kind_t *kind, int code) {
  size_t i = 0;

  while (i < kind->n_failures && kind->failures[i].code != code)
    i++;
  if (i == TNK__MAX_CODES)
    i--;
  else if (i == kind->n_failures)
    kind->failures[kind->n_failures++] = (tnk__meter_failure_t){.code = code};
  kind->failures[i].n++;
}

/* ---- Events ---- */

#define MS UINT64_C(1000000)
static const uint64_t limits_ns[TNK__N_BUCKETS - 1] = {
    1 * MS,     5 * MS,     10 * MS,     50 * MS,      100 * MS,
    500 * MS,   1000 * MS,  2000 * MS,   5000 * MS,    10000 * MS,
    30000 * MS, 60000 * MS, 300000 * MS, 1800000 * MS, 7200000 * MS};
#undef MS

static size_t bucket_of(uint64_t ns) {
  size_t i = 0;

  while (i < TNK__N_BUCKETS - 1 && ns > limits_ns[i])
    i++;
  return i;
}

static void begin(const tnk_event_t *event, tnk__meter_t *meter) {
  tnk__meter_kind_t *kind = kind_of(meter, event->name);

  if (kind == NULL ||
      (2 * (meter->n_live + 1) > meter->n_places && grow(meter) != TNK_OK)) {
    meter->n_lost++;
    return;
  }
  kind->n_pending++;
  *search(meter, event->operation) =
      (tnk__meter_live_t){.operation = event->operation,
                          .begin_ns = event->time_ns,
                          .since_ns = event->time_ns,
                          .span = TNK_PHASE_QUEUED,
                          .kind = (uint8_t)(kind - meter->kinds)};
  meter->n_live++;
}

static inline void close_span(tnk__meter_kind_t *kind,
                              const tnk__meter_live_t *live,
                              const tnk_event_t *event) {
  kind->span_ns[live->span] += event->time_ns - live->since_ns;
}

static void end(const tnk_event_t *event, tnk__meter_t *meter) {
  tnk__meter_live_t *live = find(meter, event->operation);
  tnk__meter_kind_t *kind;
  uint64_t took_ns;

  if (live == NULL)
    return;
  kind = &meter->kinds[live->kind];
  close_span(kind, live, event);
  took_ns = event->time_ns - live->begin_ns;
  kind->n_pending--;
  kind->took_ns += took_ns;
  kind->n_by_time[bucket_of(took_ns)]++;
  if (event->phase == TNK_PHASE_FAILED)
    note_failure(kind, event->code);
  else
    kind->n_ok++;
  take_out(meter, live);
}

/* End the current span and start the next one. NULL: unknown operation. */
static inline tnk__meter_kind_t *step(tnk__meter_t *meter,
                                      const tnk_event_t *event, uint8_t span) {
  tnk__meter_live_t *live = find(meter, event->operation);
  tnk__meter_kind_t *kind;

  if (live == NULL)
    return NULL;
  kind = &meter->kinds[live->kind];
  close_span(kind, live, event);
  live->since_ns = event->time_ns;
  live->span = span;
  return kind;
}

static void waits(const tnk_event_t *event, tnk__meter_t *meter) {
  const unsigned what = (unsigned)event->waits_for;
  const unsigned span = what <= TNK_WAITS_FOR_LOSS ? TNK__N_PHASES + what
                                                   : (unsigned)TNK_PHASE_WAITS;
  tnk__meter_kind_t *kind = step(meter, event, (uint8_t)span);

  if (kind != NULL)
    kind->n_retries += what == TNK_WAITS_FOR_RETRY;
}

static void sent(const tnk_event_t *event, tnk__meter_t *meter) {
  tnk__meter_kind_t *kind = step(meter, event, TNK_PHASE_SENT);

  if (kind == NULL)
    return;
  kind->n_sent++;
  kind->bytes_sent += event->bytes;
}

static void accepted(const tnk_event_t *event, tnk__meter_t *meter) {
  step(meter, event, TNK_PHASE_ACCEPTED);
}

static void held(const tnk_event_t *event, tnk__meter_t *meter) {
  tnk__meter_kind_t *kind = step(meter, event, TNK_PHASE_HELD);

  if (kind != NULL)
    kind->bytes_sent += event->bytes;
}

static void result(const tnk_event_t *event, tnk__meter_t *meter) {
  tnk__meter_kind_t *kind = step(meter, event, TNK_PHASE_RESULT);

  if (kind != NULL)
    kind->bytes_received += event->bytes;
}

/* Indexed by phase. */
static void (*const steps[])(const tnk_event_t *, tnk__meter_t *) = {
    [TNK_PHASE_QUEUED] = begin, [TNK_PHASE_WAITS] = waits,
    [TNK_PHASE_SENT] = sent,    [TNK_PHASE_ACCEPTED] = accepted,
    [TNK_PHASE_HELD] = held,    [TNK_PHASE_RESULT] = result,
    [TNK_PHASE_DECODED] = end,  [TNK_PHASE_FAILED] = end};

void tnk__meter_event(const tnk_event_t *event, tnk__meter_t *meter) {
  if ((size_t)event->phase < sizeof(steps) / sizeof(steps[0]))
    steps[event->phase](event, meter);
}

void tnk__meter_init(tnk__meter_t *meter, const tnk_allocator_t *alloc) {
  memset(meter, 0, sizeof(*meter));
  meter->alloc = alloc;
}

void tnk__meter_deinit(tnk__meter_t *meter) {
  tnk__free(meter->alloc, meter->kinds);
  tnk__free(meter->alloc, meter->live);
}

/* ---- Text ---- */

/* Write nanoseconds as seconds, independently of the locale. */
static void put_seconds(tnk__buf_t *out, uint64_t ns) {
  tnk__buf_printf(out, "%" PRIu64 ".%09" PRIu64 "\n", ns / 1000000000,
                  ns % 1000000000);
}

static void put_head(tnk__buf_t *out, const char *name, const char *type,
                     const char *help) {
  tnk__buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Write one number for each kind. */
static void put_each(const tnk__meter_t *meter, tnk__buf_t *out,
                     const char *name, const char *type, const char *help,
                     size_t offset) {
  uint64_t value;

  put_head(out, name, type, help);
  for (size_t i = 0; i < meter->n_kinds; i++) {
    memcpy(&value, (const char *)&meter->kinds[i] + offset, sizeof(value));
    tnk__buf_printf(out, "%s{operation=\"%s\"} %" PRIu64 "\n", name,
                    meter->kinds[i].name, value);
  }
}

static void put_outcomes(const tnk__meter_t *meter, tnk__buf_t *out) {
  static const char name[] = "tnk_operations_total";

  put_head(out, name, "counter", "Operations that have ended.");
  for (size_t i = 0; i < meter->n_kinds; i++) {
    const tnk__meter_kind_t *kind = &meter->kinds[i];
    tnk__buf_printf(out,
                    "%s{operation=\"%s\",outcome=\"TNK_OK\"} %" PRIu64 "\n",
                    name, kind->name, kind->n_ok);
    for (size_t k = 0; k < kind->n_failures; k++)
      tnk__buf_printf(out, "%s{operation=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                      name, kind->name, tnk_err_name(kind->failures[k].code),
                      kind->failures[k].n);
  }
}

static const char *span_name(size_t span, const char **what) {
  if (span < TNK__N_PHASES) {
    *what = "";
    return tnk_phase_name((tnk_phase_t)span);
  }
  *what = tnk_waits_for_name((tnk_waits_for_t)(span - TNK__N_PHASES));
  return "waits";
}

static void put_spans(const tnk__meter_t *meter, tnk__buf_t *out) {
  static const char name[] = "tnk_phase_seconds_total";
  const char *what;

  put_head(out, name, "counter", "Time of operations, by what they were at.");
  for (size_t i = 0; i < meter->n_kinds; i++) {
    for (size_t k = 0; k < TNK__N_SPANS; k++) {
      const uint64_t ns = meter->kinds[i].span_ns[k];
      const char *phase = span_name(k, &what);
      if (ns == 0)
        continue;
      tnk__buf_printf(out,
                      "%s{operation=\"%s\",phase=\"%s\",waits_for=\"%s\"} ",
                      name, meter->kinds[i].name, phase, what);
      put_seconds(out, ns);
    }
  }
}

static void put_times(const tnk__meter_t *meter, tnk__buf_t *out) {
  static const char name[] = "tnk_operation_seconds";
  static const char *const limits[TNK__N_BUCKETS] = {
      "0.001", "0.005", "0.01", "0.05", "0.1", "0.5",  "1",    "2",
      "5",     "10",    "30",   "60",   "300", "1800", "7200", "+Inf"};

  put_head(out, name, "histogram", "From the call to the end.");
  for (size_t i = 0; i < meter->n_kinds; i++) {
    const tnk__meter_kind_t *kind = &meter->kinds[i];
    uint64_t n = 0;
    for (size_t k = 0; k < TNK__N_BUCKETS; k++) {
      n += kind->n_by_time[k];
      tnk__buf_printf(out,
                      "%s_bucket{operation=\"%s\",le=\"%s\"} %" PRIu64 "\n",
                      name, kind->name, limits[k], n);
    }
    tnk__buf_printf(out, "%s_sum{operation=\"%s\"} ", name, kind->name);
    put_seconds(out, kind->took_ns);
    tnk__buf_printf(out, "%s_count{operation=\"%s\"} %" PRIu64 "\n", name,
                    kind->name, n);
  }
}

void tnk__meter_write(const tnk__meter_t *meter, tnk__buf_t *out) {
#define EACH(name, type, help, member)                                         \
  put_each(meter, out, name, type, help, offsetof(tnk__meter_kind_t, member))
  EACH("tnk_operations_pending", "gauge", "Operations that have not ended.",
       n_pending);
  put_outcomes(meter, out);
  put_times(meter, out);
  put_spans(meter, out);
  EACH("tnk_attempts_total", "counter", "Requests that went out.", n_sent);
  EACH("tnk_retries_total", "counter", "Attempts that another one followed.",
       n_retries);
  EACH("tnk_sent_bytes_total", "counter", "Bodies of requests.", bytes_sent);
  EACH("tnk_result_bytes_total", "counter", "Bodies of results.",
       bytes_received);
#undef EACH
}

/* SPDX-License-Identifier: MIT */
/* What an observer hears, as numbers for Prometheus. */
#include <stdio.h>
#include <string.h>

#include "lib/observe/meter.h"
#include "support/test.h"
#include "tnk/error.h"

#define MS UINT64_C(1000000)

static tnk__meter_t meter;

static void tell(uint64_t operation, uint64_t ms, tnk_phase_t phase) {
  tnk__meter_event(&(tnk_event_t){.phase = phase,
                                  .operation = operation,
                                  .time_ns = ms * MS,
                                  .name = "sample",
                                  .bytes = 100},
                   &meter);
}

static void waits(uint64_t operation, uint64_t ms, tnk_waits_for_t what) {
  tnk__meter_event(&(tnk_event_t){.phase = TNK_PHASE_WAITS,
                                  .waits_for = what,
                                  .operation = operation,
                                  .time_ns = ms * MS,
                                  .name = "sample"},
                   &meter);
}

static void fails(uint64_t operation, uint64_t ms, int code) {
  tnk__meter_event(&(tnk_event_t){.phase = TNK_PHASE_FAILED,
                                  .operation = operation,
                                  .time_ns = ms * MS,
                                  .name = "sample",
                                  .code = code},
                   &meter);
}

static void has(const char *text, const char *line) {
  if (strstr(text, line) == NULL)
    test_fail(__FILE__, __LINE__, "no %s in:\n%s", line, text);
}

static const char *text_of(tnk__buf_t *buf) {
  tnk__buf_init(buf, test_allocator(), 1 << 20);
  tnk__meter_write(&meter, buf);
  CHECK_INT(buf->err, TNK_OK);
  return tnk__buf_cstr(buf);
}

TEST(P5_numbers_of_operations_as_text_of_prometheus) {
  const char *text;
  tnk__buf_t buf;

  tnk__meter_init(&meter, test_allocator());
  tell(1, 0, TNK_PHASE_QUEUED);
  waits(1, 10, TNK_WAITS_FOR_SLOT);
  tell(1, 30, TNK_PHASE_SENT);
  waits(1, 60, TNK_WAITS_FOR_RETRY);
  tell(1, 560, TNK_PHASE_SENT);
  tell(1, 600, TNK_PHASE_ACCEPTED);
  tell(1, 700, TNK_PHASE_RESULT);
  tell(1, 701, TNK_PHASE_DECODED);
  tell(1, 800, TNK_PHASE_DELIVERED);
  tell(2, 800, TNK_PHASE_QUEUED);
  fails(2, 3800, TNK_ECANCELED);
  tell(3, 3800, TNK_PHASE_QUEUED);
  text = text_of(&buf);
  has(text, "# TYPE tnk_operations_total counter\n");
  has(text, "\ntnk_operations_pending{operation=\"sample\"} 1\n");
  has(text, "\ntnk_operations_total{operation=\"sample\",outcome=\"TNK_OK\"} "
            "1\n");
  has(text, "outcome=\"TNK_ECANCELED\"} 1\n");
  has(text, "_bucket{operation=\"sample\",le=\"0.5\"} 0\n");
  has(text, "_bucket{operation=\"sample\",le=\"1\"} 1\n");
  has(text, "_bucket{operation=\"sample\",le=\"+Inf\"} 2\n");
  has(text, "tnk_operation_seconds_sum{operation=\"sample\"} 3.701000000\n");
  has(text, "tnk_operation_seconds_count{operation=\"sample\"} 2\n");
  has(text, "{operation=\"sample\",phase=\"waits\",waits_for=\"retry\"} "
            "0.500000000\n");
  has(text, "{operation=\"sample\",phase=\"sent\",waits_for=\"\"} "
            "0.070000000\n");
  has(text, "tnk_attempts_total{operation=\"sample\"} 2\n");
  has(text, "tnk_retries_total{operation=\"sample\"} 1\n");
  has(text, "tnk_sent_bytes_total{operation=\"sample\"} 200\n");
  has(text, "tnk_result_bytes_total{operation=\"sample\"} 100\n");
  tnk__buf_deinit(&buf);
  tnk__meter_deinit(&meter);
}

/* Operations end in any order, and the table finds each of them. */
TEST(P5_operations_are_found_whatever_order_they_end_in) {
  enum { N = 3000 };
  static uint32_t order[N];
  uint32_t random = 12345;

  tnk__meter_init(&meter, test_allocator());
  for (uint32_t i = 0; i < N; i++) {
    random = random * 1664525 + 1013904223;
    order[i] = order[random % (i + 1)];
    order[random % (i + 1)] = i + 1;
    /* Numbers with gaps, so that places are taken twice. */
    tell((uint64_t)(i + 1) * 97, i, TNK_PHASE_QUEUED);
  }
  CHECK_INT(meter.n_live, N);
  for (uint32_t i = 0; i < N; i++) {
    tell((uint64_t)order[i] * 97, N + i, TNK_PHASE_DECODED);
    CHECK_INT(meter.n_live, N - i - 1);
    CHECK_INT(meter.kinds[0].n_ok, i + 1);
  }
  tnk__meter_deinit(&meter);
}

TEST(P5_too_many_names_and_codes_share_the_last) {
  static char names[200][16];
  const char *text;
  tnk__buf_t buf;

  tnk__meter_init(&meter, test_allocator());
  for (unsigned i = 0; i < 200; i++) {
    snprintf(names[i], sizeof(names[i]), "name%u", i % 1000);
    tnk__meter_event(&(tnk_event_t){.phase = TNK_PHASE_QUEUED,
                                    .operation = i + 1,
                                    .name = names[i]},
                     &meter);
    fails(i + 1, 1, -(int)i - 1);
  }
  CHECK_INT(meter.n_kinds, TNK__MAX_KINDS);
  text = text_of(&buf);
  has(text, "{operation=\"other\"}");
  tnk__buf_deinit(&buf);
  tnk__meter_deinit(&meter);
}

TEST(P5_without_memory_an_operation_is_left_out) {
  tnk__meter_init(&meter, test_allocator());
  test_alloc_fail_at(0);
  tell(1, 0, TNK_PHASE_QUEUED);
  test_alloc_fail_at(-1);
  tell(1, 5, TNK_PHASE_DECODED);
  CHECK_INT(meter.n_lost, 1);
  CHECK_INT(meter.n_live, 0);
  tnk__meter_deinit(&meter);
}

/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/series.h"

#include <math.h>

#include "support/test.h"
#include "tnk/error.h"

enum { LONG = 100000 };

static report_series_t series;

static void begin(void) {
  CHECK_INT(report_series_init(&series, "loss"), TNK_OK);
}

static void add(int64_t step, double value) {
  CHECK_INT(report_series_add(&series, step, value), TNK_OK);
}

/* The points of all buckets; `out` has room for four of each bucket. */
static size_t points_of(report_point_t *out) {
  size_t n = 0;

  for (size_t i = 0; i < series.n_buckets; i++)
    n += report_bucket_points(&series.buckets[i], out + n);
  return n;
}

TEST(short_series_is_kept_as_it_is) {
  report_point_t points[4 * REPORT_MAX_BUCKETS];

  begin();
  for (int64_t i = 0; i < REPORT_MAX_BUCKETS; i++)
    add(3 * i, (double)(i * i));
  CHECK_INT((long long)points_of(points), REPORT_MAX_BUCKETS);
  for (int64_t i = 0; i < REPORT_MAX_BUCKETS; i++)
    CHECK(points[i].step == 3 * i && points[i].value == (double)(i * i));
  report_series_free(&series);
}

/* Peaks of one step survive, whatever is joined with them. */
TEST(long_series_keeps_extremes_in_bounded_memory) {
  static const int64_t peaks[] = {0, 1, 777, 50000, 65535, 99998, 99999};
  report_point_t points[4 * REPORT_MAX_BUCKETS];

  for (size_t k = 0; k < sizeof(peaks) / sizeof(*peaks); k++)
    for (int sign = -1; sign <= 1; sign += 2) {
      size_t n;

      begin();
      for (int64_t i = 0; i < LONG; i++)
        add(i, i == peaks[k] ? 1000.0 * sign : (double)(i % 7));
      CHECK(series.n_room <= REPORT_MAX_BUCKETS);
      CHECK_INT((sign > 0 ? report_series_most(&series)
                          : report_series_least(&series))
                    .step,
                peaks[k]);
      n = points_of(points);
      CHECK(n > REPORT_MAX_BUCKETS / 2);
      CHECK_INT(points[0].step, 0);
      CHECK_INT(points[n - 1].step, LONG - 1);
      for (size_t i = 0; i < n; i++) {
        CHECK(i == 0 || points[i].step > points[i - 1].step);
        CHECK(points[i].step == peaks[k] ||
              points[i].value == (double)(points[i].step % 7));
      }
      report_series_free(&series);
    }
}

/* A run that was resumed from an earlier step. */
TEST(later_values_replace_earlier_ones) {
  report_point_t points[4 * REPORT_MAX_BUCKETS];
  size_t n;

  begin();
  for (int64_t i = 0; i <= 57; i++)
    add(i, 1);
  for (int64_t i = 51; i <= 60; i++)
    add(i, 2);
  n = points_of(points);
  CHECK_INT((long long)n, 61);
  for (size_t i = 0; i < n; i++)
    CHECK(points[i].step == (int64_t)i && points[i].value == (i < 51 ? 1 : 2));
  report_series_free(&series);
  begin();
  for (int64_t i = 0; i < LONG; i++)
    add(i, i == LONG / 2 + 1 ? 9 : 1);
  for (int64_t i = LONG / 2; i < LONG; i++)
    add(i, 2);
  n = points_of(points);
  for (size_t i = 0; i < n; i++)
    CHECK(points[i].value == (points[i].step < LONG / 2 ? 1 : 2) &&
          (i == 0 || points[i].step > points[i - 1].step));
  CHECK_INT(points[n - 1].step, LONG - 1);
  report_series_free(&series);
}

TEST(values_that_are_not_finite_are_counted) {
  begin();
  add(1, 1);
  add(2, NAN);
  add(3, INFINITY);
  add(4, 4);
  CHECK_INT((long long)series.n_buckets, 2);
  CHECK_INT((long long)series.n_odd, 2);
  CHECK_INT(series.odd_step, 2);
  report_series_free(&series);
}

TEST(reduced_to_columns) {
  report_bucket_t out[REPORT_MAX_BUCKETS];
  report_point_t points[4];
  size_t n;

  begin();
  for (int64_t i = 0; i < LONG; i++)
    add(i, i == 4321 ? -1 : (double)(i % 3));
  n = report_series_reduce(&series, 0, LONG - 1, 100, out);
  CHECK_INT((long long)n, 100);
  CHECK_INT(out[4].least.step, 4321);
  CHECK_INT(out[99].last.step, LONG - 1);
  CHECK_INT((long long)report_bucket_points(&out[4], points), 4);
  report_series_free(&series);
}

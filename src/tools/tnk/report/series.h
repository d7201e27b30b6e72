/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_SERIES_H
#define TNK_TOOLS_TNK_REPORT_SERIES_H

#include <stddef.h>
#include <stdint.h>

/* The most buckets of a series. */
enum { REPORT_MAX_BUCKETS = 2048 };

typedef struct {
  int64_t step;
  double value; /* finite */
} report_point_t;

/* Adjacent points, of which these are kept. */
typedef struct {
  report_point_t first, least, most, last;
  double sum; /* of all n points */
  size_t n;
} report_bucket_t;

/*
 * The values of a metric over the steps of a run, in bounded memory. When all
 * buckets are full, each two of them are joined, so any number of points can be
 * added. The first and the last point, and the extremes of each bucket, are
 * points of the run and never means. A run of at most REPORT_MAX_BUCKETS points
 * is kept as it is.
 *
 * The steps are in order. A run that was resumed from an earlier step writes
 * steps again. The later values replace the earlier ones.
 */
typedef struct {
  char *key;
  report_bucket_t *buckets;
  size_t n_buckets;
  size_t n_room;
  size_t per;            /* points of a full bucket */
  size_t n_odd;          /* values that are not finite, which are left out */
  int64_t odd_step;      /* step of the first one */
  report_point_t newest; /* if there is a bucket */
} report_series_t;

/* Begin an empty series. Returns TNK_OK or TNK_ENOMEM. */
int report_series_init(report_series_t *series, const char *key);
void report_series_free(report_series_t *series);
/* Add a value. Returns TNK_OK or TNK_ENOMEM. */
int report_series_add(report_series_t *series, int64_t step, double value);
/* Get the points of a bucket in the order of their steps. Returns their number,
 * from 1 to 4. */
size_t report_bucket_points(const report_bucket_t *bucket,
                            report_point_t out[4]);
/* Join the buckets whose first points are in the same column of a picture,
 * which has `n_columns` columns for the steps from `from` to `to`. Returns
 * their number in `out`, which has room for n_buckets. */
size_t report_series_reduce(const report_series_t *series, int64_t from,
                            int64_t to, size_t n_columns, report_bucket_t *out);
/* The sum of all values, also of those that are in joined buckets. */
double report_series_sum(const report_series_t *series);
/* The newest point. The series is not empty. */
report_point_t report_series_last(const report_series_t *series);
/* The least and the greatest value. The series is not empty. */
report_point_t report_series_least(const report_series_t *series);
report_point_t report_series_most(const report_series_t *series);

#endif

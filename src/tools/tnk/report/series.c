/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"

enum { FIRST_ROOM = 64 };

int report_series_init(report_series_t *series, const char *key) {
  *series = (report_series_t){.per = 1, .key = strdup(key)};
  return series->key != NULL ? TNK_OK : TNK_ENOMEM;
}

void report_series_free(report_series_t *series) {
  free(series->key);
  free(series->buckets);
}

/* ---- Buckets ---- */

static void join(report_bucket_t *into, const report_bucket_t *next) {
  if (next->least.value < into->least.value)
    into->least = next->least;
  if (next->most.value > into->most.value)
    into->most = next->most;
  into->last = next->last;
  into->sum += next->sum;
  into->n += next->n;
}

static void join_all(report_series_t *series) {
  size_t n = 0;

  for (size_t i = 0; i < series->n_buckets; i += 2) {
    series->buckets[n] = series->buckets[i];
    if (i + 1 < series->n_buckets)
      join(&series->buckets[n], &series->buckets[i + 1]);
    n++;
  }
  series->n_buckets = n;
  series->per *= 2;
}

/* Remove the points of a bucket from `step` on. Its first point is earlier. The
 * points in between are not known, so the rest has its share of the sum. */
static void cut_bucket(report_bucket_t *bucket, int64_t step) {
  const report_point_t least = bucket->least;
  const report_point_t most = bucket->most;
  const double share = (double)(step - bucket->first.step) /
                       (double)(bucket->last.step - bucket->first.step + 1);

  bucket->least = bucket->most = bucket->last = bucket->first;
  if (least.step < step)
    bucket->least = least;
  if (most.step < step)
    bucket->most = most;
  if (bucket->least.step > bucket->last.step)
    bucket->last = bucket->least;
  if (bucket->most.step > bucket->last.step)
    bucket->last = bucket->most;
  bucket->sum *= share;
  bucket->n = (size_t)((double)bucket->n * share) + 1;
}

/* Remove the points from `step` on. */
static void cut(report_series_t *series, int64_t step) {
  while (series->n_buckets > 0 &&
         series->buckets[series->n_buckets - 1].first.step >= step)
    series->n_buckets--;
  if (series->n_buckets > 0 &&
      series->buckets[series->n_buckets - 1].last.step >= step)
    cut_bucket(&series->buckets[series->n_buckets - 1], step);
}

static int make_room(report_series_t *series) {
  const size_t n = series->n_room > 0 ? 2 * series->n_room : FIRST_ROOM;
  report_bucket_t *buckets;

  if (series->n_buckets < series->n_room)
    return TNK_OK;
  if (series->n_room == REPORT_MAX_BUCKETS) {
    join_all(series);
    return TNK_OK;
  }
  buckets = realloc(series->buckets, n * sizeof(*buckets));
  if (buckets == NULL)
    return TNK_ENOMEM;
  series->buckets = buckets;
  series->n_room = n;
  return TNK_OK;
}

int report_series_add(report_series_t *series, int64_t step, double value) {
  const report_point_t point = {step, value};
  const report_bucket_t one = {point, point, point, point, value, 1};
  report_bucket_t *last;
  int err = TNK_OK;

  if (series->n_buckets > 0 && step <= series->newest.step)
    cut(series, step);
  if (!isfinite(value)) {
    if (series->n_odd++ == 0)
      series->odd_step = step;
    return TNK_OK;
  }
  series->newest = point;
  last = series->n_buckets > 0 ? &series->buckets[series->n_buckets - 1] : NULL;
  if (last != NULL && last->n < series->per) {
    join(last, &one);
    return TNK_OK;
  }
  err = make_room(series);
  if (err == TNK_OK)
    series->buckets[series->n_buckets++] = one;
  return err;
}

/* ---- Reading ---- */

static void sort_two(report_point_t *a, report_point_t *b) {
  const report_point_t first = *a;

  if (a->step <= b->step)
    return;
  *a = *b;
  *b = first;
}

size_t report_bucket_points(const report_bucket_t *bucket,
                            report_point_t out[4]) {
  report_point_t between[2] = {bucket->least, bucket->most};
  size_t n = 0;

  sort_two(&between[0], &between[1]);
  out[n++] = bucket->first;
  for (size_t i = 0; i < 2; i++)
    if (between[i].step > out[n - 1].step)
      out[n++] = between[i];
  if (bucket->last.step > out[n - 1].step)
    out[n++] = bucket->last;
  return n;
}

size_t report_series_reduce(const report_series_t *series, int64_t from,
                            int64_t to, size_t n_columns,
                            report_bucket_t *out) {
  /* Steps are not negative, so their difference fits. */
  const double width = (double)(to - from + 1) / (double)n_columns;
  double column = -1;
  size_t n = 0;

  for (size_t i = 0; i < series->n_buckets; i++) {
    const report_bucket_t *bucket = &series->buckets[i];
    const double at = floor((double)(bucket->first.step - from) / width);

    if (n > 0 && at <= column)
      join(&out[n - 1], bucket);
    else
      out[n++] = *bucket;
    column = at;
  }
  return n;
}

double report_series_sum(const report_series_t *series) {
  double sum = 0;

  for (size_t i = 0; i < series->n_buckets; i++)
    sum += series->buckets[i].sum;
  return sum;
}

report_point_t report_series_last(const report_series_t *series) {
  return series->buckets[series->n_buckets - 1].last;
}

report_point_t report_series_least(const report_series_t *series) {
  report_point_t least = series->buckets[0].least;

  for (size_t i = 1; i < series->n_buckets; i++)
    if (series->buckets[i].least.value < least.value)
      least = series->buckets[i].least;
  return least;
}

report_point_t report_series_most(const report_series_t *series) {
  report_point_t most = series->buckets[0].most;

  for (size_t i = 1; i < series->n_buckets; i++)
    if (series->buckets[i].most.value > most.value)
      most = series->buckets[i].most;
  return most;
}

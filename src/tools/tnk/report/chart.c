/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/chart.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"
#include "tools/tnk/report/html.h"

enum {
  COLUMNS = 300,  /* of a curve; each has at most four points */
  SIZE = 10000,   /* width and height of the picture in its own units */
  MAX_TICKS = 24, /* of an axis */
  N_X = 5,        /* about this many ticks */
  N_Y = 4,
  LEAST_RATIO = 20, /* of values that are far apart */
  FEW_POINTS = 60,  /* which are drawn as dots too */
  TREND_COLUMNS = 80,
  NOISE = SIZE / 40 /* height of a column, on average */
};

typedef struct {
  FILE *to;
  const report_curve_t *curves;
  size_t n_curves;
  int64_t from; /* steps at the borders */
  int64_t until;
  double bottom; /* values at the borders; with is_log their logarithms */
  double top;
  int is_log;
  report_bucket_t *buckets; /* room for a reduced curve */
} chart_t;

/* ---- Borders ---- */

static void set_values(chart_t *chart, int may_log) {
  double least = INFINITY, most = -INFINITY;

  for (size_t i = 0; i < chart->n_curves; i++) {
    least = fmin(least, report_series_least(chart->curves[i].series).value);
    most = fmax(most, report_series_most(chart->curves[i].series).value);
  }
  chart->is_log = may_log && least > 0 && most / least >= (double)LEAST_RATIO;
  if (chart->is_log) {
    least = log10(least);
    most = log10(most);
  } else if (least > 0 && least < most / 2) {
    least = 0;
  }
  if (!(most > least)) {
    const double margin = most != 0 ? fabs(most) / 2 : 1;

    least -= margin;
    most += margin;
  }
  /* The difference of two large numbers may overflow. */
  chart->top = most + (most / 25 - least / 25);
  chart->bottom = least == 0 ? 0 : least - (most / 25 - least / 25);
  if (!isfinite(chart->top) || !isfinite(chart->bottom)) {
    chart->top = most;
    chart->bottom = least;
  }
}

static void set_borders(chart_t *chart, int may_log) {
  chart->from = INT64_MAX;
  chart->until = 0;
  for (size_t i = 0; i < chart->n_curves; i++) {
    const report_series_t *series = chart->curves[i].series;

    if (series->buckets[0].first.step < chart->from)
      chart->from = series->buckets[0].first.step;
    if (report_series_last(series).step > chart->until)
      chart->until = report_series_last(series).step;
  }
  set_values(chart, may_log);
}

static int x_of(const chart_t *chart, double step) {
  if (chart->until == chart->from)
    return SIZE / 2;
  return (int)lround((step - (double)chart->from) /
                     (double)(chart->until - chart->from) * (double)SIZE);
}

/* The place of a value; with a logarithmic scale, of a logarithm. */
static int y_of_place(const chart_t *chart, double place) {
  return (int)lround((chart->top / 2 - place / 2) /
                     (chart->top / 2 - chart->bottom / 2) * (double)SIZE);
}

static int y_of(const chart_t *chart, double value) {
  return y_of_place(chart, chart->is_log ? log10(value) : value);
}

/* ---- Ticks ---- */

/* 1, 2 or 5 times a power of ten, so that a range has about n of them. */
static double nice_step(double range, int n) {
  const double raw = range / n;
  const double power = pow(10, floor(log10(raw)));
  const double share = raw / power;

  return (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10) * power;
}

static size_t linear_ticks(double from, double to, int n, int is_whole,
                           double out[MAX_TICKS]) {
  double step = nice_step(to / 2 - from / 2, n) * 2;
  size_t n_ticks = 0;

  if (is_whole && step < 1)
    step = 1;
  if (!(step > 0) || !isfinite(step))
    return 0;
  while (n_ticks < MAX_TICKS) {
    const double k = ceil(from / step) + (double)n_ticks;

    if (!(k * step <= to))
      break;
    /* k may be -0. */
    out[n_ticks++] = k == 0 ? 0 : k * step;
  }
  return n_ticks;
}

/* Powers of ten, with 2 and 5 times them if there are few. */
static size_t log_ticks(const chart_t *chart, double out[MAX_TICKS]) {
  static const double factors[] = {1, 2, 5};
  const double decades = chart->top - chart->bottom;
  const double every = fmax(1, ceil(decades / 8));
  const size_t n_factors = decades < 3 ? 3 : 1;
  double k = floor(chart->bottom);
  size_t n = 0;

  while (k <= chart->top) {
    for (size_t i = 0; i < n_factors && n < MAX_TICKS; i++) {
      const double place = k + log10(factors[i]);

      if (place >= chart->bottom && place <= chart->top)
        out[n++] = place;
    }
    k += every;
  }
  return n;
}

/* Write a number so that it needs little room: 8e-5 and not 8e-05. */
static void put_short(FILE *to, double value) {
  const double size = fabs(value);
  char text[40];
  char *power;

  if (size >= 1e6 && size < 1e9)
    snprintf(text, sizeof(text), "%.4gM", value / 1e6);
  else if (size >= 1e4 && size < 1e6)
    snprintf(text, sizeof(text), "%.4gk", value / 1e3);
  else
    snprintf(text, sizeof(text), size < 1e-3 ? "%.3g" : "%.4g",
             value == 0 ? 0.0 : value);
  power = strchr(text, 'e');
  if (power != NULL) {
    const long exponent = strtol(power + 1, NULL, 10);

    snprintf(power, sizeof(text) - (size_t)(power - text), "e%ld", exponent);
  }
  fputs(text, to);
}

static void put_labels(const chart_t *chart, const double *xs, size_t n_xs,
                       const double *ys, size_t n_ys) {
  FILE *to = chart->to;

  fputs("<div class=\"ys\">", to);
  for (size_t i = 0; i < n_ys; i++) {
    fprintf(to, "<span style=\"top:%.2f%%\">",
            y_of_place(chart, ys[i]) * 100.0 / (double)SIZE);
    put_short(to, chart->is_log ? pow(10, ys[i]) : ys[i]);
    fputs("</span>", to);
  }
  fputs("</div><div class=\"xs\">", to);
  for (size_t i = 0; i < n_xs; i++) {
    fprintf(to, "<span style=\"left:%.2f%%\">",
            x_of(chart, xs[i]) * 100.0 / (double)SIZE);
    put_short(to, xs[i]);
    fputs("</span>", to);
  }
  fputs("</div>\n", to);
}

/* ---- Curves ---- */

static void put_raw(const chart_t *chart, const report_bucket_t *buckets,
                    size_t n_buckets) {
  report_point_t points[4];
  int is_first = 1;

  for (size_t i = 0; i < n_buckets; i++) {
    const size_t n = report_bucket_points(&buckets[i], points);

    for (size_t k = 0; k < n; k++) {
      fprintf(chart->to, "%s%d %d", is_first ? "M" : "L",
              x_of(chart, (double)points[k].step),
              y_of(chart, points[k].value));
      is_first = 0;
    }
  }
}

/* The means of columns. */
static void put_trend(const chart_t *chart, const report_bucket_t *buckets,
                      size_t n_buckets) {
  for (size_t i = 0; i < n_buckets; i++) {
    const double step =
        (double)buckets[i].first.step / 2 + (double)buckets[i].last.step / 2;
    /* Rounding must not lead out of the range, where there is no logarithm. */
    const double mean = fmin(
        fmax(buckets[i].sum / (double)buckets[i].n, buckets[i].least.value),
        buckets[i].most.value);

    fprintf(chart->to, "%s%d %d", i == 0 ? "M" : "L", x_of(chart, step),
            y_of(chart, mean));
  }
}

/* Returns whether a curve moves so much within its columns that a trend is
 * useful. */
static int is_noisy(const chart_t *chart, const report_bucket_t *buckets,
                    size_t n_buckets) {
  double height = 0;

  if (n_buckets < TREND_COLUMNS)
    return 0;
  for (size_t i = 0; i < n_buckets; i++)
    height += y_of(chart, buckets[i].least.value) -
              y_of(chart, buckets[i].most.value);
  return height / (double)n_buckets > (double)NOISE;
}

/* Lines of length 0, whose round ends are dots of the same size everywhere. */
static void put_dots(const chart_t *chart, const report_bucket_t *buckets,
                     size_t n_buckets, int color) {
  fprintf(chart->to, "<path class=\"dots c%d\" d=\"", color);
  for (size_t i = 0; i < n_buckets; i++)
    fprintf(chart->to, "M%d %dh0", x_of(chart, (double)buckets[i].first.step),
            y_of(chart, buckets[i].first.value));
  fputs("\"/>\n", chart->to);
}

static void put_curve(const chart_t *chart, const report_curve_t *curve) {
  FILE *to = chart->to;
  const char *dashed = curve->is_dashed ? " dashed" : "";
  size_t n = report_series_reduce(curve->series, chart->from, chart->until,
                                  TREND_COLUMNS, chart->buckets);
  const int has_trend = curve->series->n_buckets >= 2 * TREND_COLUMNS &&
                        is_noisy(chart, chart->buckets, n);

  if (has_trend) {
    fprintf(to, "<path class=\"trend c%d%s\" d=\"", curve->color, dashed);
    put_trend(chart, chart->buckets, n);
    fputs("\"/>\n", to);
  }
  n = report_series_reduce(curve->series, chart->from, chart->until, COLUMNS,
                           chart->buckets);
  fprintf(to, "<path class=\"curve c%d%s%s\" d=\"", curve->color,
          has_trend ? "" : dashed, has_trend ? " faint" : "");
  put_raw(chart, chart->buckets, n);
  fputs("\"/>\n", to);
  if (curve->series->n_buckets <= FEW_POINTS)
    put_dots(chart, chart->buckets, n, curve->color);
}

/* The mark, the name and the last value of a curve. The title may be the name
 * already. */
static void put_key(const chart_t *chart, const char *title,
                    const report_curve_t *curve) {
  const int is_named = title == NULL || strcmp(title, curve->series->key) != 0;
  FILE *to = chart->to;

  fprintf(to, "<span class=\"key\"><i class=\"c%d%s\"></i>", curve->color,
          curve->is_dashed ? " dashed" : "");
  if (curve->run != NULL) {
    report_put_text(to, curve->run);
    fputs(is_named ? ": " : " ", to);
  }
  if (is_named) {
    report_put_text(to, curve->series->key);
    fputs(" ", to);
  }
  fprintf(to, "<output>%.4g</output></span>",
          report_series_last(curve->series).value);
}

static void put_caption(const chart_t *chart, const char *title) {
  FILE *to = chart->to;

  fputs("<figcaption><h3>", to);
  if (title != NULL)
    report_put_text(to, title);
  if (chart->is_log)
    fputs(" <small>log scale</small>", to);
  fputs("</h3><div class=\"keys\">", to);
  for (size_t i = 0; i < chart->n_curves; i++)
    put_key(chart, title, &chart->curves[i]);
  fputs("<span class=\"step\"></span></div></figcaption>\n", to);
}

static void put_picture(const chart_t *chart, const char *title) {
  FILE *to = chart->to;
  /* One label at least: the only step, or the first one. */
  double xs[MAX_TICKS] = {(double)chart->from}, ys[MAX_TICKS] = {0};
  const size_t n_xs =
      chart->until > chart->from
          ? linear_ticks((double)chart->from, (double)chart->until, N_X, 1, xs)
          : 0;
  const size_t n_ys = chart->is_log
                          ? log_ticks(chart, ys)
                          : linear_ticks(chart->bottom, chart->top, N_Y, 0, ys);

  fprintf(to,
          "<div class=\"plot\" data-x=\"%" PRId64 " %" PRId64
          "\" data-y=\"%.9g %.9g\" data-log=\"%d\">\n<svg viewBox=\"0 0 %d "
          "%d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"",
          chart->from, chart->until, chart->bottom, chart->top, chart->is_log,
          SIZE, SIZE);
  report_put_text(to, title != NULL ? title : chart->curves[0].series->key);
  fputs(" by step\">\n<path class=\"grid\" d=\"", to);
  for (size_t i = 0; i < n_ys; i++)
    fprintf(to, "M0 %dh%d", y_of_place(chart, ys[i]), SIZE);
  fputs("\"/>\n", to);
  for (size_t i = 0; i < chart->n_curves; i++)
    put_curve(chart, &chart->curves[i]);
  fputs("<path class=\"cursor\"/>\n</svg>\n", to);
  put_labels(chart, xs, n_xs > 0 ? n_xs : 1, ys, n_ys);
  fputs("</div>\n", to);
}

int report_chart_put(FILE *to, const char *title, const report_curve_t *curves,
                     size_t n, int may_log) {
  chart_t chart = {.to = to, .curves = curves, .n_curves = n};

  chart.buckets = calloc(REPORT_MAX_BUCKETS, sizeof(*chart.buckets));
  if (chart.buckets == NULL)
    return TNK_ENOMEM;
  set_borders(&chart, may_log);
  fputs("<figure>", to);
  put_caption(&chart, title);
  put_picture(&chart, title);
  fputs("</figure>\n", to);
  free(chart.buckets);
  return TNK_OK;
}

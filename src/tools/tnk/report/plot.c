/* SPDX-License-Identifier: MIT */
/* tnk plot: the curves of a run in the terminal. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"
#include "tools/common/frame/commands.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/report/canvas.h"
#include "tools/tnk/report/run.h"

enum {
  LEAST_WIDTH = 20,
  MOST_WIDTH = 1000,
  LEAST_HEIGHT = 3,
  MOST_HEIGHT = 200,
  MAX_RUNS = 2,
  LABEL_EVERY = 4, /* rows between two values of the axis */
  LABEL = 16,
  MAX_NAME = 256
};

static cli_texts_t wanted;
static int64_t width;
static int64_t height;
static int has_log;

static const cli_option_t options[] = {
    {.name = "metric",
     .value = "NAME",
     .texts = &wanted,
     .help = "Name of a metric in metrics.jsonl, instead of the losses. It can "
             "be repeated."},
    {.name = "log", .flag = &has_log, .help = "Use a logarithmic scale."},
    {.name = "width",
     .value = "N",
     .number = &width,
     .min = LEAST_WIDTH,
     .max = MOST_WIDTH,
     .help = "Columns of the plot. Default: the width of the terminal, or 80."},
    {.name = "height",
     .value = "N",
     .number = &height,
     .min = LEAST_HEIGHT,
     .max = MOST_HEIGHT,
     .help = "Rows of the plot. Default: a fifth of the columns, at least 8."},
    {.name = NULL}};

typedef struct {
  const report_run_t *run;
  const report_series_t *series;
} curve_t;

typedef struct {
  const cli_t *cli;
  report_run_t runs[MAX_RUNS];
  size_t n_runs;
  curve_t curves[REPORT_MAX_CURVES];
  size_t n_curves;
  size_t n_columns; /* of the whole plot */
  report_canvas_t canvas;
  int64_t from; /* the steps at the borders */
  int64_t to;
  double bottom; /* the values at the borders, scaled */
  double top;
} plot_t;

/* ---- Curves ---- */

static int add_curve(plot_t *plot, const report_run_t *run,
                     const report_series_t *series) {
  if (plot->n_curves == REPORT_MAX_CURVES)
    return cli_fail(plot->cli, CLI_EXIT_USAGE, "a plot has at most %d curves",
                    REPORT_MAX_CURVES);
  plot->curves[plot->n_curves++] = (curve_t){run, series};
  return CLI_EXIT_OK;
}

static int no_metric(const plot_t *plot, const char *name) {
  char known[400] = "";
  size_t n = 0;

  for (size_t r = 0; r < plot->n_runs; r++)
    for (size_t i = 0; i < plot->runs[r].n_series; i++)
      if (r == 0 ||
          report_run_find(&plot->runs[0], plot->runs[r].series[i].key) == NULL)
        n += n < sizeof(known) ? (size_t)snprintf(known + n, sizeof(known) - n,
                                                  "%s%s", n > 0 ? ", " : "",
                                                  plot->runs[r].series[i].key)
                               : 0;
  if (n == 0)
    return cli_fail(plot->cli, CLI_EXIT_FAILED, "%s has no metrics yet",
                    plot->runs[0].path);
  return cli_fail(plot->cli, CLI_EXIT_FAILED,
                  "there is no metric %s. The metrics are: %s", name, known);
}

static int choose_wanted(plot_t *plot) {
  int status = CLI_EXIT_OK;

  for (size_t i = 0; i < wanted.n && status == CLI_EXIT_OK; i++) {
    int is_found = 0;

    for (size_t r = 0; r < plot->n_runs && status == CLI_EXIT_OK; r++) {
      const report_series_t *series =
          report_run_find(&plot->runs[r], wanted.items[i]);

      is_found |= series != NULL;
      if (series != NULL)
        status = add_curve(plot, &plot->runs[r], series);
    }
    if (status == CLI_EXIT_OK && !is_found)
      status = no_metric(plot, wanted.items[i]);
  }
  return status;
}

/* The first loss and the first loss of an evaluation of each run. */
static int choose_losses(plot_t *plot) {
  static const report_kind_t kinds[] = {REPORT_LOSS, REPORT_EVAL};

  for (size_t k = 0; k < 2; k++)
    for (size_t r = 0; r < plot->n_runs; r++) {
      const report_series_t *series =
          report_run_kind(&plot->runs[r], kinds[k], 0);

      if (series != NULL)
        (void)add_curve(plot, &plot->runs[r], series);
    }
  return plot->n_curves > 0 ? CLI_EXIT_OK : no_metric(plot, "of a loss");
}

/* ---- Scales ---- */

/* The place of a value on the axis; NaN if it has none. */
static double scaled(double value) {
  if (!has_log)
    return value;
  return value > 0 ? log10(value) : NAN;
}

static double unscaled(double place) {
  return has_log ? pow(10, place) : place;
}

/* Widen the borders for a point. */
static void include(plot_t *plot, const report_point_t *point) {
  const double place = scaled(point->value);

  if (isnan(place))
    return;
  plot->bottom = fmin(plot->bottom, place);
  plot->top = fmax(plot->top, place);
}

static int set_borders(plot_t *plot) {
  plot->from = INT64_MAX;
  plot->to = 0;
  plot->bottom = INFINITY;
  plot->top = -INFINITY;
  for (size_t c = 0; c < plot->n_curves; c++) {
    const report_series_t *series = plot->curves[c].series;
    const report_bucket_t *buckets = series->buckets;

    if (buckets[0].first.step < plot->from)
      plot->from = buckets[0].first.step;
    if (report_series_last(series).step > plot->to)
      plot->to = report_series_last(series).step;
    for (size_t i = 0; i < series->n_buckets; i++) {
      include(plot, &buckets[i].least);
      include(plot, &buckets[i].most);
    }
  }
  if (plot->bottom > plot->top)
    return cli_fail(plot->cli, CLI_EXIT_FAILED,
                    "--log needs values greater than 0");
  if (!(plot->top > plot->bottom)) {
    const double margin = plot->top != 0 ? fabs(plot->top) / 2 : 1;

    plot->bottom -= margin;
    plot->top += margin;
  }
  return CLI_EXIT_OK;
}

static long x_of(const plot_t *plot, int64_t step) {
  const double share =
      plot->to > plot->from
          ? (double)(step - plot->from) / (double)(plot->to - plot->from)
          : 0.5;

  return lround(share * (double)(2 * plot->canvas.n_columns - 1));
}

static long y_of(const plot_t *plot, double place) {
  /* The difference of two large numbers may overflow; their halves do not. */
  const double share =
      (plot->top / 2 - place / 2) / (plot->top / 2 - plot->bottom / 2);

  return lround(share * (double)(4 * plot->canvas.n_rows - 1));
}

/* The value at the middle of a row, or at the border for the outer rows. */
static double value_at(const plot_t *plot, size_t row) {
  const double share = plot->canvas.n_rows > 1
                           ? (double)row / (double)(plot->canvas.n_rows - 1)
                           : 0;

  return unscaled(plot->top * (1 - share) + plot->bottom * share);
}

/* ---- Drawing ---- */

/* Curves that are drawn with letters have no lines between their points, since
 * they would hide the other ones. */
static void draw(plot_t *plot, size_t curve) {
  const report_series_t *series = plot->curves[curve].series;
  const int has_lines =
      curve == 0 || report_canvas_is_dotted(&plot->canvas, curve);
  report_point_t points[4];
  long x = 0, y = 0;
  int has_last = 0;

  for (size_t i = 0; i < series->n_buckets; i++) {
    const size_t n = report_bucket_points(&series->buckets[i], points);

    for (size_t k = 0; k < n; k++) {
      const double place = scaled(points[k].value);
      const int is_shown = !isnan(place);
      const long next_x = x_of(plot, points[k].step);
      const long next_y = is_shown ? y_of(plot, place) : 0;

      if (is_shown)
        report_canvas_line(&plot->canvas, curve, has_last ? x : next_x,
                           has_last ? y : next_y, next_x, next_y);
      x = next_x;
      y = next_y;
      has_last = is_shown && has_lines;
    }
  }
}

/* The name of a curve, sanitized. */
static void name_curve(const plot_t *plot, size_t curve, char *out, size_t n) {
  if (plot->n_runs > 1)
    snprintf(out, n, "%s: %s", plot->curves[curve].run->name,
             plot->curves[curve].series->key);
  else
    snprintf(out, n, "%s", plot->curves[curve].series->key);
  cli_clean(out);
}

static size_t names_width(const plot_t *plot) {
  char name[MAX_NAME];
  size_t most = 0;

  for (size_t c = 0; c < plot->n_curves; c++) {
    name_curve(plot, c, name, sizeof(name));
    if (cli_width(name) > most)
      most = cli_width(name);
  }
  return most;
}

/* A line with the mark, the name, and as much of the rest as fits. */
static void put_legend(const plot_t *plot, size_t curve, size_t n_names) {
  const report_series_t *series = plot->curves[curve].series;
  const report_point_t last = report_series_last(series);
  const report_point_t least = report_series_least(series);
  char name[MAX_NAME];
  char rest[3][64];
  size_t n_left = plot->n_columns - 2;

  name_curve(plot, curve, name, sizeof(name));
  cli_cut(name, n_left);
  report_canvas_put_mark(&plot->canvas, curve, stdout);
  printf(" %s", name);
  snprintf(rest[0], sizeof(rest[0]), "%*s  last %.4g",
           (int)(n_names - cli_width(name)), "", last.value);
  snprintf(rest[1], sizeof(rest[1]), "  min %.4g", least.value);
  snprintf(rest[2], sizeof(rest[2]), " at step %" PRId64, least.step);
  n_left -= cli_width(name);
  for (size_t i = 0; i < 3 && strlen(rest[i]) <= n_left; i++) {
    fputs(rest[i], stdout);
    n_left -= strlen(rest[i]);
  }
  printf("\n");
}

static int is_labeled(const plot_t *plot, size_t row) {
  const size_t n_rows = plot->canvas.n_rows;

  return row == n_rows - 1 ||
         (row % LABEL_EVERY == 0 && n_rows - 1 - row >= LABEL_EVERY / 2);
}

/* The width of the values of the axis. */
static int axis_width(const plot_t *plot) {
  char text[LABEL];
  int most = 0;

  for (size_t row = 0; row < plot->canvas.n_rows; row++)
    if (is_labeled(plot, row)) {
      const int n = snprintf(text, sizeof(text), "%.3g", value_at(plot, row));

      most = n > most ? n : most;
    }
  return most;
}

static void put_row(const plot_t *plot, size_t row, int n_axis) {
  const int is_utf8 = plot->canvas.is_utf8;

  if (is_labeled(plot, row))
    printf("%*.3g %s", n_axis, value_at(plot, row), is_utf8 ? "┤" : "+");
  else
    printf("%*s %s", n_axis, "", is_utf8 ? "│" : "|");
  report_canvas_put_row(&plot->canvas, row, stdout);
  printf("\n");
}

/* The line below the rows, and the steps below it. */
static void put_steps(const plot_t *plot, int n_axis) {
  const int is_utf8 = plot->canvas.is_utf8;
  const int n_columns = (int)plot->canvas.n_columns;
  char from[32], to[32];
  int n_between;

  snprintf(from, sizeof(from), "step %" PRId64, plot->from);
  snprintf(to, sizeof(to), "%" PRId64, plot->to);
  printf("%*s %s", n_axis, "", is_utf8 ? "└" : "+");
  for (int i = 0; i < n_columns; i++)
    fputs(is_utf8 ? "─" : "-", stdout);
  n_between = n_columns - (int)strlen(from) - (int)strlen(to);
  printf("\n%*s  %s", n_axis, "", from);
  if (plot->to > plot->from && n_between > 0)
    printf("%*s%s", n_between, "", to);
  printf("\n");
}

static int print_plot(plot_t *plot) {
  size_t n_names;
  int n_axis;

  plot->n_columns = width > 0 ? (size_t)width : cli_columns(stdout);
  if (plot->n_columns < LEAST_WIDTH)
    plot->n_columns = LEAST_WIDTH;
  if (plot->n_columns > MOST_WIDTH)
    plot->n_columns = MOST_WIDTH;
  plot->canvas = (report_canvas_t){
      .n_curves = plot->n_curves,
      .n_rows = height > 0 ? (size_t)height : plot->n_columns / 5,
      .is_utf8 = cli_is_utf8(),
      .has_color = cli_has_color(stdout, (cli_color_t)plot->cli->color),
  };
  if (height == 0 && plot->canvas.n_rows < 8)
    plot->canvas.n_rows = 8;
  if (height == 0 && plot->canvas.n_rows > 24)
    plot->canvas.n_rows = 24;
  n_axis = axis_width(plot);
  plot->canvas.n_columns = plot->n_columns - (size_t)n_axis - 2;
  if (report_canvas_init(&plot->canvas) != TNK_OK)
    return cli_fail(plot->cli, CLI_EXIT_FAILED, "out of memory");
  n_names = names_width(plot);
  for (size_t c = 0; c < plot->n_curves; c++) {
    put_legend(plot, c, n_names);
    draw(plot, c);
  }
  for (size_t row = 0; row < plot->canvas.n_rows; row++)
    put_row(plot, row, n_axis);
  put_steps(plot, n_axis);
  report_canvas_free(&plot->canvas);
  return fflush(stdout) == 0 ? CLI_EXIT_OK : CLI_EXIT_FILE;
}

/* ---- JSON ---- */

static void put_point(tnk__json_writer_t *w, const char *key,
                      report_point_t point) {
  tnk__json_put_object(w, key);
  tnk__json_put_int(w, "step", point.step);
  tnk__json_put_double(w, "value", point.value);
  tnk__json_end(w);
}

static int print_json(const plot_t *plot) {
  cli_json_t json;

  cli_json_begin(&json);
  tnk__json_put_array(&json.w, "curves");
  for (size_t c = 0; c < plot->n_curves; c++) {
    const report_series_t *series = plot->curves[c].series;

    tnk__json_begin_object(&json.w);
    cli_json_put_odd_text(&json, "run", plot->curves[c].run->path);
    tnk__json_put_text(&json.w, "metric", series->key);
    put_point(&json.w, "first", series->buckets[0].first);
    put_point(&json.w, "last", report_series_last(series));
    put_point(&json.w, "min", report_series_least(series));
    put_point(&json.w, "max", report_series_most(series));
    tnk__json_end(&json.w);
  }
  tnk__json_end(&json.w);
  return cli_json_end(&json, plot->cli);
}

/* ---- The command ---- */

static int show(plot_t *plot) {
  int status = wanted.n > 0 ? choose_wanted(plot) : choose_losses(plot);

  if (status == CLI_EXIT_OK && plot->cli->json)
    return print_json(plot);
  if (status == CLI_EXIT_OK)
    status = set_borders(plot);
  return status == CLI_EXIT_OK ? print_plot(plot) : status;
}

static int run_plot(cli_t *cli) {
  static plot_t plot;
  int status = CLI_EXIT_OK;

  plot.cli = cli;
  while (plot.n_runs < cli->n_words && status == CLI_EXIT_OK) {
    status =
        report_run_read(&plot.runs[plot.n_runs], cli, cli->words[plot.n_runs]);
    plot.n_runs++;
  }
  if (status == CLI_EXIT_OK)
    status = show(&plot);
  for (size_t i = 0; i < plot.n_runs; i++)
    report_run_free(&plot.runs[i]);
  return status;
}

static const cli_item_t examples[] = {
    {"tnk plot first", "the loss and the evaluation loss of a run"},
    {"tnk plot first second --metric train/loss --log", "compare two runs"},
    {NULL, NULL}};

const cli_command_t cli_plot = {
    .name = "plot",
    .brief = "draw the curves of a run in the terminal",
    .about =
        "Draw the curves of a run. RUN is the folder of tnk train or tnk rl, "
        "any folder "
        "with a metrics.jsonl, or such a file. Two runs are drawn in one plot. "
        "The minima and maxima of long runs stay visible. In a locale without "
        "UTF-8 the plot has only ASCII characters. --json prints the first and "
        "last value, the minimum and the maximum of each curve.\n\nA run that "
        "is in progress can be drawn too. An incomplete last line is ignored.",
    .words = "RUN [RUN]",
    .offer = CLI_OFFER_FILES,
    .options = options,
    .examples = examples,
    .failed = "There is no such metric.",
    .has = CLI_HAS_JSON,
    .run = run_plot,
};

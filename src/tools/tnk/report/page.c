/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/page.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tnk/error.h"
#include "tools/tnk/report/chart.h"
#include "tools/tnk/report/html.h"

enum {
  MAX_CHARTS = 48, /* of the sections after the loss */
  REFRESH_S = 5
};

int report_page_is_final(const report_page_t *page) {
  for (size_t r = 0; r < page->n; r++)
    if (!page->data[r].saves.is_final)
      return 0;
  return 1;
}

/* ---- Head ---- */

static void put_names(const report_page_t *page, const char *between) {
  for (size_t r = 0; r < page->n; r++) {
    if (r > 0)
      fputs(between, page->to);
    report_put_text(page->to, page->data[r].run.name);
  }
}

/* The policy permits only the contents of the file, and of scripts only the
 * page's own. */
static void put_head(const report_page_t *page) {
  FILE *to = page->to;

  fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"
        "\n<meta http-equiv=\"Content-Security-Policy\" content=\""
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
        "script-src 'sha256-",
        to);
  fputs(report_script_digest, to);
  fputs("'\">\n<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
        "dark\">\n<meta name=\"generator\" content=\"tnk report\">\n"
        /* Without an icon a browser asks a server for one. */
        "<link rel=\"icon\" href=\"data:,\">\n",
        to);
  if (page->is_followed && !report_page_is_final(page))
    fprintf(to, "<meta http-equiv=\"refresh\" content=\"%d\">\n", REFRESH_S);
  fputs("<title>", to);
  put_names(page, " and ");
  fputs("</title>\n<style>\n", to);
  report_put_lines(to, report_style);
  fputs("</style>\n</head>\n<body>\n", to);
}

static void put_about(const report_page_t *page, size_t run) {
  const report_data_t *data = &page->data[run];
  const char *model = report_config_find(&data->config, "options.model");
  FILE *to = page->to;

  fputs("<p>", to);
  report_put_run(page, run);
  if (model == NULL)
    model = report_config_find(&data->config, "model");
  if (model == NULL)
    model = report_config_find(&data->config, "model_name");
  if (model != NULL) {
    report_put_some(to, model, 200);
    fputs(" · ", to);
  }
  fputs(data->saves.is_final ? "<b class=\"good\">finished</b>"
                             : "<b class=\"open\">not finished</b>",
        to);
  fputs("</p>\n", to);
}

static void put_header(const report_page_t *page) {
  FILE *to = page->to;

  fputs("<header><h1>", to);
  put_names(page, " <small>and</small> ");
  fputs("</h1>\n", to);
  for (size_t r = 0; r < page->n; r++)
    put_about(page, r);
  fputs("</header>\n<main>\n", to);
}

static void put_foot(const report_page_t *page) {
  fputs("</main>\n<footer>Written by <code>tnk report</code> ", page->to);
  report_put_time(page->to, page->now_s);
  fputs(" UTC</footer>\n<script>", page->to);
  /* The digest is that of the text between the tags. */
  fputs("\n", page->to);
  report_put_lines(page->to, report_script);
  fputs("</script>\n</body>\n</html>\n", page->to);
}

/* ---- Numbers ---- */

/* Write a number about a run. Returns 0 if it is unknown. If `to` is NULL,
 * nothing is written. */
typedef int (*put_number_fn)(FILE *to, const report_data_t *data);

static int put_steps(FILE *to, const report_data_t *data) {
  const char *planned = report_config_find(&data->config, "options.steps");

  if (data->run.last_step < 0 || to == NULL)
    return data->run.last_step >= 0;
  report_put_count(to, (unsigned long long)data->run.last_step);
  if (planned != NULL) {
    fputs(" <small class=\"unit\">of ", to);
    report_put_some(to, planned, 20);
    fputs("</small>", to);
  }
  return 1;
}

/* The last value of a kind, and its best or first one. */
static int put_last(FILE *to, const report_data_t *data, report_kind_t kind,
                    const char *word) {
  const report_series_t *series = report_run_kind(&data->run, kind, 0);
  double other;

  if (series == NULL || to == NULL)
    return series != NULL;
  other = strcmp(word, "best") == 0    ? report_series_least(series).value
          : strcmp(word, "first") == 0 ? series->buckets[0].first.value
                                       : report_series_most(series).value;
  fprintf(to, "%.4g <small>%s %.4g</small>", report_series_last(series).value,
          word, other);
  return 1;
}

static int put_loss(FILE *to, const report_data_t *data) {
  return put_last(to, data, REPORT_LOSS, "first");
}

static int put_eval(FILE *to, const report_data_t *data) {
  return put_last(to, data, REPORT_EVAL, "best");
}

static int put_reward(FILE *to, const report_data_t *data) {
  return put_last(to, data, REPORT_REWARD, "highest");
}

static int put_tokens(FILE *to, const report_data_t *data) {
  const report_used_t *used = &data->saves.used;
  const uint64_t n = (uint64_t)used->n_prompt + (uint64_t)used->n_cached +
                     (uint64_t)used->n_sampled + (uint64_t)used->n_trained;

  if (n == 0 || to == NULL)
    return n > 0;
  report_put_count(to, n);
  if (used->n_sampled > 0) {
    fputs(" <small>sampled ", to);
    report_put_count(to, (unsigned long long)used->n_sampled);
    fputs("</small>", to);
  }
  return 1;
}

static int put_cost(FILE *to, const report_data_t *data) {
  if (!(data->saves.used.usd > 0) || to == NULL)
    return data->saves.used.usd > 0;
  fprintf(to, "%.2f <small class=\"unit\">USD</small>", data->saves.used.usd);
  return 1;
}

/* From the beginning in the configuration to the newest line of the ledger. */
static int put_time(FILE *to, const report_data_t *data) {
  const char *began = report_config_find(&data->config, "began_s");
  const int64_t from =
      began != NULL ? strtoll(began, NULL, 10) : data->saves.first_s;

  if (from <= 0 || data->saves.last_s <= from)
    return 0;
  if (to == NULL)
    return 1;
  report_put_duration(to, (double)(data->saves.last_s - from));
  return 1;
}

static void put_tile(const report_page_t *page, const char *title,
                     put_number_fn put) {
  FILE *to = page->to;

  fprintf(to, "<div><dt>%s</dt>", title);
  for (size_t r = 0; r < page->n; r++) {
    fputs("<dd>", to);
    if (page->n > 1)
      fprintf(to, "<i class=\"c%zu\"></i>", r);
    if (!put(to, &page->data[r]))
      fputs("-", to);
    fputs("</dd>", to);
  }
  fputs("</div>\n", to);
}

static void put_tiles(const report_page_t *page) {
  static const struct {
    const char *title;
    put_number_fn put;
  } tiles[] = {
      {"Step", put_steps},    {"Loss", put_loss},     {"Evaluation", put_eval},
      {"Reward", put_reward}, {"Tokens", put_tokens}, {"Cost", put_cost},
      {"Time", put_time},
  };

  fputs("<dl class=\"tiles\">\n", page->to);
  for (size_t i = 0; i < sizeof(tiles) / sizeof(*tiles); i++) {
    int is_known = 0;

    for (size_t r = 0; r < page->n; r++)
      is_known |= tiles[i].put(NULL, &page->data[r]);
    if (is_known)
      put_tile(page, tiles[i].title, tiles[i].put);
  }
  fputs("</dl>\n", page->to);
}

/* ---- Curves ---- */

/* Loss and evaluation in one chart: by color for one run. With two runs, the
 * color shows the run, and the evaluation is dashed. */
static int put_losses(const report_page_t *page) {
  static const report_kind_t both[] = {REPORT_LOSS, REPORT_EVAL};
  report_curve_t curves[REPORT_CHART_CURVES];
  size_t n = 0;
  int err;

  for (size_t k = 0; k < 2; k++)
    for (size_t r = 0; r < page->n; r++) {
      const report_run_t *run = &page->data[r].run;
      const report_series_t *series = report_run_kind(run, both[k], 0);

      if (series != NULL)
        curves[n++] = (report_curve_t){
            .series = series,
            .run = page->n > 1 ? run->name : NULL,
            .color = page->n > 1 ? (int)r : (int)k,
            .is_dashed = page->n > 1 && k == 1,
        };
    }
  if (n == 0)
    return TNK_OK;
  report_begin_section(page, "Loss");
  err = report_chart_put(page->to, NULL, curves, n, 1);
  report_end_section(page);
  return err;
}

/* A metric in all runs. */
static int put_metric(const report_page_t *page, const char *key) {
  report_curve_t curves[REPORT_MAX_RUNS];
  size_t n = 0;

  for (size_t r = 0; r < page->n; r++) {
    const report_series_t *series = report_run_find(&page->data[r].run, key);

    if (series != NULL)
      curves[n++] = (report_curve_t){
          .series = series,
          .run = page->n > 1 ? page->data[r].run.name : NULL,
          .color = (int)r,
      };
  }
  return report_chart_put(page->to, key, curves, n, 0);
}

/* Returns whether a metric has a chart of its own. The first losses are shown
 * already, and the epoch is a straight line. */
static int has_chart(const report_page_t *page, size_t run,
                     const report_series_t *series) {
  const report_run_t *data = &page->data[run].run;
  const report_kind_t kind = report_kind(series->key);

  if (series->n_buckets == 0 || strcmp(series->key, "epoch") == 0)
    return 0;
  if ((kind == REPORT_LOSS || kind == REPORT_EVAL) &&
      series == report_run_kind(data, kind, 0))
    return 0;
  return run == 0 || report_run_find(&page->data[0].run, series->key) == NULL;
}

/* Losses beyond the first ones are among the other metrics. */
static report_kind_t section_of(const char *key) {
  const report_kind_t kind = report_kind(key);

  return kind == REPORT_LOSS || kind == REPORT_EVAL ? REPORT_OTHER : kind;
}

static int put_kind(const report_page_t *page, const char *title,
                    report_kind_t kind, size_t *n_left) {
  size_t n = 0;
  int err = TNK_OK;

  for (size_t r = 0; r < page->n; r++)
    for (size_t i = 0; i < page->data[r].run.n_series; i++) {
      const report_series_t *series = &page->data[r].run.series[i];

      if (section_of(series->key) != kind || !has_chart(page, r, series) ||
          *n_left == 0 || err != TNK_OK)
        continue;
      if (n++ == 0) {
        report_begin_section(page, title);
        fputs("<div class=\"charts\">\n", page->to);
      }
      --*n_left;
      err = put_metric(page, series->key);
    }
  if (n > 0) {
    fputs("</div>\n", page->to);
    report_end_section(page);
  }
  return err;
}

/* ---- Time by phase ---- */

/* The phases of a run are the metrics of times. A total is not one of them. */
static int is_phase(const report_series_t *series) {
  return series->n_buckets > 0 && report_kind(series->key) == REPORT_TIME &&
         strstr(series->key, "total") == NULL;
}

/* At least 0, and finite, whatever a file has. */
static double seconds_of(const report_series_t *series) {
  const size_t n = strlen(series->key);
  const double sum = report_series_sum(series);

  if (!(sum > 0) || !isfinite(sum))
    return 0;
  return n > 3 && strcmp(series->key + n - 3, "_ms") == 0 ? sum / 1000 : sum;
}

static double longest_phase(const report_page_t *page) {
  double most = 0;

  for (size_t r = 0; r < page->n; r++)
    for (size_t i = 0; i < page->data[r].run.n_series; i++)
      if (is_phase(&page->data[r].run.series[i]))
        most = fmax(most, seconds_of(&page->data[r].run.series[i]));
  return most;
}

static void put_phase(const report_page_t *page, const char *key, double most) {
  FILE *to = page->to;

  fputs("<tr><th scope=\"row\">", to);
  report_put_text(to, key);
  fputs("</th><td>", to);
  for (size_t r = 0; r < page->n; r++) {
    const report_series_t *series = report_run_find(&page->data[r].run, key);

    if (series == NULL)
      continue;
    fprintf(to,
            "<div class=\"bar\"><i class=\"c%zu\" style=\"width:%.2f%%\"></i>"
            "<span>",
            r, seconds_of(series) / most * 70);
    report_put_duration(to, seconds_of(series));
    fputs("</span></div>", to);
  }
  fputs("</td></tr>\n", to);
}

static void put_phases(const report_page_t *page) {
  const double most = longest_phase(page);

  if (!(most > 0))
    return;
  report_begin_section(page, "Time by phase");
  fputs("<div class=\"wide\"><table class=\"phases\"><tbody>\n", page->to);
  for (size_t r = 0; r < page->n; r++)
    for (size_t i = 0; i < page->data[r].run.n_series; i++) {
      const report_series_t *series = &page->data[r].run.series[i];

      if (is_phase(series) &&
          (r == 0 || report_run_find(&page->data[0].run, series->key) == NULL))
        put_phase(page, series->key, most);
    }
  fputs("</tbody></table></div>\n", page->to);
  report_end_section(page);
}

/* ---- The page ---- */

static int put_curves(const report_page_t *page) {
  static const struct {
    const char *title;
    report_kind_t kind;
  } sections[] = {
      {"Reward", REPORT_REWARD},      {"KL and drift", REPORT_DRIFT},
      {"Learning rate", REPORT_RATE}, {"Tokens", REPORT_TOKENS},
      {"Cost", REPORT_COST},          {"Other metrics", REPORT_OTHER},
  };
  size_t n_left = MAX_CHARTS;
  int err = put_losses(page);

  for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
    if (err == TNK_OK)
      err = put_kind(page, sections[i].title, sections[i].kind, &n_left);
  if (err == TNK_OK && n_left == 0)
    fprintf(page->to,
            "<p class=\"note\">Only the first %d of these metrics have "
            "curves.</p>\n",
            MAX_CHARTS);
  return err;
}

int report_page_put(const report_page_t *page) {
  int err;

  put_head(page);
  put_header(page);
  put_tiles(page);
  err = put_curves(page);
  put_phases(page);
  report_put_samples(page);
  report_put_saves(page);
  report_put_config(page);
  report_put_notices(page);
  put_foot(page);
  return err;
}

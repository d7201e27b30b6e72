/* SPDX-License-Identifier: MIT */
/* The sections of a report without curves. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tnk/report/html.h"
#include "tools/tnk/report/page.h"

enum {
  MAX_VALUE = 500,          /* bytes of a setting */
  SOON_S = 3 * 24 * 60 * 60 /* when an expiry is near */
};

void report_begin_section(const report_page_t *page, const char *title) {
  fprintf(page->to, "<section><h2>%s</h2>\n", title);
}

void report_end_section(const report_page_t *page) {
  fputs("</section>\n", page->to);
}

void report_put_run(const report_page_t *page, size_t index) {
  if (page->n < 2)
    return;
  fprintf(page->to, "<span class=\"run\"><i class=\"c%zu\"></i>", index);
  report_put_text(page->to, page->data[index].run.name);
  fputs("</span>", page->to);
}

/* ---- Samples ---- */

/* The number of kept samples with the newest one. */
static size_t count(const report_prompt_t *prompt) {
  if (prompt == NULL)
    return 0;
  return prompt->n +
         (prompt->newest.line != NULL &&
          (prompt->n == 0 ||
           prompt->newest.step > prompt->samples[prompt->n - 1].step));
}

static const report_sample_t *sample_at(const report_prompt_t *prompt,
                                        size_t i) {
  if (i >= count(prompt))
    return NULL;
  return i < prompt->n ? &prompt->samples[i] : &prompt->newest;
}

/* Write the samples of the next step, which one run or both may have. `at` has
 * the positions in the prompts. Returns 0 if there are no more. */
static int put_next(const report_page_t *page,
                    const report_prompt_t *const prompts[REPORT_MAX_RUNS],
                    size_t at[REPORT_MAX_RUNS]) {
  int64_t step = INT64_MAX;
  FILE *to = page->to;

  for (size_t r = 0; r < page->n; r++) {
    const report_sample_t *sample = sample_at(prompts[r], at[r]);

    if (sample != NULL && sample->step < step)
      step = sample->step;
  }
  if (step == INT64_MAX)
    return 0;
  fprintf(to, "<tr><td class=\"n\">%" PRId64 "</td>", step);
  for (size_t r = 0; r < page->n; r++) {
    const report_sample_t *sample = sample_at(prompts[r], at[r]);

    fputs("<td>", to);
    if (sample != NULL && sample->step == step) {
      fputs("<pre>", to);
      report_put_some(to, sample->text, REPORT_MAX_ANSWER);
      fputs("</pre>", to);
      at[r]++;
    }
    fputs("</td>", to);
  }
  fputs("</tr>\n", to);
  return 1;
}

static const report_prompt_t *find(const report_samples_t *samples,
                                   const char *prompt) {
  for (size_t i = 0; i < samples->n; i++)
    if (strcmp(samples->prompts[i].prompt, prompt) == 0)
      return &samples->prompts[i];
  return NULL;
}

static void put_prompt(const report_page_t *page, const char *prompt) {
  const report_prompt_t *prompts[REPORT_MAX_RUNS] = {NULL};
  size_t at[REPORT_MAX_RUNS] = {0};
  FILE *to = page->to;

  fputs("<h3 class=\"prompt\">", to);
  report_put_some(to, prompt, REPORT_MAX_PROMPT);
  fputs("</h3>\n<div class=\"wide\"><table><thead><tr><th class=\"n\">Step"
        "</th>",
        to);
  for (size_t r = 0; r < page->n; r++) {
    prompts[r] = find(&page->data[r].samples, prompt);
    fputs("<th>", to);
    if (page->n > 1)
      report_put_run(page, r);
    else
      fputs("Sample", to);
    fputs("</th>", to);
  }
  fputs("</tr></thead><tbody>\n", to);
  while (put_next(page, prompts, at))
    continue;
  fputs("</tbody></table></div>\n", to);
}

void report_put_samples(const report_page_t *page) {
  size_t n = 0;

  for (size_t r = 0; r < page->n; r++)
    n += page->data[r].samples.n;
  if (n == 0)
    return;
  report_begin_section(page, "Samples");
  for (size_t r = 0; r < page->n; r++)
    for (size_t i = 0; i < page->data[r].samples.n; i++) {
      const char *prompt = page->data[r].samples.prompts[i].prompt;

      if (r == 0 || find(&page->data[0].samples, prompt) == NULL)
        put_prompt(page, prompt);
    }
  report_end_section(page);
}

/* ---- Checkpoints ---- */

static void put_path(FILE *to, const char *what, const char *path) {
  if (path == NULL)
    return;
  fprintf(to, "<div><small>%s</small> <code>", what);
  report_put_text(to, path);
  fputs("</code></div>", to);
}

static void put_expiry(const report_page_t *page, const report_save_t *save) {
  FILE *to = page->to;

  if (save->expires_s == 0)
    fputs("never", to);
  else {
    report_put_time(to, save->expires_s);
    if (save->expires_s <= page->now_s)
      fputs(" <b class=\"bad\">expired</b>", to);
    else if (save->expires_s - page->now_s < SOON_S)
      fputs(" <b class=\"bad\">soon</b>", to);
  }
}

static void put_save(const report_page_t *page, const report_save_t *save) {
  FILE *to = page->to;

  fputs("<tr><td class=\"n\">", to);
  if (save->step >= 0)
    fprintf(to, "%" PRId64, save->step);
  fputs("</td><td>", to);
  report_put_text(to, save->name);
  if (save->is_final)
    fputs(" <b class=\"good\">final</b>", to);
  put_path(to, "state", save->state_path);
  put_path(to, "sampler", save->sampler_path);
  fputs("</td><td>", to);
  report_put_time(to, save->time_s);
  fputs("</td><td>", to);
  put_expiry(page, save);
  fputs("</td></tr>\n", to);
}

/* Saves whose state was deleted are not shown: later ones replace them. */
static int is_shown(const report_save_t *save) {
  return save->state_path != NULL || save->sampler_path != NULL;
}

static size_t n_shown(const report_saves_t *saves) {
  size_t n = 0;

  for (size_t i = 0; i < saves->n; i++)
    n += (size_t)is_shown(&saves->saves[i]);
  return n;
}

static void put_saves_of(const report_page_t *page, size_t run) {
  const report_saves_t *saves = &page->data[run].saves;
  FILE *to = page->to;

  if (n_shown(saves) == 0)
    return;
  if (page->n > 1) {
    fputs("<h3>", to);
    report_put_run(page, run);
    fputs("</h3>", to);
  }
  fputs("<div class=\"wide\"><table><thead><tr><th class=\"n\">Step</th>"
        "<th>Checkpoint</th><th>Saved (UTC)</th><th>Expires</th></tr></thead>"
        "<tbody>\n",
        to);
  for (size_t i = 0; i < saves->n; i++)
    if (is_shown(&saves->saves[i]))
      put_save(page, &saves->saves[i]);
  fputs("</tbody></table></div>\n", to);
  if (saves->n_dropped > 0)
    fprintf(to,
            "<p class=\"note\">Earlier checkpoints that are not shown: "
            "%zu.</p>\n",
            saves->n_dropped);
}

void report_put_saves(const report_page_t *page) {
  size_t n = 0;

  for (size_t r = 0; r < page->n; r++)
    n += n_shown(&page->data[r].saves);
  if (n == 0)
    return;
  report_begin_section(page, "Checkpoints");
  for (size_t r = 0; r < page->n; r++)
    put_saves_of(page, r);
  report_end_section(page);
}

/* ---- Configuration ---- */

static void put_setting(const report_page_t *page, const char *name) {
  const char *values[REPORT_MAX_RUNS] = {NULL};
  FILE *to = page->to;
  int differs = 0;

  for (size_t r = 0; r < page->n; r++)
    values[r] = report_config_find(&page->data[r].config, name);
  if (page->n > 1)
    differs = values[0] == NULL || values[1] == NULL ||
              strcmp(values[0], values[1]) != 0;
  fprintf(to, "<tr%s><th scope=\"row\">", differs ? " class=\"differs\"" : "");
  report_put_some(to, name, MAX_VALUE);
  fputs("</th>", to);
  for (size_t r = 0; r < page->n; r++) {
    fputs("<td>", to);
    report_put_some(to, values[r] != NULL ? values[r] : "-", MAX_VALUE);
    fputs("</td>", to);
  }
  fputs("</tr>\n", to);
}

void report_put_config(const report_page_t *page) {
  FILE *to = page->to;
  size_t n = 0;

  for (size_t r = 0; r < page->n; r++)
    n += page->data[r].config.n;
  if (n == 0)
    return;
  report_begin_section(page, "Configuration");
  fputs("<div class=\"wide\"><table class=\"config\">", to);
  if (page->n > 1) {
    fputs("<thead><tr><th></th>", to);
    for (size_t r = 0; r < page->n; r++) {
      fputs("<th>", to);
      report_put_run(page, r);
      fputs("</th>", to);
    }
    fputs("</tr></thead>", to);
  }
  fputs("<tbody>\n", to);
  for (size_t r = 0; r < page->n; r++)
    for (size_t i = 0; i < page->data[r].config.n; i++) {
      const char *name = page->data[r].config.settings[i].name;

      if (r == 0 || report_config_find(&page->data[0].config, name) == NULL)
        put_setting(page, name);
    }
  fputs("</tbody></table></div>\n", to);
  report_end_section(page);
}

/* ---- Notices ---- */

static void begin_notice(const report_page_t *page, size_t run, size_t *n) {
  if ((*n)++ == 0) {
    report_begin_section(page, "Notices");
    fputs("<ul class=\"notices\">\n", page->to);
  }
  fputs("<li>", page->to);
  report_put_run(page, run);
}

static void notice_lines(const report_page_t *page, size_t run,
                         const char *file, const report_lines_t *lines,
                         size_t *n) {
  if (lines->n_bad == 0)
    return;
  begin_notice(page, run, n);
  fprintf(page->to,
          "%s has lines that cannot be read: %zu of %zu, the first is line "
          "%zu.</li>\n",
          file, lines->n_bad, lines->n_lines, lines->first_bad);
}

static void notice_odd(const report_page_t *page, size_t run, size_t *n) {
  const report_run_t *data = &page->data[run].run;

  for (size_t i = 0; i < data->n_series; i++) {
    const report_series_t *series = &data->series[i];

    if (series->n_odd == 0)
      continue;
    begin_notice(page, run, n);
    fputs("<b>", page->to);
    report_put_some(page->to, series->key, MAX_VALUE);
    fprintf(page->to,
            "</b> has values that are not finite: %zu, the first at step "
            "%" PRId64 ".</li>\n",
            series->n_odd, series->odd_step);
  }
  if (data->n_left_out > 0) {
    begin_notice(page, run, n);
    fprintf(page->to, "Only the first %d metrics are shown.</li>\n",
            REPORT_MAX_SERIES);
  }
}

static void notice_saves(const report_page_t *page, size_t run, size_t *n) {
  const report_saves_t *saves = &page->data[run].saves;

  if (saves->n_attempts > 1) {
    begin_notice(page, run, n);
    fprintf(page->to,
            "The run was resumed: %" PRId64 " processes trained it."
            "</li>\n",
            saves->n_attempts);
  }
  if (saves->n_failed > 0) {
    begin_notice(page, run, n);
    fprintf(page->to, "Failed saves: %zu.</li>\n", saves->n_failed);
  }
  if (saves->used.n_unpriced > 0 && saves->used.usd > 0) {
    begin_notice(page, run, n);
    fputs("The cost does not include ", page->to);
    report_put_count(page->to, (unsigned long long)saves->used.n_unpriced);
    fputs(" tokens whose price is unknown.</li>\n", page->to);
  }
}

static void notice_limits(const report_page_t *page, size_t run, size_t *n) {
  const report_data_t *data = &page->data[run];

  if (data->config.is_bad) {
    begin_notice(page, run, n);
    fputs("config.json cannot be read.</li>\n", page->to);
  }
  if (data->config.is_cut) {
    begin_notice(page, run, n);
    fputs("Some settings are not shown.</li>\n", page->to);
  }
  if (data->samples.n_left_out > 0) {
    begin_notice(page, run, n);
    fprintf(page->to,
            "Only the samples of the first %d prompts are shown."
            "</li>\n",
            REPORT_MAX_PROMPTS);
  }
}

void report_put_notices(const report_page_t *page) {
  size_t n = 0;

  for (size_t r = 0; r < page->n; r++) {
    const report_data_t *data = &page->data[r];

    notice_odd(page, r, &n);
    notice_saves(page, r, &n);
    notice_limits(page, r, &n);
    notice_lines(page, r, "metrics.jsonl", &data->run.lines, &n);
    notice_lines(page, r, "checkpoints.jsonl", &data->saves.lines, &n);
    notice_lines(page, r, "samples.jsonl", &data->samples.lines, &n);
  }
  if (n == 0)
    return;
  fputs("</ul>\n", page->to);
  report_end_section(page);
}

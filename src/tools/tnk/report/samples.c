/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

static void drop(report_sample_t *sample) {
  json_decref(sample->line);
  *sample = (report_sample_t){0};
}

/* Remove the samples from a step on: the run was resumed before it. */
static void cut(report_prompt_t *prompt, int64_t step) {
  while (prompt->n > 0 && prompt->samples[prompt->n - 1].step >= step)
    drop(&prompt->samples[--prompt->n]);
}

/* Keep each second sample. */
static void thin(report_prompt_t *prompt) {
  for (size_t i = 1; i < prompt->n; i += 2)
    drop(&prompt->samples[i]);
  for (size_t i = 0; i < prompt->n; i += 2)
    prompt->samples[i / 2] = prompt->samples[i];
  prompt->n /= 2;
  prompt->every *= 2;
}

static void add(report_prompt_t *prompt, const json_t *line, int64_t step,
                const char *text) {
  const report_sample_t sample = {(json_t *)line, step, text};

  cut(prompt, step);
  if (prompt->n_seen++ % prompt->every == 0) {
    if (prompt->n == REPORT_MAX_SAMPLES)
      thin(prompt);
    prompt->samples[prompt->n] = sample;
    json_incref(prompt->samples[prompt->n++].line);
  }
  drop(&prompt->newest);
  prompt->newest = sample;
  json_incref(prompt->newest.line);
}

/* The entry of a prompt, which is added if it is new. */
static report_prompt_t *find(report_samples_t *samples, const char *prompt) {
  report_prompt_t *found = samples->prompts;

  for (size_t i = 0; i < samples->n; i++, found++)
    if (strcmp(found->prompt, prompt) == 0)
      return found;
  *found = (report_prompt_t){.prompt = strdup(prompt), .every = 1};
  if (found->prompt == NULL)
    return NULL;
  samples->n++;
  return found;
}

static int is_new(const report_samples_t *samples, const char *prompt) {
  for (size_t i = 0; i < samples->n; i++)
    if (strcmp(samples->prompts[i].prompt, prompt) == 0)
      return 0;
  return 1;
}

static int on_line(const json_t *line, void *user) {
  report_samples_t *samples = user;
  const char *text = tnk__json_str(line, "text");
  const char *prompt = tnk__json_str(line, "prompt");
  report_prompt_t *entry;
  int64_t step;

  if (text == NULL || prompt == NULL ||
      tnk__json_get_int(line, "step", 0, INT64_MAX, &step) != TNK__JSON_FOUND)
    return TNK_EPROTO;
  if (samples->n == REPORT_MAX_PROMPTS && is_new(samples, prompt)) {
    samples->n_left_out++;
    return TNK_OK;
  }
  entry = find(samples, prompt);
  if (entry == NULL)
    return TNK_ENOMEM;
  add(entry, line, step, text);
  return TNK_OK;
}

int report_samples_read(report_samples_t *samples, const char *path) {
  int err;

  *samples = (report_samples_t){0};
  err = report_lines_read(&samples->lines, path, on_line, samples);
  return err == TNK_EFILE && errno == ENOENT ? TNK_OK : err;
}

void report_samples_free(report_samples_t *samples) {
  for (size_t i = 0; i < samples->n; i++) {
    cut(&samples->prompts[i], -1);
    drop(&samples->prompts[i].newest);
    free(samples->prompts[i].prompt);
  }
  samples->n = 0;
}

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_SAMPLES_H
#define TNK_TOOLS_TNK_REPORT_SAMPLES_H

#include <stdint.h>

#include "tools/tnk/report/lines.h"

enum {
  REPORT_MAX_PROMPTS = 16,
  REPORT_MAX_SAMPLES = 16, /* of a prompt; must be even */
  REPORT_MAX_PROMPT = 500, /* bytes of a prompt that are shown */
  REPORT_MAX_ANSWER = 2000 /* bytes of a sample that are shown */
};

typedef struct {
  json_t *line; /* owns the text */
  int64_t step;
  const char *text;
} report_sample_t;

/* The samples of a prompt over the steps. If there are many, only each second
 * sample is kept, then each fourth and so on, and the newest one. */
typedef struct {
  char *prompt;
  report_sample_t samples[REPORT_MAX_SAMPLES];
  size_t n;
  size_t every;
  size_t n_seen;
  report_sample_t newest;
} report_prompt_t;

typedef struct {
  report_prompt_t prompts[REPORT_MAX_PROMPTS];
  size_t n;
  size_t n_left_out; /* samples of more prompts */
  report_lines_t lines;
} report_samples_t;

/*
 * Read samples.jsonl, which a program may write while it trains:
 *
 *     {"step": 20, "prompt": "Hi", "text": "Hello"}
 *
 * A missing file has no samples. Returns TNK_OK, TNK_EFILE with errno set, or
 * TNK_ENOMEM. Free the samples in any case.
 */
int report_samples_read(report_samples_t *samples, const char *path);
void report_samples_free(report_samples_t *samples);

#endif

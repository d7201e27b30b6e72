/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_OUT_PROGRESS_H
#define TNK_TOOLS_TNK_OUT_PROGRESS_H

#include "tools/common/frame/cli.h"

/*
 * Progress on standard error: a bar on a terminal, a line for each quarter
 * elsewhere, one JSON object per line with --json, nothing with --quiet.
 */
typedef struct {
  const cli_t *cli;
  const char *label;
  int64_t total; /* 0 or less: unknown */
  int64_t rate;  /* per second; 0: unknown */
  int64_t last;  /* last reported value */
  int is_bytes;  /* else items */
  int is_shown;  /* a bar is visible */
  int64_t step;  /* last reported quarter */
  uint64_t drawn_ms;
} cli_progress_t;

/* `label` must stay valid until the end. */
void cli_progress_begin(cli_progress_t *progress, const cli_t *cli,
                        const char *label, int64_t total, int is_bytes);
void cli_progress_at(cli_progress_t *progress, int64_t done);
/* Remove the bar. */
void cli_progress_end(cli_progress_t *progress);

#endif

#ifndef TNK_TOOLS_TNK_OUT_PROGRESS_H
#define TNK_TOOLS_TNK_OUT_PROGRESS_H

#include "tools/common/frame/cli.h"

/*
 * How far something is, on standard error: a bar on a terminal, a line at each
 * quarter elsewhere, an object of JSON a line with --json, nothing with
 * --quiet.
 */
typedef struct {
  const cli_t *cli;
  const char *label;
  int64_t total; /* 0 and below: unknown */
  int64_t rate;  /* a second; 0: not told */
  int64_t last;  /* that was told */
  int is_bytes;  /* and not things */
  int is_shown;  /* a bar is there */
  int64_t step;  /* the last quarter that was told */
  uint64_t drawn_ms;
} cli_progress_t;

/* `label` lives as long as the progress. */
void cli_progress_begin(cli_progress_t *progress, const cli_t *cli,
                        const char *label, int64_t total, int is_bytes);
void cli_progress_at(cli_progress_t *progress, int64_t done);
/* Take the bar away. */
void cli_progress_end(cli_progress_t *progress);

#endif

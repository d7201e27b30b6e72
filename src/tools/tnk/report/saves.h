/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_SAVES_H
#define TNK_TOOLS_TNK_REPORT_SAVES_H

#include <stdint.h>

#include "tools/tnk/report/lines.h"

/* The most saves of a run that are kept: the last ones. */
enum { REPORT_MAX_SAVES = 200 };

/* A save in the ledger of a run, checkpoints.jsonl. */
typedef struct {
  json_t *line; /* owns the strings */
  const char *name;
  const char *state_path;   /* NULL: none, or deleted */
  const char *sampler_path; /* or NULL */
  int64_t step;             /* -1: unknown */
  int64_t time_s;           /* 0: unknown */
  int64_t expires_s;        /* 0: never, or unknown */
  int64_t attempt;
  int64_t save;
  int is_final;
} report_save_t;

/* The tokens and money that a run has used, up to the newest line. */
typedef struct {
  int64_t n_prompt;
  int64_t n_cached;
  int64_t n_sampled;
  int64_t n_trained;
  int64_t n_unpriced; /* tokens without a known price */
  double usd;
} report_used_t;

typedef struct {
  report_save_t saves[REPORT_MAX_SAVES];
  size_t n;
  size_t n_dropped; /* earlier saves */
  size_t n_failed;
  int64_t n_attempts; /* processes that have saved; 0: unknown */
  int64_t first_s;    /* times of the first and the newest line; 0: unknown */
  int64_t last_s;
  int is_final;
  report_used_t used;
  report_lines_t lines;
} report_saves_t;

/* Read a ledger. A missing file has no saves. Returns TNK_OK, TNK_EFILE with
 * errno set, or TNK_ENOMEM. Free the saves in any case. */
int report_saves_read(report_saves_t *saves, const char *path);
void report_saves_free(report_saves_t *saves);

#endif

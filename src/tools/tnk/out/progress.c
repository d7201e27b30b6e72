/* SPDX-License-Identifier: MIT */
#include "tools/tnk/out/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tools/common/base/input.h"
#include "tools/common/base/terminal.h"
#include "tools/tnk/out/table.h"

enum { BAR = 24, REDRAW_MS = 100 };
/* Interval between lines if the total is unknown. */
static const int64_t step_of_things = 1000;
static const int64_t step_of_bytes = 64 << 20;

static uint64_t now_ms(void) {
  struct timespec now;

  return clock_gettime(CLOCK_MONOTONIC, &now) == 0
             ? (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000
             : 0;
}

void cli_progress_begin(cli_progress_t *progress, const cli_t *cli,
                        const char *label, int64_t total, int is_bytes) {
  *progress = (cli_progress_t){.cli = cli,
                               .label = label,
                               .total = total > 0 ? total : 0,
                               .is_bytes = is_bytes};
}

static void write_count(const cli_progress_t *progress, char *out, size_t n,
                        int64_t done) {
  char a[CLI_HUMAN_TEXT], b[CLI_HUMAN_TEXT];

  if (progress->is_bytes) {
    cli_human_size(a, done);
    cli_human_size(b, progress->total);
  } else {
    snprintf(a, sizeof(a), "%" PRId64, done);
    snprintf(b, sizeof(b), "%" PRId64, progress->total);
  }
  if (progress->total > 0)
    snprintf(out, n, "%s of %s", a, b);
  else
    snprintf(out, n, "%s", a);
}

static void draw(cli_progress_t *progress, int64_t done) {
  char bar[BAR + 1], count[2 * CLI_HUMAN_TEXT + 8], label[160];
  char rate[CLI_HUMAN_TEXT];
  uint64_t now = now_ms();
  double share;
  size_t n;

  if (progress->is_shown && now - progress->drawn_ms < REDRAW_MS)
    return;
  progress->drawn_ms = now;
  progress->is_shown = 1;
  write_count(progress, count, sizeof(count), done);
  snprintf(label, sizeof(label), "%.159s", progress->label);
  cli_clean(label);
  if (progress->total == 0) {
    fprintf(stderr, "\r\033[K%s  %s", label, count);
  } else {
    share = (double)done / (double)progress->total;
    n = share >= 1 ? BAR : (size_t)(share * (double)BAR);
    memset(bar, '-', BAR);
    memset(bar, '#', n);
    bar[BAR] = '\0';
    fprintf(stderr, "\r\033[K%s  [%s]  %s  %d%%", label, bar, count,
            share >= 1 ? 100 : (int)(share * 100));
  }
  if (progress->rate > 0) {
    cli_human_size(rate, progress->rate);
    fprintf(stderr, "  %s/s", rate);
  }
  fflush(stderr);
}

/* Without a terminal a line for each update would fill a log. */
static void tell(cli_progress_t *progress, int64_t done) {
  int64_t unit = progress->is_bytes ? step_of_bytes : step_of_things;
  int64_t step = progress->total > 0
                     ? (int64_t)((double)done / (double)progress->total * 4)
                     : done / unit;
  char count[2 * CLI_HUMAN_TEXT + 8], label[160];

  if (step <= progress->step)
    return;
  progress->step = step;
  snprintf(label, sizeof(label), "%.159s", progress->label);
  cli_clean(label);
  if (!progress->cli->json) {
    write_count(progress, count, sizeof(count), done);
    fprintf(stderr, "%s: %s\n", label, count);
    return;
  }
  fprintf(stderr, "{\"progress\":{\"label\":");
  cli_put_json_text(stderr, label, strlen(label));
  fprintf(stderr, ",\"unit\":\"%s\",\"done\":%" PRId64,
          progress->is_bytes ? "bytes" : "items", done);
  if (progress->total > 0)
    fprintf(stderr, ",\"total\":%" PRId64, progress->total);
  fprintf(stderr, "}}\n");
}

void cli_progress_at(cli_progress_t *progress, int64_t done) {
  progress->last = done;
  if (progress->cli->quiet)
    return;
  if (!progress->cli->json && cli_can_rewrite(stderr))
    draw(progress, done);
  else
    tell(progress, done);
}

void cli_progress_end(cli_progress_t *progress) {
  if (progress->is_shown)
    fprintf(stderr, "\r\033[K");
  progress->is_shown = 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * Converts the use of a run between lines and counts. Writes the use since the
 * last save once a minute and when the ledger closes, so that a killed program
 * loses little.
 */
#include "lib/ledger/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"

enum { NOTE_MS = 60 * 1000, MAX_LAST = 1024 };

/* In the order of tnk__ledger_used_t. */
static const size_t places[TNK__LEDGER_N_USED] = {
    [TNK__LEDGER_PROMPT] = offsetof(tnk__totals_t, prompt_tokens),
    [TNK__LEDGER_CACHED] = offsetof(tnk__totals_t, cached_tokens),
    [TNK__LEDGER_SAMPLED] = offsetof(tnk__totals_t, sampled_tokens),
    [TNK__LEDGER_TRAINED] = offsetof(tnk__totals_t, trained_tokens),
    [TNK__LEDGER_UNPRICED] = offsetof(tnk__totals_t, unpriced_tokens),
    [TNK__LEDGER_DOUBTFUL] = offsetof(tnk__totals_t, doubtful_tokens),
    [TNK__LEDGER_COST] = offsetof(tnk__totals_t, cost),
    [TNK__LEDGER_DOUBTFUL_COST] = offsetof(tnk__totals_t, doubtful_cost),
    [TNK__LEDGER_REQUESTS] = offsetof(tnk__totals_t, n_requests),
    [TNK__LEDGER_SENT] = offsetof(tnk__totals_t, n_bytes_sent),
    [TNK__LEDGER_RECEIVED] = offsetof(tnk__totals_t, n_bytes_received)};

tnk__totals_t tnk__ledger_used(const tnk__ledger_line_t *line) {
  tnk__totals_t totals = {0};

  for (size_t i = 0; i < TNK__LEDGER_N_USED; i++) {
    const uint64_t n = (uint64_t)line->used[i];
    memcpy((char *)&totals + places[i], &n, sizeof(n));
  }
  return totals;
}

/* Every save sends requests, so a line without requests has no counts. */
int tnk__ledger_tells_used(const tnk__ledger_line_t *line) {
  return line->used[TNK__LEDGER_REQUESTS] > 0;
}

/* Only the first ledger of a service sets the earlier use. */
void tnk__ledger_begin_used(tnk_ledger_t *ledger) {
  tnk__allowance_t *allowance = &ledger->session->limits.allowance;

  if (allowance->kept.n_requests > 0)
    return;
  allowance->kept = ledger->used;
  if (allowance->before.n_requests == 0)
    allowance->before = ledger->used;
}

void tnk__ledger_tell_used(tnk__ledger_line_t *line, tnk_ledger_t *ledger) {
  const tnk__totals_t totals = tnk__session_run_used(ledger->session);

  ledger->told = ledger->session->limits.allowance.used;

  for (size_t i = 0; i < TNK__LEDGER_N_USED; i++) {
    uint64_t n;
    memcpy(&n, (const char *)&totals + places[i], sizeof(n));
    line->used[i] = n <= INT64_MAX ? (int64_t)n : INT64_MAX;
  }
}

void tnk__ledger_forget_told(tnk_ledger_t *ledger) {
  ledger->told = (tnk__totals_t){0};
}

/* Only tokens and money matter. A program that sends only read requests writes
 * no line. */
static int has_used_more(const tnk_ledger_t *ledger) {
  const tnk__totals_t *used = &ledger->session->limits.allowance.used;

  return memcmp(used, &ledger->told, offsetof(tnk__totals_t, n_requests)) != 0;
}

static void on_minute(tnk__timer_t *timer);

static void wait_a_minute(tnk_ledger_t *ledger) {
  if (!ledger->closing)
    tnk__timer_start_background(ledger->session->context, &ledger->minute,
                                NOTE_MS, on_minute);
}

/* Logged once, because a full disk stays full for a while. */
static void on_written(tnk__pen_line_t *pen_line, int cause) {
  tnk_ledger_t *ledger =
      tnk__container_of(pen_line, tnk_ledger_t, last_pen_line);

  if (cause != 0)
    tnk__ledger_forget_told(ledger);
  if (cause != 0 && (!ledger->is_unnoted || ledger->has_last))
    tnk__log(&ledger->session->context->logger, TNK_LOG_WARN, "ledger",
             "%s: the usage since the last save could not be recorded: %s",
             ledger->path, uv_strerror(cause));
  ledger->is_unnoted = cause != 0;
  wait_a_minute(ledger);
}

static void write_used(tnk_ledger_t *ledger) {
  tnk__ledger_line_t line = tnk__ledger_blank;
  char name[48];

  snprintf(name, sizeof(name), "used-a%" PRId64, ledger->attempt);
  line.event = TNK__LEDGER_USED;
  line.name = name;
  line.attempt = ledger->attempt;
  line.time_s = tnk__context_wall_s(ledger->session->context);
  tnk__ledger_tell_used(&line, ledger);
  tnk__buf_clear(&ledger->last_text);
  (void)tnk__ledger_write(&ledger->last_text, &line);
  tnk__pen_line_init(&ledger->last_pen_line, on_written);
  tnk__pen_write(&ledger->pen, &ledger->last_pen_line, &ledger->last_text);
}

/* If the pen is busy, the line that it writes contains the counts. */
static void on_minute(tnk__timer_t *timer) {
  tnk_ledger_t *ledger = tnk__container_of(timer, tnk_ledger_t, minute);

  if (has_used_more(ledger) && !ledger->pen.is_busy)
    write_used(ledger);
  else
    wait_a_minute(ledger);
}

void tnk__ledger_note_used(tnk_ledger_t *ledger) {
  wait_a_minute(ledger);
}

int tnk__ledger_prepare_last(tnk_ledger_t *ledger) {
  const tnk_allocator_t *alloc = &ledger->session->context->alloc;

  tnk__buf_init(&ledger->last_text, alloc, MAX_LAST);
  return tnk__buf_reserve(&ledger->last_text, MAX_LAST) != NULL &&
         tnk__buf_reserve(&ledger->pen.batch, MAX_LAST) != NULL;
}

int tnk__ledger_write_last(tnk_ledger_t *ledger) {
  if (!ledger->is_open || ledger->has_last || !has_used_more(ledger))
    return 0;
  ledger->has_last = 1;
  write_used(ledger);
  return 1;
}

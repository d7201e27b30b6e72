/* SPDX-License-Identifier: MIT */
/*
 * Decides when a save is due and how long it stays. Logs warnings about expiry.
 *
 * Rolling saves beyond the limit are deleted one after the other:
 *
 *   ASKING the service --it is gone--> NOTING (pool) --> the next one, or over
 *
 * If the service does not delete a save, its time to live ends it.
 */
#include "lib/ledger/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/base/options.h"
#include "lib/client/train/op.h"
#include "lib/store/ask.h"
#include "lib/store/rest.h"

enum {
  MAX_TEXTS = 16 * 1024,
  /* Percentage of the last state's time to live. If no save has followed by
   * then, a warning is logged. */
  WARN_AT_PERCENT = 75
};

static const char *const op_name = "ledger_delete";

static void start_sweep(tnk_ledger_t *ledger);

struct tnk__ledger_sweep {
  tnk_ledger_t *ledger; /* NULL: the ledger was closed */
  tnk__context_t *context;
  tnk__ledger_entry_t *entry;
  tnk_promise_t *asked; /* NULL: the line is being written */
  tnk__then_t then;
  tnk__buf_t text;
  tnk__pen_line_t pen_line;
};

/* ---- When a save is due ---- */

static uint64_t n_steps_of(const tnk_training_t *training) {
  return tnk__tally_expected(training).n_steps;
}

/* A loaded state may have restarted the count. */
static int is_due_by_steps(const tnk__ledger_policy_t *policy, uint64_t n) {
  const uint64_t every = policy->every_steps;
  const uint64_t last = policy->last_steps;
  const uint64_t from = last <= n && every > 0 ? last - last % every : 0;

  return every > 0 && n - from >= every;
}

static int is_due_by_time(const tnk_ledger_t *ledger, uint64_t n) {
  const tnk__ledger_policy_t *policy = &ledger->policy;
  const uint64_t now_ms = tnk__context_now_ms(ledger->session->context);

  return policy->every_ms > 0 && n != policy->last_steps &&
         now_ms - policy->last_ms >= policy->every_ms;
}

int tnk__ledger_due(const tnk_ledger_t *ledger,
                    const tnk_training_t *training) {
  const uint64_t n = n_steps_of(training);

  return ledger->policy.has_failed || is_due_by_steps(&ledger->policy, n) ||
         is_due_by_time(ledger, n);
}

void tnk__ledger_policy_begin(tnk_ledger_t *ledger, uint64_t n_steps) {
  tnk__ledger_policy_t *policy = &ledger->policy;

  policy->last_steps = n_steps;
  policy->last_ms = tnk__context_now_ms(ledger->session->context);
  policy->has_failed = 0;
}

void tnk__ledger_policy_apply(const tnk__ledger_policy_t *policy,
                              tnk__ledger_line_t *line,
                              const tnk_ledger_save_t *how) {
  const int may_go = how->is_final != TNK_YES && how->is_rolling != TNK_NO;

  line->is_final = how->is_final == TNK_YES;
  line->is_rolling =
      how->is_rolling == TNK_YES || (may_go && policy->n_rolling > 0);
  line->ttl_s = (int64_t)how->ttl_seconds;
  if (line->ttl_s == 0 && may_go)
    line->ttl_s = (int64_t)policy->ttl_s;
}

/* ---- Expiry of the last state ---- */

static const char *path_of(const tnk__ledger_entry_t *entry) {
  return entry->pub.state_path;
}

static void on_expiring(tnk__timer_t *timer) {
  tnk_ledger_t *ledger =
      tnk__container_of(timer, tnk_ledger_t, policy.expiring);
  tnk__context_t *context = ledger->session->context;
  const tnk__ledger_entry_t *entry = ledger->policy.watched;

  tnk__log(&context->logger, TNK_LOG_WARN, "ledger",
           "%s: %s, the last state of the run, expires in %" PRIu64
           " s, and nothing was saved since",
           ledger->path, path_of(entry),
           (ledger->policy.expires_ms - tnk__context_now_ms(context)) / 1000);
}

/* The longer one of the last and the configured interval estimates the next
 * one. */
static int comes_too_rarely(tnk_ledger_t *ledger,
                            const tnk__ledger_entry_t *entry, int64_t left_s,
                            uint64_t apart_ms) {
  const uint64_t left_ms = (uint64_t)left_s * 1000;

  if (apart_ms < left_ms)
    return 0;
  tnk__log(&ledger->session->context->logger, TNK_LOG_WARN, "ledger",
           "%s: %s, the last state of the run, expires in %" PRId64
           " s, and saves come %" PRIu64
           " s apart: it will expire before the next one",
           ledger->path, path_of(entry), left_s, apart_ms / 1000);
  return 1;
}

/* The limit keeps the product with 1000 from overflowing. */
static int64_t left_of(const tnk_ledger_t *ledger,
                       const tnk__ledger_entry_t *entry) {
  const int64_t now_s = tnk__context_wall_s(ledger->session->context);
  const int64_t most = INT64_MAX / 1000 / 100;

  if (entry->pub.expires_s <= now_s)
    return 0;
  return entry->pub.expires_s - now_s < most ? entry->pub.expires_s - now_s
                                             : most;
}

void tnk__ledger_watch(tnk_ledger_t *ledger, tnk__ledger_entry_t *entry) {
  tnk__ledger_policy_t *policy = &ledger->policy;
  tnk__context_t *context = ledger->session->context;
  const uint64_t now_ms = tnk__context_now_ms(context);
  uint64_t apart_ms = policy->every_steps == 0 ? policy->every_ms : 0;
  const int64_t left_s = left_of(ledger, entry);

  if (policy->watched != NULL && now_ms - policy->watched_ms > apart_ms)
    apart_ms = now_ms - policy->watched_ms;
  tnk__timer_stop(&policy->expiring);
  policy->watched = entry;
  policy->watched_ms = now_ms;
  policy->expires_ms = now_ms + (uint64_t)left_s * 1000;
  if (left_s > 0 && !comes_too_rarely(ledger, entry, left_s, apart_ms))
    tnk__timer_start_background(context, &policy->expiring,
                                (uint64_t)left_s * 10 * WARN_AT_PERCENT,
                                on_expiring);
}

/* ---- Excess rolling saves ---- */

static void forget(tnk__ledger_sweep_t *sweep) {
  const tnk_allocator_t *alloc = &sweep->context->alloc;

  if (sweep->ledger != NULL)
    sweep->ledger->policy.sweep = NULL;
  tnk__buf_deinit(&sweep->text);
  tnk__free(alloc, sweep);
}

static void on_noted(tnk__pen_line_t *pen_line, int cause) {
  tnk__ledger_sweep_t *sweep =
      tnk__container_of(pen_line, tnk__ledger_sweep_t, pen_line);
  tnk_ledger_t *ledger = sweep->ledger;

  if (cause != 0)
    tnk__log(&sweep->context->logger, TNK_LOG_INFO, "ledger",
             "%s: %s: the deletion of a state could not be recorded: %s",
             op_name, ledger->path, uv_strerror(cause));
  forget(sweep);
  start_sweep(ledger);
}

static void note(tnk__ledger_sweep_t *sweep) {
  tnk__ledger_line_t line = tnk__ledger_blank;

  sweep->entry->pub.is_deleted = 1;
  line.event = TNK__LEDGER_DELETED;
  line.name = sweep->entry->pub.name;
  line.attempt = sweep->entry->attempt;
  line.save = sweep->entry->save;
  (void)tnk__ledger_write(&sweep->text, &line);
  tnk__pen_line_init(&sweep->pen_line, on_noted);
  tnk__pen_write(&sweep->ledger->pen, &sweep->pen_line, &sweep->text);
}

static void on_deleted(tnk_promise_t *promise, int status, void *arg) {
  tnk__ledger_sweep_t *sweep = arg;
  tnk_ledger_t *ledger = sweep->ledger;

  sweep->asked = NULL;
  if (ledger == NULL) {
    forget(sweep);
  } else if (status == TNK_OK || status == TNK_ENOTFOUND) {
    note(sweep);
  } else {
    tnk__log(&sweep->context->logger, TNK_LOG_INFO, "ledger",
             "%s: %s is not deleted: %s", op_name, path_of(sweep->entry),
             tnk__promise_error(promise)->pub.text);
    forget(sweep);
    start_sweep(ledger);
  }
  tnk_promise_unref(promise);
}

/* The oldest rolling save by tnk that exceeds the limit and was not tried yet.
 * The path comes from the file and goes into a request, so it is checked. */
static tnk__ledger_entry_t *next_of(tnk_ledger_t *ledger) {
  const tnk__ledger_policy_t *policy = &ledger->policy;
  const uint64_t n_stay = policy->n_rolling > 0 ? policy->n_rolling : 1;
  const int64_t now_s = tnk__context_wall_s(ledger->session->context);
  tnk__ledger_entry_t *next = NULL;
  uint64_t n_later = policy->has_ended ? n_stay : 0;
  char why[TNK__MAX_WHY];

  for (size_t i = ledger->n_entries; i-- > 0;) {
    tnk__ledger_entry_t *entry = ledger->entries[i];
    const tnk_ledger_entry_t *pub = &entry->pub;

    if (!pub->is_rolling || pub->is_deleted || pub->state_path == NULL ||
        entry->attempt == 0 || (pub->expires_s > 0 && pub->expires_s <= now_s))
      continue;
    if (n_later >= n_stay && !entry->is_swept &&
        tnk__ask_check_path(pub->state_path, TNK_PATH_WEIGHTS, why,
                            sizeof(why)) == TNK_OK)
      next = entry;
    n_later++;
  }
  return next;
}

/* A save without a result, after the run has ended. Its state is deleted first:
 * the caller may wait for those that it knows. */
static tnk__ledger_entry_t *next_lost(tnk_ledger_t *ledger) {
  char why[TNK__MAX_WHY];

  for (size_t i = 0; i < ledger->n_lost && ledger->policy.has_ended; i++) {
    tnk__ledger_entry_t *entry = ledger->lost[i];

    if (!entry->pub.is_deleted && !entry->is_swept &&
        tnk__ask_check_path(path_of(entry), TNK_PATH_WEIGHTS, why,
                            sizeof(why)) == TNK_OK)
      return entry;
  }
  return NULL;
}

static tnk__ledger_sweep_t *new_sweep(tnk_ledger_t *ledger) {
  tnk__context_t *context = ledger->session->context;
  tnk__ledger_sweep_t *sweep = tnk__calloc(&context->alloc, 1, sizeof(*sweep));

  if (sweep == NULL)
    return NULL;
  sweep->ledger = ledger;
  sweep->context = context;
  tnk__buf_init(&sweep->text, &context->alloc, MAX_TEXTS);
  tnk__pen_line_init(&sweep->pen_line, on_noted);
  return sweep;
}

/* Delete excess saves, unless a deletion is in progress. */
static void start_sweep(tnk_ledger_t *ledger) {
  tnk__ledger_entry_t *entry = NULL;
  tnk__ledger_sweep_t *sweep;
  tnk__ask_t what = {.kind = TNK__ASK_DELETE};

  if (ledger->policy.sweep == NULL)
    entry = next_lost(ledger);
  if (ledger->policy.sweep == NULL && entry == NULL)
    entry = next_of(ledger);
  sweep = entry != NULL ? new_sweep(ledger) : NULL;
  /* Without memory the next save tries again. */
  if (sweep == NULL)
    return;
  what.path = path_of(entry);
  entry->is_swept = 1;
  ledger->policy.sweep = sweep;
  sweep->entry = entry;
  sweep->asked = tnk__rest_ask(ledger->session, &what, NULL);
  tnk__promise_watch(tnk_promise_ref(sweep->asked), &sweep->then, on_deleted,
                     sweep);
}

void tnk__ledger_noted(tnk_ledger_t *ledger, tnk__ledger_entry_t *entry) {
  tnk__ledger_policy_t *policy = &ledger->policy;

  if (entry->pub.state_path == NULL)
    return;
  tnk__ledger_watch(ledger, entry);
  policy->has_ended = entry->pub.is_final;
  if (entry->pub.is_rolling || entry->pub.is_final)
    start_sweep(ledger);
}

void tnk__ledger_policy_open(tnk_ledger_t *ledger) {
  tnk__ledger_policy_t *policy = &ledger->policy;
  size_t i = ledger->n_entries;

  while (i > 0 && ledger->entries[i - 1]->pub.state_path == NULL)
    i--;
  if (policy->n_rolling == 0 || i == 0 || !ledger->entries[i - 1]->pub.is_final)
    return;
  policy->has_ended = 1;
  start_sweep(ledger);
}

void tnk__ledger_policy_end(tnk_ledger_t *ledger) {
  tnk__ledger_sweep_t *sweep = ledger->policy.sweep;

  tnk__timer_stop(&ledger->policy.expiring);
  ledger->policy.sweep = NULL;
  if (sweep == NULL)
    return;
  sweep->ledger = NULL;
  tnk__pen_forget(&sweep->pen_line);
  if (sweep->asked != NULL)
    tnk_promise_cancel(sweep->asked);
  else
    forget(sweep);
}

/* SPDX-License-Identifier: MIT */
#include "lib/ledger/find.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/number.h"
#include "lib/store/page.h"
#include "tnk/data.h"
#include "tnk/rest.h"

/* No run reaches this number, and adding one cannot overflow. */
enum { MAX_ATTEMPT = 1000000000 };

static const char *value_of(const tnk_checkpoint_t *checkpoint,
                            const char *name) {
  for (size_t i = 0; i < checkpoint->n_user_metadata; i++)
    if (strcmp(checkpoint->user_metadata[i].name, name) == 0)
      return checkpoint->user_metadata[i].value;
  return NULL;
}

static int is_called(const tnk_checkpoint_t *checkpoint, const char *name) {
  tnk_path_t parts = TNK_PATH_INIT;

  return tnk_path_parse(&parts, checkpoint->path) == TNK_OK &&
         strcmp(parts.name, name) == 0;
}

/* A name is unique within one attempt of a run. If the checkpoint has more
 * fields, they must match this save too. */
static int is_of(const tnk_checkpoint_t *checkpoint,
                 const tnk__ledger_line_t *line) {
  tnk__ledger_line_t own = tnk__ledger_blank;

  if (!is_called(checkpoint, line->name))
    return 0;
  tnk__ledger_learn(&own, checkpoint);
  return own.attempt == 0 ||
         (own.attempt == line->attempt && own.save == line->save);
}

const tnk_checkpoint_t *tnk__ledger_find(const tnk_page_t *page,
                                         const tnk__ledger_line_t *line,
                                         tnk__ledger_what_t what) {
  const tnk_checkpoint_kind_t kind = what == TNK__LEDGER_STATE
                                         ? TNK_CHECKPOINT_TRAINING
                                         : TNK_CHECKPOINT_SAMPLER;

  for (size_t i = 0; i < tnk_page_count(page); i++) {
    const tnk_checkpoint_t *checkpoint = tnk_page_checkpoint(page, i);
    if (checkpoint != NULL && checkpoint->kind == kind &&
        is_of(checkpoint, line))
      return checkpoint;
  }
  return NULL;
}

int tnk__ledger_may_have(const tnk_page_t *page, const char *path) {
  if (page->total >= 0 && (uint64_t)page->total > page->n_received)
    return 1;
  for (size_t i = 0; i < tnk_page_count(page); i++)
    if (strcmp(tnk_page_checkpoint(page, i)->path, path) == 0)
      return 1;
  return 0;
}

static int is_later(const tnk__ledger_line_t *a, const tnk__ledger_line_t *b) {
  return a->attempt > b->attempt ||
         (a->attempt == b->attempt && a->save > b->save);
}

const tnk_checkpoint_t *tnk__ledger_find_run(const tnk_page_t *page,
                                             const char *run_name,
                                             const tnk__ledger_line_t *before) {
  const tnk_checkpoint_t *found = NULL;
  tnk__ledger_line_t best = tnk__ledger_blank;

  for (size_t i = 0; i < tnk_page_count(page); i++) {
    const tnk_checkpoint_t *checkpoint = tnk_page_checkpoint(page, i);
    const char *run = value_of(checkpoint, "tnk_run");
    tnk__ledger_line_t own = tnk__ledger_blank;

    if (checkpoint->kind != TNK_CHECKPOINT_TRAINING || run == NULL ||
        strcmp(run, run_name) != 0)
      continue;
    tnk__ledger_learn(&own, checkpoint);
    if (own.attempt == 0 || (found != NULL && !is_later(&own, &best)) ||
        (before->attempt > 0 && !is_later(before, &own)))
      continue;
    found = checkpoint;
    best = own;
  }
  return found;
}

/* "2.5" is save 5 of attempt 2. */
static void learn_save(tnk__ledger_line_t *line, const char *text) {
  uint64_t attempt;
  uint64_t save;

  if (tnk__read_u64(&text, NULL, MAX_ATTEMPT, &attempt) != TNK_OK ||
      *text++ != '.' || tnk__text_u64(text, INT64_MAX, &save) != TNK_OK)
    return;
  line->attempt = (int64_t)attempt;
  line->save = (int64_t)save;
}

void tnk__ledger_write_used(char out[TNK__LEDGER_USED_TEXT],
                            const tnk__ledger_line_t *line) {
  size_t n = 0;

  for (size_t i = 0; i < TNK__LEDGER_N_USED; i++)
    n += (size_t)snprintf(out + n, TNK__LEDGER_USED_TEXT - n, "%s%" PRId64,
                          i > 0 ? "," : "", line->used[i]);
}

/* Accepts all numbers or none; numbers that later versions append are
 * ignored. */
static void learn_used(tnk__ledger_line_t *line, const char *text) {
  int64_t used[TNK__LEDGER_N_USED];
  uint64_t value;

  for (size_t i = 0; i < TNK__LEDGER_N_USED; i++) {
    if ((i > 0 && *text++ != ',') ||
        tnk__read_u64(&text, NULL, INT64_MAX, &value) != TNK_OK)
      return;
    used[i] = (int64_t)value;
  }
  memcpy(line->used, used, sizeof(used));
}

static void learn_number(int64_t *out, const char *text) {
  uint64_t value;

  if (text != NULL && tnk__text_u64(text, INT64_MAX, &value) == TNK_OK)
    *out = (int64_t)value;
}

void tnk__ledger_learn(tnk__ledger_line_t *line,
                       const tnk_checkpoint_t *checkpoint) {
  const char *save = value_of(checkpoint, "tnk_save");
  const char *cursor = value_of(checkpoint, "tnk_cursor");
  const char *used = value_of(checkpoint, "tnk_used");

  if (save != NULL)
    learn_save(line, save);
  if (used != NULL)
    learn_used(line, used);
  if (cursor != NULL)
    line->cursor = cursor;
  learn_number(&line->n_steps, value_of(checkpoint, "tnk_steps"));
  learn_number(&line->n_passes, value_of(checkpoint, "tnk_passes"));
  learn_number(&line->epoch, value_of(checkpoint, "tnk_epoch"));
  learn_number(&line->batch, value_of(checkpoint, "tnk_batch"));
  line->time_s = checkpoint->time_us / 1000000;
  if (checkpoint->expires_us > checkpoint->time_us)
    line->ttl_s = (checkpoint->expires_us - checkpoint->time_us) / 1000000;
}

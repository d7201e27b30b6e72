/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_API_DEPTH_LEDGER_H
#define TNK_TEST_API_DEPTH_LEDGER_H

/* Rows of test_depth.c for ledger.h. */
#include "support/tree.h"

typedef char ledger_folder_t[32];

static void ledger_folder(ledger_folder_t out) {
  snprintf(out, sizeof(ledger_folder_t), "/tmp/tnk-depth-XXXXXX");
  CHECK(mkdtemp(out) != NULL);
}

static tnk_promise_t *ledger_open_in(stage_t *stage) {
  ledger_folder(stage->dir);
  return tnk_ledger_open(stage->script.service, stage->dir, NULL);
}

static void ledger_remove(stage_t *stage) {
  tnk_promise_unref(stage->opened_ledger);
  remove_below(stage->dir);
  rmdir(stage->dir);
}

/* The pool has real time, which the clock must not run away from. */
static int ledger_is_busy(const tnk_service_t *service) {
  const tnk__list_t *open = &service->ledgers.open;

  for (tnk__list_t *node = open->next; node != open; node = node->next) {
    const tnk_ledger_t *ledger = tnk__container_of(node, tnk_ledger_t, link);
    if (ledger->is_reading || ledger->pen.is_busy)
      return 1;
  }
  return 0;
}

static tnk_ledger_t *ledger_of(const stage_t *s) {
  return tnk_promise_ledger(s->opened_ledger);
}

GETS(tnk_ledger_count, tnk_ledger_count(ledger_of(s)))
GETS(tnk_ledger_last, tnk_ledger_last(ledger_of(s)))
GETS(tnk_ledger_due, tnk_ledger_due(ledger_of(s), s->script.training))
GETS(tnk_ledger_entry, tnk_ledger_entry(ledger_of(s), 0))
GETS(tnk_ledger_resumed, tnk_ledger_resumed(ledger_of(s)))
KEEPS(tnk_ledger_resume, tnk_ledger_resume(ledger_of(s), NULL))
GETS(tnk_ledger_close, tnk_ledger_close(NULL, on_closed, s))
GETS(tnk_promise_ledger, tnk_promise_ledger(s->opened_ledger))
GETS(tnk_promise_entry, tnk_promise_entry(s->opened_ledger))
GETS(tnk_promise_saved, tnk_promise_saved(s->step))
KEEPS(tnk_ledger_open, tnk_ledger_open(s->script.service, "/dev/null/x", NULL))
KEEPS(tnk_ledger_save, tnk_ledger_save(ledger_of(s), s->script.training, NULL))

#endif

/* SPDX-License-Identifier: MIT */
#include "lib/store/run_query.h"

#include "lib/store/page.h"
#include "lib/store/rest.h"

static tnk_promise_t *ask(tnk__session_t *session, const char *run_id) {
  const tnk__ask_t question = {.kind = TNK__ASK_GET_RUN, .id = run_id};

  return tnk__rest_ask(session, &question, NULL);
}

static int is_corrupted(const tnk_promise_t *promise) {
  const tnk_page_t *page = tnk__promise_value(promise, TNK__RESULT_PAGE);
  const tnk_run_t *run;

  if (page == NULL || page->kind != TNK__PAGE_RUNS || page->n == 0)
    return 0;
  run = page->items;
  return run->is_corrupted;
}

const tnk__run_query_t tnk__store_run_query = {ask, is_corrupted};

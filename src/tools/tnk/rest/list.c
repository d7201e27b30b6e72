/* SPDX-License-Identifier: MIT */
#include "tools/tnk/rest/list.h"

#include <inttypes.h>

#include "tools/tnk/out/progress.h"

uint32_t cli_list_page(int64_t limit, uint32_t most) {
  return limit > 0 && limit < (int64_t)most ? (uint32_t)limit : most;
}

/* Returns whether another page is needed. */
static int take_page(cli_list_t *list, const tnk_page_t *page) {
  size_t n = tnk_page_count(page);

  list->total = tnk_page_total(page);
  for (size_t i = 0; i < n; i++) {
    if (list->limit > 0 && list->n == list->limit) {
      list->is_cut = 1;
      return 0;
    }
    list->show(list, page, i);
    list->n++;
  }
  if (tnk_page_is_last(page))
    return 0;
  if (list->limit <= 0 || list->n < list->limit)
    return 1;
  list->is_cut = 1;
  return 0;
}

/* TNK_ENOTFOUND for a list of everything means that the server does not have
 * the call. */
static const char *hint_of(const cli_list_t *list,
                           const tnk_promise_t *promise) {
  return list->run_id == NULL && tnk_promise_status(promise) == TNK_ENOTFOUND
             ? "This server does not offer this list."
             : NULL;
}

/* Takes ownership of `promise`. Returns the exit status. */
static int take_all(cli_list_t *list, tnk_promise_t *promise) {
  cli_progress_t progress;
  int status = CLI_EXIT_OK;
  int goes_on = 1;

  cli_progress_begin(&progress, list->ask->cli, "Listing", 0, 0);
  while (goes_on) {
    tnk_promise_t *next = NULL;

    if (cli_ask_wait(list->ask, promise) != TNK_OK) {
      status =
          cli_ask_failed_with_hint(list->ask, promise, hint_of(list, promise));
      goes_on = 0;
    } else if (take_page(list, tnk_promise_page(promise))) {
      /* Progress is shown only if there is more than one page. */
      progress.total = list->total;
      if (list->limit > 0 && (list->total < 0 || list->limit < list->total))
        progress.total = list->limit;
      cli_progress_at(&progress, list->n);
      next = tnk_rest_next_page(list->ask->service, tnk_promise_page(promise));
    } else {
      goes_on = 0;
    }
    tnk_promise_unref(promise);
    promise = next;
  }
  cli_progress_end(&progress);
  return status;
}

/* Print the total separately, because the table does not show omitted
 * records. */
static void note_size(const cli_list_t *list) {
  const cli_t *cli = list->ask->cli;

  if (list->n == 0)
    cli_note(cli, "No %s.", list->what);
  else if (list->is_cut && list->total >= 0)
    cli_note(cli, "%" PRId64 " of %" PRId64 " %s; --limit 0 lists all.",
             list->n, list->total, list->what);
  else if (list->is_cut)
    cli_note(cli, "%" PRId64 " %s listed, more exist; --limit 0 lists all.",
             list->n, list->what);
}

static int run_json(cli_list_t *list, tnk_promise_t *first) {
  cli_json_t *json = list->json;
  int status;

  if (list->run_id != NULL)
    cli_json_put_odd_text(json, "run_id", list->run_id);
  tnk__json_put_array(&json->w, list->key);
  status = take_all(list, first);
  if (status != CLI_EXIT_OK) {
    cli_json_drop(json);
    return status;
  }
  tnk__json_end(&json->w);
  if (list->total >= 0)
    tnk__json_put_int(&json->w, "total", list->total);
  tnk__json_put_bool(&json->w, "truncated", list->is_cut);
  return cli_json_end(json, list->ask->cli);
}

int cli_list_run(cli_list_t *list, tnk_promise_t *first,
                 const char *const *headers, size_t n_columns) {
  cli_json_t json;
  int status;

  if (list->ask->cli->json) {
    list->json = &json;
    cli_json_begin(&json);
    return run_json(list, first);
  }
  list->table = cli_table_new(headers, n_columns);
  status = take_all(list, first);
  if (status != CLI_EXIT_OK) {
    cli_table_free(list->table);
    return status;
  }
  status = list->n > 0 ? cli_table_end(list->table, list->ask->cli)
                       : (cli_table_free(list->table), CLI_EXIT_OK);
  note_size(list);
  return status;
}

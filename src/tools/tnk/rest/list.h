/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REST_LIST_H
#define TNK_TOOLS_TNK_REST_LIST_H
#include "tnk/rest.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/table.h"

/* A list that is read page by page and printed as a table or as JSON. */
typedef struct cli_list {
  cli_ask_t *ask;
  const char *what;   /* "training runs" */
  const char *key;    /* name of the array in JSON */
  const char *run_id; /* the run of the list, for JSON; or NULL */
  int64_t limit;      /* maximum number of records; 0 or less: unlimited */
  cli_table_t *table;
  cli_json_t *json;
  /* Add record i of a page to the table or the JSON document, whichever is not
   * NULL. */
  void (*show)(const struct cli_list *list, const tnk_page_t *page, size_t i);
  int64_t n;
  int64_t total; /* -1: unknown */
  int is_cut;    /* the limit cut the list */
} cli_list_t;

/* Read and print a list; its first page has been requested already. Returns the
 * exit status. `headers` are the headers of the columns that `show` fills. */
int cli_list_run(cli_list_t *list, tnk_promise_t *first,
                 const char *const *headers, size_t n_columns);
/* Size of a page to request, at most `most`. */
uint32_t cli_list_page(int64_t limit, uint32_t most);

#endif

#ifndef TNK_TOOLS_TNK_REST_LIST_H
#define TNK_TOOLS_TNK_REST_LIST_H

#include "tnk/rest.h"
#include "tools/tnk/ask/ask.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/table.h"

/* A list that is read page by page and shown as a table or in JSON. */
typedef struct {
  cli_ask_t *ask;
  const char *what;   /* "training runs" */
  const char *key;    /* of the array in JSON */
  const char *run_id; /* that the list is of, for JSON; or NULL */
  int64_t limit;      /* of records; 0 and below: none */
  cli_table_t *table;
  cli_json_t *json;
  /* Show record i of a page in whichever of the two is not NULL. */
  void (*show)(void *user, const tnk_page_t *page, size_t i);
  void *user;
  int64_t n;
  int64_t total; /* -1: the service does not say */
  int is_cut;    /* the limit ended it */
} cli_list_t;

/* Read a list whose first page is asked for already, and print it. Returns the
 * exit status. `headers` is of the table, whose columns are shown by `show`. */
int cli_list_run(cli_list_t *list, tnk_promise_t *first,
                 const char *const *headers, size_t n_columns);
/* How many records a page should have, of at most `most`. */
uint32_t cli_list_page(int64_t limit, uint32_t most);

#endif

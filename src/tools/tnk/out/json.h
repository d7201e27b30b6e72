#ifndef TNK_TOOLS_TNK_OUT_JSON_H
#define TNK_TOOLS_TNK_OUT_JSON_H

#include "lib/wire/format/json_write.h"
#include "tools/common/frame/cli.h"

/*
 * The document that a command prints. It is written whole before any of it is
 * printed, so that a failure leaves no half of one.
 *
 *     cli_json_t json;
 *
 *     cli_json_begin(&json);
 *     tnk__json_put_text(&json.w, "status", "ok");
 *     return cli_json_end(&json, cli);
 */
typedef struct {
  tnk__json_writer_t w;
  tnk__buf_t buf;
} cli_json_t;

/* Begin a document, which is an object. */
void cli_json_begin(cli_json_t *json);
/* End and print it. Returns the exit status. */
int cli_json_end(cli_json_t *json, const cli_t *cli);
/* End it, and take it as a text to be freed; NULL: there is no memory. */
char *cli_json_take(cli_json_t *json);
/* Let go of a document that is not to be printed. */
void cli_json_drop(cli_json_t *json);
/* Write a member that may be no UTF-8, such as the name of a file. */
void cli_json_put_odd_text(cli_json_t *json, const char *key, const char *text);
/* Write a time, or null for 0: the format of the official command. */
void cli_json_put_time(cli_json_t *json, const char *key, int64_t us);
/* Write a number, or null. */
void cli_json_put_number(cli_json_t *json, const char *key, int64_t value,
                         int is_known);
/* Write a member that is JSON already. */
void cli_json_put_raw(cli_json_t *json, const char *key, const char *raw);
/* Write an object of texts. */
void cli_json_put_pairs(cli_json_t *json, const char *key,
                        const tnk_pair_t *pairs, size_t n);

#endif

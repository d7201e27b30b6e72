/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_OUT_JSON_H
#define TNK_TOOLS_TNK_OUT_JSON_H

#include "lib/wire/format/json_write.h"
#include "tools/common/frame/cli.h"

/*
 * The JSON document that a command prints. It is completed before it is
 * printed, so that a failure leaves no partial output.
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

/* Start a document, which is an object. */
void cli_json_begin(cli_json_t *json);
/* Complete and print it. Returns the exit status. */
int cli_json_end(cli_json_t *json, const cli_t *cli);
/* Complete it and return it as a string that the caller frees; NULL without
 * memory. */
char *cli_json_take(cli_json_t *json);
/* Free a document without printing it. */
void cli_json_drop(cli_json_t *json);
/* Write a member that may be invalid UTF-8, such as a file name. */
void cli_json_put_odd_text(cli_json_t *json, const char *key, const char *text);
/* Write a time in the official command's format, or null for 0. */
void cli_json_put_time(cli_json_t *json, const char *key, int64_t us);
/* Write a number, or null. */
void cli_json_put_number(cli_json_t *json, const char *key, int64_t value,
                         int is_known);
/* Write an object of strings. */
void cli_json_put_pairs(cli_json_t *json, const char *key,
                        const tnk_pair_t *pairs, size_t n);

#endif

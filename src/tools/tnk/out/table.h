/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_OUT_TABLE_H
#define TNK_TOOLS_TNK_OUT_TABLE_H
#include <stdint.h>

#include "tools/common/frame/cli.h"

/*
 * A table whose columns are as wide as their widest cell. Lack of memory is
 * recorded and reported at the end.
 *
 *     cli_table_t *table = cli_table_new(headers, 2);
 *
 *     cli_table_add(table, "%s", run->id);
 *     cli_table_add(table, "%s", run->base_model);
 *     return cli_table_end(table, cli);
 */
typedef struct cli_table cli_table_t;

/* `headers` must outlive the table. If it is NULL, the first column has the
 * names of the values in the second one. */
cli_table_t *cli_table_new(const char *const *headers, size_t n_columns);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
/* Add the next cell, row by row. Characters that control a terminal become
 * spaces. */
void cli_table_add(cli_table_t *table, const char *format, ...);
/* Add a cell with `text`, or with `without` if it is NULL. */
void cli_table_add_or(cli_table_t *table, const char *text,
                      const char *without);
/* Add the two cells of a property. */
void cli_table_add_row(cli_table_t *table, const char *name, const char *value);
/* Add a cell with a time or a size in human-readable form. */
void cli_table_add_age(cli_table_t *table, int64_t us);
void cli_table_add_size(cli_table_t *table, int64_t n);
/* Print a string on its own line, sanitized like a cell. Returns the exit
 * status. */
int cli_put_line(const cli_t *cli, const char *text);
/* Print and free it. Returns the exit status. */
int cli_table_end(cli_table_t *table, const cli_t *cli);
/* Free a table without printing it. NULL does nothing. */
void cli_table_free(cli_table_t *table);

/* ---- Sizes and ages ---- */

/* Buffer size for each of these strings. */
enum { CLI_HUMAN_TEXT = 32 };

/* Write a size: "812 B", "12.3 KB" with 1 KB = 1024 bytes; "N/A" if n is
 * negative. */
void cli_human_size(char out[CLI_HUMAN_TEXT], int64_t n);
/* Write a time relative to `now_us`: "3 hours ago", "in 2 days". Beyond 30 days
 * the date is written. */
void cli_human_age(char out[CLI_HUMAN_TEXT], int64_t us, int64_t now_us);
/* The current time, in the unit of records. */
int64_t cli_now_us(void);

#endif

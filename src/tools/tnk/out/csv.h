/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_OUT_CSV_H
#define TNK_TOOLS_TNK_OUT_CSV_H

#include <stdio.h>

#include "tools/common/frame/cli.h"

/*
 * A CSV table (RFC 4180) with CRLF line ends.
 *
 * A cell may contain a string from other sources that begins like a formula. It
 * is written unchanged, because programs read these files too.
 */
typedef struct {
  const cli_t *cli;
  const char *path;
  FILE *file;
  int n_cells; /* cells of the current row */
  size_t n_rows;
} cli_csv_t;

/* Open it; "-" is standard output. Returns the exit status. */
int cli_csv_open(cli_csv_t *csv, const cli_t *cli, const char *path);
/* Write the next cell of a row; NULL leaves it empty. */
void cli_csv_text(cli_csv_t *csv, const char *text);
void cli_csv_int(cli_csv_t *csv, int64_t value);
/* NaN leaves it empty. */
void cli_csv_double(cli_csv_t *csv, double value);
void cli_csv_end_row(cli_csv_t *csv);
/* Close it, and print the number of rows in a file. Returns the exit status. */
int cli_csv_close(cli_csv_t *csv);

#endif

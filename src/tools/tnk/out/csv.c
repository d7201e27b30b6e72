/* SPDX-License-Identifier: MIT */
#include "tools/tnk/out/csv.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "lib/wire/format/number_text.h"

int cli_csv_open(cli_csv_t *csv, const cli_t *cli, const char *path) {
  *csv = (cli_csv_t){.cli = cli, .path = path};
  csv->file = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
  return csv->file != NULL
             ? CLI_EXIT_OK
             : cli_fail(cli, CLI_EXIT_FILE, "%s: %s", path, strerror(errno));
}

void cli_csv_text(cli_csv_t *csv, const char *text) {
  if (csv->n_cells++ > 0)
    fputc(',', csv->file);
  if (text == NULL)
    return;
  if (text[strcspn(text, ",\"\r\n")] == '\0') {
    fputs(text, csv->file);
    return;
  }
  fputc('"', csv->file);
  for (; *text != '\0'; text++) {
    if (*text == '"')
      fputc('"', csv->file);
    fputc(*text, csv->file);
  }
  fputc('"', csv->file);
}

void cli_csv_int(cli_csv_t *csv, int64_t value) {
  char text[24];

  snprintf(text, sizeof(text), "%" PRId64, value);
  cli_csv_text(csv, text);
}

void cli_csv_double(cli_csv_t *csv, double value) {
  char text[TNK__NUMBER_TEXT + 1] = "";

  if (isfinite(value))
    text[tnk__double_text(text, value)] = '\0';
  cli_csv_text(csv, isfinite(value) ? text : NULL);
}

void cli_csv_end_row(cli_csv_t *csv) {
  fputs("\r\n", csv->file);
  csv->n_cells = 0;
  csv->n_rows++;
}

int cli_csv_close(cli_csv_t *csv) {
  int is_bad;

  /* Standard output is checked when the command ends. */
  if (csv->file == stdout)
    return CLI_EXIT_OK;
  is_bad = ferror(csv->file);
  if (fclose(csv->file) != 0 || is_bad)
    return cli_fail(csv->cli, CLI_EXIT_FILE, "%s: %s", csv->path,
                    strerror(errno));
  cli_note(csv->cli, "Wrote %zu row%s to %s.", csv->n_rows - 1,
           csv->n_rows == 2 ? "" : "s", csv->path);
  return CLI_EXIT_OK;
}

/* SPDX-License-Identifier: MIT */
#include "tools/tnk/out/table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/wire/format/time_text.h"
#include "tools/common/base/terminal.h"

/* ---- Sizes and ages ---- */

void cli_human_size(char out[CLI_HUMAN_TEXT], int64_t n) {
  static const char *const units[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
  double size = (double)n / 1024;
  size_t unit = 0;

  if (n < 0) {
    snprintf(out, CLI_HUMAN_TEXT, "N/A");
    return;
  }
  if (n < 1024) {
    snprintf(out, CLI_HUMAN_TEXT, "%" PRId64 " B", n);
    return;
  }
  for (; size >= 1024 && unit < 5; unit++)
    size /= 1024;
  snprintf(out, CLI_HUMAN_TEXT, "%.1f %s", size, units[unit]);
}

static void put_count(char out[CLI_HUMAN_TEXT], int64_t n, const char *unit,
                      int is_future) {
  snprintf(out, CLI_HUMAN_TEXT, "%s%" PRId64 " %s%s%s", is_future ? "in " : "",
           n, unit, n == 1 ? "" : "s", is_future ? "" : " ago");
}

void cli_human_age(char out[CLI_HUMAN_TEXT], int64_t us, int64_t now_us) {
  enum { MINUTE = 60, HOUR = 3600, DAY = 86400, WEEK = 7 * DAY };
  int is_future = us > now_us;
  /* Both are in the years 1 to 9999. */
  int64_t s = (is_future ? us - now_us : now_us - us) / 1000000;

  if (s > (int64_t)30 * DAY) {
    char text[TNK__TIME_TEXT];

    tnk__time_write(text, us);
    snprintf(out, CLI_HUMAN_TEXT, "%.10s", text);
  } else if (s > WEEK) {
    put_count(out, s / WEEK, "week", is_future);
  } else if (s >= DAY) {
    put_count(out, s / DAY, "day", is_future);
  } else if (s > HOUR) {
    put_count(out, s / HOUR, "hour", is_future);
  } else if (s > MINUTE) {
    put_count(out, s / MINUTE, "minute", is_future);
  } else {
    snprintf(out, CLI_HUMAN_TEXT, "%s",
             is_future ? "in less than a minute" : "just now");
  }
}

int64_t cli_now_us(void) {
  struct timespec now;

  return clock_gettime(CLOCK_REALTIME, &now) == 0
             ? (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000
             : 0;
}

enum { GAP = 2 };

struct cli_table {
  const char *const *headers;
  size_t n_columns;
  char **cells;
  size_t n;
  size_t cap;
  int is_lost; /* memory for a cell was missing */
};

cli_table_t *cli_table_new(const char *const *headers, size_t n_columns) {
  cli_table_t *table = calloc(1, sizeof(*table));

  if (table != NULL) {
    table->headers = headers;
    table->n_columns = n_columns;
  }
  return table;
}

static char *format_text(const char *format, va_list args) {
  va_list again;
  char *text;
  int n;

  va_copy(again, args);
  n = vsnprintf(NULL, 0, format, again);
  va_end(again);
  text = n >= 0 ? malloc((size_t)n + 1) : NULL;
  if (text != NULL)
    vsnprintf(text, (size_t)n + 1, format, args);
  return text;
}

static int has_room(cli_table_t *table) {
  size_t cap = table->cap * 2 + 64;
  char **more;

  if (table->n < table->cap)
    return 1;
  more = realloc(table->cells, cap * sizeof(*more));
  if (more == NULL)
    return 0;
  table->cells = more;
  table->cap = cap;
  return 1;
}

void cli_table_add(cli_table_t *table, const char *format, ...) {
  va_list args;
  char *text;

  if (table == NULL)
    return;
  va_start(args, format);
  text = format_text(format, args);
  va_end(args);
  if (text == NULL || !has_room(table)) {
    table->is_lost = 1;
    free(text);
    return;
  }
  cli_clean(text);
  table->cells[table->n++] = text;
}

void cli_table_add_or(cli_table_t *table, const char *text,
                      const char *without) {
  cli_table_add(table, "%s", text != NULL ? text : without);
}

void cli_table_add_row(cli_table_t *table, const char *name,
                       const char *value) {
  cli_table_add(table, "%s", name);
  cli_table_add(table, "%s", value);
}

void cli_table_add_age(cli_table_t *table, int64_t us) {
  char text[CLI_HUMAN_TEXT];

  cli_human_age(text, us, cli_now_us());
  cli_table_add(table, "%s", text);
}

void cli_table_add_size(cli_table_t *table, int64_t n) {
  char text[CLI_HUMAN_TEXT];

  cli_human_size(text, n);
  cli_table_add(table, "%s", text);
}

/* ---- Printing ---- */

static const char *cell(const cli_table_t *table, size_t row, size_t column) {
  size_t i = row * table->n_columns + column;

  return i < table->n ? table->cells[i] : "";
}

static size_t width_of(const cli_table_t *table, size_t n_rows, size_t column) {
  size_t width = table->headers != NULL ? cli_width(table->headers[column]) : 0;

  for (size_t row = 0; row < n_rows; row++) {
    size_t n = cli_width(cell(table, row, column));
    width = n > width ? n : width;
  }
  return width;
}

static void put_cell(const char *text, size_t width, int is_last,
                     const char *color) {
  size_t n = cli_width(text);

  printf("%s%s%s", color, text, color[0] != '\0' ? "\033[0m" : "");
  /* No trailing spaces, so that copied lines are exact. */
  if (!is_last)
    printf("%*s", (int)(width - n + GAP), "");
}

static void put_rows(const cli_table_t *table, const size_t *widths,
                     size_t n_rows, int has_color) {
  size_t last = table->n_columns - 1;

  for (size_t c = 0; table->headers != NULL && c <= last; c++)
    put_cell(table->headers[c], widths[c], c == last,
             has_color ? "\033[1m" : "");
  if (table->headers != NULL)
    putchar('\n');
  for (size_t row = 0; row < n_rows; row++) {
    for (size_t c = 0; c <= last; c++)
      put_cell(cell(table, row, c), widths[c], c == last,
               has_color && c == 0 ? "\033[36m" : "");
    putchar('\n');
  }
}

void cli_table_free(cli_table_t *table) {
  if (table == NULL)
    return;
  for (size_t i = 0; i < table->n; i++)
    free(table->cells[i]);
  free(table->cells);
  free(table);
}

int cli_table_end(cli_table_t *table, const cli_t *cli) {
  size_t *widths = NULL;
  size_t n_rows;
  int is_done = 0;

  if (table != NULL && !table->is_lost)
    widths = calloc(table->n_columns, sizeof(*widths));
  if (widths != NULL) {
    n_rows = (table->n + table->n_columns - 1) / table->n_columns;
    for (size_t c = 0; c < table->n_columns; c++)
      widths[c] = width_of(table, n_rows, c);
    put_rows(table, widths, n_rows,
             cli_has_color(stdout, (cli_color_t)cli->color));
    is_done = 1;
  }
  free(widths);
  cli_table_free(table);
  return is_done ? CLI_EXIT_OK
                 : cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
}

int cli_put_line(const cli_t *cli, const char *text) {
  size_t n = strlen(text) + 1;
  char *copy = malloc(n);

  if (copy == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  memcpy(copy, text, n);
  cli_clean(copy);
  puts(copy);
  free(copy);
  return CLI_EXIT_OK;
}

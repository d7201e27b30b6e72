/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/canvas.h"

#include <stdlib.h>

#include "tnk/error.h"

/* The dots of a braille character by row and column, as bits of its code. */
static const uint8_t bits[4][2] = {
    {0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

static const char marks[REPORT_MAX_CURVES] = {'*', 'o', 'x', '+'};
static const char *const colors[REPORT_MAX_CURVES] = {"\033[36m", "\033[33m",
                                                      "\033[35m", "\033[32m"};

int report_canvas_init(report_canvas_t *canvas) {
  canvas->dots = calloc(canvas->n_curves, canvas->n_rows * canvas->n_columns);
  return canvas->dots != NULL ? TNK_OK : TNK_ENOMEM;
}

void report_canvas_free(report_canvas_t *canvas) {
  free(canvas->dots);
}

static uint8_t *cell(const report_canvas_t *canvas, size_t curve, size_t row,
                     size_t column) {
  return &canvas->dots[(curve * canvas->n_rows + row) * canvas->n_columns +
                       column];
}

static void dot(report_canvas_t *canvas, size_t curve, long x, long y) {
  if (x >= 0 && y >= 0 && x < 2 * (long)canvas->n_columns &&
      y < 4 * (long)canvas->n_rows)
    *cell(canvas, curve, (size_t)y / 4, (size_t)x / 2) |= bits[y % 4][x % 2];
}

void report_canvas_line(report_canvas_t *canvas, size_t curve, long x0, long y0,
                        long x1, long y1) {
  const long width = labs(x1 - x0);
  const long height = labs(y1 - y0);
  const long right = x0 < x1 ? 1 : -1;
  const long down = y0 < y1 ? 1 : -1;
  /* Bresenham's algorithm: the distance from the line, in dots times 2. */
  long off = width - height;

  dot(canvas, curve, x0, y0);
  while (x0 != x1 || y0 != y1) {
    const long twice = 2 * off;

    if (twice > -height) {
      off -= height;
      x0 += right;
    }
    if (twice < width) {
      off += width;
      y0 += down;
    }
    dot(canvas, curve, x0, y0);
  }
}

/* ---- Writing ---- */

/* Dots of two curves look the same without color. */
int report_canvas_is_dotted(const report_canvas_t *canvas, size_t curve) {
  return canvas->is_utf8 && (curve == 0 || canvas->has_color);
}

static void put_dots(FILE *to, uint8_t set) {
  /* U+2800 and the set, in UTF-8. */
  fputc(0xe2, to);
  fputc(0xa0 | set >> 6, to);
  fputc(0x80 | (set & 0x3f), to);
}

static void put_cell(const report_canvas_t *canvas, size_t curve, uint8_t set,
                     FILE *to) {
  if (report_canvas_is_dotted(canvas, curve))
    put_dots(to, set);
  else
    fputc(marks[curve], to);
}

/* The curve to draw in a place: the last one there. Returns n_curves if there
 * is none. */
static size_t curve_at(const report_canvas_t *canvas, size_t row,
                       size_t column) {
  for (size_t curve = canvas->n_curves; curve-- > 0;)
    if (*cell(canvas, curve, row, column) != 0)
      return curve;
  return canvas->n_curves;
}

void report_canvas_put_row(const report_canvas_t *canvas, size_t row,
                           FILE *to) {
  size_t n_blanks = 0;
  size_t colored = canvas->n_curves;

  for (size_t column = 0; column < canvas->n_columns; column++) {
    const size_t curve = curve_at(canvas, row, column);

    if (curve == canvas->n_curves) {
      n_blanks++;
      continue;
    }
    fprintf(to, "%*s", (int)n_blanks, "");
    n_blanks = 0;
    if (canvas->has_color && curve != colored)
      fputs(colors[curve], to);
    colored = curve;
    put_cell(canvas, curve, *cell(canvas, curve, row, column), to);
  }
  if (canvas->has_color && colored < canvas->n_curves)
    fputs("\033[0m", to);
}

void report_canvas_put_mark(const report_canvas_t *canvas, size_t curve,
                            FILE *to) {
  if (canvas->has_color)
    fputs(colors[curve], to);
  put_cell(canvas, curve, 0x24, to);
  if (canvas->has_color)
    fputs("\033[0m", to);
}

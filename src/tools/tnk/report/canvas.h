/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_CANVAS_H
#define TNK_TOOLS_TNK_REPORT_CANVAS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The most curves of a canvas. */
enum { REPORT_MAX_CURVES = 4 };

/*
 * A picture of characters. Each character has 2 x 4 dots. The first curve is
 * drawn with the dots of a braille character; the others are drawn with
 * letters, unless they have colors of their own. Without UTF-8 all of them are
 * drawn with ASCII characters.
 */
typedef struct {
  size_t n_columns; /* characters */
  size_t n_rows;
  size_t n_curves;
  int is_utf8;
  int has_color;
  uint8_t *dots; /* [n_curves][n_rows][n_columns] sets of dots */
} report_canvas_t;

/* Returns TNK_OK or TNK_ENOMEM. */
int report_canvas_init(report_canvas_t *canvas);
void report_canvas_free(report_canvas_t *canvas);
/* Returns whether a curve is drawn with dots, not with a letter. */
int report_canvas_is_dotted(const report_canvas_t *canvas, size_t curve);
/* Draw a line between two dots. (0, 0) is at the top left. */
void report_canvas_line(report_canvas_t *canvas, size_t curve, long x0, long y0,
                        long x1, long y1);
/* Write the characters of a row without the blanks at its end. */
void report_canvas_put_row(const report_canvas_t *canvas, size_t row, FILE *to);
/* Write the character that marks a curve. */
void report_canvas_put_mark(const report_canvas_t *canvas, size_t curve,
                            FILE *to);

#endif

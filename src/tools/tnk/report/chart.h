/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_CHART_H
#define TNK_TOOLS_TNK_REPORT_CHART_H

#include <stdio.h>

#include "tools/tnk/report/series.h"

/* The most curves of a chart. */
enum { REPORT_CHART_CURVES = 4 };

typedef struct {
  const report_series_t *series; /* not empty */
  const char *run;               /* NULL: there is only one run */
  int color;                     /* from 0 to 3 */
  int is_dashed;
} report_curve_t;

/*
 * Write a chart as HTML: a picture in SVG that fills its place, and labels as
 * text, which has the same size on a phone and on a wide screen. A picture has
 * at most a few thousand points, whatever the length of the run.
 *
 * `title` may be NULL. `may_log` permits a logarithmic scale, which is used if
 * the values are positive and far apart. Returns TNK_OK or TNK_ENOMEM.
 */
int report_chart_put(FILE *to, const char *title, const report_curve_t *curves,
                     size_t n, int may_log);

#endif

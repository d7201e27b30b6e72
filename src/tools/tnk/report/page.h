/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_PAGE_H
#define TNK_TOOLS_TNK_REPORT_PAGE_H

#include <stdio.h>

#include "tools/tnk/report/config.h"
#include "tools/tnk/report/run.h"
#include "tools/tnk/report/samples.h"
#include "tools/tnk/report/saves.h"

enum { REPORT_MAX_RUNS = 2 };

/* All files of a run. */
typedef struct {
  report_run_t run;
  report_saves_t saves;
  report_samples_t samples;
  report_config_t config;
} report_data_t;

typedef struct {
  FILE *to;
  const report_data_t *data; /* [n] */
  size_t n;                  /* 1 or 2 */
  int64_t now_s;
  int is_followed; /* the browser reads the page again until the run ends */
} report_page_t;

/* Write the document. Returns TNK_OK or TNK_ENOMEM; errors of the file stay in
 * it. */
int report_page_put(const report_page_t *page);
/* Returns whether all runs have ended. */
int report_page_is_final(const report_page_t *page);

/* ---- sections.c ---- */

/* Write a section, or nothing if there is nothing to show. */
void report_put_samples(const report_page_t *page);
void report_put_saves(const report_page_t *page);
void report_put_config(const report_page_t *page);
void report_put_notices(const report_page_t *page);
/* Write the title of a section. It is ended by report_end_section(). */
void report_begin_section(const report_page_t *page, const char *title);
void report_end_section(const report_page_t *page);
/* Write a name of a run with its color, if there are two. */
void report_put_run(const report_page_t *page, size_t index);

#endif

/* SPDX-License-Identifier: MIT */
#include "tnk/error.h"
#include "tools/tnk/report/trackio.h"

/* Instead of trackio.c, in a build without SQLite. */

int report_trackio_put(const char *path, const report_data_t *data,
                       char why[REPORT_MAX_WHY]) {
  (void)path, (void)data, (void)why;
  return TNK_EUNSUPPORTED;
}

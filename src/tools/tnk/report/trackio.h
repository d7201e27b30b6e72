/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_TRACKIO_H
#define TNK_TOOLS_TNK_REPORT_TRACKIO_H

#include "tools/tnk/report/page.h"

/* Longest message of an error. */
enum { REPORT_MAX_WHY = 256 };

/*
 * Write the metrics and the configuration of a run to a project of trackio,
 * which is a database of SQLite with the name of the project and ".db". Earlier
 * rows of the run are replaced; other runs stay. A failure changes no run, but
 * a database that did not exist may remain, without runs.
 *
 * Returns TNK_OK; TNK_EFILE with the reason in `why`; TNK_ENOMEM; or
 * TNK_EUNSUPPORTED if this program was built without SQLite.
 */
int report_trackio_put(const char *path, const report_data_t *data,
                       char why[REPORT_MAX_WHY]);

#endif

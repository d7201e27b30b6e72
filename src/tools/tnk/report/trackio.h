/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_TRACKIO_H
#define TNK_TOOLS_TNK_REPORT_TRACKIO_H

#include "tools/tnk/report/tracker.h"

/*
 * Writes the metrics and the configuration of a run to a project of trackio,
 * which is a database of SQLite with the name of the project and ".db". Earlier
 * rows of the run are replaced; other runs stay.
 *
 * With `is_live` each write is a transaction. If another process replaces the
 * run meanwhile, this one must not add rows to it, and fails. Without `is_live`
 * a failure changes no run, but a database that did not exist may remain,
 * without runs.
 */
report_target_t report_trackio_open(const cli_t *cli, const char *path,
                                    int is_live);

#endif

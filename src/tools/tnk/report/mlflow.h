/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_MLFLOW_H
#define TNK_TOOLS_TNK_REPORT_MLFLOW_H

#include "tools/tnk/report/page.h"

/*
 * Write the metrics and the configuration of runs to a server of MLflow,
 * through version 2.0 of its REST interface. `experiment` is created if it does
 * not exist. A run that was written before is replaced: the earlier one is
 * deleted after the new one is complete.
 *
 * The environment has the key: MLFLOW_TRACKING_TOKEN, or
 * MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD.
 *
 * Returns the exit status; errors have been reported.
 */
int report_mlflow_put(const cli_t *cli, const char *url, const char *experiment,
                      const report_data_t *data, size_t n);

#endif

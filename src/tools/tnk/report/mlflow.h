/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_MLFLOW_H
#define TNK_TOOLS_TNK_REPORT_MLFLOW_H

#include "tools/tnk/report/tracker.h"

/*
 * Writes the metrics and the configuration of a run to a server of MLflow,
 * through version 2.0 of its REST interface. `experiment` is created if it does
 * not exist. A run that was written before is replaced: the earlier one is
 * deleted after the new one has all steps. Metrics of a request whose answer
 * was lost are sent again with the same times, so the server keeps them once.
 *
 * The environment has the key: MLFLOW_TRACKING_TOKEN, or
 * MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD.
 */
report_target_t report_mlflow_open(const cli_t *cli, const char *url,
                                   const char *experiment);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_EVENTS_H
#define TNK_TOOLS_TNK_REPORT_EVENTS_H

#include "tools/tnk/report/page.h"

/*
 * Write the metrics of a run as an event file of TensorBoard: records of
 * TensorFlow (a length, the data, and checksums of both), each with a message
 * Event. All values are written, not only those of the pictures.
 *
 * Metrics have no times. The times of the events are between those of the
 * checkpoints. Where the run was resumed from an earlier step, a mark tells
 * TensorBoard to forget the later steps.
 *
 * Returns TNK_OK; TNK_EFILE with errno set; TNK_ENOMEM. Errors of `to` stay in
 * it.
 */
int report_events_put(FILE *to, const report_data_t *data);

#endif

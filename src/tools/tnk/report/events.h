/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REPORT_EVENTS_H
#define TNK_TOOLS_TNK_REPORT_EVENTS_H

#include "tools/tnk/report/tracker.h"

/*
 * Writes the metrics of a run to an event file of TensorBoard: records of
 * TensorFlow (a length, the data, and checksums of both), each with a message
 * Event. All values are written, not only those of the pictures. Other event
 * files of this program in the folder are removed when the new one has all
 * steps.
 *
 * With `is_live` each write appends to a file with a name of its own, so that a
 * board that is open shows it. Its first event tells TensorBoard to forget
 * steps that it has read before. Without `is_live` the file appears when it is
 * complete.
 *
 * Metrics have no times. The times of the events are between those of the
 * checkpoints. Where the run was resumed from an earlier step, a mark tells
 * TensorBoard to forget the later steps.
 */
report_target_t report_events_open(const cli_t *cli, const char *folder,
                                   int is_live);

#endif

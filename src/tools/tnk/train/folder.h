/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TRAIN_FOLDER_H
#define TNK_TOOLS_TNK_TRAIN_FOLDER_H

#include "tnk/train.h"
#include "tools/tnk/learn/folder.h"
#include "tools/tnk/train/data.h"

/* The folder of a run of tnk train. */
typedef struct {
  learn_folder_t base;
  char *samples;
  char *reference; /* logprobs of --method dpo */
} train_folder_t;

/* Look for the run. Returns the exit status; errors have been reported. Free
 * the folder in any case. `path` may be NULL for a dry run. */
int train_folder_open(train_folder_t *folder, const cli_t *cli,
                      const char *path);
/* Write the configuration of a new run, or compare that of the command line
 * with that of the found run. */
int train_folder_keep(train_folder_t *folder, const train_data_t *data,
                      const tnk_plan_t *plan, const tnk_schedule_t *schedule);
void train_folder_free(train_folder_t *folder);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_FOLDER_H
#define TNK_TOOLS_TNK_LEARN_FOLDER_H

#include <jansson.h>

#include "tools/common/frame/cli.h"

/* The folder of a run. config.json has everything that determines the result.
 * It is written before the first request and never changes. */
typedef struct {
  const cli_t *cli;
  const char *command; /* "tnk train" */
  const char *path;
  char *config; /* path of config.json */
  char *metrics;
  char *served;  /* checkpoints of --local */
  json_t *found; /* contents of config.json, or NULL */
  int64_t now_s; /* when the run began */
} learn_folder_t;

/* Look for the run. Returns the exit status; errors have been reported. Free
 * the folder in any case. `path` may be NULL for a dry run. */
int learn_folder_open(learn_folder_t *folder, const cli_t *cli,
                      const char *command, const char *path);
/* The path of another file in the folder; NULL if there is no memory. Freed by
 * the caller. */
char *learn_folder_file(const learn_folder_t *folder, const char *name);
/* Write the configuration of a new run, or compare `options` with those of the
 * found run: they determine the result. `settings` are the other options, and
 * `files` describes the data; both may be NULL. Takes the references of all
 * three. Returns the exit status. */
int learn_folder_keep(learn_folder_t *folder, json_t *options, json_t *settings,
                      json_t *files);
/* An array of the values of an option. */
json_t *learn_folder_texts(const cli_texts_t *list);
void learn_folder_free(learn_folder_t *folder);

#endif

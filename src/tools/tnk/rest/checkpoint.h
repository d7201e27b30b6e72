/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REST_CHECKPOINT_H
#define TNK_TOOLS_TNK_REST_CHECKPOINT_H
#include "tnk/weights.h"
#include "tools/tnk/ask/ask.h"

/* Check that a path is a valid path of a checkpoint. Returns 0, or -1 with the
 * reason in `why`. */
int cli_check_path(const char *path, char *why, size_t n_why);
/* As above for the first argument, for cli_command_t.check. */
const char *cli_check_first_path(const cli_t *cli);

/* Parse a time to live within the service's limits, "3600" or "30d". Returns 0,
 * or -1 with the reason in `why`. */
int cli_read_ttl(int64_t *seconds, const char *value, char *why, size_t n_why);

/* Print the path of a checkpoint that was created from the first argument.
 * Returns the exit status. */
int cli_put_made(const cli_t *cli, const char *path);

/* Check that the first argument has downloadable files, for
 * cli_command_t.check. */
const char *cli_check_files(const cli_t *cli);
/* Open a service whose session names this command as its creator. */
int cli_weights_open(cli_ask_t *ask, const cli_t *cli);
/* Download the first argument to a folder, with a progress bar. `options` holds
 * the caller's changes. Returns the settled promise, and in *n_come the number
 * of bytes on the disk. */
tnk_promise_t *cli_weights_fetch(cli_ask_t *ask, const char *folder,
                                 tnk_weights_options_t *options,
                                 int64_t *n_come);

/* Write a string that changes if the checkpoint at that path is replaced; "" if
 * the service provides none. */
void cli_write_stamp(cli_ask_t *ask, const char *path, char *out, size_t n);

extern const cli_command_t cli_checkpoint_delete;
extern const cli_command_t cli_checkpoint_download;
extern const cli_command_t cli_checkpoint_save_external;
extern const cli_command_t cli_checkpoint_push_hf;

#endif

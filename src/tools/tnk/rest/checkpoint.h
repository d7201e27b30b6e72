#ifndef TNK_TOOLS_TNK_REST_CHECKPOINT_H
#define TNK_TOOLS_TNK_REST_CHECKPOINT_H

#include "tnk/weights.h"
#include "tools/tnk/ask/ask.h"

/* Check that a path is one of a checkpoint and can be sent. 0, or -1 with one
 * sentence in `why`. */
int cli_check_path(const char *path, char *why, size_t n_why);
/* The same for the first argument, as cli_command_t.check. */
const char *cli_check_first_path(const cli_t *cli);

/* Read a time to live that the service takes, "3600" or "30d". 0, or -1 with
 * what is wrong in `why`. */
int cli_read_ttl(int64_t *seconds, const char *value, char *why, size_t n_why);

/* Print the path of a checkpoint that was made from the first argument. An exit
 * status. */
int cli_put_made(const cli_t *cli, const char *path);

/* Check that the first argument has files that can be downloaded, as
 * cli_command_t.check. */
const char *cli_check_files(const cli_t *cli);
/* Open a service whose session tells that this command has made it. */
int cli_weights_open(cli_ask_t *ask, const cli_t *cli);
/* Download the first argument to a folder, showing the progress. `options` has
 * what is special. Returns the promise, which has settled, and in *n_come how
 * many bytes were there. */
tnk_promise_t *cli_weights_fetch(cli_ask_t *ask, const char *folder,
                                 tnk_weights_options_t *options,
                                 int64_t *n_come);

/* Write what changes when something else is saved under that path; "" where the
 * service does not tell. */
void cli_write_stamp(cli_ask_t *ask, const char *path, char *out, size_t n);

extern const cli_command_t cli_checkpoint_list;
extern const cli_command_t cli_checkpoint_info;
extern const cli_command_t cli_checkpoint_delete;
extern const cli_command_t cli_checkpoint_download;
extern const cli_command_t cli_checkpoint_save_external;
extern const cli_command_t cli_checkpoint_push_hf;

#endif

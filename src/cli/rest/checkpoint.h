#ifndef TNK_CLI_REST_CHECKPOINT_H
#define TNK_CLI_REST_CHECKPOINT_H

#include "cli/frame/cli.h"

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

extern const cli_command_t cli_checkpoint_list;
extern const cli_command_t cli_checkpoint_info;
extern const cli_command_t cli_checkpoint_delete;
extern const cli_command_t cli_checkpoint_download;
extern const cli_command_t cli_checkpoint_save_external;

#endif

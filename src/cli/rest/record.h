#ifndef TNK_CLI_REST_RECORD_H
#define TNK_CLI_REST_RECORD_H

#include "cli/out/json.h"
#include "tnk/record.h"

/*
 * Records with the members of the official command, to be written inside an
 * object or an array that is open.
 */

/* Write the members of a checkpoint, without the object. */
void cli_put_checkpoint_members(cli_json_t *json,
                                const tnk_checkpoint_t *checkpoint);
void cli_put_checkpoint(cli_json_t *json, const tnk_checkpoint_t *checkpoint);
void cli_put_run_members(cli_json_t *json, const tnk_run_t *run);

#endif

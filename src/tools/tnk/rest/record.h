#ifndef TNK_TOOLS_TNK_REST_RECORD_H
#define TNK_TOOLS_TNK_REST_RECORD_H

#include "tnk/record.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/table.h"

/*
 * Records with the members of the official command. The caller has opened an
 * object or an array.
 */

/* Write the members of a checkpoint, without the object. */
void cli_put_checkpoint_members(cli_json_t *json,
                                const tnk_checkpoint_t *checkpoint);
void cli_put_checkpoint(cli_json_t *json, const tnk_checkpoint_t *checkpoint);
void cli_put_run_members(cli_json_t *json, const tnk_run_t *run);
/* Write a session as a list returns it, or as a search does. */
void cli_put_session_id(cli_json_t *json, const tnk_session_t *session);
void cli_put_session(cli_json_t *json, const tnk_session_t *session);
/* Write the members that only the answer about one session has. */
void cli_put_session_parts(cli_json_t *json, const tnk_session_t *session);
/* Add a cell about a run's adapter: its rank, or whether there is one. */
void cli_table_add_lora(cli_table_t *table, const tnk_run_t *run);
/* Add a cell with an amount in US dollars; NaN: unknown. */
void cli_table_add_usd(cli_table_t *table, double amount);

#endif

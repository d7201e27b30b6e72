/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REST_RECORD_H
#define TNK_TOOLS_TNK_REST_RECORD_H
#include "lib/store/shapes.h"
#include "tools/tnk/out/csv.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/out/table.h"

/*
 * Records, written by the shapes that they are read by (lib/store/shapes.h).
 * Their members are those of the official command.
 */

/* Write the members in the caller's object. */
void cli_put_members(cli_json_t *json, const tnk__shape_t *shape,
                     const void *record);
/* Print a document with the members of a record. Returns the exit status. */
int cli_print_record(const cli_t *cli, const tnk__shape_t *shape,
                     const void *record);
/* Write an object; NULL: null. */
void cli_put_record(cli_json_t *json, const tnk__shape_t *shape,
                    const void *record);
void cli_put_metadata(cli_json_t *json, const tnk_pair_t *pairs, size_t n);

/* Write the names of the columns, and the cells of a row. The records in it
 * have none. */
void cli_csv_put_names(cli_csv_t *csv, const tnk__shape_t *shape);
void cli_csv_put_record(cli_csv_t *csv, const tnk__shape_t *shape,
                        const void *record);

/* Add a row for each pair. */
void cli_table_add_metadata(cli_table_t *table, const tnk_pair_t *pairs,
                            size_t n);
/* Add a cell about a run's adapter: its rank, or whether there is one. */
void cli_table_add_lora(cli_table_t *table, const tnk_run_t *run);
/* Add a cell with an amount in US dollars; NaN: unknown. */
void cli_table_add_usd(cli_table_t *table, double amount);

#endif

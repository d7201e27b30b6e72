#ifndef TNK_CLI_REST_BILLING_H
#define TNK_CLI_REST_BILLING_H

#include "cli/frame/command.h"
#include "cli/out/table.h"

extern const cli_command_t cli_billing_storage;

/* Add a cell with an amount of US dollars; NaN: it is not known. */
void cli_table_add_usd(cli_table_t *table, double amount);

#endif

#ifndef TNK_CLI_REST_BILLING_H
#define TNK_CLI_REST_BILLING_H

#include "cli/frame/command.h"

extern const cli_command_t cli_billing_storage;

#endif

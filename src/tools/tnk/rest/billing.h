/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_REST_BILLING_H
#define TNK_TOOLS_TNK_REST_BILLING_H

#include "tools/common/frame/command.h"

extern const cli_command_t cli_billing_storage;

#endif

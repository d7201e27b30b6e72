/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_ACCOUNT_COMMANDS_H
#define TNK_TOOLS_TNK_ACCOUNT_COMMANDS_H

#include "tools/common/frame/command.h"

/* tnk auth, tnk whoami and tnk ping. */
extern const cli_command_t cli_auth;
extern const cli_command_t cli_whoami;
extern const cli_command_t cli_ping;

/* The commands of tnk auth. */
extern const cli_command_t cli_auth_login;
extern const cli_command_t cli_auth_logout;

#endif

#include "tools/tnk/account/commands.h"

static const cli_command_t *const commands[] = {
    &cli_auth_login, &cli_auth_logout, &cli_auth_status, &cli_whoami, NULL};

const cli_command_t cli_auth = {
    .name = "auth",
    .brief = "keys that are stored on this machine",
    .has = CLI_HAS_JSON | CLI_HAS_SERVICE,
    .commands = commands,
};

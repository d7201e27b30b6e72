/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_RL_KEY_H
#define TNK_TOOLS_TNK_RL_KEY_H

#include "tools/tnk/learn/folder.h"

/* The admin key of the gateway. With --url it is that of the options, or that
 * in the folder of the run, which is made if it is missing. Without --url
 * nobody knows it. *out is freed with cli_admin_free(). Returns the exit
 * status; errors have been reported. */
int rl_admin_key(char **out, const learn_folder_t *folder);

#endif

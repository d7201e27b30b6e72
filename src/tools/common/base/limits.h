/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_COMMON_BASE_LIMITS_H
#define TNK_TOOLS_COMMON_BASE_LIMITS_H

/* Allow this process as many open files as the system permits. Each connection
 * needs one. */
void cli_raise_file_limit(void);

#endif

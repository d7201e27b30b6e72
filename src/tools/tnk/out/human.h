/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_OUT_HUMAN_H
#define TNK_TOOLS_TNK_OUT_HUMAN_H

#include <stdint.h>

/* Buffer size for each of these strings. */
enum { CLI_HUMAN_TEXT = 32 };

/* Write a size: "812 B", "12.3 KB" with 1 KB = 1024 bytes; "N/A" if n is
 * negative. */
void cli_human_size(char out[CLI_HUMAN_TEXT], int64_t n);
/* Write a time relative to `now_us`: "3 hours ago", "in 2 days". Beyond 30 days
 * the date is written. */
void cli_human_age(char out[CLI_HUMAN_TEXT], int64_t us, int64_t now_us);
/* The current time, in the unit of records. */
int64_t cli_now_us(void);

#endif

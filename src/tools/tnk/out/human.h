#ifndef TNK_TOOLS_TNK_OUT_HUMAN_H
#define TNK_TOOLS_TNK_OUT_HUMAN_H

#include <stdint.h>

/* Room for any of these texts. */
enum { CLI_HUMAN_TEXT = 32 };

/* Write a number of bytes: "812 B", "12.3 KB" of 1024 bytes; "N/A" below 0. */
void cli_human_size(char out[CLI_HUMAN_TEXT], int64_t n);
/* Write a time as seen from `now_us`: "3 hours ago", "in 2 days", beyond 30
 * days the date. */
void cli_human_age(char out[CLI_HUMAN_TEXT], int64_t us, int64_t now_us);
/* The time of day, as times are counted in records. */
int64_t cli_now_us(void);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_BASE_CLOCK_H
#define TNK_TOOLS_LOCAL_BASE_CLOCK_H

#include <stdint.h>

/* Milliseconds since 1970. */
int64_t local_wall_ms(void);
/* "2026-11-21T07:33:14.000Z"; `out` has 32 bytes. */
void local_time_text(int64_t ms, char *out);

/* "Sun, 06 Nov 1994 08:49:37 GMT", as in headers; `out` has 32 bytes. */
void local_http_date(int64_t ms, char *out);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_LM_CHECK_H
#define TNK_TOOLS_LOCAL_LM_CHECK_H

#include "tools/local/lm/lm.h"

/* Write the message, unless `why` is NULL, and return `code`. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int tnk__lm_refuse(tnk__lm_why_t *why, int code, const char *format, ...);

#endif

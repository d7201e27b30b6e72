/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_PUSH_PUSH_H
#define TNK_LIB_FILES_PUSH_PUSH_H

#include "lib/files/hub/hub.h"
#include "tnk/push.h"

/* Push a directory. The options have passed their checks and are copied. */
tnk_promise_t *tnk__push(tnk__hub_t *hub, const char *directory,
                         const tnk_push_options_t *options);

#endif

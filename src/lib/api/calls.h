/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_API_CALLS_H
#define TNK_LIB_API_CALLS_H

#include "tnk/bindings.h"

/* Call the function that call->function names and set call->result. Returns
 * TNK_OK; TNK_EINVAL if there is no such function, or not with so many
 * arguments. Runtime's thread only. */
int tnk__call_by_name(tnk_call_t *call);

/* Returns whether the function returns a promise that the caller must release.
 */
int tnk__callee_gives_promise(const tnk_call_t *call);

#endif

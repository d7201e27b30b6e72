/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_WIRE_KNOWN_H
#define TNK_GATEWAY_WIRE_KNOWN_H

#include <jansson.h>

#include "gateway/wire/fault.h"

/* Reject a parameter that is not known, unless its value asks for nothing.
 * Returns 0, or -1 with its name in `fault`. */
int tnk__gw_known_check(tnk__gw_api_t api, const json_t *body,
                        tnk__gw_fault_t *fault);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_KEYS_CALL_H
#define TNK_TOOLS_TNK_KEYS_CALL_H
#include <jansson.h>

#include "tools/tnk/keys/admin.h"

/* A running gateway, as the options name it. */
typedef struct {
  const char *url; /* NULL: from the environment */
  cli_admin_t admin;
} cli_place_t;

/* Send one request to the part of a gateway that is for administrators. `body`
 * is JSON, or NULL. *out receives the object that the gateway answers with; the
 * caller drops it. Returns the exit status; errors have been reported. */
int cli_gateway_call(const cli_t *cli, const cli_place_t *place,
                     const char *method, const char *path, const char *body,
                     json_t **out);

#endif

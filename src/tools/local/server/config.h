/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_SERVER_CONFIG_H
#define TNK_TOOLS_LOCAL_SERVER_CONFIG_H

#include "tools/local/call/call.h"

/* Create the answers of client/config and client/dynamic_config. Returns
 * TNK_OK, TNK_ENOMEM, or TNK_EINVAL for a flag without a name. */
int local_config_init(local_server_t *server);
void local_config_deinit(local_server_t *server);
void local_client_config(local_call_t *call);
void local_dynamic_config(local_call_t *call);
void local_healthz(local_call_t *call);
void local_capabilities(local_call_t *call);
void local_telemetry(local_call_t *call);

#endif

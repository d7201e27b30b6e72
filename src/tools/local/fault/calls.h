/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_FAULT_CALLS_H
#define TNK_TOOLS_LOCAL_FAULT_CALLS_H

#include "server/http.h"
#include "tools/local/fault/fault.h"

/* The hooks of a server with faults; their user is the faults. */
extern const tnk__srv_hooks_t local_fault_hooks;

/* The fault of a request; its kind is NONE without a fault. */
const local_fault_t *local_fault_of(const tnk__srv_req_t *req);
/* Answer a request whose fault prevents its handling. Returns 1 if it was
 * answered. Call it before a request is handled. */
int local_fault_answers(tnk__srv_req_t *req);
/* Serve the control endpoint: GET lists the injected faults, PUT sets faults.
 * Returns 1 if answered, 0 if the path differs or the endpoint is disabled. */
int local_faults_control(local_faults_t *faults, tnk__srv_req_t *req);

#endif

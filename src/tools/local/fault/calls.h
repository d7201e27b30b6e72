#ifndef TNK_TOOLS_LOCAL_FAULT_CALLS_H
#define TNK_TOOLS_LOCAL_FAULT_CALLS_H

#include "server/http.h"
#include "tools/local/fault/fault.h"

/* What a server with faults gives to the one of HTTP, with the faults as their
 * user. */
extern const tnk__srv_hooks_t local_fault_hooks;

/* What will go wrong with a request; of kind NONE without faults. */
const local_fault_t *local_fault_of(const tnk__srv_req_t *req);
/* Answer a request whose fault does not let it through. 1: answered. To be
 * called before a request is served. */
int local_fault_answers(tnk__srv_req_t *req);
/* Change the answer as the request's fault wants it, and write it down. */
void local_fault_shape(tnk__srv_req_t *req, tnk__srv_answer_t *answer,
                       void *faults);
/* Serve the endpoint whose GET lists what was injected and whose PUT of a text
 * sets faults. 1: answered; 0: not this path, or not open. */
int local_faults_control(local_faults_t *faults, tnk__srv_req_t *req);

#endif

#ifndef TNK_LOCAL_HTTP_FAULT_CALLS_H
#define TNK_LOCAL_HTTP_FAULT_CALLS_H

#include "local/http/http.h"

/* Answer a request whose fault does not let it through. 1: answered. To be
 * called before a request is served. */
int local_fault_answers(local_req_t *req);
/* Change the answer as the request's fault wants it, and write it down. */
void local_fault_shape(local_req_t *req, local_answer_t *answer);
/* Serve the endpoint whose GET lists what was injected and whose PUT of a text
 * sets faults. 1: answered; 0: not this path, or not open. */
int local_faults_control(local_faults_t *faults, local_req_t *req);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_SEND_H
#define TNK_GATEWAY_SEND_H

#include "gateway/state.h"

/* Answer a request. Takes the content of `body`. */
void tnk__gw_send(tnk__srv_req_t *req, int status, int is_stream,
                  tnk__buf_t *body);
/* Reject a request, in the error format of an API. */
void tnk__gw_refuse(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                    tnk__gw_api_t api, const tnk__gw_fault_t *fault);
/* The same for a routed request. `code` may be NULL. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void tnk__gw_call_refuse(const tnk__gw_call_t *call, int status,
                         const char *code, const char *format, ...);
/* Answer a request when the lines of the record so far are written. Takes the
 * content of `body`. `what` names in an error what is recorded. */
void tnk__gw_confirm(const tnk__gw_call_t *call, tnk__buf_t *body,
                     const char *what);
/* The name of the request's session. */
const char *tnk__gw_call_session(const tnk__gw_call_t *call);
/* Start the response of a request that waits. */
void tnk__gw_begin_stream(tnk__srv_req_t *req, int is_stream);
/* End it with all of its events, or with its JSON. Takes the content of
 * `body`. */
void tnk__gw_end_stream(tnk__srv_req_t *req, tnk__buf_t *body);
/* End it with an error. If it is not a stream of events, it is cut off. */
void tnk__gw_break_stream(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                          const tnk__gw_ask_t *ask,
                          const tnk__gw_fault_t *fault);
/* Convert the service's error to an error of the gateway. */
void tnk__gw_service_fault(tnk__gw_fault_t *fault,
                           const tnk_promise_t *promise);

#endif

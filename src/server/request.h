/* SPDX-License-Identifier: MIT */
#ifndef TNK_SERVER_REQUEST_H
#define TNK_SERVER_REQUEST_H

#include "server/http.h"

/*
 * Functions with which a version of HTTP puts a request together. A "refusal"
 * is 0 on success, otherwise an HTTP status or one of the values below.
 */
enum {
  TNK__SRV_REFUSE_FULL = -1,  /* 503: too many connections */
  TNK__SRV_REFUSE_END = -2,   /* a hook ends the request without a response */
  TNK__SRV_REFUSE_TARGET = -3 /* 400: the target is malformed */
};

void tnk__srv_req_init(tnk__srv_req_t *req, tnk__srv_t *http,
                       const tnk__srv_req_ops_t *ops);
void tnk__srv_req_deinit(tnk__srv_req_t *req);
/* Reset the request for the next one. */
void tnk__srv_req_begin(tnk__srv_req_t *req);

/* Free large buffers. */
void tnk__srv_req_shrink(tnk__srv_req_t *req);

/* Append to the name of a header, in any case. Returns a refusal. */
int tnk__srv_req_add_name(tnk__srv_req_t *req, const char *at, size_t n);
/* Append to the value of a header. Returns a refusal. */
int tnk__srv_req_add_value(tnk__srv_req_t *req, const char *at, size_t n);
/* End the name, or the value. Both return a refusal. */
int tnk__srv_req_end_name(tnk__srv_req_t *req);
int tnk__srv_req_end_value(tnk__srv_req_t *req);
/* The method, of static memory or the stream's. Call it before the head ends:
 * those who log a refusal, and who answer HEAD, look at it. */
void tnk__srv_req_set_method(tnk__srv_req_t *req, const char *method);
/* End the head. `n_body` is the announced length of the body. Calls `admit` and
 * the hook that may end the request. Returns a refusal. */
int tnk__srv_req_end_head(tnk__srv_req_t *req, uint64_t n_body);
/* Append to the body. `announced` is the length that is still to come, if
 * known. Returns a refusal. */
int tnk__srv_req_add_body(tnk__srv_req_t *req, const void *at, size_t n,
                          uint64_t announced);
/* Pass the complete request to the handler. Returns a refusal. */
int tnk__srv_req_dispatch(tnk__srv_req_t *req);

/* Answer a request that cannot be served; `refusal` is not 0. */
void tnk__srv_req_refuse(tnk__srv_req_t *req, int refusal);
/* The connection or stream is lost: call `on_gone` if the request is parked. */
void tnk__srv_req_gone(tnk__srv_req_t *req);

#endif

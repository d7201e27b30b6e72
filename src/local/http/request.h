#ifndef TNK_LOCAL_HTTP_REQUEST_H
#define TNK_LOCAL_HTTP_REQUEST_H

#include "local/http/http.h"

/*
 * How a version of HTTP puts a request together. Whatever returns a refusal
 * returns 0 when all is well, else a status to refuse with or one of these.
 */
enum {
  LOCAL_REFUSE_FULL = -1,  /* 503: there are too many connections */
  LOCAL_REFUSE_FAULT = -2, /* a fault wants the request to end unserved */
  LOCAL_REFUSE_TARGET = -3 /* 400: its target is none */
};

void local_req_init(local_req_t *req, local_http_t *http,
                    const local_req_ops_t *ops);
void local_req_deinit(local_req_t *req);
/* Forget the request before. */
void local_req_begin(local_req_t *req);
/* Forget what is large of it. */
void local_req_shrink(local_req_t *req);

/* Add to the name of a header; case does not matter. A refusal. */
int local_req_add_name(local_req_t *req, const char *at, size_t n);
/* Add to its value. A refusal. */
int local_req_add_value(local_req_t *req, const char *at, size_t n);
/* The name is complete; or the value is. A refusal. */
int local_req_end_name(local_req_t *req);
int local_req_end_value(local_req_t *req);
/* The head is complete, and announces so large a body. A refusal; decides what
 * goes wrong with the request. */
int local_req_end_head(local_req_t *req, uint64_t n_body);
/* Add to the body; `announced` is what is still to come, as far as the peer has
 * told. A refusal. */
int local_req_add_body(local_req_t *req, const void *at, size_t n,
                       uint64_t announced);
/* The request is complete: hand it out. A refusal. */
int local_req_dispatch(local_req_t *req, const char *method);
/* Answer a request that cannot be served; `status` is a refusal. */
void local_req_refuse(local_req_t *req, int status);
/* It cannot be answered any more: tell whoever has parked it, if anybody has.
 */
void local_req_gone(local_req_t *req);

#endif

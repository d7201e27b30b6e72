#ifndef TNK_SERVER_REQUEST_H
#define TNK_SERVER_REQUEST_H

#include "server/http.h"

/*
 * How a version of HTTP puts a request together. Whatever returns a refusal
 * returns 0 when all is well, else a status to refuse with or one of these.
 */
enum {
  TNK__SRV_REFUSE_FULL = -1,  /* 503: there are too many connections */
  TNK__SRV_REFUSE_END = -2,   /* a hook wants the request to end unserved */
  TNK__SRV_REFUSE_TARGET = -3 /* 400: its target is none */
};

void tnk__srv_req_init(tnk__srv_req_t *req, tnk__srv_t *http,
                       const tnk__srv_req_ops_t *ops);
void tnk__srv_req_deinit(tnk__srv_req_t *req);
/* Forget the request before. */
void tnk__srv_req_begin(tnk__srv_req_t *req);
/* Forget what hooks have decided about it. */
void tnk__srv_req_forget(tnk__srv_req_t *req);
/* Forget what is large of it. */
void tnk__srv_req_shrink(tnk__srv_req_t *req);

/* Add to the name of a header; case does not matter. A refusal. */
int tnk__srv_req_add_name(tnk__srv_req_t *req, const char *at, size_t n);
/* Add to its value. A refusal. */
int tnk__srv_req_add_value(tnk__srv_req_t *req, const char *at, size_t n);
/* The name is complete; or the value is. A refusal. */
int tnk__srv_req_end_name(tnk__srv_req_t *req);
int tnk__srv_req_end_value(tnk__srv_req_t *req);
/* The head is complete, and announces so large a body. A refusal; decides what
 * goes wrong with the request. */
int tnk__srv_req_end_head(tnk__srv_req_t *req, uint64_t n_body);
/* Add to the body; `announced` is what is still to come, as far as the peer has
 * told. A refusal. */
int tnk__srv_req_add_body(tnk__srv_req_t *req, const void *at, size_t n,
                          uint64_t announced);
/* The request is complete: hand it out. A refusal. */
int tnk__srv_req_dispatch(tnk__srv_req_t *req, const char *method);
/* Find the path of one that is not complete, as far as it has come. */
void tnk__srv_req_take_path(tnk__srv_req_t *req);
/* Answer a request that cannot be served; `refusal` is one. */
void tnk__srv_req_refuse(tnk__srv_req_t *req, int refusal);
/* It cannot be answered any more: tell whoever has parked it, if anybody has.
 */
void tnk__srv_req_gone(tnk__srv_req_t *req);

#endif

#include <string.h>

#include "lib/base/alloc.h"
#include "tools/local/fault/calls.h"

/* The hooks of the HTTP server that select and inject faults. */

/* Codes of HTTP/2, which are the same in a build without it. */
static uint32_t code_of(const local_fault_t *fault) {
  static const struct {
    const char *arg;
    uint32_t code;
  } known[] = {{LOCAL_RESET_REFUSED, 0x7},
               {LOCAL_RESET_CALM, 0xb},
               {LOCAL_RESET_CANCEL, 0x8},
               {LOCAL_RESET_PROTOCOL, 0x1},
               {LOCAL_RESET_HTTP_1_1, 0xd}};
  enum { INTERNAL_ERROR = 0x2 };

  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if (fault->arg != NULL && strcmp(fault->arg, known[i].arg) == 0)
      return known[i].code;
  return INTERNAL_ERROR;
}

static int refuses(void *user) {
  return local_faults_refuses(user);
}

/* The fault is chosen before the body is read. Without memory there is no
 * fault. */
static tnk__srv_end_t on_head(tnk__srv_req_t *req, const char *url,
                              void *user) {
  tnk__srv_end_t end = {TNK__SRV_END_NOT, 0};
  local_fault_t fault;
  local_fault_t *kept;

  local_faults_decide(user, url, &fault);
  if (fault.kind == LOCAL_FAULT_NONE)
    return end;
  kept = tnk__malloc(req->http->config.alloc, sizeof(*kept));
  if (kept == NULL)
    return end;
  *kept = fault;
  req->fate = kept;
  if (!local_fault_is_at_head(&fault))
    return end;
  local_faults_note(user, &fault, req->http->n_requests + 1, url, -1);
  end.code = code_of(&fault);
  if (fault.kind == LOCAL_FAULT_GOAWAY)
    end.how = TNK__SRV_END_AWAY;
  else if (local_fault_is(&fault, fault.kind, LOCAL_ARG_CONNECTION))
    end.how = TNK__SRV_END_CONN;
  else
    end.how = TNK__SRV_END_RESET;
  return end;
}

static void forget(tnk__srv_req_t *req, void *user) {
  (void)user;
  tnk__free(req->http->config.alloc, req->fate);
}

const tnk__srv_hooks_t local_fault_hooks = {refuses, on_head, local_fault_shape,
                                            forget};

/* This answer is never sent: local_fault_shape() replaces it, as it sees all
 * answers. */
int local_fault_answers(tnk__srv_req_t *req) {
  const local_fault_t *fault = local_fault_of(req);

  if (fault->kind == LOCAL_FAULT_NONE || fault->after)
    return 0;
  tnk__srv_req_reply(req, 500, "application/json", NULL, NULL, 0);
  return 1;
}

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "server/request.h"

/* Operations of handlers on a request of any version: answer it, now or
 * later. */

void tnk__srv_req_reply(tnk__srv_req_t *req, int status,
                        const char *content_type, const char *extra,
                        uint8_t *body, size_t len) {
  const tnk__srv_config_t *config = &req->http->config;
  tnk__srv_answer_t answer = {.status = status,
                              .content_type = content_type,
                              .extra = extra,
                              .body = body,
                              .len = len,
                              .announced = len,
                              .n_sent = len};

  req->on_gone = NULL;
  if (config->on_answer != NULL)
    config->on_answer(req, status, body, len, config->user);
  if (config->hooks != NULL)
    config->hooks->shape(req, &answer, config->hooks_user);
  if (config->on_reply != NULL)
    config->on_reply(req, answer.status, config->user);
  req->ops->answer(req, &answer);
}

void tnk__srv_req_reply_text(tnk__srv_req_t *req, int status,
                             const char *content_type, const char *text) {
  size_t len = strlen(text);
  char *copy = tnk__strndup(req->http->config.alloc, text, len);

  if (copy == NULL) {
    tnk__srv_req_drop(req);
    return;
  }
  tnk__srv_req_reply(req, status, content_type, NULL, (uint8_t *)copy, len);
}

void tnk__srv_req_open(tnk__srv_req_t *req, int status,
                       const char *content_type, const char *extra) {
  const tnk__srv_answer_t head = {
      .status = status, .content_type = content_type, .extra = extra};

  req->ops->begin(req, &head);
}

void tnk__srv_req_keep(tnk__srv_req_t *req, const char *text) {
  req->ops->keep(req, text);
}

void tnk__srv_req_finish(tnk__srv_req_t *req, uint8_t *body, size_t len) {
  req->on_gone = NULL;
  req->ops->finish(req, body, len);
}

void tnk__srv_req_drop(tnk__srv_req_t *req) {
  req->on_gone = NULL;
  req->ops->drop(req);
}

void tnk__srv_req_park(tnk__srv_req_t *req,
                       void (*on_gone)(tnk__srv_req_t *req, void *user),
                       void *user) {
  req->on_gone = on_gone;
  req->user = user;
}

void tnk__srv_req_gone(tnk__srv_req_t *req) {
  void (*on_gone)(tnk__srv_req_t *, void *) = req->on_gone;

  req->on_gone = NULL;
  if (on_gone != NULL)
    on_gone(req, req->user);
}

static const char *text_of(int refusal) {
  static const struct {
    int refusal;
    const char *text;
  } known[] = {
      {400, "Invalid HTTP request received."},
      {413, "Request body is too large"},
      {414, "Request target is too long"},
      {431, "Request headers are too large"},
      {503, "Out of memory"},
      {TNK__SRV_REFUSE_TARGET, "Malformed request target"},
      {TNK__SRV_REFUSE_FULL, "Too many connections"},
  };

  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if (known[i].refusal == refusal)
      return known[i].text;
  return "";
}

/* Drop the headers, because the last one may be incomplete. Drop the decision
 * of hooks too, because the request never became complete. */
void tnk__srv_req_refuse(tnk__srv_req_t *req, int refusal) {
  const tnk__srv_config_t *config = &req->http->config;
  const char *text = text_of(refusal);
  int status = refusal > 0                         ? refusal
               : refusal == TNK__SRV_REFUSE_TARGET ? 400
                                                   : 503;
  char detail[128];

  tnk__buf_clear(&req->head);
  tnk__srv_req_forget(req);
  if (config->refuse != NULL) {
    /* A complete request has its number already. */
    if (refusal != TNK__SRV_REFUSE_TARGET)
      req->n = ++req->http->n_requests;
    tnk__srv_req_take_path(req);
    config->refuse(req, status, text, config->user);
    return;
  }
  /* The format of the load balancers in front of servers. */
  if (refusal == TNK__SRV_REFUSE_FULL) {
    tnk__srv_req_reply_text(
        req, status, "text/html",
        "<html><head><title>503 Service Unavailable</title></head>\r\n"
        "<body><h1>503 Service Unavailable</h1>"
        "<p>Too many connections.</p></body></html>\r\n");
    return;
  }
  (void)snprintf(detail, sizeof(detail), "{\"detail\":\"%s\"}", text);
  tnk__srv_req_reply_text(req, status, "application/json", detail);
}

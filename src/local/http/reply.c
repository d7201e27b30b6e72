#include <string.h>

#include "base/alloc.h"
#include "local/http/fault_calls.h"
#include "local/http/request.h"

/* What handlers do with a request, whatever version of HTTP it came by: answer
 * it, now or later. */

void local_req_reply(local_req_t *req, int status, const char *content_type,
                     const char *extra, uint8_t *body, size_t len) {
  const local_http_config_t *config = &req->http->config;
  local_answer_t answer = {.status = status,
                           .content_type = content_type,
                           .extra = extra,
                           .body = body,
                           .len = len,
                           .announced = len,
                           .n_sent = len};

  req->on_gone = NULL;
  if (config->on_answer != NULL)
    config->on_answer(req, status, body, len, config->user);
  if (config->faults != NULL)
    local_fault_shape(req, &answer);
  if (config->on_reply != NULL)
    config->on_reply(req, answer.status, config->user);
  req->ops->answer(req, &answer);
}

void local_req_reply_text(local_req_t *req, int status,
                          const char *content_type, const char *text) {
  size_t len = strlen(text);
  char *copy = tnk__strndup(req->http->config.alloc, text, len);

  if (copy == NULL) {
    local_req_drop(req);
    return;
  }
  local_req_reply(req, status, content_type, NULL, (uint8_t *)copy, len);
}

void local_req_drop(local_req_t *req) {
  req->on_gone = NULL;
  req->ops->drop(req);
}

void local_req_park(local_req_t *req,
                    void (*on_gone)(local_req_t *req, void *user), void *user) {
  req->on_gone = on_gone;
  req->user = user;
}

void local_req_gone(local_req_t *req) {
  void (*on_gone)(local_req_t *, void *) = req->on_gone;

  req->on_gone = NULL;
  if (on_gone != NULL)
    on_gone(req, req->user);
}

/* The answer given here is never seen: local_fault_shape() puts the fault in
 * its place, and hears of all answers, these included. */
int local_fault_answers(local_req_t *req) {
  if (req->fault.kind == LOCAL_FAULT_NONE || req->fault.after)
    return 0;
  local_req_reply(req, 500, "application/json", NULL, NULL, 0);
  return 1;
}

/* What has come of the headers may end in the middle of one: forget it. What
 * was to go wrong with the request does not: it never came to be. */
void local_req_refuse(local_req_t *req, int status) {
  static const struct {
    int refusal;
    int status;
    const char *type;
    const char *text;
  } known[] = {
      {400, 400, "application/json",
       "{\"detail\":\"Invalid HTTP request received.\"}"},
      {413, 413, "application/json",
       "{\"detail\":\"Request body is too large\"}"},
      {414, 414, "application/json",
       "{\"detail\":\"Request target is too long\"}"},
      {431, 431, "application/json",
       "{\"detail\":\"Request headers are too large\"}"},
      {503, 503, "application/json", "{\"detail\":\"Out of memory\"}"},
      {LOCAL_REFUSE_TARGET, 400, "application/json",
       "{\"detail\":\"Malformed request target\"}"},
      /* As the edges say it that stand before servers. */
      {LOCAL_REFUSE_FULL, 503, "text/html",
       "<html><head><title>503 Service Unavailable</title></head>\r\n"
       "<body><h1>503 Service Unavailable</h1>"
       "<p>Too many connections.</p></body></html>\r\n"},
  };
  size_t i = 0;

  tnk__buf_clear(&req->head);
  req->fault = (local_fault_t){0};
  while (i + 1 < sizeof(known) / sizeof(*known) && known[i].refusal != status)
    i++;
  local_req_reply_text(req, known[i].status, known[i].type, known[i].text);
}

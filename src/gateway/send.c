/* SPDX-License-Identifier: MIT */
#include "gateway/send.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

enum { MAX_EXTRA = 160, MAX_ERROR = 64 * 1024 };

static const char stream_type[] = "text/event-stream; charset=utf-8";
static const char no_cache[] = "Cache-Control: no-cache\r\n";

/* `more` is a header line, or "". */
static void write_extra(const tnk__srv_req_t *req, const char *more,
                        char *out) {
  (void)snprintf(out, MAX_EXTRA,
                 "%sX-Request-Id: req_%" PRIu64 "\r\n"
                 "Request-Id: req_%" PRIu64 "\r\n",
                 more, req->n, req->n);
}

void tnk__gw_send(tnk__srv_req_t *req, int status, int is_stream,
                  tnk__buf_t *body) {
  char extra[MAX_EXTRA];
  size_t n = body->len;

  write_extra(req, is_stream ? no_cache : "", extra);
  tnk__srv_req_reply(req, status, is_stream ? stream_type : "application/json",
                     extra, tnk__buf_take(body, &n), n);
}

void tnk__gw_refuse(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                    tnk__gw_api_t api, const tnk__gw_fault_t *fault) {
  char allow[48] = "";
  char extra[MAX_EXTRA];
  uint8_t *data;
  tnk__buf_t body;
  size_t n = 0;

  tnk__buf_init(&body, &gateway->alloc, MAX_ERROR);
  if (tnk__gw_fault_write(fault, api, &body) != TNK_OK)
    tnk__buf_clear(&body);
  if (fault->allow != NULL)
    (void)snprintf(allow, sizeof(allow), "Allow: %s\r\n", fault->allow);
  else if (fault->retry_s > 0)
    (void)snprintf(allow, sizeof(allow), "Retry-After: %u\r\n", fault->retry_s);
  write_extra(req, allow, extra);
  data = tnk__buf_take(&body, &n);
  tnk__srv_req_reply(req, fault->status, "application/json", extra, data,
                     data != NULL ? n : 0);
  tnk__buf_deinit(&body);
}

void tnk__gw_call_refuse(const tnk__gw_call_t *call, int status,
                         const char *code, const char *format, ...) {
  tnk__gw_fault_t fault;
  char text[320];
  va_list args;

  va_start(args, format);
  (void)vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  (void)tnk__gw_fault(&fault, status, NULL, "%s", text);
  fault.code = code;
  tnk__gw_refuse(call->gateway, call->req, call->api, &fault);
}

const char *tnk__gw_call_session(const tnk__gw_call_t *call) {
  return call->session[0] != '\0' ? call->session : TNK__GW_UNNAMED;
}

/* ---- Responses that wait for the disk ---- */

typedef struct {
  tnk__gw_waiter_t waiter;
  tnk__gw_call_t call; /* its `req` is NULL if the client has hung up */
  const char *what;
  tnk__buf_t body;
} confirm_t;

static void on_confirm_gone(tnk__srv_req_t *req, void *user) {
  (void)req;
  ((confirm_t *)user)->call.req = NULL;
}

static void on_written(tnk__gw_waiter_t *waiter, int err) {
  confirm_t *confirm = tnk__container_of(waiter, confirm_t, waiter);
  const tnk__gw_call_t *call = &confirm->call;
  tnk__gw_fault_t fault;

  if (call->req != NULL && err == TNK_ECLOSED)
    tnk__srv_req_drop(call->req);
  else if (call->req != NULL && err == TNK_OK &&
           tnk__gw_check_session(call->gateway, tnk__gw_call_session(call),
                                 &fault) != 0)
    tnk__gw_refuse(call->gateway, call->req, call->api, &fault);
  else if (call->req != NULL && err == TNK_OK)
    tnk__gw_send(call->req, 200, 0, &confirm->body);
  else if (call->req != NULL)
    tnk__gw_call_refuse(call, err == TNK_ECONN ? 503 : 500, NULL,
                        "%s cannot be recorded", confirm->what);
  tnk__buf_deinit(&confirm->body);
  tnk__free(&call->gateway->alloc, confirm);
}

void tnk__gw_confirm(const tnk__gw_call_t *call, tnk__buf_t *body,
                     const char *what) {
  confirm_t *confirm = tnk__calloc(&call->gateway->alloc, 1, sizeof(*confirm));
  int written;

  if (confirm == NULL) {
    tnk__gw_call_refuse(call, 500, NULL, "out of memory");
    return;
  }
  confirm->call = *call;
  confirm->what = what;
  confirm->body = *body;
  tnk__buf_init(body, body->alloc, 0);
  confirm->waiter.done = on_written;
  written = tnk__gw_record_wait(call->gateway->record, &confirm->waiter);
  if (written != 0)
    on_written(&confirm->waiter, written < 0 ? written : TNK_OK);
  else
    tnk__srv_req_park(call->req, on_confirm_gone, confirm);
}

/* ---- Responses that have waited ---- */

void tnk__gw_begin_stream(tnk__srv_req_t *req, int is_stream) {
  char extra[MAX_EXTRA];

  write_extra(req, is_stream ? no_cache : "", extra);
  tnk__srv_req_open(req, 200, is_stream ? stream_type : "application/json",
                    extra);
}

void tnk__gw_end_stream(tnk__srv_req_t *req, tnk__buf_t *body) {
  size_t n = body->len;
  uint8_t *data = tnk__buf_take(body, &n);

  tnk__srv_req_finish(req, data, data != NULL ? n : 0);
}

void tnk__gw_break_stream(tnk_gateway_t *gateway, tnk__srv_req_t *req,
                          const tnk__gw_ask_t *ask,
                          const tnk__gw_fault_t *fault) {
  tnk__buf_t body;

  tnk__buf_init(&body, &gateway->alloc, MAX_ERROR);
  /* Drop the request if the event cannot be written, or if there are no events:
   * a response without its end is a failure to the client as well. */
  if (!ask->is_stream || tnk__gw_fault_event(fault, ask->api, &body) != TNK_OK)
    tnk__srv_req_drop(req);
  else
    tnk__gw_end_stream(req, &body);
  tnk__buf_deinit(&body);
}

/* ---- Errors of the service ---- */

static int status_of(const tnk_error_t *error) {
  static const struct {
    int code;
    int status;
  } known[] = {
      {TNK_ERATE, 429},     {TNK_EBILLING, 402},  {TNK_EREQUEST, 400},
      {TNK_ETIMEDOUT, 504}, {TNK_EFULL, 503},     {TNK_ECLOSED, 503},
      {TNK_EBUDGET, 503},   {TNK_EINVAL, 400},    {TNK_ENOMEM, 500},
      {TNK_EINTERNAL, 500}, {TNK_ECANCELED, 503},
  };

  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if (known[i].code == error->code)
      return known[i].status;
  if (error->code == TNK_EFAILED && error->category == TNK_CATEGORY_USER)
    return 400;
  return 502;
}

/* An error of the service's key or account is not the client's, which uses a
 * different key. */
void tnk__gw_service_fault(tnk__gw_fault_t *fault,
                           const tnk_promise_t *promise) {
  const tnk_error_t *error = tnk_promise_error(promise);

  if (error == NULL)
    (void)tnk__gw_fault(fault, 500, NULL, "out of memory");
  else
    (void)tnk__gw_fault(fault, status_of(error), NULL, "the service: %s",
                        error->text);
}

/* SPDX-License-Identifier: MIT */
#include "lib/store/rest.h"

#include "lib/base/alloc.h"
#include "lib/client/call/auth.h"
#include "lib/client/future/service_op.h"

/*
 * The identity comes from the token that the service issues for the key. If the
 * token is missing, a call that needs one fetches it.
 */
static const char name[] = "whoami";

static void fail(tnk__service_op_t *op, int code, const char *text) {
  tnk__error_t *error =
      tnk__error_new(&op->session->context->alloc, code, "%s: %s", name, text);

  tnk__service_op_fail(op, error);
  tnk__error_unref(error);
}

static void resolve(tnk__service_op_t *op, const char *token) {
  const tnk__auth_t *auth = op->session->endpoint.auth;
  tnk_page_t *page;
  int err = tnk__page_of_identity(&page, &op->session->context->alloc, token,
                                  !auth->exchanges);

  if (err == TNK_OK)
    tnk__service_op_resolve(op, TNK__RESULT_PAGE, page, tnk__page_free);
  else if (err == TNK_EPROTO && auth->exchanges)
    fail(op, err, "the service's token does not name the user");
  else if (err == TNK_EPROTO)
    fail(op, TNK_EUNSUPPORTED,
         "the service issues no tokens, and the key does not name the user");
  else
    tnk__service_op_fail_code(op, name, err);
}

static void on_asked(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__service_op_t *op = tnk__container_of(call, tnk__service_op_t, call);
  tnk__error_t *error = NULL;
  const char *token =
      tnk__auth_key(op->session->endpoint.auth, 0, name, &error);

  if (token != NULL)
    resolve(op, token);
  else if (reply->error != NULL)
    tnk__service_op_fail(op, reply->error);
  else
    fail(op, TNK_EAUTH, "no token was given");
  tnk__error_unref(error);
}

static void begin(tnk__service_op_t *op) {
  tnk__error_t *error = NULL;
  const char *token =
      tnk__auth_key(op->session->endpoint.auth, 0, name, &error);

  if (token != NULL) {
    resolve(op, token);
  } else if (error != NULL) {
    tnk__service_op_fail(op, error);
    tnk__error_unref(error);
  } else {
    tnk__call_init(&op->call, &op->session->endpoint, TNK__ROUTE_CAPABILITIES,
                   name);
    op->call.owner.method_name = "RestClient.whoami";
    tnk__service_op_call(op, on_asked);
  }
}

tnk_promise_t *tnk__rest_whoami(tnk__session_t *session) {
  tnk_promise_t *promise = NULL;
  tnk__service_op_t *op =
      tnk__service_op_new(session, name, sizeof(*op), &promise);

  if (op != NULL)
    tnk__service_op_enter(op, TNK__SESSION_CONFIGURED, begin);
  return promise;
}

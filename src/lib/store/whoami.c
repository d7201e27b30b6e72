#include "lib/store/rest.h"

#include "lib/base/alloc.h"
#include "lib/client/call/auth.h"
#include "lib/client/future/errand.h"

/*
 * The identity comes from the token that the service issues for the key. If the
 * token is missing, a call that needs one fetches it.
 */
static const char name[] = "whoami";

static void fail(tnk__errand_t *errand, int code, const char *text) {
  tnk__error_t *error = tnk__error_new(&errand->session->context->alloc, code,
                                       "%s: %s", name, text);

  tnk__errand_fail(errand, error);
  tnk__error_unref(error);
}

static void resolve(tnk__errand_t *errand, const char *token) {
  const tnk__auth_t *auth = errand->session->endpoint.auth;
  tnk_page_t *page;
  int err = tnk__page_of_identity(&page, &errand->session->context->alloc,
                                  token, !auth->exchanges);

  if (err == TNK_OK)
    tnk__errand_resolve(errand, TNK__RESULT_PAGE, page, tnk__page_free);
  else if (err == TNK_EPROTO && auth->exchanges)
    fail(errand, err, "the service's token does not say");
  else if (err == TNK_EPROTO)
    fail(errand, TNK_EUNSUPPORTED,
         "the service gives no tokens, and the key does not say");
  else
    tnk__errand_fail_code(errand, name, err);
}

static void on_asked(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__errand_t *errand = tnk__container_of(call, tnk__errand_t, call);
  tnk__error_t *error = NULL;
  const char *token =
      tnk__auth_key(errand->session->endpoint.auth, 0, name, &error);

  if (token != NULL)
    resolve(errand, token);
  else if (reply->error != NULL)
    tnk__errand_fail(errand, reply->error);
  else
    fail(errand, TNK_EAUTH, "no token was given");
  tnk__error_unref(error);
}

static void begin(tnk__errand_t *errand) {
  tnk__error_t *error = NULL;
  const char *token =
      tnk__auth_key(errand->session->endpoint.auth, 0, name, &error);

  if (token != NULL) {
    resolve(errand, token);
  } else if (error != NULL) {
    tnk__errand_fail(errand, error);
    tnk__error_unref(error);
  } else {
    tnk__call_init(&errand->call, &errand->session->endpoint,
                   TNK__ROUTE_CAPABILITIES, name);
    errand->call.owner.method_name = "RestClient.whoami";
    tnk__errand_call(errand, on_asked);
  }
}

tnk_promise_t *tnk__rest_whoami(tnk__session_t *session) {
  tnk_promise_t *promise = NULL;
  tnk__errand_t *errand =
      tnk__errand_new(session, name, sizeof(*errand), &promise);

  if (errand != NULL)
    tnk__errand_enter(errand, TNK__SESSION_CONFIGURED, begin);
  return promise;
}

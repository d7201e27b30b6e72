#include "lib/client/service/service.h"

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/client/future/errand.h"
#include "lib/wire/message/calls_session.h"

/* A result with the arena that holds it. */
typedef struct {
  tnk__arena_t arena;
  tnk_capabilities_t *capabilities;
} value_t;

static void free_value(const tnk_allocator_t *alloc, void *value) {
  value_t *box = value;

  box->arena.alloc = alloc; /* the service may be gone */
  tnk__arena_deinit(&box->arena);
  tnk__free(alloc, box);
}

const tnk_capabilities_t *tnk__query_value(const void *value) {
  const value_t *box = value;

  return box != NULL ? box->capabilities : NULL;
}

static void on_capabilities(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__errand_t *errand = tnk__container_of(call, tnk__errand_t, call);
  const tnk_allocator_t *alloc = &errand->session->context->alloc;
  value_t *box;
  int err;

  if (tnk__errand_asks_again(errand, reply))
    return;
  if (reply->error != NULL) {
    tnk__errand_fail(errand, reply->error);
    return;
  }
  box = tnk__calloc(alloc, 1, sizeof(*box));
  if (box == NULL) {
    tnk__errand_fail_code(errand, call->owner.name, TNK_ENOMEM);
    return;
  }
  tnk__arena_init(&box->arena, alloc, 64 * TNK__MIB);
  err = tnk__capabilities_read(&box->capabilities, &box->arena, reply->body,
                               reply->body_len);
  if (err == TNK_OK) {
    tnk__errand_resolve(errand, TNK__RESULT_CAPABILITIES, box, free_value);
    return;
  }
  free_value(alloc, box);
  tnk__errand_fail_code(errand, call->owner.name, err);
}

static void on_health(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__errand_t *errand = tnk__container_of(call, tnk__errand_t, call);
  int err = TNK_OK;

  if (reply->error == NULL)
    err = tnk__health_read(reply->body, reply->body_len);
  if (reply->error != NULL)
    tnk__errand_fail(errand, reply->error);
  else if (err != TNK_OK)
    tnk__errand_fail_code(errand, call->owner.name, err);
  else
    tnk__errand_resolve(errand, TNK__RESULT_NONE, NULL, NULL);
}

static void begin_capabilities(tnk__errand_t *errand) {
  tnk__call_init(&errand->call, &errand->session->endpoint,
                 TNK__ROUTE_CAPABILITIES, "get_server_capabilities");
  errand->call.owner.method_name = "RestClient.get_server_capabilities";
  tnk__errand_call(errand, on_capabilities);
}

static void begin_health(tnk__errand_t *errand) {
  tnk__call_init(&errand->call, &errand->session->endpoint, TNK__ROUTE_HEALTH,
                 "healthz");
  tnk__errand_call(errand, on_health);
}

tnk_promise_t *tnk__query_capabilities(tnk__session_t *session) {
  tnk_promise_t *promise = NULL;
  tnk__errand_t *errand = tnk__errand_new(session, "get_server_capabilities",
                                          sizeof(*errand), &promise);

  if (errand != NULL)
    tnk__errand_ask(errand, begin_capabilities);
  return promise;
}

tnk_promise_t *tnk__query_health(tnk__session_t *session) {
  tnk_promise_t *promise = NULL;
  tnk__errand_t *errand =
      tnk__errand_new(session, "healthz", sizeof(*errand), &promise);

  if (errand != NULL)
    tnk__errand_enter(errand, TNK__SESSION_NEW, begin_health);
  return promise;
}

/* A sampling client: create_sampling_session, and, if the caller named only a
 * path, samplers/{id} for the base model. */
#include "lib/client/sample/sampling.h"

#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/client/future/errand.h"
#include "lib/wire/message/calls_sampling.h"

#define NAME "create_sampling"
#define METHOD "ServiceClient.create_sampling_client"

typedef struct {
  tnk__errand_t errand;
  const char *model_path;
  const char *base_model;
  int record_stability_info;
  const char *id;
} create_t;

static create_t *of_call(tnk__call_t *call) {
  tnk__errand_t *errand = tnk__container_of(call, tnk__errand_t, call);

  return tnk__container_of(errand, create_t, errand);
}

static void hand_over(create_t *create, const char *base_model) {
  tnk_sampling_t *sampling =
      tnk__sampling_new(create->errand.session, create->id, base_model,
                        create->record_stability_info);

  if (sampling == NULL) {
    tnk__errand_fail_code(&create->errand, NAME, TNK_ENOMEM);
    return;
  }
  /* Without memory the client works, but cannot be recovered. */
  if (create->model_path != NULL)
    sampling->model_path = tnk__strdup(&create->errand.session->context->alloc,
                                       create->model_path);
  sampling->is_of_base = create->model_path == NULL;
  tnk__errand_resolve(&create->errand, TNK__RESULT_SAMPLING,
                      tnk__sampling_show(sampling), tnk__sampling_hide);
}

/* The service has the call, but not the weights. A 404 with a framework's
 * message or without a message means that the call does not exist. */
static int is_missing_path(const tnk__reply_t *reply) {
  const char *message;

  if (reply->error == NULL || reply->status != 404)
    return 0;
  message = reply->error->pub.message;
  return message != NULL && message[0] != '\0' &&
         strcasecmp(message, "not found") != 0;
}

/* The object to name in an error. */
static const char *thing_of(const create_t *create) {
  return create->model_path != NULL ? create->model_path : create->base_model;
}

static void on_sampler(tnk__call_t *call, const tnk__reply_t *reply) {
  create_t *create = of_call(call);
  tnk__sampler_t sampler = {0};

  if (is_missing_path(reply)) {
    tnk__errand_fail_about(&create->errand, reply->error, thing_of(create));
    return;
  }
  /* Only queries for the base model need it. */
  if (reply->error != NULL ||
      tnk__sampler_read(&sampler, &create->errand.arena, reply->body,
                        reply->body_len) != TNK_OK)
    tnk__log(&call->endpoint->context->logger, TNK_LOG_INFO, "sampling",
             "%s: the server does not tell the base model", create->id);
  hand_over(create, sampler.base_model);
}

static void on_created(tnk__call_t *call, const tnk__reply_t *reply) {
  create_t *create = of_call(call);
  tnk__errand_t *errand = &create->errand;
  int err;

  if (reply->error != NULL) {
    tnk__errand_fail_about(errand, reply->error, thing_of(create));
    return;
  }
  err = tnk__create_sampling_read(&create->id, &errand->arena, reply->body,
                                  reply->body_len);
  if (err != TNK_OK) {
    tnk__errand_fail_code(errand, NAME, err);
    return;
  }
  if (create->base_model != NULL) {
    hand_over(create, create->base_model);
    return;
  }
  tnk__call_init(&errand->call, &errand->session->endpoint,
                 TNK__ROUTE_GET_SAMPLER, NAME);
  errand->call.owner.method_name = METHOD;
  errand->call.request.path_id = create->id;
  tnk__buf_clear(&errand->body);
  tnk__errand_call(errand, on_sampler);
}

static void begin(tnk__errand_t *errand) {
  create_t *create = tnk__container_of(errand, create_t, errand);

  tnk__call_init(&errand->call, &errand->session->endpoint,
                 TNK__ROUTE_CREATE_SAMPLING, NAME);
  errand->call.owner.method_name = METHOD;
  tnk__create_sampling_write(
      &errand->body, errand->session->start.id,
      errand->session->start.progress.next_sampling_seq++, create->base_model,
      create->model_path);
  tnk__errand_call(errand, on_created);
}

static void start(tnk__session_t *session, tnk_promise_t **promise,
                  const tnk_sampling_options_t *options) {
  tnk__errand_t *errand =
      tnk__errand_new(session, NAME, sizeof(create_t), promise);
  create_t *create;

  if (errand == NULL)
    return;
  create = tnk__container_of(errand, create_t, errand);
  create->record_stability_info = options->record_stability_info == TNK_YES;
  if (options->model_path != NULL)
    create->model_path = tnk__arena_strdup(&errand->arena, options->model_path);
  if (options->base_model != NULL)
    create->base_model = tnk__arena_strdup(&errand->arena, options->base_model);
  if ((options->model_path != NULL && create->model_path == NULL) ||
      (options->base_model != NULL && create->base_model == NULL))
    tnk__errand_fail_code(errand, NAME, TNK_ENOMEM);
  else
    tnk__errand_enter(errand, TNK__SESSION_READY, begin);
}

tnk_promise_t *tnk__create_sampling(tnk__session_t *session,
                                    const tnk_sampling_options_t *options) {
  tnk_promise_t *promise = NULL;

  start(session, &promise, options);
  return promise;
}

void tnk__create_sampling_for(tnk__session_t *session, tnk_promise_t *promise,
                              const tnk_sampling_options_t *options) {
  start(session, &promise, options);
}

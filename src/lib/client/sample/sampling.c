/* SPDX-License-Identifier: MIT */
#include "lib/client/sample/sampling.h"

#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/base/misuse.h"
#include "lib/client/future/service_op.h"
#include "lib/client/session/member.h"
#include "lib/wire/message/calls_sampling.h"

void *tnk__sampling_show(tnk_sampling_t *sampling) {
  sampling->refs++;
  return sampling;
}

void tnk__sampling_hide(const tnk_allocator_t *alloc, void *value) {
  tnk_sampling_t *sampling = value;

  if (--sampling->refs > 0)
    return;
  tnk_promise_unref(sampling->kin);
  tnk__handle_end(sampling, sizeof(*sampling));
  tnk__free(alloc, sampling);
}

static void on_closed(tnk__deferred_t *closed) {
  tnk_sampling_t *sampling = tnk__container_of(closed, tnk_sampling_t, closed);
  const tnk_allocator_t *alloc = &sampling->session->context->alloc;
  tnk_close_cb cb = sampling->close_cb;
  void *user = sampling->close_user;

  tnk__list_remove(&sampling->link);
  tnk__free(alloc, sampling->poller);
  tnk__free(alloc, sampling->id);
  tnk__free(alloc, sampling->base_model);
  tnk__free(alloc, sampling->exported);
  tnk__free(alloc, sampling->model_path);
  sampling->session = NULL;
  tnk__sampling_hide(alloc, sampling);
  if (cb != NULL) {
    tnk__callout_begin();
    cb(user);
    tnk__callout_end();
  }
}

tnk_sampling_t *tnk__sampling_new(tnk__session_t *session, const char *id,
                                  const char *base_model,
                                  int record_stability_info) {
  const tnk_allocator_t *alloc = &session->context->alloc;
  tnk_sampling_t *sampling = tnk__calloc(alloc, 1, sizeof(*sampling));

  if (sampling == NULL)
    return NULL;
  sampling->id = tnk__strdup(alloc, id);
  if (base_model != NULL)
    sampling->base_model = tnk__strdup(alloc, base_model);
  if (sampling->id == NULL ||
      (base_model != NULL && sampling->base_model == NULL)) {
    tnk__free(alloc, sampling->id);
    tnk__free(alloc, sampling->base_model);
    tnk__free(alloc, sampling);
    return NULL;
  }
  sampling->magic = TNK__MAGIC_SAMPLING;
  sampling->refs = 1;
  sampling->kin = tnk_promise_ref(session->context->oom);
  sampling->session = session;
  sampling->record_stability_info = record_stability_info;
  tnk__list_init(&sampling->samples);
  tnk__queue_notice_init(&sampling->notice, 0);
  tnk__deferred_init(&sampling->closed, on_closed);
  tnk__list_append(&session->registry.samplings, &sampling->link);
  return sampling;
}

static void abort_all(tnk_sampling_t *sampling, tnk__error_t *error) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&sampling->samples)) != NULL)
    tnk__member_abort(tnk__member_of(node), error);
}

/* The old sampler's poller goes to the other client. */
void tnk__sampling_adopt(tnk_sampling_t *sampling, tnk_sampling_t *other) {
  char *id = sampling->id;

  sampling->id = other->id;
  other->id = id;
  other->poller = sampling->poller;
  sampling->poller = NULL;
  tnk__free(&sampling->session->context->alloc, sampling->exported);
  sampling->exported = NULL;
  sampling->clone = 0;
  sampling->is_told = 0;
  sampling->next_seq = 0;
  tnk__sampling_close(other, NULL, NULL);
}

void tnk__sampling_close(tnk_sampling_t *sampling, tnk_close_cb cb,
                         void *user) {
  if (sampling->closing)
    return;
  sampling->closing = 1;
  sampling->close_cb = cb;
  sampling->close_user = user;
  abort_all(sampling, tnk__error_static(TNK_ECLOSED));
  if (sampling->poller != NULL) {
    tnk__poller_close(sampling->poller);
    sampling->session->limits.n_pollers--;
  }
  tnk__foreign_leave(sampling->foreign);
  sampling->foreign = NULL;
  tnk__defer(sampling->session->context, &sampling->closed);
}

tnk__sampler_text_t tnk__sampling_sampler(const tnk_sampling_t *sampling) {
  const tnk__session_t *session = sampling->session;

  return (tnk__sampler_text_t){
      .session_id =
          sampling->foreign != NULL ? sampling->foreign->id : session->start.id,
      .sampling_session_id = sampling->id,
      .base_url = session->config->url.text,
      .base_model = sampling->base_model,
      .record_stability_info = sampling->record_stability_info};
}

const char *tnk__sampling_export(tnk_sampling_t *sampling) {
  const tnk__sampler_text_t sampler = tnk__sampling_sampler(sampling);
  tnk__buf_t text;
  size_t n;

  if (sampling->exported != NULL)
    return sampling->exported;
  tnk__buf_init(&text, &sampling->session->context->alloc, TNK__MIB);
  tnk__sampler_text_write(&text, &sampler);
  tnk__buf_byte(&text, '\0');
  if (text.err == TNK_OK)
    sampling->exported = (char *)tnk__buf_take(&text, &n);
  tnk__buf_deinit(&text);
  return sampling->exported;
}

static int lacks_batched_polls(const tnk__session_t *session) {
  return (session->endpoint.missing &
          tnk__route_bit(tnk__route(TNK__ROUTE_RETRIEVE_FUTURES))) != 0;
}

/* Samples poll for themselves again, so their number must be limited again. */
static void on_poller_off(tnk__poller_t *poller) {
  tnk__session_t *session = tnk__session_of(poller->endpoint);

  if (!lacks_batched_polls(session))
    return; /* only this client is affected */
  tnk__semaphore_set_limit(&session->limits.sample_running,
                           (size_t)session->start.flags.sample_concurrency);
}

tnk__poller_t *tnk__sampling_poller(tnk_sampling_t *sampling) {
  tnk__session_t *session = sampling->session;

  if (sampling->poller != NULL || !session->start.flags.batched_polls ||
      lacks_batched_polls(session) || !tnk__limits_has_poller(&session->limits))
    return sampling->poller;
  sampling->poller =
      tnk__malloc(&session->context->alloc, sizeof(*sampling->poller));
  if (sampling->poller != NULL) {
    tnk__poller_open(sampling->poller, &session->endpoint, sampling->id,
                     sampling->clone);
    sampling->poller->on_off = on_poller_off;
    session->limits.n_pollers++;
  }
  return sampling->poller;
}

void tnk__sampling_notice(tnk_sampling_t *sampling, const char *state,
                          const char *reason) {
  tnk_queue_state_t parsed = tnk__queue_state_parse(state);

  if (tnk__queue_notice_due(&sampling->notice, parsed,
                            tnk__context_now_ms(sampling->session->context)))
    tnk__registry_notice(
        &sampling->session->registry, sampling->id, parsed,
        tnk__queue_reason(TNK__QUEUE_SAMPLING, parsed, reason));
}

/* ---- Creation ---- */

/* A sampling client: create_sampling_session, and, if the caller named only a
 * path, samplers/{id} for the base model. */

#define NAME "create_sampling"
#define METHOD "ServiceClient.create_sampling_client"

typedef struct {
  tnk__service_op_t op;
  const char *model_path;
  const char *base_model;
  int record_stability_info;
  const char *id;
} create_t;

static create_t *of_call(tnk__call_t *call) {
  tnk__service_op_t *op = tnk__container_of(call, tnk__service_op_t, call);

  return tnk__container_of(op, create_t, op);
}

static void hand_over(create_t *create, const char *base_model) {
  tnk_sampling_t *sampling =
      tnk__sampling_new(create->op.session, create->id, base_model,
                        create->record_stability_info);

  if (sampling == NULL) {
    tnk__service_op_fail_code(&create->op, NAME, TNK_ENOMEM);
    return;
  }
  /* Without memory the client works, but cannot be recovered. */
  if (create->model_path != NULL)
    sampling->model_path =
        tnk__strdup(&create->op.session->context->alloc, create->model_path);
  sampling->is_of_base = create->model_path == NULL;
  tnk__service_op_resolve(&create->op, TNK__RESULT_SAMPLING,
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
    tnk__service_op_fail_about(&create->op, reply->error, thing_of(create));
    return;
  }
  /* Only queries for the base model need it. */
  if (reply->error != NULL ||
      tnk__sampler_read(&sampler, &create->op.arena, reply->body,
                        reply->body_len) != TNK_OK)
    tnk__log(&call->endpoint->context->logger, TNK_LOG_INFO, "sampling",
             "%s: the server did not name the base model", create->id);
  hand_over(create, sampler.base_model);
}

static void on_created(tnk__call_t *call, const tnk__reply_t *reply) {
  create_t *create = of_call(call);
  tnk__service_op_t *op = &create->op;
  int err;

  if (reply->error != NULL) {
    tnk__service_op_fail_about(op, reply->error, thing_of(create));
    return;
  }
  err = tnk__create_sampling_read(&create->id, &op->arena, reply->body,
                                  reply->body_len);
  if (err != TNK_OK) {
    tnk__service_op_fail_code(op, NAME, err);
    return;
  }
  if (create->base_model != NULL) {
    hand_over(create, create->base_model);
    return;
  }
  tnk__call_init(&op->call, &op->session->endpoint, TNK__ROUTE_GET_SAMPLER,
                 NAME);
  op->call.owner.method_name = METHOD;
  op->call.request.path_id = create->id;
  tnk__buf_clear(&op->body);
  tnk__service_op_call(op, on_sampler);
}

static void begin(tnk__service_op_t *op) {
  create_t *create = tnk__container_of(op, create_t, op);

  tnk__call_init(&op->call, &op->session->endpoint, TNK__ROUTE_CREATE_SAMPLING,
                 NAME);
  op->call.owner.method_name = METHOD;
  tnk__create_sampling_write(&op->body, op->session->start.id,
                             op->session->start.progress.next_sampling_seq++,
                             create->base_model, create->model_path);
  tnk__service_op_call(op, on_created);
}

static void start(tnk__session_t *session, tnk_promise_t **promise,
                  const tnk_sampling_options_t *options) {
  tnk__service_op_t *op =
      tnk__service_op_new(session, NAME, sizeof(create_t), promise);
  create_t *create;

  if (op == NULL)
    return;
  create = tnk__container_of(op, create_t, op);
  create->record_stability_info = options->record_stability_info == TNK_YES;
  if (options->model_path != NULL)
    create->model_path = tnk__arena_strdup(&op->arena, options->model_path);
  if (options->base_model != NULL)
    create->base_model = tnk__arena_strdup(&op->arena, options->base_model);
  if ((options->model_path != NULL && create->model_path == NULL) ||
      (options->base_model != NULL && create->base_model == NULL))
    tnk__service_op_fail_code(op, NAME, TNK_ENOMEM);
  else
    tnk__service_op_enter(op, TNK__SESSION_READY, begin);
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

/* ---- Other clients of a sampler ---- */

/* Another client of a sampler that exists already, created here or elsewhere.
 * The server assigns its clone number if it can (join_sampling_session).
 * Otherwise the number is drawn at random, like in the official client. */

typedef struct {
  tnk__service_op_t op;
  tnk__sampler_text_t sampler;
  tnk__foreign_t *foreign; /* the sampler's session, until the client is made;
                              NULL for the service's own */
} join_t;

static join_t *of_op(tnk__service_op_t *op) {
  return tnk__container_of(op, join_t, op);
}

/* ---- Other clients: the number ---- */

static int is_taken(const tnk__session_t *session, const char *id,
                    uint64_t clone) {
  TNK__LIST_FOREACH (node, &session->registry.samplings) {
    const tnk_sampling_t *other =
        tnk__container_of_const(node, tnk_sampling_t, link);

    if (other->clone == clone && strcmp(other->id, id) == 0)
      return 1;
  }
  return 0;
}

/* From 1 to 10^9, and not used in this service. */
static uint64_t draw(tnk__session_t *session, const char *id) {
  uint64_t clone;

  do
    clone = 1 + tnk__context_random(session->context) % TNK__CLONE_NUMBERS;
  while (is_taken(session, id, clone));
  return clone;
}

static void hand_over_join(join_t *join, uint64_t clone) {
  const tnk__sampler_text_t *sampler = &join->sampler;
  tnk__session_t *session = join->op.session;
  tnk_sampling_t *sampling =
      tnk__sampling_new(session, sampler->sampling_session_id,
                        sampler->base_model, sampler->record_stability_info);

  if (sampling == NULL) {
    tnk__service_op_fail_code(&join->op, join->op.name, TNK_ENOMEM);
    return;
  }
  sampling->foreign = join->foreign;
  if (join->foreign != NULL)
    join->foreign->n_joining--;
  join->foreign = NULL;
  sampling->clone = clone;
  sampling->next_seq = clone * TNK__CLONE_NUMBERS;
  tnk__service_op_resolve(&join->op, TNK__RESULT_SAMPLING,
                          tnk__sampling_show(sampling), tnk__sampling_hide);
}

/* ---- Other clients: the request ---- */

/* The server does not have the call, whatever its flags are. A 404 with a
 * specific message is about the sampler. A 404 with a framework's message is
 * about the call. */
static int lacks_call(const tnk__reply_t *reply) {
  const char *message = reply->error->pub.message;

  if (reply->status == 404)
    return message == NULL || message[0] == '\0' ||
           strcasecmp(message, "not found") == 0;
  return reply->status == 400 || reply->status == 405 || reply->status == 501;
}

/* The string names a sampler that existed, so a server that does not know it
 * has lost it. The program needs another string, as after any other loss. */
static void fail_join(join_t *join, const tnk__reply_t *reply) {
  tnk_error_t pub = reply->error->pub;
  tnk__error_t *error;

  if (reply->verdict.err != TNK_ENOTFOUND &&
      reply->verdict.err != TNK_EEXPIRED) {
    tnk__service_op_fail(&join->op, reply->error);
    return;
  }
  pub.code = TNK_ESESSION;
  error = tnk__error_from(&join->op.session->context->alloc,
                          join->op.call.owner.name, &pub);
  tnk__service_op_fail(&join->op, error);
  tnk__error_unref(error);
}

static void on_joined(tnk__call_t *call, const tnk__reply_t *reply) {
  join_t *join = of_op(tnk__container_of(call, tnk__service_op_t, call));
  tnk__session_t *session = join->op.session;
  const char *id = join->sampler.sampling_session_id;
  uint64_t clone = 0;
  int err;

  if (reply->error != NULL && reply->verdict.err != TNK_ESESSION &&
      lacks_call(reply)) {
    tnk__log(&session->context->logger, TNK_LOG_INFO, "sampling",
             "%s: the server does not number its clients; a random number is "
             "used",
             id);
    hand_over_join(join, draw(session, id));
    return;
  }
  if (reply->error != NULL) {
    fail_join(join, reply);
    return;
  }
  err = tnk__join_sampling_read(&clone, reply->body, reply->body_len);
  /* 0 is the client that created the sampler. */
  if (err == TNK_OK && (clone == 0 || is_taken(session, id, clone)))
    err = TNK_EPROTO;
  if (err != TNK_OK)
    tnk__service_op_fail_code(&join->op, call->owner.name, err);
  else
    hand_over_join(join, clone);
}

static void begin_join(tnk__service_op_t *op) {
  join_t *join = of_op(op);
  tnk__session_t *session = op->session;
  const char *id = join->sampler.sampling_session_id;

  /* The session is known from here on, so that a heartbeat can show whether it
   * exists if the server refuses the call. */
  if (tnk__foreign_enter(&join->foreign, &session->registry, session->start.id,
                         join->sampler.session_id) != TNK_OK) {
    tnk__service_op_fail_code(op, op->name, TNK_ENOMEM);
    return;
  }
  if (join->foreign != NULL)
    join->foreign->n_joining++;
  if (!session->start.flags.join_samplers) {
    hand_over_join(join, draw(session, id));
    return;
  }
  tnk__call_init(&op->call, &session->endpoint, TNK__ROUTE_JOIN_SAMPLING,
                 "join_sampling_session");
  op->call.owner.method_name = "SamplingClient.join_sampling_session";
  if (join->foreign != NULL)
    op->call.owner.elsewhere = &join->foreign->ended;
  tnk__join_sampling_write(&op->body, id);
  tnk__service_op_call(op, on_joined);
}

/* ---- Other clients: the start ---- */

/* The call refers to the session. */
static void clean_join(tnk__service_op_t *op) {
  tnk__foreign_t *foreign = of_op(op)->foreign;

  tnk__call_cancel(&op->call);
  if (foreign != NULL)
    foreign->n_joining--;
  tnk__foreign_leave(foreign);
}

static int keep(join_t *join, const tnk__sampler_text_t *sampler) {
  tnk__arena_t *arena = &join->op.arena;
  tnk__sampler_text_t *own = &join->sampler;

  *own = *sampler;
  own->session_id = tnk__arena_strdup(arena, sampler->session_id);
  own->sampling_session_id =
      tnk__arena_strdup(arena, sampler->sampling_session_id);
  if (sampler->base_model != NULL)
    own->base_model = tnk__arena_strdup(arena, sampler->base_model);
  own->base_url = NULL;
  return own->session_id != NULL && own->sampling_session_id != NULL &&
         (sampler->base_model == NULL || own->base_model != NULL);
}

/* The string may come from anyone, and this service decides where it connects.
 * A different server is probably a mistake. */
static void warn_of_another(tnk__session_t *session,
                            const tnk__sampler_text_t *sampler) {
  const char *own = session->config->url.text;

  if (sampler->base_url != NULL && strcmp(sampler->base_url, own) != 0)
    tnk__log(&session->context->logger, TNK_LOG_WARN, "sampling",
             "%s: was exported where base_url is %.200s; here it is %s",
             sampler->sampling_session_id, sampler->base_url, own);
}

tnk_promise_t *tnk__join_sampling(tnk__session_t *session, const char *name,
                                  const tnk__sampler_text_t *sampler) {
  tnk_promise_t *promise = NULL;
  tnk__service_op_t *op =
      tnk__service_op_new(session, name, sizeof(join_t), &promise);

  if (op == NULL)
    return promise;
  warn_of_another(session, sampler);
  op->clean = clean_join;
  if (!keep(of_op(op), sampler))
    tnk__service_op_fail_code(op, name, TNK_ENOMEM);
  else
    tnk__service_op_enter(op, TNK__SESSION_CONFIGURED, begin_join);
  return promise;
}

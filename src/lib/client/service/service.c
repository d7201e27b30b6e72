/* SPDX-License-Identifier: MIT */
/*
 * Creates a training client: create_model or load_weights, its future,
 * get_info. The classic way from a saved state is: weights_info, create_model,
 * its future, get_info, and then load_weights as the client's first operation.
 * A server that supports only the classic way refuses the other one, and then
 * it is used.
 *
 * A model that the service has created is never lost: if get_info gets no
 * response, the client exists without the details.
 */
#include "lib/client/service/service.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/client/future/service_op.h"
#include "lib/client/sample/sampling.h"
#include "lib/client/train/operations.h"
#include "lib/client/train/stop.h"
#include "lib/client/train/training.h"
#include "lib/wire/message/calls_session.h"
#include "lib/wire/message/calls_training.h"

typedef struct {
  tnk__service_op_t op;
  const char *name; /* error messages begin with it */
  const char *method;
  tnk_lora_options_t lora;
  tnk_restore_options_t restore;
  uint64_t model_seq;
  const char *model_id;
  int is_classic; /* an operation of the client loads the state */
} create_t;

static create_t *of_op(tnk__service_op_t *op) {
  return tnk__container_of(op, create_t, op);
}

static create_t *of_call(tnk__call_t *call) {
  return of_op(tnk__container_of(call, tnk__service_op_t, call));
}

static create_t *of_job(tnk__job_t *job) {
  return of_op(tnk__container_of(job, tnk__service_op_t, job));
}

static void fail_code(create_t *create, int code) {
  tnk__service_op_fail_code(&create->op, create->name, code);
}

static void prepare_call(create_t *create, tnk__route_id_t route) {
  tnk__service_op_t *op = &create->op;

  tnk__call_init(&op->call, &op->session->endpoint, route, create->name);
  op->call.owner.method_name = create->method;
  op->call.owner.secret = create->restore.weights_access_token;
  tnk__buf_clear(&op->body);
}

static void prepare_job(create_t *create, tnk__route_id_t route,
                        const char *type) {
  tnk__service_op_t *op = &create->op;

  tnk__job_init(&op->job, op->session, route, create->name, type);
  op->job.future.call.owner.method_name = create->method;
  op->job.future.call.owner.secret = create->restore.weights_access_token;
  tnk__buf_clear(&op->body);
}

/* ---- The end: a client ---- */

static const char *keep(tnk_training_t *training, const char *text) {
  return text != NULL ? tnk__arena_strdup(&training->arena, text) : NULL;
}

static void set_info(tnk_training_t *training,
                     const tnk_training_info_t *info) {
  /* The id is set already. */
  training->info.base_model = keep(training, info->base_model);
  training->info.arch = keep(training, info->arch);
  training->info.tokenizer_id = keep(training, info->tokenizer_id);
  training->info.optimizer = keep(training, info->optimizer);
  training->info.lora_rank = info->lora_rank;
}

/* Copy a string of the options in place; 0 without memory. */
static int own(tnk__arena_t *arena, const char **text) {
  if (*text == NULL)
    return 1;
  *text = tnk__arena_strdup(arena, *text);
  return *text != NULL;
}

static int own_pairs(tnk__arena_t *arena, const tnk_pair_t **pairs, size_t n) {
  tnk_pair_t *copy = tnk__arena_calloc(arena, n + 1, sizeof(*copy));
  size_t i;

  for (i = 0; copy != NULL && i < n; i++) {
    copy[i] = (*pairs)[i];
    if (!own(arena, &copy[i].name) || !own(arena, &copy[i].value))
      return 0;
  }
  *pairs = copy;
  return copy != NULL;
}

/* Without memory the client works, but cannot be recovered. */
static void keep_origin(tnk_training_t *training,
                        const tnk_lora_options_t *options) {
  tnk_lora_options_t *origin =
      tnk__arena_calloc(&training->arena, 1, sizeof(*origin));

  if (origin == NULL)
    return;
  *origin = *options;
  if (own(&training->arena, &origin->base_model) &&
      own(&training->arena, &origin->optimizer_json) &&
      own_pairs(&training->arena, &origin->user_metadata,
                origin->n_user_metadata))
    training->origin = origin;
}

/* A server without support for optimizers creates an Adam model and refuses the
 * first step. Warn before that. */
static void check_optimizer(const create_t *create,
                            const tnk_training_info_t *info) {
  if (create->lora.optimizer == TNK_OPTIMIZER_DIMUON &&
      info->optimizer != NULL && strcmp(info->optimizer, "dimuon") != 0)
    tnk__log(&create->op.session->context->logger, TNK_LOG_WARN, "training",
             "%s: the model's optimizer is %s, not dimuon as asked for",
             create->name, info->optimizer);
}

static void hand_over(create_t *create, const tnk_training_info_t *info) {
  tnk__service_op_t *op = &create->op;
  const tnk_restore_options_t *restore = &create->restore;
  tnk_training_t *training = tnk__training_new(op->session, create->model_id);

  if (training == NULL) {
    fail_code(create, TNK_ENOMEM);
    return;
  }
  set_info(training, info);
  check_optimizer(create, info);
  if (!create->is_classic) {
    tnk__training_saved(training, restore->path, (tnk__tally_t){0, 0},
                        restore->with_optimizer == TNK_YES);
    if (restore->path == NULL)
      keep_origin(training, &create->lora);
    tnk__service_op_resolve(op, TNK__RESULT_TRAINING,
                            tnk__training_show(training), tnk__training_hide);
    return;
  }
  tnk__load_into_new(training, restore->path,
                     restore->with_optimizer == TNK_YES,
                     restore->weights_access_token, op->promise);
  tnk__service_op_dispose(op);
}

static void on_info(tnk__call_t *call, const tnk__reply_t *reply) {
  create_t *create = of_call(call);
  tnk_training_info_t info = {.base_model = create->lora.base_model};

  if (reply->error != NULL && reply->error->pub.code == TNK_ESESSION) {
    tnk__service_op_fail(&create->op, reply->error); /* lost already */
    return;
  }
  if (reply->error != NULL)
    tnk__log(&call->endpoint->context->logger, TNK_LOG_WARN, "training",
             "%s: the model was created, but its description could not be "
             "fetched: %s",
             create->model_id, reply->error->pub.text);
  else if (tnk__get_info_read(&info, &create->op.arena, reply->body,
                              reply->body_len) != TNK_OK)
    tnk__log(&call->endpoint->context->logger, TNK_LOG_WARN, "training",
             "%s: the answer of get_info cannot be understood",
             create->model_id);
  if (info.base_model == NULL)
    info.base_model = create->lora.base_model;
  hand_over(create, &info);
}

static void ask_info(create_t *create) {
  prepare_call(create, TNK__ROUTE_GET_INFO);
  tnk__get_info_write(&create->op.body, create->model_id);
  tnk__service_op_call(&create->op, on_info);
}

/* ---- create_model ---- */

static void on_created(tnk__job_t *job, const tnk__reply_t *reply) {
  create_t *create = of_job(job);
  int err;

  if (reply->error != NULL) {
    tnk__service_op_fail_job(&create->op, reply, create->lora.base_model);
    return;
  }
  err = tnk__create_model_read(&create->model_id, &create->op.arena,
                               reply->body, reply->body_len);
  if (err != TNK_OK)
    fail_code(create, err);
  else
    ask_info(create);
}

static void send_create(create_t *create) {
  tnk__service_op_t *op = &create->op;

  prepare_job(create, TNK__ROUTE_CREATE_MODEL, "CreateModel");
  create->model_seq = op->session->start.progress.next_model_seq++;
  tnk__create_model_write(&op->body, op->session->start.id, create->model_seq,
                          &create->lora);
  tnk__service_op_job(op, on_created);
}

static void begin_lora(tnk__service_op_t *op) {
  send_create(of_op(op));
}

/* ---- From a saved state, in one call ---- */

/* The response may omit the model. Then its id follows from the number. */
static const char *restored_id(create_t *create, const tnk__reply_t *reply) {
  tnk__service_op_t *op = &create->op;
  tnk__saved_t saved;
  tnk__buf_t text;
  const char *id = NULL;

  if (tnk__saved_read(&saved, &op->arena, reply->body, reply->body_len) ==
          TNK_OK &&
      saved.model_id != NULL)
    return saved.model_id;
  tnk__buf_init(&text, &op->session->context->alloc, 4096);
  tnk__model_id_write(&text, op->session->start.id, create->model_seq);
  if (tnk__buf_cstr(&text) != NULL)
    id = tnk__arena_strdup(&op->arena, tnk__buf_cstr(&text));
  tnk__buf_deinit(&text);
  return id;
}

static void begin_classic(tnk__service_op_t *op);

/* Returns whether the server restores in several calls only: it requires an
 * existing model, and has done nothing. */
static int wants_model(const create_t *create, const tnk__job_t *job,
                       const tnk__reply_t *reply) {
  const char *message = reply->error->pub.message;

  return create->restore.classic != TNK_NO && !job->is_accepted &&
         (reply->status == 400 || reply->status == 422) &&
         tnk__job_ran(job) == TNK_RAN_NO && message != NULL &&
         strstr(message, "model_id") != NULL;
}

static void on_restored(tnk__job_t *job, const tnk__reply_t *reply) {
  create_t *create = of_job(job);
  tnk__session_t *session = create->op.session;

  if (reply->error != NULL && wants_model(create, job, reply)) {
    tnk__log(&session->context->logger, TNK_LOG_INFO, "training",
             "%s: this server needs several calls for this, according to its "
             "response: "
             "%s",
             create->name, reply->error->pub.text);
    session->start.restores_in_calls = 1;
    begin_classic(&create->op);
    return;
  }
  if (reply->error != NULL) {
    tnk__service_op_fail_about(&create->op, reply->error, create->restore.path);
    return;
  }
  create->model_id = restored_id(create, reply);
  if (create->model_id == NULL)
    fail_code(create, TNK_ENOMEM);
  else
    ask_info(create);
}

static void begin_restore(tnk__service_op_t *op) {
  create_t *create = of_op(op);
  const tnk_choice_t classic = create->restore.classic;

  if (classic == TNK_YES ||
      (classic != TNK_NO && op->session->start.restores_in_calls)) {
    begin_classic(op);
    return;
  }
  prepare_job(create, TNK__ROUTE_CREATE_FROM_STATE, "LoadWeights");
  create->model_seq = op->session->start.progress.next_model_seq++;
  tnk__create_from_state_write(&op->body, op->session->start.id,
                               create->model_seq, &create->restore);
  tnk__service_op_job(op, on_restored);
}

/* ---- The classic way ---- */

static void on_weights_info(tnk__call_t *call, const tnk__reply_t *reply) {
  create_t *create = of_call(call);
  const tnk_restore_options_t *restore = &create->restore;
  tnk_lora_options_t *lora = &create->lora;
  tnk__weights_info_t info;
  int err;

  if (reply->error != NULL) {
    tnk__service_op_fail_about(&create->op, reply->error, restore->path);
    return;
  }
  err = tnk__weights_info_read(&info, &create->op.arena, reply->body,
                               reply->body_len);
  if (err != TNK_OK) {
    fail_code(create, err);
    return;
  }
  lora->base_model =
      restore->base_model != NULL ? restore->base_model : info.base_model;
  lora->rank = info.lora_rank;
  lora->train_mlp = info.train_mlp;
  lora->train_attn = info.train_attn;
  lora->train_unembed = info.train_unembed;
  lora->optimizer = restore->optimizer;
  lora->optimizer_json = restore->optimizer_json;
  if (restore->with_optimizer == TNK_YES && info.optimizer_json != NULL) {
    lora->optimizer = TNK_OPTIMIZER_RAW; /* as it was saved */
    lora->optimizer_json = info.optimizer_json;
  }
  lora->user_metadata = restore->user_metadata;
  lora->n_user_metadata = restore->n_user_metadata;
  send_create(create);
}

static void begin_classic(tnk__service_op_t *op) {
  create_t *create = of_op(op);

  create->is_classic = 1;
  prepare_call(create, TNK__ROUTE_WEIGHTS_INFO);
  tnk__weights_info_write(&op->body, create->restore.path);
  tnk__service_op_call(op, on_weights_info);
}

/* ---- Start ---- */

static create_t *new_create(tnk__session_t *session, const char *name,
                            const char *method, tnk_promise_t **promise) {
  tnk__service_op_t *op =
      tnk__service_op_new(session, name, sizeof(create_t), promise);
  create_t *create;

  if (op == NULL)
    return NULL;
  create = of_op(op);
  create->name = name;
  create->method = method;
  create->lora = (tnk_lora_options_t)TNK_LORA_OPTIONS_INIT;
  return create;
}

tnk_promise_t *tnk__create_lora(tnk__session_t *session,
                                const tnk_lora_options_t *options) {
  tnk_promise_t *promise = NULL;
  create_t *create =
      new_create(session, "create_lora",
                 "ServiceClient.create_lora_training_client", &promise);
  tnk__arena_t *arena;

  if (create == NULL)
    return promise;
  arena = &create->op.arena;
  create->lora = *options;
  if (own(arena, &create->lora.base_model) &&
      own(arena, &create->lora.optimizer_json) &&
      own_pairs(arena, &create->lora.user_metadata, options->n_user_metadata))
    tnk__service_op_enter(&create->op, TNK__SESSION_READY, begin_lora);
  else
    fail_code(create, TNK_ENOMEM);
  return promise;
}

tnk_promise_t *tnk__restore(tnk__session_t *session,
                            const tnk_restore_options_t *options) {
  tnk_promise_t *promise = NULL;
  create_t *create = new_create(
      session, "restore",
      options->with_optimizer == TNK_YES
          ? "ServiceClient.create_training_client_from_state_with_optimizer"
          : "ServiceClient.create_training_client_from_state",
      &promise);
  tnk__arena_t *arena;

  if (create == NULL)
    return promise;
  arena = &create->op.arena;
  create->restore = *options;
  if (options->weights_access_token != NULL)
    tnk__service_op_keep_secret(&create->op);
  if (own(arena, &create->restore.path) &&
      own(arena, &create->restore.base_model) &&
      own(arena, &create->restore.weights_access_token) &&
      own(arena, &create->restore.optimizer_json) &&
      own_pairs(arena, &create->restore.user_metadata,
                options->n_user_metadata))
    tnk__service_op_enter(&create->op, TNK__SESSION_READY, begin_restore);
  else
    fail_code(create, TNK_ENOMEM);
  return promise;
}

/* ---- Queries ---- */

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
  tnk__service_op_t *op = tnk__container_of(call, tnk__service_op_t, call);
  const tnk_allocator_t *alloc = &op->session->context->alloc;
  value_t *box;
  int err;

  if (tnk__service_op_asks_again(op, reply))
    return;
  if (reply->error != NULL) {
    tnk__service_op_fail(op, reply->error);
    return;
  }
  box = tnk__calloc(alloc, 1, sizeof(*box));
  if (box == NULL) {
    tnk__service_op_fail_code(op, call->owner.name, TNK_ENOMEM);
    return;
  }
  tnk__arena_init(&box->arena, alloc, 64 * TNK__MIB);
  err = tnk__capabilities_read(&box->capabilities, &box->arena, reply->body,
                               reply->body_len);
  if (err == TNK_OK) {
    tnk__service_op_resolve(op, TNK__RESULT_CAPABILITIES, box, free_value);
    return;
  }
  free_value(alloc, box);
  tnk__service_op_fail_code(op, call->owner.name, err);
}

static void on_health(tnk__call_t *call, const tnk__reply_t *reply) {
  tnk__service_op_t *op = tnk__container_of(call, tnk__service_op_t, call);
  int err = TNK_OK;

  if (reply->error == NULL)
    err = tnk__health_read(reply->body, reply->body_len);
  if (reply->error != NULL)
    tnk__service_op_fail(op, reply->error);
  else if (err != TNK_OK)
    tnk__service_op_fail_code(op, call->owner.name, err);
  else
    tnk__service_op_resolve(op, TNK__RESULT_NONE, NULL, NULL);
}

static void begin_capabilities(tnk__service_op_t *op) {
  tnk__call_init(&op->call, &op->session->endpoint, TNK__ROUTE_CAPABILITIES,
                 "get_server_capabilities");
  op->call.owner.method_name = "RestClient.get_server_capabilities";
  tnk__service_op_call(op, on_capabilities);
}

static void begin_health(tnk__service_op_t *op) {
  tnk__call_init(&op->call, &op->session->endpoint, TNK__ROUTE_HEALTH,
                 "healthz");
  tnk__service_op_call(op, on_health);
}

tnk_promise_t *tnk__query_capabilities(tnk__session_t *session) {
  tnk_promise_t *promise = NULL;
  tnk__service_op_t *op = tnk__service_op_new(
      session, "get_server_capabilities", sizeof(*op), &promise);

  if (op != NULL)
    tnk__service_op_ask(op, begin_capabilities);
  return promise;
}

tnk_promise_t *tnk__query_health(tnk__session_t *session) {
  tnk_promise_t *promise = NULL;
  tnk__service_op_t *op =
      tnk__service_op_new(session, "healthz", sizeof(*op), &promise);

  if (op != NULL)
    tnk__service_op_enter(op, TNK__SESSION_NEW, begin_health);
  return promise;
}

/* ---- The end ---- */

void tnk__clients_close(tnk__session_t *session) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&session->registry.service_ops)) != NULL)
    tnk__service_op_fail(tnk__container_of(node, tnk__service_op_t, link),
                         tnk__error_static(TNK_ECLOSED));
  TNK__LIST_FOREACH_SAFE (training, next, &session->registry.trainings)
    tnk__training_close(tnk__container_of(training, tnk_training_t, link), NULL,
                        NULL);
  TNK__LIST_FOREACH_SAFE (sampling, next, &session->registry.samplings)
    tnk__sampling_close(tnk__container_of(sampling, tnk_sampling_t, link), NULL,
                        NULL);
}

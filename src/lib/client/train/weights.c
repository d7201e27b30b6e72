/* SPDX-License-Identifier: MIT */
#include "lib/client/train/operations.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/client/sample/sampling.h"
#include "lib/client/train/op.h"
#include "lib/client/train/stop.h"
#include "lib/wire/message/calls_training.h"

/* Writes the request of a save. */
typedef void (*put_save_t)(tnk__buf_t *out, const char *model_id,
                           uint64_t seq_id, const char *name,
                           const tnk_save_options_t *options);

typedef struct {
  tnk__op_t op;
  tnk__arena_t arena;
  put_save_t put;
  const char *name; /* name of a save, or path of a load */
  tnk_save_options_t options;
  int with_optimizer;
  const char *access_token;
  tnk_sampling_kind_t kind;
  int record_stability_info;
  uint64_t sampling_seq;
  int has_sampling_seq;
  int is_new; /* the client was not handed to the program yet */
  tnk__saved_t saved;
} weights_t;

static weights_t *weights_of(tnk__op_t *op) {
  return tnk__container_of(op, weights_t, op);
}

/* ---- Requests ---- */

static int write_save(tnk__op_t *op, uint64_t number, tnk__buf_t *out) {
  const weights_t *weights = weights_of(op);

  weights->put(out, op->training->info.model_id, number, weights->name,
               &weights->options);
  return out->err;
}

/* Written when the service has accepted everything before it. */
static int write_kept_save(tnk__op_t *op, uint64_t number, tnk__buf_t *out) {
  const weights_t *weights = weights_of(op);
  tnk_save_options_t options = weights->options;
  const size_t n = options.n_user_metadata;
  tnk_pair_t pairs[TNK__SAVE_MAX_KEPT + 2];
  char steps[24];
  char passes[24];

  if (n > TNK__SAVE_MAX_KEPT)
    return TNK_EINTERNAL;
  if (n > 0)
    memcpy(pairs, options.user_metadata, n * sizeof(*pairs));
  snprintf(steps, sizeof(steps), "%" PRIu64, op->training->tally.n_steps);
  snprintf(passes, sizeof(passes), "%" PRIu64, op->training->tally.n_passes);
  pairs[n] = (tnk_pair_t){"tnk_steps", steps};
  pairs[n + 1] = (tnk_pair_t){"tnk_passes", passes};
  options.user_metadata = pairs;
  options.n_user_metadata = n + 2;
  weights->put(out, op->training->info.model_id, number, weights->name,
               &options);
  return out->err;
}

static int write_ephemeral(tnk__op_t *op, uint64_t number, tnk__buf_t *out) {
  weights_t *weights = weights_of(op);

  /* Drawn once, so that retries are the same request. */
  if (!weights->has_sampling_seq)
    weights->sampling_seq =
        op->training->session->start.progress.next_sampling_seq++;
  weights->has_sampling_seq = 1;
  tnk__save_ephemeral_write(out, op->training->info.model_id, number,
                            weights->sampling_seq, weights->kind);
  return out->err;
}

static int write_load(tnk__op_t *op, uint64_t number, tnk__buf_t *out) {
  const weights_t *weights = weights_of(op);

  tnk__load_weights_write(out, op->training->info.model_id, number,
                          weights->name, weights->with_optimizer,
                          weights->access_token);
  return out->err;
}

static int write_unload(tnk__op_t *op, uint64_t number, tnk__buf_t *out) {
  (void)number;
  tnk__unload_model_write(out, op->training->info.model_id);
  return out->err;
}

/* ---- Results ---- */

/* From now on the client can be restored from this state. */
static void note_saved(tnk__op_t *op) {
  weights_t *weights = weights_of(op);

  if (op->type->route == TNK__ROUTE_SAVE_STATE) {
    tnk__training_saved(op->training, weights->saved.path, op->tally, 1);
  } else if (op->type->route == TNK__ROUTE_LOAD_STATE) {
    tnk__training_saved(op->training, weights->name, (tnk__tally_t){0, 0},
                        weights->with_optimizer);
  }
}

static int read_saved(tnk__op_t *op, size_t index, const tnk__reply_t *reply,
                      tnk__text_t *why) {
  weights_t *weights = weights_of(op);
  int err = tnk__saved_read(&weights->saved, &weights->arena, reply->body,
                            reply->body_len);

  (void)why;
  (void)index;
  if (err == TNK_OK)
    note_saved(op);
  return err;
}

static void free_text(const tnk_allocator_t *alloc, void *value) {
  tnk__free(alloc, value);
}

static void finish_path(tnk__op_t *op) {
  const char *path = weights_of(op)->saved.path;
  char *copy = path != NULL
                   ? tnk__strdup(&op->training->session->context->alloc, path)
                   : NULL;

  if (path != NULL && copy == NULL)
    tnk__op_fail_code(op, TNK_ENOMEM);
  else
    tnk__op_resolve(op, TNK__RESULT_PATH, copy, free_text);
}

typedef struct {
  tnk_saved_t pub;
  char path[];
} saved_t;

/* A save without a path could not be found again. */
static void finish_save(tnk__op_t *op) {
  const char *path = weights_of(op)->saved.path;
  const size_t n = path != NULL ? strlen(path) + 1 : 0;
  saved_t *saved;

  if (path == NULL) {
    tnk__op_fail_code(op, TNK_EPROTO);
    return;
  }
  saved =
      tnk__malloc(&op->training->session->context->alloc, sizeof(*saved) + n);
  if (saved == NULL) {
    tnk__op_fail_code(op, TNK_ENOMEM);
    return;
  }
  memcpy(saved->path, path, n);
  saved->pub = (tnk_saved_t){.path = saved->path,
                             .n_steps = op->tally.n_steps,
                             .n_passes = op->tally.n_passes};
  tnk__op_resolve(op, TNK__RESULT_SAVED, saved, free_text);
}

static void finish_ephemeral(tnk__op_t *op) {
  weights_t *weights = weights_of(op);
  tnk__session_t *session = op->training->session;
  const char *base_model = op->training->info.base_model;
  tnk_sampling_t *sampling;

  if (weights->saved.sampling_session_id != NULL) {
    sampling = tnk__sampling_new(session, weights->saved.sampling_session_id,
                                 base_model, weights->record_stability_info);
    if (sampling != NULL)
      tnk__op_resolve(op, TNK__RESULT_SAMPLING, tnk__sampling_show(sampling),
                      tnk__sampling_hide);
    else
      tnk__op_fail_code(op, TNK_ENOMEM);
  } else if (weights->saved.path != NULL) {
    /* A server that only saves: sample from the returned path. */
    tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
    tnk_promise_t *promise = op->promise;
    options.model_path = weights->saved.path;
    options.base_model = base_model;
    options.record_stability_info =
        weights->record_stability_info ? TNK_YES : TNK_NO;
    op->promise = NULL;
    tnk__create_sampling_for(session, promise, &options);
    tnk__op_dispose(op);
  } else {
    tnk__op_fail_code(op, TNK_EPROTO);
  }
}

static void finish_nothing(tnk__op_t *op) {
  tnk__op_resolve(op, TNK__RESULT_NONE, NULL, NULL);
}

static void finish_new(tnk__op_t *op) {
  weights_of(op)->is_new = 0;
  tnk__op_resolve(op, TNK__RESULT_TRAINING, tnk__training_show(op->training),
                  tnk__training_hide);
}

static void destroy(tnk__op_t *op) {
  weights_t *weights = weights_of(op);
  const tnk_allocator_t *alloc = weights->arena.alloc;

  /* A new client that could not be loaded never reaches the program. */
  if (weights->is_new)
    tnk__training_close(op->training, NULL, NULL);
  if (weights->access_token != NULL)
    tnk__arena_deinit_secret(&weights->arena);
  else
    tnk__arena_deinit(&weights->arena);
  tnk__free(alloc, weights);
}

/* ---- Kinds ---- */

/* One request, whose response may contain a path. */
#define CLASS(name_, method_, type_, route_, write_, finish_)                  \
  {                                                                            \
    .name = (name_), .method = (method_), .type = (type_), .route = (route_),  \
    .write = (write_), .read = read_saved, .finish = (finish_),                \
    .destroy = destroy,                                                        \
  }

/* The three kinds, with one of two writers. */
#define SAVES(write_)                                                          \
  {                                                                            \
    [TNK__SAVE_STATE] =                                                        \
        CLASS("save_state", "TrainingClient.save_state", "SaveWeights",        \
              TNK__ROUTE_SAVE_STATE, (write_), finish_save),                   \
    [TNK__SAVE_SAMPLER] = CLASS(                                               \
        "save_weights_for_sampler", "TrainingClient.save_weights_for_sampler", \
        "SaveWeightsForSampler", TNK__ROUTE_SAVE_SAMPLER, (write_),            \
        finish_save),                                                          \
    [TNK__SAVE_EXTERNAL] =                                                     \
        CLASS("save_weights_external", "TrainingClient.save_weights_external", \
              "SaveWeightsExternal", TNK__ROUTE_SAVE_EXTERNAL, (write_),       \
              finish_save),                                                    \
  }

static const tnk__op_class_t saves[] = SAVES(write_save);
static const tnk__op_class_t kept_saves[] = SAVES(write_kept_save);
static const put_save_t put_saves[] = {
    [TNK__SAVE_STATE] = tnk__save_weights_write,
    [TNK__SAVE_SAMPLER] = tnk__save_sampler_write,
    [TNK__SAVE_EXTERNAL] = tnk__save_external_write,
};

static const tnk__op_class_t ephemeral_class =
    CLASS("save_weights_and_get_sampling",
          "TrainingClient.save_weights_and_get_sampling_client",
          "SaveWeightsForSampler", TNK__ROUTE_SAVE_SAMPLER, write_ephemeral,
          finish_ephemeral);

#define LOADS(name_, method_, finish_)                                         \
  {                                                                            \
    .name = (name_), .method = (method_), .type = "LoadWeights",               \
    .route = TNK__ROUTE_LOAD_STATE, .counts = TNK__COUNTS_ANEW,                \
    .write = write_load, .read = read_saved, .finish = (finish_),              \
    .destroy = destroy,                                                        \
  }

/* Loads with and without the optimizer's state differ in the public call. */
static const tnk__op_class_t load_classes[2] = {
    LOADS("load_state", "TrainingClient.load_state", finish_path),
    LOADS("load_state", "TrainingClient.load_state_with_optimizer",
          finish_path),
};

static const tnk__op_class_t load_new_classes[2] = {
    LOADS("restore", "ServiceClient.create_training_client_from_state",
          finish_new),
    LOADS("restore",
          "ServiceClient.create_training_client_from_state_with_optimizer",
          finish_new),
};

static const tnk__op_class_t unload_class = {
    .name = "unload",
    .type = "UnloadModel",
    .route = TNK__ROUTE_UNLOAD,
    .is_unnumbered = 1,
    .write = write_unload,
    .finish = finish_nothing,
    .destroy = destroy,
};

/* ---- Start ---- */

/* Same contract as tnk__op_new(). */
static weights_t *new_weights(tnk_training_t *training,
                              const tnk__op_class_t *type,
                              tnk_promise_t **promise) {
  weights_t *weights = tnk__op_new(sizeof(*weights), type, training, promise);

  if (weights != NULL)
    tnk__arena_init(&weights->arena, &training->session->context->alloc,
                    4 * TNK__MIB);
  return weights;
}

static int copy_options(weights_t *weights, const tnk_save_options_t *options) {
  tnk__arena_t *arena = &weights->arena;
  tnk_pair_t *pairs;
  const char **recipients;
  size_t i;

  weights->options = *options;
  pairs =
      tnk__arena_calloc(arena, options->n_user_metadata + 1, sizeof(*pairs));
  recipients =
      tnk__arena_calloc(arena, options->n_recipients + 1, sizeof(*recipients));
  if (pairs == NULL || recipients == NULL)
    return 0;
  for (i = 0; i < options->n_user_metadata; i++) {
    pairs[i].name = tnk__arena_strdup(arena, options->user_metadata[i].name);
    pairs[i].value = tnk__arena_strdup(arena, options->user_metadata[i].value);
    if (pairs[i].name == NULL || pairs[i].value == NULL)
      return 0;
  }
  for (i = 0; i < options->n_recipients; i++) {
    recipients[i] = tnk__arena_strdup(arena, options->recipients[i]);
    if (recipients[i] == NULL)
      return 0;
  }
  weights->options.user_metadata = pairs;
  weights->options.recipients = recipients;
  return 1;
}

static tnk_promise_t *start_save(tnk_training_t *training,
                                 tnk__save_kind_t kind,
                                 const tnk__op_class_t *type, const char *name,
                                 const tnk_save_options_t *options) {
  tnk_promise_t *promise = NULL;
  weights_t *weights = new_weights(training, type, &promise);

  if (weights == NULL)
    return promise;
  weights->put = put_saves[kind];
  weights->op.is_held = weights->op.is_patient = type == &kept_saves[kind];
  weights->op.has_own_metadata = type == &kept_saves[kind];
  weights->name = tnk__arena_strdup(&weights->arena, name);
  tnk__op_enter(&weights->op,
                weights->name != NULL &&
                    (options == NULL || copy_options(weights, options)));
  return promise;
}

tnk_promise_t *tnk__save_start(tnk_training_t *training, tnk__save_kind_t kind,
                               const char *name,
                               const tnk_save_options_t *options) {
  return start_save(training, kind, &saves[kind], name, options);
}

tnk_promise_t *tnk__save_start_kept(tnk_training_t *training,
                                    tnk__save_kind_t kind, const char *name,
                                    const tnk_save_options_t *options) {
  return start_save(training, kind, &kept_saves[kind], name, options);
}

tnk_promise_t *
tnk__save_ephemeral_start(tnk_training_t *training, tnk_sampling_kind_t kind,
                          const tnk_sampling_options_t *options) {
  tnk_promise_t *promise = NULL;
  weights_t *weights = new_weights(training, &ephemeral_class, &promise);

  if (weights == NULL)
    return promise;
  weights->kind = kind;
  weights->record_stability_info =
      options != NULL && options->record_stability_info == TNK_YES;
  tnk__op_enter(&weights->op, 1);
  return promise;
}

static void enter_load(weights_t *weights, const char *path, int with_optimizer,
                       const char *access_token) {
  weights->name = tnk__arena_strdup(&weights->arena, path);
  weights->with_optimizer = with_optimizer;
  if (access_token != NULL)
    weights->access_token = tnk__arena_strdup(&weights->arena, access_token);
  weights->op.secret = weights->access_token;
  tnk__op_enter(&weights->op,
                weights->name != NULL &&
                    (access_token == NULL || weights->access_token != NULL));
}

tnk_promise_t *tnk__load_start(tnk_training_t *training, const char *path,
                               int with_optimizer, const char *access_token) {
  tnk_promise_t *promise = NULL;
  weights_t *weights =
      new_weights(training, &load_classes[with_optimizer != 0], &promise);

  if (weights != NULL)
    enter_load(weights, path, with_optimizer, access_token);
  return promise;
}

void tnk__load_into_new(tnk_training_t *training, const char *path,
                        int with_optimizer, const char *access_token,
                        tnk_promise_t *promise) {
  weights_t *weights =
      new_weights(training, &load_new_classes[with_optimizer != 0], &promise);

  if (weights == NULL) {
    tnk__training_close(training, NULL, NULL);
    return;
  }
  weights->is_new = 1;
  enter_load(weights, path, with_optimizer, access_token);
}

tnk_promise_t *tnk__unload_start(tnk_training_t *training) {
  tnk_promise_t *promise = NULL;
  weights_t *weights = new_weights(training, &unload_class, &promise);

  training->is_unloaded = 1;
  if (weights != NULL)
    tnk__op_enter(&weights->op, 1);
  return promise;
}

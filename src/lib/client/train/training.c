/* SPDX-License-Identifier: MIT */
#include "lib/client/train/training.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/base/log.h"
#include "lib/base/misuse.h"
#include "lib/client/session/member.h"

/* A short pause is not worth a notice for a training client. */
enum { NOTICE_GRACE_MS = 15 * 60 * 1000 };

void *tnk__training_show(tnk_training_t *training) {
  training->refs++;
  return training;
}

void tnk__training_hide(const tnk_allocator_t *alloc, void *value) {
  tnk_training_t *training = value;

  if (--training->refs > 0)
    return;
  tnk_promise_unref(training->kin);
  tnk__handle_end(training, sizeof(*training));
  tnk__free(alloc, training);
}

static void on_closed(tnk__deferred_t *closed) {
  tnk_training_t *training = tnk__container_of(closed, tnk_training_t, closed);
  const tnk_allocator_t *alloc = &training->session->context->alloc;
  tnk_close_cb cb = training->close_cb;
  void *user = training->close_user;

  tnk__list_remove(&training->link);
  tnk__error_unref(training->failed);
  tnk__free(alloc, training->saved_path);
  tnk__arena_deinit(&training->arena);
  training->session = NULL;
  tnk__training_hide(alloc, training);
  if (cb != NULL) {
    tnk__callout_begin();
    cb(user);
    tnk__callout_end();
  }
}

tnk_training_t *tnk__training_new(tnk__session_t *session,
                                  const char *model_id) {
  const tnk_allocator_t *alloc = &session->context->alloc;
  tnk_training_t *training = tnk__calloc(alloc, 1, sizeof(*training));

  if (training == NULL)
    return NULL;
  training->session = session;
  tnk__arena_init(&training->arena, alloc, TNK__MIB);
  training->info.model_id = tnk__arena_strdup(&training->arena, model_id);
  if (training->info.model_id == NULL) {
    tnk__arena_deinit(&training->arena);
    tnk__free(alloc, training);
    return NULL;
  }
  training->magic = TNK__MAGIC_TRAINING;
  training->refs = 1;
  training->kin = tnk_promise_ref(session->context->oom);
  tnk__list_init(&training->ops);
  tnk__list_init(&training->waits);
  tnk__turns_init(&training->turns, 1);
  training->fresh = 1;
  training->deep = TNK__TRAINING_DEEP;
  tnk__queue_notice_init(&training->notice, NOTICE_GRACE_MS);
  tnk__deferred_init(&training->closed, on_closed);
  tnk__list_append(&session->registry.trainings, &training->link);
  return training;
}

void tnk__training_moved(tnk_training_t *training) {
  tnk__stall_moved(&training->stall,
                   tnk__context_now_ms(training->session->context));
}

void tnk__training_op_gone(tnk_training_t *training) {
  /* Some MiB, which only a busy client may keep. */
  if (tnk__list_empty(&training->ops))
    tnk__zstd_deinit(&training->zstd);
  if (training->closing && tnk__list_empty(&training->ops))
    tnk__defer(training->session->context, &training->closed);
}

void tnk__training_close(tnk_training_t *training, tnk_close_cb cb,
                         void *user) {
  tnk__error_t *error = tnk__error_static(TNK_ECLOSED);

  if (training->closing)
    return;
  training->closing = 1;
  training->close_cb = cb;
  training->close_user = user;
  /* Operations that get the turn during this loop only schedule, and are then
   * aborted themselves. */
  TNK__LIST_FOREACH_SAFE (node, next, &training->ops)
    tnk__member_abort(tnk__member_of(node), error);
  tnk__training_settle_ready(training, error);
  tnk__training_op_gone(training);
}

void tnk__training_notice(tnk_training_t *training, const char *state,
                          const char *reason) {
  tnk_queue_state_t parsed = tnk__queue_state_parse(state);

  if (state == NULL && reason == NULL)
    return;
  if (tnk__queue_notice_due(&training->notice, parsed,
                            tnk__context_now_ms(training->session->context)))
    tnk__registry_notice(
        &training->session->registry, training->info.model_id, parsed,
        tnk__queue_reason(TNK__QUEUE_TRAINING, parsed, reason));
}

/* Returns whether it was logged before, or the table is full. */
static int was_warned(tnk_training_t *training, const char *text) {
  size_t i;
  char *copy;

  for (i = 0; i < training->n_warned; i++)
    if (strcmp(training->warned[i], text) == 0)
      return 1;
  if (training->n_warned == TNK__TRAINING_MAX_WARNED)
    return 1;
  copy = tnk__arena_strdup(&training->arena, text);
  if (copy != NULL)
    training->warned[training->n_warned++] = copy;
  return 0;
}

void tnk__training_warn(tnk_training_t *training, const char *name,
                        const char *text) {
  tnk__log(&training->session->context->logger,
           was_warned(training, text) ? TNK_LOG_DEBUG : TNK_LOG_WARN,
           "training", "%s: %s", name, text);
}

/* ---- Waiting until a client is ready ---- */

/*
 *   waiting --the client accepts operations--> resolved
 *   waiting --it stays lost, close, cancel--> rejected
 * A client that is not waiting for a recovery settles it at once.
 */

typedef struct {
  tnk__list_t link; /* in training->waits */
  tnk_training_t *training;
  tnk_promise_t *promise;
} wait_t;

typedef struct {
  tnk_saved_t pub;
  char path[];
} content_t;

static void free_content(const tnk_allocator_t *alloc, void *value) {
  tnk__free(alloc, value);
}

/* The content of the weights; NULL without memory. */
static content_t *content_of(const tnk_training_t *training) {
  const tnk_allocator_t *alloc = &training->session->context->alloc;
  const tnk__tally_t tally = tnk__tally_expected(training);
  const char *path = training->saved_path;
  const size_t n = path != NULL ? strlen(path) + 1 : 0;
  content_t *content = tnk__malloc(alloc, sizeof(*content) + n);

  if (content == NULL)
    return NULL;
  if (path != NULL)
    memcpy(content->path, path, n);
  content->pub = (tnk_saved_t){.path = path != NULL ? content->path : NULL,
                               .n_steps = tally.n_steps,
                               .n_passes = tally.n_passes};
  return content;
}

static void settle(wait_t *wait, tnk__error_t *error) {
  const tnk_training_t *training = wait->training;
  content_t *content = error == NULL ? content_of(training) : NULL;

  tnk__list_remove(&wait->link);
  if (content != NULL)
    tnk__promise_resolve(wait->promise, TNK__RESULT_SAVED, content,
                         free_content);
  else
    tnk__promise_reject(
        wait->promise,
        tnk__error_ref(error != NULL ? error : tnk__error_static(TNK_ENOMEM)));
  tnk__free(&training->session->context->alloc, wait);
}

void tnk__training_settle_ready(tnk_training_t *training, tnk__error_t *error) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&training->waits)) != NULL)
    settle(tnk__container_of(node, wait_t, link), error);
}

static void on_cancel(void *op) {
  settle(op, tnk__error_static(TNK_ECANCELED));
}

static void on_explain(const void *op, tnk__text_t *out) {
  const wait_t *wait = op;

  tnk__text_printf(out, "ready: waits until %s is restored",
                   wait->training->info.model_id);
}

tnk_promise_t *tnk__training_ready(tnk_training_t *training) {
  tnk__context_t *context = training->session->context;
  wait_t *wait = tnk__calloc(&context->alloc, 1, sizeof(*wait));
  tnk_promise_t *promise;

  if (wait == NULL)
    return tnk__promise_rejected(context,
                                 tnk__error_ref(tnk__error_static(TNK_ENOMEM)));
  promise = tnk__promise_new(context, NULL, NULL);
  if (tnk__promise_is_oom(promise)) {
    tnk__free(&context->alloc, wait);
    return promise;
  }
  wait->training = training;
  wait->promise = promise;
  tnk__promise_bind(promise, on_cancel, on_explain, wait);
  tnk__promise_enter(promise, "ready", training->info.model_id);
  tnk__list_append(&training->waits, &wait->link);
  training->is_unheard = 0;
  if (training->is_lost)
    return promise;
  settle(wait, training->is_stopped ? training->failed : NULL);
  return promise;
}

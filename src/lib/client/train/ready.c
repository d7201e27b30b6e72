/*
 *   waiting --the client accepts operations--> resolved
 *   waiting --it stays lost, close, cancel--> rejected
 * A client that is not waiting for a recovery settles it at once.
 */
#include "lib/client/train/op.h"

#include <string.h>

#include "lib/base/alloc.h"

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

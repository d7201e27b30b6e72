#include "lib/client/train/restart.h"

#include "lib/base/alloc.h"
#include "lib/client/session/member.h"

void tnk__training_saved(tnk_training_t *training, const char *path,
                         tnk__tally_t tally, int with_optimizer) {
  const tnk_allocator_t *alloc = &training->session->context->alloc;
  char *copy = path != NULL ? tnk__strdup(alloc, path) : NULL;

  if (copy == NULL)
    return;
  tnk__free(alloc, training->saved_path);
  training->saved_path = copy;
  training->saved_tally = tally;
  training->saved_optimizer = with_optimizer != 0;
}

void tnk__training_refuse(tnk_training_t *training, tnk__error_t *error) {
  if (!training->is_stopped || training->closing)
    return;
  tnk__error_unref(training->failed);
  training->failed = tnk__error_behind(error);
}

void tnk__training_suspend(tnk_training_t *training, tnk__error_t *error) {
  if (training->closing)
    return;
  training->is_stopped = 1;
  tnk__turns_fail(&training->turns, TNK_ESESSION);
  tnk__training_refuse(training, error);
  TNK__LIST_FOREACH_SAFE (node, next, &training->ops)
    tnk__member_abort(tnk__member_of(node), error);
}

/* Copy a string into the client's arena. Returns 0 without memory. */
static int take(tnk_training_t *training, const char **to, const char *text) {
  *to = text != NULL ? tnk__arena_strdup(&training->arena, text) : NULL;
  return text == NULL || *to != NULL;
}

int tnk__training_adopt(tnk_training_t *training, tnk_training_t *other) {
  tnk_training_info_t info = other->info;

  if (!take(training, &info.model_id, other->info.model_id) ||
      !take(training, &info.base_model, other->info.base_model) ||
      !take(training, &info.arch, other->info.arch) ||
      !take(training, &info.tokenizer_id, other->info.tokenizer_id) ||
      !take(training, &info.optimizer, other->info.optimizer))
    return TNK_ENOMEM;
  training->info = info;
  training->fresh = other->fresh;
  training->known = 0;
  training->tally = training->saved_tally;
  training->is_stopped = 0;
  training->is_unloaded = 0;
  tnk__error_unref(training->failed);
  training->failed = NULL;
  tnk__turns_restart(&training->turns, other->turns.next);
  tnk__training_close(other, NULL, NULL);
  return TNK_OK;
}

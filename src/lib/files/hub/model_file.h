/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_HUB_MODEL_FILE_H
#define TNK_LIB_FILES_HUB_MODEL_FILE_H

#include "lib/files/hub/cache.h"
#include "lib/files/hub/hub.h"

/* The result of a file. Valid until the callback returns. */
typedef struct {
  const char *path;    /* path in the cache; "" on failure */
  const char *commit;  /* "" if unknown */
  int is_absent;       /* the error means that the model has no such file */
  tnk__error_t *error; /* borrowed; NULL: the file is at `path` */
} tnk__model_file_result_t;

/*
 * Waits for a file of a model. Concurrent waits for the same file of the same
 * revision share one model_file_t. It is canceled when the last of them is
 * canceled.
 *
 * States: idle; waiting, until `done` or a cancel.
 */
typedef struct tnk__wanted {
  /* Set by the owner. Called once unless canceled; the last access. */
  void (*done)(struct tnk__wanted *wanted,
               const tnk__model_file_result_t *result);
  /* Private. */
  tnk__list_t link; /* in file->waiters */
  struct tnk__shared_file *file;
} tnk__wanted_t;

void tnk__wanted_init(tnk__wanted_t *wanted,
                      void (*done)(tnk__wanted_t *wanted,
                                   const tnk__model_file_result_t *result));
/* Request a file; the names have passed their checks. Returns TNK_OK, or
 * TNK_ENOMEM and no callback is called. */
int tnk__wanted_start(tnk__wanted_t *wanted, tnk__hub_t *hub, const char *model,
                      const char *revision, const char *file);
/* Stop waiting; allowed in both states. Allocates nothing. */
void tnk__wanted_cancel(tnk__wanted_t *wanted);
/* Describe the current step, as the end of a sentence. */
void tnk__wanted_explain(const tnk__wanted_t *wanted, tnk__text_t *out);

#endif

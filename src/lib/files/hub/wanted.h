#ifndef TNK_LIB_FILES_HUB_WANTED_H
#define TNK_LIB_FILES_HUB_WANTED_H

#include "lib/files/hub/model_file.h"

/*
 * Somebody who wants a file of a model. All who want the same file of the same
 * revision at one time share one tnk__model_file_t, which is given up when the
 * last of them is gone.
 *
 * States: idle; waiting, until `done` or a cancel.
 */
typedef struct tnk__wanted {
  /* The owner's. Called once, unless canceled; the last touch. */
  void (*done)(struct tnk__wanted *wanted,
               const tnk__model_file_result_t *result);
  /* Private. */
  tnk__list_t link; /* in file->waiters */
  struct tnk__shared_file *file;
} tnk__wanted_t;

void tnk__wanted_init(tnk__wanted_t *wanted,
                      void (*done)(tnk__wanted_t *wanted,
                                   const tnk__model_file_result_t *result));
/* Ask for a file; the names have been checked. TNK_OK, or TNK_ENOMEM and then
 * nothing is called. */
int tnk__wanted_start(tnk__wanted_t *wanted, tnk__hub_t *hub, const char *model,
                      const char *revision, const char *file);
/* Stop waiting; legal in both states. Allocates nothing. */
void tnk__wanted_cancel(tnk__wanted_t *wanted);
/* Write what it waits for, as the end of a sentence. */
void tnk__wanted_explain(const tnk__wanted_t *wanted, tnk__text_t *out);

#endif

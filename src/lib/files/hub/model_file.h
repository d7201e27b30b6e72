#ifndef TNK_LIB_FILES_HUB_MODEL_FILE_H
#define TNK_LIB_FILES_HUB_MODEL_FILE_H

#include "lib/files/hub/cache.h"
#include "lib/files/hub/hub.h"

/* What came of it. Valid until the callback returns. */
typedef struct {
  const char *path;    /* in the cache; "" without one */
  const char *commit;  /* "" when not known */
  int is_absent;       /* with an error: the model has no such file */
  tnk__error_t *error; /* borrowed; NULL: the file is at `path` */
} tnk__model_file_result_t;

/*
 * One file of one model, from the cache or into it.
 *
 * What the cache has of a commit is taken as it is. Of a revision that moves
 * the hub is asked first; when it does not answer, what the cache has is good
 * enough. It frees itself after `done`, which is called once, unless canceled.
 */
typedef struct tnk__model_file tnk__model_file_t;

/* Start it; the names have been checked. TNK_OK, or TNK_ENOMEM and then nothing
 * is called. */
int tnk__model_file_start(tnk__model_file_t **out, tnk__hub_t *hub,
                          const char *model, const char *revision,
                          const char *file,
                          void (*done)(const tnk__model_file_result_t *result,
                                       void *user),
                          void *user);
/* Cancel it: nothing is called any more. NULL does nothing. Allocates
 * nothing. */
void tnk__model_file_cancel(tnk__model_file_t *file);
/* Write what it waits for, as the end of a sentence. */
void tnk__model_file_explain(const tnk__model_file_t *file, tnk__text_t *out);

#endif

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
 * Gets one file of a model, through the cache.
 *
 * A cached file of a commit is used without a request. For a movable revision a
 * request to the hub comes first. If it does not answer, the cached file is
 * used. `done` is called once unless canceled; then the object frees itself.
 */
typedef struct tnk__model_file tnk__model_file_t;

/* Start it; the names have passed their checks. Returns TNK_OK, or TNK_ENOMEM
 * and no callback is called. */
int tnk__model_file_start(tnk__model_file_t **out, tnk__hub_t *hub,
                          const char *model, const char *revision,
                          const char *file,
                          void (*done)(const tnk__model_file_result_t *result,
                                       void *user),
                          void *user);
/* Cancel it: no callback is called afterwards. `file` may be NULL. Allocates
 * nothing. */
void tnk__model_file_cancel(tnk__model_file_t *file);
/* Describe the current step, as the end of a sentence. */
void tnk__model_file_explain(const tnk__model_file_t *file, tnk__text_t *out);

#endif

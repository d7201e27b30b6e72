#ifndef TNK_LIB_FILES_HUB_REFUSAL_H
#define TNK_LIB_FILES_HUB_REFUSAL_H

#include "lib/files/hub/cache.h"
#include "lib/files/fetch/fetch.h"

typedef enum {
  TNK__REFUSAL_OTHER = 0, /* another refusal, or none */
  TNK__REFUSAL_NO_FILE,
  TNK__REFUSAL_NO_REVISION,
  TNK__REFUSAL_NO_MODEL, /* or not visible to the caller */
  TNK__REFUSAL_GATED,
  TNK__REFUSAL_BAD_TOKEN,
  TNK__REFUSAL_NO_RIGHT
} tnk__refusal_t;

/* Classify a hub's answer, which may be NULL. Hugging Face sends the reason in
 * a header. `knows_commit`: the answer names a commit. */
tnk__refusal_t tnk__refusal_of(const tnk__http_result_t *result,
                               int knows_commit);
/* Make an error whose message says how to solve the problem. The caller keeps
 * `error`. */
tnk__error_t *
tnk__refusal_error(tnk__refusal_t refusal, const tnk__fetch_t *fetch,
                   const tnk__http_result_t *result, tnk__error_t *error,
                   const tnk__cache_key_t *key, const char *endpoint);

#endif

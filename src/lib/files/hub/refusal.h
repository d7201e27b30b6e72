#ifndef TNK_LIB_FILES_HUB_REFUSAL_H
#define TNK_LIB_FILES_HUB_REFUSAL_H

#include "lib/files/hub/cache.h"
#include "lib/files/fetch/fetch.h"

typedef enum {
  TNK__REFUSAL_OTHER = 0, /* or none */
  TNK__REFUSAL_NO_FILE,
  TNK__REFUSAL_NO_REVISION,
  TNK__REFUSAL_NO_MODEL, /* or one that the asker may not see */
  TNK__REFUSAL_GATED,
  TNK__REFUSAL_BAD_TOKEN,
  TNK__REFUSAL_NO_RIGHT
} tnk__refusal_t;

/* What a hub means by an answer, which may be NULL. It says so in a header
 * when it is the real one; `knows_commit`: the answer names a commit. */
tnk__refusal_t tnk__refusal_of(const tnk__http_result_t *result,
                               int knows_commit);
/* Make an error whose sentence says what to do about it. `error` stays the
 * caller's. */
tnk__error_t *
tnk__refusal_error(tnk__refusal_t refusal, const tnk__fetch_t *fetch,
                   const tnk__http_result_t *result, tnk__error_t *error,
                   const tnk__cache_key_t *key, const char *endpoint);

#endif

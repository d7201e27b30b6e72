#ifndef TNK_CODEC_REST_ASK_H
#define TNK_CODEC_REST_ASK_H

#include "base/buf.h"
#include "tnk/rest.h"

/* The calls about what a service keeps. */
typedef enum {
  TNK__ASK_LIST_RUNS,
  TNK__ASK_GET_RUN,
  TNK__ASK_LIST_RUN_CHECKPOINTS,
  TNK__ASK_LIST_CHECKPOINTS,
  TNK__N_ASKS
} tnk__ask_kind_t;

/* What is asked, with texts that have passed their checks. */
typedef struct {
  tnk__ask_kind_t kind;
  const char *id; /* of a run */
  uint32_t limit;
  tnk_scope_t scope;
  uint64_t offset;
  const char *project_id; /* or NULL */
} tnk__ask_t;

/* Write path and query of the request, without what all have in common. */
void tnk__ask_write_target(tnk__buf_t *out, const tnk__ask_t *ask);

/* Check an id that goes into a path; `what` names it in the sentence: "run_id
 * holds '?'". TNK_OK or TNK_EINVAL. */
int tnk__ask_check_id(const char *what, const char *id, char *why, size_t size);

#endif

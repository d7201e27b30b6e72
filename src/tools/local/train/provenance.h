#ifndef TNK_TOOLS_LOCAL_TRAIN_PROVENANCE_H
#define TNK_TOOLS_LOCAL_TRAIN_PROVENANCE_H

#include "tinker.pb-c.h"
#include "tools/local/train/model.h"

/* Copy the runs of an example. Returns TNK_OK or TNK_ENOMEM. */
int local_origin_read(local_op_t *op, local_origin_t *out,
                      const TinkerPublic__Datum *from);
/*
 * Get the sampler's recorded logprobs for a pass of stable_reinforce. Each
 * input token and each sampled target must equal the recorded token. Targets in
 * a prompt run have no weight and may be padding. An example that does not
 * match fails the operation in its turn. Returns TNK_OK or TNK_ENOMEM. Other
 * losses need no provenance.
 */
int local_pass_trace(local_op_t *op, const local_session_t *session);

#endif

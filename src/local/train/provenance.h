#ifndef TNK_LOCAL_TRAIN_PROVENANCE_H
#define TNK_LOCAL_TRAIN_PROVENANCE_H

#include "local/train/model.h"
#include "tinker.pb-c.h"

/* Copy the runs of an example. TNK_OK or TNK_ENOMEM. */
int local_origin_read(local_op_t *op, local_origin_t *out,
                      const TinkerPublic__Datum *from);
/*
 * Give a pass of stable_reinforce the logprobs that the sampler had: each token
 * of its data is looked up in what the session has recorded and must be the
 * very one. A position whose target was not sampled does not count. What cannot
 * be found fails the operation in its turn. TNK_OK or TNK_ENOMEM. Other losses
 * need nothing.
 */
int local_pass_trace(local_op_t *op, const local_session_t *session);

#endif

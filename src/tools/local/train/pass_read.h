#ifndef TNK_TOOLS_LOCAL_TRAIN_PASS_READ_H
#define TNK_TOOLS_LOCAL_TRAIN_PASS_READ_H

#include "tools/local/train/model.h"
#include "tools/local/call/tensor.h"

/*
 * Parse the data of a pass. Malformed data is refused at once: TNK_EINVAL with
 * the reason. Well-formed data that cannot be computed sets op->err, and the
 * operation fails in its turn.
 */
int local_pass_proto(local_op_t *op,
                     const TinkerPublic__ForwardBackwardRequest *request,
                     tnk__lm_why_t *why);
/* Parse it from JSON; `input` is the member forward_backward_input or
 * forward_input. */
int local_pass_json(local_op_t *op, const json_t *input, int backward,
                    tnk__lm_why_t *why);

#endif

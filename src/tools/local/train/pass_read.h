#ifndef TNK_TOOLS_LOCAL_TRAIN_PASS_READ_H
#define TNK_TOOLS_LOCAL_TRAIN_PASS_READ_H

#include "tools/local/train/model.h"
#include "tools/local/call/tensor.h"

/*
 * Read the data of a pass. What is malformed is refused: TNK_EINVAL with the
 * reason, for an answer at once. What is well-formed but cannot be computed is
 * noted in op->err and fails the operation when its turn has come.
 */
int local_pass_proto(local_op_t *op,
                     const TinkerPublic__ForwardBackwardRequest *request,
                     tnk__lm_why_t *why);
/* Read it from JSON; `input` is the member forward_backward_input or
 * forward_input. */
int local_pass_json(local_op_t *op, const json_t *input, int backward,
                    tnk__lm_why_t *why);

#endif

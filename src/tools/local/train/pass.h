/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_TRAIN_PASS_H
#define TNK_TOOLS_LOCAL_TRAIN_PASS_H

#include "tinker.pb-c.h"
#include "tools/local/call/tensor.h"
#include "tools/local/train/model.h"

/*
 * Get the sampler's recorded logprobs for a pass of stable_reinforce. Each
 * input token and each sampled target must equal the recorded token. Targets in
 * a prompt run have no weight and may be padding. An example that does not
 * match fails the operation in its turn. Returns TNK_OK or TNK_ENOMEM. Other
 * losses need no provenance.
 */
int local_pass_trace(local_op_t *op, const local_session_t *session);

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

/* Append the result as a ForwardBackwardOutput; errors are kept in the
 * buffer. */
void local_pass_write(tnk__buf_t *out, const local_pass_t *pass);

#endif

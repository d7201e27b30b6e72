/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_CALL_TENSOR_H
#define TNK_TOOLS_LOCAL_CALL_TENSOR_H

#include <jansson.h>

#include "lib/base/arena.h"
#include "tinker.pb-c.h"
#include "tools/local/lm/lm.h"

/* A tensor from a client, in dense form. Exactly one of the arrays is set, even
 * without elements. */
typedef struct {
  int64_t *ints;
  float *floats;
  size_t n;
  size_t n_dims; /* 0: no shape, or a scalar */
  int64_t shape[8];
  /* Layout of a sparse tensor. */
  size_t n_listed;
  size_t n_crow;
  const int64_t *crow;
  const int64_t *col;
} local_tensor_t;

/* Read a tensor. Cells that a sparse tensor does not list are set to `pad`.
 * Returns TNK_EINVAL with the reason, or TNK_ENOMEM. */
int local_tensor_proto(local_tensor_t *out, tnk__arena_t *arena,
                       const TinkerPublic__Tensor *tensor, int64_t pad,
                       tnk__lm_why_t *why);
int local_tensor_json(local_tensor_t *out, tnk__arena_t *arena,
                      const json_t *tensor, int64_t pad, tnk__lm_why_t *why);

/* Copy the tokens of a JSON prompt {"chunks": [...]} into the arena. Returns
 * TNK_EINVAL with the reason, or TNK_ENOMEM. */
int local_tokens_json(tnk__arena_t *arena, const json_t *input,
                      const int32_t **out, size_t *n, tnk__lm_why_t *why);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_OPTIM_WIRE_H
#define TNK_LIB_WIRE_MESSAGE_OPTIM_WIRE_H

#include "lib/base/buf.h"
#include "lib/wire/message/results.h"
#include "tnk/training.h"

/* Append the body of an optim_step. The parameters must be checked by
 * lib/wire/data/check.h. Absent ones are written as their defaults. Returns
 * TNK_OK or the buffer's error. */
int tnk__optim_write(tnk__buf_t *out, const char *model_id, int64_t seq_id,
                     const tnk_optim_t *optim);

/* Read the result, which is always JSON: {"metrics": {...}}, where metrics may
 * be null or missing. A metric that is not a number is omitted; null is NaN. On
 * success free *out with tnk__metrics_free(). Returns TNK_EPROTO or TNK_ENOMEM
 * on failure. */
int tnk__optim_read(tnk_metrics_t **out, const tnk_allocator_t *alloc,
                    const void *body, size_t n);

#endif

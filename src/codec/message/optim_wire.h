#ifndef TNK_CODEC_MESSAGE_OPTIM_WIRE_H
#define TNK_CODEC_MESSAGE_OPTIM_WIRE_H

#include "base/buf.h"
#include "codec/message/results.h"
#include "tnk/training.h"

/* Append the body of an optim_step; the parameters have passed their checks in
 * codec/data/check.h. TNK_OK or the buffer's error. */
int tnk__optim_write_adam(tnk__buf_t *out, const char *model_id, int64_t seq_id,
                          const tnk_adam_t *adam);
int tnk__optim_write_dimuon(tnk__buf_t *out, const char *model_id,
                            int64_t seq_id, const tnk_dimuon_t *dimuon);
/* Append one with parameters in JSON, one object that is sent as it is. */
int tnk__optim_write_raw(tnk__buf_t *out, const char *model_id, int64_t seq_id,
                         const char *json);

/* Read the result, which is always JSON: {"metrics": {...}}, where metrics may
 * be null or missing. A metric that is not a number is left out; null is NaN.
 * On success *out is freed with tnk__metrics_free(). TNK_EPROTO, TNK_ENOMEM. */
int tnk__optim_read(tnk_metrics_t **out, const tnk_allocator_t *alloc,
                    const void *body, size_t n);

#endif

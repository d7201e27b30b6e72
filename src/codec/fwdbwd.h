#ifndef TNK_CODEC_FWDBWD_H
#define TNK_CODEC_FWDBWD_H

#include "base/buf.h"
#include "tnk/training.h"

/* One forward or backward request; all of it borrowed, and accepted by
 * codec/check.h. */
typedef struct {
  const char *model_id;
  int64_t seq_id;
  const tnk_datum_t *data; /* the first datum of the chunk */
  size_t n_data;
  const char *loss_fn;
  const tnk_loss_setting_t *settings;
  size_t n_settings;
  int forward_only;
} tnk__fwdbwd_t;

/* Append the request to `out`, in ascending field order, in one piece and
 * without a copy in between. TNK_EINVAL when seq_id does not fit the field. */
int tnk__fwdbwd_write(tnk__buf_t *out, const tnk__fwdbwd_t *request);
/* Bytes that this will take. */
size_t tnk__fwdbwd_size(const tnk__fwdbwd_t *request);

#endif

#ifndef TNK_LIB_WIRE_MESSAGE_FWDBWD_H
#define TNK_LIB_WIRE_MESSAGE_FWDBWD_H

#include "lib/base/buf.h"
#include "tnk/training.h"

/* One forward or backward request; all of it borrowed, and accepted by
 * lib/wire/data/check.h. */
typedef struct {
  const char *model_id;
  int64_t seq_id;
  const tnk_datum_t *data; /* the first datum of the slice */
  size_t n_data;
  const char *loss_fn;
  const tnk_loss_setting_t *settings;
  size_t n_settings;
  int forward_only;
} tnk__fwdbwd_t;

/*
 * Writes a request, in ascending field order, piece by piece and in any memory
 * that is at hand, so that it never exists as a whole. What the request
 * borrows must stay the same until the last piece.
 */
typedef struct {
  tnk__fwdbwd_t request;
  size_t len;      /* of the whole, in bytes */
  size_t front;    /* where the first datum begins */
  size_t datum;    /* the first that is not written to its end */
  size_t datum_at; /* where it begins */
} tnk__fwdbwd_writer_t;

/* Measure it. TNK_EINVAL when seq_id does not fit the field. */
int tnk__fwdbwd_begin(tnk__fwdbwd_writer_t *writer,
                      const tnk__fwdbwd_t *request);
/* Write the bytes from `at` <= len on, n of them or as many as there are, and
 * return how many. One piece after the other is the fast way; going back is
 * allowed. */
size_t tnk__fwdbwd_piece(tnk__fwdbwd_writer_t *writer, size_t at, uint8_t *to,
                         size_t n);
/* Append the whole request as JSON instead. TNK_OK, TNK_EINVAL as above, or the
 * buffer's error. */
int tnk__fwdbwd_write_json(tnk__buf_t *out, const tnk__fwdbwd_t *request);

#endif

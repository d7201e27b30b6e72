/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_FWDBWD_H
#define TNK_LIB_WIRE_MESSAGE_FWDBWD_H

#include "lib/base/buf.h"
#include "tnk/training.h"

/* One forward or backward request. Everything is borrowed, and must be accepted
 * by lib/wire/data/check.h. */
typedef struct {
  const char *model_id;
  int64_t seq_id;
  const tnk_datum_t *data; /* first datum of the chunk */
  size_t n_data;
  const char *loss_fn;
  const tnk_loss_setting_t *settings;
  size_t n_settings;
  int forward_only;
} tnk__fwdbwd_t;

/*
 * Writes a request in ascending order of fields. It writes piece by piece into
 * any buffer, so the request never exists as a whole. Borrowed data must not
 * change until the last piece.
 */
typedef struct {
  tnk__fwdbwd_t request;
  size_t len;      /* size of the request in bytes */
  size_t front;    /* position of the first datum */
  size_t datum;    /* first datum that is not completely written */
  size_t datum_at; /* position of that datum */
} tnk__fwdbwd_writer_t;

/* Measure the request. Returns TNK_EINVAL if seq_id does not fit in its
 * field. */
int tnk__fwdbwd_begin(tnk__fwdbwd_writer_t *writer,
                      const tnk__fwdbwd_t *request);
/* Write up to n bytes from position `at` <= len. Returns how many were written.
 * Consecutive pieces are fast; going back is allowed. */
size_t tnk__fwdbwd_piece(tnk__fwdbwd_writer_t *writer, size_t at, uint8_t *to,
                         size_t n);
/* Append the whole request as JSON instead. Returns TNK_OK, TNK_EINVAL as
 * above, or the buffer's error. */
int tnk__fwdbwd_write_json(tnk__buf_t *out, const tnk__fwdbwd_t *request);

#endif

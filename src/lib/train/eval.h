/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_TRAIN_EVAL_H
#define TNK_LIB_TRAIN_EVAL_H

#include "lib/client/train/operations.h"

/* Start an evaluation with passes of at most `n_batch` examples. Arguments have
 * passed their checks; `data` is copied. The result of the promise is a
 * tnk_eval_t, of the kind TNK__RESULT_EVAL. */
tnk_promise_t *tnk__eval_start(tnk_training_t *training,
                               const tnk_datum_t *data, size_t n_data,
                               const tnk_pass_options_t *pass, size_t n_batch);

#endif

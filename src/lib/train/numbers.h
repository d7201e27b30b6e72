/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_TRAIN_NUMBERS_H
#define TNK_LIB_TRAIN_NUMBERS_H

#include "lib/io/loop/promise.h"

/* tnk_numbers_sync() after its checks. `path` is copied. */
tnk_promise_t *tnk__numbers_sync(tnk__context_t *context, const char *path);

#endif

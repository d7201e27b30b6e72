/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_WIRE_WRITE_H
#define TNK_GATEWAY_WIRE_WRITE_H

#include "gateway/wire/answer.h"

/* Write a response in the format of its API, whole or as the events of a
 * stream. Returns TNK_OK, or the error of the buffer or of decoding an id. */
int tnk__gw_answer_write(const tnk__gw_answer_t *answer, tnk__buf_t *out);

#endif

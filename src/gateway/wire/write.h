#ifndef TNK_GATEWAY_WIRE_WRITE_H
#define TNK_GATEWAY_WIRE_WRITE_H

#include "gateway/wire/answer.h"

/* Write an answer as its API has it, whole or as the events of a stream.
 * TNK_OK, or what the buffer or the text of an id has failed with. */
int tnk__gw_answer_write(const tnk__gw_answer_t *answer, tnk__buf_t *out);

#endif

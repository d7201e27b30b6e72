#ifndef TNK_LIB_WIRE_MESSAGE_SAMPLE_JSON_H
#define TNK_LIB_WIRE_MESSAGE_SAMPLE_JSON_H

#include "lib/wire/message/results.h"

/* Read samples as JSON, for tnk__samples_read(). Failures are kept in
 * `room`. */
void tnk__samples_from_json(tnk__room_t *room, tnk_samples_t *samples,
                            const void *body, size_t n);

#endif

#ifndef TNK_CODEC_CALLS_FUTURE_H
#define TNK_CODEC_CALLS_FUTURE_H

#include "base/buf.h"

/* Bodies of the calls about futures; answers are in codec/answer.h. The rules
 * of codec/calls_session.h hold. */

/* With allow_metadata_only the server may tell the size of a large result
 * first; without it, it must not. */
void tnk__retrieve_future_write(tnk__buf_t *out, const char *request_id,
                                int allow_metadata_only);
void tnk__cancel_future_write(tnk__buf_t *out, const char *request_id);

#endif

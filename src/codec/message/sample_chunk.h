#ifndef TNK_CODEC_MESSAGE_SAMPLE_CHUNK_H
#define TNK_CODEC_MESSAGE_SAMPLE_CHUNK_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "tnk/result.h"

/* What one event of a sample's stream says: a token, the end, both, or nothing
 * that we know of. */
typedef struct {
  json_t *json; /* what `text` lies in */
  int has_token;
  int32_t token;
  float logprob;    /* NaN: none was sent */
  const char *text; /* of the token, in the server's words; NULL: none */
  int64_t index;    /* of the token in its sequence; -1: none was sent */
  int is_end;
  tnk_stop_reason_t stop_reason; /* of the end */
  int64_t n_total;               /* tokens, by the server; -1: not told */
  int is_error; /* it reports a failure, and nothing else was read */
} tnk__sample_chunk_t;

/* Read one; members that are not known are skipped. TNK_OK, and then it is to
 * be cleared; TNK_EPROTO, also for a token without its id; TNK_ENOMEM. */
int tnk__sample_chunk_read(tnk__sample_chunk_t *out, const char *data,
                           size_t n);
void tnk__sample_chunk_clear(tnk__sample_chunk_t *chunk);

#endif

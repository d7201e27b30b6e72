#ifndef TNK_LIB_WIRE_MESSAGE_SAMPLER_TEXT_H
#define TNK_LIB_WIRE_MESSAGE_SAMPLER_TEXT_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"

/* What it takes to use a sampler from elsewhere. */
typedef struct {
  const char *session_id;
  const char *sampling_session_id;
  const char *base_url;   /* where it was exported; or NULL */
  const char *base_model; /* or NULL */
  int record_stability_info;
} tnk__sampler_text_t;

/* Append it as one printable word, in the form of the official client's sampler
 * handles. Protocol: sampling, creating, cloning and handing over. Failures
 * stick to `out`. */
void tnk__sampler_text_write(tnk__buf_t *out,
                             const tnk__sampler_text_t *sampler);
/* Read it; what it gives out is in the arena. Members that are not known are
 * ignored, keys and headers among them. TNK_OK; TNK_ENOMEM; TNK_EINVAL with
 * half a sentence in `why`. */
int tnk__sampler_text_read(tnk__sampler_text_t *out, tnk__arena_t *arena,
                           const char *text, const char **why);

#endif

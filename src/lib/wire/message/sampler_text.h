/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_SAMPLER_TEXT_H
#define TNK_LIB_WIRE_MESSAGE_SAMPLER_TEXT_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"

/* The data that another process needs to use a sampler. */
typedef struct {
  const char *session_id;
  const char *sampling_session_id;
  const char *base_url;   /* where it was exported, or NULL */
  const char *base_model; /* or NULL */
  int record_stability_info;
} tnk__sampler_text_t;

/* Append it as one printable word, in the form of the official client's sampler
 * handles. Protocol: sampling, creating, cloning and handing over. Failures are
 * kept in `out`. */
void tnk__sampler_text_write(tnk__buf_t *out,
                             const tnk__sampler_text_t *sampler);
/* Read it. The results are in the arena. Unknown members are ignored, including
 * keys and headers. Returns TNK_OK, TNK_ENOMEM, or TNK_EINVAL with the end of a
 * sentence in `why`. */
int tnk__sampler_text_read(tnk__sampler_text_t *out, tnk__arena_t *arena,
                           const char *text, const char **why);

#endif

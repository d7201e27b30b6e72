/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_OTLP_RESPONSE_H
#define TNK_LIB_OTLP_RESPONSE_H

#include <stddef.h>
#include <stdint.h>

/* The response of a collector that has accepted a request. Both kinds of
 * responses have the same field numbers. */
typedef struct {
  int64_t n_rejected; /* spans or data points */
  /* The collector's text, in the body; not NUL-terminated. It may be set
   * without rejected items. */
  const uint8_t *message;
  size_t n_message;
} tnk__otlp_response_t;

/* Read a response. Unknown fields are skipped. An empty body means that
 * everything was accepted. Returns TNK_OK, or TNK_EPROTO if it is malformed. */
int tnk__otlp_response_read(tnk__otlp_response_t *out, const uint8_t *body,
                            size_t n);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_OTLP_OPERATIONS_H
#define TNK_LIB_OTLP_OPERATIONS_H

#include "lib/otlp/exporter.h"

/* Take an event of a service: an operation becomes a span when it ends. */
void tnk__otlp_observe(tnk__otlp_t *otlp, const tnk_event_t *event);
/* Free the operations in progress; call it before tnk__otlp_deinit(). */
void tnk__otlp_operations_deinit(tnk__otlp_t *otlp);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_STOP_H
#define TNK_GATEWAY_STOP_H

#include "gateway/state.h"

/* Stops of a response: tokens if each stop string is a single token, otherwise
 * strings. */
enum { TNK__GW_MAX_ALL_STOPS = 48 };

typedef struct {
  const char *texts[TNK__GW_MAX_ALL_STOPS];
  size_t n_texts;
  int32_t ids[TNK__GW_MAX_ALL_STOPS];
  size_t n_ids; /* 0 if the stops are strings */
} tnk__gw_stops_t;

/* Find the stops of the template and of the client. */
void tnk__gw_stops_find(const tnk__gw_job_t *job, tnk__gw_stops_t *stops);
/* Set *n to the number of sampled ids up to and including the first stop. This
 * is needed because a service that cannot decode ids continues after a stop
 * string. Returns TNK_OK, TNK_ENOMEM, or the tokenizer's code. */
int tnk__gw_stops_cut(const tnk__gw_job_t *job, const int32_t *ids, size_t *n);

#endif

#ifndef TNK_GATEWAY_STOP_H
#define TNK_GATEWAY_STOP_H

#include "gateway/state.h"

/* Where an answer ends: as tokens if each text is one, else as texts. */
enum { TNK__GW_MAX_ALL_STOPS = 48 };

typedef struct {
  const char *texts[TNK__GW_MAX_ALL_STOPS];
  size_t n_texts;
  int32_t ids[TNK__GW_MAX_ALL_STOPS];
  size_t n_ids; /* 0 where there are texts */
} tnk__gw_stops_t;

/* Those of the template, and those of the client. */
void tnk__gw_stops_find(const tnk__gw_job_t *job, tnk__gw_stops_t *stops);
/* How many of `n` sampled ids are left of an answer that ends with the first
 * stop: a service that does not know the texts of its ids samples on behind it.
 * TNK_OK, TNK_ENOMEM, or the tokenizer's code. */
int tnk__gw_stops_cut(const tnk__gw_job_t *job, const int32_t *ids, size_t *n);

#endif

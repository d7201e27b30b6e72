#ifndef TNK_LIB_WIRE_MESSAGE_METRICS_H
#define TNK_LIB_WIRE_MESSAGE_METRICS_H

#include <jansson.h>

#include "lib/wire/format/room.h"
#include "tnk/result.h"

typedef struct {
  const char *key;
  double value;
  uint64_t hash; /* exact number behind value, if is_hash */
  int is_hash;
} tnk__metric_t;

struct tnk_metrics {
  tnk__metric_t *items; /* in the server's order, without duplicate keys */
  const tnk__metric_t **by_key; /* the same, sorted by key */
  size_t n;
  tnk__arena_t arena; /* empty if the metrics belong to a pass */
};

/* Messages for the caller of a decoder to log, in the order of their detection.
 * If there are too many, the rest is dropped. */
enum { TNK__MAX_WARNINGS = 16 };
typedef struct {
  /* Sentences without values from the server. */
  const char *text[TNK__MAX_WARNINGS];
  size_t n;
} tnk__warnings_t;

/* Create metrics from n entries, which stay in place. A duplicate key keeps its
 * first position and its last value. Failures are kept in `room`. */
void tnk__metrics_build(tnk_metrics_t *metrics, tnk__room_t *room,
                        tnk__metric_t *items, size_t n);
/* Create metrics from a JSON object; NULL creates empty metrics. null becomes
 * NaN. Other values that are not numbers are omitted, with a warning if
 * `warnings` is not NULL. */
void tnk__metrics_from_json(tnk_metrics_t *metrics, tnk__room_t *room,
                            const json_t *object, tnk__warnings_t *warnings);
/* The metric with this key, or NULL. */
const tnk__metric_t *tnk__metrics_find(const tnk_metrics_t *metrics,
                                       const char *key);

/* Add a sentence to the warnings, unless it is already there. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void tnk__warnings_add(tnk__warnings_t *warnings, tnk__room_t *room,
                       const char *format, ...);

#endif

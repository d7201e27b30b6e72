#ifndef TNK_LIB_WIRE_MESSAGE_METRICS_H
#define TNK_LIB_WIRE_MESSAGE_METRICS_H

#include <jansson.h>

#include "lib/wire/format/room.h"
#include "tnk/result.h"

typedef struct {
  const char *key;
  double value;
  uint64_t hash; /* the exact number behind value, when is_hash */
  int is_hash;
} tnk__metric_t;

struct tnk_metrics {
  tnk__metric_t *items;         /* in the server's order, no key twice */
  const tnk__metric_t **by_key; /* the same, sorted */
  size_t n;
  tnk__arena_t arena; /* empty when the metrics are part of a pass */
};

/* What the caller of a decoder should log, in order of finding. The rest is
 * dropped when there are very many. */
enum { TNK__MAX_WARNINGS = 16 };
typedef struct {
  const char *text[TNK__MAX_WARNINGS]; /* sentences, without keys' values */
  size_t n;
} tnk__warnings_t;

/* Make metrics of n entries, which stay where they are. A key that is given
 * twice stays where it was first and has its last value. Failures stick to
 * `room`. */
void tnk__metrics_build(tnk_metrics_t *metrics, tnk__room_t *room,
                        tnk__metric_t *items, size_t n);
/* Make metrics of a JSON object; NULL gives none. null counts as NaN, what is
 * no number is left out with a warning, if `warnings` is set. */
void tnk__metrics_from_json(tnk_metrics_t *metrics, tnk__room_t *room,
                            const json_t *object, tnk__warnings_t *warnings);
/* The metric of that key, or NULL. */
const tnk__metric_t *tnk__metrics_find(const tnk_metrics_t *metrics,
                                       const char *key);

/* Add a sentence to the warnings, once. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void tnk__warnings_add(tnk__warnings_t *warnings, tnk__room_t *room,
                       const char *format, ...);

#endif

#ifndef TNK_LIB_POLICY_WINDOW_H
#define TNK_LIB_POLICY_WINDOW_H

#include <stddef.h>
#include <stdint.h>

/*
 * How many submissions may be under way. On a short way few keep a server busy;
 * on a long one their number bounds the rate. It is looked at after each round
 * of as many answers: it doubles where all were in use and few took much longer
 * than the shortest of late, which shows that they do not wait for each other,
 * up to what TNK__WINDOW_PER_S needs on such a way; it falls where they do
 * wait, and when one fails.
 */
#define TNK__WINDOW_MIN 64
#define TNK__WINDOW_MAX 1024
#define TNK__WINDOW_PER_S 8000

typedef struct {
  size_t limit;
  /* The shortest time that one took, lately and before that. */
  uint64_t least_ms[2];
  uint64_t turned_ms; /* when the second was the first */
  uint64_t failed_ms; /* when the limit fell for a failure */
  size_t n;           /* answers in this round, ... */
  size_t n_late;      /* ... of them those that took long, ... */
  size_t n_short;     /* ... and those that others waited behind */
} tnk__window_t;

void tnk__window_init(tnk__window_t *window);
/* Note a submission that was answered after `took_ms`, with others waiting for
 * their turn or not. Returns the limit. */
size_t tnk__window_answered(tnk__window_t *window, uint64_t took_ms,
                            int is_short, uint64_t now_ms);
/* Note one that failed. */
size_t tnk__window_failed(tnk__window_t *window, uint64_t now_ms);

#endif

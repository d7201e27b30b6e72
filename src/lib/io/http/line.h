#ifndef TNK_LIB_IO_HTTP_LINE_H
#define TNK_LIB_IO_HTTP_LINE_H

#include "lib/io/http/client.h"
#include "lib/policy/ceiling.h"

/* What is short goes before what is held, and polls of training before those of
 * samples, wherever there are not places for all. */
typedef enum {
  TNK__RANK_SHORT = 0,
  TNK__RANK_TRAIN_POLL,
  TNK__RANK_POLL,
  TNK__N_RANKS
} tnk__rank_t;

/*
 * The exchanges of one origin that wait for a connection, and how many of each
 * rank have one. They go in order of their coming; while the ceiling is set, by
 * rank first, and polls hold no more than their share of the places.
 */
typedef struct {
  tnk__list_t fresh; /* of any rank, for a connection that is new */
  tnk__list_t waiting[TNK__N_RANKS]; /* for any connection */
  uint64_t last_place;               /* that was given to one of them */
  size_t n[TNK__N_RANKS];            /* waiting, in `fresh` as well */
  size_t n_waiting;                  /* in all */
  size_t n_foreground;       /* of them, those that keep uv_run() going */
  size_t n_on[TNK__N_RANKS]; /* on connections */
  tnk__ceiling_t ceiling;    /* of connections */
  size_t n_each;             /* exchanges that one connection takes */
} tnk__line_t;

void tnk__line_init(tnk__line_t *line);
tnk__rank_t tnk__line_rank(const tnk__exchange_t *ex);
/* Let it wait: from now on, for a connection that is new if it `wants_fresh`;
 * or in front of the others of its rank. */
void tnk__line_join(tnk__line_t *line, tnk__exchange_t *ex, int wants_fresh);
void tnk__line_return(tnk__line_t *line, tnk__exchange_t *ex);
/* Take out one that waits. */
void tnk__line_leave(tnk__line_t *line, tnk__exchange_t *ex);
/* Take out the first, of that rank or before it, that may have a connection
 * now, which is new or not; NULL: nobody. Those that have been sent before are
 * the oldest. */
tnk__exchange_t *tnk__line_pop(tnk__line_t *line, int is_new, tnk__rank_t last);
/* Take out the first, whether it may or not. */
tnk__exchange_t *tnk__line_pop_any(tnk__line_t *line);
/* How many of those who wait may have a connection. */
size_t tnk__line_n_ready(const tnk__line_t *line);
/* When to look after those who wait for others. */
uint64_t tnk__line_look_ms(const tnk__line_t *line, uint64_t now_ms);
/* How many polls hold more than their share while others wait. */
size_t tnk__line_n_excess(const tnk__line_t *line);

#endif

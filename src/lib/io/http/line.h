#ifndef TNK_LIB_IO_HTTP_LINE_H
#define TNK_LIB_IO_HTTP_LINE_H

#include "lib/io/http/client.h"
#include "lib/policy/ceiling.h"

/* Priority where the capacity does not suffice for all: short requests, then
 * training polls, then sample polls. */
typedef enum {
  TNK__RANK_SHORT = 0,
  TNK__RANK_TRAIN_POLL,
  TNK__RANK_POLL,
  TNK__N_RANKS
} tnk__rank_t;

/*
 * The exchanges of one origin that wait for a connection, and how many of each
 * rank have one. The order is first in, first out. While the ceiling is set,
 * the rank decides first, and polls hold no more than their share of the
 * capacity.
 */
typedef struct {
  tnk__list_t fresh; /* exchanges of any rank that need a new connection */
  tnk__list_t waiting[TNK__N_RANKS]; /* exchanges that can use any connection */
  uint64_t last_place;               /* latest number in the order of waiting */
  size_t n[TNK__N_RANKS];    /* waiting exchanges by rank, including `fresh` */
  size_t n_waiting;          /* total of waiting exchanges */
  size_t n_foreground;       /* waiting exchanges that keep uv_run() running */
  size_t n_on[TNK__N_RANKS]; /* exchanges on connections, by rank */
  tnk__ceiling_t ceiling;    /* limit of connections */
  size_t n_each;             /* exchanges that one connection takes */
} tnk__line_t;

void tnk__line_init(tnk__line_t *line);
tnk__rank_t tnk__line_rank(const tnk__exchange_t *ex);
/* Let an exchange wait. tnk__line_join() appends it; with `wants_fresh` it
 * waits for a new connection. tnk__line_return() puts it in front of the others
 * of its rank. */
void tnk__line_join(tnk__line_t *line, tnk__exchange_t *ex, int wants_fresh);
void tnk__line_return(tnk__line_t *line, tnk__exchange_t *ex);
/* Remove a waiting exchange. */
void tnk__line_leave(tnk__line_t *line, tnk__exchange_t *ex);
/* Remove and return the first exchange, up to the rank `last`, that may have a
 * connection now. `is_new` says whether that connection is new. NULL: no
 * exchange may. Exchanges that were sent before come first. */
tnk__exchange_t *tnk__line_pop(tnk__line_t *line, int is_new, tnk__rank_t last);
/* Remove and return the first one, whether it may have a connection or not. */
tnk__exchange_t *tnk__line_pop_any(tnk__line_t *line);
/* The number of waiting exchanges that may have a connection. */
size_t tnk__line_n_ready(const tnk__line_t *line);
/* When to check the exchanges that wait for others, as a delay in
 * milliseconds. */
uint64_t tnk__line_look_ms(const tnk__line_t *line, uint64_t now_ms);
/* The number of polls over their share while other exchanges wait. */
size_t tnk__line_n_excess(const tnk__line_t *line);

#endif

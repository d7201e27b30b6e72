/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_HTTP_QUEUE_H
#define TNK_LIB_IO_HTTP_QUEUE_H

#include "lib/io/http/client.h"
#include "lib/policy/ceiling.h"

/*
 * Which exchange is next. An exchange first waits for a slot of its lane. The
 * lanes limit how many exchanges of a kind are under way to any origin. With a
 * slot it waits in the queue of its origin for a connection.
 */

/* ---- Slots of lanes ----
 *
 * Over HTTP/1.1 each long poll needs a connection, and so a descriptor. The
 * polls share the descriptors that the limit of the process leaves. Over HTTP/2
 * polls share connections, and the configured number applies.
 */

/* Set the limits of a client whose lanes have their configured sizes. */
void tnk__lanes_open(tnk__http_t *http);
/* Note whether connections for polls are shared. */
void tnk__lanes_share_polls(tnk__http_t *http, int are_shared);
/* Returns whether an exchange of this lane can get a slot now. */
int tnk__lane_has_slot(const tnk__http_t *http, tnk__lane_t i);
/* Count an exchange that gets a slot, or give its slot back if it has one. */
void tnk__lane_enter(const tnk__exchange_t *ex);
void tnk__lane_leave(const tnk__exchange_t *ex);
/* Note how an upload ended. After a timeout, uploads of its lane go one at a
 * time until some have succeeded. */
void tnk__lane_note_upload(const tnk__exchange_t *ex, int err);

/* ---- Waiting for a connection ---- */

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
} tnk__queue_t;

void tnk__queue_init(tnk__queue_t *queue);
tnk__rank_t tnk__queue_rank(const tnk__exchange_t *ex);
/* Let an exchange wait. tnk__queue_join() appends it; with `wants_fresh` it
 * waits for a new connection. tnk__queue_return() puts it in front of the
 * others of its rank. */
void tnk__queue_join(tnk__queue_t *queue, tnk__exchange_t *ex, int wants_fresh);
void tnk__queue_return(tnk__queue_t *queue, tnk__exchange_t *ex);
/* Remove a waiting exchange. */
void tnk__queue_leave(tnk__queue_t *queue, tnk__exchange_t *ex);
/* Remove and return the first exchange, up to the rank `last`, that may have a
 * connection now. `is_new` says whether that connection is new. NULL: no
 * exchange may. Exchanges that were sent before come first. */
tnk__exchange_t *tnk__queue_pop(tnk__queue_t *queue, int is_new,
                                tnk__rank_t last);
/* Remove and return the first one, whether it may have a connection or not. */
tnk__exchange_t *tnk__queue_pop_any(tnk__queue_t *queue);
/* The number of waiting exchanges that may have a connection. */
size_t tnk__queue_n_ready(const tnk__queue_t *queue);
/* Returns whether exchanges wait for others to end, because a proxy or the
 * server refuses more connections. */
int tnk__queue_is_limited(const tnk__queue_t *queue);
/* When to check the exchanges that wait for others, as a delay in
 * milliseconds. */
uint64_t tnk__queue_look_ms(const tnk__queue_t *queue, uint64_t now_ms);
/* The number of polls over their share while other exchanges wait. */
size_t tnk__queue_n_excess(const tnk__queue_t *queue);

#endif

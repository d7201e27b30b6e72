/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/base/alloc.h"
#include "support/link_internal.h"

/*
 * A piece enters the queue of its direction, leaves it when the rate allows,
 * and arrives after the delay. A lost one arrives later, and so does what its
 * connection sent after it. Time is counted in microseconds, so that the rate
 * is exact although timers have milliseconds.
 */

enum { LOSS_MS = 200 };

static uint64_t now_us(const test_link_t *link) {
  return tnk__context_now_ms(&link->clock) * 1000;
}

static void start_timer(test_link_t *link, tnk__timer_t *timer, uint64_t at_us,
                        void (*fn)(tnk__timer_t *self)) {
  const uint64_t now = now_us(link);
  const uint64_t left_us = at_us > now ? at_us - now : 0;

  tnk__timer_start_background(&link->clock, timer, (left_us + 999) / 1000, fn);
}

/* ---- Arrival ---- */

static void arrive(link_side_t *from) {
  test_link_t *link = from->pair->owner;
  link_side_t *to = link__peer(from);
  tnk__list_t *node;

  while ((node = tnk__list_first(&from->flight)) != NULL) {
    link_piece_t *piece = tnk__container_of(node, link_piece_t, link);
    if (piece->at_us > now_us(link))
      break;
    tnk__list_remove(&piece->link);
    link__deliver(to, piece);
  }
}

static void on_arrival(tnk__timer_t *timer) {
  link_side_t *from = tnk__container_of(timer, link_side_t, timer);
  tnk__list_t *node;

  arrive(from);
  node = tnk__list_first(&from->flight);
  if (node != NULL)
    start_timer(from->pair->owner, &from->timer,
                tnk__container_of(node, link_piece_t, link)->at_us, on_arrival);
}

/* xorshift: the same in every run. */
static int is_lost(test_link_t *link) {
  link->random ^= link->random << 13;
  link->random ^= link->random >> 7;
  link->random ^= link->random << 17;
  return link->random % 1000 < link->loss;
}

static void fly(link_piece_t *piece, uint64_t left_us) {
  link_side_t *from = piece->from;
  test_link_t *link = from->pair->owner;
  uint64_t pause_ms = 4 * link->delay_ms;

  piece->at_us = left_us + 1000 * link->delay_ms;
  if (link->loss > 0 && is_lost(link)) {
    link->counts.n_lost++;
    piece->at_us += 1000 * (pause_ms > LOSS_MS ? pause_ms : LOSS_MS);
  }
  if (piece->at_us < from->arrives_us)
    piece->at_us = from->arrives_us;
  from->arrives_us = piece->at_us;
  tnk__list_append(&from->flight, &piece->link);
  if (tnk__list_first(&from->flight) != &piece->link)
    return;
  if (piece->at_us <= now_us(link))
    arrive(from);
  else
    start_timer(link, &from->timer, piece->at_us, on_arrival);
}

/* ---- The queue ---- */

size_t link__room(const link_way_t *way) {
  const test_link_t *link = way->owner;

  if (link->bytes_per_s == 0)
    return LINK_WINDOW;
  return way->n_queued < link->queue_bytes ? link->queue_bytes - way->n_queued
                                           : 0;
}

void link__admit(link_way_t *way) {
  size_t room = link__room(way);
  /* Some of them may have nothing to say: with an empty queue nobody would
   * come back for the others. */
  size_t n =
      way->n_queued == 0 ? SIZE_MAX : (room + LINK_PIECE - 1) / LINK_PIECE;
  tnk__list_t *node;

  while (room > 0 && n-- > 0 && (node = tnk__list_pop(&way->waiting)) != NULL) {
    link_side_t *side = tnk__container_of(node, link_side_t, link);
    side->is_admitted = 1;
    link__read(side);
  }
}

static void on_departure(tnk__timer_t *timer) {
  link__pump(tnk__container_of(timer, link_way_t, timer));
}

/* When the first piece will have left. */
static uint64_t departure_us(const link_way_t *way, const link_piece_t *piece) {
  const uint64_t rate = way->owner->bytes_per_s;
  const uint64_t from =
      piece->at_us > way->free_us ? piece->at_us : way->free_us;

  return rate > 0 ? from + (piece->n * 1000000 + rate - 1) / rate : from;
}

void link__pump(link_way_t *way) {
  test_link_t *link = way->owner;
  tnk__list_t *node;

  while (!link->is_paused && (node = tnk__list_first(&way->queue)) != NULL) {
    link_piece_t *piece = tnk__container_of(node, link_piece_t, link);
    const uint64_t left_us = departure_us(way, piece);
    if (left_us > now_us(link)) {
      start_timer(link, &way->timer, left_us, on_departure);
      break;
    }
    way->free_us = left_us;
    way->n_queued -= piece->n;
    tnk__list_remove(&piece->link);
    if (piece->from->pair->is_dead) {
      piece->from->n_held -= piece->n;
      free(piece);
    } else {
      fly(piece, left_us);
    }
  }
  link__admit(way);
}

void link__enter(link_side_t *from, const void *data, size_t n, int is_reset) {
  link_way_t *way = from->way;
  test_link_t *link = way->owner;
  link_piece_t *piece = calloc(1, sizeof(*piece) + n);

  LINK_MUST(piece != NULL);
  piece->from = from;
  piece->n = n;
  piece->is_reset = is_reset;
  if (n > 0)
    memcpy(piece->data, data, n);
  piece->at_us = now_us(link);
  from->n_held += n;
  way->n_queued += n;
  if (way->n_queued > link->counts.most_queued[way->direction])
    link->counts.most_queued[way->direction] = way->n_queued;
  tnk__list_append(&way->queue, &piece->link);
  if (tnk__list_first(&way->queue) == &piece->link)
    link__pump(way);
}

static void free_piece(tnk__list_t *node) {
  link_piece_t *piece = tnk__container_of(node, link_piece_t, link);

  tnk__list_remove(node);
  free(piece);
}

void link__drop(link_side_t *from) {
  tnk__list_t *node;

  TNK__LIST_FOREACH_SAFE (at, next, &from->way->queue) {
    link_piece_t *piece = tnk__container_of(at, link_piece_t, link);
    if (piece->from == from) {
      from->way->n_queued -= piece->n;
      free_piece(at);
    }
  }
  while ((node = tnk__list_first(&from->flight)) != NULL)
    free_piece(node);
  tnk__timer_stop(&from->timer);
}

void link__way_init(test_link_t *link, int direction) {
  link_way_t *way = &link->ways[direction];

  way->owner = link;
  way->direction = direction;
  tnk__list_init(&way->queue);
  tnk__list_init(&way->waiting);
}

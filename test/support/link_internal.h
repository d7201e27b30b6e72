/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SUPPORT_LINK_INTERNAL_H
#define TNK_TEST_SUPPORT_LINK_INTERNAL_H

#include <stdio.h>
#include <stdlib.h>

#include "lib/base/list.h"
#include "support/link.h"

/* What link.c (what it is told), link_conn.c (connections) and link_way.c
 * (the bytes' way) share. Memory is the test's own. */

enum { LINK_PIECE = 4096, LINK_WINDOW = 1 << 20, LINK_QUEUE = 65536 };
enum { LINK_UP, LINK_DOWN };

typedef enum {
  LINK_WAIT,
  LINK_REFUSE,
  LINK_CLOSE,
  LINK_RESET,
  LINK_503
} link_limit_t;

struct link_side;

/* What a socket is known by, since all are on one machine. */
typedef struct {
  uint16_t own;
  uint16_t other;
} link_ports_t;

/* Bytes of a connection, or its end in this direction. */
typedef struct {
  tnk__list_t link;
  struct link_side *from;
  uint64_t at_us; /* when it entered; then, when it arrives */
  uv_write_t write;
  size_t n; /* 0: the end */
  int is_reset;
  char data[];
} link_piece_t;

/* One direction, of all connections. */
typedef struct {
  struct test_link *owner;
  int direction;
  tnk__list_t queue;   /* pieces that have not left yet, in order */
  tnk__list_t waiting; /* sides that find no room in it, in order */
  size_t n_queued;     /* bytes in it */
  uint64_t free_us;    /* when the last piece has left */
  tnk__timer_t timer;  /* the first one leaves */
} link_way_t;

/* One of the two sockets of a connection. */
typedef struct link_side {
  tnk__list_t link; /* in `waiting` */
  struct link_pair *pair;
  link_way_t *way;     /* what comes from here goes this way ... */
  size_t n_held;       /* ... and so much of it has not been delivered */
  tnk__list_t flight;  /* pieces from here that have left, in order */
  tnk__timer_t timer;  /* the first of them arrives */
  uint64_t arrives_us; /* the last of them */
  uv_tcp_t tcp;
  link_ports_t ports; /* 0: not asked for yet */
  uv_shutdown_t shutdown;
  int is_reading;
  int is_admitted; /* it is its turn */
  int is_draining; /* was told of the end; what it says is dropped */
  int is_closed;
} link_side_t;

typedef struct link_pair {
  tnk__list_t link;
  struct test_link *owner;
  link_side_t sides[2]; /* the client's, whose bytes go up; the server's */
  uv_connect_t connect;
  tnk__timer_t birth; /* the client's bytes may come */
  int n_gone;         /* sockets that libuv has let go of */
  int is_dead;
  int is_counted; /* among those that are limited */
  int is_turned_away;
} link_pair_t;

struct test_link {
  uv_loop_t *uv;
  tnk__context_t clock;
  uv_tcp_t *listener; /* NULL: nobody listens */
  int held;           /* keeps the port meanwhile; 0: not */
  int has_waiting;    /* a connection that was not accepted */
  uint16_t port;
  uint16_t target_port;
  char url[40];
  uint64_t delay_ms;
  uint64_t bytes_per_s;
  size_t queue_bytes;
  unsigned loss;
  size_t max_open;
  link_limit_t limit;
  int is_paused;
  int is_away; /* nobody listens, whatever the limit */
  uint64_t random;
  link_way_t ways[2];
  tnk__list_t pairs;
  tnk__list_t orders; /* for later */
  test_link_counts_t counts;
};

#define LINK_MUST(cond)                                                        \
  do {                                                                         \
    if (!(cond)) {                                                             \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);               \
      abort();                                                                 \
    }                                                                          \
  } while (0)

/* link_way.c */
void link__way_init(test_link_t *link, int direction);
/* n 0 is the end. The bytes are copied. */
void link__enter(link_side_t *from, const void *data, size_t n, int is_reset);
/* Let go what may leave by now. */
void link__pump(link_way_t *way);
/* So many bytes may be read now for that direction. */
size_t link__room(const link_way_t *way);
/* Let those read that wait for room. */
void link__admit(link_way_t *way);
/* Forget what is on its way from here. */
void link__drop(link_side_t *from);

/* link_conn.c */
void link__listen(test_link_t *link);
void link__stop_listening(test_link_t *link);
void link__read(link_side_t *side);
void link__close_side(link_side_t *side, int reset);
void link__close_pair(link_pair_t *pair, int reset);
/* A piece has arrived; it is the callee's. */
void link__deliver(link_side_t *to, link_piece_t *piece);
/* The limit has changed, or a connection has ended. */
void link__check_limit(test_link_t *link);

static inline link_side_t *link__peer(link_side_t *side) {
  return &side->pair->sides[side == &side->pair->sides[0]];
}

#endif

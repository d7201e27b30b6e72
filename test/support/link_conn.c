/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "lib/base/alloc.h"
#include "support/link_internal.h"
#include "support/port.h"

/*
 * Connections: one socket to the client, one to the server. What is read from
 * one enters the way to the other.
 */

static int is_full(const test_link_t *link) {
  return link->max_open > 0 && link->counts.n_open >= link->max_open;
}

/* ---- Closing ---- */

static void on_side_closed(uv_handle_t *handle) {
  link_side_t *side = handle->data;
  link_pair_t *pair = side->pair;
  test_link_t *link = pair->owner;

  if (++pair->n_gone == 2) {
    tnk__list_remove(&pair->link);
    free(pair);
  }
  tnk__context_release(&link->clock);
}

void link__close_side(link_side_t *side, int reset) {
  link_pair_t *pair = side->pair;

  if (side->is_closed)
    return;
  side->is_closed = 1;
  side->is_reading = 0;
  tnk__list_remove(&side->link);
  link__drop(link__peer(side));
  /* Nor does anybody wait for what it has sent itself: its timer would outlive
   * the pair. */
  if (link__peer(side)->is_closed)
    link__drop(side);
  if (!reset || uv_tcp_close_reset(&side->tcp, on_side_closed) != 0)
    uv_close((uv_handle_t *)&side->tcp, on_side_closed);
  if (side != &pair->sides[0])
    return;
  tnk__timer_stop(&pair->birth);
  if (pair->is_counted)
    pair->owner->counts.n_open--;
  link__check_limit(pair->owner);
}

void link__close_pair(link_pair_t *pair, int reset) {
  link__close_side(&pair->sides[0], reset);
  link__close_side(&pair->sides[1], reset);
}

/* ---- Reading ---- */

static void stop_reading(link_side_t *side) {
  side->is_reading = 0;
  uv_read_stop((uv_stream_t *)&side->tcp);
}

/* Everybody reads one piece and then goes to the end of the line; whose turn it
 * was in vain, to its beginning. */
static void wait_for_room(link_side_t *side, int in_vain) {
  stop_reading(side);
  if (in_vain && side->is_admitted)
    tnk__list_prepend(&side->way->waiting, &side->link);
  else
    tnk__list_append(&side->way->waiting, &side->link);
  side->is_admitted = 0;
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  static _Thread_local char scratch[65536];
  const link_side_t *side = handle->data;
  const test_link_t *link = side->pair->owner;
  size_t n = sizeof(scratch);

  (void)hint;
  if (!side->is_draining && !side->pair->is_dead &&
      (link->bytes_per_s > 0 || link->loss > 0))
    n = LINK_PIECE;
  if (!side->is_draining && n > link__room(side->way))
    n = link__room(side->way);
  *buf = uv_buf_init(scratch, (unsigned)n);
}

/* An edge says so in HTTP, whatever was asked. */
static void answer_503(link_side_t *side) {
  static const char answer[] =
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\n"
      "Content-Length: 38\r\nConnection: close\r\n\r\n"
      "<html><title>Try later</title></html>\n";

  side->is_draining = 1;
  uv_try_write((uv_stream_t *)&side->tcp,
               &(uv_buf_t){.base = (char *)answer, .len = sizeof(answer) - 1},
               1);
  if (uv_shutdown(&side->shutdown, (uv_stream_t *)&side->tcp, NULL) != 0)
    link__close_side(side, 0);
}

static void on_bytes(link_side_t *side, const char *data, size_t n) {
  const link_pair_t *pair = side->pair;

  if (side->is_draining || pair->is_dead)
    return;
  if (pair->is_turned_away) {
    answer_503(side);
    return;
  }
  pair->owner->counts.n_bytes[side->way->direction] += n;
  link__enter(side, data, n, 0);
  if (side->is_closed)
    return;
  if (side->n_held >= LINK_WINDOW) {
    stop_reading(side);
  } else if (pair->owner->bytes_per_s > 0) {
    wait_for_room(side, 0);
    link__admit(side->way);
  }
}

static void on_end(link_side_t *side, int is_reset) {
  link_pair_t *pair = side->pair;

  stop_reading(side);
  if (!pair->is_dead && !pair->is_turned_away && !side->is_draining)
    link__enter(side, NULL, 0, is_reset);
  link__close_side(side, 0);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  link_side_t *side = stream->data;

  if (n > 0)
    on_bytes(side, buf->base, (size_t)n);
  else if (n == UV_ENOBUFS)
    wait_for_room(side, 1);
  else if (n < 0)
    on_end(side, n == UV_ECONNRESET);
}

void link__read(link_side_t *side) {
  if (side->is_closed || side->is_reading || side->n_held >= LINK_WINDOW)
    return;
  side->is_reading = 1;
  LINK_MUST(uv_read_start((uv_stream_t *)&side->tcp, on_alloc, on_read) == 0);
}

/* ---- Writing ---- */

static void on_written(uv_write_t *write, int status) {
  link_piece_t *piece = tnk__container_of(write, link_piece_t, write);
  link_side_t *from = piece->from;

  (void)status;
  from->n_held -= piece->n;
  free(piece);
  if (tnk__list_empty(&from->link))
    link__read(from);
}

static void deliver_end(link_side_t *to, int is_reset) {
  to->is_draining = 1;
  tnk__list_remove(&to->link);
  link__read(to);
  if (is_reset ||
      uv_shutdown(&to->shutdown, (uv_stream_t *)&to->tcp, NULL) != 0)
    link__close_side(to, is_reset);
}

void link__deliver(link_side_t *to, link_piece_t *piece) {
  uv_buf_t buf = uv_buf_init(piece->data, (unsigned)piece->n);

  if (to->is_closed) {
    free(piece);
  } else if (piece->n == 0) {
    deliver_end(to, piece->is_reset);
    free(piece);
  } else if (uv_write(&piece->write, (uv_stream_t *)&to->tcp, &buf, 1,
                      on_written) != 0) {
    free(piece);
    link__close_pair(to->pair, 1);
  }
}

/* ---- Accepting ---- */

static void begin(link_pair_t *pair) {
  link__read(&pair->sides[0]);
  if (!pair->is_turned_away)
    link__read(&pair->sides[1]);
}

static void on_birth(tnk__timer_t *timer) {
  begin(tnk__container_of(timer, link_pair_t, birth));
}

static void be_born(link_pair_t *pair) {
  test_link_t *link = pair->owner;

  if (link->delay_ms == 0)
    begin(pair);
  else
    tnk__timer_start_background(&link->clock, &pair->birth, 2 * link->delay_ms,
                                on_birth);
}

static void on_connected(uv_connect_t *connect, int status) {
  link_pair_t *pair = connect->data;

  if (pair->sides[0].is_closed)
    link__close_side(&pair->sides[1], 0);
  else if (pair->sides[1].is_closed)
    return;
  else if (status != 0)
    link__close_pair(pair, 1);
  else
    be_born(pair);
}

static void connect_on(link_pair_t *pair) {
  test_link_t *link = pair->owner;
  struct sockaddr_in address;

  pair->is_counted = 1;
  link->counts.n_connections++;
  if (++link->counts.n_open > link->counts.n_most_open)
    link->counts.n_most_open = link->counts.n_open;
  pair->connect.data = pair;
  uv_ip4_addr("127.0.0.1", link->target_port, &address);
  if (uv_tcp_connect(&pair->connect, &pair->sides[1].tcp,
                     (const struct sockaddr *)&address, on_connected) != 0)
    link__close_pair(pair, 1);
  link__check_limit(link);
}

static void turn_away(link_pair_t *pair) {
  const link_limit_t limit = pair->owner->limit;

  pair->is_turned_away = 1;
  pair->owner->counts.n_turned_away++;
  if (limit == LINK_503) {
    link__close_side(&pair->sides[1], 0);
    be_born(pair);
  } else {
    link__close_pair(pair, limit == LINK_RESET);
  }
}

static void init_side(link_pair_t *pair, int i) {
  link_side_t *side = &pair->sides[i];

  side->pair = pair;
  side->way = &pair->owner->ways[i];
  tnk__list_init(&side->link);
  tnk__list_init(&side->flight);
  LINK_MUST(uv_tcp_init(pair->owner->uv, &side->tcp) == 0);
  side->tcp.data = side;
  tnk__context_hold(&pair->owner->clock);
}

static void accept_one(test_link_t *link) {
  link_pair_t *pair = calloc(1, sizeof(*pair));

  LINK_MUST(pair != NULL);
  pair->owner = link;
  tnk__list_append(&link->pairs, &pair->link);
  for (int i = 0; i < 2; i++)
    init_side(pair, i);
  LINK_MUST(uv_accept((uv_stream_t *)link->listener,
                      (uv_stream_t *)&pair->sides[0].tcp) == 0);
  for (int i = 0; i < 2; i++) {
    uv_tcp_nodelay(&pair->sides[i].tcp, 1);
    uv_unref((uv_handle_t *)&pair->sides[i].tcp);
  }
  if (is_full(link))
    turn_away(pair);
  else
    connect_on(pair);
}

static void on_connection(uv_stream_t *listener, int status) {
  test_link_t *link = listener->data;

  LINK_MUST(status == 0);
  if (is_full(link) && link->limit == LINK_WAIT)
    link->has_waiting = 1;
  else
    accept_one(link);
}

/* ---- Listening ---- */

static void on_listener_closed(uv_handle_t *handle) {
  test_link_t *link = handle->data;

  free(handle);
  tnk__context_release(&link->clock);
}

void link__stop_listening(test_link_t *link) {
  if (link->listener == NULL)
    return;
  uv_close((uv_handle_t *)link->listener, on_listener_closed);
  link->listener = NULL;
  link->has_waiting = 0;
  link->held = port_hold((uint16_t)link->port);
}

void link__listen(test_link_t *link) {
  uv_tcp_t *listener = calloc(1, sizeof(*listener));
  struct sockaddr_in address;
  int size = sizeof(address);

  LINK_MUST(listener != NULL);
  LINK_MUST(uv_tcp_init(link->uv, listener) == 0);
  tnk__context_hold(&link->clock);
  listener->data = link;
  link->listener = listener;
  if (link->held <= 0)
    link->held = port_hold((uint16_t)link->port);
  LINK_MUST(uv_tcp_open(listener, link->held) == 0);
  link->held = 0;
  LINK_MUST(uv_listen((uv_stream_t *)listener, 4096, on_connection) == 0);
  uv_unref((uv_handle_t *)listener);
  LINK_MUST(uv_tcp_getsockname(listener, (struct sockaddr *)&address, &size) ==
            0);
  link->port = ntohs(address.sin_port);
}

void link__check_limit(test_link_t *link) {
  const int refuses =
      link->is_away || (link->limit == LINK_REFUSE && is_full(link));

  if (link->clock.closing)
    return;
  if (refuses)
    link__stop_listening(link);
  else if (link->listener == NULL)
    link__listen(link);
  while (!refuses && link->has_waiting && !is_full(link)) {
    link->has_waiting = 0;
    accept_one(link);
  }
}

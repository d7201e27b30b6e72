/* SPDX-License-Identifier: MIT */
#include "support/link.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "support/link_internal.h"
#include "support/port.h"
#include "tnk/error.h"

#ifdef __linux__
#include <asm/socket.h>
#include <linux/filter.h>
#include <sys/socket.h>
#endif

/* Words for later. */
typedef struct {
  tnk__list_t link;
  tnk__timer_t timer;
  test_link_t *owner;
  char words[];
} order_t;

/* ---- What befalls connections ---- */

static void end_all(test_link_t *link, int reset) {
  TNK__LIST_FOREACH_SAFE (node, next, &link->pairs)
    link__close_pair(tnk__container_of(node, link_pair_t, link), reset);
}

/* The system drops what comes for this socket before it looks at it: nothing
 * is confirmed any more. 0 where that cannot be had. */
static int make_deaf(uv_tcp_t *tcp) {
#ifdef SO_ATTACH_FILTER
  struct sock_filter nothing = {BPF_RET | BPF_K, 0, 0, 0};
  struct sock_fprog program = {1, &nothing};
  uv_os_fd_t fd;

  return uv_fileno((uv_handle_t *)tcp, &fd) == 0 &&
         setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                    sizeof(program)) == 0;
#else
  (void)tcp;
  return 0;
#endif
}

static int silence_all(test_link_t *link, int is_deaf) {
  int can = 1;

  TNK__LIST_FOREACH (node, &link->pairs) {
    link_pair_t *pair = tnk__container_of(node, link_pair_t, link);
    pair->is_dead = 1;
    if (is_deaf && !pair->sides[0].is_closed)
      can &= make_deaf(&pair->sides[0].tcp);
  }
  return can;
}

static void set_paused(test_link_t *link, int paused) {
  link->is_paused = paused;
  for (int i = 0; i < 2 && !paused; i++) {
    link->ways[i].free_us = tnk__context_now_ms(&link->clock) * 1000;
    link__pump(&link->ways[i]);
  }
}

static void set_away(test_link_t *link, int away) {
  link->is_away = away;
  link__check_limit(link);
  if (away)
    end_all(link, 1);
}

/* ---- Words ---- */

static int set_limit(test_link_t *link, const char *words) {
  static const char *const names[] = {"wait", "refuse", "close", "reset",
                                      "503"};
  char name[16] = "";
  unsigned n = 0;

  if (sscanf(words, "limit %u %15s", &n, name) < 1)
    return -1;
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (n > 0 && strcmp(name, names[i]) != 0)
      continue;
    link->max_open = n;
    link->limit = (link_limit_t)i;
    link__check_limit(link);
    return 0;
  }
  return -1;
}

static int set_number(test_link_t *link, const char *words) {
  unsigned n = 0;

  if (sscanf(words, "delay %u", &n) == 1)
    link->delay_ms = n;
  else if (sscanf(words, "rate %u", &n) == 1)
    link->bytes_per_s = (uint64_t)n * 125;
  else if (sscanf(words, "queue %u", &n) == 1 && n > 0)
    link->queue_bytes = n;
  else if (sscanf(words, "loss %u", &n) == 1 && n < 1000)
    link->loss = n;
  else
    return -1;
  for (int i = 0; i < 2; i++)
    link__pump(&link->ways[i]);
  return 0;
}

static void free_order(order_t *order) {
  tnk__timer_stop(&order->timer);
  tnk__list_remove(&order->link);
  free(order);
}

static void on_order(tnk__timer_t *timer) {
  order_t *order = tnk__container_of(timer, order_t, timer);

  LINK_MUST(test_link_tell(order->owner, order->words) == 0);
  free_order(order);
}

static int tell_later(test_link_t *link, const char *words) {
  const size_t n = strlen(words) + 1;
  order_t *order;
  unsigned ms;
  int at = 0;

  if (sscanf(words, "@%u %n", &ms, &at) != 1 || words[at] == '\0')
    return -1;
  order = calloc(1, sizeof(*order) + n);
  LINK_MUST(order != NULL);
  order->owner = link;
  memcpy(order->words, words + at, n - (size_t)at);
  tnk__list_append(&link->orders, &order->link);
  tnk__timer_start_background(&link->clock, &order->timer, ms, on_order);
  return 0;
}

int test_link_tell(test_link_t *link, const char *words) {
  if (words[0] == '@')
    return tell_later(link, words);
  if (strcmp(words, "pause") == 0 || strcmp(words, "go") == 0)
    set_paused(link, words[0] == 'p');
  else if (strcmp(words, "reset") == 0 || strcmp(words, "cut") == 0)
    end_all(link, words[0] == 'r');
  else if (strcmp(words, "away") == 0 || strcmp(words, "back") == 0)
    set_away(link, words[0] == 'a');
  else if (strcmp(words, "silence") == 0)
    silence_all(link, 0);
  else if (strcmp(words, "deaf") == 0)
    return silence_all(link, 1) ? 0 : -1;
  else if (strncmp(words, "limit ", 6) == 0)
    return set_limit(link, words);
  else
    return set_number(link, words);
  return 0;
}

/* ---- Opening and closing ---- */

test_link_t *test_link_open(uv_loop_t *uv, uint16_t target_port) {
  test_link_t *link = calloc(1, sizeof(*link));

  LINK_MUST(link != NULL);
  LINK_MUST(tnk__context_open(&link->clock, uv, tnk__allocator_default(),
                              NULL) == TNK_OK);
  link->uv = uv;
  link->target_port = target_port;
  link->queue_bytes = LINK_QUEUE;
  link->random = 88172645463325252u;
  tnk__list_init(&link->pairs);
  tnk__list_init(&link->orders);
  link__way_init(link, LINK_UP);
  link__way_init(link, LINK_DOWN);
  link__listen(link);
  snprintf(link->url, sizeof(link->url), "http://127.0.0.1:%u",
           (unsigned)link->port);
  return link;
}

static void on_closed(void *user) {
  free(user);
}

void test_link_close(test_link_t *link) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&link->orders)) != NULL)
    free_order(tnk__container_of(node, order_t, link));
  tnk__context_close(&link->clock, on_closed, link);
  link__stop_listening(link);
  port_release(&link->held);
  end_all(link, 0);
  for (int i = 0; i < 2; i++)
    tnk__timer_stop(&link->ways[i].timer);
}

tnk__context_t *test_link_clock(test_link_t *link) {
  return &link->clock;
}

uint16_t test_link_port(const test_link_t *link) {
  return link->port;
}

const char *test_link_url(const test_link_t *link) {
  return link->url;
}

const test_link_counts_t *test_link_counts(const test_link_t *link) {
  return &link->counts;
}

/* ---- Who waits for the system ---- */

static uint16_t port_of(const struct sockaddr_storage *address) {
  return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

static link_ports_t ports_of(const uv_tcp_t *tcp) {
  struct sockaddr_storage own;
  struct sockaddr_storage other;
  int n_own = sizeof(own);
  int n_other = sizeof(other);

  if (uv_tcp_getsockname(tcp, (struct sockaddr *)&own, &n_own) != 0 ||
      uv_tcp_getpeername(tcp, (struct sockaddr *)&other, &n_other) != 0)
    return (link_ports_t){0};
  return (link_ports_t){port_of(&own), port_of(&other)};
}

static int reads_from(link_side_t *side, link_ports_t ports) {
  if (side->is_closed || !side->is_reading || side->pair->is_dead)
    return 0;
  if (side->ports.own == 0)
    side->ports = ports_of(&side->tcp);
  return side->ports.own == ports.other && side->ports.other == ports.own;
}

typedef struct {
  const test_link_t *link;
  int is_awaited;
} look_t;

static void look_at(uv_handle_t *handle, void *user) {
  look_t *look = user;
  link_ports_t ports;

  if (handle->type != UV_TCP || uv_is_closing(handle) ||
      uv_stream_get_write_queue_size((uv_stream_t *)handle) == 0)
    return;
  ports = ports_of((uv_tcp_t *)handle);
  if (ports.own == 0)
    return;
  TNK__LIST_FOREACH (node, &look->link->pairs) {
    link_pair_t *pair = tnk__container_of(node, link_pair_t, link);
    for (int i = 0; i < 2; i++)
      look->is_awaited |= reads_from(&pair->sides[i], ports);
  }
}

int test_link_is_awaited(const test_link_t *link) {
  look_t look = {.link = link};

  uv_walk(link->uv, look_at, &look);
  return look.is_awaited;
}

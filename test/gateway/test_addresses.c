/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "gateway/store/shared.h"
#include "support/test.h"
#include "tnk/error.h"

/* The store of a shared record has a name with several addresses. Looking it
 * up and connecting go through the functions below. The clock is the test's. */

enum { MAX_ADDRESSES = 4, NEXT_MS = 250, SILENCE_MS = 5000 };

typedef enum {
  LISTENS,
  REFUSES,
  IMPOSSIBLE, /* uv_tcp_connect() fails */
  SILENT
} manner_t;

static struct {
  uv_loop_t loop;
  uv_tcp_t listener;
  uv_tcp_t refusing; /* bound, but does not listen */
  uv_tcp_t conn;
  struct sockaddr_in listens, refuses;
  manner_t manners[MAX_ADDRESSES];
  struct addrinfo found[MAX_ADDRESSES];
  size_t n_tried;
  size_t n_accepted;
  size_t n_freed;
  uv_timer_t timer;
  uv_getaddrinfo_t *req;
  uv_getaddrinfo_cb cb;
  tnk__gw_shared_t *shared;
  int n_closed;
} rig;

/* ---- What libuv would do ---- */

int __real_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *handle,
                          const struct sockaddr *to, uv_connect_cb cb);
int __wrap_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *handle,
                          const struct sockaddr *to, uv_connect_cb cb);
int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req,
                          uv_getaddrinfo_cb cb, const char *node,
                          const char *service, const struct addrinfo *hints);
void __wrap_uv_freeaddrinfo(struct addrinfo *found);

int __wrap_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *handle,
                          const struct sockaddr *to, uv_connect_cb cb) {
  switch (rig.manners[rig.n_tried++]) {
  case IMPOSSIBLE:
    return UV_EADDRNOTAVAIL;
  case SILENT:
    return 0;
  case LISTENS:
  case REFUSES:
    break;
  }
  return __real_uv_tcp_connect(req, handle, to, cb);
}

static void on_found(uv_timer_t *timer) {
  uv_close((uv_handle_t *)timer, NULL);
  rig.cb(rig.req, 0, rig.found);
}

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req,
                          uv_getaddrinfo_cb cb, const char *node,
                          const char *service, const struct addrinfo *hints) {
  (void)service, (void)hints;
  CHECK_STR(node, "store.example");
  rig.req = req;
  rig.cb = cb;
  req->type = UV_UNKNOWN_REQ; /* it cannot be canceled */
  CHECK_INT(uv_timer_init(loop, &rig.timer), 0);
  return uv_timer_start(&rig.timer, on_found, 0, 0);
}

void __wrap_uv_freeaddrinfo(struct addrinfo *found) {
  rig.n_freed += found != NULL;
}

/* ---- The rig ---- */

static void on_conn(uv_stream_t *listener, int status) {
  CHECK_INT(status, 0);
  CHECK_INT(rig.n_accepted++, 0);
  CHECK_INT(uv_tcp_init(&rig.loop, &rig.conn), 0);
  CHECK_INT(uv_accept(listener, (uv_stream_t *)&rig.conn), 0);
}

/* All addresses of a name have the same port. */
static void bind_to(uv_tcp_t *tcp, const char *address, int port,
                    struct sockaddr_in *at) {
  int n = sizeof(*at);

  CHECK_INT(uv_tcp_init(&rig.loop, tcp), 0);
  uv_ip4_addr(address, port, at);
  CHECK_INT(uv_tcp_bind(tcp, (struct sockaddr *)at, 0), 0);
  CHECK_INT(uv_tcp_getsockname(tcp, (struct sockaddr *)at, &n), 0);
}

static int on_line(void *user, const char *line, size_t n, const char *id,
                   int is_own) {
  (void)user, (void)line, (void)n, (void)id, (void)is_own;
  return TNK_OK;
}

static void rig_open(const manner_t *manners, size_t n) {
  char url[64];
  tnk__gw_where_t where;
  const tnk__gw_shared_options_t options = {.alloc = test_allocator(),
                                            .where = &where,
                                            .has_no_timer = 1,
                                            .on_line = on_line};

  memset(&rig, 0, sizeof(rig));
  CHECK_INT(uv_loop_init(&rig.loop), 0);
  bind_to(&rig.listener, "127.0.0.1", 0, &rig.listens);
  CHECK_INT(uv_listen((uv_stream_t *)&rig.listener, 8, on_conn), 0);
  bind_to(&rig.refusing, "127.0.0.2", ntohs(rig.listens.sin_port),
          &rig.refuses);
  for (size_t i = 0; i < n; i++) {
    rig.manners[i] = manners[i];
    rig.found[i].ai_family = AF_INET;
    rig.found[i].ai_addr =
        (struct sockaddr *)(manners[i] == LISTENS ? &rig.listens
                                                  : &rig.refuses);
    rig.found[i].ai_next = i + 1 < n ? &rig.found[i + 1] : NULL;
  }
  snprintf(url, sizeof(url), "valkey://store.example:%d/x",
           ntohs(rig.listens.sin_port));
  CHECK(tnk__gw_where_read(url, &where) == NULL);
  CHECK_INT(tnk__gw_shared_new(&rig.shared, &options), TNK_OK);
  CHECK_INT(tnk__gw_shared_begin(rig.shared, &rig.loop), TNK_OK);
  tnk__gw_shared_tick(rig.shared, 0);
}

static void on_closed(void *user) {
  (void)user;
  rig.n_closed++;
}

static void rig_close(void) {
  tnk__gw_shared_close(rig.shared, on_closed, NULL);
  uv_close((uv_handle_t *)&rig.listener, NULL);
  uv_close((uv_handle_t *)&rig.refusing, NULL);
  if (rig.n_accepted > 0)
    uv_close((uv_handle_t *)&rig.conn, NULL);
  uv_run(&rig.loop, UV_RUN_DEFAULT);
  CHECK_INT(rig.n_closed, 1);
  CHECK_INT(rig.n_freed, 1);
  CHECK_INT(uv_loop_close(&rig.loop), 0);
}

#define SPIN(cond)                                                             \
  while (!(cond))                                                              \
  uv_run(&rig.loop, UV_RUN_NOWAIT)

static void until_lost(const char *part) {
  const char *why = NULL;

  SPIN((why = tnk__gw_shared_why(rig.shared)) != NULL &&
       strstr(why, "being opened") == NULL);
  if (strstr(why, part) == NULL)
    test_fail(__FILE__, __LINE__, "it says: %s", why);
}

#define OPEN(...)                                                              \
  rig_open((const manner_t[]){__VA_ARGS__},                                    \
           sizeof((const manner_t[]){__VA_ARGS__}) / sizeof(manner_t))

/* ---- Tests ---- */

TEST(the_next_address_is_tried_when_one_refuses) {
  OPEN(REFUSES, IMPOSSIBLE, REFUSES, LISTENS);
  SPIN(rig.n_accepted > 0);
  CHECK_INT(rig.n_tried, 4);
  rig_close();
}

TEST(the_first_address_that_accepts_is_used) {
  OPEN(LISTENS, REFUSES);
  SPIN(rig.n_accepted > 0);
  CHECK_INT(rig.n_tried, 1);
  rig_close();
}

TEST(a_store_that_refuses_at_all_addresses_is_lost) {
  OPEN(REFUSES, REFUSES);
  until_lost("connection refused");
  CHECK_INT(rig.n_tried, 2);
  rig_close();

  OPEN(REFUSES, IMPOSSIBLE);
  until_lost("cannot connect");
  CHECK_INT(rig.n_tried, 2);
  rig_close();
}

TEST(the_next_address_is_tried_when_one_is_silent) {
  OPEN(SILENT, LISTENS);
  SPIN(rig.n_tried == 1);
  tnk__gw_shared_tick(rig.shared, NEXT_MS - 1);
  CHECK_INT(rig.n_tried, 1);
  tnk__gw_shared_tick(rig.shared, NEXT_MS);
  SPIN(rig.n_accepted > 0);
  CHECK_INT(rig.n_tried, 2);
  rig_close();

  OPEN(REFUSES, SILENT);
  SPIN(rig.n_tried == 2);
  tnk__gw_shared_tick(rig.shared, SILENCE_MS - 1);
  CHECK_STR(tnk__gw_shared_why(rig.shared),
            "the shared record is being opened");
  tnk__gw_shared_tick(rig.shared, SILENCE_MS);
  until_lost("timed out");
  rig_close();
}

/* Close in each turn of the loop, so also while a handle is being replaced. */
TEST(it_closes_at_any_time) {
  for (int n = 0; n < 12; n++) {
    OPEN(REFUSES, IMPOSSIBLE, SILENT, LISTENS);
    for (int i = 0; i < n; i++)
      uv_run(&rig.loop, UV_RUN_NOWAIT);
    tnk__gw_shared_tick(rig.shared, SILENCE_MS);
    rig_close();
  }
}

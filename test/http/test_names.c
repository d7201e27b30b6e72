/* SPDX-License-Identifier: MIT */
/* What a look-up that takes its time does to exchanges and connections. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fixture.h"

/* ---- The system's resolver, as slow as a case wants ---- */

static uv_sem_t gate;
static int out_of_descriptors;

/* In the place of the system's: every name is this machine's, and is told when
 * the gate lets it through. */
int getaddrinfo(const char *node, const char *service,
                const struct addrinfo *hints, struct addrinfo **out) {
  struct sockaddr_in *address;
  struct addrinfo *info;

  (void)node;
  (void)service;
  (void)hints;
  uv_sem_wait(&gate);
  if (out_of_descriptors) {
    errno = EMFILE;
    return EAI_SYSTEM;
  }
  info = calloc(1, sizeof(*info) + sizeof(*address));
  if (info == NULL)
    return EAI_MEMORY;
  address = (struct sockaddr_in *)(void *)(info + 1);
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  info->ai_family = AF_INET;
  info->ai_socktype = SOCK_STREAM;
  info->ai_addrlen = sizeof(*address);
  info->ai_addr = (struct sockaddr *)(void *)address;
  *out = info;
  return 0;
}

void freeaddrinfo(struct addrinfo *info) {
  free(info);
}

static void open_named(fixture_t *f) {
  CHECK_INT(uv_sem_init(&gate, 0), 0);
  fixture_open(f);
}

static void close_named(fixture_t *f) {
  fixture_close(f);
  uv_sem_destroy(&gate);
}

static void start_named(fixture_t *f, call_t *call, const char *target) {
  tnk__http_request_t request =
      request_to(f->mock, TNK__LANE_TRAIN, "GET", target);

  request.origin.host = "server.test";
  request.replayable = 1;
  call_send(f, call, &request);
}

static rlim_t set_limit(rlim_t n) {
  struct rlimit limit;
  rlim_t before;

  CHECK_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
  before = limit.rlim_cur;
  limit.rlim_cur = n;
  CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
  return before;
}

/* No descriptor can be opened any more; the limit that there was. */
static rlim_t exhaust_descriptors(void) {
  int fd = dup(0);

  CHECK(fd >= 0);
  close(fd);
  return set_limit((rlim_t)fd);
}

static void answer_one_look_up(fixture_t *f) {
  uv_sem_post(&gate);
  mock_turns(f->mock, 1);
}

static void run_until_connections(fixture_t *f, size_t n) {
  while (f->http.n_connections != n)
    mock_turns(f->mock, 1);
}

/* The first connection is there; the answer of its look-up is out of date. */
static void connect_first(fixture_t *f) {
  call_t call;

  start_named(f, &call, "/ok");
  answer_one_look_up(f);
  call_wait(f, &call);
  CHECK_INT(call.err, TNK_OK);
  tnk__context_advance(&f->c.loop, 31000);
  CHECK_INT(f->http.n_connections, 1);
}

/* Its look-up took so long that the exchange has been served by another one;
 * then there are no descriptors left for it. That costs nobody anything. */
TEST(a_connection_that_nobody_waits_for_makes_itself_no_room) {
  fixture_t f;
  call_t calls[2];
  rlim_t limit;

  mock_only_http1("the other exchange would share the connection");
  open_named(&f);
  connect_first(&f);
  for (int i = 0; i < 2; i++)
    start_named(&f, &calls[i], "/ok");
  for (int i = 0; i < 2; i++) {
    call_wait(&f, &calls[i]);
    CHECK_INT(calls[i].err, TNK_OK);
  }
  CHECK_INT(f.http.n_connections, 2);
  limit = exhaust_descriptors();
  answer_one_look_up(&f);
  run_until_connections(&f, 1);
  set_limit(limit);
  CHECK(!tnk__list_empty(&f.http.pools));
  start_named(&f, &calls[0], "/ok");
  call_wait(&f, &calls[0]);
  CHECK_INT(mock_n_connections(f.mock), 1);
  close_named(&f);
}

/* The server closes the connection as the second request comes; the new
 * connection for it finds no descriptor when its look-up ends. An unused one is
 * closed, and the next connection is asked for inside that look-up's answer. */
TEST(a_connection_that_gets_room_from_another_looks_its_name_up_at_once) {
  fixture_t f;
  call_t held;
  call_t call;
  rlim_t limit;

  mock_only_http1("the other exchange would share the connection");
  open_named(&f);
  mock_on(f.mock, NULL, "/slow", mock_hold, NULL);
  start_named(&f, &held, "/slow");
  start_named(&f, &call, "/ok");
  answer_one_look_up(&f);
  call_wait(&f, &call);
  mock_wait(f.mock, 2);
  CHECK_INT(f.http.n_connections, 2);
  tnk__context_advance(&f.c.loop, 31000);
  mock_once(f.mock, NULL, "/cut", mock_cut, NULL);
  mock_json(f.mock, NULL, "/cut", 200, "{}");
  start_named(&f, &call, "/cut");
  mock_wait(f.mock, 3);
  mock_turns(f.mock, 5);
  /* The other connection becomes unused while the look-up is under way, and
   * only a new one is good enough. */
  mock_release(f.mock, 200, "{}");
  call_wait(&f, &held);
  CHECK_INT(call.n_done, 0);
  CHECK_INT(f.http.n_connections, 2);
  limit = exhaust_descriptors();
  answer_one_look_up(&f);
  run_until_connections(&f, 1);
  set_limit(limit);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(call.status, 200);
  close_named(&f);
}

/* The resolver needs descriptors too. */
TEST(a_look_up_without_a_descriptor_waits_for_what_is_under_way) {
  fixture_t f;
  call_t held;
  call_t call;

  mock_only_http1("the other exchange would share the connection");
  open_named(&f);
  start_named(&f, &held, "/hold");
  answer_one_look_up(&f);
  mock_wait(f.mock, 1);
  tnk__context_advance(&f.c.loop, 31000);
  out_of_descriptors = 1;
  start_named(&f, &call, "/ok");
  mock_turns(f.mock, 2);
  uv_sem_post(&gate);
  run_until_connections(&f, 1);
  mock_turns(f.mock, 5);
  CHECK_INT(call.n_done, 0);
  out_of_descriptors = 0;
  mock_release(f.mock, 200, "{}");
  call_wait(&f, &held);
  call_wait(&f, &call);
  CHECK_INT(call.err, TNK_OK);
  CHECK_INT(call.status, 200);
  close_named(&f);
}

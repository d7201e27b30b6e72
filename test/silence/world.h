/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SILENCE_WORLD_H
#define TNK_TEST_SILENCE_WORLD_H

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/api/hub.h"
#include "support/mock_http2.h"
#include "support/proxy.h"
#include "support/tree.h"
#include "task/kinds.h"

/*
 * One service or hub on a fake clock, a scripted server, and the way between
 * them: TLS or not, directly or through a proxy. The world runs in steps: the
 * loop turns until nothing is left to do, then time jumps to the next timer.
 */

typedef enum { WAY_DIRECT = 0, WAY_FORWARD, WAY_CONNECT, WAY_SOCKS } way_t;

typedef struct {
  const char *name;
  int is_http2;
  int is_tls;
  way_t way;
  int is_tls_proxy; /* the connection to the proxy is encrypted as well */
} transport_t;

/* What the options of every service and hub here say, in milliseconds. */
enum {
  CONNECT_MS = 2000,
  TIMEOUT_MS = 5000,
  POLL_MS = 8000,
  SILENCE_MS = 4000, /* of downloads and streams */
  RETRIES = 2,
  PATIENCE_MS = 20000,
  BILLING_MS = 12000
};

enum { MAX_SEEN = 24 };

struct operation;
struct fate;

typedef struct world {
  script_t script; /* first; of a hub without a service */
  const transport_t *transport;
  const struct operation *op;
  tnk__context_t *context; /* whose clock it is */
  tnk_hub_t *hub;
  test_proxy_t front;
  test_proxy_t proxy;
  test_proxy_t cover; /* takes TLS off what goes to the proxy */
  int has_front;
  int has_proxy;
  int has_cover;
  char url[64];
  char dir[40]; /* "": none was needed */
  outcome_t outcome;
  outcome_t kept; /* of what the operation needs, such as a ledger */
  tnk_promise_t *promise;
  /* The fate. */
  const struct fate *fate;
  size_t stage;    /* the request of the operation from which on it holds */
  int is_counting; /* the operation has begun */
  int is_armed;
  int is_on_poll;      /* it struck a poll, so the operation was accepted */
  size_t n_seen;       /* requests of the operation */
  size_t first_struck; /* index of the mock's request; SIZE_MAX: none */
  char seen[MAX_SEEN][120]; /* "METHOD path" */
  int blocker;              /* a socket that answers no SYN; -1: none */
  int blocked[4];
  uint64_t next_tick_ms;
  int n_ticks;
  /* Counters of the run. */
  size_t n_timers;
  size_t n_events; /* requests and connections when the operation began */
  size_t most_turns;
  int n_states[TNK_QUEUE_MEMORY_LOST + 1];
  uint64_t state_ms[TNK_QUEUE_MEMORY_LOST + 1];
} world_t;

/* ---- The identity of all servers with TLS ---- */

/* It is signed by itself: with the signature of an authority, each of the many
 * handshakes would cost a fifth more. test/net/secure.h has such a chain. */
typedef struct {
  test_identity_t leaf;
  char ca_path[256];
} identities_t;

static inline identities_t *identities(void) {
  static identities_t own;
  static int is_made;
  const test_cert_t leaf = {.address = "127.0.0.1"};

  if (!is_made) {
    is_made = 1;
    test_identity_make(&own.leaf, &leaf);
    test_identity_save(&own.leaf, own.ca_path, sizeof(own.ca_path));
  }
  return &own;
}

static inline void identities_free(void) {
  identities_t *own = identities();

  unlink(own->ca_path);
  test_identity_free(&own->leaf);
}

/* ---- The way ---- */

static inline const char *const *alpn_of(const transport_t *transport) {
  static const char *const http1[] = {"http/1.1", NULL};
  static const char *const both[] = {"h2", "http/1.1", NULL};

  return transport->is_http2 ? both : http1;
}

static inline int needs_trust(const transport_t *transport) {
  return transport->is_tls || transport->is_tls_proxy;
}

/* A proxy speaks HTTP/1.1. */
static inline void cover_open(world_t *world, int port) {
  static const char *const http1[] = {"http/1.1", NULL};

  test_front_open(&world->cover, &world->script.uv, port, &identities()->leaf,
                  http1);
  world->has_cover = 1;
}

/* The server's own port is behind the front, that behind the proxy, and that
 * behind the cover. */
static inline void way_open(world_t *world, int wants_front) {
  const transport_t *transport = world->transport;
  uv_loop_t *uv = &world->script.uv;
  int port = mock_port(world->script.mock);

  if (transport->is_tls || wants_front) {
    test_front_open(&world->front, uv, port,
                    transport->is_tls ? &identities()->leaf : NULL,
                    transport->is_tls ? alpn_of(transport) : NULL);
    world->has_front = 1;
    port = world->front.server.port;
  }
  if (transport->way == WAY_CONNECT || transport->way == WAY_SOCKS) {
    test_proxy_open(&world->proxy, uv, port, 0);
    world->proxy.is_socks = transport->way == WAY_SOCKS;
    world->has_proxy = 1;
  }
  if (transport->is_tls_proxy)
    cover_open(world, world->has_proxy ? world->proxy.server.port : port);
  snprintf(world->url, sizeof(world->url), "%s://127.0.0.1:%d",
           transport->is_tls ? "https" : "http", port);
}

/* The server that the client connects to. */
static inline test_server_t *outer_of(world_t *world) {
  CHECK(world->has_front || world->has_proxy || world->has_cover);
  if (world->has_cover)
    return &world->cover.server;
  return world->has_proxy ? &world->proxy.server : &world->front.server;
}

static inline void way_proxy(world_t *world, char text[64]) {
  const way_t way = world->transport->way;
  const char *scheme = way == WAY_SOCKS   ? "socks5"
                       : world->has_cover ? "https"
                                          : "http";
  int port = mock_port(world->script.mock);

  text[0] = '\0';
  if (world->has_front || world->has_proxy || world->has_cover)
    port = outer_of(world)->port;
  if (way != WAY_DIRECT)
    snprintf(text, 64, "%s://127.0.0.1:%d", scheme, port);
}

static inline void way_close(world_t *world) {
  if (world->has_cover)
    test_proxy_close(&world->cover);
  if (world->has_proxy)
    test_proxy_close(&world->proxy);
  if (world->has_front)
    test_proxy_close(&world->front);
}

/* ---- Opening ---- */

static inline void on_state(const char *client, tnk_queue_state_t state,
                            const char *reason, void *user) {
  world_t *world = user;

  (void)client;
  (void)reason;
  if (world->n_states[state]++ == 0)
    world->state_ms[state] = tnk__context_now_ms(world->context);
}

/* With TNK_TEST_SILENCE_LOG in the environment, what is logged is printed. */
static inline void log_line(tnk_log_level_t level, const char *subject,
                            const char *message, size_t length, void *user) {
  const script_t *script = user;

  script_log(level, subject, message, length, user);
  if (getenv("TNK_TEST_SILENCE_LOG") != NULL && script->service != NULL)
    printf("# %llu ms %s: %.*s\n",
           (unsigned long long)tnk__context_now_ms(
               &script->service->root.context) -
               1000000,
           subject, (int)length, message);
}

static inline void world_folder(world_t *world) {
  if (world->dir[0] != '\0')
    return;
  snprintf(world->dir, sizeof(world->dir), "/tmp/tnk-silence-XXXXXX");
  CHECK(mkdtemp(world->dir) != NULL);
}

static inline void open_service(world_t *world, const char *command,
                                const char *proxy) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.credential_cmd = command;
  options.base_url = world->url;
  options.proxy = proxy;
  options.ca_file =
      needs_trust(world->transport) ? identities()->ca_path : NULL;
  options.http_version = !world->transport->is_http2 ? TNK_HTTP_1_1
                         : world->transport->is_tls
                             ? TNK_HTTP_AUTO
                             : TNK_HTTP_2_PRIOR_KNOWLEDGE;
  options.connect_timeout_ms = CONNECT_MS;
  options.timeout_ms = TIMEOUT_MS;
  options.poll_timeout_ms = POLL_MS;
  options.max_retries = RETRIES;
  options.patience_ms = PATIENCE_MS;
  options.max_billing_pause_ms = BILLING_MS;
  options.limiter_scope = TNK_LIMITER_PRIVATE;
  options.on_queue_state = on_state;
  options.queue_state_user = world;
  script_open_service(&world->script, options);
  world->context = &world->script.service->root.context;
  world->context->logger.write = log_line;
}

static inline void open_hub(world_t *world, const char *proxy) {
  const tnk_logger_t logger = {TNK_LOG_TRACE, script_log, &world->script};
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  char cache[64];
  char why[200];

  world_folder(world);
  snprintf(cache, sizeof(cache), "%s/cache", world->dir);
  options.endpoint = world->url;
  options.token = "hf_canary";
  options.cache_dir = cache;
  options.max_retries = RETRIES;
  options.connect_timeout_ms = CONNECT_MS;
  options.silence_timeout_ms = SILENCE_MS;
  options.proxy = proxy;
  options.ca_file =
      needs_trust(world->transport) ? identities()->ca_path : NULL;
  options.allocator = test_allocator();
  options.logger = &logger;
  if (tnk_hub_open(&world->hub, &world->script.uv, &options, why,
                   sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", why);
  world->context = &world->hub->root.context;
  tnk__context_fake_clock(world->context, 1000000);
  mock_set_clock(world->script.mock, world->context);
}

static inline void world_begin(world_t *world, const transport_t *transport,
                               int wants_front) {
  memset(world, 0, sizeof(*world));
  world->transport = transport;
  world->blocker = -1;
  world->first_struck = SIZE_MAX;
  script_begin(&world->script);
  way_open(world, wants_front);
}

/* ---- Steps ---- */

static inline uint64_t world_now(const world_t *world) {
  return tnk__context_now_ms(world->context);
}

/* Jobs that the thread pool has; see wrap.c. */
extern int silence_n_jobs;

/* Whether another turn of the loop would find nothing to do. */
static inline int is_quiet(world_t *world) {
  struct pollfd fd = {uv_backend_fd(&world->script.uv), POLLIN, 0};
  const int waits = silence_n_jobs > 0;

  if (poll(&fd, 1, waits ? 1 : 0) > 0 || waits)
    return 0;
  return uv_backend_timeout(&world->script.uv) != 0;
}

static inline int is_waiting_for_others(const world_t *world) {
  const tnk_service_t *service = world->script.service;

  return silence_n_jobs > 0 ||
         (service != NULL && service->session.renewal.command != NULL);
}

/* Turns without time: all, and those in a row in which the server neither reads
 * nor writes. A server that grants a window of one byte at a time takes eleven
 * turns for each byte, and more through a proxy. */
enum { MAX_TURNS = 40000, MAX_IDLE_TURNS = 4000, CALM_TURNS = 2 };

/* Turn the loop until it is quiet. No time passes, so whatever never comes to
 * rest here spins. */
static inline void world_rest(world_t *world) {
  size_t n = 0, n_idle = 0, n_bytes = 0;
  int n_calm = 0;

  while (n_calm < CALM_TURNS) {
    uv_run(&world->script.uv, UV_RUN_NOWAIT);
    n_calm = is_quiet(world) ? n_calm + 1 : 0;
    n_idle = mock_n_bytes(world->script.mock) == n_bytes ? n_idle : 0;
    n_bytes = mock_n_bytes(world->script.mock);
    if (is_waiting_for_others(world))
      n_calm = 0;
    else if (++n > MAX_TURNS || ++n_idle > MAX_IDLE_TURNS)
      test_fail(__FILE__, __LINE__, "the loop spins while no time passes");
  }
  if (n > world->most_turns)
    world->most_turns = n;
}

/* When the next timer is due; UINT64_MAX: there is none. */
static inline uint64_t next_due(const world_t *world) {
  const tnk__timer_t *next = world->context->timers.root;

  return next != NULL ? next->due_ms : UINT64_MAX;
}

/* Jump to a point in time, no further than the next timer. */
static inline void world_jump(world_t *world, uint64_t to_ms) {
  const uint64_t now = world_now(world);
  const uint64_t due = next_due(world);

  world->n_timers += due <= to_ms;
  if (due < to_ms)
    to_ms = due;
  tnk__context_advance(world->context, to_ms > now ? to_ms - now : 0);
}

/* Requests that have come, and connections that the client has tried to make.
 */
static inline size_t n_events(const world_t *world) {
  const tnk__http_t *http = world->hub != NULL
                                ? &world->hub->root.http
                                : &world->script.service->root.http;

  return mock_n_requests(world->script.mock) + (size_t)http->last_connection;
}

static inline void on_hub_closed(void *user) {
  ((world_t *)user)->script.is_closed++;
}

#endif

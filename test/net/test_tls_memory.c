/* SPDX-License-Identifier: MIT */
/* Memory that mbedTLS does not get. It allocates with the process's calloc(),
 * which this program replaces. */
#include "lib/io/net/stream.h"

#include <stdlib.h>

#include "net/secure.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REPLACED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REPLACED 0
#endif
#endif
#if !defined(REPLACED) && defined(__GLIBC__)
#define REPLACED 1
#elif !defined(REPLACED)
#define REPLACED 0
#endif

#if REPLACED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *ptr, size_t size);
void __libc_free(void *ptr);

/* Two threads never count at once: the loop waits while the pool reads the
 * certificates. */
static volatile long n_live;
static volatile long n_callocs;
static volatile long fail_at = -1;
static int n_memory; /* failures for that reason */

void *malloc(size_t size) {
  n_live++;
  return __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
  if (fail_at >= 0 && test_server_depth() == 0 && n_callocs++ == fail_at)
    return NULL;
  n_live++;
  return __libc_calloc(n, size);
}

void *realloc(void *ptr, size_t size) {
  if (ptr == NULL)
    n_live++;
  return __libc_realloc(ptr, size);
}

void free(void *ptr) {
  if (ptr != NULL)
    n_live--;
  __libc_free(ptr);
}

static const test_cert_t good = {.dns = "good.test", .address = "127.0.0.1"};

static void say_hello(client_t *client) {
  CHECK_INT(client_write(client, "hello", 5, NULL, 0), TNK_OK);
}

/* A net of its own and two conversations, the second resumed. A failure may
 * also just cost the resumption. */
static int converse(secure_t *secure, tnk__context_t *context) {
  tnk__net_t *net;
  int n_failed = 0;
  int i;

  if (tnk__net_new(&net, context, secure->ca_path) != TNK_OK)
    return 1;
  for (i = 0; i < 2; i++) {
    client_t client = {0};
    int err;
    client.on_open = say_hello;
    err = client_open(&client, net, "127.0.0.1", secure->world.server.port, 1);
    if (err != TNK_OK) {
      CHECK_INT(err, TNK_ENOMEM);
      n_failed++;
      continue;
    }
    TEST_RUN_UNTIL(context->uv, client.n_end > 0 || client.got.len == 5);
    n_failed += client.n_end;
    n_memory += client.code == TNK_ENOMEM;
    /* A certificate is never blamed for it. */
    if (client.code == TNK_ECERT)
      test_fail(__FILE__, __LINE__, "calloc %ld: %s", fail_at, client.text);
    client_finish(&client, context->uv);
  }
  tnk__net_unref(net);
  TEST_RUN_UNTIL(context->uv, secure->world.server.n_open == 0);
  return n_failed;
}

/* All of the first ones, which set things up, then some of the many small
 * ones of the arithmetic. */
static long next_of(long n) {
  return n < 150 ? n + 1 : n + n / 20;
}

/* Whether the n-th call failed something. */
static int fails_at(secure_t *secure, tnk__context_t *loop, long n) {
  int n_failed;

  n_callocs = 0;
  fail_at = n;
  n_failed = converse(secure, loop);
  fail_at = -1;
  return n_failed > 0;
}

TEST_LIMIT(tls_survives_each_failure_of_mbedtls_to_allocate, 60) {
  enum { AGAIN = 10 };
  secure_t secure;
  tnk__context_t loop;
  context_t *context = &secure.world.context;
  long live;
  long n;
  int n_failed = 0;

  secure_open(&secure, &good, &echoing);
  CHECK_INT(
      tnk__context_open(&loop, &context->uv, tnk__allocator_default(), NULL),
      TNK_OK);
  /* Threads and caches come with the first one. */
  CHECK_INT(converse(&secure, &loop), 0);
  for (n = 0; n < 100000; n = next_of(n)) {
    live = n_live;
    n_failed += fails_at(&secure, &loop, n);
    /* mbedTLS 3 drops what it keeps for the process, and makes it again; what
     * is lost is lost each time. */
    for (int i = 1; n_live > live && i < AGAIN; i++)
      fails_at(&secure, &loop, n);
    CHECK(n_live < live + AGAIN);
    if (n_callocs <= n)
      break;
  }
  CHECK(n > 150 && n < 100000);
  CHECK(n_failed > 50);
  CHECK(n_memory > 40);
  tnk__context_close(&loop, context_closed, context);
  TEST_RUN_UNTIL(&context->uv, context->is_closed > 0);
  context->is_closed = 0;
  secure_close(&secure);
}
#else
TEST(tls_survives_each_failure_of_mbedtls_to_allocate) {
  test_skip("the allocator of the process cannot be replaced");
}
#endif

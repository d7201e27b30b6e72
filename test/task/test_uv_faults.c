/* SPDX-License-Identifier: MIT */
/*
 * Every public operation with each of the library's calls of libuv that can
 * fail failing in turn. The linker puts the functions below in libuv's place,
 * for the library alone (see support/uv_real.h).
 *
 * A connection that cannot be made or breaks is repeated, so the operation
 * succeeds all the same; where libuv has no memory the operation may say so.
 * Either way it settles once, and the client goes on.
 */
#include "task/kinds.h"

enum { MAX_CALLS = 500 };

/* The call that fails, counted from 0 on; -1: none. */
static long fail_at = -1;
static long n_calls;
static int fail_with;

/* libuv's error in place of this call, or 0. */
static int fault(void) {
  return fail_at >= 0 && n_calls++ == fail_at ? fail_with : 0;
}

int __real_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req,
                          uv_getaddrinfo_cb cb, const char *node,
                          const char *service, const struct addrinfo *hints);
int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req,
                          uv_getaddrinfo_cb cb, const char *node,
                          const char *service, const struct addrinfo *hints);
int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req,
                          uv_getaddrinfo_cb cb, const char *node,
                          const char *service, const struct addrinfo *hints) {
  const int err = fault();

  return err != 0 ? err
                  : __real_uv_getaddrinfo(loop, req, cb, node, service, hints);
}

int __real_uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb work,
                         uv_after_work_cb after);
int __wrap_uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb work,
                         uv_after_work_cb after);
int __wrap_uv_queue_work(uv_loop_t *loop, uv_work_t *req, uv_work_cb work,
                         uv_after_work_cb after) {
  const int err = fault();

  return err != 0 ? err : __real_uv_queue_work(loop, req, work, after);
}

int __real_uv_tcp_init_ex(uv_loop_t *loop, uv_tcp_t *tcp, unsigned flags);
int __wrap_uv_tcp_init_ex(uv_loop_t *loop, uv_tcp_t *tcp, unsigned flags);
int __wrap_uv_tcp_init_ex(uv_loop_t *loop, uv_tcp_t *tcp, unsigned flags) {
  const int err = fault();

  return err != 0 ? err : __real_uv_tcp_init_ex(loop, tcp, flags);
}

int __real_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *tcp,
                          const struct sockaddr *addr, uv_connect_cb cb);
int __wrap_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *tcp,
                          const struct sockaddr *addr, uv_connect_cb cb);
int __wrap_uv_tcp_connect(uv_connect_t *req, uv_tcp_t *tcp,
                          const struct sockaddr *addr, uv_connect_cb cb) {
  const int err = fault();

  return err != 0 ? err : __real_uv_tcp_connect(req, tcp, addr, cb);
}

int __real_uv_read_start(uv_stream_t *stream, uv_alloc_cb alloc_cb,
                         uv_read_cb read_cb);
int __wrap_uv_read_start(uv_stream_t *stream, uv_alloc_cb alloc_cb,
                         uv_read_cb read_cb);
int __wrap_uv_read_start(uv_stream_t *stream, uv_alloc_cb alloc_cb,
                         uv_read_cb read_cb) {
  const int err = fault();

  return err != 0 ? err : __real_uv_read_start(stream, alloc_cb, read_cb);
}

int __real_uv_write(uv_write_t *req, uv_stream_t *stream, const uv_buf_t bufs[],
                    unsigned n_bufs, uv_write_cb cb);
int __wrap_uv_write(uv_write_t *req, uv_stream_t *stream, const uv_buf_t bufs[],
                    unsigned n_bufs, uv_write_cb cb);
int __wrap_uv_write(uv_write_t *req, uv_stream_t *stream, const uv_buf_t bufs[],
                    unsigned n_bufs, uv_write_cb cb) {
  const int err = fault();

  return err != 0 ? err : __real_uv_write(req, stream, bufs, n_bufs, cb);
}

int __real_uv_try_write(uv_stream_t *stream, const uv_buf_t bufs[],
                        unsigned n_bufs);
int __wrap_uv_try_write(uv_stream_t *stream, const uv_buf_t bufs[],
                        unsigned n_bufs);
int __wrap_uv_try_write(uv_stream_t *stream, const uv_buf_t bufs[],
                        unsigned n_bufs) {
  const int err = fault();

  return err != 0 ? err : __real_uv_try_write(stream, bufs, n_bufs);
}

/* ---- The operations ---- */

static void check_status(const char *name, long n, const outcome_t *outcome) {
  const int may_fail = fail_with == UV_ENOMEM && outcome->status == TNK_ENOMEM;

  if (outcome->n_done != 1 || (outcome->status != TNK_OK && !may_fail))
    test_fail(__FILE__, __LINE__, "%s, call %ld fails with %s: settled %d: %s",
              name, n, uv_err_name(fail_with), outcome->n_done, outcome->text);
}

/* 1 when the operation makes no more than n calls. */
static int run(const script_kind_t *kind, const char *flags, long n) {
  script_t script;
  outcome_t outcome;
  int is_past;

  script_open_for(&script, kind, flags);
  /* The next operation needs a connection: those there are may be kept. */
  script_advance(&script, 120000);
  n_calls = 0;
  fail_at = n;
  outcome_of(&outcome, kind->start(&script));
  script_settle(&script, &outcome);
  is_past = n_calls <= n;
  fail_at = -1;
  check_status(kind->name, n, &outcome);
  script_check_next(&script);
  outcome_drop(&outcome);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return is_past;
}

static void run_all(const char *flags, int err) {
  fail_with = err;
  for (size_t i = 0; i < SCRIPT_N_KINDS; i++) {
    long n = 0;

    while (!run(&script_kinds[i], flags, n))
      CHECK(++n < MAX_CALLS);
    CHECK(n > 0);
  }
}

TEST_LIMIT(S4_18c_each_call_of_libuv_breaks, 60) {
  run_all(NULL, UV_ECONNRESET);
}

TEST_LIMIT(S4_18c_each_call_of_libuv_lacks_descriptors, 60) {
  run_all(NULL, UV_EMFILE);
}

TEST_LIMIT(S4_18c_each_call_of_libuv_lacks_memory, 60) {
  run_all(NULL, UV_ENOMEM);
}

TEST_LIMIT(S4_18c_each_call_of_libuv_breaks_a_compressed_pass, 60) {
  run_all("{\"proto_compress_fwdbwd\":true,\"fwdbwd_max_chunk_len\":1}",
          UV_ENOMEM);
}

/* The name is looked up on another thread: time stands still until there is a
 * connection. */
static void settle_by_name(script_t *script, const outcome_t *outcome,
                           const tnk_promise_t *promise) {
  char text[400];

  for (int i = 0; i < 40 && outcome->n_done == 0; i++) {
    script_turns(script);
    while (outcome->n_done == 0 &&
           tnk_promise_explain(promise, text, sizeof(text)) > 0 &&
           strstr(text, "waits for a connection") != NULL)
      uv_run(&script->uv, UV_RUN_ONCE);
    script_turns(script);
    if (outcome->n_done == 0)
      script_advance(script, 30000);
  }
}

/* 1 when asking a server by its name takes no more than n calls. */
static int run_by_name(long n) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  script_t script;
  outcome_t outcome;
  tnk_promise_t *promise;
  char url[64];
  int is_past;

  script_begin(&script);
  snprintf(url, sizeof(url), "http://localhost:%u", mock_port(script.mock));
  options.base_url = url;
  script_open_service(&script, options);
  n_calls = 0;
  fail_at = n;
  promise = tnk_promise_ref(tnk_service_health(script.service));
  outcome_of(&outcome, promise);
  settle_by_name(&script, &outcome, promise);
  is_past = n_calls <= n;
  fail_at = -1;
  check_status("healthz by name", n, &outcome);
  tnk_promise_unref(promise);
  outcome_drop(&outcome);
  script_close(&script);
  CHECK_INT(test_alloc_live(), 0);
  return is_past;
}

TEST_LIMIT(S4_18c_a_name_that_cannot_be_looked_up_is_asked_again, 60) {
  long n = 0;

  if (!test_has_localhost())
    test_skip("localhost has no address here");
  fail_with = UV_ENOMEM;
  while (!run_by_name(n))
    CHECK(++n < MAX_CALLS);
  CHECK(n > 1);
}

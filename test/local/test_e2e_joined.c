/* SPDX-License-Identifier: MIT */
/* Several services, here and in other processes, that sample from one sampler
 * of the local server. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "local/e2e.h"

enum { N_SAMPLES = 20, N_TOKENS = 8, SEED = 5 };

/* ---- A service that has nothing but a text ---- */

typedef struct {
  uv_loop_t uv;
  tnk_service_t *service;
  tnk_sampling_t *sampling;
} guest_t;

static void guest_open(guest_t *guest, const char *url, const char *ca_file,
                       const char *wire, const char *text) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_sampling_options_t sampling = TNK_SAMPLING_OPTIONS_INIT;
  char why[256] = "";

  CHECK_INT(uv_loop_init(&guest->uv), 0);
  options.base_url = url;
  options.api_key = "tml-other";
  options.ca_file = ca_file[0] != '\0' ? ca_file : NULL;
  if (strcmp(wire, "http2") == 0)
    options.http_version = TNK_HTTP_2_PRIOR_KNOWLEDGE;
  else if (strcmp(wire, "tls") != 0)
    options.http_version = TNK_HTTP_1_1;
  if (tnk_service_open(&guest->service, &guest->uv, &options, why,
                       sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", why);
  sampling.exported = text;
  guest->sampling = tnk_take_sampling(
      tnk_service_create_sampling(guest->service, &sampling), why, sizeof(why));
  if (guest->sampling == NULL)
    test_fail(__FILE__, __LINE__, "%s", why);
}

static void guest_close(guest_t *guest) {
  tnk_service_close(guest->service, NULL, NULL);
  uv_run(&guest->uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&guest->uv), 0);
}

/* The sum of all tokens, which the seed and the weights decide. */
static long sum_of(tnk_sampling_t *sampling) {
  tnk_promise_t *promises[N_SAMPLES];
  const int32_t *tokens;
  long sum = 0;
  size_t n;

  for (int i = 0; i < N_SAMPLES; i++)
    promises[i] = e2e_sample(sampling, N_TOKENS, SEED + i, NULL);
  for (int i = 0; i < N_SAMPLES; i++) {
    e2e_ok(promises[i]);
    tokens = tnk_samples_tokens(tnk_promise_samples(promises[i]), 0, &n);
    for (size_t t = 0; t < n; t++)
      sum += (long)(t + 1) * tokens[t];
    tnk_promise_unref(promises[i]);
  }
  return sum;
}

/* ---- Another process ---- */

typedef struct {
  char url[64];
  char ca_file[256];
  char wire[16];
  char text[1024];
} order_t;

typedef struct {
  pid_t pid;
  int orders; /* written to */
  int sums;   /* read from */
} process_t;

static void read_all(int fd, void *to, size_t n) {
  size_t had = 0;

  while (had < n) {
    const ssize_t got = read(fd, (char *)to + had, n - had);
    CHECK(got > 0);
    had += (size_t)got;
  }
}

static void run_process(int orders, int sums) {
  guest_t guest;
  order_t order;
  long sum;

  read_all(orders, &order, sizeof(order));
  guest_open(&guest, order.url, order.ca_file, order.wire, order.text);
  sum = sum_of(guest.sampling);
  CHECK_INT(write(sums, &sum, sizeof(sum)), sizeof(sum));
  guest_close(&guest);
}

/* Before this process has anything that a child could inherit. */
static void fork_process(process_t *process) {
  int orders[2];
  int sums[2];

  CHECK_INT(pipe(orders), 0);
  CHECK_INT(pipe(sums), 0);
  process->pid = fork();
  CHECK(process->pid >= 0);
  if (process->pid == 0) {
    close(orders[1]);
    close(sums[0]);
    run_process(orders[0], sums[1]);
    _exit(0);
  }
  close(orders[0]);
  close(sums[1]);
  process->orders = orders[1];
  process->sums = sums[0];
}

static void on_tick(uv_timer_t *tick) {
  (void)tick; /* the loop has turned: time to look at the process again */
}

/* Serve until it is through. */
static long await_process(e2e_t *e2e, process_t *process) {
  uv_timer_t tick;
  int status = 0;
  long sum = 0;

  CHECK_INT(uv_timer_init(&e2e->uv, &tick), 0);
  CHECK_INT(uv_timer_start(&tick, on_tick, 2, 2), 0);
  while (waitpid(process->pid, &status, WNOHANG) == 0)
    uv_run(&e2e->uv, UV_RUN_ONCE);
  uv_close((uv_handle_t *)&tick, NULL);
  uv_run(&e2e->uv, UV_RUN_NOWAIT);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  read_all(process->sums, &sum, sizeof(sum));
  close(process->orders);
  close(process->sums);
  return sum;
}

/* ---- What the server saw ---- */

static int by_number(const void *a, const void *b) {
  const int64_t x = *(const int64_t *)a;
  const int64_t y = *(const int64_t *)b;

  return (x > y) - (x < y);
}

static size_t n_calls(const e2e_t *e2e, const char *call) {
  size_t n = 0;

  for (size_t i = 0; i < e2e->n_seen; i++)
    n += strcmp(e2e->seen[i].call, call) == 0;
  return n;
}

/* So many samples, of so many clients, and no number twice. */
static void check_numbers(const e2e_t *e2e, size_t n_clients) {
  const size_t n = n_calls(e2e, "asample");
  int64_t *numbers = calloc(n, sizeof(*numbers));
  size_t n_blocks = 1;
  size_t k = 0;

  CHECK(numbers != NULL);
  CHECK_INT(n, n_clients * N_SAMPLES);
  for (size_t i = 0; i < e2e->n_seen; i++)
    if (strcmp(e2e->seen[i].call, "asample") == 0)
      numbers[k++] = e2e->seen[i].seq;
  qsort(numbers, n, sizeof(*numbers), by_number);
  for (size_t i = 1; i < n; i++) {
    CHECK(numbers[i] > numbers[i - 1]);
    n_blocks += numbers[i] / 1000000000 != numbers[i - 1] / 1000000000;
  }
  CHECK_INT(n_blocks, n_clients);
  free(numbers);
}

static void fill_order(order_t *order, const e2e_t *e2e,
                       tnk_sampling_t *sampling) {
  const char *text = tnk_sampling_export(sampling);

  CHECK(text != NULL);
  memset(order, 0, sizeof(*order));
  snprintf(order->url, sizeof(order->url), "http%s://127.0.0.1:%d",
           strncmp(e2e->wire, "tls", 3) == 0 ? "s" : "",
           local_server_port(e2e->server));
  if (strncmp(e2e->wire, "tls", 3) == 0)
    snprintf(order->ca_file, sizeof(order->ca_file), "%s", e2e->tls.cert);
  snprintf(order->wire, sizeof(order->wire), "%s", e2e->wire);
  snprintf(order->text, sizeof(order->text), "%s", text);
}

/* A text is taken to other processes, which sample at the same time. */
static void run_processes(const tnk_pair_t *flags, size_t n_flags,
                          size_t n_joins) {
  enum { N = 2 };
  local_options_t options = LOCAL_OPTIONS_INIT;
  process_t processes[N];
  tnk_sampling_t *sampling;
  order_t order;
  e2e_t e2e;
  long sum;

  for (int i = 0; i < N; i++)
    fork_process(&processes[i]);
  options.flags = flags;
  options.n_flags = n_flags;
  e2e_open(&e2e, options);
  e2e_train(&e2e, 4);
  e2e_done(e2e_pass(&e2e, 0));
  e2e_done(e2e_step(&e2e));
  sampling = e2e_snapshot(&e2e);
  fill_order(&order, &e2e, sampling);
  for (int i = 0; i < N; i++)
    CHECK_INT(write(processes[i].orders, &order, sizeof(order)), sizeof(order));
  sum = sum_of(sampling);
  for (int i = 0; i < N; i++)
    CHECK_INT(await_process(&e2e, &processes[i]), sum);
  check_numbers(&e2e, N + 1);
  CHECK_INT(n_calls(&e2e, "join_sampling_session"), n_joins);
  CHECK_INT(n_calls(&e2e, "create_session"), 1);
  CHECK_INT(n_calls(&e2e, "finish"), 0);
  e2e_close(&e2e);
}

TEST_LIMIT(D18_processes_sample_from_one_sampler, 60) {
  run_processes(NULL, 0, 0);
}

TEST_LIMIT(D18_processes_that_the_server_numbers, 60) {
  static const tnk_pair_t flags[] = {{"sample_join_sampling_session", "true"},
                                     {"sample_use_retrieve_futures", "true"}};

  run_processes(flags, 2, 2);
}

TEST_LIMIT(D18_a_text_from_before_the_end_of_its_session_is_useless, 60) {
  static const tnk_pair_t flags[] = {{"sample_join_sampling_session", "true"}};
  tnk_sampling_options_t sampling = TNK_SAMPLING_OPTIONS_INIT;
  local_options_t options = LOCAL_OPTIONS_INIT;
  tnk_promise_t *promise;
  order_t order;
  e2e_t e2e;

  options.flags = flags;
  options.n_flags = 1;
  e2e_open(&e2e, options);
  e2e_train(&e2e, 4);
  fill_order(&order, &e2e, e2e_snapshot(&e2e));
  e2e_stop_client(&e2e);
  e2e_start_client(&e2e);
  sampling.exported = order.text;
  promise = tnk_service_create_sampling(e2e.service, &sampling);
  CHECK_INT(tnk_wait(promise), TNK_ESESSION);
  tnk_promise_unref(promise);
  e2e_close(&e2e);
}

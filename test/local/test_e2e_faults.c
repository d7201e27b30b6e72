#include "local/e2e.h"

#include <unistd.h>

/* Training while a tenth of all requests goes wrong: the weights are those of
 * the clean run, byte by byte. */

enum {
  TICK_MS = 1,
  SPEED = 100,
  N_STEPS = 8,
  N_SEEDS = 20,
  MAX_CHECKPOINT = 1 << 22
};

/* ---- Time that flies ---- */

typedef struct {
  e2e_t e2e;
  uv_timer_t timer;
  size_t n_rejected;
} fast_t;

/* The client's time goes a hundred times as fast as the server's, so that
 * pauses of seconds take none. Its turns of the loop make it go, so a machine
 * that is slow makes nothing late. */
static void on_tick(uv_timer_t *timer) {
  fast_t *fast = timer->data;

  tnk__loop_advance(&fast->e2e.service->loop, TICK_MS * SPEED);
}

static void open_fast(fast_t *fast, local_options_t options) {
  options.hold_ms = 50;
  e2e_open(&fast->e2e, options);
  tnk__loop_fake_clock(&fast->e2e.service->loop, 1000000);
  CHECK_INT(uv_timer_init(&fast->e2e.uv, &fast->timer), 0);
  fast->timer.data = fast;
  fast->n_rejected = 0;
  uv_timer_start(&fast->timer, on_tick, TICK_MS, TICK_MS);
}

static void close_fast(fast_t *fast) {
  uv_close((uv_handle_t *)&fast->timer, NULL);
  e2e_close(&fast->e2e);
}

/* ---- A training run ---- */

/* Not with e2e_ok(): an answer may be lost for good. */
static void create(fast_t *fast) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;
  tnk_promise_t *promise;
  int err;

  options.base_model = "tnk/byte-lm";
  options.rank = 4;
  options.has_seed = 1;
  options.seed = 7;
  do {
    promise = tnk_service_create_lora(fast->e2e.service, &options);
    err = tnk_wait(promise);
    if (err == TNK_OK)
      fast->e2e.training = tnk_promise_training(promise);
    else
      printf("# create: %s\n", tnk_promise_text(promise));
    tnk_promise_unref(promise);
  } while (err != TNK_OK);
}

static void expect_done(fast_t *fast, tnk_promise_t *promise) {
  if (tnk_wait(promise) != TNK_OK) {
    fast->n_rejected++;
    printf("# %s\n", tnk_promise_text(promise));
  }
  tnk_promise_unref(promise);
}

static size_t read_all(const char *dir, const char *name, uint8_t *out) {
  char path[1024];
  FILE *file;
  size_t n;

  snprintf(path, sizeof(path), "%s/%s", dir, name);
  file = fopen(path, "rb");
  CHECK(file != NULL);
  n = fread(out, 1, MAX_CHECKPOINT, file);
  fclose(file);
  CHECK(n > 0 && n < MAX_CHECKPOINT);
  return n;
}

/* Weights, and the optimizer's moments behind them, of a state saved when
 * nothing goes wrong any more. */
static size_t checkpoint(fast_t *fast, uint8_t *out) {
  static const char scheme[] = "tinker://";
  tnk_promise_t *promise;
  char dir[512];
  size_t n;

  e2e_faults(&fast->e2e, "");
  promise = e2e_ok(tnk_training_save_state(fast->e2e.training, "end", NULL));
  n = (size_t)snprintf(dir, sizeof(dir), "%s/",
                       local_server_data(fast->e2e.server));
  snprintf(dir + n, sizeof(dir) - n, "%s",
           tnk_promise_path(promise) + sizeof(scheme) - 1);
  for (char *at = dir + n; *at != '\0'; at++)
    if (*at == ':')
      *at = '_';
  tnk_promise_unref(promise);
  n = read_all(dir, "adapter_model.safetensors", out);
  return n + read_all(dir, "optimizer.safetensors", out + n);
}

/* Two examples, which go in two requests. */
static tnk_promise_t *wide_pass(fast_t *fast, size_t start) {
  e2e_example_t ex[2];
  tnk_datum_t data[2];

  data[0] = *e2e_datum(&ex[0], start);
  data[1] = *e2e_datum(&ex[1], start + 11);
  return tnk_training_forward_backward(fast->e2e.training, data, 2, NULL);
}

static size_t train(local_sequence_t sequence, const char *faults,
                    uint8_t *out) {
  static const tnk_pair_t flag = {"fwdbwd_max_chunk_len", "1"};
  local_options_t options = LOCAL_OPTIONS_INIT;
  tnk_promise_t *promises[4 * N_STEPS];
  char name[16];
  fast_t fast;
  size_t n = 0;

  options.sequence = sequence;
  options.flags = &flag;
  options.n_flags = 1;
  open_fast(&fast, options);
  e2e_faults(&fast.e2e, faults);
  create(&fast);
  for (size_t i = 0; i < N_STEPS; i++) {
    promises[n++] = e2e_pass(&fast.e2e, i * 7);
    promises[n++] = wide_pass(&fast, i * 7 + 3);
    promises[n++] = e2e_step(&fast.e2e);
    snprintf(name, sizeof(name), "mid-%d", (int)i);
    if (i % 4 == 3)
      promises[n++] =
          tnk_training_save_weights_for_sampler(fast.e2e.training, name, NULL);
  }
  for (size_t i = 0; i < n; i++)
    expect_done(&fast, promises[i]);
  printf("# %s: %d faults, %d rejected\n", faults,
         (int)local_faults_count(fast.e2e.faults, NULL), (int)fast.n_rejected);
  n = checkpoint(&fast, out);
  close_fast(&fast);
  return n;
}

static void same_weights(local_sequence_t sequence) {
  uint8_t *clean = malloc(2 * MAX_CHECKPOINT);
  uint8_t *faulty = malloc(2 * MAX_CHECKPOINT);
  size_t n;

  CHECK(clean != NULL && faulty != NULL);
  n = train(sequence, "", clean);
  for (int seed = 1; seed <= N_SEEDS; seed++) {
    char text[64];

    snprintf(text, sizeof(text), "seed=%d,all=10%%", seed);
    CHECK_INT(train(sequence, text, faulty), n);
    if (memcmp(clean, faulty, n) != 0)
      printf("# XXX %s: other weights\n", text);
  }
  free(clean);
  free(faulty);
}

TEST_LIMIT(same_weights_lenient, 100) {
  same_weights(LOCAL_LENIENT);
}

TEST_LIMIT(same_weights_buffered, 100) {
  same_weights(LOCAL_BUFFERED);
}

TEST_LIMIT(same_weights_strict, 100) {
  same_weights(LOCAL_STRICT);
}

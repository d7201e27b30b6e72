/* SPDX-License-Identifier: MIT */
#include "local/e2e.h"

#include "local/fast.h"

/*
 * Training while a tenth of all requests goes wrong in every way there is: the
 * weights, and the optimizer's moments, are those of the clean run, byte by
 * byte. Promises may reject, as an answer can be lost for good; a user goes on,
 * because all of these codes say that the operation was run.
 *
 * How many seeds is in TNK_TEST_SEEDS.
 */

enum { N_STEPS = 8, N_SEEDS = 20, MAX_CHECKPOINT = 1 << 22, SPEED = 300 };

typedef struct {
  e2e_t e2e;
  fast_clock_t clock;
  size_t n_rejected;
} fast_t;

static void open_fast(fast_t *fast, local_options_t options) {
  options.hold_ms = 50;
  e2e_open(&fast->e2e, options);
  fast_start(&fast->clock, &fast->e2e.uv, fast->e2e.service, SPEED);
  fast->n_rejected = 0;
}

static void close_fast(fast_t *fast) {
  fast_stop(&fast->clock);
  e2e_close(&fast->e2e);
}

/* ---- A training run ---- */

/* A model that is lost is made anew. */
static void create(fast_t *fast) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;
  tnk_promise_t *promise;
  int err;

  options.base_model = "tnk/byte-lm";
  options.rank = 4;
  options.seed = 7;
  do {
    promise = tnk_service_create_lora(fast->e2e.service, &options);
    err = tnk_wait(promise);
    if (err == TNK_OK)
      fast->e2e.training = tnk_promise_training(promise);
    tnk_promise_unref(promise);
  } while (err != TNK_OK);
}

/* It was run; the answer may be lost. */
static void expect_run(fast_t *fast, tnk_promise_t *promise) {
  switch (tnk_wait(promise)) {
  case TNK_OK:
    break;
  case TNK_ECONFLICT: /* the strict server, of a repeat */
  case TNK_EEXPIRED:
  case TNK_ENOTFOUND:
  case TNK_EPROTO:
  case TNK_ETOOBIG:
    fast->n_rejected++;
    break;
  default:
    test_fail(__FILE__, __LINE__, "%s", tnk_promise_text(promise));
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

static uint64_t n_drops;

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
    expect_run(&fast, promises[i]);
  printf("# %s: %d faults, %d rejected\n", faults,
         (int)local_faults_count(fast.e2e.faults, NULL), (int)fast.n_rejected);
  n_drops += local_faults_count(fast.e2e.faults, "drop_after_commit");
  n = checkpoint(&fast, out);
  close_fast(&fast);
  return n;
}

static void same_weights(local_sequence_t sequence) {
  const char *wish = getenv("TNK_TEST_SEEDS");
  int n_seeds = wish != NULL ? atoi(wish) : N_SEEDS;
  uint8_t *clean = malloc(2 * MAX_CHECKPOINT);
  uint8_t *faulty = malloc(2 * MAX_CHECKPOINT);
  size_t n;

  CHECK(clean != NULL && faulty != NULL);
  n_drops = 0;
  n = train(sequence, "", clean);
  for (int seed = 1; seed <= n_seeds; seed++) {
    char text[64];

    snprintf(text, sizeof(text), "seed=%d,all=7%%,drop_after_commit=3%%", seed);
    CHECK_INT(train(sequence, text, faulty), n);
    if (memcmp(clean, faulty, n) != 0)
      test_fail(__FILE__, __LINE__, "%s: other weights", text);
  }
  CHECK(n_drops >= (uint64_t)n_seeds / 2);
  free(clean);
  free(faulty);
}

TEST_LIMIT(S0_3_same_weights_with_faults_lenient, 100) {
  same_weights(LOCAL_LENIENT);
}

TEST_LIMIT(S0_3_same_weights_with_faults_buffered, 100) {
  same_weights(LOCAL_BUFFERED);
}

TEST_LIMIT(S0_3_same_weights_with_faults_strict, 100) {
  same_weights(LOCAL_STRICT);
}

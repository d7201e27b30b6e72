/* SPDX-License-Identifier: MIT */
/*
 * Lives at random: clients are made and closed, promises are grouped, canceled
 * and dropped, from outside and from inside every kind of callback.
 * TNK_TEST_LIVES is how many, TNK_TEST_SEED the first of them.
 */
#include "task/life.h"

enum { MAX_DEPTH = 3, MAX_OPEN = 8, N_DATA = 8 };

static life_t life;

static uint32_t draw(uint32_t n) {
  return life_draw(&life, n);
}

static void act(void);

/* Inside of a callback. */
static void maybe_act(void) {
  if (life.depth < MAX_DEPTH && draw(4) == 0) {
    life.depth++;
    act();
    life.depth--;
  }
}

/* ---- Callbacks ---- */

static void on_closed(void *user) {
  (void)user;
  life.n_closed++;
  maybe_act();
}

static void on_released(void *user) {
  (void)user;
  life.n_released++;
  maybe_act();
}

static int on_loss(tnk_custom_loss_t *io, void *user) {
  (void)user;
  io->gradients[0][0] = 0.5f;
  io->loss = 1;
  maybe_act();
  maybe_act();
  return draw(10) == 0 ? 5 : 0;
}

static void on_state(const char *client, tnk_queue_state_t state,
                     const char *reason, void *user) {
  (void)state;
  (void)user;
  CHECK(strlen(client) + strlen(reason) > 0);
  if (draw(12) == 0)
    maybe_act();
}

/* A client may be named by a promise that wraps another, too. */
static void take_training(tnk_training_t *training) {
  for (int i = 0; i < life.n_trainings; i++)
    if (life.trainings[i] == training)
      return;
  if (training != NULL && life.n_trainings < LIFE_MAX_CLIENTS)
    life.trainings[life.n_trainings++] = training;
}

static void take_sampling(tnk_sampling_t *sampling) {
  for (int i = 0; i < life.n_samplings; i++)
    if (life.samplings[i] == sampling)
      return;
  if (sampling != NULL && life.n_samplings < LIFE_MAX_CLIENTS)
    life.samplings[life.n_samplings++] = sampling;
}

static void on_settled(tnk_promise_t *promise, int status, void *user) {
  (void)user;
  life.n_settled++;
  if (status == TNK_OK && !life.is_closing) {
    take_training(tnk_promise_training(promise));
    take_sampling(tnk_promise_sampling(promise));
  }
  CHECK(status == TNK_OK || tnk_promise_text(promise)[0] != '\0');
  maybe_act();
}

/* ---- Promises ---- */

static tnk_promise_t *group(tnk_promise_t *promise) {
  tnk_promise_t *some[4] = {promise};
  size_t n = 1;

  while (n < 4 && draw(3))
    some[n++] = draw(8) == 0
                    ? NULL
                    : tnk_promise_ref(life.kept[draw((uint32_t)life.n_kept)]);
  return draw(2) ? tnk_all(some, n) : tnk_all_settled(some, n);
}

static void track(tnk_promise_t *promise, int may_wrap) {
  CHECK(promise != NULL);
  if (life.n_kept < LIFE_MAX_KEPT && draw(2))
    life.kept[life.n_kept++] = tnk_promise_ref(promise);
  if (may_wrap && draw(6) == 0)
    promise = tnk_with_timeout(promise, draw(3) == 0 ? draw(5) : draw(100000));
  if (may_wrap && draw(6) == 0 && life.n_kept > 0)
    promise = group(promise);
  life.n_started++;
  tnk_then(promise, on_settled, NULL);
}

static void drop(void) {
  int i = (int)draw((uint32_t)life.n_kept);
  tnk_promise_t *promise = life.kept[i];
  char text[256];

  life.kept[i] = life.kept[--life.n_kept];
  tnk_promise_explain(promise, text, sizeof(text));
  tnk_promise_unref(promise);
}

/* ---- Clients ---- */

static void make_training(void) {
  tnk_lora_options_t options = TNK_LORA_OPTIONS_INIT;

  options.base_model = "base";
  if (life.n_trainings < MAX_OPEN)
    track(tnk_service_create_lora(life.script.service, &options), 0);
}

static void make_restored(void) {
  tnk_restore_options_t options = TNK_RESTORE_OPTIONS_INIT;
  static const tnk_choice_t choices[] = {TNK_NO, TNK_YES, TNK_DEFAULT};

  options.path = "tinker://x/weights/y";
  options.classic = choices[draw(3)];
  if (life.n_trainings < MAX_OPEN)
    track(tnk_service_restore(life.script.service, &options), 0);
}

static void make_sampling(void) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;

  if (draw(2))
    options.base_model = "base";
  else
    options.model_path = "tinker://a/b";
  if (life.n_samplings < MAX_OPEN)
    track(tnk_service_create_sampling(life.script.service, &options), 0);
}

/* One more client of a sampler, of this session or of another one. */
static void make_another(void) {
  static const char theirs[] =
      "eyJzZXNzaW9uX2lkIjoidCIsInNhbXBsaW5nX3Nlc3Npb25faWQiOiJ0OnMifQ==";
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  tnk_sampling_t *one = life.samplings[draw((uint32_t)life.n_samplings)];

  options.exported = draw(2) ? theirs : tnk_sampling_export(one);
  if (life.n_samplings < MAX_OPEN)
    track(draw(2) ? tnk_sampling_clone(one)
                  : tnk_service_create_sampling(life.script.service, &options),
          0);
}

static void close_training(void) {
  int i = (int)draw((uint32_t)life.n_trainings);
  tnk_training_t *training = life.trainings[i];

  life.trainings[i] = life.trainings[--life.n_trainings];
  life.n_closes++;
  tnk_training_close(training, on_closed, NULL);
}

static void close_sampling(void) {
  int i = (int)draw((uint32_t)life.n_samplings);
  tnk_sampling_t *sampling = life.samplings[i];

  life.samplings[i] = life.samplings[--life.n_samplings];
  life.n_closes++;
  tnk_sampling_close(sampling, on_closed, NULL);
}

/* ---- Operations ---- */

/* Made once: what is lent must not be written to, and a thread may read it. */
static const tnk_datum_t *lendable(void) {
  static const int32_t tokens[] = {11, 12};
  static const int64_t targets[] = {12, 13};
  static tnk_chunk_t chunk;
  static tnk_loss_input_t input;
  static tnk_datum_t data[N_DATA];

  if (data[0].loss_inputs != NULL)
    return data;
  chunk = tnk_chunk_text(tokens, 2);
  input = (tnk_loss_input_t){"target_tokens", tnk_tensor_i64(targets, 2)};
  for (size_t i = 0; i < N_DATA; i++) {
    data[i].input.chunks = &chunk;
    data[i].input.n_chunks = 1;
    data[i].loss_inputs = &input;
    data[i].n_loss_inputs = 1;
  }
  return data;
}

static void start_pass(tnk_training_t *training, int is_custom) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  size_t n = 1 + draw(4);

  if (draw(2)) {
    options.release = on_released;
    life.n_lent++;
  }
  if (is_custom)
    track(tnk_training_forward_backward_custom(training, lendable(), n, on_loss,
                                               NULL, &options),
          1);
  else
    track(tnk_training_forward_backward(training, lendable(), n, &options), 1);
}

static void start_load(tnk_training_t *training) {
  tnk_load_options_t options = TNK_LOAD_OPTIONS_INIT;

  options.path = "tinker://x/weights/y";
  options.with_optimizer = TNK_YES;
  track(tnk_training_load_state(training, &options), 1);
}

static void start(tnk_training_t *training, tnk_sampling_t *sampling,
                  uint32_t what) {
  if (what < 45)
    track(tnk_sampling_sample(sampling, script_prompt(), NULL, NULL), 1);
  else if (what < 60)
    start_pass(training, 0);
  else if (what < 68)
    start_pass(training, 1);
  else if (what < 82)
    track(tnk_training_optim_step(training, NULL), 1);
  else if (what < 86)
    track(tnk_training_save_weights_and_get_sampling(
              training, TNK_SAMPLING_SNAPSHOT, NULL),
          0);
  else if (what < 89)
    track(tnk_training_save_state(training, "a", NULL), 1);
  else if (what < 91)
    start_load(training);
  else
    track(tnk_training_unload(training), 1);
}

/* ---- One act ---- */

static void act_on_clients(uint32_t what) {
  tnk_training_t *training =
      life.n_trainings ? life.trainings[draw((uint32_t)life.n_trainings)]
                       : NULL;
  tnk_sampling_t *sampling =
      life.n_samplings ? life.samplings[draw((uint32_t)life.n_samplings)]
                       : NULL;

  if (what < 20 || training == NULL)
    make_training();
  else if (what < 24 || sampling == NULL)
    make_sampling();
  else if (what < 26)
    make_restored();
  else if (what < 92)
    start(training, sampling, what);
  else if (what < 93)
    make_another();
  else if (what < 94)
    track(tnk_service_health(life.script.service), 1);
  else if (what < 96 && draw(3) == 0)
    close_training();
  else if (what >= 96 && what < 98 && draw(3) == 0)
    close_sampling();
  else if (what == 98 && draw(30) == 0)
    life_close(&life);
}

static void act(void) {
  uint32_t what = draw(100);

  if (what < 8 && life.n_kept > 0)
    tnk_promise_cancel(life.kept[draw((uint32_t)life.n_kept)]);
  else if (what < 16 && life.n_kept > 0)
    drop();
  if (what >= 16 && !life.is_closing)
    act_on_clients(what);
}

/* ---- Lives ---- */

static void live(uint64_t seed) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  const int n_turns = 200 + (int)(seed * 37 % 400);

  options.on_queue_state = on_state;
  life_begin(&life, seed, options);
  for (int i = 0; i < n_turns && !life.is_closing; i++) {
    for (uint32_t k = draw(4); k > 0; k--)
      act();
    mock_turns(life.script.mock, (int)draw(4));
    if (!life.is_closing && draw(3) == 0)
      life_pass_time(&life, draw(20) == 0 ? draw(1000000) : draw(3000));
  }
  life_end(&life, seed);
}

static uint64_t number_of(const char *variable, uint64_t otherwise) {
  const char *text = getenv(variable);

  return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

TEST_LIMIT(S1_7_lives_at_random_end_well, 100) {
  const uint64_t first = number_of("TNK_TEST_SEED", 1);
  const uint64_t n = number_of("TNK_TEST_LIVES", 60);

  for (uint64_t seed = first; seed < first + n; seed++) {
    size_t n_blocks = test_alloc_live();

    live(seed);
    if (test_alloc_live() != n_blocks)
      test_fail(__FILE__, __LINE__, "seed %llu: %zu blocks were not freed",
                (unsigned long long)seed, test_alloc_live() - n_blocks);
  }
}

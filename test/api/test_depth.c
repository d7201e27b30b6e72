/* SPDX-License-Identifier: MIT */
/*
 * No callback runs inside of a call. Every function that the headers export has
 * a row here, or this does not compile; all rows are called from outside and
 * from inside of each kind of callback, and each callback looks whether a call
 * is under way.
 */
#define _DEFAULT_SOURCE /* mkdtemp() */
#include <stdlib.h>

#include "exports.h"
#include "task/script.h"

typedef struct {
  script_t script;
  tnk_hub_t *hub;
  tnk_promise_t *settled;
  tnk_promise_t *models; /* and five more that have settled, to read from */
  tnk_promise_t *pass;
  tnk_promise_t *step;
  tnk_promise_t *sample;
  tnk_promise_t *listed;
  tnk_promise_t *opened_ledger;
  char dir[32]; /* of the ledger */
  tnk_batch_t *batch;
  tnk_service_t *opened; /* by a row, for that which closes it */
  tnk_hub_t *opened_hub;
  int n_expected; /* callbacks that are still to come */
  int n_called;
  int n_told; /* of the state of the queue */
  int n_all;  /* times that all rows were called */
} stage_t;

static int inside; /* a row's call is under way */

static void called(stage_t *stage) {
  CHECK_INT(inside, 0);
  stage->n_called++;
}

static void on_settled(tnk_promise_t *promise, int status, void *user) {
  (void)promise;
  (void)status;
  called(user);
}

static void on_closed(void *user) {
  called(user);
}

static int on_loss(tnk_custom_loss_t *io, void *user) {
  io->loss = 1;
  called(user);
  return 0;
}

static void on_dump(const char *text, size_t length, void *user) {
  (void)text;
  (void)length;
  (void)user;
  CHECK_INT(inside, 1); /* as its header says */
}

static void keep(stage_t *stage, tnk_promise_t *promise) {
  CHECK(promise != NULL);
  stage->n_expected++;
  CHECK_INT(tnk_then(promise, on_settled, stage), TNK_OK);
}

/* ---- What is read ---- */

static const int32_t ids[2] = {7, 8};
static tnk_totals_t totals = TNK_TOTALS_INIT;
static size_t n_read;
static uint64_t hash_read;

static const tnk_capabilities_t *models(const stage_t *s) {
  return tnk_promise_capabilities(s->models);
}

static const tnk_pass_t *passed(const stage_t *s) {
  return tnk_promise_pass(s->pass);
}

static const tnk_page_t *page(const stage_t *s) {
  return tnk_promise_page(s->listed);
}

static const tnk_metrics_t *metrics(const stage_t *s) {
  return tnk_promise_metrics(s->step);
}

static const tnk_samples_t *samples(const stage_t *s) {
  return tnk_promise_samples(s->sample);
}

static int encode(const void *tokenizer, const char *text, size_t n,
                  unsigned flags, tnk_take_ids_cb take, void *user, char *why,
                  size_t why_size) {
  (void)tokenizer;
  (void)text;
  (void)flags;
  (void)why;
  (void)why_size;
  CHECK_INT(inside, 1);
  return take(ids, n, user);
}

static const tnk_tokenizer_plugin_t plugin = {
    .size = sizeof(plugin), .name = "two", .encode = encode};

/* ---- A row for each function ---- */

#define ROW(name)                                                              \
  static void call_##name(stage_t *s);                                         \
  static void call_##name(stage_t *s)
/* Another row calls it. */
#define ELSEWHERE(name)                                                        \
  ROW(name) {                                                                  \
    (void)s;                                                                   \
    CHECK((void (*)(void))name != NULL);                                       \
  }
#define KEEPS(name, call)                                                      \
  ROW(name) {                                                                  \
    keep(s, call);                                                             \
  }
#define GETS(name, call)                                                       \
  ROW(name) {                                                                  \
    (void)(call);                                                              \
    (void)s;                                                                   \
  }

#include "depth_ledger.h"
#include "depth_observe.h"
#include "depth_otlp.h"
#include "depth_rest.h"
#include "depth_rl.h"
#include "depth_run.h"
GETS(tnk_batch_new, tnk_batch_free(tnk_batch_new(NULL)))
GETS(tnk_batch_add_trajectory,
     tnk_batch_add_trajectory(s->batch, NULL, 0, NULL))
GETS(tnk_batch_text, tnk_batch_text(s->batch))
GETS(tnk_segment_given, tnk_segment_given(ids, 2))
GETS(tnk_segment_sampled, tnk_segment_sampled(samples(s), 0, 1))
GETS(tnk_batch_add_sample,
     tnk_batch_add_sample(s->batch, ids, 2, samples(s), 0, 1))
GETS(tnk_batch_add_tokens, tnk_batch_add_tokens(s->batch, ids, NULL, 2))
GETS(tnk_batch_data, tnk_batch_data(s->batch, &n_read))
GETS(tnk_batch_weight, tnk_batch_weight(s->batch))
GETS(tnk_batch_clear, tnk_batch_clear(s->batch))
GETS(tnk_batch_free, tnk_batch_free(NULL))
GETS(tnk_capabilities_count, tnk_capabilities_count(models(s)))
GETS(tnk_capabilities_model, tnk_capabilities_model(models(s), 0))
GETS(tnk_chunk_text, tnk_chunk_text(ids, 2))
GETS(tnk_data_check, tnk_data_check(script_data(1), 1, NULL, NULL, 0))
GETS(tnk_err_is_fatal, tnk_err_is_fatal(TNK_EINVAL))
GETS(tnk_err_is_retryable, tnk_err_is_retryable(TNK_EINVAL))
GETS(tnk_err_name, tnk_err_name(TNK_EINVAL))
ROW(tnk_init) {
  tnk_lora_options_t lora;

  (void)s;
  CHECK_INT(tnk_init("tnk_lora_options_t", &lora, sizeof(lora)), TNK_OK);
}
GETS(tnk_http2_version, tnk_http2_version())
GETS(tnk_libuv_version, tnk_libuv_version())
GETS(tnk_metrics_count, tnk_metrics_count(metrics(s)))
GETS(tnk_metrics_get, tnk_metrics_get(metrics(s), "grad_norm"))
GETS(tnk_metrics_hash, tnk_metrics_hash(&hash_read, metrics(s), "grad_norm"))
GETS(tnk_metrics_key, tnk_metrics_key(metrics(s), 0))
GETS(tnk_metrics_value, tnk_metrics_value(metrics(s), 0))
GETS(tnk_pass_count, tnk_pass_count(passed(s)))
GETS(tnk_pass_field_count, tnk_pass_field_count(passed(s), 0))
GETS(tnk_pass_field_name, tnk_pass_field_name(passed(s), 0, 0))
GETS(tnk_pass_loss, tnk_pass_loss(passed(s)))
GETS(tnk_pass_metrics, tnk_pass_metrics(passed(s)))
GETS(tnk_pass_output_type, tnk_pass_output_type(passed(s)))
GETS(tnk_pass_tensor, tnk_pass_tensor(passed(s), 0, "logprobs"))
ROW(tnk_path_parse) {
  tnk_path_t path = TNK_PATH_INIT;

  (void)s;
  CHECK_INT(tnk_path_parse(&path, "tinker://run/weights/a"), TNK_OK);
}
/* The plug-in is called inside of this one, as its header says. */
ROW(tnk_prompt_from_text) {
  tnk_prompt_t *prompt;

  CHECK_INT(
      tnk_prompt_from_text(&prompt, &plugin, s, "ab", 2, 0, NULL, NULL, 0),
      TNK_OK);
  CHECK_INT(tnk_prompt_input(prompt)->n_tokens, 2);
  tnk_prompt_free(prompt);
}
GETS(tnk_prompt_input, tnk_prompt_input(NULL))
GETS(tnk_prompt_free, tnk_prompt_free(NULL))
GETS(tnk_samples_alt_logprobs, tnk_samples_alt_logprobs(samples(s)))
GETS(tnk_samples_alt_tokens, tnk_samples_alt_tokens(samples(s)))
GETS(tnk_samples_cache_hit_tokens, tnk_samples_cache_hit_tokens(samples(s)))
GETS(tnk_samples_count, tnk_samples_count(samples(s)))
GETS(tnk_samples_logprobs, tnk_samples_logprobs(samples(s), 0, &n_read))
GETS(tnk_samples_prompt_logprobs,
     tnk_samples_prompt_logprobs(samples(s), &n_read))
GETS(tnk_samples_prompt_topk, tnk_samples_prompt_topk(samples(s)))
GETS(tnk_samples_sequence_id, tnk_samples_sequence_id(samples(s), 0))
GETS(tnk_samples_stop_reason, tnk_samples_stop_reason(samples(s), 0))
GETS(tnk_samples_target_logprobs, tnk_samples_target_logprobs(samples(s)))
GETS(tnk_samples_tokens, tnk_samples_tokens(samples(s), 0, &n_read))
GETS(tnk_samples_topk, tnk_samples_topk(samples(s), 0))
GETS(tnk_strerror, tnk_strerror(TNK_EINVAL))
GETS(tnk_tensor_f32, tnk_tensor_f32(NULL, 0))
GETS(tnk_tensor_i64, tnk_tensor_i64(NULL, 0))
GETS(tnk_version, tnk_version())

static tnk_promise_t *
group(stage_t *s, tnk_promise_t *(*make)(tnk_promise_t *const *, size_t)) {
  tnk_promise_t *both[2] = {tnk_promise_ref(s->settled),
                            tnk_service_health(s->script.service)};

  return make(both, 2);
}

static tnk_promise_t *first_of(tnk_promise_t *const *promises, size_t n) {
  return tnk_quorum(promises, n, 1);
}
KEEPS(tnk_all, group(s, tnk_all))
KEEPS(tnk_all_settled, group(s, tnk_all_settled))
KEEPS(tnk_quorum, group(s, first_of))
KEEPS(tnk_with_timeout, tnk_with_timeout(tnk_promise_ref(s->settled), 1))
KEEPS(tnk_then, tnk_promise_ref(s->settled))
ROW(tnk_promise_forget) {
  tnk_then(tnk_promise_ref(s->settled), on_settled, &inside);
  CHECK_INT(tnk_promise_forget(s->settled, on_settled, &inside), TNK_OK);
}
ROW(tnk_promise_cancel) {
  tnk_promise_t *promise = tnk_service_health(s->script.service);

  keep(s, tnk_promise_ref(promise));
  tnk_promise_cancel(promise);
  tnk_promise_unref(promise);
}
ROW(tnk_promise_unref) {
  tnk_promise_unref(tnk_service_health(s->script.service));
}
ROW(tnk_promise_ref) {
  tnk_promise_unref(tnk_promise_ref(s->settled));
}
ROW(tnk_promise_explain) {
  char text[64];

  tnk_promise_explain(s->settled, text, sizeof(text));
}
GETS(tnk_promise_capabilities, tnk_promise_capabilities(s->models))
GETS(tnk_promise_child, tnk_promise_child(s->settled, 0))
GETS(tnk_promise_error, tnk_promise_error(s->settled))
GETS(tnk_promise_logprobs, tnk_promise_logprobs(s->settled, NULL))
GETS(tnk_promise_metrics, tnk_promise_metrics(s->step))
GETS(tnk_promise_page, tnk_promise_page(s->listed))
GETS(tnk_promise_pass, tnk_promise_pass(s->pass))
GETS(tnk_promise_path, tnk_promise_path(s->settled))
GETS(tnk_promise_pushed, tnk_promise_pushed(s->settled))
GETS(tnk_promise_samples, tnk_promise_samples(s->sample))
GETS(tnk_promise_sampling, tnk_promise_sampling(s->settled))
GETS(tnk_promise_state, tnk_promise_state(s->settled))
GETS(tnk_promise_status, tnk_promise_status(s->settled))
GETS(tnk_promise_text, tnk_promise_text(s->settled))
GETS(tnk_promise_tokenizer, tnk_promise_tokenizer(s->settled))
GETS(tnk_promise_training, tnk_promise_training(s->settled))
/* These two may turn the loop, but not inside of a callback; what has settled
 * needs no turn. */
GETS(tnk_wait, tnk_wait(s->settled))
GETS(tnk_take_training, tnk_take_training(tnk_promise_ref(s->settled), NULL, 0))
GETS(tnk_take_sampling, tnk_take_sampling(tnk_promise_ref(s->settled), NULL, 0))

typedef struct {
  uv_sem_t made;
  tnk_hub_t *hub;
  tnk_promise_t *promise;
} there_t;

static void make_there(uv_loop_t *loop, void *user) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  there_t *there = user;

  options.cache_dir = "/dev/null/x";
  CHECK_INT(tnk_hub_open(&there->hub, loop, &options, NULL, 0), TNK_OK);
  there->promise = tnk_hub_tokenizer(there->hub, NULL, "a/b", NULL);
  uv_sem_post(&there->made);
}

/* Callbacks run on a thread of its own, as test_runtime.c tells. */
ROW(tnk_runtime_unref) {
  tnk_runtime_t *runtime;
  there_t there = {0};

  (void)s;
  CHECK_INT(uv_sem_init(&there.made, 0), 0);
  CHECK_INT(tnk_runtime_start(&runtime), TNK_OK);
  CHECK_INT(tnk_runtime_post(runtime, make_there, &there), TNK_OK);
  uv_sem_wait(&there.made);
  CHECK_INT(tnk_runtime_unref(runtime, there.promise), TNK_OK);
  CHECK_INT(tnk_runtime_stop(runtime), TNK_OK);
  uv_sem_destroy(&there.made);
}
ELSEWHERE(tnk_runtime_start)
ELSEWHERE(tnk_runtime_post)
ELSEWHERE(tnk_runtime_stop)
GETS(tnk_runtime_loop, tnk_runtime_loop(NULL))
/* A queue has the thread of its runtime: test_queue.c. */
ELSEWHERE(tnk_queue_new)
ELSEWHERE(tnk_queue_call)
ELSEWHERE(tnk_queue_watch)
ELSEWHERE(tnk_queue_take)
ELSEWHERE(tnk_queue_fd)
ELSEWHERE(tnk_queue_close)
ELSEWHERE(tnk_queue_free)

KEEPS(tnk_hub_download,
      tnk_hub_download(s->hub, "http://127.0.0.1:1/", "/dev/null/x/a", NULL))
KEEPS(tnk_hub_push, tnk_hub_push(s->hub, "/dev/null/x", NULL))
KEEPS(tnk_hub_file, tnk_hub_file(s->hub, "a/b", "c", NULL))
KEEPS(tnk_hub_tokenizer, tnk_hub_tokenizer(s->hub, NULL, "a/b", NULL))
GETS(tnk_hub_forget, tnk_hub_forget(s->hub, NULL))
ROW(tnk_hub_open) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;

  options.cache_dir = "/dev/null/x";
  CHECK_INT(tnk_hub_open(&s->opened_hub, &s->script.uv, &options, NULL, 0),
            TNK_OK);
  s->n_expected++;
  tnk_hub_close(s->opened_hub, on_closed, s);
}
ELSEWHERE(tnk_hub_close)

ROW(tnk_service_open) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.api_key = script_key();
  options.base_url = mock_url(s->script.mock);
  CHECK_INT(tnk_service_open(&s->opened, &s->script.uv, &options, NULL, 0),
            TNK_OK);
  keep(s, tnk_service_health(s->opened));
  s->n_expected++;
  tnk_service_close(s->opened, on_closed, s);
}
ELSEWHERE(tnk_service_close)
KEEPS(tnk_service_capabilities, tnk_service_capabilities(s->script.service))
KEEPS(tnk_service_health, tnk_service_health(s->script.service))
KEEPS(tnk_service_create_lora, tnk_service_create_lora(s->script.service, NULL))
KEEPS(tnk_service_create_sampling,
      tnk_service_create_sampling(s->script.service, NULL))
KEEPS(tnk_service_restore, tnk_service_restore(s->script.service, NULL))
GETS(tnk_service_session_id, tnk_service_session_id(s->script.service))
GETS(tnk_service_totals, tnk_service_totals(&totals, s->script.service))
GETS(tnk_service_run_totals, tnk_service_run_totals(&totals, s->script.service))
GETS(tnk_service_set_budget,
     tnk_service_set_budget(s->script.service, NULL, NULL, 0))
GETS(tnk_training_totals, tnk_training_totals(&totals, s->script.training))
GETS(tnk_sampling_totals, tnk_sampling_totals(&totals, s->script.sampling))
ROW(tnk_service_stats) {
  tnk_stats_t stats = TNK_STATS_INIT;

  CHECK_INT(tnk_service_stats(&stats, s->script.service), TNK_OK);
}
GETS(tnk_service_dump,
     tnk_service_dump(s->script.service, TNK_DUMP_TEXT, on_dump, s))

KEEPS(tnk_sampling_sample, script_sample(&s->script))
KEEPS(tnk_sampling_sample_stream,
      tnk_sampling_sample_stream(s->script.sampling, script_prompt(), NULL,
                                 NULL))
KEEPS(tnk_sampling_compute_logprobs,
      tnk_sampling_compute_logprobs(s->script.sampling, script_prompt(), NULL))
GETS(tnk_sampling_base_model, tnk_sampling_base_model(s->script.sampling))
GETS(tnk_sampling_id, tnk_sampling_id(s->script.sampling))
GETS(tnk_custom_loss_defer, tnk_custom_loss_defer(NULL))
GETS(tnk_custom_loss_finish, tnk_custom_loss_finish(NULL, 0))
GETS(tnk_loss_id, tnk_loss_id(NULL))
GETS(tnk_promise_loss, tnk_promise_loss(s->settled))
KEEPS(tnk_service_create_loss, tnk_service_create_loss(s->script.service, NULL))
KEEPS(tnk_sampling_clone, tnk_sampling_clone(s->script.sampling))
GETS(tnk_sampling_export, tnk_sampling_export(s->script.sampling))
GETS(tnk_sampling_close, tnk_sampling_close(NULL, on_closed, s))

static tnk_promise_t *pass(stage_t *s, int is_lent) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;

  options.release = on_closed;
  options.release_user = s;
  s->n_expected++;
  return tnk_training_forward(s->script.training,
                              is_lent ? script_data(1) : NULL, 1, &options);
}

/* Lent data, of a call that is taken and of one that is refused. */
ROW(tnk_training_forward) {
  keep(s, pass(s, 1));
  keep(s, pass(s, 0));
}
KEEPS(tnk_training_forward_backward, script_pass(&s->script, 1))
ROW(tnk_training_forward_backward_custom) {
  s->n_expected++;
  keep(s, tnk_training_forward_backward_custom(
              s->script.training, script_data(1), 1, on_loss, s, NULL));
}
#include "depth_train.h"

#define ENTRY(name) call_##name,
static void (*const rows[])(stage_t *s) = {TNK_EXPORTS(ENTRY)};

/* Once from each place, which otherwise would call itself for ever. */
static void call_all(stage_t *stage) {
  stage->n_all++;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    inside++;
    rows[i](stage);
    inside--;
  }
}

/* ---- From everywhere ---- */

static void all_on_settled(tnk_promise_t *promise, int status, void *user) {
  on_settled(promise, status, user);
  call_all(user);
}

static void all_on_closed(void *user) {
  on_closed(user);
  call_all(user);
}

static int all_on_loss(tnk_custom_loss_t *io, void *user) {
  on_loss(io, user);
  call_all(user);
  return 0;
}

static void all_on_dump(const char *text, size_t length, void *user) {
  (void)text;
  (void)length;
  call_all(user);
}

static void all_on_state(const char *client, tnk_queue_state_t state,
                         const char *reason, void *user) {
  stage_t *stage = user;

  (void)client;
  (void)state;
  (void)reason;
  CHECK_INT(inside, 0);
  if (stage->n_told++ == 0)
    call_all(stage);
}

static tnk_promise_t *done(tnk_promise_t *promise) {
  CHECK_INT(tnk_wait(promise), TNK_OK);
  return promise;
}

static void stage_open(stage_t *stage) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_hub_options_t hub = TNK_HUB_OPTIONS_INIT;

  memset(stage, 0, sizeof(*stage));
  options.on_queue_state = all_on_state;
  options.queue_state_user = stage;
  script_open_with(&stage->script, options);
  hub.cache_dir = "/dev/null/x";
  /* It has a clock of its own, a real one: nothing is to be waited for. */
  hub.offline = TNK_YES;
  hub.max_retries = UINT32_MAX;
  CHECK_INT(tnk_hub_open(&stage->hub, &stage->script.uv, &hub, NULL, 0),
            TNK_OK);
  script_train(&stage->script);
  script_sampler(&stage->script);
  stage->settled = done(tnk_service_health(stage->script.service));
  stage->models = done(tnk_service_capabilities(stage->script.service));
  stage->pass = done(script_pass(&stage->script, 1));
  stage->step = done(script_step(&stage->script));
  stage->sample = done(script_sample(&stage->script));
  mock_json(stage->script.mock, "GET", "/api/v1/training_runs", 200,
            "{\"training_runs\":[{\"training_run_id\":\"a\",\"base_model\":"
            "\"m\",\"model_owner\":\"o\",\"is_lora\":true,"
            "\"last_request_time\":1}],\"cursor\":{\"total_count\":2}}");
  stage->listed = done(tnk_rest_list_runs(stage->script.service, NULL));
  CHECK(models(stage) != NULL && passed(stage) != NULL);
  CHECK(metrics(stage) != NULL && samples(stage) != NULL);
  CHECK_INT(tnk_page_count(page(stage)), 1);
  stage->opened_ledger = done(ledger_open_in(stage));
  stage->batch = tnk_batch_new(NULL);
  CHECK(stage->batch != NULL);
}

static void stage_wait(stage_t *stage) {
  while (stage->n_called < stage->n_expected)
    if (ledger_is_busy(stage->script.service))
      mock_turns(stage->script.mock, 1);
    else
      script_later(&stage->script, 1000);
  CHECK_INT(stage->n_called, stage->n_expected);
}

static void stage_close(stage_t *stage, int n_all) {
  stage_wait(stage);
  CHECK_INT(stage->n_all, n_all);
  tnk_batch_free(stage->batch);
  ledger_remove(stage);
  tnk_promise_unref(stage->settled);
  tnk_promise_unref(stage->models);
  tnk_promise_unref(stage->pass);
  tnk_promise_unref(stage->step);
  tnk_promise_unref(stage->sample);
  tnk_promise_unref(stage->listed);
  tnk_hub_close(stage->hub, NULL, NULL);
  tnk_service_close(stage->script.service, script_closed, &stage->script);
  script_end(&stage->script);
}

TEST_LIMIT(no_callback_runs_inside_of_a_call, 30) {
  stage_t stage;

  stage_open(&stage);
  call_all(&stage);
  stage_close(&stage, 1);
}

TEST_LIMIT(everything_can_be_called_from_the_callback_of_a_promise, 30) {
  stage_t stage;

  stage_open(&stage);
  stage.n_expected = 1;
  tnk_then(script_step(&stage.script), all_on_settled, &stage);
  stage_close(&stage, 1);
}

TEST_LIMIT(everything_can_be_called_when_a_client_has_closed, 30) {
  stage_t stage;
  tnk_sampling_t *first;

  stage_open(&stage);
  first = stage.script.sampling;
  script_sampler(&stage.script);
  stage.n_expected = 1;
  tnk_sampling_close(first, all_on_closed, &stage);
  stage_close(&stage, 1);
}

TEST_LIMIT(everything_can_be_called_when_lent_data_comes_back, 30) {
  tnk_pass_options_t options = TNK_PASS_OPTIONS_INIT;
  stage_t stage;

  stage_open(&stage);
  options.release = all_on_closed;
  options.release_user = &stage;
  stage.n_expected = 1;
  keep(&stage, tnk_training_forward(stage.script.training, script_data(1), 1,
                                    &options));
  stage_close(&stage, 1);
}

TEST_LIMIT(everything_can_be_called_from_a_loss, 30) {
  stage_t stage;

  stage_open(&stage);
  stage.n_expected = 1;
  keep(&stage, tnk_training_forward_backward_custom(stage.script.training,
                                                    script_data(1), 1,
                                                    all_on_loss, &stage, NULL));
  stage_close(&stage, 1);
}

TEST_LIMIT(everything_can_be_called_from_a_notice, 30) {
  stage_t stage;

  stage_open(&stage);
  mock_on(stage.script.mock, "POST", "/api/v1/retrieve_future", mock_hold,
          NULL);
  keep(&stage, script_step(&stage.script));
  script_turns(&stage.script);
  script_later(&stage.script, 61000);
  CHECK(stage.n_told > 0);
  mock_on(stage.script.mock, "POST", "/api/v1/retrieve_future", script_result,
          &stage.script);
  stage_close(&stage, 1);
}

TEST_LIMIT(everything_can_be_called_from_a_dump, 30) {
  stage_t stage;

  stage_open(&stage);
  CHECK_INT(tnk_service_dump(stage.script.service, TNK_DUMP_JSON, all_on_dump,
                             &stage),
            TNK_OK);
  stage_close(&stage, 1);
}

/* SPDX-License-Identifier: MIT */
/*
 * Sized structs through the calls that take them, each row of the table: a
 * caller whose struct ends where its memory ends, and one that is newer than
 * this library. A struct without a call here does not compile.
 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "lib/base/options.h"
#include "support/guard.h"
#include "task/script.h"

typedef struct {
  script_t script;
  tnk_hub_t *hub;
  char why[512];
} stage_t;

/* How a promise was refused at once; TNK_OK: it was not. */
static int refusal(stage_t *stage, tnk_promise_t *promise) {
  const int status = tnk_promise_status(promise);

  CHECK(promise != NULL);
  if (status < 0 && status != TNK_EPENDING)
    snprintf(stage->why, sizeof(stage->why), "%s", tnk_promise_text(promise));
  tnk_promise_unref(promise);
  return status == TNK_EPENDING ? TNK_OK : status;
}

#define TAKE(type)                                                             \
  static int take_##type(stage_t *s, void *data);                              \
  static int take_##type(stage_t *s, void *data)
#define PROMISES(type, call)                                                   \
  TAKE(type) {                                                                 \
    return refusal(s, call);                                                   \
  }

TAKE(tnk_service_options_t) {
  tnk_service_t *service;
  int err =
      tnk_service_open(&service, &s->script.uv, data, s->why, sizeof(s->why));

  tnk_service_close(service, NULL, NULL);
  return err;
}
TAKE(tnk_hub_options_t) {
  tnk_hub_t *hub;
  int err = tnk_hub_open(&hub, &s->script.uv, data, s->why, sizeof(s->why));

  tnk_hub_close(hub, NULL, NULL);
  return err;
}
TAKE(tnk_otlp_options_t) {
  tnk_otlp_t *otlp;
  int err = tnk_otlp_open(&otlp, &s->script.uv, data, s->why, sizeof(s->why));

  tnk_otlp_close(otlp, NULL, NULL);
  return err;
}
PROMISES(tnk_lora_options_t, tnk_service_create_lora(s->script.service, data))
PROMISES(tnk_restore_options_t, tnk_service_restore(s->script.service, data))
PROMISES(tnk_sampling_options_t,
         tnk_service_create_sampling(s->script.service, data))
PROMISES(tnk_list_options_t, tnk_rest_list_runs(s->script.service, data))
PROMISES(tnk_copy_options_t, tnk_rest_copy_weights(s->script.service, data))
PROMISES(tnk_search_options_t,
         tnk_rest_search_sessions(s->script.service, data))
PROMISES(tnk_loss_options_t, tnk_service_create_loss(s->script.service, data))
PROMISES(tnk_weights_options_t,
         tnk_weights_download(s->script.service,
                              "tinker://r/external_weights/a",
                              "/dev/null/x/a/b", data))
PROMISES(tnk_pass_options_t,
         tnk_training_forward(s->script.training, script_data(1), 1, data))
TAKE(tnk_plan_options_t) {
  tnk_plan_t *plan;
  int err = tnk_plan_new(&plan, data, s->why, sizeof(s->why));

  tnk_plan_free(plan);
  return err;
}
PROMISES(tnk_eval_options_t,
         tnk_training_evaluate(s->script.training, script_data(1), 1, data))
/* Its function returns a number; it reads the struct with the same loader. */
TAKE(tnk_schedule_t) {
  tnk_schedule_t own = TNK_SCHEDULE_INIT;

  return TNK__LOAD(tnk_schedule_t, &own, (const tnk_schedule_t *)data, s->why,
                   sizeof(s->why));
}
PROMISES(tnk_optim_t, tnk_training_optim_step(s->script.training, data))
PROMISES(tnk_save_options_t,
         tnk_training_save_state(s->script.training, "a", data))
PROMISES(tnk_hosted_request_t, tnk_service_hosted(s->script.service, data))
PROMISES(tnk_ledger_options_t,
         tnk_ledger_open(s->script.service, "/dev/null/x", data))
/* Checked as there is no ledger. */
TAKE(tnk_ledger_resume_t) {
  tnk_ledger_resume_t own = TNK_LEDGER_RESUME_INIT;

  return TNK__LOAD(tnk_ledger_resume_t, &own, (const tnk_ledger_resume_t *)data,
                   s->why, sizeof(s->why));
}
TAKE(tnk_ledger_save_t) {
  tnk_ledger_save_t own = TNK_LEDGER_SAVE_INIT;

  return TNK__LOAD(tnk_ledger_save_t, &own, (const tnk_ledger_save_t *)data,
                   s->why, sizeof(s->why));
}
PROMISES(tnk_load_options_t, tnk_training_load_state(s->script.training, data))
PROMISES(tnk_sampling_params_t,
         tnk_sampling_sample(s->script.sampling, script_prompt(), data, NULL))
PROMISES(tnk_sample_options_t,
         tnk_sampling_sample(s->script.sampling, script_prompt(), NULL, data))
PROMISES(tnk_sample_stream_options_t,
         tnk_sampling_sample_stream(s->script.sampling, script_prompt(), NULL,
                                    data))
PROMISES(tnk_logprobs_options_t,
         tnk_sampling_compute_logprobs(s->script.sampling, script_prompt(),
                                       data))
PROMISES(tnk_download_options_t,
         tnk_hub_download(s->hub, "http://127.0.0.1:1/", "/dev/null/x/a", data))
PROMISES(tnk_hub_file_options_t, tnk_hub_file(s->hub, "a/b", "c", data))
PROMISES(tnk_push_options_t, tnk_hub_push(s->hub, "/dev/null/x", data))
PROMISES(tnk_hub_tokenizer_options_t,
         tnk_hub_tokenizer(s->hub, NULL, "a/b", data))
PROMISES(tnk_tokenizer_plugin_t, tnk_hub_tokenizer(s->hub, data, "a/b", NULL))
/* Read by the other libraries, with the same loader. */
TAKE(tnk_tokenizer_options_t) {
  tnk_tokenizer_options_t own = TNK_TOKENIZER_OPTIONS_INIT;

  return TNK__LOAD(tnk_tokenizer_options_t, &own,
                   (const tnk_tokenizer_options_t *)data, s->why,
                   sizeof(s->why));
}
TAKE(tnk_chat_template_options_t) {
  tnk_chat_template_options_t own = TNK_CHAT_TEMPLATE_OPTIONS_INIT;

  return TNK__LOAD(tnk_chat_template_options_t, &own,
                   (const tnk_chat_template_options_t *)data, s->why,
                   sizeof(s->why));
}
TAKE(tnk_chat_options_t) {
  tnk_chat_options_t own = TNK_CHAT_OPTIONS_INIT;

  return TNK__LOAD(tnk_chat_options_t, &own, (const tnk_chat_options_t *)data,
                   s->why, sizeof(s->why));
}
TAKE(tnk_stats_t) {
  return tnk_service_stats(data, s->script.service);
}
TAKE(tnk_budget_t) {
  return tnk_service_set_budget(s->script.service, data, s->why,
                                sizeof(s->why));
}
TAKE(tnk_totals_t) {
  return tnk_service_totals(data, s->script.service);
}
TAKE(tnk_training_info_t) {
  return tnk_training_info(data, s->script.training);
}
TAKE(tnk_drift_t) {
  static const float one[] = {-1};

  (void)s;
  return tnk_rl_drift(data, one, one, NULL, 1);
}
TAKE(tnk_gateway_options_t) {
  tnk_gateway_options_t own = TNK_GATEWAY_OPTIONS_INIT;

  return TNK__LOAD(tnk_gateway_options_t, &own,
                   (const tnk_gateway_options_t *)data, s->why, sizeof(s->why));
}
TAKE(tnk_gateway_key_options_t) {
  tnk_gateway_key_options_t own = TNK_GATEWAY_KEY_OPTIONS_INIT;

  return TNK__LOAD(tnk_gateway_key_options_t, &own,
                   (const tnk_gateway_key_options_t *)data, s->why,
                   sizeof(s->why));
}
TAKE(tnk_otlp_stats_t) {
  (void)s;
  return tnk_otlp_stats(data, NULL);
}
TAKE(tnk_gateway_stats_t) {
  const tnk_gateway_stats_t own = TNK_GATEWAY_STATS_INIT;

  (void)s;
  return TNK__FILL(tnk_gateway_stats_t, (tnk_gateway_stats_t *)data, &own);
}
TAKE(tnk_path_t) {
  (void)s;
  return tnk_path_parse(data, "tinker://run/weights/a");
}

typedef struct {
  int (*take)(stage_t *s, void *data);
  const tnk__struct_t *row;
} call_t;

#define CALL(type, ...) {take_##type, tnk__struct(TNK__STRUCT_##type)},

/* A zeroed struct of `size` bytes, right before memory that may not be touched;
 * the byte at `at` is set. SIZE_MAX: none is. */
static int take(stage_t *stage, const call_t *call, size_t size, size_t told,
                size_t at) {
  guarded_t guarded = guarded_copy(&told, sizeof(told), size);
  int err;

  if (at < size)
    ((char *)guarded.data)[at] = 1;
  stage->why[0] = '\0';
  err = call->take(stage, guarded.data);
  guarded_free(&guarded);
  return err;
}

/* Whatever the members say: nothing is said of the size. */
static void expect_read(stage_t *stage, const call_t *call, size_t size) {
  const int err = take(stage, call, size, size, SIZE_MAX);

  if (err == TNK_ENOTSUP || strstr(stage->why, "size is") != NULL ||
      strstr(stage->why, "does not know") != NULL)
    test_fail(__FILE__, __LINE__, "%s of %zu bytes: %d: %s", call->row->name,
              size, err, stage->why);
}

static void expect_refused(stage_t *stage, int err, int code, const char *name,
                           const char *words) {
  if (err != code || strstr(stage->why, name) == NULL ||
      strstr(stage->why, words) == NULL)
    test_fail(__FILE__, __LINE__, "%d: \"%s\", expected %d, %s, %s", err,
              stage->why, code, name, words);
}

static void stage_open(stage_t *stage) {
  tnk_hub_options_t hub = TNK_HUB_OPTIONS_INIT;

  memset(stage, 0, sizeof(*stage));
  setenv("TINKER_API_KEY", script_key(), 1);
  setenv("HF_HUB_CACHE", "/dev/null/x", 1);
  script_open(&stage->script);
  hub.cache_dir = "/dev/null/x";
  CHECK_INT(tnk_hub_open(&stage->hub, &stage->script.uv, &hub, NULL, 0),
            TNK_OK);
  script_train(&stage->script);
  script_sampler(&stage->script);
}

static void stage_close(stage_t *stage) {
  tnk_hub_close(stage->hub, NULL, NULL);
  tnk_service_close(stage->script.service, script_closed, &stage->script);
  script_end(&stage->script);
}

TEST_LIMIT(each_struct_of_an_old_and_of_a_new_caller_is_read_as_it_says, 30) {
  const call_t calls[] = {TNK__STRUCTS_IN(CALL)};
  stage_t stage;

  stage_open(&stage);
  for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
    const tnk__struct_t *row = calls[i].row;
    const size_t newer = row->size + 16;
    expect_read(&stage, &calls[i], row->first);
    expect_read(&stage, &calls[i], newer);
    expect_refused(&stage, take(&stage, &calls[i], newer, newer, newer - 1),
                   TNK_ENOTSUP, row->name, "has a member at byte");
    expect_refused(&stage, take(&stage, &calls[i], sizeof(size_t), 0, SIZE_MAX),
                   TNK_EINVAL, row->init, "size is 0: begin with");
    if (row->n_reserved > 0)
      expect_refused(
          &stage,
          take(&stage, &calls[i], row->size, row->size, row->reserved_at),
          TNK_ENOTSUP, row->name, ".reserved is set");
  }
  stage_close(&stage);
}

TEST_LIMIT(each_struct_that_is_filled_ends_where_its_caller_ends, 30) {
  const call_t calls[] = {TNK__STRUCTS_OUT(CALL)};
  stage_t stage;

  stage_open(&stage);
  for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
    const tnk__struct_t *row = calls[i].row;
    const size_t newer = row->size + 16;
    CHECK_INT(take(&stage, &calls[i], row->first, row->first, SIZE_MAX),
              TNK_OK);
    CHECK_INT(take(&stage, &calls[i], newer, newer, SIZE_MAX), TNK_OK);
    CHECK_INT(take(&stage, &calls[i], newer, newer, newer - 1), TNK_OK);
    CHECK_INT(take(&stage, &calls[i], sizeof(size_t), 0, SIZE_MAX), TNK_EINVAL);
  }
  stage_close(&stage);
}

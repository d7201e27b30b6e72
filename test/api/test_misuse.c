/* SPDX-License-Identifier: MIT */
/*
 * Handles that are gone, closed or of another kind. Linked twice: a debug build
 * of the library ends the program, a release build refuses the call.
 *
 * Memory stays after it has been freed, as it may do outside of a test too, so
 * that what is found in it is certain.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/misuse.h"
#include "support/abort.h"
#include "task/script.h"

/* ---- An allocator that only seems to free ---- */

typedef struct hoarded {
  struct hoarded *next;
} hoarded_t;

static hoarded_t *hoard;

static void *hoard_malloc(size_t size, void *user) {
  hoarded_t *block = malloc(sizeof(*block) + 8 + size);

  (void)user;
  if (block == NULL)
    return NULL;
  block->next = hoard;
  hoard = block;
  memcpy(block + 1, &size, sizeof(size));
  return (char *)(block + 1) + 8;
}

static void *hoard_calloc(size_t n, size_t size, void *user) {
  void *data = hoard_malloc(n * size, user);

  return data != NULL ? memset(data, 0, n * size) : NULL;
}

static void *hoard_realloc(void *old, size_t size, void *user) {
  void *data = hoard_malloc(size, user);
  size_t n = 0;

  if (old != NULL)
    memcpy(&n, (char *)old - 8, sizeof(n));
  if (data != NULL && old != NULL)
    memcpy(data, old, n < size ? n : size);
  return data;
}

static void hoard_free(void *data, void *user) {
  (void)data;
  (void)user;
}

static void hoard_empty(void) {
  while (hoard != NULL) {
    hoarded_t *next = hoard->next;
    free(hoard);
    hoard = next;
  }
}

/* ---- Handles that are gone ---- */

typedef struct {
  script_t script;
  tnk_promise_t *promise;
  tnk_hub_t *hub;
} gone_t;

/* Everything has been made, closed and freed. */
static void make(gone_t *gone) {
  static const tnk_allocator_t hoarding = {hoard_malloc, hoard_calloc,
                                           hoard_realloc, hoard_free, NULL};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_hub_options_t hub_options = TNK_HUB_OPTIONS_INIT;

  options.allocator = &hoarding;
  script_open_with(&gone->script, options);
  hub_options.allocator = &hoarding;
  hub_options.cache_dir = "/dev/null/x";
  CHECK_INT(tnk_hub_open(&gone->hub, &gone->script.uv, &hub_options, NULL, 0),
            TNK_OK);
  script_train(&gone->script);
  script_sampler(&gone->script);
  gone->promise = script_sample(&gone->script);
  tnk_hub_close(gone->hub, NULL, NULL);
  script_close(&gone->script);
  tnk_promise_unref(gone->promise);
}

static void use_service(void *user) {
  gone_t *gone = user;
  tnk_stats_t stats = TNK_STATS_INIT;
  tnk_totals_t totals = TNK_TOTALS_INIT;

  CHECK(tnk_service_health(gone->script.service) == NULL);
  CHECK(tnk_service_create_lora(gone->script.service, NULL) == NULL);
  CHECK(tnk_service_create_loss(gone->script.service, NULL) == NULL);
  CHECK(tnk_service_session_id(gone->script.service) == NULL);
  CHECK_INT(tnk_service_stats(&stats, gone->script.service), TNK_OK);
  CHECK_INT(tnk_service_totals(&totals, gone->script.service), TNK_OK);
  CHECK_INT(tnk_service_run_totals(&totals, gone->script.service), TNK_OK);
  CHECK_INT(tnk_service_set_budget(gone->script.service, NULL, NULL, 0),
            TNK_EINVAL);
  CHECK_INT(tnk_service_dump(gone->script.service, TNK_DUMP_TEXT, NULL, NULL),
            TNK_EINVAL);
}

static void close_service(void *user) {
  gone_t *gone = user;
  tnk_service_close(gone->script.service, script_closed, NULL);
}

static void use_hub(void *user) {
  gone_t *gone = user;
  CHECK(tnk_hub_file(gone->hub, "a/b", "c", NULL) == NULL);
  CHECK(tnk_hub_push(gone->hub, "/a", NULL) == NULL);
  CHECK_INT(tnk_hub_forget(gone->hub, NULL), TNK_EINVAL);
}

static void close_hub(void *user) {
  gone_t *gone = user;
  tnk_hub_close(gone->hub, script_closed, NULL);
}

static void use_training(void *user) {
  gone_t *gone = user;
  tnk_training_info_t info = TNK_TRAINING_INFO_INIT;

  CHECK(script_step(&gone->script) == NULL);
  CHECK(script_pass(&gone->script, 1) == NULL);
  CHECK(tnk_training_ready(gone->script.training) == NULL);
  CHECK(tnk_training_unload(gone->script.training) == NULL);
  CHECK_INT(tnk_training_info(&info, gone->script.training), TNK_OK);
  CHECK(info.model_id == NULL);
}

static void close_training(void *user) {
  gone_t *gone = user;
  tnk_training_close(gone->script.training, script_closed, NULL);
}

static void use_sampling(void *user) {
  gone_t *gone = user;
  CHECK(script_sample(&gone->script) == NULL);
  CHECK(tnk_sampling_id(gone->script.sampling) == NULL);
  CHECK(tnk_sampling_export(gone->script.sampling) == NULL);
  CHECK(tnk_sampling_clone(gone->script.sampling) == NULL);
}

static void close_sampling(void *user) {
  gone_t *gone = user;
  tnk_sampling_close(gone->script.sampling, script_closed, NULL);
}

static void use_promise(void *user) {
  gone_t *gone = user;
  CHECK_INT(tnk_promise_status(gone->promise), TNK_EINVAL);
  CHECK_INT(tnk_then(gone->promise, outcome_done, NULL), TNK_EINVAL);
  CHECK_INT(tnk_wait(gone->promise), TNK_EINVAL);
  CHECK(tnk_promise_samples(gone->promise) == NULL);
  CHECK(tnk_all(&gone->promise, 1) == NULL);
  CHECK(tnk_with_timeout(gone->promise, 5) == NULL);
}

static void unref_promise(void *user) {
  gone_t *gone = user;
  tnk_promise_unref(gone->promise);
}

/* A handle of one kind where another is expected. */
static void take_for_another(void *user) {
  gone_t *gone = user;
  tnk_hub_t *hub = (tnk_hub_t *)(void *)gone->script.service;

  CHECK(tnk_hub_file(hub, "a/b", "c", NULL) == NULL);
}

static void stop_runtime(void *user) {
  gone_t *gone = user;
  struct {
    uint32_t magic;
  } none = {TNK__MAGIC_PROMISE};

  (void)gone;
  CHECK_INT(tnk_runtime_stop((tnk_runtime_t *)(void *)&none), TNK_OK);
  CHECK_INT(tnk_runtime_post((tnk_runtime_t *)(void *)&none, NULL, NULL),
            TNK_EINVAL);
}

static const struct {
  const char *says; /* a debug build */
  void (*use)(void *gone);
} misuses[] = {
    {"tnk_service_health(): service is no handle", use_service},
    {"tnk_service_close(): service is no handle", close_service},
    {"tnk_hub_file(): hub is no handle", use_hub},
    {"tnk_hub_close(): hub is no handle", close_hub},
    {"tnk_training_optim_step(): training is no handle", use_training},
    {"tnk_training_close(): training is no handle", close_training},
    {"tnk_sampling_sample(): sampling is no handle", use_sampling},
    {"tnk_sampling_close(): sampling is no handle", close_sampling},
    {"tnk_promise_status(): promise is no handle", use_promise},
    {"tnk_promise_unref(): promise is no handle", unref_promise},
    {"tnk_hub_file(): hub is no handle", take_for_another},
    {"tnk_runtime_stop(): runtime is no handle", stop_runtime},
};

TEST_LIMIT(a_handle_that_is_gone_ends_a_debug_build_and_is_null_in_a_release,
           20) {
  gone_t gone = {.hub = NULL};

  make(&gone);
  for (size_t i = 0; i < sizeof(misuses) / sizeof(misuses[0]); i++) {
    if (tnk__misuse_is_fatal())
      test_expect_abort(misuses[i].use, &gone, misuses[i].says);
    else
      misuses[i].use(&gone);
  }
  CHECK_INT(gone.script.is_closed, 1);
  hoard_empty();
}

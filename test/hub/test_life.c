/* SPDX-License-Identifier: MIT */
/*
 * Opening and closing of hubs, and what their options and the environment say.
 */
#include "hub/bench.h"

#include "lib/api/hub.h"
#include "tnk/runtime.h"

/* What the environment makes of an empty set of options, or of a given one. */
static void load(tnk__hub_config_t *config, const tnk_hub_options_t *options) {
  const tnk_hub_options_t empty = TNK_HUB_OPTIONS_INIT;
  const char *why = NULL;

  CHECK_INT(tnk__hub_config_load(config, test_allocator(),
                                 options != NULL ? options : &empty, &why),
            TNK_OK);
}

/* The cache when the environment is that before and this besides. */
static void check_cache(const char *name, const char *value,
                        const char *expected) {
  tnk__hub_config_t config;

  setenv(name, value, 1);
  load(&config, NULL);
  CHECK_STR(config.options.cache_dir, expected);
  tnk__hub_config_deinit(&config);
}

TEST(S0_4_the_cache_is_where_python_has_it) {
  bench_clear_env();
  check_cache("HOME", "/h", "/h/.cache/huggingface/hub");
  check_cache("XDG_CACHE_HOME", "/xdg", "/xdg/huggingface/hub");
  check_cache("HF_HOME", "~/hf", "/h/hf/hub");
  check_cache("HUGGINGFACE_HUB_CACHE", "/old", "/old");
  check_cache("HF_HUB_CACHE", "~", "/h");
  check_cache("HF_HUB_CACHE", "/new", "/new");
}

static void check_token(const char *expected) {
  tnk__hub_config_t config;

  load(&config, NULL);
  if (expected == NULL)
    CHECK(config.token == NULL);
  else
    CHECK_STR(config.token, expected);
  tnk__hub_config_deinit(&config);
}

TEST(a_hub_without_a_place_or_a_loop_is_refused_in_words) {
  char why[64] = "";
  tnk_hub_t *hub;

  CHECK_INT(tnk_hub_open(NULL, NULL, NULL, why, sizeof(why)), TNK_EINVAL);
  CHECK_STR(why, "out is NULL");
  CHECK_INT(tnk_hub_open(&hub, NULL, NULL, why, sizeof(why)), TNK_EINVAL);
  CHECK_STR(why, "no loop was given");
  CHECK(hub == NULL);
}

TEST(S0_4_the_token_is_where_python_has_it) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  tnk__hub_config_t config;
  const char *why = NULL;
  bench_t bench;
  char path[200];

  bench_open(&bench);
  setenv("HF_HOME", bench.dir, 1);
  check_token(NULL);
  bench_write(&bench, "token", "from-home\n");
  check_token("from-home");
  bench_write(&bench, "elsewhere/t", "from-path");
  snprintf(path, sizeof(path), "%s/elsewhere/t", bench.dir);
  setenv("HF_TOKEN_PATH", path, 1);
  check_token("from-path");
  setenv("HF_TOKEN", " \n", 1);
  check_token("from-path");
  setenv("HF_TOKEN", " \r\nfrom-env\n", 1);
  check_token("from-env");
  setenv("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", 1);
  check_token(NULL);
  options.token = "given";
  load(&config, &options);
  CHECK_STR(config.token, "given");
  tnk__hub_config_deinit(&config);
  options.token = "";
  load(&config, &options);
  CHECK(config.token == NULL);
  tnk__hub_config_deinit(&config);
  options.token = "a\nb";
  CHECK_INT(tnk__hub_config_load(&config, test_allocator(), &options, &why),
            TNK_EINVAL);
  CHECK(strstr(why, "token") != NULL);
  /* A file that holds anything but a token, too. */
  unsetenv("HF_HUB_DISABLE_IMPLICIT_TOKEN");
  unsetenv("HF_TOKEN");
  bench_write(&bench, "elsewhere/t",
              "a\x01"
              "b");
  options.token = NULL;
  why = NULL;
  CHECK_INT(tnk__hub_config_load(&config, test_allocator(), &options, &why),
            TNK_EINVAL);
  CHECK(strstr(why, "token") != NULL);
  bench_close(&bench);
}

TEST(S0_4_endpoint_and_offline_follow_the_environment) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  tnk__hub_config_t config;

  bench_clear_env();
  load(&config, NULL);
  CHECK_STR(config.options.endpoint, "https://huggingface.co");
  CHECK(!config.is_offline);
  tnk__hub_config_deinit(&config);
  setenv("HF_ENDPOINT", "http://Mirror:80/hf/", 1);
  setenv("TRANSFORMERS_OFFLINE", "ON", 1);
  load(&config, NULL);
  CHECK_STR(config.options.endpoint, "http://mirror/hf");
  CHECK(config.is_offline);
  tnk__hub_config_deinit(&config);
  setenv("HF_HUB_OFFLINE", "0", 1);
  load(&config, NULL);
  CHECK(!config.is_offline);
  tnk__hub_config_deinit(&config);
  unsetenv("HF_HUB_OFFLINE");
  setenv("TRANSFORMERS_OFFLINE", "0", 1);
  options.endpoint = "https://other";
  load(&config, &options);
  CHECK_STR(config.options.endpoint, "https://other");
  CHECK(!config.is_offline);
  tnk__hub_config_deinit(&config);
}

static void check_refused(uv_loop_t *uv, const tnk_hub_options_t *options,
                          int status, const char *word) {
  tnk_hub_t *hub = (tnk_hub_t *)uv;
  char why[200];

  CHECK_INT(tnk_hub_open(&hub, uv, options, why, sizeof(why)), status);
  CHECK(hub == NULL);
  if (strstr(why, word) == NULL)
    test_fail(__FILE__, __LINE__, "%s should speak of %s", why, word);
}

TEST(S0_4_options_that_make_no_sense_are_refused) {
  const tnk_tokenizer_rule_t nameless = {.tokenizer = "a/b"};
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  uv_loop_t uv;

  bench_clear_env();
  CHECK_INT(uv_loop_init(&uv), 0);
  options.allocator = test_allocator();
  options.endpoint = "ftp://x";
  check_refused(&uv, &options, TNK_EINVAL, "endpoint");
  options.endpoint = NULL;
  options.ca_file = "/nowhere.pem";
  check_refused(&uv, &options, TNK_ECERT, "ca_file");
  options.ca_file = NULL;
  options.tokenizer_rules = &nameless;
  options.n_tokenizer_rules = 1;
  check_refused(&uv, &options, TNK_EINVAL, "rule");
  options.n_tokenizer_rules = 0;
  options.size = 3;
  check_refused(&uv, &options, TNK_EINVAL, "size");
  options.size = sizeof(options);
  unsetenv("HOME");
  check_refused(&uv, &options, TNK_EINVAL, "cache");
  check_refused(NULL, &options, TNK_EINVAL, "loop");
  uv_run(&uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&uv), 0);
}

TEST(S3_26a_hubs_open_without_memory) {
  const tnk_tokenizer_rule_t rule = {"a/b", "c/d", "e", "/f"};
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  tnk_hub_t *hub;
  uv_loop_t uv;
  int err;

  bench_clear_env();
  setenv("HF_TOKEN", TOKEN, 1);
  CHECK_INT(uv_loop_init(&uv), 0);
  options.allocator = test_allocator();
  options.tokenizer_rules = &rule;
  options.n_tokenizer_rules = 1;
  for (long n = 0;; n++) {
    test_alloc_fail_at(n);
    err = tnk_hub_open(&hub, &uv, &options, NULL, 0);
    if (!test_alloc_did_fail())
      break;
    test_alloc_fail_at(-1);
    CHECK(hub == NULL);
    if (err != TNK_ENOMEM)
      test_fail(__FILE__, __LINE__, "allocation %ld: %d", n, err);
    uv_run(&uv, UV_RUN_DEFAULT);
    CHECK_INT(test_alloc_live(), 0);
  }
  test_alloc_fail_at(-1);
  CHECK_INT(err, TNK_OK);
  tnk_hub_close(hub, NULL, NULL);
  uv_run(&uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&uv), 0);
}

TEST(SX_2_an_unused_hub_does_not_keep_the_loop_alive) {
  bench_t bench;

  bench_open(&bench);
  CHECK_INT(uv_run(&bench.uv, UV_RUN_DEFAULT), 0);
  tnk_hub_close(NULL, NULL, NULL);
  bench_close(&bench);
}

static void open_and_leave(uv_loop_t *loop, void *user) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;
  tnk_hub_t *hub;

  options.allocator = test_allocator();
  CHECK_INT(tnk_hub_open(&hub, loop, &options, NULL, 0), TNK_OK);
  tnk_then(tnk_hub_file(hub, "a/b", "c", NULL), NULL, NULL);
  ++*(int *)user;
}

TEST(SX_1_a_runtime_closes_the_hubs_left_on_it) {
  tnk_runtime_t *runtime;
  int n = 0;

  bench_clear_env();
  setenv("HF_ENDPOINT", "http://127.0.0.1:1", 1);
  setenv("HF_HOME", "/tmp/tnk-no-such-folder", 1);
  CHECK_INT(tnk_runtime_start(&runtime), TNK_OK);
  CHECK_INT(tnk_runtime_post(runtime, open_and_leave, &n), TNK_OK);
  CHECK_INT(tnk_runtime_stop(runtime), TNK_OK);
  CHECK_INT(n, 1);
}

/* SPDX-License-Identifier: MIT */
/* What was drawn, as the server's log says it, and the answers of the stub. */
#include "local/e2e.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

#include "lib/wire/format/json_read.h"
#include "tools/local/stub/stub.h"

typedef struct {
  char path[64];
  local_drawn_t *log;
} kit_t;

static void kit_open(kit_t *kit) {
  int fd;

  snprintf(kit->path, sizeof(kit->path), "/tmp/tnk-drawn-XXXXXX");
  fd = mkstemp(kit->path);
  CHECK(fd >= 0);
  close(fd);
  CHECK_INT(local_drawn_open(&kit->log, kit->path, test_allocator()), TNK_OK);
}

static void kit_close(kit_t *kit) {
  local_drawn_close(kit->log);
  unlink(kit->path);
}

/* The lines of the log, in an array. */
static json_t *kit_read(const kit_t *kit) {
  json_t *lines = json_array();
  FILE *file = fopen(kit->path, "r");
  char text[65536];

  CHECK(file != NULL);
  while (fgets(text, sizeof(text), file) != NULL) {
    json_t *line;

    CHECK_INT(tnk__json_parse_object(&line, text, strlen(text)), TNK_OK);
    json_array_append_new(lines, line);
  }
  fclose(file);
  return lines;
}

static void check_ids(const json_t *line, const char *key, const int32_t *ids,
                      size_t n) {
  const json_t *list = tnk__json_arr(line, key);

  CHECK_INT(json_array_size(list), n);
  for (size_t i = 0; i < n; i++)
    CHECK_INT(json_integer_value(json_array_get(list, i)), ids[i]);
}

static void check_line(const json_t *line, tnk_promise_t *promise, size_t i) {
  const tnk_samples_t *samples = tnk_promise_samples(promise);
  size_t n;
  const int32_t *tokens = tnk_samples_tokens(samples, i, &n);
  const float *logprobs = tnk_samples_logprobs(samples, i, &n);
  const json_t *list = tnk__json_arr(line, "logprobs");
  int64_t index = -1;

  tnk__json_get_int(line, "index", 0, INT32_MAX, &index);
  CHECK_INT(index, i);
  check_ids(line, "tokens", tokens, n);
  CHECK_INT(json_array_size(list), n);
  for (size_t k = 0; k < n; k++)
    CHECK((float)json_number_value(json_array_get(list, k)) == logprobs[k]);
  CHECK_STR(tnk__json_str(line, "stop_reason"),
            tnk_samples_stop_reason(samples, i) == TNK_STOP_LENGTH ? "length"
                                                                   : "stop");
}

TEST_LIMIT(what_the_server_draws_is_in_the_log, 60) {
  static const int32_t prompt[] = {'t', 'h', 'e', ' '};
  static const tnk_sample_options_t two = {.size = sizeof(tnk_sample_options_t),
                                           .n_samples = 2};
  local_options_t options = LOCAL_OPTIONS_INIT;
  tnk_promise_t *first;
  tnk_promise_t *second;
  json_t *lines;
  kit_t kit;
  e2e_t e2e;

  kit_open(&kit);
  options.sample_log = kit.log;
  e2e_open(&e2e, options);
  e2e_train(&e2e, 2);
  first = e2e_ok(e2e_sample(e2e_snapshot(&e2e), 8, 3, &two));
  second = e2e_ok(e2e_sample(e2e_snapshot(&e2e), 300, 4, NULL));
  lines = kit_read(&kit);
  CHECK_INT(json_array_size(lines), 3);
  check_line(json_array_get(lines, 0), first, 0);
  check_line(json_array_get(lines, 1), first, 1);
  check_line(json_array_get(lines, 2), second, 0);
  check_ids(json_array_get(lines, 2), "prompt", prompt, 4);
  CHECK(strncmp(tnk__json_str(json_array_get(lines, 0), "weights"), "tinker://",
                9) == 0);
  CHECK(strcmp(tnk__json_str(json_array_get(lines, 0), "request_id"),
               tnk__json_str(json_array_get(lines, 2), "request_id")) != 0);
  json_decref(lines);
  tnk_promise_unref(first);
  tnk_promise_unref(second);
  e2e_close(&e2e);
  kit_close(&kit);
}

/* I2: one that is streamed too, once, however often it is asked for. */
TEST_LIMIT(what_is_streamed_is_in_the_log, 60) {
  static const int32_t prompt[] = {'t', 'h', 'e', ' '};
  const tnk_model_input_t input = {.tokens = prompt, .n_tokens = 4};
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  local_options_t options = LOCAL_OPTIONS_INIT;
  tnk_promise_t *promise;
  json_t *lines;
  kit_t kit;
  e2e_t e2e;

  kit_open(&kit);
  options.sample_log = kit.log;
  params.max_tokens = 8;
  e2e_open(&e2e, options);
  e2e_train(&e2e, 2);
  e2e_faults(&e2e, "drop_after_commit/stream_sample@1");
  promise = e2e_ok(
      tnk_sampling_sample_stream(e2e_snapshot(&e2e), &input, &params, NULL));
  lines = kit_read(&kit);
  CHECK_INT(json_array_size(lines), 1);
  check_line(json_array_get(lines, 0), promise, 0);
  check_ids(json_array_get(lines, 0), "prompt", prompt, 4);
  json_decref(lines);
  tnk_promise_unref(promise);
  e2e_close(&e2e);
  kit_close(&kit);
}

/* Nobody gets what the log does not have. */
TEST_LIMIT(what_cannot_be_logged_is_not_given_out, 60) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  local_drawn_t *log;
  tnk_promise_t *promise;
  e2e_t e2e;

  if (local_drawn_open(&log, "/dev/full", test_allocator()) != TNK_OK)
    test_skip("there is no /dev/full");
  options.sample_log = log;
  e2e_open(&e2e, options);
  e2e_train(&e2e, 2);
  promise = e2e_sample(e2e_snapshot(&e2e), 8, 3, NULL);
  CHECK(tnk_wait(promise) != TNK_OK);
  CHECK(strstr(tnk_promise_text(promise), "sample log") != NULL);
  tnk_promise_unref(promise);
  e2e_close(&e2e);
  local_drawn_close(log);
}

TEST(a_log_without_memory_or_place) {
  static const int32_t ids[] = {1, 2};
  static const float logprobs[] = {-0.5f, -1.5f};
  const local_drawn_line_t line = {.request_id = "r",
                                   .prompt = ids,
                                   .n_prompt = 2,
                                   .tokens = ids,
                                   .logprobs = logprobs,
                                   .n_tokens = 2};
  local_drawn_t *log;
  json_t *lines;
  kit_t kit;

  CHECK_INT(local_drawn_write(NULL, &line, 1), TNK_OK);
  CHECK(local_drawn_open(&log, "/nowhere/at/all", test_allocator()) != TNK_OK);
  CHECK(log == NULL);
  kit_open(&kit);
  test_alloc_fail_at(0);
  CHECK_INT(local_drawn_open(&log, kit.path, test_allocator()), TNK_ENOMEM);
  for (long n = 0; n == 0 || test_alloc_did_fail(); n++) {
    test_alloc_fail_at(n);
    CHECK_INT(local_drawn_write(kit.log, &line, 1),
              test_alloc_did_fail() ? TNK_ENOMEM : TNK_OK);
    if (!test_alloc_did_fail())
      break;
  }
  test_alloc_fail_at(-1);
  lines = kit_read(&kit);
  CHECK_INT(json_array_size(lines), 1);
  CHECK(json_is_null(json_object_get(json_array_get(lines, 0), "weights")));
  json_decref(lines);
  kit_close(&kit);
}

/* ---- The answers of the stub ---- */

static const char answer_lines[] =
    "\"Hi\"\n\n[7, 300, 151643]\r\n\"\\u00e9\"\n";

static int read_answers(local_stub_answers_t *answers, const char *text,
                        char *why, size_t n_why) {
  return local_stub_answers_read(answers, text, strlen(text), test_allocator(),
                                 NULL, NULL, why, n_why);
}

TEST(answers_are_texts_or_ids) {
  static const int32_t ids[] = {7, 300, 151643};
  local_stub_answers_t answers;
  char why[128];

  CHECK_INT(read_answers(&answers, answer_lines, why, sizeof(why)), TNK_OK);
  CHECK_INT(answers.n, 3);
  CHECK_INT(answers.list[0].n, 2);
  CHECK_INT(answers.list[0].tokens[1], 'i');
  CHECK_MEM(answers.list[1].tokens, 3 * sizeof(int32_t), ids, sizeof(ids));
  CHECK_INT(answers.list[2].n, 2);
  CHECK_INT(answers.list[2].tokens[0], 0xc3);
  local_stub_answers_free(&answers);
}

TEST(answers_that_are_none_are_named_by_their_line) {
  static const struct {
    const char *text;
    const char *why;
  } rows[] = {{"", "no answers"},
              {"\n \n", "no answers"},
              {"\"a\"\nplain\n", "line 2: an answer must be"},
              {"7", "line 1: an answer must be"},
              {"{}", "line 1: an answer must be"},
              {"\"a\"\n\n[1, -1]", "line 3: a token id"},
              {"[2147483648]", "line 1: a token id"},
              {"[1.5]", "line 1: a token id"}};
  local_stub_answers_t answers;
  char why[128];

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    CHECK_INT(read_answers(&answers, rows[i].text, why, sizeof(why)),
              TNK_EINVAL);
    if (strstr(why, rows[i].why) == NULL)
      test_fail(__FILE__, __LINE__, "%s, not %s", why, rows[i].why);
    local_stub_answers_free(&answers);
  }
}

TEST(answers_without_memory) {
  local_stub_answers_t answers;
  char why[128];
  int err = TNK_ENOMEM;

  for (long n = 0; err != TNK_OK; n++) {
    test_alloc_fail_at(n);
    err = read_answers(&answers, answer_lines, why, sizeof(why));
    CHECK_INT(err, test_alloc_did_fail() ? TNK_ENOMEM : TNK_OK);
    local_stub_answers_free(&answers);
  }
  test_alloc_fail_at(-1);
}

static tnk_sampling_t *base_sampler(tnk_service_t *service) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  tnk_promise_t *promise;
  tnk_sampling_t *sampling;

  options.base_model = "tnk/byte-lm";
  promise = e2e_ok(tnk_service_create_sampling(service, &options));
  sampling = tnk_promise_sampling(promise);
  tnk_promise_unref(promise);
  return sampling;
}

static void check_tokens(tnk_promise_t *promise, size_t i, const char *text,
                         tnk_stop_reason_t reason) {
  const tnk_samples_t *samples = tnk_promise_samples(promise);
  size_t n;
  const int32_t *tokens = tnk_samples_tokens(samples, i, &n);

  CHECK_INT(n, strlen(text));
  for (size_t k = 0; k < n; k++)
    CHECK_INT(tokens[k], text[k]);
  CHECK_INT(tnk_samples_stop_reason(samples, i), reason);
}

TEST_LIMIT(the_stub_says_its_answers_in_turn_and_logs_them, 60) {
  static const tnk_sample_options_t two = {.size = sizeof(tnk_sample_options_t),
                                           .n_samples = 2};
  static const int32_t prompt[] = {'t', 'h', 'e', ' '};
  local_stub_answers_t answers;
  local_stub_options_t stub = {0};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_sampling_t *sampling;
  tnk_promise_t *first;
  tnk_promise_t *second;
  local_stub_t *server;
  json_t *lines;
  char text[256];
  char url[64];
  kit_t kit;
  e2e_t e2e = {.wire = ""};

  kit_open(&kit);
  CHECK_INT(read_answers(&answers, "\"one\"\n\"second\"\n\"3\"\n", text,
                         sizeof(text)),
            TNK_OK);
  CHECK_INT(uv_loop_init(&e2e.uv), 0);
  stub.answers = &answers;
  stub.sample_log = kit.log;
  CHECK_INT(local_stub_open(&server, &e2e.uv, &stub), 0);
  snprintf(url, sizeof(url), "http://127.0.0.1:%d", local_stub_port(server));
  options.base_url = url;
  options.api_key = "tml-test";
  options.allocator = test_allocator();
  CHECK_INT(
      tnk_service_open(&e2e.service, &e2e.uv, &options, text, sizeof(text)),
      TNK_OK);
  sampling = base_sampler(e2e.service);
  first = e2e_ok(e2e_sample(sampling, 4, 1, &two));
  second = e2e_ok(e2e_sample(sampling, 100, 1, &two));
  check_tokens(first, 0, "one", TNK_STOP_SEQUENCE);
  check_tokens(first, 1, "seco", TNK_STOP_LENGTH);
  check_tokens(second, 0, "3", TNK_STOP_SEQUENCE);
  check_tokens(second, 1, "one", TNK_STOP_SEQUENCE);
  lines = kit_read(&kit);
  CHECK_INT(json_array_size(lines), 4);
  check_line(json_array_get(lines, 1), first, 1);
  check_line(json_array_get(lines, 2), second, 0);
  check_ids(json_array_get(lines, 3), "prompt", prompt, 4);
  json_decref(lines);
  tnk_promise_unref(first);
  tnk_promise_unref(second);
  e2e_stop_client(&e2e);
  local_stub_close(server);
  uv_run(&e2e.uv, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&e2e.uv), 0);
  local_stub_answers_free(&answers);
  kit_close(&kit);
}

/* SPDX-License-Identifier: MIT */
/* The dump that a service rewrites each second, where it is told to. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/wire/format/json_read.h"
#include "support/tree.h"
#include "task/script.h"

static char folder[64];
static char path[96];

static void open_dumped(script_t *script, const char *file) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.dump_file = file;
  script_open_with(script, options);
}

/* Until the thread pool is done. */
static void write_once(script_t *script, uint64_t ms) {
  tnk__timer_t *timer = &script->service->dump_file.timer;

  script_advance(script, ms);
  while (!tnk__timer_is_active(timer))
    mock_turns(script->mock, 1);
}

static json_t *read_file(void) {
  static char text[1 << 20];
  FILE *from = fopen(path, "rb");
  json_t *root;
  size_t n;

  CHECK(from != NULL);
  n = fread(text, 1, sizeof(text), from);
  fclose(from);
  CHECK_INT(tnk__json_parse_object(&root, text, n), TNK_OK);
  return root;
}

static long long clock_of(const json_t *root) {
  return json_integer_value(
      json_object_get(json_object_get(root, "process"), "clock_ms"));
}

TEST(dump_file_is_written_anew_each_second) {
  struct stat before, after;
  outcome_t outcome;
  script_t script;
  json_t *root;

  snprintf(folder, sizeof(folder), "/tmp/tnk-dump-XXXXXX");
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof(path), "%s/dump", folder);
  open_dumped(&script, path);
  CHECK(access(path, F_OK) != 0); /* in a turn of the loop */
  write_once(&script, 0);
  root = read_file();
  CHECK_INT(clock_of(root), 1000000);
  json_decref(root);
  script_train(&script);
  mock_on(script.mock, "POST", "/api/v1/optim_step", mock_hold, NULL);
  outcome_of(&outcome, script_step(&script));
  script_turns(&script);
  CHECK_INT(stat(path, &before), 0);
  write_once(&script, 1000);
  CHECK_INT(stat(path, &after), 0);
  CHECK(before.st_ino != after.st_ino); /* another file in its place */
  root = read_file();
  CHECK_INT(clock_of(root), 1001000);
  CHECK_INT(json_array_size(json_object_get(root, "trainings")), 1);
  json_decref(root);
  script_advance(&script, 100);
  script_close(&script);
  root = read_file(); /* of the moment of the close */
  CHECK_INT(clock_of(root), 1001100);
  CHECK_STR(json_string_value(
                json_object_get(json_object_get(root, "session"), "state")),
            "closing");
  json_decref(root);
  outcome_drop(&outcome);
  CHECK_INT(remove_below(folder), 1); /* nothing beside it */
  rmdir(folder);
}

static uv_sem_t held;

static void hold(uv_work_t *work) {
  (void)work;
  uv_sem_wait(&held);
}

static void on_let_go(uv_work_t *work, int status) {
  (void)work;
  (void)status;
}

/* All threads of the pool are held while the first one is to be written. */
TEST(dump_file_is_written_at_a_close_while_another_one_is) {
  const char *size = getenv("UV_THREADPOOL_SIZE");
  const int n_threads = size != NULL ? atoi(size) : 4;
  uv_work_t works[16];
  script_t script;
  json_t *root;

  CHECK(n_threads > 0 && n_threads <= 16);
  CHECK_INT(uv_sem_init(&held, 0), 0);

  snprintf(folder, sizeof(folder), "/tmp/tnk-dump-XXXXXX");
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof(path), "%s/dump", folder);
  open_dumped(&script, path);
  for (int i = 0; i < n_threads; i++)
    CHECK_INT(uv_queue_work(&script.uv, &works[i], hold, on_let_go), 0);
  while (!script.service->dump_file.is_writing)
    uv_run(&script.uv, UV_RUN_NOWAIT);
  for (int i = 0; i < n_threads; i++)
    uv_sem_post(&held);
  script_close(&script);
  uv_sem_destroy(&held);
  root = read_file();
  CHECK_STR(json_string_value(
                json_object_get(json_object_get(root, "session"), "state")),
            "closing");
  json_decref(root);
  CHECK_INT(remove_below(folder), 1);
  rmdir(folder);
}

TEST(dump_file_that_cannot_be_written_is_warned_of_once) {
  script_t script;

  open_dumped(&script, "/dev/null/x");
  for (int i = 0; i < 4; i++)
    write_once(&script, 1000);
  CHECK_INT(script.n_warnings, 1);
  CHECK(strstr(script.last_log, "/dev/null/x: the dump cannot be written") !=
        NULL);
  script_close(&script);
}

TEST(dump_file_does_not_hold_a_close_up) {
  script_t script;

  open_dumped(&script, "/dev/null/x");
  script_close(&script);
  open_dumped(&script, "/dev/null/x");
  mock_turns(script.mock, 1);
  script_close(&script); /* perhaps while it is written */
}

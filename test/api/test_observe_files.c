/* SPDX-License-Identifier: MIT */
/* Files that programs make of what an observer hears. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/test.h"
#include "support/tree.h"
#include "tnk/script.h"

static char folder[64];
static char path[128];

static const char *in_folder(const char *name) {
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  return path;
}

static void begin(void) {
  snprintf(folder, sizeof(folder), "/tmp/tnk-observe-XXXXXX");
  CHECK(mkdtemp(folder) != NULL);
}

static void end(void) {
  remove_below(folder);
  rmdir(folder);
}

static const char *contents(const char *name) {
  static char text[65536];
  FILE *file = fopen(in_folder(name), "rb");
  size_t n;

  CHECK(file != NULL);
  n = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  text[n] = '\0';
  return text;
}

/* A trace is not a text: it has bytes that are 0. */
static int has(const char *name, const char *word) {
  const size_t n = strlen(word);
  char data[65536];
  FILE *file = fopen(in_folder(name), "rb");
  size_t size, i = 0;

  CHECK(file != NULL);
  size = fread(data, 1, sizeof(data), file);
  fclose(file);
  while (i + n <= size && memcmp(data + i, word, n) != 0)
    i++;
  return i + n <= size;
}

static void run_one(tnk_observe_cb observer, void *user) {
  tnk_event_t event = {
      .phase = TNK_PHASE_QUEUED, .operation = 1, .name = "sample"};

  event.client = "sampler-0";
  observer(&event, user);
  event.phase = TNK_PHASE_SENT;
  event.time_ns = 1000;
  observer(&event, user);
  event.phase = TNK_PHASE_DECODED;
  event.time_ns = 5000;
  observer(&event, user);
  event.phase = TNK_PHASE_DELIVERED;
  observer(&event, user);
}

/* ---- Traces ---- */

TEST(observe_a_trace_is_whole_when_it_is_closed) {
  tnk_trace_t *trace;
  const char *text;

  begin();
  CHECK_INT(tnk_trace_open(&trace, in_folder("a"), test_allocator()), TNK_OK);
  run_one(tnk_trace_event, trace);
  CHECK_INT(tnk_trace_close(trace), TNK_OK);
  text = contents("a");
  CHECK_INT(text[0], 0x0a);
  CHECK_INT(tnk_trace_close(NULL), TNK_OK);
  end();
}

TEST(observe_a_trace_that_cannot_be_written_says_so) {
  tnk_trace_t *trace = (tnk_trace_t *)1;

  CHECK_INT(tnk_trace_open(&trace, "/dev/null/x", test_allocator()), TNK_EFILE);
  CHECK(trace == NULL);
  CHECK_INT(tnk_trace_open(&trace, NULL, NULL), TNK_EINVAL);
  CHECK_INT(tnk_trace_open(NULL, "x", NULL), TNK_EINVAL);
  CHECK_INT(tnk_trace_open(&trace, "/dev/full", test_allocator()), TNK_OK);
  for (int i = 0; i < 2000; i++)
    run_one(tnk_trace_event, trace);
  CHECK_INT(tnk_trace_close(trace), TNK_EFILE);
}

TEST(observe_a_trace_without_memory) {
  tnk_trace_t *trace;
  int err = TNK_ENOMEM;

  begin();
  for (long n = 0; err != TNK_OK; n++) {
    CHECK(n < 100);
    test_alloc_fail_at(n);
    err = tnk_trace_open(&trace, in_folder("a"), test_allocator());
    if (err == TNK_OK) {
      run_one(tnk_trace_event, trace);
      err = tnk_trace_close(trace);
    }
    if (!test_alloc_did_fail())
      CHECK_INT(err, TNK_OK);
    else if (err != TNK_OK)
      CHECK_INT(err, TNK_ENOMEM);
    else
      err = TNK_ENOMEM; /* a client's track was left out: go on */
    test_alloc_fail_at(-1);
  }
  end();
}

/* ---- Numbers for Prometheus ---- */

TEST(observe_P5_a_meter_is_read_as_text_and_as_a_file) {
  tnk_meter_t *meter = tnk_meter_new(test_allocator());
  char cut[32];
  size_t n;

  begin();
  CHECK(meter != NULL);
  run_one(tnk_meter_event, meter);
  n = tnk_meter_text(meter, NULL, 0);
  CHECK(n > sizeof(cut));
  CHECK_INT(tnk_meter_text(meter, cut, sizeof(cut)), n);
  CHECK_INT(strlen(cut), sizeof(cut) - 1);
  CHECK_INT(tnk_meter_save(meter, in_folder("m")), TNK_OK);
  CHECK_INT(strlen(contents("m")), n);
  CHECK(strstr(contents("m"), "tnk_operation_seconds_sum{operation=\"sample\"} "
                              "0.000005000\n") != NULL);
  CHECK(access(in_folder("m.new"), F_OK) != 0);
  /* A link in the place of the name beside it leads nowhere. */
  CHECK_INT(symlink("victim", in_folder("m.new")), 0);
  CHECK_INT(tnk_meter_save(meter, in_folder("m")), TNK_OK);
  CHECK_INT(access(in_folder("victim"), F_OK), -1);
  CHECK_INT(access(in_folder("m"), F_OK), 0);
  CHECK_INT(tnk_meter_save(meter, "/dev/null/x"), TNK_EFILE);
  CHECK_INT(tnk_meter_save(meter, NULL), TNK_EINVAL);
  test_alloc_fail_at(0);
  CHECK_INT(tnk_meter_text(meter, cut, sizeof(cut)), 0);
  test_alloc_fail_at(-1);
  CHECK_STR(cut, "");
  tnk_meter_free(meter);
  tnk_meter_free(NULL);
  end();
}

/* ---- Several observers ---- */

static void count(const tnk_event_t *event, void *user) {
  (void)event;
  (*(int *)user)++;
}

TEST(observe_several_observers_hear_of_each_event) {
  tnk_meter_t *meter = tnk_meter_new(NULL);
  int n_before = 0, n_behind = 0;
  const tnk_observer_t items[] = {{count, &n_before},
                                  {NULL, NULL},
                                  {tnk_meter_event, meter},
                                  {count, &n_behind}};
  tnk_observers_t inner = {items, 4};
  const tnk_observer_t nested[] = {{tnk_observe_each, &inner}};
  tnk_observers_t outer = {nested, 1};
  tnk_observers_t none = {NULL, 0};
  char text[65536];

  CHECK(meter != NULL);
  run_one(tnk_observe_each, &outer);
  CHECK_INT(n_before, 4);
  CHECK_INT(n_behind, 4);
  CHECK(tnk_meter_text(meter, text, sizeof(text)) > 0);
  CHECK(strstr(text, "operation=\"sample\"") != NULL);
  run_one(tnk_observe_each, &none);
  run_one(tnk_observe_each, NULL);
  tnk_observe_each(NULL, &outer);
  CHECK_INT(n_before, 4);
  tnk_meter_free(meter);
}

/* ---- The trace of a script ---- */

/* The program ends by main(), by exit() or by a failure. */
TEST(observe_the_trace_of_a_script_is_whole_when_it_exits) {
  for (int way = 0; way < 2; way++) {
    int status;
    pid_t child;

    begin();
    (void)in_folder("script");
    fflush(stdout);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

      tnk_must_trace(&options, path);
      run_one(options.observer, options.observer_user);
      if (way == 0)
        exit(0);
      tnk_must_not("a failure");
    }
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), way);
    CHECK(has("script", "sampler-0"));
    end();
  }
}

/* ---- Lines of metrics.jsonl ---- */

TEST(observe_numbers_are_lines_as_the_cookbook_writes_them) {
  const tnk_number_t numbers[] = {{"train/loss", 0.25},
                                  {"time \"x\"", 1e300 * 1e10}};
  FILE *file;

  begin();
  CHECK_INT(tnk_numbers_append(in_folder("metrics.jsonl"), 7, numbers, 2),
            TNK_OK);
  CHECK_STR(contents("metrics.jsonl"),
            "{\"step\":7,\"train/loss\":0.25,\"time \\\"x\\\"\":null}\n");
  file = fopen(path, "ab");
  CHECK(file != NULL);
  fputs("{\"step\":8,\"tra", file); /* a crash */
  fclose(file);
  CHECK_INT(tnk_numbers_append(path, TNK_ABSENT, numbers, 1), TNK_OK);
  CHECK_INT(tnk_numbers_append(path, 9, NULL, 0), TNK_OK);
  CHECK_STR(contents("metrics.jsonl"),
            "{\"step\":7,\"train/loss\":0.25,\"time \\\"x\\\"\":null}\n"
            "{\"step\":8,\"tra\n{\"train/loss\":0.25}\n{\"step\":9}\n");
  end();
}

TEST(observe_numbers_that_cannot_be_written) {
  const tnk_number_t good = {"a", 1};
  const tnk_number_t bad[] = {{NULL, 1}, {"\xff", 1}};

  CHECK_INT(tnk_numbers_append("/dev/null/x", 1, &good, 1), TNK_EFILE);
  CHECK_INT(tnk_numbers_append("/dev/full", 1, &good, 1), TNK_EFILE);
  CHECK_INT(tnk_numbers_append(NULL, 1, &good, 1), TNK_EINVAL);
  CHECK_INT(tnk_numbers_append("/dev/null", 1, NULL, 1), TNK_EINVAL);
  for (int i = 0; i < 2; i++)
    CHECK_INT(tnk_numbers_append("/dev/null", 1, &bad[i], 1), TNK_EINVAL);
}

/* SPDX-License-Identifier: MIT */
/*
 * Weights taken home from the local server: files of an export, and a saved
 * state by way of one, over connections that are cut as well.
 */
#include <sys/stat.h>
#include <unistd.h>

#include "e2e.h"

typedef struct {
  e2e_t e2e;
  char dir[64];
  char target[80];
  char state[256]; /* paths at the service */
  char external[256];
} home_t;

static void keep_path(char out[256], tnk_promise_t *promise) {
  snprintf(out, 256, "%s", tnk_promise_path(e2e_ok(promise)));
  tnk_promise_unref(promise);
}

static void open_home_with(home_t *home, local_options_t options) {
  tnk_training_t *training;

  memset(home, 0, sizeof(*home));
  e2e_open(&home->e2e, options);
  snprintf(home->dir, sizeof(home->dir), "/tmp/tnk-home-XXXXXX");
  CHECK(mkdtemp(home->dir) != NULL);
  snprintf(home->target, sizeof(home->target), "%s/out", home->dir);
  training = e2e_train(&home->e2e, 4);
  keep_path(home->state, tnk_training_save_state(training, "s", NULL));
  keep_path(home->external,
            tnk_training_save_weights_external(training, "x", NULL));
}

static void open_home(home_t *home) {
  open_home_with(home, (local_options_t)LOCAL_OPTIONS_INIT);
}

static void close_home(home_t *home) {
  e2e_close(&home->e2e);
  rmdir(home->dir);
}

/* Its bytes; the file is removed. -1: it is not there. */
static long take(const home_t *home, const char *name, char *out, size_t size) {
  char path[200];
  FILE *file;
  size_t n;

  snprintf(path, sizeof(path), "%s/%s", home->target, name);
  file = fopen(path, "rb");
  if (file == NULL)
    return -1;
  n = fread(out, 1, size, file);
  fclose(file);
  unlink(path);
  return (long)n;
}

/* Download; returns the bytes of the model. */
static long bring_as(home_t *home, const char *path,
                     const tnk_weights_options_t *options, char *model,
                     size_t size) {
  char config[4096];
  tnk_promise_t *promise = e2e_ok(
      tnk_weights_download(home->e2e.service, path, home->target, options));
  long n;

  CHECK(tnk_promise_weights(promise)->n_files >= 2);
  tnk_promise_unref(promise);
  CHECK(take(home, "adapter_config.json", config, sizeof(config)) > 2);
  n = take(home, "adapter_model.safetensors", model, size);
  CHECK(n > 8);
  (void)take(home, "checkpoint_complete", config, sizeof(config));
  CHECK_INT(rmdir(home->target), 0);
  return n;
}

static long bring(home_t *home, const char *path, char *model, size_t size) {
  return bring_as(home, path, NULL, model, size);
}

static char first[1024 * 1024];
static char second[1024 * 1024];

TEST_LIMIT(P11_6_a_saved_state_comes_home_as_its_export_does, 60) {
  tnk_promise_t *promise;
  home_t home;
  long n;

  open_home(&home);
  n = bring(&home, home.external, first, sizeof(first));
  CHECK_INT(bring(&home, home.state, second, sizeof(second)), n);
  CHECK_MEM(first, (size_t)n, second, (size_t)n);
  e2e_stop_client(&home.e2e);
  e2e_start_client(&home.e2e);
  /* What was exported for it is gone. */
  promise = e2e_ok(tnk_rest_list_checkpoints(home.e2e.service, NULL));
  CHECK_INT(tnk_page_count(tnk_promise_page(promise)), 2);
  tnk_promise_unref(promise);
  close_home(&home);
}

TEST_LIMIT(P11_10_connections_that_are_cut_bring_the_same_files, 60) {
  home_t home;
  long n;

  open_home(&home);
  n = bring(&home, home.external, first, sizeof(first));
  e2e_faults(&home.e2e, "cut_body/files=50%:1000");
  CHECK_INT(bring(&home, home.external, second, sizeof(second)), n);
  CHECK_MEM(first, (size_t)n, second, (size_t)n);
  close_home(&home);
}

/* ---- Archives ---- */

/* How often that was asked for. */
static size_t n_asked(const home_t *home, const char *call) {
  size_t n = 0;

  for (size_t i = 0; i < home->e2e.n_seen; i++)
    n += strcmp(home->e2e.seen[i].call, call) == 0;
  return n;
}

TEST_LIMIT(N7_where_no_files_are_listed_they_come_home_as_an_archive, 60) {
  static const local_archive_t ways[] = {LOCAL_ARCHIVE_REDIRECT,
                                         LOCAL_ARCHIVE_JSON};

  for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
    local_options_t options = LOCAL_OPTIONS_INIT;
    home_t home;
    long n;
    options.archive = ways[i];
    open_home_with(&home, options);
    n = bring(&home, home.external, first, sizeof(first));
    CHECK_INT(n_asked(&home, "archive"), 0);
    e2e_faults(&home.e2e, "404/external_weights_urls,503/archive@1-2,"
                          "cut_body/files@1:3000");
    CHECK_INT(bring(&home, home.external, second, sizeof(second)), n);
    CHECK_MEM(first, (size_t)n, second, (size_t)n);
    CHECK_INT(n_asked(&home, "archive"), 3);
    close_home(&home);
  }
}

TEST_LIMIT(N7_a_state_comes_home_as_an_archive, 60) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  home_t home;
  long n;

  open_home(&home);
  n = bring(&home, home.external, first, sizeof(first));
  options.archive = TNK_YES;
  CHECK_INT(bring_as(&home, home.state, &options, second, sizeof(second)), n);
  CHECK_MEM(first, (size_t)n, second, (size_t)n);
  CHECK_INT(n_asked(&home, "load_weights"), 0);
  /* Where nothing can be saved for other programs it is the only way. */
  e2e_faults(&home.e2e, "404/save_weights_external");
  e2e_stop_client(&home.e2e); /* which has seen that there is such a call */
  e2e_start_client(&home.e2e);
  CHECK_INT(bring(&home, home.state, second, sizeof(second)), n);
  CHECK_MEM(first, (size_t)n, second, (size_t)n);
  CHECK_INT(n_asked(&home, "archive"), 2);
  close_home(&home);
}

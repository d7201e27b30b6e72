/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "links.h"
#include "tnk/error.h"

/* How long checkpoints are kept, in which projects, and what copies share. */

static void done(bench_t *b, const char *what, int seq, const char *more) {
  rig_free(rig_done(&b->rig, rig_start(&b->rig, what,
                                       "{\"model_id\":\"%s\",\"seq_id\":%d,"
                                       "\"path\":\"n%d\"%s}",
                                       b->model, seq, seq, more)));
}

static int put_ttl(bench_t *b, const char *kind_and_name, const char *ttl) {
  char path[256];
  char body[64];

  snprintf(path, sizeof(path), "/api/v1/training_runs/%s/checkpoints/%s/ttl",
           b->model, kind_and_name);
  snprintf(body, sizeof(body), "{\"ttl_seconds\":%s}", ttl);
  return rig_status(rig_send(&b->rig, "PUT", path, NULL, body, strlen(body)));
}

static size_t n_of(bench_t *b, const char *path, const char *list) {
  exchange_t *x = rig_get(&b->rig, path);
  size_t n = json_array_size(json_object_get(x->json, list));

  CHECK_INT(x->status, 200);
  rig_free(x);
  return n;
}

/* The file of weights "n1" of a run, below the directory of all. */
static void file_of(bench_t *b, const char *run, char out[2048]) {
  const char *data = local_server_data(b->rig.server);

  snprintf(out, 2048, "%s/%s/weights/n1/" ADAPTER, data, run);
  for (char *at = out + strlen(data); *at != '\0'; at++)
    if (*at == ':')
      *at = '_';
}

static uint64_t inode(const char *path) {
  struct stat st;

  return stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* ---- Time ---- */

TEST(N10_a_time_to_live_is_from_an_hour_to_ten_years) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  static const char *const bad[] = {"0", "-1", "3599", "400000000"};
  bench_t b;

  bench_open(&b, options);
  done(&b, "save_weights", 1, "");
  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
    CHECK_INT(put_ttl(&b, "weights/n1", bad[i]), 400);
    CHECK_INT(rig_status(rig_post(&b.rig, "save_weights",
                                  "{\"model_id\":\"%s\",\"seq_id\":2,"
                                  "\"path\":\"x\",\"ttl_seconds\":%s}",
                                  b.model, bad[i])),
              400);
    CHECK_INT(rig_status(rig_post(&b.rig, "copy_weights",
                                  "{\"source_path\":\"tinker://%s/weights/"
                                  "n1\",\"destination_project_id\":\"p\","
                                  "\"ttl_seconds\":%s}",
                                  b.model, bad[i])),
              400);
  }
  CHECK_INT(put_ttl(&b, "weights/n1", "3600.5"), 422);
  CHECK_INT(put_ttl(&b, "weights/n1", "3600"), 200);
  CHECK_INT(put_ttl(&b, "weights/n1", "315360000"), 200);
  CHECK_INT(put_ttl(&b, "weights/n1", "null"), 200);
  rig_close(&b.rig);
}

/* Nobody need ask: the disk is freed when its time has come. */
TEST(N10_what_has_expired_is_removed_though_nobody_looks) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  char file[2048];
  bench_t b;

  options.session_timeout_ms = 4; /* that is how often the server looks */
  bench_open(&b, options);
  done(&b, "save_weights", 1, ",\"ttl_seconds\":3600");
  done(&b, "save_weights", 2, "");
  done(&b, "save_weights", 3, ",\"ttl_seconds\":7200");
  file_of(&b, b.model, file);
  CHECK(inode(file) != 0);
  now = START + 3600000;
  while (inode(file) != 0)
    uv_run(&b.rig.loop, UV_RUN_ONCE);
  CHECK_INT(n_of(&b, "checkpoints", "checkpoints"), 2);
  now = START + 7200000;
  CHECK_INT(n_of(&b, "checkpoints", "checkpoints"), 1);
  /* Longer than it was meant to. */
  CHECK_INT(put_ttl(&b, "weights/n2", "3600"), 200);
  CHECK_INT(put_ttl(&b, "weights/n2", "null"), 200);
  now = START + 100 * 3600000;
  CHECK_INT(n_of(&b, "checkpoints", "checkpoints"), 1);
  rig_close(&b.rig);
}

/* ---- Copies ---- */

static void copy(bench_t *b, const char *members, char run[96]) {
  exchange_t *x = rig_post(&b->rig, "copy_weights",
                           "{%s,\"source_path\":\"tinker://%s/weights/n1\"}",
                           members, b->model);
  const char *path = rig_text(x, "tinker_path");

  if (strncmp(path, "tinker://", 9) != 0)
    test_fail(__FILE__, __LINE__, "%s", x->body);
  snprintf(run, 96, "%.*s", (int)strcspn(path + 9, "/"), path + 9);
  rig_free(x);
}

TEST(copies_share_storage_and_nothing_else) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  char source[2048];
  char target[2048];
  char run[96];
  bench_t b;

  bench_open(&b, options);
  done(&b, "save_weights", 1, ",\"ttl_seconds\":3600");
  copy(&b, "\"destination_project_id\":\"p\"", run);
  file_of(&b, b.model, source);
  file_of(&b, run, target);
  CHECK(inode(source) != 0);
  CHECK_INT(inode(target), inode(source));
  now = START + 3600000;
  CHECK_INT(n_of(&b, "checkpoints", "checkpoints"), 1);
  CHECK_INT(inode(source), 0);
  CHECK(inode(target) != 0);
  rig_close(&b.rig);
}

TEST(a_copy_goes_into_a_session_by_its_number) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  char members[160];
  char run[96];
  bench_t b;

  bench_open(&b, options);
  done(&b, "save_weights", 1, "");
  snprintf(members, sizeof(members), "\"session_id\":\"%s\",\"model_seq_id\":7",
           b.session);
  copy(&b, members, run);
  CHECK_INT(strncmp(run, b.session, strlen(b.session)), 0);
  CHECK_INT(rig_status(rig_post(&b.rig, "copy_weights",
                                "{%s,\"source_path\":"
                                "\"tinker://%s/weights/n1\"}",
                                members, b.model)),
            409);
  CHECK_INT(rig_status(rig_post(&b.rig, "copy_weights",
                                "{\"session_id\":\"%s\",\"source_path\":"
                                "\"tinker://%s/weights/n1\"}",
                                b.session, b.model)),
            422);
  CHECK_INT(rig_status(rig_post(&b.rig, "copy_weights",
                                "{\"source_path\":"
                                "\"tinker://%s/weights/n1\"}",
                                b.model)),
            422);
  rig_close(&b.rig);
}

/* ---- Projects ---- */

static void check_storage(bench_t *b, const char *query, const char *project,
                          int n) {
  char path[128];
  const json_t *row;
  exchange_t *x;

  snprintf(path, sizeof(path), "billing/usage/checkpoints/current%s", query);
  x = rig_get(&b->rig, path);
  CHECK_INT(json_array_size(json_object_get(x->json, "data")), 1);
  row = json_array_get(json_object_get(x->json, "data"), 0);
  CHECK_STR(json_string_value(json_object_get(row, "project_id")), project);
  CHECK_INT(json_integer_value(json_object_get(row, "checkpoint_count")), n);
  CHECK(json_integer_value(json_object_get(row, "size_bytes")) > 4000);
  rig_free(x);
}

TEST(what_is_kept_belongs_to_projects_and_moves_with_its_session) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  char path[160];
  char run[96];
  bench_t b;

  bench_open(&b, options);
  done(&b, "save_weights", 1, "");
  check_storage(&b, "", "default", 1);
  copy(&b, "\"destination_project_id\":\"p\"", run);
  check_storage(&b, "?project_id=p", "p", 1);
  CHECK_INT(n_of(&b, "training_runs?project_id=p", "training_runs"), 1);
  snprintf(path, sizeof(path), "/api/v1/sessions/%s/project", b.session);
  CHECK_INT(rig_status(rig_send(&b.rig, "PUT", path, NULL,
                                "{\"project_id\":\"p\"}", 18)),
            200);
  check_storage(&b, "", "p", 2);
  /* Its run lives on as its checkpoints alone. */
  snprintf(path, sizeof(path), "sessions/%s/finish", b.session);
  rig_free(rig_post(&b.rig, path, "{}"));
  CHECK_INT(n_of(&b, "training_runs?project_id=p", "training_runs"), 2);
  CHECK_INT(n_of(&b, "training_runs?project_id=q", "training_runs"), 0);
  rig_close(&b.rig);
}

/* ---- A disk that is full ---- */

TEST(an_export_that_the_disk_has_no_room_for_leaves_nothing) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  struct rlimit limit;
  struct rlimit little;
  exchange_t *x;
  bench_t b;

  bench_open(&b, options);
  signal(SIGXFSZ, SIG_IGN);
  CHECK_INT(getrlimit(RLIMIT_FSIZE, &limit), 0);
  little = limit;
  little.rlim_cur = 2000; /* less than an adapter has */
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &little), 0);
  x = rig_done(&b.rig, rig_start(&b.rig, "save_weights_external",
                                 "{\"model_id\":\"%s\",\"seq_id\":1,"
                                 "\"path\":\"e\"}",
                                 b.model));
  CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
  CHECK(strstr(rig_text(x, "error"), ADAPTER ": File too large") != NULL);
  rig_free(x);
  CHECK_INT(n_of(&b, "checkpoints", "checkpoints"), 0);
  x = rig_done(&b.rig, rig_start(&b.rig, "save_weights_external",
                                 "{\"model_id\":\"%s\",\"seq_id\":2,"
                                 "\"path\":\"e\"}",
                                 b.model));
  CHECK(rig_text(x, "path")[0] != '\0');
  rig_free(x);
  rig_close(&b.rig);
}

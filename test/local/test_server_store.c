/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "support/test.h"

/* Checkpoints: saved, listed, loaded, and there again after a restart. */

typedef struct {
  rig_t rig;
  char dir[1024];
  char session[96];
  char model[96];
} bench_t;

static void make_dir(bench_t *b) {
  char tmp[512];
  char pattern[600];
  size_t n = sizeof(tmp);
  uv_fs_t req;

  CHECK_INT(uv_os_tmpdir(tmp, &n), 0);
  snprintf(pattern, sizeof(pattern), "%s/tnk-test-XXXXXX", tmp);
  CHECK_INT(uv_fs_mkdtemp(NULL, &req, pattern, NULL), 0);
  snprintf(b->dir, sizeof(b->dir), "%s/data", req.path);
  uv_fs_req_cleanup(&req);
}

static void remove_level(const char *dir) {
  uv_fs_t scan;
  uv_fs_t req;
  uv_dirent_t entry;
  char path[2048];

  if (uv_fs_scandir(NULL, &scan, dir, 0, NULL) < 0)
    return;
  while (uv_fs_scandir_next(&scan, &entry) == 0) {
    snprintf(path, sizeof(path), "%s/%s", dir, entry.name);
    if (uv_fs_unlink(NULL, &req, path, NULL) != 0)
      remove_level(path);
    uv_fs_req_cleanup(&req);
  }
  uv_fs_req_cleanup(&scan);
  uv_fs_rmdir(NULL, &req, dir, NULL);
  uv_fs_req_cleanup(&req);
}

static int dir_exists(const char *dir) {
  uv_fs_t req;
  int err = uv_fs_stat(NULL, &req, dir, NULL);

  uv_fs_req_cleanup(&req);
  return err == 0;
}

static void bench_open(bench_t *b) {
  local_options_t options = LOCAL_OPTIONS_INIT;

  options.data = b->dir;
  rig_open(&b->rig, &options);
  rig_session(&b->rig, b->session);
}

static void bench_end(bench_t *b) {
  rig_close(&b->rig);
  *strrchr(b->dir, '/') = '\0';
  remove_level(b->dir);
}

/* `path` of a save that went well. */
static void save(bench_t *b, const char *what, int seq, const char *name,
                 char path[256]) {
  exchange_t *x = rig_done(
      &b->rig, rig_start(&b->rig, what,
                         "{\"model_id\":\"%s\",\"seq_id\":%d,\"path\":\"%s\","
                         "\"user_metadata\":{\"note\":\"n\"}}",
                         b->model, seq, name));

  if (rig_text(x, "path")[0] == '\0')
    test_fail(__FILE__, __LINE__, "%s: %s", what, x->body);
  snprintf(path, 256, "%s", rig_text(x, "path"));
  rig_free(x);
}

static double loss_of(bench_t *b, const char *model, int seq) {
  exchange_t *x =
      rig_done(&b->rig, rig_pass(&b->rig, model, seq, "hello hello"));
  double loss = rig_loss(x);

  rig_free(x);
  return loss;
}

static void load_new(bench_t *b, const char *path, int with_optimizer,
                     char model[96]) {
  exchange_t *x = rig_done(
      &b->rig, rig_start(&b->rig, "load_weights",
                         "{\"session_id\":\"%s\",\"path\":\"%s\","
                         "\"optimizer\":%s}",
                         b->session, path, with_optimizer ? "true" : "false"));

  if (rig_text(x, "model_id")[0] == '\0')
    test_fail(__FILE__, __LINE__, "%s: %s", path, x->body);
  snprintf(model, 96, "%s", rig_text(x, "model_id"));
  rig_free(x);
}

TEST_LIMIT(a_restart_keeps_checkpoints, 20) {
  char path[256];
  char sampler[256];
  char model[96];
  double loss;
  double next;
  bench_t b;
  exchange_t *x;

  make_dir(&b);
  bench_open(&b);
  rig_model(&b.rig, b.session, b.model);
  loss_of(&b, b.model, 1);
  rig_free(rig_done(&b.rig, rig_step(&b.rig, b.model, 2, 0.01)));
  save(&b, "save_weights", 3, "after.1", path);
  save(&b, "save_weights_for_sampler", 4, "after.1", sampler);
  CHECK(strcmp(path, sampler) != 0);
  loss = loss_of(&b, b.model, 5);
  rig_free(rig_done(&b.rig, rig_step(&b.rig, b.model, 6, 0.01)));
  next = loss_of(&b, b.model, 7);
  CHECK(next < loss);
  rig_close(&b.rig);
  CHECK(dir_exists(b.dir));
  bench_open(&b);
  /* The very same outputs, and with the optimizer's state the same step. */
  load_new(&b, path, 1, model);
  CHECK_NEAR(loss_of(&b, model, 1), loss, 0);
  rig_free(rig_done(&b.rig, rig_step(&b.rig, model, 2, 0.01)));
  CHECK_NEAR(loss_of(&b, model, 3), next, 0);
  CHECK_INT(rig_status(rig_post(&b.rig, "create_sampling_session",
                                "{\"session_id\":\"%s\",\"model_path\":\"%s\"}",
                                b.session, sampler)),
            200);
  x = rig_done(&b.rig, rig_start(&b.rig, "asample",
                                 "{\"model_path\":\"%s\",\"prompt\":{"
                                 "\"chunks\":[{\"tokens\":[104]}]},"
                                 "\"sampling_params\":{\"max_tokens\":2,"
                                 "\"stop\":[]}}",
                                 sampler));
  CHECK_INT(json_array_size(json_object_get(x->json, "sequences")), 1);
  rig_free(x);
  bench_end(&b);
}

TEST(a_temporary_directory_goes) {
  char dir[1024];
  rig_t rig;

  rig_open(&rig, NULL);
  snprintf(dir, sizeof(dir), "%s", local_server_data(rig.server));
  CHECK(dir_exists(dir));
  rig_close(&rig);
  CHECK(!dir_exists(dir));
}

TEST(weights_only_and_into_a_model) {
  char path[256];
  char model[96];
  double before;
  bench_t b;
  exchange_t *x;

  make_dir(&b);
  bench_open(&b);
  rig_model(&b.rig, b.session, b.model);
  before = loss_of(&b, b.model, 1);
  save(&b, "save_weights", 2, "start", path);
  rig_free(rig_done(&b.rig, rig_step(&b.rig, b.model, 3, 0.05)));
  CHECK(loss_of(&b, b.model, 4) < before);
  x = rig_done(&b.rig, rig_start(&b.rig, "load_weights",
                                 "{\"model_id\":\"%s\",\"seq_id\":5,"
                                 "\"path\":\"%s\",\"optimizer\":true}",
                                 b.model, path));
  CHECK_STR(rig_text(x, "path"), path);
  rig_free(x);
  CHECK_NEAR(loss_of(&b, b.model, 6), before, 0);
  load_new(&b, path, 0, model);
  CHECK_NEAR(loss_of(&b, model, 1), before, 0);
  x = rig_post(&b.rig, "weights_info", "{\"tinker_path\":\"%s\"}", path);
  CHECK_INT(x->status, 200);
  CHECK_STR(rig_text(x, "base_model"), "tnk/byte-lm");
  CHECK_INT(json_integer_value(json_object_get(x->json, "lora_rank")), 4);
  rig_free(x);
  CHECK_INT(rig_status(rig_post(&b.rig, "weights_info",
                                "{\"tinker_path\":\"tinker://x/weights/no\"}")),
            404);
  CHECK_INT(rig_status(rig_post(&b.rig, "weights_info",
                                "{\"tinker_path\":\"nonsense\"}")),
            400);
  bench_end(&b);
}

TEST(names_and_overwriting) {
  static const char *const bad[] = {"",   ".hidden", "a/b",
                                    "..", "a b",     "\\u00e9"};
  char path[256];
  bench_t b;
  exchange_t *x;

  make_dir(&b);
  bench_open(&b);
  rig_model(&b.rig, b.session, b.model);
  for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
    CHECK_INT(rig_status(
                  rig_post(&b.rig, "save_weights",
                           "{\"model_id\":\"%s\",\"seq_id\":1,\"path\":\"%s\"}",
                           b.model, bad[i])),
              422);
  save(&b, "save_weights", 1, "w", path);
  x = rig_done(&b.rig, rig_start(&b.rig, "save_weights",
                                 "{\"model_id\":\"%s\",\"seq_id\":2,"
                                 "\"path\":\"w\",\"overwrite\":false}",
                                 b.model));
  CHECK_STR(rig_text(x, "category"), "user");
  CHECK(strstr(rig_text(x, "error"), "already exists"));
  rig_free(x);
  x = rig_done(&b.rig, rig_start(&b.rig, "save_weights",
                                 "{\"model_id\":\"%s\",\"seq_id\":3,"
                                 "\"path\":\"w\",\"overwrite\":true}",
                                 b.model));
  CHECK_STR(rig_text(x, "path"), path);
  rig_free(x);
  bench_end(&b);
}

static json_t *first(const exchange_t *x, const char *list) {
  return json_array_get(json_object_get(x->json, list), 0);
}

static const char *member(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));

  return text != NULL ? text : "";
}

static int request(bench_t *b, const char *method, const char *kind,
                   const char *rest, const char *body) {
  char path[512];
  exchange_t *x;
  int status;

  snprintf(path, sizeof(path), "/api/v1/training_runs/%s/checkpoints/%s%s",
           b->model, kind, rest);
  x = rig_send(&b->rig, method, path, NULL, body, strlen(body));
  rig_wait(x, 1);
  status = x->status;
  rig_free(x);
  return status;
}

TEST(lists_and_managing) {
  char state[256];
  char sampler[256];
  char url[256];
  bench_t b;
  exchange_t *x;
  json_t *entry;

  make_dir(&b);
  bench_open(&b);
  rig_model(&b.rig, b.session, b.model);
  save(&b, "save_weights", 1, "w", state);
  save(&b, "save_weights_for_sampler", 2, "s", sampler);
  x = rig_get(&b.rig, "training_runs?limit=5");
  entry = first(x, "training_runs");
  CHECK_STR(member(entry, "training_run_id"), b.model);
  CHECK_STR(member(entry, "base_model"), "tnk/byte-lm");
  CHECK_STR(member(json_object_get(entry, "last_checkpoint"), "tinker_path"),
            state);
  CHECK_STR(
      member(json_object_get(entry, "last_sampler_checkpoint"), "tinker_path"),
      sampler);
  CHECK_INT(json_integer_value(json_object_get(
                json_object_get(x->json, "cursor"), "total_count")),
            1);
  rig_free(x);
  snprintf(url, sizeof(url), "training_runs/%s/checkpoints", b.model);
  x = rig_get(&b.rig, url);
  CHECK_INT(json_array_size(json_object_get(x->json, "checkpoints")), 2);
  entry = first(x, "checkpoints");
  CHECK(json_integer_value(json_object_get(entry, "size_bytes")) > 1000);
  CHECK_STR(member(json_object_get(entry, "user_metadata"), "note"), "n");
  rig_free(x);
  x = rig_get(&b.rig, "checkpoints?limit=1&offset=1");
  CHECK_INT(json_array_size(json_object_get(x->json, "checkpoints")), 1);
  rig_free(x);
  CHECK_INT(request(&b, "POST", "weights/w", "/publish", ""), 200);
  CHECK_INT(request(&b, "POST", "weights/w", "/publish", ""), 409);
  CHECK_INT(request(&b, "DELETE", "weights/w", "/publish", ""), 200);
  CHECK_INT(request(&b, "PUT", "weights/w", "/ttl", "{\"ttl_seconds\":3600}"),
            200);
  CHECK_INT(request(&b, "PUT", "weights/w", "/ttl", "{\"ttl_seconds\":null}"),
            200);
  CHECK_INT(request(&b, "PUT", "weights/w", "/ttl", "{\"ttl_seconds\":-1}"),
            400);
  CHECK_INT(request(&b, "DELETE", "weights/..", "", ""), 400);
  CHECK_INT(request(&b, "DELETE", "nothing/w", "", ""), 400);
  CHECK_INT(request(&b, "DELETE", "weights/w", "", ""), 204);
  CHECK_INT(request(&b, "DELETE", "weights/w", "", ""), 404);
  x = rig_get(&b.rig, url);
  CHECK_INT(json_array_size(json_object_get(x->json, "checkpoints")), 1);
  rig_free(x);
  CHECK_INT(rig_status(rig_get(&b.rig, "training_runs/no-such-run")), 404);
  bench_end(&b);
}

/* The first who looks for one whose time is over finds nothing, and so does
 * everybody after him. */
TEST(a_checkpoint_expires) {
  static const char meta[] = "{\"expires_ms\":1}";
  char path[256];
  char dir[2048];
  char file[2100];
  FILE *out;
  bench_t b;
  exchange_t *x;

  make_dir(&b);
  bench_open(&b);
  rig_model(&b.rig, b.session, b.model);
  save(&b, "save_weights", 1, "w", path);
  CHECK_INT(rig_status(rig_post(&b.rig, "weights_info",
                                "{\"tinker_path\":\"%s\"}", path)),
            200);
  snprintf(dir, sizeof(dir), "%s/%s/weights/w", b.dir, b.model);
  for (char *at = dir + strlen(b.dir); *at != '\0'; at++)
    if (*at == ':')
      *at = '_';
  snprintf(file, sizeof(file), "%s/meta.json", dir);
  out = fopen(file, "w");
  CHECK(out != NULL);
  CHECK_INT(fwrite(meta, 1, sizeof(meta) - 1, out), sizeof(meta) - 1);
  fclose(out);
  CHECK_INT(rig_status(rig_post(&b.rig, "weights_info",
                                "{\"tinker_path\":\"%s\"}", path)),
            404);
  CHECK(!dir_exists(dir));
  x = rig_get(&b.rig, "checkpoints");
  CHECK_INT(json_array_size(json_object_get(x->json, "checkpoints")), 0);
  rig_free(x);
  /* Its name is free again. */
  save(&b, "save_weights", 2, "w", path);
  CHECK(dir_exists(dir));
  bench_end(&b);
}

/* An unnamed save makes a sampler that keeps its weights while the model goes
 * on; they go with the session. */
TEST_LIMIT(unnamed_saves, 20) {
  char sampler[96];
  char path[160];
  char first_body[2][1024];
  bench_t b;
  exchange_t *x;

  make_dir(&b);
  bench_open(&b);
  rig_model(&b.rig, b.session, b.model);
  x = rig_done(&b.rig, rig_start(&b.rig, "save_weights_for_sampler",
                                 "{\"model_id\":\"%s\",\"seq_id\":1,"
                                 "\"sampling_session_seq_id\":0,"
                                 "\"kind\":\"snapshot\"}",
                                 b.model));
  snprintf(sampler, sizeof(sampler), "%s", rig_text(x, "sampling_session_id"));
  CHECK(sampler[0] != '\0');
  CHECK(json_is_null(json_object_get(x->json, "path")));
  rig_free(x);
  for (int i = 0; i < 2; i++) {
    x = rig_done(&b.rig, rig_start(&b.rig, "asample",
                                   "{\"sampling_session_id\":\"%s\","
                                   "\"seq_id\":%d,\"prompt\":{\"chunks\":[{"
                                   "\"tokens\":[104,101]}]},"
                                   "\"sampling_params\":{\"max_tokens\":4,"
                                   "\"temperature\":0,\"stop\":[]}}",
                                   sampler, i));
    CHECK(x->n_body < sizeof(first_body[0]));
    memcpy(first_body[i], x->body, x->n_body + 1);
    rig_free(x);
    loss_of(&b, b.model, 2 * i + 2);
    rig_free(rig_done(&b.rig, rig_step(&b.rig, b.model, 2 * i + 3, 0.1)));
  }
  CHECK_STR(first_body[1], first_body[0]);
  /* A repeat that draws the session's number anew is still a repeat. */
  x = rig_done(&b.rig, rig_start(&b.rig, "save_weights_for_sampler",
                                 "{\"model_id\":\"%s\",\"seq_id\":1,"
                                 "\"sampling_session_seq_id\":5,"
                                 "\"kind\":\"snapshot\"}",
                                 b.model));
  CHECK_STR(rig_text(x, "sampling_session_id"), sampler);
  rig_free(x);
  /* A number that another sampler has is a conflict, not a second one. */
  x = rig_done(&b.rig, rig_start(&b.rig, "save_weights_for_sampler",
                                 "{\"model_id\":\"%s\",\"seq_id\":6,"
                                 "\"sampling_session_seq_id\":0,"
                                 "\"kind\":\"snapshot\"}",
                                 b.model));
  CHECK(strstr(rig_text(x, "error"), "exists already"));
  rig_free(x);
  snprintf(path, sizeof(path), "sessions/%s/finish", b.session);
  rig_free(rig_post(&b.rig, path, "{}"));
  snprintf(path, sizeof(path), "samplers/%s", sampler);
  CHECK_INT(rig_status(rig_get(&b.rig, path)), 404);
  bench_end(&b);
}

TEST(external_weights) {
  char path[256];
  bench_t b;

  make_dir(&b);
  bench_open(&b);
  rig_model(&b.rig, b.session, b.model);
  CHECK_INT(
      rig_status(rig_post(&b.rig, "save_weights_external",
                          "{\"model_id\":\"%s\",\"seq_id\":1,\"path\":\"e\","
                          "\"age_encryption_recipients\":[\"age1x\"]}",
                          b.model)),
      400);
  save(&b, "save_weights_external", 1, "e", path);
  CHECK(strstr(path, "/external_weights/e"));
  bench_end(&b);
}

TEST(a_directory_that_cannot_be_used) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  local_server_t *server;
  uv_loop_t loop;
  char why[128] = "";

  CHECK_INT(uv_loop_init(&loop), 0);
  options.data = "/proc/nothing/here";
  options.why = why;
  options.n_why = sizeof(why);
  CHECK(local_server_open(&server, &loop, &options) < 0);
  CHECK(server == NULL && why[0] != '\0');
  uv_run(&loop, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&loop), 0);
}

/* What a client notes about a checkpoint may be long; the time it lives stands
 * in the same file. */
TEST(a_long_note_keeps_the_rest) {
  static char note[100000];
  const json_t *list;
  const json_t *first;
  bench_t b;
  exchange_t *x;

  memset(note, 'n', sizeof(note) - 1);
  make_dir(&b);
  bench_open(&b);
  rig_model(&b.rig, b.session, b.model);
  rig_free(rig_done(
      &b.rig,
      rig_start(&b.rig, "save_weights",
                "{\"model_id\":\"%s\",\"seq_id\":1,\"path\":\"w\","
                "\"ttl_seconds\":3600,\"user_metadata\":{\"n\":\"%s\"}}",
                b.model, note)));
  x = rig_get(&b.rig, "checkpoints");
  list = json_object_get(x->json, "checkpoints");
  first = json_array_get(list, 0);
  CHECK_INT(json_array_size(list), 1);
  CHECK(json_is_string(json_object_get(first, "expires_at")));
  CHECK(json_is_object(json_object_get(first, "user_metadata")));
  rig_free(x);
  bench_end(&b);
}

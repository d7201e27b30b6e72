/* SPDX-License-Identifier: MIT */
/*
 * Weights that are pushed to a repository, against a scripted hub.
 */
#include "hub/repos.h"
#include "lib/base/base64.h"

static repos_t repos; /* too large for a stack */

static void push_ok(void) {
  repos_push(&repos);
  if (repos.outcome.status != TNK_OK)
    CHECK_STR(repos.outcome.text, "");
  CHECK_INT(repos.n_commits, 1);
}

static void push_fails(int err, const char *text) {
  repos_push(&repos);
  CHECK_INT(repos.outcome.status, err);
  if (strstr(repos.outcome.text, text) == NULL)
    CHECK_STR(repos.outcome.text, text);
  CHECK(tnk_promise_pushed(repos.outcome.promise) == NULL);
}

/* A line of the commit: the value of the file of that name. */
static json_t *committed(const char *name) {
  const char *line = repos.commit;

  while (*line != '\0') {
    const size_t n = strcspn(line, "\n");
    json_t *json = json_loadb(line, n, 0, NULL);
    json_t *value = json_incref(json_object_get(json, "value"));
    const char *path = json_string_value(json_object_get(value, "path"));
    json_decref(json);
    if (path != NULL && strcmp(path, name) == 0)
      return value;
    json_decref(value);
    line += n + (line[n] == '\n');
  }
  return NULL;
}

static void check_committed(const char *name, const char *wanted) {
  json_t *value = committed(name);
  char text[4096];
  size_t n;

  if (wanted == NULL) {
    CHECK(value == NULL);
    return;
  }
  CHECK(value != NULL);
  n = tnk__base64_decode((uint8_t *)text,
                         json_string_value(json_object_get(value, "content")),
                         json_string_length(json_object_get(value, "content")));
  CHECK(n < sizeof(text));
  text[n] = '\0';
  CHECK_STR(text, wanted);
  json_decref(value);
}

TEST(O3_weights_become_a_commit_of_a_repository_with_a_card) {
  const tnk_pushed_t *pushed;
  json_t *value;
  char sum[65];
  tnk__sha256_t sha;

  repos_open(&repos);
  push_ok();
  pushed = tnk_promise_pushed(repos.outcome.promise);
  CHECK(pushed != NULL);
  CHECK_STR(pushed->repo, REPO);
  CHECK_STR(pushed->revision, "weights-final");
  CHECK_STR(pushed->commit, "c1");
  CHECK_STR(pushed->url, "http://h/c");
  CHECK_INT(pushed->n_files, 4);
  CHECK_INT(pushed->n_sent, N_WEIGHTS);
  CHECK_MEM(repos.stored, repos.n_stored, weights, N_WEIGHTS);
  tnk__sha256_init(&sha);
  tnk__sha256_add(&sha, weights, N_WEIGHTS);
  tnk__sha256_end(&sha, sum);
  value = committed("adapter_model.safetensors");
  CHECK_STR(json_string_value(json_object_get(value, "oid")), sum);
  CHECK_INT(json_integer_value(json_object_get(value, "size")), N_WEIGHTS);
  json_decref(value);
  check_committed("sub/notes.txt", "hello");
  check_committed("checkpoint_complete", NULL);
  /* As Python writes it; what is on the disk stays as it is. */
  check_committed("adapter_config.json",
                  "{\n  \"base_model_name_or_path\": \"org/Model-8B\",\n"
                  "  \"r\": 8\n}\n");
  bench_check_file(&repos.bench, "out/adapter_config.json", CONFIG);
  bench_check_file(&repos.bench, "out/README.md", NULL);
  CHECK(strstr(repos.commit, "\"summary\":\"Upload " CHECKPOINT "\"") != NULL);
  repos_close(&repos);
}

TEST(O3_requests_come_in_the_order_of_the_official_library) {
  char wanted[1200];
  char sum[65];
  tnk__sha256_t sha;

  repos_open(&repos);
  push_ok();
  tnk__sha256_init(&sha);
  tnk__sha256_add(&sha, weights, N_WEIGHTS);
  tnk__sha256_end(&sha, sum);
  snprintf(wanted, sizeof(wanted),
           "GET /api/whoami-v2; POST /api/repos/create; "
           "POST /api/models/" REPO "/branch/weights-final; "
           "GET /" REPO "/resolve/weights-final/README.md; "
           "POST /api/models/" REPO "/preupload/weights-final; "
           "POST /" REPO ".git/info/lfs/objects/batch; PUT /store/%s; "
           "POST /api/models/" REPO "/commit/weights-final; ",
           sum);
  CHECK_STR(repos.log, wanted);
  repos_close(&repos);
}

TEST(O3_the_card_tells_where_the_weights_come_from) {
  repos_open(&repos);
  repos.options.lora_rank = 32;
  repos.options.trained_attn = TNK_YES;
  repos.options.trained_mlp = TNK_NO;
  push_ok();
  check_committed(
      "README.md",
      "---\nbase_model: org/Model-8B\nlibrary_name: peft\ntags:\n- tinker\n"
      "- peft\n- lora\n- base_model:adapter:org/Model-8B\n"
      "tinker_path: " CHECKPOINT "\n---\n\n# LoRA adapter\n\n"
      "A LoRA adapter in the layout of PEFT, trained with Tinker.\n\n"
      "## Usage\n\n```python\nfrom transformers import AutoModelForCausalLM\n\n"
      "model = AutoModelForCausalLM.from_pretrained(\"" REPO
      "\", device_map=\"auto\")\n```\n\n## Source\n\n```\n" CHECKPOINT
      "\n```\n\n## Details\n\n- Base model: org/Model-8B\n- LoRA rank: 32\n"
      "- Trained modules: attn=True, mlp=False, unembed=None\n");
  repos_close(&repos);
}

TEST(O3_a_store_gets_large_files_in_parts_where_it_offers_that) {
  mock_request_t *request;
  json_t *body;

  repos_open(&repos);
  repos.part_size = 600000;
  repos.wants_verify = 1;
  push_ok();
  CHECK_MEM(repos.stored, repos.n_stored, weights, N_WEIGHTS);
  CHECK_INT(mock_n_requests(repos.bench.cdn), 3);
  CHECK_INT(mock_request(repos.bench.cdn, 0)->body_len, 600000);
  CHECK_INT(mock_request(repos.bench.cdn, 2)->body_len, 300000);
  request =
      mock_request(repos.bench.mock, mock_n_requests(repos.bench.mock) - 3);
  CHECK(strncmp(request->path, "/complete/", 10) == 0);
  body = parsed(request);
  CHECK_INT(json_array_size(json_object_get(body, "parts")), 3);
  CHECK_STR(json_string_value(json_object_get(
                json_array_get(json_object_get(body, "parts"), 2), "etag")),
            "\"e-1\"");
  json_decref(body);
  CHECK_INT(mock_count(repos.bench.mock, "POST", "/verify"), 1);
  repos_close(&repos);
}

TEST(O3_what_the_store_has_already_is_not_sent) {
  repos_open(&repos);
  repos.has_stored = 1;
  push_ok();
  CHECK_INT(mock_n_requests(repos.bench.cdn), 0);
  CHECK_INT(tnk_promise_pushed(repos.outcome.promise)->n_sent, 0);
  repos_close(&repos);
}

TEST(O3_the_repository_of_another_checkpoint_is_refused) {
  repos_open(&repos);
  repos.create_status = 409;
  repos.card = "---\ntinker_path: tinker://other/weights/1\n---\n";
  push_fails(TNK_ECONFLICT, "push: " REPO " has another checkpoint, "
                            "tinker://other/weights/1");
  CHECK_INT(repos.n_commits, 0);
  repos_close(&repos);
  repos_open(&repos);
  repos.create_status = 409;
  repos.card = "text `" CHECKPOINT "` more";
  push_ok();
  repos_close(&repos);
}

/* Whether it can be overwritten is not known then. */
TEST(O3_a_card_that_cannot_be_read_ends_the_push) {
  repos_open(&repos);
  repos.answer_at = "/README.md";
  repos.answer = "{}";
  repos.answer_status = 500;
  repos.n_answers = 99;
  push_fails(TNK_ESERVER, "the model card");
  CHECK_INT(repos.n_commits, 0);
  repos_close(&repos);
}

TEST(O3_a_token_that_must_not_create_is_good_for_what_exists) {
  repos_open(&repos);
  repos.create_status = 403;
  push_ok();
  repos_close(&repos);
  repos_open(&repos);
  repos.create_status = 403;
  repos.look_status = 404;
  push_fails(TNK_EAUTH, "push: cannot create the repository at 127.0.0.1");
  CHECK(strstr(repos.outcome.text, "(HTTP 403): as told") != NULL);
  repos_close(&repos);
}

TEST(O3_names_visibility_and_pull_requests_are_the_callers) {
  json_t *body;

  repos_open(&repos);
  repos.options.repo = "org/my-model";
  repos.options.opens_pull_request = TNK_YES;
  repos.options.is_public = TNK_YES;
  repos.options.model_card = TNK_NO;
  repos.options.message = "mine";
  push_ok();
  body = parsed(mock_request(repos.bench.mock, 1));
  CHECK_STR(json_string_value(json_object_get(body, "name")), "my-model");
  CHECK_STR(json_string_value(json_object_get(body, "organization")), "org");
  CHECK(json_is_false(json_object_get(body, "private")));
  json_decref(body);
  CHECK_STR(tnk_promise_pushed(repos.outcome.promise)->revision, "main");
  CHECK_STR(tnk_promise_pushed(repos.outcome.promise)->url, "http://h/pr/1");
  CHECK(strstr(repos.log, "/branch/") == NULL);
  CHECK(strstr(repos.commit, "\"summary\":\"mine\"") != NULL);
  check_committed("README.md", NULL);
  repos_close(&repos);
}

TEST(O3_a_repository_is_private_unless_it_is_said) {
  json_t *body;

  repos_open(&repos);
  repos.options.repo = "mine";
  repos.options.revision = "a/b";
  push_ok();
  body = parsed(mock_request(repos.bench.mock, 1));
  CHECK(json_is_true(json_object_get(body, "private")));
  CHECK(json_is_null(json_object_get(body, "organization")));
  json_decref(body);
  CHECK_STR(tnk_promise_pushed(repos.outcome.promise)->repo, "owner/mine");
  CHECK(strstr(repos.log, "/commit/a%2Fb;") != NULL);
  repos_close(&repos);
}

TEST(O3_patterns_choose_the_files) {
  static const char *const allow[] = {"*.json", "sub/", "checkpoint_complete"};
  static const char *const ignore[] = {"sub/n?tes.[t]xt"};

  repos_open(&repos);
  repos_write(&repos, "sub/more.txt", "more", 4);
  repos_write(&repos, "a.log", "log", 3);
  repos.options.allow = allow;
  repos.options.n_allow = 3;
  repos.options.ignore = ignore;
  repos.options.n_ignore = 1;
  push_ok();
  CHECK_INT(mock_n_requests(repos.bench.cdn), 0);
  check_committed("sub/more.txt", "more");
  check_committed("sub/notes.txt", NULL);
  check_committed("checkpoint_complete", "");
  check_committed("README.md", NULL);
  repos_close(&repos);
  repos_open(&repos);
  repos_write(&repos, "a.log", "log", 3);
  push_ok();
  check_committed("a.log", NULL); /* the hub does not want it */
  repos_close(&repos);
}

TEST(O3_what_may_pass_is_repeated_with_the_same_bytes) {
  static const char *const paths[] = {
      "/whoami-v2",  "/repos/create",  "/branch/", "/README.md",
      "/preupload/", "/objects/batch", "/store/"};

  for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
    for (int is_lost = 0; is_lost < 2; is_lost++) {
      repos_open(&repos);
      repos.answer_at = paths[i];
      repos.answer = is_lost ? NULL : "{}";
      repos.answer_status = 503;
      repos.n_answers = 2;
      push_ok();
      CHECK_MEM(repos.stored, repos.n_stored, weights, N_WEIGHTS);
      repos_close(&repos);
    }
}

TEST(O3_a_commit_that_may_have_been_made_is_not_repeated) {
  repos_open(&repos);
  repos.answer_at = "/commit/";
  repos.n_answers = 9;
  push_fails(TNK_ECONN, "; it may have been done anyway");
  CHECK_INT(repos.n_answers, 8);
  repos_close(&repos);
  repos_open(&repos);
  repos.answer_at = "/commit/";
  repos.answer = "{}";
  repos.answer_status = 429;
  repos.n_answers = 2;
  push_ok();
  repos_close(&repos);
}

static void answers(const char *at, int status, const char *answer, int err,
                    const char *text) {
  repos_open(&repos);
  repos.answer_at = at;
  repos.answer = answer;
  repos.answer_status = status;
  repos.n_answers = 99;
  push_fails(err, text);
  CHECK_INT(repos.n_commits, 0);
  repos_close(&repos);
}

TEST(O3_refusals_and_malformed_answers_are_told) {
  answers("/whoami-v2", 401, "{\"error\":\"bad token\"}", TNK_EAUTH,
          "(HTTP 401): bad token");
  answers("/whoami-v2", 401, "{\"error\":\"bad " TOKEN "\"}", TNK_EAUTH,
          "(HTTP 401)");
  answers("/whoami-v2", 200, "{\"name\":\"../x\"}", TNK_EPROTO,
          "the hub's answer");
  answers("/preupload/", 200, "{\"files\":[]}", TNK_EPROTO, "the hub's answer");
  answers("/preupload/", 200, "no", TNK_EPROTO, "the hub's answer");
  answers("/objects/batch", 200, "{\"objects\":[{\"oid\":\"x\",\"size\":1}]}",
          TNK_EREQUEST, "the hub refuses a file: malformed answer");
  answers("/store/", 403, "{}", TNK_EAUTH, "push: cannot upload a file at");
}

/* The hub says where a file goes; the rest of the answer is hostile. */
static void batch_says(const char *actions) {
  static char answer[1024];
  tnk__sha256_t sha;
  char sum[65];

  tnk__sha256_init(&sha);
  tnk__sha256_add(&sha, weights, N_WEIGHTS);
  tnk__sha256_end(&sha, sum);
  snprintf(answer, sizeof(answer),
           "{\"objects\":[{\"oid\":\"%s\",\"size\":1,\"actions\":%s}]}", sum,
           actions);
  answers("/objects/batch", 200, answer, TNK_EPROTO, "the hub's response");
}

TEST(O3_hostile_places_of_large_files_are_refused) {
  repos_open(&repos); /* for the weights */
  outcome_of(&repos.outcome, tnk_hub_push(repos.bench.hub, "/none", NULL));
  outcome_wait(&repos.bench, &repos.outcome);
  repos_close(&repos);
  batch_says("{}");
  batch_says("{\"upload\":{}}");
  batch_says("{\"upload\":{\"href\":\"file:///etc/passwd\"}}");
  batch_says("{\"upload\":{\"href\":\"http://h/\",\"header\":"
             "{\"chunk_size\":\"0\"}}}");
  batch_says("{\"upload\":{\"href\":\"http://h/\",\"header\":"
             "{\"chunk_size\":\"1\"}}}");
  batch_says("{\"upload\":{\"href\":\"http://h/\",\"header\":"
             "{\"chunk_size\":800000,\"1\":\"http://h/1\"}}}");
}

/* As if the hub had been asked over TLS. */
static void turn_safe(mock_request_t *request, void *user) {
  (void)user;
  repos.bench.hub->config.options.endpoint = "https://hub.example";
  reply_batch(&repos, request);
}

TEST(O3_a_hub_over_TLS_names_no_place_without_it) {
  repos_open(&repos);
  mock_once(repos.bench.mock, "POST", "/" REPO ".git/info/lfs/objects/batch",
            turn_safe, NULL);
  push_fails(TNK_EPROTO, "the hub's response about a large file");
  CHECK_INT(mock_n_requests(repos.bench.cdn), 0);
  repos_close(&repos);
}

static void cut_file(mock_request_t *request, void *user) {
  (void)user;
  repos_write(&repos, "adapter_model.safetensors", weights, 1000000);
  reply_batch(&repos, request);
}

TEST(O3_a_file_that_becomes_shorter_ends_the_push) {
  repos_open(&repos);
  mock_once(repos.bench.mock, "POST", "/" REPO ".git/info/lfs/objects/batch",
            cut_file, NULL);
  push_fails(
      TNK_EFILE,
      "push: adapter_model.safetensors became shorter while it was being sent");
  CHECK_INT(repos.n_commits, 0);
  repos_close(&repos);
}

TEST(O3_a_directory_without_an_adapter_is_refused_before_a_request) {
  char path[200];

  repos_open(&repos);
  snprintf(path, sizeof(path), "%s/adapter_model.safetensors", repos.dir);
  CHECK_INT(unlink(path), 0);
  push_fails(TNK_EINVAL, "the directory has no adapter");
  CHECK_INT(repos.n_requests, 0);
  repos_close(&repos);
  repos_open(&repos);
  snprintf(repos.dir, sizeof(repos.dir), "/nonexistent/x");
  push_fails(TNK_EFILE, "the directory cannot be read");
  repos_close(&repos);
}

TEST(O3_arguments_are_checked) {
  static const struct {
    const char *checkpoint, *repo, *revision, *message, *why;
  } bad[] = {
      {NULL, NULL, NULL, NULL, "no checkpoint was given"},
      {"run/weights/x", NULL, NULL, NULL, "no tinker:// path"},
      {"tinker://run/../x", NULL, NULL, NULL, "no tinker:// path"},
      {"tinker://run/sampler_weights/x", NULL, NULL, NULL, "only weights"},
      {CHECKPOINT, "a/b/c", NULL, NULL, "the repository"},
      {CHECKPOINT, "../b", NULL, NULL, "the repository"},
      {CHECKPOINT, "a b", NULL, NULL, "the repository"},
      {CHECKPOINT, NULL, "../x", NULL, "the revision"},
      {CHECKPOINT, NULL, NULL, "a\nb", "the message"},
  };

  repos_open(&repos);
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    repos.options.checkpoint = bad[i].checkpoint;
    repos.options.repo = bad[i].repo;
    repos.options.revision = bad[i].revision;
    repos.options.message = bad[i].message;
    push_fails(TNK_EINVAL, bad[i].why);
    outcome_drop(&repos.outcome);
  }
  CHECK_INT(repos.n_requests, 0);
  bench_close(&repos.bench);
}

TEST(O3_a_push_needs_a_token) {
  tnk_hub_options_t options = TNK_HUB_OPTIONS_INIT;

  repos_open(&repos);
  bench_close_hub(&repos.bench);
  options.token = "";
  bench_open_hub(&repos.bench, &options);
  push_fails(TNK_ECREDENTIAL, "the hub has no token");
  repos_close(&repos);
}

static void note_progress(const char *file, uint64_t n_bytes, uint64_t n_total,
                          void *user) {
  CHECK_STR(file, "adapter_model.safetensors");
  CHECK_INT(n_total, N_WEIGHTS);
  *(uint64_t *)user = n_bytes;
}

TEST(O3_progress_of_large_files_is_told) {
  uint64_t n_bytes = 0;

  repos_open(&repos);
  repos.options.on_progress = note_progress;
  repos.options.progress_user = &n_bytes;
  push_ok();
  CHECK_INT(n_bytes, N_WEIGHTS);
  repos_close(&repos);
}

/* ---- Checks before a download ---- */

static void check_only(int err, const char *text, const char *log) {
  static char none[] = "";

  repos.options.only_checks = TNK_YES;
  memcpy(repos.dir, none, sizeof(none)); /* refused by any other push */
  repos_push(&repos);
  CHECK_INT(repos.outcome.status, err);
  if (strstr(repos.outcome.text, text) == NULL)
    CHECK_STR(repos.outcome.text, text);
  CHECK_STR(repos.log, log);
}

TEST(O3_what_only_checks_makes_nothing) {
  const tnk_pushed_t *pushed;

  repos_open(&repos);
  check_only(TNK_OK, "",
             "GET /api/whoami-v2; GET /" REPO
             "/resolve/weights-final/README.md; ");
  pushed = tnk_promise_pushed(repos.outcome.promise);
  CHECK_STR(pushed->repo, REPO);
  CHECK_STR(pushed->revision, "weights-final");
  CHECK_STR(pushed->commit, "");
  CHECK_STR(pushed->url, "");
  CHECK_INT(pushed->n_files, 0);
  repos_close(&repos);
}

TEST(O3_what_would_be_refused_is_known_before) {
  repos_open(&repos);
  repos.card = "a tinker://other:train:0/weights/x\n";
  check_only(TNK_ECONFLICT, "another checkpoint",
             "GET /api/whoami-v2; GET /" REPO
             "/resolve/weights-final/README.md; ");
  repos_close(&repos);
  repos_open(&repos);
  repos.answer_at = "whoami";
  repos.answer = "{\"error\":\"no\"}";
  repos.answer_status = 401;
  repos.n_answers = 1;
  check_only(TNK_EAUTH, "find out whose token", "GET /api/whoami-v2; ");
  repos_close(&repos);
  repos_open(&repos);
  repos.options.repo = "a b";
  check_only(TNK_EINVAL, "the repository", "");
  repos_close(&repos);
}

/* ---- Memory ---- */

enum { FEW = 2500 };

/* What fails leaves the hub good for the same push, and no half of a commit. */
static int run_without_memory(long n) {
  int is_over;

  repos_open_with(&repos, FEW);
  repos.part_size = 1000;
  test_alloc_fail_at(n);
  repos_push(&repos);
  is_over = bench_check_memory(&repos.outcome, n);
  if (repos.outcome.status != TNK_OK) {
    outcome_drop(&repos.outcome);
    repos.n_stored = 0;
    repos_push(&repos);
    CHECK_INT(repos.outcome.status, TNK_OK);
  }
  CHECK_STR(tnk_promise_pushed(repos.outcome.promise)->commit, "c1");
  CHECK_MEM(repos.stored, repos.n_stored, weights, FEW);
  check_committed("sub/notes.txt", "hello");
  repos_close(&repos);
  CHECK_INT(test_alloc_live(), 0);
  return is_over;
}

TEST_LIMIT(S3_26a_pushes_without_memory, 60) {
  bench_without_memory(run_without_memory);
}

TEST_LIMIT(O3_closing_and_canceling_are_legal_at_every_request, 30) {
  const tnk_hub_options_t fresh = TNK_HUB_OPTIONS_INIT;

  for (int i = 1; i <= 8; i++) {
    repos_open(&repos);
    repos.close_at = i;
    outcome_of(&repos.outcome,
               tnk_hub_push(repos.bench.hub, repos.dir, &repos.options));
    outcome_wait(&repos.bench, &repos.outcome);
    CHECK_INT(repos.outcome.status, TNK_ECLOSED);
    mock_wait_flag(repos.bench.mock, &repos.bench.is_closed, 1);
    bench_open_hub(&repos.bench, &fresh);
    repos_close(&repos);
  }
  for (int turns = 0; turns < 30; turns++) {
    repos_open(&repos);
    outcome_of(&repos.outcome,
               tnk_hub_push(repos.bench.hub, repos.dir, &repos.options));
    for (int i = 0; i < turns && repos.outcome.n_done == 0; i++)
      uv_run(&repos.bench.uv, UV_RUN_NOWAIT);
    tnk_promise_cancel(repos.outcome.promise);
    outcome_wait(&repos.bench, &repos.outcome);
    CHECK(repos.outcome.status == TNK_ECANCELED ||
          repos.outcome.status == TNK_OK);
    repos_close(&repos);
  }
}

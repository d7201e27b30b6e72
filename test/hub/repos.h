/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_HUB_REPOS_H
#define TNK_TEST_HUB_REPOS_H

#include <jansson.h>

#include "hub/bench.h"
#include "hub/models.h"

/*
 * A scripted hub that takes a push: repositories, the store of large files (on
 * the other origin, with signed addresses), commits. It checks what it gets.
 */
#define CHECKPOINT "tinker://run-1:train:0/weights/final"
#define REPO "owner/tinker-Model-8B-run-1-train-0"
#define CONFIG "{\"r\": 8, \"base_model_name_or_path\": null}"

enum { N_WEIGHTS = 1500000, MAX_STORED = 2 << 20 };

typedef struct {
  bench_t bench;
  char dir[96]; /* what is pushed */
  tnk_push_options_t options;
  outcome_t outcome;
  /* What it has and how it is. */
  const char *card;  /* of the repository; NULL: none */
  int create_status; /* 0: 200 */
  int look_status;   /* 0: 200 */
  size_t part_size;  /* 0: at once */
  int has_stored;    /* the store has the large files already */
  int wants_verify;
  const char *answer_at; /* a path that is answered with `answer` ... */
  const char *answer;
  int answer_status;
  int n_answers; /* ... so many times */
  int n_requests;
  int close_at; /* the request at which the hub is closed; 0: never */
  /* What it got. */
  char stored[MAX_STORED];
  size_t n_stored;
  char commit[8192]; /* of it the front */
  int n_commits;
  char log[2048]; /* "METHOD path; " */
} repos_t;

static char weights[N_WEIGHTS];

static inline int ends(const char *text, const char *end) {
  const size_t n = strlen(text);

  return n >= strlen(end) && strcmp(text + n - strlen(end), end) == 0;
}

static inline json_t *parsed(const mock_request_t *request) {
  json_t *json =
      json_loadb((const char *)request->body, request->body_len, 0, NULL);

  CHECK(json != NULL);
  return json;
}

static inline void reply_json(mock_request_t *request, int status,
                              json_t *json) {
  char *text = json_dumps(json, JSON_COMPACT);

  mock_reply_json(request, status, text);
  free(text);
  json_decref(json);
}

static inline void reply_sorting(mock_request_t *request) {
  json_t *asked = parsed(request);
  json_t *files = json_array();
  size_t i;
  json_t *file;

  json_array_foreach(json_object_get(asked, "files"), i, file) {
    const char *name = json_string_value(json_object_get(file, "path"));
    CHECK(json_is_string(json_object_get(file, "sample")));
    CHECK(json_is_integer(json_object_get(file, "size")));
    json_array_append_new(
        files,
        json_pack("{s:s,s:s,s:b}", "path", name, "uploadMode",
                  ends(name, ".safetensors") || ends(name, ".bin") ? "lfs"
                                                                   : "regular",
                  "shouldIgnore", ends(name, ".log")));
  }
  json_decref(asked);
  reply_json(request, 200, json_pack("{s:o}", "files", files));
}

static inline json_t *actions_for(const repos_t *repos, json_t *object) {
  const char *sum = json_string_value(json_object_get(object, "oid"));
  const size_t size =
      (size_t)json_integer_value(json_object_get(object, "size"));
  json_t *header = json_object();
  json_t *actions;
  char url[300];

  if (repos->part_size > 0) {
    json_object_set_new(header, "chunk_size",
                        json_sprintf("%zu", repos->part_size));
    for (size_t i = 0; i * repos->part_size < size; i++) {
      char key[16];
      snprintf(key, sizeof(key), "%zu", i + 1);
      json_object_set_new(header, key,
                          json_sprintf("%s/store/%s?part=%zu&sig=" SIGNATURE,
                                       mock_url(repos->bench.cdn), sum, i + 1));
    }
    snprintf(url, sizeof(url), "%s/complete/%s", mock_url(repos->bench.mock),
             sum);
  } else {
    json_object_set_new(header, "X-Store", json_string("one"));
    snprintf(url, sizeof(url), "%s/store/%s?sig=" SIGNATURE,
             mock_url(repos->bench.cdn), sum);
  }
  actions = json_pack("{s:{s:s,s:o}}", "upload", "href", url, "header", header);
  if (repos->wants_verify) {
    snprintf(url, sizeof(url), "%s/verify", mock_url(repos->bench.mock));
    json_object_set_new(actions, "verify", json_pack("{s:s}", "href", url));
  }
  return actions;
}

static inline void reply_batch(const repos_t *repos, mock_request_t *request) {
  json_t *asked = parsed(request);
  json_t *objects = json_object_get(asked, "objects");
  size_t i;
  json_t *object;

  CHECK_STR(mock_header(request, "content-type"),
            "application/vnd.git-lfs+json");
  json_array_foreach(objects, i, object) {
    if (!repos->has_stored)
      json_object_set_new(object, "actions", actions_for(repos, object));
  }
  json_incref(objects);
  json_decref(asked);
  reply_json(request, 200, json_pack("{s:o}", "objects", objects));
}

static inline void take_commit(repos_t *repos, mock_request_t *request) {
  const size_t n = request->body_len < sizeof(repos->commit) - 1
                       ? request->body_len
                       : sizeof(repos->commit) - 1;

  CHECK_STR(mock_header(request, "content-type"), "application/x-ndjson");
  memcpy(repos->commit, request->body, n);
  repos->commit[n] = '\0';
  repos->n_commits++;
  mock_reply_json(request, 200,
                  strstr(request->target, "create_pr=1") != NULL
                      ? "{\"commitOid\":\"c1\",\"commitUrl\":\"http://h/c\","
                        "\"pullRequestUrl\":\"http://h/pr/1\"}"
                      : "{\"commitOid\":\"c1\",\"commitUrl\":\"http://h/c\"}");
}

static inline void note(repos_t *repos, const mock_request_t *request) {
  const size_t n = strlen(repos->log);

  snprintf(repos->log + n, sizeof(repos->log) - n, "%s %s; ", request->method,
           request->path);
  if (++repos->n_requests == repos->close_at) {
    repos->bench.is_closed = 0;
    tnk_hub_close(repos->bench.hub, bench_hub_closed, &repos->bench);
  }
}

static inline int is_answered(repos_t *repos, mock_request_t *request) {
  if (repos->answer_at == NULL || repos->n_answers == 0 ||
      strstr(request->path, repos->answer_at) == NULL)
    return 0;
  repos->n_answers--;
  if (repos->answer == NULL)
    mock_reset(request, NULL);
  else
    mock_reply_json(request, repos->answer_status, repos->answer);
  return 1;
}

static inline void on_hub(mock_request_t *request, void *user) {
  repos_t *repos = user;
  const char *path = request->path;

  note(repos, request);
  CHECK_STR(mock_header(request, "authorization"),
            strncmp(path, "/complete/", 10) == 0 ? NULL : "Bearer " TOKEN);
  if (is_answered(repos, request))
    return;
  if (strcmp(path, "/api/whoami-v2") == 0)
    mock_reply_json(request, 200, "{\"name\":\"owner\",\"type\":\"user\"}");
  else if (strcmp(path, "/api/repos/create") == 0)
    mock_reply_json(request,
                    repos->create_status != 0 ? repos->create_status : 200,
                    "{\"error\":\"as told\"}");
  else if (strstr(path, "/branch/") != NULL)
    mock_reply_json(request, 201, "");
  else if (ends(path, "/README.md") && repos->card == NULL)
    mock_reply(request, 404, "X-Error-Code: EntryNotFound\r\n", NULL, 0);
  else if (ends(path, "/README.md"))
    mock_reply(request, 200, NULL, repos->card, strlen(repos->card));
  else if (strstr(path, "/preupload/") != NULL)
    reply_sorting(request);
  else if (ends(path, "/objects/batch"))
    reply_batch(repos, request);
  else if (strstr(path, "/commit/") != NULL)
    take_commit(repos, request);
  else if (strncmp(path, "/complete/", 10) == 0 || strcmp(path, "/verify") == 0)
    mock_reply_json(request, 200, "");
  else
    mock_reply_json(request, repos->look_status != 0 ? repos->look_status : 200,
                    "{}");
}

/* The store knows no token. */
static inline void on_store(mock_request_t *request, void *user) {
  repos_t *repos = user;

  note(repos, request);
  CHECK_STR(mock_header(request, "authorization"), NULL);
  CHECK_STR(request->method, "PUT");
  if (is_answered(repos, request))
    return;
  CHECK(repos->n_stored + request->body_len <= sizeof(repos->stored));
  memcpy(repos->stored + repos->n_stored, request->body, request->body_len);
  repos->n_stored += request->body_len;
  mock_reply(request, 200, "ETag: \"e-1\"\r\n", NULL, 0);
}

static inline void repos_write(const repos_t *repos, const char *name,
                               const void *data, size_t n) {
  write_below(repos->dir, name, data, n);
}

/* A hub, and a directory with an adapter of so many bytes. */
static inline void repos_open_with(repos_t *repos, size_t n_weights) {
  const tnk_push_options_t none = TNK_PUSH_OPTIONS_INIT;
  char path[120];

  memset(repos, 0, sizeof(*repos));
  bench_open(&repos->bench);
  snprintf(repos->dir, sizeof(repos->dir), "%s/out", repos->bench.dir);
  CHECK_INT(mkdir(repos->dir, 0700), 0);
  snprintf(path, sizeof(path), "%s/sub", repos->dir);
  CHECK_INT(mkdir(path, 0700), 0);
  for (size_t i = 0; i < n_weights; i++)
    weights[i] = (char)(i * 31 + (i >> 10));
  repos_write(repos, "adapter_config.json", CONFIG, strlen(CONFIG));
  repos_write(repos, "adapter_model.safetensors", weights, n_weights);
  repos_write(repos, "checkpoint_complete", "", 0);
  repos_write(repos, "sub/notes.txt", "hello", 5);
  repos->options = none;
  repos->options.checkpoint = CHECKPOINT;
  repos->options.base_model = "org/Model-8B";
  mock_on(repos->bench.mock, NULL, NULL, on_hub, repos);
  mock_on(repos->bench.cdn, NULL, NULL, on_store, repos);
}

static inline void repos_open(repos_t *repos) {
  repos_open_with(repos, N_WEIGHTS);
}

static inline void repos_push(repos_t *repos) {
  outcome_of(&repos->outcome,
             tnk_hub_push(repos->bench.hub, repos->dir, &repos->options));
  while (repos->outcome.n_done == 0) {
    const tnk__timer_t *next;
    tnk__context_t *context = &repos->bench.hub->root.context;
    uv_run(&repos->bench.uv, UV_RUN_NOWAIT);
    /* Besides its own handles: a connection to each of the two servers. */
    next = context->timers.root;
    if (next != NULL && !tnk__timer_is_background(next) &&
        context->n_held <= repos->bench.n_own + 2)
      tnk__context_advance(context, 100);
  }
}

static inline void repos_close(repos_t *repos) {
  outcome_drop(&repos->outcome);
  bench_close(&repos->bench);
}

#endif

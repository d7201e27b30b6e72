/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_SILENCE_OPERATIONS_H
#define TNK_TEST_SILENCE_OPERATIONS_H

#include "codec/loss_graph.h"
#include "codec/tar_make.h"
#include "lib/base/base64.h"
#include "silence/world.h"
#include "task/hosted.h"
#include "task/stream.h"
#include "tnk/hub.h"
#include "tnk/ledger.h"
#include "tnk/push.h"
#include "tnk/rest.h"
#include "tnk/train.h"
#include "tnk/weights.h"

/*
 * Every operation of the public API, and what the library does by itself. A
 * function of the headers that returns a promise and has no row here fails the
 * test; see operations.py.
 */

typedef enum {
  NEEDS_SERVICE = 0,
  NEEDS_TRAINING,
  NEEDS_SAMPLING,
  NEEDS_LEDGER, /* and a training client */
  NEEDS_COMMAND,
  NEEDS_HUB
} needs_t;

typedef struct operation {
  const char *name; /* of the function; in parentheses: no function's */
  needs_t needs;
  tnk_promise_t *(*run)(script_t *script); /* one of the two */
  tnk_promise_t *(*start)(world_t *world);
  void (*prepare)(world_t *world); /* or NULL; the server's side */
  void (*act)(world_t *world);     /* or NULL; after the start */
  int is_background; /* nobody waits for it, and it goes on for ever */
} operation_t;

#define REST_PATH "tinker://r:1/weights/a"
#define REST_RUN "/api/v1/training_runs/r:1/checkpoints/"
#define EXTERNAL_PATH "tinker://r:1/external_weights/hf"

/* ---- Tokens ---- */

/* In seconds: of one that is to be renewed under the eyes of the test, and of
 * all others. */
enum { SHORT_LIFE_S = 100, LONG_LIFE_S = 36000 };

/* "eyJhIjoxfQ.<claims>.canary" */
static void reply_token(mock_request_t *request, void *user) {
  const world_t *world = user;
  const long long now_s = (long long)tnk__context_wall_s(world->context);
  char claims[160];
  char body[400];
  tnk__buf_t text;

  snprintf(claims, sizeof(claims),
           "{\"sub\":\"urn:u\",\"org_id\":\"o\",\"email\":\"e\",\"iat\":%lld,"
           "\"exp\":%lld}",
           now_s,
           now_s + (world->op->is_background ? SHORT_LIFE_S : LONG_LIFE_S));
  tnk__buf_init(&text, tnk__allocator_default(), 400);
  tnk__base64_write(&text, claims, strlen(claims));
  snprintf(body, sizeof(body), "{\"jwt\":\"eyJhIjoxfQ.%s.canary\"}",
           tnk__buf_cstr(&text));
  tnk__buf_deinit(&text);
  mock_reply_json(request, 200, body);
}

/* A question that wants a token in place of the key. */
static void reply_capabilities(mock_request_t *request, void *user) {
  (void)user;
  if (strncmp(mock_header(request, "x-api-key"), "eyJhIjoxfQ.", 11) != 0)
    mock_reply_json(request, 401, "{\"detail\":\"no token\"}");
  else
    mock_reply_json(request, 200, "{\"supported_models\":[]}");
}

static void serve_tokens(world_t *world) {
  mock_server_t *mock = world->script.mock;

  script_flags(&world->script, "{\"pjwt_auth_enabled\":true}");
  mock_on(mock, "POST", "/api/v1/auth/token", reply_token, world);
  mock_on(mock, "GET", "/api/v1/get_server_capabilities", reply_capabilities,
          NULL);
}

/* A page of several, so that there is a next one. */
static const char checkpoint_list[] =
    "{\"checkpoints\":[{\"checkpoint_id\":\"weights/a\",\"checkpoint_type\":"
    "\"training\",\"time\":\"2026-01-02T03:04:05Z\",\"tinker_path\":"
    "\"tinker://r:1/weights/a\"}],\"cursor\":{\"offset\":0,\"limit\":1,"
    "\"total_count\":3}}";

/* ---- Questions about what the service keeps ---- */

static const char run_record[] =
    "{\"training_run_id\":\"r:1\",\"base_model\":\"m\",\"model_owner\":\"o\","
    "\"is_lora\":true,\"corrupted\":false,\"lora_rank\":8,"
    "\"last_request_time\":\"2026-01-02T03:04:05Z\"}";

static void serve_rest(world_t *world) {
  static const struct {
    const char *method;
    const char *path;
    const char *json;
  } rows[] = {
      {"GET", "/api/v1/training_runs",
       "{\"training_runs\":[],\"cursor\":{\"offset\":0,\"limit\":20,"
       "\"total_count\":0}}"},
      {"GET", "/api/v1/training_runs/r:1", run_record},
      {"GET", "/api/v1/training_runs/r:1/checkpoints",
       "{\"checkpoints\":[],\"cursor\":null}"},
      {"GET", "/api/v1/checkpoints", checkpoint_list},
      {"GET", REST_RUN "external_weights/hf/external_weights_urls",
       "{\"urls\":{\"a.json\":\"https://s/a\"},\"expires\":"
       "\"2100-01-01T00:00:00Z\"}"},
      {"DELETE", REST_RUN "weights/a", "{}"},
      {"POST", REST_RUN "weights/a/publish", "{}"},
      {"DELETE", REST_RUN "weights/a/publish", "{}"},
      {"PUT", REST_RUN "weights/a/ttl", "{}"},
      {"POST", "/api/v1/copy_weights",
       "{\"tinker_path\":\"tinker://s/weights/a\"}"},
      {"GET", "/api/v1/sessions/s-1",
       "{\"training_run_ids\":[],\"sampler_ids\":[]}"},
      {"GET", "/api/v1/sessions", "{\"sessions\":[]}"},
      {"POST", "/api/v1/sessions/search", "{\"sessions\":[]}"},
      {"PUT", "/api/v1/sessions/s-1/project", "{}"},
      {"GET", "/api/v1/sessions/s-1/trace_export",
       "{\"status\":\"ready\",\"url\":\"https://s/t\"}"},
      {"GET", "/api/v1/samplers/x",
       "{\"sampler_id\":\"x\",\"base_model\":\"m\"}"},
      {"GET", "/api/v1/auth/apikey/me",
       "{\"key_id\":42,\"name\":\"n\",\"note\":\"\",\"details\":{"
       "\"org_details\":{\"name\":\"O\"},\"user_details\":{\"email\":\"e\"}}}"},
      {"DELETE", "/api/v1/auth/apikey/me", "{}"},
      {"GET", "/api/v1/billing/usage/events", "{\"data\":[]}"},
      {"GET", "/api/v1/billing/usage/checkpoints/current",
       "{\"effective_rate_usd_per_gigabyte_month\":0.5,\"data\":[]}"},
      {"GET", "/api/v1/audit", "{\"entries\":[]}"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    mock_json(world->script.mock, rows[i].method, rows[i].path, 200,
              rows[i].json);
}

#define ASK(name, call)                                                        \
  static tnk_promise_t *name(script_t *script) {                               \
    return call;                                                               \
  }

ASK(list_runs, tnk_rest_list_runs(script->service, NULL))
ASK(get_run, tnk_rest_get_run(script->service, "r:1", TNK_SCOPE_OWNED))
ASK(run_checkpoints, tnk_rest_list_run_checkpoints(script->service, "r:1"))
ASK(list_checkpoints, tnk_rest_list_checkpoints(script->service, NULL))
ASK(weights_info, tnk_rest_get_weights_info(script->service, REST_PATH))
ASK(external_files, tnk_rest_get_external_files(script->service, EXTERNAL_PATH))
ASK(delete_it, tnk_rest_delete_checkpoint(script->service, REST_PATH))
ASK(publish, tnk_rest_publish_checkpoint(script->service, REST_PATH))
ASK(unpublish, tnk_rest_unpublish_checkpoint(script->service, REST_PATH))
ASK(set_ttl, tnk_rest_set_checkpoint_ttl(script->service, REST_PATH, 3600))
ASK(get_session, tnk_rest_get_session(script->service, "s-1", TNK_SCOPE_OWNED))
ASK(list_sessions, tnk_rest_list_sessions(script->service, NULL))
ASK(search_sessions, tnk_rest_search_sessions(script->service, NULL))
ASK(move_session, tnk_rest_move_session(script->service, "s-1", "p"))
ASK(export_trace, tnk_rest_export_trace(script->service, "s-1"))
ASK(get_sampler, tnk_rest_get_sampler(script->service, "x"))
ASK(whoami, tnk_rest_whoami(script->service))
ASK(get_key, tnk_rest_get_api_key(script->service))
ASK(revoke_key, tnk_rest_revoke_api_key(script->service))
ASK(get_usage, tnk_rest_get_usage(script->service, 0, INT64_C(3600000000)))
ASK(get_storage, tnk_rest_get_storage(script->service, NULL))
ASK(get_audit, tnk_rest_get_audit_log(script->service, NULL, NULL))

static tnk_promise_t *copy_weights(script_t *script) {
  tnk_copy_options_t options = TNK_COPY_OPTIONS_INIT;

  options.path = REST_PATH;
  options.project_id = "p";
  return tnk_rest_copy_weights(script->service, &options);
}

/* ---- Clients ---- */

static tnk_promise_t *create_loss(script_t *script) {
  const tnk_loss_options_t options = loss_options();

  return tnk_service_create_loss(script->service, &options);
}

static void reply_loss(mock_request_t *request, void *user) {
  (void)user;
  mock_reply_json(request, 200, "{\"request_id\":\"loss:1\"}");
}

/* What restores in one call, and losses, have results of their own. */
static void reply_result(mock_request_t *request, void *user) {
  const char *body = (const char *)request->body;
  const world_t *world = user;

  if (strstr(body, "\"loss:") != NULL)
    mock_reply_json(request, 200,
                    "{\"loss_id\":\"L1\",\"type\":\"create_custom_loss\"}");
  else if (strstr(body, "\"load_weights:") != NULL)
    mock_reply_json(request, 200,
                    "{\"path\":\"tinker://x\",\"model_id\":\"model-1\"}");
  else
    script_result(request, (void *)(uintptr_t)&world->script);
}

static void serve_loss(world_t *world) {
  script_flags(&world->script, "{\"custom_loss_server_side\":true}");
  mock_on(world->script.mock, "POST", "/api/v1/create_custom_loss", reply_loss,
          NULL);
}

static tnk_promise_t *clone(script_t *script) {
  return tnk_sampling_clone(script->sampling);
}

static void serve_clone(world_t *world) {
  script_flags(&world->script, "{\"sample_join_sampling_session\":true}");
  mock_json(world->script.mock, "POST", "/api/v1/join_sampling_session", 200,
            "{\"type\":\"join_sampling_session\",\"client_counter\":3}");
}

static void serve_batches(world_t *world) {
  script_flags(&world->script, script_batched);
  mock_on(world->script.mock, "POST", "/api/v1/retrieve_futures", script_batch,
          &world->script);
}

/* ---- Streams ---- */

static void serve_stream(world_t *world) {
  mock_on(world->script.mock, "POST", STREAM, reply_text,
          (void *)(uintptr_t)three_tokens);
}

static int ignore_token(const tnk_stream_token_t *token, void *user) {
  (void)token;
  (void)user;
  return 0;
}

static tnk_promise_t *sample_stream(script_t *script) {
  tnk_sample_stream_options_t options = TNK_SAMPLE_STREAM_OPTIONS_INIT;

  options.on_token = ignore_token;
  options.silence_ms = SILENCE_MS;
  return tnk_sampling_sample_stream(script->sampling, script_prompt(), NULL,
                                    &options);
}

static void serve_hosted(world_t *world) {
  mock_json(world->script.mock, "POST", CHAT, 200, "{\"id\":\"x\"}");
  mock_on(world->script.mock, "POST", MESSAGES, reply_text,
          (void *)(uintptr_t)messages_stream);
}

static int ignore_event(const tnk_hosted_event_t *event, void *user) {
  (void)event;
  (void)user;
  return 0;
}

static tnk_promise_t *hosted_whole(script_t *script) {
  tnk_hosted_request_t request = TNK_HOSTED_REQUEST_INIT;

  request.body = "{\"model\":\"m\"}";
  request.silence_ms = SILENCE_MS;
  return tnk_service_hosted(script->service, &request);
}

static tnk_promise_t *hosted_stream(script_t *script) {
  tnk_hosted_request_t request = TNK_HOSTED_REQUEST_INIT;

  request.form = TNK_HOSTED_MESSAGES;
  request.body = "{\"stream\":true}";
  request.on_event = ignore_event;
  request.silence_ms = SILENCE_MS;
  return tnk_service_hosted(script->service, &request);
}

/* ---- Files of weights ---- */

static void reply_urls(mock_request_t *request, void *user) {
  const world_t *world = user;
  char text[400];

  snprintf(text, sizeof(text),
           "{\"urls\":{\"adapter_config.json\":\"%s/w/a?s=1\","
           "\"adapter_model.bin\":\"%s/w/b?s=1\"},\"expires\":"
           "\"2100-01-01T00:00:00Z\"}",
           world->url, world->url);
  mock_reply_json(request, 200, text);
}

static void reply_archive_url(mock_request_t *request, void *user) {
  const world_t *world = user;
  char text[200];

  snprintf(text, sizeof(text),
           "Location: %s/w/tar?s=1\r\nExpires: Fri, 01 Jan 2100 00:00:00 "
           "GMT\r\n",
           world->url);
  mock_reply(request, 302, text, NULL, 0);
}

static void reply_archive(mock_request_t *request, void *user) {
  tnk__buf_t tar;

  (void)user;
  tnk__buf_init(&tar, tnk__allocator_default(), TAR_ROOM);
  tar_entry(&tar, "adapter_config.json", '0', "{}", 2);
  tar_entry(&tar, "checkpoint_complete", '0', "", 0);
  tar_end(&tar);
  mock_reply(request, 200, "ETag: \"t\"\r\n", tar.data, tar.len);
  tnk__buf_deinit(&tar);
}

static void reply_file(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, "ETag: \"one\"\r\n", "{\"r\": 8}", 8);
}

static void serve_weights(world_t *world) {
  mock_server_t *mock = world->script.mock;

  mock_on(mock, "GET", REST_RUN "external_weights/hf/external_weights_urls",
          reply_urls, world);
  mock_on(mock, "GET", REST_RUN "weights/a/archive", reply_archive_url, world);
  mock_on(mock, "GET", "/w/a", reply_file, NULL);
  mock_on(mock, "GET", "/w/b", reply_file, NULL);
  mock_on(mock, "GET", "/w/tar", reply_archive, NULL);
  world_folder(world);
}

static tnk_promise_t *get_weights(world_t *world, const char *path,
                                  tnk_choice_t archive) {
  tnk_weights_options_t options = TNK_WEIGHTS_OPTIONS_INIT;
  char target[80];

  options.archive = archive;
  options.max_retries = RETRIES;
  options.silence_timeout_ms = SILENCE_MS;
  snprintf(target, sizeof(target), "%s/out", world->dir);
  return tnk_weights_download(world->script.service, path, target, &options);
}

static tnk_promise_t *weights_files(world_t *world) {
  return get_weights(world, EXTERNAL_PATH, TNK_DEFAULT);
}

static tnk_promise_t *weights_archive(world_t *world) {
  return get_weights(world, REST_PATH, TNK_YES);
}

/* ---- The ledger ---- */

static void prepare_ledger(world_t *world) {
  world_folder(world);
}

static tnk_promise_t *open_ledger(world_t *world) {
  char run[80];

  snprintf(run, sizeof(run), "%s/run", world->dir);
  return tnk_ledger_open(world->script.service, run, NULL);
}

static tnk_promise_t *save_ledger(world_t *world) {
  return tnk_ledger_save(tnk_promise_ledger(world->kept.promise),
                         world->script.training, NULL);
}

static tnk_promise_t *resume_ledger(world_t *world) {
  return tnk_ledger_resume(tnk_promise_ledger(world->kept.promise), NULL);
}

/* A run that has been saved, by an earlier program. */
static void write_ledger(world_t *world) {
  static const char line[] =
      "{\"name\":\"a\",\"batch\":1,\"state_path\":"
      "\"tinker://model-0/weights/a\",\"tnk\":\"saved\",\"tnk_attempt\":1,"
      "\"tnk_save\":1,\"tnk_steps\":1,\"tnk_cursor\":\"c\"}\n";
  char path[100];
  FILE *file;

  world_folder(world);
  snprintf(path, sizeof(path), "%s/run", world->dir);
  CHECK_INT(mkdir(path, 0700), 0);
  snprintf(path, sizeof(path), "%s/run/checkpoints.jsonl", world->dir);
  file = fopen(path, "w");
  CHECK(file != NULL && fputs(line, file) >= 0 && fclose(file) == 0);
  mock_json(world->script.mock, "GET",
            "/api/v1/training_runs/model-0/checkpoints", 200,
            "{\"checkpoints\":[{\"checkpoint_id\":\"weights/a\","
            "\"checkpoint_type\":\"training\",\"time\":"
            "\"2026-01-02T03:04:05Z\",\"tinker_path\":"
            "\"tinker://model-0/weights/a\",\"user_metadata\":{}}]}");
}

/* ---- The hub ---- */

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define SMALL_ETAG "5f4dcc3b5aa765d61d8327deb882cf9900000000"

static void reply_model_file(mock_request_t *request, void *user) {
  const int is_head = strcmp(request->method, "HEAD") == 0;
  char headers[200];

  (void)user;
  snprintf(headers, sizeof(headers),
           "X-Repo-Commit: " COMMIT "\r\nETag: \"" SMALL_ETAG "\"\r\n%s",
           is_head ? "Content-Length: 8\r\nConnection: close\r\n" : "");
  mock_reply(request, 200, headers, is_head ? NULL : "{\"r\": 8}",
             is_head ? 0 : 8);
}

static void reply_batch(mock_request_t *request, void *user) {
  const world_t *world = user;
  const char *oid = strstr((const char *)request->body, "\"oid\"");
  char sum[65] = "";
  char text[500];

  CHECK(oid != NULL);
  oid = strchr(oid + 5, '"') + 1;
  memcpy(sum, oid, 64);
  snprintf(text, sizeof(text),
           "{\"objects\":[{\"oid\":\"%s\",\"size\":300,\"actions\":{\"upload\":"
           "{\"href\":\"%s/store/%s?s=1\",\"header\":{}}}}]}",
           sum, world->url, sum);
  mock_reply_json(request, 200, text);
}

static void reply_store(mock_request_t *request, void *user) {
  (void)user;
  mock_reply(request, 200, "ETag: \"e-1\"\r\n", NULL, 0);
}

static void reply_hub(mock_request_t *request, void *user) {
  const char *path = request->path;

  if (strncmp(path, "/store/", 7) == 0)
    reply_store(request, user);
  else if (strcmp(path, "/api/whoami-v2") == 0)
    mock_reply_json(request, 200, "{\"name\":\"owner\",\"type\":\"user\"}");
  else if (strstr(path, "/branch/") != NULL)
    mock_reply_json(request, 201, "");
  else if (strstr(path, "/README.md") != NULL)
    mock_reply(request, 404, "X-Error-Code: EntryNotFound\r\n", NULL, 0);
  else if (strstr(path, "/preupload/") != NULL)
    mock_reply_json(request, 200,
                    "{\"files\":[{\"path\":\"adapter_config.json\","
                    "\"uploadMode\":\"regular\",\"shouldIgnore\":false},"
                    "{\"path\":\"adapter_model.safetensors\",\"uploadMode\":"
                    "\"lfs\",\"shouldIgnore\":false},{\"path\":\"README.md\","
                    "\"uploadMode\":\"regular\",\"shouldIgnore\":false}]}");
  else if (strstr(path, "/objects/batch") != NULL)
    reply_batch(request, user);
  else if (strstr(path, "/commit/") != NULL)
    mock_reply_json(request, 200,
                    "{\"commitOid\":\"c1\",\"commitUrl\":\"http://h/c\"}");
  else if (strcmp(path, "/w/a") == 0 || strcmp(path, "/f") == 0)
    reply_file(request, user);
  else if (strstr(path, "/resolve/") != NULL)
    reply_model_file(request, user);
  else
    mock_reply_json(request, 200, "{}");
}

static void write_file(const world_t *world, const char *name, const void *data,
                       size_t n) {
  char path[120];
  FILE *file;

  snprintf(path, sizeof(path), "%s/%s", world->dir, name);
  file = fopen(path, "wb");
  CHECK(file != NULL);
  CHECK_INT(fwrite(data, 1, n, file), n);
  CHECK_INT(fclose(file), 0);
}

static void serve_hub(world_t *world) {
  static const char weights[300];
  char path[80];

  mock_on(world->script.mock, NULL, NULL, reply_hub, world);
  snprintf(path, sizeof(path), "%s/push", world->dir);
  CHECK_INT(mkdir(path, 0700), 0);
  write_file(world, "push/adapter_config.json", "{\"r\": 8}", 8);
  write_file(world, "push/adapter_model.safetensors", weights, sizeof(weights));
}

static tnk_promise_t *hub_download(world_t *world) {
  char url[100];
  char path[80];

  snprintf(url, sizeof(url), "%s/f", world->url);
  snprintf(path, sizeof(path), "%s/out/f", world->dir);
  return tnk_hub_download(world->hub, url, path, NULL);
}

static tnk_promise_t *hub_file(world_t *world) {
  return tnk_hub_file(world->hub, "org/model", "small.json", NULL);
}

static int open_nothing(void **tokenizer, const char *path,
                        const tnk_pair_t *overrides, size_t n_overrides,
                        const tnk_allocator_t *allocator, char *why,
                        size_t why_size) {
  (void)path;
  (void)overrides;
  (void)n_overrides;
  (void)why;
  (void)why_size;
  *tokenizer = allocator->malloc(1, allocator->user);
  return *tokenizer != NULL ? TNK_OK : TNK_ENOMEM;
}

static void close_nothing(void *tokenizer) {
  test_allocator()->free(tokenizer, test_allocator()->user);
}

static tnk_promise_t *hub_tokenizer(world_t *world) {
  static const char *const main_files[] = {"tok.json", NULL};
  static const char *const more_files[] = {"tok_config.json", NULL};
  static const tnk_tokenizer_plugin_t plugin = {.size = sizeof(plugin),
                                                .name = "none",
                                                .main_files = main_files,
                                                .more_files = more_files,
                                                .open = open_nothing,
                                                .close = close_nothing};

  return tnk_hub_tokenizer(world->hub, &plugin, "org/model", NULL);
}

static tnk_promise_t *hub_push(world_t *world) {
  tnk_push_options_t options = TNK_PUSH_OPTIONS_INIT;
  char path[80];

  options.checkpoint = "tinker://run-1:train:0/weights/final";
  options.base_model = "org/Model-8B";
  snprintf(path, sizeof(path), "%s/push", world->dir);
  return tnk_hub_push(world->hub, path, &options);
}

/* ---- What the library does by itself ---- */

/* The sample is given up at once, and the server is told of it. */
static void serve_cancel(world_t *world) {
  mock_server_t *mock = world->script.mock;

  mock_json(mock, "POST", "/api/v1/client/dynamic_config", 200,
            "{\"sample_cancel_enabled\":true}");
  mock_json(mock, "POST", "/api/v1/cancel_future", 200, "{}");
}

static void cancel_it(world_t *world) {
  tnk_promise_cancel(world->promise);
}

static tnk_promise_t *start_evaluation(script_t *script) {
  return tnk_training_evaluate(script->training, script_data(2), 2, NULL);
}

static const operation_t operations[] = {
    {"tnk_service_health", NEEDS_SERVICE, start_health, NULL, NULL, NULL, 0},
    {"tnk_service_capabilities", NEEDS_SERVICE, start_capabilities, NULL, NULL,
     NULL, 0},
    {"(token, then capabilities)", NEEDS_SERVICE, start_capabilities, NULL,
     serve_tokens, NULL, 0},
    {"(token of a command)", NEEDS_COMMAND, start_capabilities, NULL,
     serve_tokens, NULL, 0},
    {"tnk_service_create_lora", NEEDS_SERVICE, start_lora, NULL, NULL, NULL, 0},
    {"tnk_service_restore", NEEDS_SERVICE, start_restore, NULL, NULL, NULL, 0},
    {"(restore in several calls)", NEEDS_SERVICE, start_classic, NULL, NULL,
     NULL, 0},
    {"tnk_service_create_sampling", NEEDS_SERVICE, start_sampler, NULL, NULL,
     NULL, 0},
    {"tnk_service_create_loss", NEEDS_SERVICE, create_loss, NULL, serve_loss,
     NULL, 0},
    {"tnk_training_forward_backward", NEEDS_TRAINING, start_pass, NULL, NULL,
     NULL, 0},
    {"tnk_training_forward", NEEDS_TRAINING, start_forward, NULL, NULL, NULL,
     0},
    {"tnk_training_evaluate", NEEDS_TRAINING, start_evaluation, NULL, NULL,
     NULL, 0},
    {"tnk_training_forward_backward_custom", NEEDS_TRAINING, start_custom, NULL,
     NULL, NULL, 0},
    {"tnk_training_optim_step", NEEDS_TRAINING, script_step, NULL, NULL, NULL,
     0},
    {"tnk_training_save_state", NEEDS_TRAINING, start_save, NULL, NULL, NULL,
     0},
    {"tnk_training_save_weights_for_sampler", NEEDS_TRAINING,
     start_save_sampler, NULL, NULL, NULL, 0},
    {"tnk_training_save_weights_external", NEEDS_TRAINING, start_save_external,
     NULL, NULL, NULL, 0},
    {"tnk_training_save_weights_and_get_sampling", NEEDS_TRAINING,
     start_ephemeral, NULL, NULL, NULL, 0},
    {"tnk_training_load_state", NEEDS_TRAINING, start_load, NULL, NULL, NULL,
     0},
    {"tnk_training_unload", NEEDS_TRAINING, start_unload, NULL, NULL, NULL, 0},
    {"tnk_sampling_sample", NEEDS_SAMPLING, script_sample, NULL, NULL, NULL, 0},
    {"(sample, polls for many)", NEEDS_SAMPLING, script_sample, NULL,
     serve_batches, NULL, 0},
    {"tnk_sampling_sample_stream", NEEDS_SAMPLING, sample_stream, NULL,
     serve_stream, NULL, 0},
    {"tnk_sampling_compute_logprobs", NEEDS_SAMPLING, start_logprobs, NULL,
     NULL, NULL, 0},
    {"tnk_sampling_clone", NEEDS_SAMPLING, clone, NULL, serve_clone, NULL, 0},
    {"tnk_service_hosted", NEEDS_SERVICE, hosted_whole, NULL, serve_hosted,
     NULL, 0},
    {"(hosted, as a stream)", NEEDS_SERVICE, hosted_stream, NULL, serve_hosted,
     NULL, 0},
    {"tnk_rest_list_runs", NEEDS_SERVICE, list_runs, NULL, serve_rest, NULL, 0},
    {"tnk_rest_get_run", NEEDS_SERVICE, get_run, NULL, serve_rest, NULL, 0},
    {"tnk_rest_list_run_checkpoints", NEEDS_SERVICE, run_checkpoints, NULL,
     serve_rest, NULL, 0},
    {"tnk_rest_list_checkpoints", NEEDS_SERVICE, list_checkpoints, NULL,
     serve_rest, NULL, 0},
    {"tnk_rest_get_weights_info", NEEDS_SERVICE, weights_info, NULL, serve_rest,
     NULL, 0},
    {"tnk_rest_get_external_files", NEEDS_SERVICE, external_files, NULL,
     serve_rest, NULL, 0},
    {"tnk_rest_delete_checkpoint", NEEDS_SERVICE, delete_it, NULL, serve_rest,
     NULL, 0},
    {"tnk_rest_publish_checkpoint", NEEDS_SERVICE, publish, NULL, serve_rest,
     NULL, 0},
    {"tnk_rest_unpublish_checkpoint", NEEDS_SERVICE, unpublish, NULL,
     serve_rest, NULL, 0},
    {"tnk_rest_set_checkpoint_ttl", NEEDS_SERVICE, set_ttl, NULL, serve_rest,
     NULL, 0},
    {"tnk_rest_copy_weights", NEEDS_SERVICE, copy_weights, NULL, serve_rest,
     NULL, 0},
    {"tnk_rest_get_session", NEEDS_SERVICE, get_session, NULL, serve_rest, NULL,
     0},
    {"tnk_rest_list_sessions", NEEDS_SERVICE, list_sessions, NULL, serve_rest,
     NULL, 0},
    {"tnk_rest_search_sessions", NEEDS_SERVICE, search_sessions, NULL,
     serve_rest, NULL, 0},
    {"tnk_rest_move_session", NEEDS_SERVICE, move_session, NULL, serve_rest,
     NULL, 0},
    {"tnk_rest_export_trace", NEEDS_SERVICE, export_trace, NULL, serve_rest,
     NULL, 0},
    {"tnk_rest_get_sampler", NEEDS_SERVICE, get_sampler, NULL, serve_rest, NULL,
     0},
    {"tnk_rest_whoami", NEEDS_SERVICE, whoami, NULL, serve_tokens, NULL, 0},
    {"tnk_rest_get_api_key", NEEDS_SERVICE, get_key, NULL, serve_rest, NULL, 0},
    {"tnk_rest_revoke_api_key", NEEDS_SERVICE, revoke_key, NULL, serve_rest,
     NULL, 0},
    {"tnk_rest_get_usage", NEEDS_SERVICE, get_usage, NULL, serve_rest, NULL, 0},
    {"tnk_rest_get_storage", NEEDS_SERVICE, get_storage, NULL, serve_rest, NULL,
     0},
    {"tnk_rest_get_audit_log", NEEDS_SERVICE, get_audit, NULL, serve_rest, NULL,
     0},
    {"tnk_rest_next_page", NEEDS_SERVICE, NULL, NULL, serve_rest, NULL, 0},
    {"tnk_weights_download", NEEDS_SERVICE, NULL, weights_files, serve_weights,
     NULL, 0},
    {"(weights as an archive)", NEEDS_SERVICE, NULL, weights_archive,
     serve_weights, NULL, 0},
    {"tnk_ledger_open", NEEDS_TRAINING, NULL, open_ledger, prepare_ledger, NULL,
     0},
    {"tnk_ledger_save", NEEDS_LEDGER, NULL, save_ledger, prepare_ledger, NULL,
     0},
    {"tnk_ledger_resume", NEEDS_LEDGER, NULL, resume_ledger, write_ledger, NULL,
     0},
    {"tnk_hub_download", NEEDS_HUB, NULL, hub_download, serve_hub, NULL, 0},
    {"tnk_hub_file", NEEDS_HUB, NULL, hub_file, serve_hub, NULL, 0},
    {"tnk_hub_tokenizer", NEEDS_HUB, NULL, hub_tokenizer, serve_hub, NULL, 0},
    {"tnk_hub_push", NEEDS_HUB, NULL, hub_push, serve_hub, NULL, 0},
    {"(cancel)", NEEDS_SAMPLING, script_sample, NULL, serve_cancel, cancel_it,
     0},
    {"(heartbeat)", NEEDS_SAMPLING, NULL, NULL, NULL, NULL, 1},
    {"(renewal of the token)", NEEDS_SAMPLING, NULL, NULL, serve_tokens, NULL,
     1},
};

enum { N_OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

#endif

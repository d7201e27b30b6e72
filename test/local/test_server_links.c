/* SPDX-License-Identifier: MIT */
#include "links.h"
#include "lm_help.h"
#include "tools/local/lm/checkpoint.h"
#include "tools/local/lm/state.h"

/* External weights: saved as other programs load them, and fetched by links. */

/* ---- What is saved ---- */

TEST(external_weights_are_a_peft_adapter) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  char target[1024];
  const char *body;
  json_t *config;
  bench_t b;
  exchange_t *x;
  size_t n;

  bench_open(&b, options);
  save(&b, "");
  link_of(&b, CONFIG, target);
  x = fetch(&b, "GET", target, "");
  CHECK_INT(x->status, 200);
  body = body_of(x, &n);
  config = json_loadb(body, n, 0, NULL);
  CHECK_STR(json_string_value(json_object_get(config, "peft_type")), "LORA");
  CHECK_STR(
      json_string_value(json_object_get(config, "base_model_name_or_path")),
      "tnk/byte-lm");
  CHECK_INT(json_integer_value(json_object_get(config, "r")), 4);
  CHECK_INT(json_integer_value(json_object_get(config, "lora_alpha")), 12);
  CHECK_INT(json_array_size(json_object_get(config, "target_modules")), 7);
  /* Loaders refuse members that they do not know. */
  CHECK(json_object_get(config, "tnk") == NULL);
  json_decref(config);
  rig_free(x);
  rig_close(&b.rig);
}

/* Run the text through base and adapter, as whoever has loaded it would. */
static double loss_with(const char *adapter, size_t n) {
  tnk__lm_config_t config = TNK__LM_CONFIG_INIT;
  tnk__lm_base_t *base = tnk__lm_base_new(test_allocator());
  tnk__lm_loss_t loss = lm_loss("cross_entropy");
  int32_t tokens[sizeof(TEXT)];
  int64_t targets[sizeof(TEXT)];
  float logprobs[sizeof(TEXT)];
  tnk__lm_datum_t datum = {.tokens = tokens,
                           .n_tokens = sizeof(TEXT) - 2,
                           .targets = targets,
                           .n_targets = 1};
  double sum = 0;
  tnk__lm_t *lm;

  for (size_t i = 0; i + 2 < sizeof(TEXT); i++) {
    tokens[i] = TEXT[i];
    targets[i] = TEXT[i + 1];
  }
  config.rank = 4;
  config.seed = 99;
  CHECK(base != NULL);
  CHECK_INT(tnk__lm_new(&lm, base, &config, test_allocator(), NULL), TNK_OK);
  CHECK_INT(tnk__lm_tensors_read(lm, PARAM_VALUE, 1, (const uint8_t *)adapter,
                                 n, lm->param, ADAPTER, NULL),
            TNK_OK);
  tnk__lm_merge(lm);
  CHECK_INT(tnk__lm_run(lm, &loss, &datum, 0, logprobs, &sum), TNK_OK);
  tnk__lm_free(lm);
  tnk__lm_base_free(base);
  return sum;
}

TEST(an_adapter_that_is_read_back_does_what_the_model_did) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  char target[1024];
  const char *body;
  double loss;
  bench_t b;
  exchange_t *x;
  size_t n;

  bench_open(&b, options);
  save(&b, "");
  x = rig_done(&b.rig, rig_pass(&b.rig, b.model, 4, TEXT));
  loss = rig_loss(x);
  rig_free(x);
  link_of(&b, ADAPTER, target);
  x = fetch(&b, "GET", target, "");
  CHECK_INT(x->status, 200);
  body = body_of(x, &n);
  CHECK_NEAR(loss_with(body, n), loss, 1e-5);
  rig_free(x);
  rig_close(&b.rig);
}

TEST(external_weights_are_for_others_alone) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  bench_t b;
  exchange_t *x;

  bench_open(&b, options);
  save(&b, "");
  CHECK_INT(rig_status(rig_post(&b.rig, "load_weights",
                                "{\"session_id\":\"%s\",\"model_seq_id\":1,"
                                "\"path\":\"tinker://%s/external_weights/e\"}",
                                b.session, b.model)),
            400);
  CHECK_INT(rig_status(rig_post(&b.rig, "create_sampling_session",
                                "{\"session_id\":\"%s\",\"model_path\":"
                                "\"tinker://%s/external_weights/e\"}",
                                b.session, b.model)),
            400);
  x = rig_post(&b.rig, "weights_info",
               "{\"tinker_path\":\"tinker://%s/external_weights/e\"}", b.model);
  CHECK_INT(x->status, 200);
  CHECK_INT(json_integer_value(json_object_get(x->json, "lora_rank")), 4);
  CHECK(json_is_true(json_object_get(x->json, "train_mlp")));
  rig_free(x);
  x = rig_get(&b.rig, "checkpoints");
  CHECK_STR(json_string_value(json_object_get(
                json_array_get(json_object_get(x->json, "checkpoints"), 0),
                "checkpoint_type")),
            "external");
  rig_free(x);
  rig_close(&b.rig);
}

/* ---- Links ---- */

TEST(links_are_for_external_weights_that_are_there) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  bench_t b;
  exchange_t *x;

  bench_open(&b, options);
  save(&b, "");
  x = ask(&b, "external_weights/e");
  CHECK_INT(x->status, 200);
  CHECK_INT(json_object_size(json_object_get(x->json, "urls")), 2);
  CHECK_STR(rig_text(x, "expires"), "2027-01-15T08:15:00.000Z");
  rig_free(x);
  CHECK_INT(rig_status(ask(&b, "external_weights/other")), 404);
  CHECK_INT(rig_status(ask(&b, "weights/e")), 404);
  CHECK_INT(rig_status(ask(&b, "external_weights/..")), 400);
  rig_free(rig_done(&b.rig, rig_start(&b.rig, "save_weights",
                                      "{\"model_id\":\"%s\",\"seq_id\":4,"
                                      "\"path\":\"w\"}",
                                      b.model)));
  CHECK_INT(rig_status(ask(&b, "weights/w")), 400);
  rig_close(&b.rig);
}

TEST(a_link_is_good_for_a_while_and_without_a_key) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  char target[1024];
  char path[1024];
  bench_t b;

  options.link_life_s = 60;
  bench_open(&b, options);
  save(&b, "");
  link_of(&b, CONFIG, target);
  /* A page of the web may have it as well. */
  CHECK_INT(status_of(&b, "GET", target, "Origin: http://page\r\n"), 200);
  CHECK_INT(status_of(&b, "POST", target, ""), 405);
  now = START + 59999;
  CHECK_INT(status_of(&b, "GET", target, ""), 200);
  now = START + 60000;
  CHECK_INT(status_of(&b, "GET", target, ""), 403);
  link_of(&b, CONFIG, target);
  CHECK_INT(status_of(&b, "GET", target, ""), 200);
  snprintf(path, sizeof(path),
           "/api/v1/training_runs/%s/checkpoints/external_weights/e", b.model);
  CHECK_INT(rig_status(rig_send(&b.rig, "DELETE", path, NULL, "", 0)), 204);
  CHECK_INT(status_of(&b, "GET", target, ""), 404);
  rig_close(&b.rig);
}

/* Replace the first of something in a target. */
static void change(char out[1100], const char *target, const char *from,
                   const char *to) {
  const char *at = strstr(target, from);

  CHECK(at != NULL);
  snprintf(out, 1100, "%.*s%s%s", (int)(at - target), target, to,
           at + strlen(from));
}

TEST(a_link_that_was_changed_is_refused) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  static const struct {
    const char *from;
    const char *to;
  } changes[] = {
      {CONFIG, ADAPTER},
      {CONFIG, "meta.json"},
      {CONFIG, "..%2f" CONFIG},
      {"expires=1", "expires=2"},
      {"expires=", "expires=%"},
      {"expires=", "other="},
      {"signature=", "sig="},
      {"signature=", "signature=0"},
      {"?", "/?"},
      {"/files/", "/files//"},
  };
  char target[1024];
  char other[1100];
  bench_t b;
  size_t n;

  bench_open(&b, options);
  save(&b, "");
  link_of(&b, CONFIG, target);
  for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
    change(other, target, changes[i].from, changes[i].to);
    CHECK_INT(status_of(&b, "GET", other, ""), 403);
  }
  n = strlen(target);
  target[n - 1] = target[n - 1] == '0' ? '1' : '0';
  CHECK_INT(status_of(&b, "GET", target, ""), 403);
  CHECK_INT(status_of(&b, "GET", "/files/", ""), 403);
  rig_close(&b.rig);
}

/* Of a host that could not be one the server's own address is told. */
TEST(a_link_leads_to_where_the_server_was_reached) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  static const char *const hosts[] = {"h:80/evil", "h\"", "user@h", ""};
  char request[512];
  char own[64];
  bench_t b;
  exchange_t *x;

  bench_open(&b, options);
  save(&b, "");
  for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
    int n = snprintf(request, sizeof(request),
                     "GET /api/v1/training_runs/%s/checkpoints/"
                     "external_weights/e/external_weights_urls HTTP/1.1\r\n"
                     "Host: %s\r\nConnection: close\r\n\r\n",
                     b.model, hosts[i]);

    x = rig_raw(&b.rig, request, (size_t)n);
    x->is_raw = 1;
    while (!x->closed)
      uv_run(&b.rig.loop, UV_RUN_ONCE);
    snprintf(own, sizeof(own), "\"http://127.0.0.1:%d/files/",
             local_server_port(b.rig.server));
    CHECK(strstr(x->raw, own) != NULL);
    rig_free(x);
  }
  rig_close(&b.rig);
}

/* ---- Parts ---- */

typedef struct {
  const char *range;
  int status;
  int64_t first; /* below 0: from the end */
  int64_t n;     /* below 1: so many less than all */
} part_t;

static void check_part(const exchange_t *x, const part_t *part,
                       const char *whole, size_t size) {
  size_t first =
      part->first < 0 ? size + (size_t)part->first : (size_t)part->first;
  char text[160];
  char want[160] = "";
  const char *body;
  size_t n;

  CHECK_INT(x->status, part->status);
  body = body_of(x, &n);
  if (x->status == 416) {
    snprintf(want, sizeof(want), "bytes */%zu", size);
    CHECK_INT(n, 0);
  } else {
    CHECK_INT(n, part->n > 0 ? (size_t)part->n : size + (size_t)part->n);
    CHECK_INT(memcmp(body, whole + first, n), 0);
    if (x->status == 206)
      snprintf(want, sizeof(want), "bytes %zu-%zu/%zu", first, first + n - 1,
               size);
  }
  head_of(x, "Content-Range: ", text);
  CHECK_STR(text, want);
}

TEST(a_part_of_a_file_is_given) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  static const part_t parts[] = {
      {"bytes=0-9", 206, 0, 10},
      {"bytes=10-10", 206, 10, 1},
      {"bytes=-7", 206, -7, 7},
      {"bytes=5-", 206, 5, -5},
      {"bytes=0-999999999", 206, 0, 0},
      {"bytes=-999999999", 206, 0, 0},
      {"bytes=0-1,5-6", 200, 0, 0},
      {"bytes=9-2", 200, 0, 0},
      {"lines=0-9", 200, 0, 0},
      {"bytes=x", 200, 0, 0},
      {"bytes=999999999-", 416, 0, 0},
      {"bytes=-0", 416, 0, 0},
      {"bytes=99999999999999999999-", 416, 0, 0},
  };
  char target[1024];
  char lines[160];
  const char *whole;
  exchange_t *all;
  exchange_t *x;
  bench_t b;
  size_t size;

  bench_open(&b, options);
  save(&b, "");
  link_of(&b, ADAPTER, target);
  all = fetch(&b, "GET", target, "");
  CHECK_INT(all->status, 200);
  whole = body_of(all, &size);
  head_of(all, "Accept-Ranges: ", lines);
  CHECK_STR(lines, "bytes");
  for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
    snprintf(lines, sizeof(lines), "Range: %s\r\n", parts[i].range);
    x = fetch(&b, "GET", target, lines);
    check_part(x, &parts[i], whole, size);
    rig_free(x);
  }
  rig_free(all);
  rig_close(&b.rig);
}

TEST(a_part_is_given_of_the_same_file_only) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  char target[1024];
  char lines[320];
  char etag[160];
  char other[160];
  exchange_t *x;
  bench_t b;

  bench_open(&b, options);
  save(&b, "");
  link_of(&b, ADAPTER, target);
  x = fetch(&b, "HEAD", target, "");
  CHECK_INT(x->status, 200);
  head_of(x, "ETag: ", etag);
  head_of(x, "Content-Length: ", other);
  CHECK(atoi(other) > 4000);
  rig_free(x);
  CHECK(etag[0] == '"');
  snprintf(lines, sizeof(lines), "Range: bytes=1-2\r\nIf-Range: %s\r\n", etag);
  CHECK_INT(status_of(&b, "GET", target, lines), 206);
  snprintf(lines, sizeof(lines), "If-Match: \"a\", %s\r\n", etag);
  CHECK_INT(status_of(&b, "GET", target, lines), 200);
  rig_free(rig_done(&b.rig, rig_step(&b.rig, b.model, 4, 0.05)));
  rig_free(rig_done(&b.rig, rig_start(&b.rig, "save_weights_external",
                                      "{\"model_id\":\"%s\",\"seq_id\":5,"
                                      "\"path\":\"e\",\"overwrite\":true}",
                                      b.model)));
  x = fetch(&b, "HEAD", target, "");
  head_of(x, "ETag: ", other);
  CHECK(strcmp(etag, other) != 0);
  rig_free(x);
  snprintf(lines, sizeof(lines), "Range: bytes=1-2\r\nIf-Range: %s\r\n", etag);
  CHECK_INT(status_of(&b, "GET", target, lines), 200);
  snprintf(lines, sizeof(lines), "If-Match: %s\r\n", etag);
  CHECK_INT(status_of(&b, "GET", target, lines), 412);
  rig_close(&b.rig);
}

/* ---- As the official command does it ---- */

/* A training checkpoint is loaded into a session of the command's own, saved
 * for others, fetched, and deleted. */
TEST(a_training_checkpoint_comes_by_a_temporary_export) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  char session[96];
  char model[96];
  char path[256];
  char target[1024];
  bench_t b;
  exchange_t *x;

  bench_open(&b, options);
  rig_free(rig_done(&b.rig, rig_start(&b.rig, "save_weights",
                                      "{\"model_id\":\"%s\",\"seq_id\":1,"
                                      "\"path\":\"w\"}",
                                      b.model)));
  rig_session(&b.rig, session);
  x = rig_done(
      &b.rig,
      rig_start(&b.rig, "load_weights",
                "{\"session_id\":\"%s\",\"model_seq_id\":0,\"user_metadata\":"
                "{\"created_by\":\"tinker checkpoint download\"},"
                "\"path\":\"tinker://%s/weights/w\",\"optimizer\":false,"
                "\"type\":\"load_weights\"}",
                session, b.model));
  snprintf(model, sizeof(model), "%s", rig_text(x, "model_id"));
  rig_free(x);
  CHECK_INT(
      rig_status(rig_post(&b.rig, "get_info", "{\"model_id\":\"%s\"}", model)),
      200);
  rig_free(rig_done(&b.rig, rig_start(&b.rig, "save_weights_external",
                                      "{\"model_id\":\"%s\",\"path\":"
                                      "\"download\",\"seq_id\":1,"
                                      "\"ttl_seconds\":3600,\"type\":"
                                      "\"save_weights_external\"}",
                                      model)));
  snprintf(path, sizeof(path),
           "/api/v1/training_runs/%s/checkpoints/external_weights/download",
           model);
  snprintf(target, sizeof(target), "%s/ttl", path);
  CHECK_INT(rig_status(rig_send(&b.rig, "PUT", target, NULL,
                                "{\"ttl_seconds\":3600}", 20)),
            200);
  snprintf(target, sizeof(target), "sessions/%s/finish", session);
  CHECK_INT(rig_status(rig_post(&b.rig, target,
                                "{\"reason\":{\"type\":\"success\"}}")),
            200);
  /* The files outlive the session, until they are deleted or their time is
   * over. */
  snprintf(target, sizeof(target), "%s/external_weights_urls", path + 8);
  CHECK_INT(rig_status(rig_get(&b.rig, target)), 200);
  CHECK_INT(rig_status(rig_send(&b.rig, "DELETE", path, NULL, "", 0)), 204);
  CHECK_INT(rig_status(rig_get(&b.rig, target)), 404);
  rig_close(&b.rig);
}

TEST(what_is_exported_for_a_while_expires_by_itself) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  char target[1024];
  bench_t b;
  exchange_t *x;

  bench_open(&b, options);
  save(&b, ",\"ttl_seconds\":3600");
  now = START + 3599999;
  link_of(&b, CONFIG, target);
  CHECK_INT(status_of(&b, "GET", target, ""), 200);
  now = START + 3600000;
  CHECK_INT(status_of(&b, "GET", target, ""), 404);
  x = rig_get(&b.rig, "checkpoints");
  CHECK_INT(json_array_size(json_object_get(x->json, "checkpoints")), 0);
  rig_free(x);
  rig_close(&b.rig);
}

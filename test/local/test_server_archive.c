/* SPDX-License-Identifier: MIT */
#include "lib/files/age/age.h"
#include "lib/files/age/crypto.h"
#include "links.h"
#include "tools/local/lm/lm.h"

/* The archive of older clients, and external weights that are encrypted. */

static exchange_t *archive_of(bench_t *b, const char *kind_and_name) {
  char path[256];

  snprintf(path, sizeof(path),
           "/api/v1/training_runs/%s/checkpoints/%s/archive", b->model,
           kind_and_name);
  return fetch(b, "GET", path, "Accept: application/json\r\n");
}

static void save_state(bench_t *b, const char *what, int seq) {
  rig_free(rig_done(&b->rig, rig_start(&b->rig, what,
                                       "{\"model_id\":\"%s\",\"seq_id\":%d,"
                                       "\"path\":\"s\"}",
                                       b->model, seq)));
}

/* ---- Reading a tar ---- */

static uint64_t octal(const char *field) {
  return strtoull(field, NULL, 8);
}

/* The member with this name; NULL: there is none. Checks all heads up to it. */
static const char *member(const char *tar, size_t n, const char *name,
                          size_t *size) {
  size_t at = 0;

  CHECK_INT(n % 512, 0);
  while (at + 512 <= n && tar[at] != '\0') {
    unsigned sum = 0;

    for (size_t i = 0; i < 512; i++)
      sum += i >= 148 && i < 156 ? ' ' : (unsigned char)tar[at + i];
    CHECK_INT(octal(tar + at + 148), sum);
    CHECK_MEM(tar + at + 257, 5, "ustar", 5);
    CHECK_INT(tar[at + 156], '0');
    *size = (size_t)octal(tar + at + 124);
    if (strcmp(tar + at, name) == 0)
      return tar + at + 512;
    at += 512 + (*size + 511) / 512 * 512;
  }
  CHECK_INT(n - at, 1024);
  return NULL;
}

static void check_archive(const char *tar, size_t n) {
  const char *data;
  json_t *config;
  size_t size;

  data = member(tar, n, CONFIG, &size);
  CHECK(data != NULL);
  config = json_loadb(data, size, 0, NULL);
  CHECK_STR(json_string_value(json_object_get(config, "peft_type")), "LORA");
  CHECK(json_object_get(config, "tnk") == NULL);
  json_decref(config);
  CHECK(member(tar, n, ADAPTER, &size) != NULL);
  CHECK(size > 4000);
  CHECK(member(tar, n, "checkpoint_complete", &size) != NULL);
  CHECK_INT(size, 0);
  CHECK(member(tar, n, "optimizer.safetensors", &size) == NULL);
  CHECK(member(tar, n, "meta.json", &size) == NULL);
}

TEST(N7_an_archive_of_any_kind_is_redirected_to) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  static const char *const kinds[] = {"weights/s", "sampler_weights/s",
                                      "external_weights/e"};
  char location[1024];
  char date[160];
  char etag[160];
  char lines[256];
  const char *body;
  exchange_t *x;
  bench_t b;
  size_t n;

  bench_open(&b, options);
  save(&b, "");
  save_state(&b, "save_weights", 4);
  save_state(&b, "save_weights_for_sampler", 5);
  for (size_t i = 0; i < 3; i++) {
    const char *at;

    x = archive_of(&b, kinds[i]);
    CHECK_INT(x->status, 302);
    head_of(x, "Expires: ", date);
    CHECK_STR(date, "Fri, 15 Jan 2027 08:15:00 GMT");
    at = strstr(x->raw, "Location: http://x/files/");
    CHECK(at != NULL);
    snprintf(location, sizeof(location), "%.*s", (int)strcspn(at + 18, "\r"),
             at + 18);
    rig_free(x);
    x = fetch(&b, "GET", location, "");
    CHECK_INT(x->status, 200);
    body = body_of(x, &n);
    check_archive(body, n);
    head_of(x, "ETag: ", etag);
    rig_free(x);
    snprintf(lines, sizeof(lines), "Range: bytes=257-261\r\nIf-Range: %s\r\n",
             etag);
    x = fetch(&b, "GET", location, lines);
    CHECK_INT(x->status, 206);
    body = body_of(x, &n);
    CHECK_MEM(body, n, "ustar", 5);
    rig_free(x);
  }
  x = archive_of(&b, "weights/none");
  CHECK_INT(x->status, 404);
  rig_free(x);
  rig_close(&b.rig);
}

TEST(N7_an_archive_is_told_in_json_or_not_offered) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  const char *body;
  json_t *json;
  exchange_t *x;
  bench_t b;
  size_t n;

  options.archive = LOCAL_ARCHIVE_JSON;
  bench_open(&b, options);
  save_state(&b, "save_weights", 1);
  x = archive_of(&b, "weights/s");
  CHECK_INT(x->status, 200);
  body = body_of(x, &n);
  json = json_loadb(body, n, 0, NULL);
  body = json_string_value(json_object_get(json, "url"));
  CHECK(body != NULL && strncmp(body, "http://x/files/", 15) == 0);
  CHECK_INT(status_of(&b, "GET", body + 8, ""), 200);
  CHECK_STR(json_string_value(json_object_get(json, "expires")),
            "2027-01-15T08:15:00.000Z");
  json_decref(json);
  rig_free(x);
  rig_close(&b.rig);
  options.archive = LOCAL_ARCHIVE_NONE;
  bench_open(&b, options);
  save_state(&b, "save_weights", 1);
  x = archive_of(&b, "weights/s");
  CHECK_INT(x->status, 404);
  rig_free(x);
  rig_close(&b.rig);
}

TEST(N7_an_archive_may_still_be_in_the_making) {
  local_options_t options = LOCAL_OPTIONS_INIT;
  exchange_t *x;
  bench_t b;

  options.faults = local_faults_new(test_allocator());
  CHECK(options.faults != NULL);
  bench_open(&b, options);
  save_state(&b, "save_weights", 1);
  CHECK_INT(local_faults_set(options.faults, "503/archive@1-2", NULL, 0),
            TNK_OK);
  for (int i = 0; i < 3; i++) {
    x = archive_of(&b, "weights/s");
    CHECK_INT(x->status, i < 2 ? 503 : 302);
    rig_free(x);
  }
  rig_close(&b.rig);
  local_faults_free(options.faults);
}

/* ---- Encrypted ---- */

/* A pair of keys of age's own documentation. */
#define IDENTITY                                                               \
  "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
#define RECIPIENT                                                              \
  "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"

static int no_secret(void *user, unsigned char *out, size_t n) {
  (void)user;
  memset(out, 5, n);
  return 0;
}

static void open_sealed(const char *data, size_t n, tnk__buf_t *out) {
  uint8_t identity[TNK__AGE_KEY];
  tnk__age_open_t age;

  CHECK(tnk__age_identity_read(identity, IDENTITY) == NULL);
  tnk__buf_init(out, test_allocator(), 1 << 24);
  tnk__age_open_init(&age, test_allocator(), no_secret, NULL);
  CHECK_INT(tnk__age_open_add(&age, identity), TNK_OK);
  CHECK_INT(tnk__age_open_feed(&age, out, data, n), TNK_OK);
  CHECK_INT(tnk__age_open_finish(&age, out), TNK_OK);
  tnk__age_open_deinit(&age);
}

TEST(external_weights_are_encrypted_for_those_who_may_read_them) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  static const char *const files[] = {CONFIG, ADAPTER};
  char target[1024];
  char name[64];
  const char *body;
  tnk__buf_t plain;
  exchange_t *open;
  exchange_t *x;
  bench_t b;
  size_t n;

  bench_open(&b, options);
  save(&b, "");
  rig_free(rig_done(&b.rig, rig_start(&b.rig, "save_weights_external",
                                      "{\"model_id\":\"%s\",\"seq_id\":4,"
                                      "\"path\":\"sealed\","
                                      "\"age_encryption_recipients\":[\"%s\"]}",
                                      b.model, RECIPIENT)));
  for (size_t i = 0; i < 2; i++) {
    link_of(&b, files[i], target);
    open = fetch(&b, "GET", target, "");
    x = ask(&b, "external_weights/sealed");
    CHECK_INT(json_object_size(json_object_get(x->json, "urls")), 2);
    snprintf(name, sizeof(name), "%s.age", files[i]);
    body = json_string_value(
        json_object_get(json_object_get(x->json, "urls"), name));
    CHECK(body != NULL);
    snprintf(target, sizeof(target), "%s", body + 8);
    rig_free(x);
    x = fetch(&b, "GET", target, "");
    CHECK_INT(x->status, 200);
    body = body_of(x, &n);
    open_sealed(body, n, &plain);
    body = body_of(open, &n);
    CHECK_MEM(plain.data, plain.len, body, n);
    tnk__buf_deinit(&plain);
    rig_free(x);
    rig_free(open);
  }
  rig_close(&b.rig);
}

TEST(recipients_that_cannot_be_served_are_refused) {
  static const local_options_t options = LOCAL_OPTIONS_INIT;
  static const struct {
    const char *list;
    int status;
    const char *words;
  } rows[] = {
      {"[\"age1x\"]", 400, "the recipient"},
      {"[\"ssh-ed25519 AAAA x\"]", 400, "is a key of SSH"},
      {"[\"" IDENTITY "\"]", 400, "recipients: one is a secret key, which"},
      {"[\"" RECIPIENT "\",7]", 422, "valid string"},
      {"\"" RECIPIENT "\"", 422, "a list"},
      {"[\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\",\"a\"]",
       422, "at most 10"},
  };
  bench_t b;
  exchange_t *x;

  bench_open(&b, options);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    x = rig_post(&b.rig, "save_weights_external",
                 "{\"model_id\":\"%s\",\"seq_id\":1,\"path\":\"e\","
                 "\"age_encryption_recipients\":%s}",
                 b.model, rows[i].list);
    CHECK_INT(x->status, rows[i].status);
    if (strstr(x->body, rows[i].words) == NULL)
      test_fail(__FILE__, __LINE__, "%s", x->body);
    rig_free(x);
  }
  x = ask(&b, "external_weights/e");
  CHECK_INT(x->status, 404);
  rig_free(x);
  rig_close(&b.rig);
}

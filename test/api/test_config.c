/* SPDX-License-Identifier: MIT */
#include "lib/api/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "lib/base/alloc.h"
#include "support/test.h"
#include "tnk/tnk.h"

#define KEY "tml-canary"
/* {"exp":2000000000} */
#define JWT "eyJhIjoxfQ.eyJleHAiOjIwMDAwMDAwMDB9.x"

static tnk__config_t config;
static const char *text;

/* No variable of the machine may reach a case. */
static void clear_environment(void) {
  static const char *const names[] = {"TINKER_API_KEY",
                                      "TINKER_BASE_URL",
                                      "TINKER_PROJECT_ID",
                                      "TINKER_TAGS",
                                      "CLOUDFLARE_ACCESS_CLIENT_ID",
                                      "CLOUDFLARE_ACCESS_CLIENT_SECRET",
                                      "TNK_CERT_FILE",
                                      "TNK_KEY_FILE",
                                      "TNK_HTTP_VERSION",
                                      "HOME"};
  size_t i;

  for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    unsetenv(names[i]);
}

static int load(const tnk_service_options_t *options) {
  const tnk_service_options_t empty = TNK_SERVICE_OPTIONS_INIT;

  text = "";
  return tnk__config_load(&config, test_allocator(),
                          options != NULL ? options : &empty, 1000, &text);
}

TEST(config_defaults) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  clear_environment();
  options.api_key = KEY;
  CHECK_INT(load(&options), TNK_OK);
  CHECK_STR(config.options.base_url,
            "https://tinker.thinkingmachines.dev/services/tinker-prod");
  CHECK_STR(config.api_key, KEY);
  CHECK(config.options.api_key == NULL);
  CHECK(config.options.project_id == NULL);
  CHECK_INT(config.options.timeout_ms, 60000);
  CHECK_INT(config.options.connect_timeout_ms, 5000);
  CHECK_INT(config.options.poll_timeout_ms, 45000);
  CHECK_INT(config.options.max_retries, 10);
  CHECK_INT(config.options.max_polls, 2048);
  CHECK_INT(config.n_tags, 0);
  tnk__config_deinit(&config);
}

/* An allocator that looks whether a secret is in what it is given back. */
static const char secret[] = "canary-of-a-header";
static int n_left;

static void *look_malloc(size_t size, void *user) {
  size_t *block = calloc(1, size + 2 * sizeof(size_t));

  (void)user;
  if (block == NULL)
    return NULL;
  block[0] = size;
  return block + 2;
}

static void *look_calloc(size_t n, size_t size, void *user) {
  return look_malloc(n * size, user);
}

static void look_free(void *ptr, void *user) {
  const char *at = ptr;

  (void)user;
  if (ptr == NULL)
    return;
  for (size_t i = 0; i + sizeof(secret) - 1 <= ((size_t *)ptr - 2)[0]; i++)
    n_left += memcmp(at + i, secret, sizeof(secret) - 1) == 0;
  free((size_t *)ptr - 2);
}

static void *look_realloc(void *ptr, size_t size, void *user) {
  void *to = look_malloc(size, user);
  const size_t n = ptr != NULL ? ((size_t *)ptr - 2)[0] : 0;

  if (to != NULL && n > 0)
    memcpy(to, ptr, n < size ? n : size);
  if (to != NULL)
    look_free(ptr, user);
  return to;
}

TEST(P10_headers_do_not_stay_in_memory_that_was_given_back) {
  const tnk_allocator_t look = {look_malloc, look_calloc, look_realloc,
                                look_free, NULL};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  const tnk_pair_t mine = {"X-Mine", secret};

  clear_environment();
  setenv("CLOUDFLARE_ACCESS_CLIENT_ID", "id", 1);
  setenv("CLOUDFLARE_ACCESS_CLIENT_SECRET", secret, 1);
  options.api_key = KEY;
  options.headers = &mine;
  options.n_headers = 1;
  CHECK_INT(tnk__config_load(&config, &look, &options, 1000, &text), TNK_OK);
  CHECK_INT(config.n_headers, 3);
  tnk__config_deinit(&config);
  CHECK_INT(n_left, 0);
  options.project_id = "\xff";
  CHECK_INT(tnk__config_load(&config, &look, &options, 1000, &text),
            TNK_EINVAL);
  CHECK_INT(n_left, 0);
}

TEST(config_option_wins_over_environment_and_empty_is_unset) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  clear_environment();
  setenv("TINKER_API_KEY", "tml-environment", 1);
  setenv("TINKER_BASE_URL", "http://environment", 1);
  setenv("TINKER_PROJECT_ID", "p1", 1);
  options.base_url = "http://option";
  options.api_key = "";
  CHECK_INT(load(&options), TNK_OK);
  CHECK_STR(config.options.base_url, "http://option");
  CHECK_STR(config.api_key, "tml-environment");
  CHECK_STR(config.options.project_id, "p1");
  tnk__config_deinit(&config);
  setenv("TINKER_BASE_URL", "", 1);
  CHECK_INT(load(NULL), TNK_OK);
  CHECK(strstr(config.options.base_url, "tinker-prod") != NULL);
  tnk__config_deinit(&config);
}

TEST(A3_base_url_is_kept_in_its_normal_form) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  clear_environment();
  options.api_key = KEY;
  options.base_url = "HTTP://Option:80/svc//";
  CHECK_INT(load(&options), TNK_OK);
  CHECK_STR(config.options.base_url, "http://option/svc");
  tnk__config_deinit(&config);
}

TEST(A21_bad_base_url_is_refused_with_the_reason) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  clear_environment();
  options.api_key = KEY;
  options.base_url = "http://me:secret@option";
  CHECK_INT(load(&options), TNK_EINVAL);
  CHECK_STR(text, "the base URL holds a user name or password");
  options.base_url = "ftp://option";
  CHECK_INT(load(&options), TNK_EINVAL);
  CHECK_STR(text, "the base URL does not begin with http:// or https://: "
                  "base_url is \"ftp://option\"");
  setenv("TINKER_BASE_URL", "localhost:8000", 1);
  options.base_url = NULL;
  CHECK_INT(load(&options), TNK_EINVAL);
  CHECK(strstr(text, "TINKER_BASE_URL is \"localhost:8000\"") != NULL);
}

TEST(P10_a_key_in_the_place_of_the_base_url_is_not_shown) {
  static const char *const texts[] = {KEY, "x" KEY,
                                      "tml-another-key-0123456789"};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  clear_environment();
  options.api_key = KEY;
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
    setenv("TINKER_BASE_URL", texts[i], 1);
    CHECK_INT(load(&options), TNK_EINVAL);
    CHECK(strstr(text, "key") == NULL && strstr(text, KEY) == NULL);
  }
}

static void check_identity(const char *cert, const char *key,
                           const char *expected_cert,
                           const char *expected_key) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  options.api_key = KEY;
  options.cert_file = cert;
  options.key_file = key;
  CHECK_INT(load(&options), TNK_OK);
  CHECK_STR(config.options.cert_file, expected_cert);
  CHECK_STR(config.options.key_file, expected_key);
  tnk__config_deinit(&config);
}

TEST(config_key_is_in_the_file_of_the_certificate_unless_it_is_named) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  clear_environment();
  check_identity(NULL, NULL, NULL, NULL);
  check_identity("a", NULL, "a", "a");
  check_identity("a", "b", "a", "b");
  setenv("TNK_CERT_FILE", "c", 1);
  check_identity(NULL, NULL, "c", "c");
  setenv("TNK_KEY_FILE", "d", 1);
  check_identity(NULL, NULL, "c", "d");
  check_identity("a", NULL, "a", "a");
  check_identity(NULL, "b", "c", "b");
  unsetenv("TNK_CERT_FILE");
  options.api_key = KEY;
  CHECK_INT(load(&options), TNK_EINVAL);
  CHECK_STR(
      text,
      "key_file or TNK_KEY_FILE is set without cert_file or TNK_CERT_FILE");
}

/* What is wrong with them is known when the service is opened. */
TEST(a_service_names_the_certificate_that_it_cannot_use) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_service_t *service;
  char why[200];
  uv_loop_t loop;

  clear_environment();
  options.api_key = KEY;
  setenv("TNK_CERT_FILE", "/nowhere/own.pem", 1);
  CHECK_INT(uv_loop_init(&loop), 0);
  CHECK_INT(tnk_service_open(&service, &loop, &options, why, sizeof(why)),
            TNK_EFILE);
  CHECK_STR(why, "the client's certificate cannot be used: /nowhere/own.pem: "
                 "it cannot be read as certificates");
  uv_run(&loop, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&loop), 0);
}

/* The option counts more than the variable. */
TEST(the_version_of_http_is_an_option_or_a_variable) {
  static const struct {
    const char *variable;
    tnk_http_version_t option;
    tnk_http_version_t version;
    const char *why;
  } rows[] = {
    {NULL, TNK_HTTP_AUTO, TNK_HTTP_AUTO, NULL},
    {"", TNK_HTTP_AUTO, TNK_HTTP_AUTO, NULL},
    {"auto", TNK_HTTP_AUTO, TNK_HTTP_AUTO, NULL},
    {"1.1", TNK_HTTP_AUTO, TNK_HTTP_1_1, NULL},
    {"1.1x", TNK_HTTP_1_1, TNK_HTTP_1_1, NULL},
#if TNK__HAS_HTTP2
    {"2", TNK_HTTP_AUTO, TNK_HTTP_2, NULL},
    {"2", TNK_HTTP_1_1, TNK_HTTP_1_1, NULL},
    {"2-prior-knowledge", TNK_HTTP_AUTO, TNK_HTTP_2_PRIOR_KNOWLEDGE, NULL},
    {NULL, TNK_HTTP_2, TNK_HTTP_2, NULL},
#else
    {"2", TNK_HTTP_AUTO, TNK_HTTP_AUTO,
     "HTTP/2 was requested, but this library was built without nghttp2"},
#endif
    {"h2", TNK_HTTP_AUTO, TNK_HTTP_AUTO,
     "TNK_HTTP_VERSION is not one of auto, 1.1, 2, 2-prior-knowledge"},
    {NULL, (tnk_http_version_t)4, TNK_HTTP_AUTO,
     "http_version is not a value of tnk_http_version_t"},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
    clear_environment();
    options.api_key = KEY;
    options.http_version = rows[i].option;
    if (rows[i].variable != NULL)
      setenv("TNK_HTTP_VERSION", rows[i].variable, 1);
    CHECK_INT(load(&options), rows[i].why == NULL ? TNK_OK : TNK_EINVAL);
    if (rows[i].why != NULL) {
      CHECK_STR(text, rows[i].why);
      continue;
    }
    CHECK_INT(config.options.http_version, rows[i].version);
    tnk__config_deinit(&config);
  }
}

TEST(config_tags_are_trimmed_and_unique) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  clear_environment();
  options.api_key = KEY;
  options.tags = " a ,b,,a,\tc d ,";
  CHECK_INT(load(&options), TNK_OK);
  CHECK_INT(config.n_tags, 3);
  CHECK_STR(config.tags[0], "a");
  CHECK_STR(config.tags[1], "b");
  CHECK_STR(config.tags[2], "c d");
  tnk__config_deinit(&config);
}

TEST(config_headers_of_the_caller_come_last) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_pair_t mine = {"X-Mine", "1"};

  clear_environment();
  setenv("CLOUDFLARE_ACCESS_CLIENT_ID", "id", 1);
  options.api_key = KEY;
  options.headers = &mine;
  options.n_headers = 1;
  CHECK_INT(load(&options), TNK_OK);
  CHECK_INT(config.n_headers, 2);
  CHECK_STR(config.headers[0].name, "CF-Access-Client-Id");
  CHECK_STR(config.headers[1].value, "1");
  tnk__config_deinit(&config);
}

static void refused(const tnk_service_options_t *options, const char *why) {
  CHECK_INT(load(options), TNK_EINVAL);
  CHECK_STR(text, why);
}

TEST(config_names_the_pair_that_cannot_be_sent) {
  tnk_pair_t pair[2] = {{"X-A", "1"}, {"X-B", "2"}};
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  clear_environment();
  options.api_key = KEY;
  options.n_headers = 1;
  refused(&options, "headers is missing, and n_headers is 1");
  options.headers = pair;
  options.n_headers = 2;
  pair[1].name = NULL;
  refused(&options, "headers 1: its name is not a valid header name");
  pair[1].name = "X B";
  refused(&options, "headers 1: its name is not a valid header name");
  pair[1].name = "content-length";
  refused(&options, "headers 1: content-length is set by the library");
  pair[1].name = "X-B";
  pair[1].value = NULL;
  refused(&options, "headers 1: the value of X-B cannot be sent");
  pair[1].value = "a\r\nX-C: 1";
  refused(&options, "headers 1: the value of X-B cannot be sent");
  options.n_headers = 0;
  options.n_user_metadata = 1;
  refused(&options, "user_metadata is missing, and n_user_metadata is 1");
  options.user_metadata = pair;
  pair[0].value = NULL;
  refused(&options, "user_metadata 0: its value is missing");
  options.n_user_metadata = 0;
  options.display_name = "\xff";
  refused(&options, "display_name is not valid UTF-8");
}

TEST(P9_config_refuses_a_trace_context_that_is_none) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  clear_environment();
  options.api_key = KEY;
  options.traceparent = "00-1-2-3";
  refused(&options, "traceparent is not 00-<32 digits>-<16 digits>-<2 digits>, "
                    "in lowercase hexadecimal, with ids that are not 0");
}

/* What comes from the environment is looked at when the service opens, not when
 * the first request cannot be written. */
TEST(A4_config_refuses_variables_that_cannot_be_sent) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  clear_environment();
  options.api_key = KEY;
  setenv("CLOUDFLARE_ACCESS_CLIENT_SECRET", "a\r\nX-Evil: b", 1);
  refused(&options,
          "headers 0: the value of CF-Access-Client-Secret cannot be sent");
  clear_environment();
  setenv("TINKER_PROJECT_ID", "\xff\xfe", 1);
  refused(&options, "project_id is not valid UTF-8");
  clear_environment();
  options.project_id = "\xff";
  refused(&options, "project_id is not valid UTF-8");
  options.project_id = NULL;
  setenv("TINKER_TAGS", "good,\xff", 1);
  refused(&options, "a tag is not valid UTF-8");
  clear_environment();
}

TEST(config_refuses_keys_without_naming_them) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  static const char *const bad[] = {"secret-canary", "tml-a\r\nX: y",
                                    "eyJnotajwt", "eyJ.eyJ.x"};
  size_t i;

  clear_environment();
  CHECK_INT(load(NULL), TNK_ECREDENTIAL);
  CHECK(strstr(text, "TINKER_API_KEY") != NULL);
  for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    options.api_key = bad[i];
    CHECK_INT(load(&options), TNK_ECREDENTIAL);
    CHECK(text[0] != '\0' && strstr(text, bad[i]) == NULL);
  }
}

TEST(config_jwt_key_has_an_expiry) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  clear_environment();
  options.api_key = JWT;
  CHECK_INT(load(&options), TNK_OK);
  CHECK_INT(config.key_expires_s, 2000000000);
  tnk__config_deinit(&config);
  CHECK_INT(
      tnk__config_load(&config, test_allocator(), &options, 2000000001, &text),
      TNK_ECREDENTIAL);
  CHECK(strstr(text, "expired") != NULL);
}

TEST(config_refuses_unknown_newer_options) {
  struct {
    tnk_service_options_t known;
    uint64_t newer;
  } options = {.known = TNK_SERVICE_OPTIONS_INIT, .newer = 1};
  tnk_service_t *service;
  uv_loop_t loop;
  char why[128];

  clear_environment();
  CHECK_INT(uv_loop_init(&loop), 0);
  options.known.size = sizeof(options);
  options.known.api_key = KEY;
  CHECK_INT(tnk_service_open(&service, &loop, &options.known, why, sizeof(why)),
            TNK_ENOTSUP);
  CHECK(service == NULL);
  CHECK(strstr(why, "does not know") != NULL);
  CHECK_INT(uv_loop_close(&loop), 0);
}

TEST(config_survives_lack_of_memory_at_every_point) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  tnk_pair_t pair = {"a", "b"};
  long n;

  clear_environment();
  options.api_key = JWT;
  options.tags = "x,y";
  options.user_metadata = &pair;
  options.n_user_metadata = 1;
  for (n = 0;; n++) {
    test_alloc_fail_at(n);
    if (load(&options) == TNK_OK)
      break;
    CHECK(test_alloc_did_fail());
  }
  test_alloc_fail_at(-1);
  CHECK(n > 2);
  tnk__config_deinit(&config);
}

/* ---- Stored keys ---- */

static char home[] = "/tmp/tnk-home-XXXXXX";
static char stored[64];

static void make_home(void) {
  char path[64];

  clear_environment();
  memcpy(home + sizeof(home) - 7, "XXXXXX", 6);
  CHECK(mkdtemp(home) != NULL);
  setenv("HOME", home, 1);
  snprintf(path, sizeof(path), "%s/.tinker", home);
  CHECK_INT(mkdir(path, 0700), 0);
  snprintf(stored, sizeof(stored), "%s/.tinker/credentials.json", home);
}

static void store(const char *file_text) {
  FILE *file = fopen(stored, "w");

  CHECK(file != NULL);
  fputs(file_text, file);
  fclose(file);
}

static void remove_home(void) {
  char path[64];

  unlink(stored);
  snprintf(path, sizeof(path), "%s/.tinker", home);
  rmdir(path);
  rmdir(home);
}

#define STORED(more)                                                           \
  "{\"default\":\"1\",\"keys\":{\"1\":{\"type\":\"manual\",\"key\":"           \
  "\"tml-stored\",\"name\":\"n\"" more "}}}"

TEST(P1_5_the_stored_key_is_the_last_source) {
  tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;

  make_home();
  CHECK_INT(load(NULL), TNK_ECREDENTIAL);
  CHECK_STR(text, "no API key: set api_key or TINKER_API_KEY, or store one "
                  "with tnk auth login");
  store(STORED(""));
  CHECK_INT(load(NULL), TNK_OK);
  CHECK_STR(config.api_key, "tml-stored");
  tnk__config_deinit(&config);
  options.credential_cmd = "echo tml-printed";
  CHECK_INT(load(&options), TNK_OK);
  CHECK(config.api_key == NULL);
  tnk__config_deinit(&config);
  setenv("TINKER_API_KEY", "tml-environment", 1);
  CHECK_INT(load(NULL), TNK_OK);
  CHECK_STR(config.api_key, "tml-environment");
  tnk__config_deinit(&config);
  /* A key that is none is not replaced by a stored one. */
  setenv("TINKER_API_KEY", "wrong", 1);
  CHECK_INT(load(NULL), TNK_ECREDENTIAL);
  unsetenv("TINKER_API_KEY");
  store("{\"default\":\"1\",\"keys\":{\"1\":{\"type\":\"manual\",\"key\":"
        "\"wrong\",\"name\":\"n\"}}}");
  CHECK_INT(load(NULL), TNK_ECREDENTIAL);
  CHECK(strstr(text, "must start with tml-") != NULL);
  remove_home();
}

TEST(P11_10_a_stored_key_stays_with_its_server) {
  make_home();
  store(STORED(",\"base_url\":\"https://a/svc\""));
  setenv("TINKER_BASE_URL", "HTTPS://A:443/svc/", 1);
  CHECK_INT(load(NULL), TNK_OK);
  CHECK_STR(config.api_key, "tml-stored");
  tnk__config_deinit(&config);
  setenv("TINKER_BASE_URL", "https://b", 1);
  CHECK_INT(load(NULL), TNK_ECREDENTIAL);
  CHECK_STR(text, "no API key for https://b: that of "
                  "~/.tinker/credentials.json is for https://a/svc");
  /* One that names no server goes anywhere, but not in clear text. */
  store(STORED(""));
  CHECK_INT(load(NULL), TNK_OK);
  tnk__config_deinit(&config);
  setenv("TINKER_BASE_URL", "http://127.0.0.1:8000", 1);
  CHECK_INT(load(NULL), TNK_OK);
  tnk__config_deinit(&config);
  setenv("TINKER_BASE_URL", "http://b", 1);
  CHECK_INT(load(NULL), TNK_ECREDENTIAL);
  CHECK(strstr(text, "not sent to http://b, without TLS") != NULL);
  setenv("TINKER_BASE_URL", "http://b/tml-canary", 1);
  CHECK_INT(load(NULL), TNK_ECREDENTIAL);
  CHECK(strstr(text, "canary") == NULL);
  remove_home();
}

TEST(P1_5_a_credentials_file_that_cannot_be_used_is_an_error) {
  make_home();
  store("{");
  CHECK_INT(load(NULL), TNK_ECREDENTIAL);
  CHECK_STR(text, "~/.tinker/credentials.json is no credentials file");
  unlink(stored);
  CHECK_INT(mkdir(stored, 0700), 0);
  CHECK_INT(load(NULL), TNK_ECREDENTIAL);
  CHECK(strstr(text, "cannot read ~/.tinker/credentials.json") != NULL);
  rmdir(stored);
  CHECK_INT(symlink(stored, stored), 0);
  CHECK_INT(load(NULL), TNK_ECREDENTIAL);
  CHECK(strstr(text, "cannot read ~/.tinker/credentials.json: ") != NULL);
  remove_home();
}

TEST(a_stored_key_needs_memory) {
  long n = 0;

  make_home();
  store(STORED(""));
  for (;; n++) {
    test_alloc_fail_at(n);
    if (load(NULL) == TNK_OK)
      break;
    CHECK(test_alloc_did_fail());
  }
  test_alloc_fail_at(-1);
  CHECK(n > 3);
  tnk__config_deinit(&config);
  remove_home();
}

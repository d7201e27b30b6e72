/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "lib/api/config.h"
#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/format/http_write.h"
#include "lines.h"
#include "tnk/error.h"

/* One variable a line, in this order; what is missing is unset. */
static const char *const variables[] = {"TINKER_API_KEY",
                                        "TINKER_BASE_URL",
                                        "TINKER_PROJECT_ID",
                                        "TINKER_TAGS",
                                        "CLOUDFLARE_ACCESS_CLIENT_ID",
                                        "CLOUDFLARE_ACCESS_CLIENT_SECRET"};
enum { N_VARIABLES = sizeof(variables) / sizeof(variables[0]) };

static void check_tags(const tnk__config_t *config) {
  for (size_t i = 0; i < config->n_tags; i++) {
    const char *tag = config->tags[i];

    FUZZ_CHECK(tag[0] != '\0' && strchr(tag, ',') == NULL);
    FUZZ_CHECK(strchr(" \t", tag[0]) == NULL);
    FUZZ_CHECK(strchr(" \t", tag[strlen(tag) - 1]) == NULL);
    for (size_t k = 0; k < i; k++)
      FUZZ_CHECK(strcmp(tag, config->tags[k]) != 0);
  }
}

/* Whatever the variables hold, a request has the lines that were meant. */
static void check_head(const tnk__config_t *config) {
  const tnk_pair_t key = {"X-API-Key", config->api_key};
  const tnk__http_head_t head = {.method = "GET",
                                 .target = "/",
                                 .host = config->url.host,
                                 .port = config->url.port,
                                 .headers = config->headers,
                                 .n_headers = config->n_headers,
                                 .more_headers = &key,
                                 .n_more_headers = 1};
  size_t n_lines = 0;
  const char *text;
  tnk__buf_t out;
  int err;

  tnk__buf_init(&out, config->alloc, TNK__MAX_REQUEST_HEAD);
  err = tnk__http_write_head(&out, &head);
  FUZZ_CHECK(err == TNK_OK || out.len == 0);
  text = tnk__buf_cstr(&out);
  FUZZ_CHECK(text != NULL && strlen(text) == out.len);
  for (; *text != '\0'; text++) {
    FUZZ_CHECK((*text == '\r') == (text[1] == '\n'));
    n_lines += *text == '\r';
  }
  /* Request line, Host, Accept-Encoding, Connection, the key, the end. */
  FUZZ_CHECK(n_lines == (err == TNK_OK ? 6 + config->n_headers : 0));
  tnk__buf_deinit(&out);
}

static void check_config(void) {
  const tnk_service_options_t options = TNK_SERVICE_OPTIONS_INIT;
  const char *why = NULL;
  const char *key = tnk__env(variables[0]);
  tnk__config_t config;
  int err = tnk__config_load(&config, tnk__allocator_default(), &options,
                             1700000000, &why);

  FUZZ_CHECK(err == TNK_OK || err == TNK_EINVAL || err == TNK_ECREDENTIAL ||
             err == TNK_ENOMEM);
  if (err != TNK_OK) {
    FUZZ_CHECK(why != NULL || err == TNK_ENOMEM);
    FUZZ_CHECK(why == NULL || key == NULL || strlen(key) < 8 ||
               strstr(why, key) == NULL);
    return;
  }
  FUZZ_CHECK(strcmp(config.api_key, key) == 0);
  FUZZ_CHECK(strcmp(config.options.base_url, config.url.text) == 0);
  FUZZ_CHECK(config.n_headers <= 2);
  check_tags(&config);
  check_head(&config);
  tnk__config_deinit(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_lines_t lines;

  setenv("HOME", "/dev/null/x", 1);
  fuzz_lines_open(&lines, data, size);
  for (int i = 0; i < N_VARIABLES; i++) {
    const char *line = fuzz_lines_next(&lines);

    if (line != NULL)
      setenv(variables[i], line, 1);
    else
      unsetenv(variables[i]);
  }
  fuzz_lines_close(&lines);
  check_config();
  return 0;
}

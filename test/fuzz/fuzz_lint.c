/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/base/input.h"
#include "tools/tnk/text/lint.h"
#include "lib/base/utf8.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* A file of training data, as tnk lint reads it. */
typedef struct {
  char *text;
  size_t n;
  int status;
  int64_t n_lines;
  int64_t n_wrong;
} lint_t;

static void run(lint_t *lint, const uint8_t *data, size_t size,
                const char *loss, int json) {
  const cli_lint_options_t options = {"f\\\"", loss, json};
  FILE *in = fmemopen((void *)(uintptr_t)data, size, "r");
  FILE *out = open_memstream(&lint->text, &lint->n);
  char why[512];

  FUZZ_CHECK(in != NULL && out != NULL);
  lint->status = cli_lint_stream(&options, in, out, why, sizeof(why));
  fclose(in);
  fclose(out);
  FUZZ_CHECK(lint->status == 0 || lint->status == 1);
}

static int64_t member(const json_t *json, const char *name) {
  int64_t value = -1;

  tnk__json_get_int(json, name, 0, INT32_MAX, &value);
  return value;
}

/* One document, which counts its findings. */
static void check_json(lint_t *lint, size_t n_max) {
  const json_t *findings, *finding;
  int64_t last = 0;
  json_t *json;
  size_t i;

  FUZZ_CHECK(tnk__json_parse_object(&json, lint->text, lint->n) == TNK_OK);
  findings = tnk__json_arr(json, "findings");
  FUZZ_CHECK(findings != NULL);
  for (i = 0; i < json_array_size(findings); i++) {
    finding = json_array_get(findings, i);
    FUZZ_CHECK(member(finding, "line") > last);
    FUZZ_CHECK(tnk__json_str(finding, "reason")[0] != '\0');
    last = member(finding, "line");
  }
  lint->n_lines = member(json, "examples");
  lint->n_wrong = member(json, "wrong");
  FUZZ_CHECK(lint->n_wrong == (int64_t)json_array_size(findings));
  FUZZ_CHECK(lint->status == (lint->n_wrong > 0));
  FUZZ_CHECK(lint->n_lines >= lint->n_wrong && last <= (int64_t)n_max);
  FUZZ_CHECK(lint->n_lines <= (int64_t)n_max);
  json_decref(json);
}

static int is_utf8(const char *text, size_t n) {
  size_t step;

  for (size_t i = 0; i < n; i += step) {
    step = tnk__utf8_char(text + i, n - i);
    if (step == 0)
      return 0;
  }
  return 1;
}

/* Bytes as a JSON text: always JSON, and the same when they are UTF-8. */
static void check_text(const uint8_t *data, size_t size) {
  char *text;
  size_t n;
  FILE *out = open_memstream(&text, &n);
  json_t *json;

  FUZZ_CHECK(out != NULL);
  cli_put_json_text(out, (const char *)data, size);
  fclose(out);
  json = json_loadb(text, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
  FUZZ_CHECK(json_is_string(json));
  if (is_utf8((const char *)data, size))
    FUZZ_CHECK(json_string_length(json) == size &&
               memcmp(json_string_value(json), data, size) == 0);
  json_decref(json);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t n_max = 1;
  lint_t json, text, loss;

  if (size == 0)
    return 0;
  for (size_t i = 0; i < size; i++)
    n_max += data[i] == '\n';
  run(&json, data, size, NULL, 1);
  check_json(&json, n_max);
  run(&text, data, size, NULL, 0);
  FUZZ_CHECK(text.status == json.status);
  run(&loss, data, size, "cross_entropy", 1);
  check_json(&loss, n_max);
  /* A loss makes the checks stricter, never laxer. */
  FUZZ_CHECK(loss.n_lines == json.n_lines && loss.n_wrong >= json.n_wrong);
  free(json.text);
  free(text.text);
  free(loss.text);
  check_text(data, size);
  return 0;
}

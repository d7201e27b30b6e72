/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_LOCAL_LINKS_H
#define TNK_TEST_LOCAL_LINKS_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "support/test.h"
#include "tnk/error.h"

/* A model whose adapter is saved for other programs, and requests for its files
 * whose answers are read with their heads. */

#define ADAPTER "adapter_model.safetensors"
#define CONFIG "adapter_config.json"
#define TEXT "hello hello hello"
#define START INT64_C(1800000000000)

/* Jobs look at it on their threads. */
static _Atomic int64_t now;

static inline int64_t fake_now(void *user) {
  (void)user;
  return now;
}

typedef struct {
  rig_t rig;
  char session[96];
  char model[96];
} bench_t;

static inline void bench_open(bench_t *b, local_options_t options) {
  now = START;
  options.now_ms = fake_now;
  rig_open(&b->rig, &options);
  rig_session(&b->rig, b->session);
  rig_model(&b->rig, b->session, b->model);
}

/* A step, so that the adapter does something, and the save with number 3. */
static inline void save(bench_t *b, const char *more) {
  exchange_t *x;

  rig_free(rig_done(&b->rig, rig_pass(&b->rig, b->model, 1, TEXT)));
  rig_free(rig_done(&b->rig, rig_step(&b->rig, b->model, 2, 0.05)));
  x = rig_done(&b->rig,
               rig_start(&b->rig, "save_weights_external",
                         "{\"model_id\":\"%s\",\"seq_id\":3,\"path\":\"e\"%s}",
                         b->model, more));
  CHECK(strstr(rig_text(x, "path"), "/external_weights/e") != NULL);
  CHECK(json_integer_value(json_object_get(x->json, "size_bytes")) > 4000);
  rig_free(x);
}

static inline exchange_t *ask(bench_t *b, const char *kind_and_name) {
  char path[256];

  snprintf(path, sizeof(path),
           "training_runs/%s/checkpoints/%s/external_weights_urls", b->model,
           kind_and_name);
  return rig_get(&b->rig, path);
}

/* The link to a file, without the server's address. */
static inline void link_of(bench_t *b, const char *file, char out[1024]) {
  exchange_t *x = ask(b, "external_weights/e");
  const char *url = json_string_value(
      json_object_get(json_object_get(x->json, "urls"), file));

  CHECK_INT(x->status, 200);
  if (url == NULL || strncmp(url, "http://x/", 9) != 0)
    test_fail(__FILE__, __LINE__, "%s", x->body);
  snprintf(out, 1024, "%s", url + 8);
  rig_free(x);
}

/* ---- Answers with their heads ---- */

static inline exchange_t *fetch(bench_t *b, const char *method,
                                const char *target, const char *lines) {
  char text[2048];
  int n = snprintf(text, sizeof(text),
                   "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n",
                   method, target, lines);
  exchange_t *x = rig_raw(&b->rig, text, (size_t)n);

  x->is_raw = 1;
  while (!x->closed)
    uv_run(&b->rig.loop, UV_RUN_ONCE);
  CHECK(x->raw != NULL);
  x->status = atoi(x->raw + 9);
  return x;
}

static inline const char *body_of(const exchange_t *x, size_t *n) {
  const char *body = strstr(x->raw, "\r\n\r\n");

  CHECK(body != NULL);
  body += 4;
  *n = x->n_raw - (size_t)(body - x->raw);
  return body;
}

/* A line of the head; "" without it. */
static inline void head_of(const exchange_t *x, const char *name,
                           char out[160]) {
  const char *at = strstr(x->raw, name);
  size_t n = at != NULL ? strcspn(at + strlen(name), "\r") : 0;

  CHECK(n < 160);
  snprintf(out, 160, "%.*s", (int)n, at != NULL ? at + strlen(name) : "");
}

static inline int status_of(bench_t *b, const char *method, const char *target,
                            const char *lines) {
  exchange_t *x = fetch(b, method, target, lines);
  int status = x->status;

  rig_free(x);
  return status;
}

#endif

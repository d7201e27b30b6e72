/* SPDX-License-Identifier: MIT */
#include "links.h"

/* What goes wrong with files that links lead to, because it is meant to. */

typedef struct {
  bench_t b;
  local_faults_t *faults;
  char target[1024];
} faulty_t;

static void faulty_open(faulty_t *f) {
  local_options_t options = LOCAL_OPTIONS_INIT;

  f->faults = local_faults_new(test_allocator());
  CHECK(f->faults != NULL);
  options.faults = f->faults;
  bench_open(&f->b, options);
  save(&f->b, "");
  link_of(&f->b, ADAPTER, f->target);
}

static void faulty_close(faulty_t *f) {
  rig_close(&f->b.rig);
  local_faults_free(f->faults);
}

static void set(faulty_t *f, const char *text) {
  char why[512] = "";

  if (local_faults_set(f->faults, text, why, sizeof(why)) != TNK_OK)
    test_fail(__FILE__, __LINE__, "%s", why);
}

TEST(faults_are_of_files_too) {
  static const char part[] = "Range: bytes=10-19\r\n";
  exchange_t *x;
  faulty_t f;
  char text[160];
  size_t whole;
  size_t n;

  faulty_open(&f);
  x = fetch(&f.b, "GET", f.target, "");
  body_of(x, &whole);
  rig_free(x);
  set(&f, "503/files@1,cut_body/files@2:100,short_body/files@3:100,"
          "no_range@2,other_range@5,403/files@6");
  CHECK_INT(status_of(&f.b, "GET", f.target, ""), 503);
  x = fetch(&f.b, "GET", f.target, "");
  body_of(x, &n);
  CHECK_INT(n, 100);
  rig_free(x);
  x = fetch(&f.b, "GET", f.target, "");
  body_of(x, &n);
  CHECK_INT(n, whole - 100);
  head_of(x, "Content-Length: ", text);
  CHECK_INT(atoi(text), whole - 100);
  rig_free(x);
  set(&f, "no_range@1,other_range@2");
  CHECK_INT(status_of(&f.b, "GET", f.target, part), 200);
  x = fetch(&f.b, "GET", f.target, part);
  CHECK_INT(x->status, 206);
  head_of(x, "Content-Range: bytes ", text);
  CHECK_INT(strncmp(text, "9-18/", 5), 0);
  rig_free(x);
  CHECK_INT(status_of(&f.b, "GET", f.target, part), 206);
  CHECK_INT(local_faults_count(f.faults, "other_range"), 1);
  faulty_close(&f);
}

TEST(files_may_be_elsewhere) {
  static const struct {
    const char *fault;
    const char *format; /* of the place, before the target */
  } rows[] = {{"redirect", "http://localhost:%d"},
              {"redirect:same", "http://x"},
              {"redirect:http", "http://x"},
              {"redirect:file", "file://"}};
  char place[160];
  char head[1200];
  faulty_t f;

  faulty_open(&f);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    exchange_t *x;

    set(&f, rows[i].fault);
    snprintf(place, sizeof(place), rows[i].format,
             local_server_port(f.b.rig.server));
    snprintf(head, sizeof(head), "\r\nLocation: %s%.20s", place, f.target);
    x = fetch(&f.b, "GET", f.target, "");
    CHECK_INT(x->status, 302);
    if (strstr(x->raw, head) == NULL)
      test_fail(__FILE__, __LINE__, "%s", x->raw);
    rig_free(x);
  }
  faulty_close(&f);
}

TEST(files_may_have_names_that_lead_elsewhere) {
  static const char *const rows[][2] = {
      {"other_names", "../" ADAPTER},
      {"other_names:absolute", "/tmp/" ADAPTER},
      {"other_names/external_weights_urls:empty", ""},
      {"other_names/training_runs:dot", "."},
      {"other_names@1:other", "other-" ADAPTER}};
  faulty_t f;

  faulty_open(&f);
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    exchange_t *x;

    set(&f, rows[i][0]);
    x = ask(&f.b, "external_weights/e");
    if (json_object_get(json_object_get(x->json, "urls"), rows[i][1]) == NULL)
      test_fail(__FILE__, __LINE__, "%s: %s", rows[i][0], x->body);
    rig_free(x);
  }
  faulty_close(&f);
}

/* Calls on one checkpoint are counted by themselves, and told by their ends. */
TEST(faults_tell_calls_on_a_checkpoint_apart) {
  char path[256];
  faulty_t f;

  faulty_open(&f);
  snprintf(path, sizeof(path),
           "/api/v1/training_runs/%s/checkpoints/external_weights/e/publish",
           f.b.model);
  set(&f, "503/external_weights_urls@2,500/training_runs@4");
  CHECK_INT(rig_status(ask(&f.b, "external_weights/e")), 200);
  CHECK_INT(rig_status(rig_send(&f.b.rig, "POST", path, NULL, "", 0)), 200);
  CHECK_INT(rig_status(ask(&f.b, "external_weights/e")), 503);
  CHECK_INT(rig_status(ask(&f.b, "external_weights/e")), 500);
  faulty_close(&f);
}

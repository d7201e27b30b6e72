/* SPDX-License-Identifier: MIT */
/* What the answers about runs and checkpoints mean, and what is asked. */
#include "lib/store/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "support/test.h"
#include "tnk/error.h"

static int read_with(tnk_page_t **out, tnk__ask_kind_t kind,
                     const tnk_page_t *before, const char *json,
                     const char **what) {
  const tnk__ask_t ask = {.kind = kind,
                          .limit = 2,
                          .offset = before != NULL ? before->ask.offset : 0};
  const size_t n = strlen(json);
  uint8_t *body = tnk__malloc(test_allocator(), n + 1);

  CHECK(body != NULL);
  memcpy(body, json, n + 1);
  *out = NULL;
  return tnk__page_read(out, test_allocator(), &ask,
                        before != NULL ? before->seen : NULL, body, n, what);
}

static tnk_page_t *read_ok(tnk__ask_kind_t kind, const char *json) {
  const char *what;
  tnk_page_t *page;

  if (read_with(&page, kind, NULL, json, &what) != TNK_OK)
    test_fail(__FILE__, __LINE__, "refused for %s: %s",
              what != NULL ? what : "its form", json);
  return page;
}

static void drop(tnk_page_t *page) {
  tnk__page_free(test_allocator(), page);
}

#define CHECKPOINT                                                             \
  "\"checkpoint_id\":\"weights/a\",\"checkpoint_type\":\"training\","          \
  "\"time\":\"2026-01-02T03:04:05Z\",\"tinker_path\":\"tinker://r/weights/a\""

TEST(N5_checkpoint_with_all_members) {
  tnk_page_t *page = read_ok(
      TNK__ASK_LIST_RUN_CHECKPOINTS,
      "{\"checkpoints\":[{" CHECKPOINT
      ",\"size_bytes\":123456789012,\"public\":true,\"user_metadata\":{\"k\":"
      "\"v\",\"n\":{\"x\":[1]}},\"expires_at\":\"2026-01-03T00:00:00+00:00\","
      "\"later\":{\"unknown\":[]}}],\"cursor\":null}");
  const tnk_checkpoint_t *checkpoint = tnk_page_checkpoint(page, 0);

  CHECK_INT(tnk_page_count(page), 1);
  CHECK_STR(checkpoint->id, "weights/a");
  CHECK_STR(checkpoint->path, "tinker://r/weights/a");
  CHECK_STR(checkpoint->type, "training");
  CHECK_INT(checkpoint->kind, TNK_CHECKPOINT_TRAINING);
  CHECK_INT(checkpoint->time_us, INT64_C(1767323045000000));
  CHECK_INT(checkpoint->expires_us, INT64_C(1767398400000000));
  CHECK_INT(checkpoint->size_bytes, INT64_C(123456789012));
  CHECK_INT(checkpoint->is_public, 1);
  CHECK_INT(checkpoint->n_user_metadata, 2);
  CHECK_STR(checkpoint->user_metadata[0].name, "k");
  CHECK_STR(checkpoint->user_metadata[0].value, "v");
  CHECK_STR(checkpoint->user_metadata[1].value, "{\"x\":[1]}");
  CHECK(tnk_page_checkpoint(page, 1) == NULL);
  CHECK(tnk_page_run(page, 0) == NULL);
  CHECK_INT(tnk_page_total(page), -1);
  CHECK_INT(tnk_page_is_last(page), 1);
  drop(page);
}

TEST(N5_checkpoint_with_what_is_required) {
  tnk_page_t *page =
      read_ok(TNK__ASK_LIST_RUN_CHECKPOINTS,
              "{\"cursor\":null,\"checkpoints\":[{" CHECKPOINT
              ",\"size_bytes\":null,\"public\":null,\"expires_at\":null,"
              "\"user_metadata\":null}]}");
  const tnk_checkpoint_t *checkpoint = tnk_page_checkpoint(page, 0);

  CHECK_INT(checkpoint->size_bytes, -1);
  CHECK_INT(checkpoint->expires_us, 0);
  CHECK_INT(checkpoint->is_public, 0);
  CHECK_INT(checkpoint->n_user_metadata, 0);
  drop(page);
}

/* Each word of a type, and one that is not known yet. */
TEST(P9_14_a_type_that_is_not_known_is_kept) {
  static const struct {
    const char *word;
    tnk_checkpoint_kind_t kind;
  } rows[] = {{"training", TNK_CHECKPOINT_TRAINING},
              {"sampler", TNK_CHECKPOINT_SAMPLER},
              {"external", TNK_CHECKPOINT_EXTERNAL},
              {"of tomorrow", TNK_CHECKPOINT_OTHER},
              {"", TNK_CHECKPOINT_OTHER}};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    char json[512];
    tnk_page_t *page;

    snprintf(json, sizeof(json),
             "{\"checkpoints\":[{\"checkpoint_id\":\"a\",\"time\":1,"
             "\"tinker_path\":\"p\",\"checkpoint_type\":\"%s\"}]}",
             rows[i].word);
    page = read_ok(TNK__ASK_LIST_RUN_CHECKPOINTS, json);
    CHECK_STR(tnk_page_checkpoint(page, 0)->type, rows[i].word);
    CHECK_INT(tnk_page_checkpoint(page, 0)->kind, rows[i].kind);
    drop(page);
  }
}

TEST(N2_run_with_all_members) {
  tnk_page_t *page = read_ok(
      TNK__ASK_GET_RUN,
      "{\"training_run_id\":\"a:b\",\"base_model\":\"m\",\"model_owner\":\"o\","
      "\"is_lora\":true,\"corrupted\":true,\"lora_rank\":32,"
      "\"last_request_time\":\"2026-01-02 "
      "03:04:05\",\"last_checkpoint\":{" CHECKPOINT
      "},\"last_sampler_checkpoint\":null,\"user_metadata\":{}}");
  const tnk_run_t *run = tnk_page_run(page, 0);

  CHECK_STR(run->id, "a:b");
  CHECK_STR(run->base_model, "m");
  CHECK_STR(run->owner, "o");
  CHECK_INT(run->is_lora, 1);
  CHECK_INT(run->is_corrupted, 1);
  CHECK_INT(run->lora_rank, 32);
  CHECK_INT(run->last_request_us, INT64_C(1767323045000000));
  CHECK_STR(run->last_checkpoint->path, "tinker://r/weights/a");
  CHECK(run->last_sampler_checkpoint == NULL);
  CHECK(tnk_page_checkpoint(page, 0) == NULL);
  drop(page);
}

#define RUN(id)                                                                \
  "{\"training_run_id\":\"" id                                                 \
  "\",\"base_model\":\"m\",\"model_owner\":\"o\",\"is_lora\":false,"           \
  "\"last_request_time\":1}"
#define CURSOR(offset, total)                                                  \
  "\"cursor\":{\"offset\":" #offset ",\"limit\":2,\"total_count\":" #total "}"

/* Every way in which a page ends a list or does not. */
TEST(P9_11_when_a_page_is_the_last_one) {
  static const struct {
    const char *json;
    int is_last;
    int64_t total;
  } rows[] = {
      {"{\"training_runs\":[" RUN("a") "," RUN("b") "]," CURSOR(0, 5) "}", 0,
       5},
      {"{\"training_runs\":[" RUN("a") "]," CURSOR(0, 5) "}", 0, 5},
      {"{\"training_runs\":[" RUN("a") "," RUN("b") "]," CURSOR(0, 2) "}", 1,
       2},
      {"{\"training_runs\":[" RUN("a") "," RUN("b") "]," CURSOR(0, 1) "}", 1,
       1},
      {"{\"training_runs\":[]," CURSOR(0, 5) "}", 1, 5},
      {"{\"training_runs\":[]," CURSOR(0, 0) "}", 1, 0}};
  tnk_page_t *page;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    page = read_ok(TNK__ASK_LIST_RUNS, rows[i].json);
    CHECK_INT(tnk_page_is_last(page), rows[i].is_last);
    CHECK_INT(tnk_page_total(page), rows[i].total);
    CHECK_INT(tnk_page_end(page), tnk_page_count(page));
    drop(page);
  }
  page = read_ok(TNK__ASK_LIST_CHECKPOINTS, "{\"checkpoints\":[]}");
  CHECK_INT(tnk_page_is_last(page), 1);
  drop(page);
}

TEST(P9_11_what_comes_twice_is_left_out) {
  tnk_page_t *first = read_ok(
      TNK__ASK_LIST_RUNS,
      "{\"training_runs\":[" RUN("a") "," RUN("b") "]," CURSOR(0, 9) "}");
  const char *what;
  tnk_page_t *next;

  CHECK_INT(read_with(&next, TNK__ASK_LIST_RUNS, first,
                      "{\"training_runs\":[" RUN("b") "," RUN("c") "," RUN(
                          "b") "]," CURSOR(2, 9) "}",
                      &what),
            TNK_OK);
  CHECK_INT(tnk_page_count(next), 1);
  CHECK_STR(tnk_page_run(next, 0)->id, "c");
  CHECK_INT(tnk_page_end(next), 5); /* by the server's count */
  drop(first);
  drop(next);
}

TEST(what_was_seen_is_forgotten_late) {
  tnk__seen_t *seen = calloc(1, sizeof(*seen));
  char id[40];

  CHECK(seen != NULL);
  for (int i = 0; i < 10000; i++) {
    snprintf(id, sizeof(id), "tinker://run/weights/%d", i);
    CHECK_INT(tnk__seen_add(seen, id), 1);
    CHECK_INT(tnk__seen_add(seen, id), 0);
    snprintf(id, sizeof(id), "tinker://run/weights/%d",
             i > TNK__SEEN_MIN ? i - TNK__SEEN_MIN : 0);
    CHECK_INT(tnk__seen_add(seen, id), 0);
  }
  free(seen);
}

/* Who sends numbers as texts, and truth as numbers. */
TEST(P9_14_values_in_other_clothes) {
  tnk_page_t *page = read_ok(
      TNK__ASK_GET_RUN,
      "{\"training_run_id\":7,\"base_model\":\"m\",\"model_owner\":\"o\","
      "\"is_lora\":\"yes\",\"corrupted\":0,\"lora_rank\":8.0,"
      "\"last_request_time\":1767323045.5,\"last_checkpoint\":{"
      "\"checkpoint_id\":\"a\",\"checkpoint_type\":\"training\",\"time\":"
      "1767323045000,\"tinker_path\":\"p\",\"size_bytes\":\"12\",\"public\":"
      "\"False\"}}");
  const tnk_run_t *run = tnk_page_run(page, 0);

  CHECK_STR(run->id, "7");
  CHECK_INT(run->is_lora, 1);
  CHECK_INT(run->is_corrupted, 0);
  CHECK_INT(run->lora_rank, 8);
  CHECK_INT(run->last_request_us, INT64_C(1767323045500000));
  CHECK_INT(run->last_checkpoint->time_us, INT64_C(1767323045000000));
  CHECK_INT(run->last_checkpoint->size_bytes, 12);
  CHECK_INT(run->last_checkpoint->is_public, 0);
  drop(page);
}

/* The member that is named when a record is wrong. */
TEST(an_answer_that_is_wrong_is_refused_by_its_member) {
  static const struct {
    const char *json;
    const char *what;
  } rows[] = {
      {"{}", "training_runs"},
      {"{\"training_runs\":[]}", "cursor"},
      {"{\"training_runs\":null," CURSOR(0, 0) "}", "training_runs"},
      {"{\"training_runs\":[],\"cursor\":{\"offset\":0}}", "total_count"},
      {"{\"training_runs\":[],\"cursor\":{\"total_count\":8.5}}",
       "total_count"},
      {"{\"training_runs\":[],\"cursor\":{\"total_count\":"
       "99999999999999999999}}",
       "total_count"},
      {"{\"training_runs\":[{}]," CURSOR(0, 1) "}", "training_run_id"},
      {"{\"training_runs\":[{\"training_run_id\":\"\"}]}", "training_run_id"},
      {"{\"training_runs\":[{\"training_run_id\":\"a\",\"base_model\":1}]}",
       "base_model"},
      {"{\"training_runs\":[{\"is_lora\":\"perhaps\"}]}", "is_lora"},
      {"{\"training_runs\":[{\"is_lora\":2}]}", "is_lora"},
      {"{\"training_runs\":[{\"last_request_time\":\"soon\"}]}",
       "last_request_time"},
      {"{\"training_runs\":[{\"user_metadata\":[]}]}", "user_metadata"},
      {"{\"training_runs\":[{\"last_checkpoint\":{}}]}", "checkpoint_id"},
      {"{\"training_runs\":{}}", "training_runs"},
      {"{\"training_runs\":[7]}", NULL},
      {"[]", NULL},
      {"", NULL},
      {"<html>", NULL},
      {"{\"training_runs\":[]," CURSOR(0, 0) "} {}", NULL},
      {"{\"training_runs\":[]," CURSOR(0, 0), NULL}};
  const char *what;
  tnk_page_t *page;

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    int err = read_with(&page, TNK__ASK_LIST_RUNS, NULL, rows[i].json, &what);

    if (err != TNK_EPROTO)
      test_fail(__FILE__, __LINE__, "%d for %s", err, rows[i].json);
    CHECK_STR(what, rows[i].what);
  }
}

TEST(records_without_memory) {
  static const char json[] =
      "{\"training_runs\":[" RUN("a") "," RUN("b") "]," CURSOR(0, 9) "}";
  const char *what;
  tnk_page_t *page;
  int err = TNK_ENOMEM;

  for (long i = 0; err == TNK_ENOMEM; i++) {
    test_alloc_fail_at(i + 1); /* the first one is the body */
    err = read_with(&page, TNK__ASK_LIST_RUNS, NULL, json, &what);
    test_alloc_fail_at(-1);
    CHECK(err == TNK_OK || (err == TNK_ENOMEM && test_alloc_live() == 0));
    CHECK(i < 50);
  }
  drop(page);
}

/* ---- What is asked ---- */

static void check_target(const tnk__ask_t *ask, const char *expected) {
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), TNK__MAX_URL);
  tnk__ask_write_target(&buf, ask);
  CHECK_STR(tnk__buf_cstr(&buf), expected);
  tnk__buf_deinit(&buf);
}

TEST(P9_13_ids_go_into_the_path_as_they_are) {
  tnk__ask_t ask = {
      .kind = TNK__ASK_LIST_RUNS, .limit = 20, .offset = UINT64_C(1) << 40};

  check_target(&ask, "training_runs?limit=20&offset=1099511627776&"
                     "access_scope=owned");
  ask.project_id = "a b&c=\xc3\xa9";
  ask.scope = TNK_SCOPE_ACCESSIBLE;
  ask.offset = 0;
  check_target(&ask, "training_runs?limit=20&offset=0&access_scope=accessible"
                     "&project_id=a%20b%26c%3D%C3%A9");
  ask = (tnk__ask_t){.kind = TNK__ASK_GET_RUN, .id = "a:train:0"};
  check_target(&ask, "training_runs/a:train:0?access_scope=owned");
  ask.kind = TNK__ASK_LIST_RUN_CHECKPOINTS;
  check_target(&ask, "training_runs/a:train:0/checkpoints");
  ask = (tnk__ask_t){.kind = TNK__ASK_LIST_CHECKPOINTS, .limit = 5};
  check_target(&ask, "checkpoints?limit=5&offset=0");
}

TEST(P9_13_ids_that_would_change_the_address_are_refused) {
  static const struct {
    const char *id;
    const char *why;
  } rows[] = {{NULL, "run_id is NULL"},
              {"", "run_id is empty"},
              {".", "run_id is \".\", which would change the address"},
              {"..", "run_id is \"..\", which would change the address"},
              {"a/b", "run_id has '/' in it, which would change the address"},
              {"a?b", "run_id has '?' in it, which would change the address"},
              {"a#b", "run_id has '#' in it, which would change the address"},
              {"a%2fb", "run_id has '%' in it, which would change the address"},
              {"a\\b", "run_id has '\\' in it, which would change the address"},
              {"a b", "run_id has a blank in it"},
              {"a\nb", "run_id has a control character in it"},
              {"a\x7f", "run_id has a control character in it"},
              {"a\xff", "run_id is not UTF-8"}};
  char why[128];

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
    CHECK_INT(tnk__ask_check_id("run_id", rows[i].id, why, sizeof(why)),
              TNK_EINVAL);
    CHECK_STR(why, rows[i].why);
  }
  CHECK_INT(tnk__ask_check_id("run_id", "a:b-c_d.e..f", why, sizeof(why)),
            TNK_OK);
  CHECK_INT(tnk__ask_check_id("run_id", "...", why, sizeof(why)), TNK_OK);
}

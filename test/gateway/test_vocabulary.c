/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/record/record.h"
#include "gateway/record/vocabulary.h"
#include "support/test.h"
#include "tnk/error.h"

/* What the ids of a record mean. */

typedef struct {
  uv_loop_t loop;
  char path[64];
  tnk__gw_record_t *record;
  char why[256];
  int n_closed;
} rig_t;

static int open_with(rig_t *rig, uint64_t vocabulary, int is_written) {
  const tnk__gw_record_options_t options = {.alloc = test_allocator(),
                                            .loop =
                                                is_written ? &rig->loop : NULL,
                                            .path = rig->path,
                                            .vocabulary = vocabulary,
                                            .why = rig->why,
                                            .n_why = sizeof(rig->why)};

  return tnk__gw_record_open(&rig->record, &options);
}

static void on_closed(void *user) {
  ((rig_t *)user)->n_closed++;
}

static void close_record(rig_t *rig) {
  int n = rig->n_closed;

  tnk__gw_record_close(rig->record, on_closed, rig);
  while (rig->n_closed == n)
    uv_run(&rig->loop, UV_RUN_ONCE);
}

static void rig_open(rig_t *rig, const char *text) {
  FILE *file;
  int fd;

  memset(rig, 0, sizeof(*rig));
  CHECK_INT(uv_loop_init(&rig->loop), 0);
  snprintf(rig->path, sizeof(rig->path), "/tmp/tnk-vocabulary-XXXXXX");
  fd = mkstemp(rig->path);
  CHECK(fd >= 0);
  close(fd);
  file = fopen(rig->path, "w");
  CHECK(file != NULL);
  fputs(text, file);
  fclose(file);
}

static void rig_close(rig_t *rig) {
  CHECK_INT(uv_loop_close(&rig->loop), 0);
  unlink(rig->path);
}

static long size_of(const rig_t *rig) {
  FILE *file = fopen(rig->path, "r");
  long n;

  CHECK(file != NULL && fseek(file, 0, SEEK_END) == 0);
  n = ftell(file);
  fclose(file);
  return n;
}

#define WEIGHTS "{\"type\":\"weights\",\"number\":1,\"name\":\"some/model\"}\n"

/* The ids of one model are other words to another one. */
TEST(a_record_of_other_ids_is_refused) {
  rig_t rig;
  long n;

  rig_open(&rig, "");
  CHECK_INT(open_with(&rig, 5, 1), TNK_OK);
  CHECK_INT(
      tnk__gw_record_note(rig.record, NULL, "weights", "name", "some/model", 1),
      TNK_OK);
  close_record(&rig);
  n = size_of(&rig);
  CHECK_INT(open_with(&rig, 6, 1), TNK_EFILE);
  CHECK(rig.record == NULL);
  CHECK(strstr(rig.why, rig.path) != NULL);
  CHECK(strstr(rig.why, "another vocabulary, of some/model") != NULL);
  CHECK_INT(size_of(&rig), n);
  CHECK_INT(open_with(&rig, 5, 1), TNK_OK);
  close_record(&rig);
  CHECK_INT(size_of(&rig), n);
  /* Who only reads them does not care. */
  CHECK_INT(open_with(&rig, 0, 0), TNK_OK);
  close_record(&rig);
  rig_close(&rig);
}

TEST(a_record_that_does_not_tell_is_bound_from_now_on) {
  rig_t rig;

  rig_open(&rig, WEIGHTS);
  CHECK_INT(open_with(&rig, 0, 1), TNK_OK);
  close_record(&rig);
  CHECK_INT(open_with(&rig, 7, 1), TNK_OK);
  close_record(&rig);
  CHECK_INT(open_with(&rig, 8, 1), TNK_EFILE);
  rig_close(&rig);
}

TEST(a_vocabulary_that_is_none_is_told) {
  static const char *const lines[] = {
      "{\"type\":\"vocabulary\",\"number\":0}\n",
      "{\"type\":\"vocabulary\",\"number\":0,\"hash\":\"x\"}\n"};

  for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
    rig_t rig;

    rig_open(&rig, lines[i]);
    CHECK_INT(open_with(&rig, 5, 1), TNK_EFILE);
    CHECK(strstr(rig.why, "line 1: is not a vocabulary") != NULL);
    rig_close(&rig);
  }
}

/* ---- What ids mean ---- */

/* So many ids of a letter each, with a gap, and one that cannot be decoded. */
typedef struct {
  int32_t n;
  int32_t other; /* it has another letter; -1: none */
} letters_t;

static int decode(const void *tokenizer, const int32_t *list, size_t n,
                  unsigned flags, tnk_take_bytes_cb take, void *user, char *why,
                  size_t why_size) {
  const letters_t *letters = tokenizer;

  (void)flags, (void)why, (void)why_size;
  CHECK_INT(n, 1);
  if (list[0] == 3)
    return TNK_EINVAL;
  if (list[0] >= letters->n || (list[0] > 9 && list[0] < 1000))
    return TNK_OK;
  return take(list[0] == letters->other ? "x" : "a", 1, user);
}

static uint64_t of(int32_t n, int32_t other) {
  static tnk_tokenizer_plugin_t plugin = TNK_TOKENIZER_PLUGIN_INIT;
  letters_t letters = {n, other};
  const tnk_chat_tokenizer_t tokenizer = {&plugin, &letters};

  plugin.decode = decode;
  return tnk__gw_vocabulary(&tokenizer);
}

TEST(each_id_counts) {
  CHECK(of(2000, -1) != 0);
  CHECK(of(2000, -1) == of(2000, -1));
  CHECK(of(2000, -1) != of(1999, -1));
  CHECK(of(2000, -1) != of(2000, 0));
  CHECK(of(2000, -1) != of(2000, 1999));
  CHECK(of(2000, 3) == of(2000, -1));
}

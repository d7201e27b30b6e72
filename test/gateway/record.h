/* SPDX-License-Identifier: MIT */
#ifndef TEST_GATEWAY_RECORD_H
#define TEST_GATEWAY_RECORD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/record/record.h"
#include "gateway/record/state.h"
#include "support/test.h"
#include "tnk/error.h"

/* A record in a file or in memory, and turns to add to it. */

typedef struct {
  uv_loop_t loop;
  char path[64];
  tnk__gw_record_t *record;
  char why[256];
  int syncs;
  int n_closed;
} rig_t;

static inline int open_record(rig_t *rig, int has_file, size_t max_memory,
                              size_t max_turns) {
  const tnk__gw_record_options_t options = {.alloc = test_allocator(),
                                            .loop = &rig->loop,
                                            .path = has_file ? rig->path : NULL,
                                            .syncs = rig->syncs,
                                            .max_memory = max_memory,
                                            .max_turns = max_turns,
                                            .first = 100,
                                            .why = rig->why,
                                            .n_why = sizeof(rig->why)};

  return tnk__gw_record_open(&rig->record, &options);
}

static inline void rig_open(rig_t *rig) {
  int fd;

  memset(rig, 0, sizeof(*rig));
  CHECK_INT(uv_loop_init(&rig->loop), 0);
  snprintf(rig->path, sizeof(rig->path), "/tmp/tnk-record-XXXXXX");
  fd = mkstemp(rig->path);
  CHECK(fd >= 0);
  close(fd);
}

static inline void on_closed(void *user) {
  ((rig_t *)user)->n_closed++;
}

static inline void close_record(rig_t *rig) {
  int n = rig->n_closed;

  tnk__gw_record_close(rig->record, on_closed, rig);
  while (rig->n_closed == n)
    uv_run(&rig->loop, UV_RUN_ONCE);
}

static inline void rig_close(rig_t *rig) {
  uv_run(&rig->loop, UV_RUN_DEFAULT);
  CHECK_INT(uv_loop_close(&rig->loop), 0);
  unlink(rig->path);
}

/* ---- Turns ---- */

static int32_t ids[4096];
static float logprobs[4096];

/* Of what is added: the weights, and the service's id; NULL: it gives none. */
static uint32_t version = 1;
static const char *sequence;

static inline int add(rig_t *rig, const char *session, tnk__gw_turn_t *parent,
                      uint64_t key, int32_t first, size_t n_prompt,
                      size_t n_sampled, tnk__gw_turn_t **out) {
  json_t *messages = json_pack("[{s:s, s:s}]", "role", "user", "content", "x");
  tnk__gw_turn_new_t turn = {.session = session,
                             .request = 1,
                             .parent = parent,
                             .key = key,
                             .api = "chat",
                             .prompt = ids,
                             .n_prompt = n_prompt,
                             .sampled = ids + n_prompt,
                             .logprobs = logprobs,
                             .n_sampled = n_sampled,
                             .end = "stop",
                             .sequence = sequence,
                             .version = version,
                             .messages = messages};
  int err;

  for (size_t i = 0; i < n_prompt + n_sampled; i++) {
    ids[i] = first + (int32_t)i;
    logprobs[i] = -0.125f * (float)(i + 1);
  }
  err = tnk__gw_record_add(rig->record, &turn, out);
  json_decref(messages);
  return err;
}

static inline tnk__gw_turn_t *added(rig_t *rig, const char *session,
                                    tnk__gw_turn_t *parent, uint64_t key,
                                    int32_t first) {
  tnk__gw_turn_t *turn;

  CHECK_INT(add(rig, session, parent, key, first, 3, 2, &turn), TNK_OK);
  return turn;
}

static inline void check_ids(rig_t *rig, tnk__gw_turn_t *turn,
                             const int32_t *expected, size_t n) {
  tnk__buf_t found;

  tnk__buf_init(&found, test_allocator(), SIZE_MAX);
  CHECK_INT(tnk__gw_record_ids(rig->record, turn, &found), TNK_OK);
  CHECK_MEM(found.data, found.len, expected, n * sizeof(*expected));
  tnk__buf_deinit(&found);
}

static const int32_t chain[] = {10, 11, 12, 13, 14, 20, 21, 22, 23, 24};

/* A turn, one that goes on from it, and another one that does as well. */
static inline void add_tree(rig_t *rig) {
  tnk__gw_turn_t *root = added(rig, "a", NULL, 1, 10);

  check_ids(rig, added(rig, "a", root, 2, 20), chain, 10);
  added(rig, "a", root, 3, 30);
  added(rig, "b", NULL, 1, 40);
}

#endif

/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gateway/record/line.h"
#include "gateway/record/record.h"
#include "gateway/record/state.h"
#include "lib/base/alloc.h"
#include "lib/base/number.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

enum { MAX_MEMORY = 256 << 20, MAX_TURNS = 1 << 20 };

/* ---- Reading an existing file ---- */

static int bad_line(tnk__gw_record_t *record, const char *what) {
  if (record->n_why > 0)
    (void)snprintf(record->why, record->n_why, "%s: line %zu: %s", record->path,
                   record->n_lines, what);
  return TNK_EFILE;
}

static int take_turn(tnk__gw_record_t *record, const json_t *line, size_t n,
                     uint64_t offset) {
  tnk__gw_turn_t *parent;
  tnk__gw_turn_t *turn;
  tnk__gw_line_t read;
  int err;

  if (tnk__gw_line_read(line, &read) != 0)
    return bad_line(record, "is not a turn");
  if (tnk__gw_record_turn(record, read.number) != NULL)
    return bad_line(record, "has the number of an earlier turn");
  parent = read.parent != 0 ? tnk__gw_record_turn(record, read.parent) : NULL;
  if (read.parent != 0 && parent == NULL)
    return record->has_forgotten
               ? TNK_OK
               : bad_line(record, "continues a turn that does not exist");
  /* Sessions are dropped separately, so a parent of another session is an
   * error. */
  if (parent != NULL && strcmp(parent->session->name, read.session) != 0)
    return bad_line(record, "continues a turn of another session");
  turn = tnk__calloc(record->alloc, 1, sizeof(*turn));
  if (turn == NULL)
    return TNK_ENOMEM;
  turn->parent = parent;
  turn->reward = NAN;
  turn->n_prompt = (uint32_t)read.n_prompt;
  turn->n_sampled = (uint32_t)read.n_sampled;
  turn->version = (uint32_t)read.version;
  turn->request = read.request;
  turn->offset = offset;
  turn->n_line = n;
  err = tnk__gw_record_link(record, turn, read.session, read.number, read.key);
  if (err == TNK_OK)
    tnk__gw_record_heed(record, turn->session);
  return err;
}

/* Keep the name of the weights for error messages. */
static int take_weights(tnk__gw_record_t *record, const json_t *line) {
  const char *name = tnk__json_str(line, "name");

  (void)snprintf(record->weights, sizeof(record->weights), "%s",
                 name != NULL ? name : "");
  return TNK_OK;
}

static int take_vocabulary(tnk__gw_record_t *record, const json_t *line) {
  const char *hash = tnk__json_str(line, "hash");

  return hash != NULL &&
                 tnk__text_u64(hash, UINT64_MAX, &record->vocabulary) == TNK_OK
             ? TNK_OK
             : bad_line(record, "is not a vocabulary");
}

static int take_reward(tnk__gw_record_t *record, const json_t *line) {
  tnk__gw_turn_t *turn;
  uint64_t number;
  double reward;

  if (tnk__gw_line_reward_read(line, &number, &reward) != 0)
    return bad_line(record, "is not a reward");
  turn = tnk__gw_record_turn(record, number);
  if (turn != NULL)
    turn->reward = reward;
  return TNK_OK;
}

static int on_line(void *user, const char *data, size_t n, uint64_t offset) {
  tnk__gw_record_t *record = user;
  const char *type = NULL;
  json_t *line;
  int err;

  record->n_lines++;
  err = tnk__json_parse_object(&line, data, n);
  if (err != TNK_OK)
    return err == TNK_ENOMEM ? err : bad_line(record, "is not JSON");
  type = tnk__json_str(line, "type");
  if (type == NULL) {
    err = bad_line(record, "has no type");
  } else if (strcmp(type, "turn") == 0) {
    err = take_turn(record, line, n, offset);
  } else if (strcmp(type, "reward") == 0) {
    err = take_reward(record, line);
  } else if (strcmp(type, "weights") == 0) {
    err = take_weights(record, line);
  } else if (strcmp(type, "vocabulary") == 0) {
    err = take_vocabulary(record, line);
  } else if (record->take != NULL) {
    err = record->take(record->take_user, type, line);
    if (err == TNK_EPROTO)
      err = bad_line(record, "is malformed");
  }
  json_decref(line);
  return err;
}

/* ---- Opening and closing ---- */

/* Check the vocabulary of the file. A file without one gets it here. */
static int check_vocabulary(tnk__gw_record_t *record,
                            const tnk__gw_record_options_t *options) {
  char hash[24];

  if (options->vocabulary == 0 || record->vocabulary == options->vocabulary)
    return TNK_OK;
  if (record->vocabulary != 0) {
    if (options->n_why > 0)
      (void)snprintf(options->why, options->n_why,
                     "%s: its tokens are of another vocabulary, of %s; another "
                     "model needs another file",
                     options->path,
                     record->weights[0] != '\0' ? record->weights
                                                : "weights without a name");
    return TNK_EFILE;
  }
  record->vocabulary = options->vocabulary;
  (void)snprintf(hash, sizeof(hash), "%" PRIu64, options->vocabulary);
  return tnk__gw_record_note(record, "vocabulary", "hash", hash, 0);
}

static void free_record(tnk__gw_record_t *record) {
  TNK__LIST_FOREACH_SAFE (node, next, &record->sessions) {
    tnk__gw_record_forget(record,
                          tnk__container_of(node, tnk__gw_session_t, link));
  }
  tnk__gw_map_deinit(&record->numbers);
  tnk__gw_map_deinit(&record->keys);
  tnk__gw_map_deinit(&record->names);
  tnk__free(record->alloc, record);
}

int tnk__gw_record_open(tnk__gw_record_t **out,
                        const tnk__gw_record_options_t *options) {
  tnk__gw_record_t *record = tnk__calloc(options->alloc, 1, sizeof(*record));
  int err;

  *out = NULL;
  if (record == NULL)
    return TNK_ENOMEM;
  record->alloc = options->alloc;
  record->has_file = options->path != NULL;
  record->max_memory =
      options->max_memory > 0 ? options->max_memory : MAX_MEMORY;
  record->max_turns = options->max_turns > 0 ? options->max_turns : MAX_TURNS;
  record->next = options->first > 0 ? options->first : 1;
  record->take = options->take;
  record->take_user = options->user;
  record->path = options->path;
  record->why = options->why;
  record->n_why = options->n_why;
  tnk__gw_map_init(&record->numbers, record->alloc);
  tnk__gw_map_init(&record->keys, record->alloc);
  tnk__gw_map_init(&record->names, record->alloc);
  tnk__list_init(&record->sessions);
  tnk__list_init(&record->recent);
  err = tnk__gw_journal_open(&record->journal, options->loop, record->alloc,
                             options->path, options->syncs, on_line, record,
                             options->why, options->n_why);
  record->path = record->why = NULL;
  record->n_why = 0;
  if (err != TNK_OK) {
    free_record(record);
    return err;
  }
  err = options->path != NULL && options->loop != NULL
            ? check_vocabulary(record, options)
            : TNK_OK;
  if (err != TNK_OK)
    tnk__gw_record_close(record, NULL, NULL);
  else
    *out = record;
  return err;
}

void tnk__gw_record_close(tnk__gw_record_t *record, void (*closed)(void *user),
                          void *user) {
  tnk__gw_journal_t *journal = record->journal;

  free_record(record);
  tnk__gw_journal_close(journal, closed, user);
}

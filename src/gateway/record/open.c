/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gateway/record/line.h"
#include "gateway/record/record.h"
#include "gateway/record/state.h"
#include "gateway/store/where.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"
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

/* The lines of a shared record are in memory. */
static int keep_line(tnk__gw_record_t *record, tnk__gw_turn_t *turn,
                     const char *data, size_t n) {
  if (record->shared == NULL)
    return TNK_OK;
  turn->line = tnk__malloc(record->alloc, n);
  if (turn->line == NULL)
    return TNK_ENOMEM;
  memcpy(turn->line, data, n);
  return TNK_OK;
}

/* Keep the id of a turn or reward, for the mark of an export. */
static void note_change(const tnk__gw_record_t *record,
                        tnk__gw_session_t *session) {
  if (record->id != NULL)
    (void)snprintf(session->changed, sizeof(session->changed), "%s",
                   record->id);
}

/* The log has the first turn that waits for another one. While the record is
 * opened, the other one may be among the next lines. */
static void warn_held(tnk__gw_record_t *record) {
  const char *session = tnk__gw_held_session(&record->held);

  if (session == NULL || record->path != NULL || record->has_warned ||
      record->has_forgotten)
    return;
  record->has_warned = 1;
  tnk__log(&record->logger, TNK_LOG_WARN, "gateway",
           "a turn of the session %s continues one that the store has lost, "
           "and is left out until that one is written again; more of them are "
           "not reported",
           session);
}

/* A turn continues one that is not in memory. Without the ids of that one it is
 * of no use. */
static int take_orphan(tnk__gw_record_t *record, const tnk__gw_line_t *read,
                       const char *data, size_t n) {
  int err;

  if (record->shared == NULL)
    return record->has_forgotten
               ? TNK_OK
               : bad_line(record, "continues a turn that does not exist");
  err = tnk__gw_held_add(&record->held, read->parent, read->session, data, n);
  warn_held(record);
  return err;
}

/* The turn of a reward or a mark is not in memory. */
static int hold_news(tnk__gw_record_t *record, uint64_t turn, const char *data,
                     size_t n) {
  return record->shared != NULL
             ? tnk__gw_held_add(&record->held, turn, NULL, data, n)
             : TNK_OK;
}

static int take_turn(tnk__gw_record_t *record, const json_t *line,
                     const char *data, size_t n, uint64_t offset) {
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
    return take_orphan(record, &read, data, n);
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
    err = keep_line(record, turn, data, n);
  if (err != TNK_OK)
    return err;
  if (turn->line != NULL)
    record->n_memory += n;
  note_change(record, turn->session);
  tnk__gw_held_arrived(&record->held, read.number);
  tnk__gw_gone_drop(&record->gone, read.session);
  tnk__gw_record_heed(record, turn->session);
  return TNK_OK;
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

static int take_reward(tnk__gw_record_t *record, const json_t *line,
                       const char *data, size_t n) {
  tnk__gw_turn_t *turn;
  uint64_t number;
  double reward;

  if (tnk__gw_line_reward_read(line, &number, &reward) != 0)
    return bad_line(record, "is not a reward");
  turn = tnk__gw_record_turn(record, number);
  if (turn == NULL)
    return hold_news(record, number, data, n);
  turn->reward = reward;
  turn->session->n_changes++;
  note_change(record, turn->session);
  return TNK_OK;
}

/* All lines of a session were removed from the store. */
static int take_removed(tnk__gw_record_t *record, const json_t *line) {
  const char *name = tnk__json_str(line, "session");
  tnk__gw_session_t *session;
  int err = TNK_OK;

  if (name == NULL)
    return bad_line(record, "is not a removal");
  if (record->take != NULL)
    err = record->take(record->take_user, "removed", line);
  session = tnk__gw_record_session(record, name);
  if (session != NULL)
    tnk__gw_record_forget(record, session);
  tnk__gw_held_drop(&record->held, name);
  return err != TNK_OK ? err : tnk__gw_gone_add(&record->gone, name);
}

/* Mark turns with which exported examples end. The line is held until the first
 * one that is missing is read, and is then read again. */
static int take_exported(tnk__gw_record_t *record, const json_t *line,
                         const char *data, size_t n) {
  const json_t *turns = tnk__json_arr(line, "turns");
  uint64_t missing = 0;

  if (turns == NULL)
    return bad_line(record, "is not a mark of an export");
  for (size_t i = json_array_size(turns); i > 0; i--) {
    uint64_t number =
        (uint64_t)json_integer_value(json_array_get(turns, i - 1));
    tnk__gw_turn_t *turn = tnk__gw_record_turn(record, number);

    if (turn != NULL)
      turn->is_exported = 1;
    else
      missing = number;
  }
  return missing != 0 ? hold_news(record, missing, data, n) : TNK_OK;
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
    err = take_turn(record, line, data, n, offset);
  } else if (strcmp(type, "reward") == 0) {
    err = take_reward(record, line, data, n);
  } else if (strcmp(type, "removed") == 0) {
    err = take_removed(record, line);
  } else if (strcmp(type, "exported") == 0) {
    err = take_exported(record, line, data, n);
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

int tnk__gw_record_take(void *user, const char *line, size_t n, const char *id,
                        int is_own) {
  static const char *const ordered[] = {"{\"type\":\"reward\"",
                                        "{\"type\":\"asked\""};
  tnk__gw_record_t *record = user;
  tnk__gw_held_line_t *held;
  int err = TNK_OK;

  /* Own lines are in memory. Only the order of these among those of others
   * matters. */
  for (size_t i = 0; i < 2 && is_own; i++)
    if (n >= strlen(ordered[i]) &&
        memcmp(line, ordered[i], strlen(ordered[i])) == 0)
      is_own = 0;
  record->id = id;
  if (!is_own)
    err = on_line(user, line, n, 0);
  while (err == TNK_OK && (held = tnk__gw_held_next(&record->held)) != NULL) {
    err = on_line(user, held->line, held->n, 0);
    tnk__gw_held_free(&record->held, held);
  }
  record->id = NULL;
  return err;
}

/* The session was removed while this process wrote to it. This process may have
 * read the line of type "removed" and forgotten it since. */
static int on_refused(void *user, const char *name) {
  json_t *line = json_pack("{s:s}", "session", name);
  int err = line != NULL ? take_removed(user, line) : TNK_ENOMEM;

  json_decref(line);
  return err;
}

/* The store cannot take a turn. No client has seen it, so it has no children.
 */
static uint64_t on_too_long(void *user, uint64_t number) {
  tnk__gw_record_t *record = user;
  tnk__gw_turn_t *turn = tnk__gw_record_turn(record, number);
  uint64_t request;

  if (turn == NULL)
    return 0;
  request = turn->request;
  if (turn->n_children == 0)
    tnk__gw_record_drop(record, turn);
  if (record->too_long != NULL)
    record->too_long(record->take_user, request);
  return request;
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
  return tnk__gw_record_note(record, NULL, "vocabulary", "hash", hash, 0);
}

static void free_record(tnk__gw_record_t *record) {
  TNK__LIST_FOREACH_SAFE (node, next, &record->sessions) {
    tnk__gw_record_forget(record,
                          tnk__container_of(node, tnk__gw_session_t, link));
  }
  tnk__gw_map_deinit(&record->numbers);
  tnk__gw_map_deinit(&record->keys);
  tnk__gw_map_deinit(&record->names);
  tnk__gw_gone_deinit(&record->gone);
  tnk__gw_held_deinit(&record->held);
  tnk__free(record->alloc, record);
}

/* Read a shared record, and stay connected unless it is only read. */
static int open_shared(tnk__gw_record_t *record,
                       const tnk__gw_record_options_t *options) {
  tnk__gw_where_t where;
  const char *wrong = tnk__gw_where_read(options->path, &where);
  const tnk__gw_shared_options_t how = {.alloc = record->alloc,
                                        .where = &where,
                                        .vocabulary = options->vocabulary,
                                        .ca_file = options->ca_file,
                                        .cert_file = options->cert_file,
                                        .key_file = options->key_file,
                                        .logger = options->logger,
                                        .is_read_only = options->loop == NULL,
                                        .keep = options->keep,
                                        .on_line = tnk__gw_record_take,
                                        .on_refused = on_refused,
                                        .on_too_long = on_too_long,
                                        .user = record};
  int err;

  record->path = where.shown;
  if (wrong == NULL) {
    err = tnk__gw_shared_new(&record->shared, &how);
    if (err == TNK_ENOTSUP)
      wrong = "this build cannot share records, as it has no hiredis";
  }
  if (wrong != NULL) {
    if (options->n_why > 0)
      (void)snprintf(options->why, options->n_why, "%s", wrong);
    err = TNK_EINVAL;
  }
  if (err == TNK_OK)
    err = tnk__gw_shared_load(record->shared, options->why, options->n_why);
  if (err == TNK_OK && options->loop == NULL && options->follows != NULL)
    err = tnk__gw_shared_begin(record->shared, options->follows);
  if (err == TNK_OK && options->loop != NULL) {
    record->next =
        (tnk__gw_shared_writer(record->shared) << TNK__GW_SHARED_BITS) + 1;
    err = tnk__gw_shared_begin(record->shared, options->loop);
  }
  tnk__wipe(&where, sizeof(where));
  record->path = options->path;
  return err;
}

int tnk__gw_record_open(tnk__gw_record_t **out,
                        const tnk__gw_record_options_t *options) {
  tnk__gw_record_t *record = tnk__calloc(options->alloc, 1, sizeof(*record));
  int err;

  *out = NULL;
  if (record == NULL)
    return TNK_ENOMEM;
  record->alloc = options->alloc;
  if (options->logger != NULL)
    record->logger = *options->logger;
  record->has_file = options->path != NULL && !tnk__gw_is_where(options->path);
  record->max_memory =
      options->max_memory > 0 ? options->max_memory : MAX_MEMORY;
  record->max_turns = options->max_turns > 0 ? options->max_turns : MAX_TURNS;
  record->next = options->first > 0 ? options->first : 1;
  record->take = options->take;
  record->take_user = options->user;
  record->too_long = options->too_long;
  record->path = options->path;
  record->why = options->why;
  record->n_why = options->n_why;
  tnk__gw_map_init(&record->numbers, record->alloc);
  tnk__gw_map_init(&record->keys, record->alloc);
  tnk__gw_map_init(&record->names, record->alloc);
  tnk__gw_gone_init(&record->gone, record->alloc);
  tnk__gw_held_init(&record->held, record->alloc, TNK__GW_MAX_HELD);
  tnk__list_init(&record->sessions);
  tnk__list_init(&record->recent);
  err = tnk__gw_journal_open(&record->journal, options->loop, record->alloc,
                             record->has_file ? options->path : NULL,
                             options->syncs, on_line, record, options->why,
                             options->n_why);
  if (err == TNK_OK && options->path != NULL && !record->has_file)
    err = open_shared(record, options);
  record->path = record->why = NULL;
  record->n_why = 0;
  if (err != TNK_OK) {
    tnk__gw_record_close(record, NULL, NULL);
    return err;
  }
  warn_held(record);
  err = record->has_file && options->loop != NULL
            ? check_vocabulary(record, options)
            : TNK_OK;
  if (err != TNK_OK)
    tnk__gw_record_close(record, NULL, NULL);
  else
    *out = record;
  return err;
}

int tnk__gw_record_more(tnk__gw_record_t *record, const char *path, char *why,
                        size_t n_why) {
  int err;

  if (record->shared != NULL) {
    err = tnk__gw_shared_error(record->shared);
    if (err != TNK_OK && n_why > 0)
      (void)snprintf(why, n_why, "%s", tnk__gw_shared_why(record->shared));
    return err;
  }
  record->path = path;
  record->why = why;
  record->n_why = n_why;
  err =
      tnk__gw_journal_more(record->journal, path, on_line, record, why, n_why);
  record->path = record->why = NULL;
  record->n_why = 0;
  return err;
}

void tnk__gw_record_close(tnk__gw_record_t *record, void (*closed)(void *user),
                          void *user) {
  tnk__gw_journal_t *journal = record->journal;
  tnk__gw_shared_t *shared = record->shared;

  free_record(record);
  if (shared == NULL && journal != NULL) {
    tnk__gw_journal_close(journal, closed, user);
    return;
  }
  if (journal != NULL)
    tnk__gw_journal_close(journal, NULL, NULL);
  if (shared != NULL)
    tnk__gw_shared_close(shared, closed, user);
}

/* SPDX-License-Identifier: MIT */
#include "gateway/record/record.h"

#include <math.h>
#include <string.h>

#include "gateway/record/line.h"
#include "gateway/record/state.h"
#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

#define TURN(node) tnk__container_of(node, tnk__gw_turn_t, link)

/* ---- Memory ---- */

static size_t n_bytes(const tnk__gw_turn_t *turn) {
  return ((size_t)turn->n_prompt + turn->n_sampled) * sizeof(int32_t);
}

static void drop_ids(tnk__gw_record_t *record, tnk__gw_turn_t *turn) {
  if (turn->ids == NULL)
    return;
  tnk__list_remove(&turn->recent);
  record->n_memory -= n_bytes(turn);
  tnk__free(record->alloc, turn->ids);
  turn->ids = NULL;
}

/* Drop ids that can be read from the file again. */
static void heed_memory(tnk__gw_record_t *record) {
  if (!record->has_file)
    return;
  TNK__LIST_FOREACH_SAFE (node, next, &record->recent) {
    if (record->n_memory <= record->max_memory)
      return;
    drop_ids(record, tnk__container_of(node, tnk__gw_turn_t, recent));
  }
}

static void keep_ids(tnk__gw_record_t *record, tnk__gw_turn_t *turn,
                     int32_t *ids) {
  turn->ids = ids;
  record->n_memory += n_bytes(turn);
  tnk__list_append(&record->recent, &turn->recent);
}

static void free_turn(tnk__gw_record_t *record, tnk__gw_turn_t *turn) {
  drop_ids(record, turn);
  if (turn->line != NULL)
    record->n_memory -= turn->n_line;
  tnk__free(record->alloc, turn->line);
  tnk__list_remove(&turn->link);
  tnk__gw_map_remove(&record->numbers, &turn->by_number);
  tnk__gw_map_remove(&record->keys, &turn->by_key);
  turn->session->n_turns--;
  record->n_turns--;
  tnk__free(record->alloc, turn);
}

void tnk__gw_record_drop(tnk__gw_record_t *record, tnk__gw_turn_t *turn) {
  if (turn->parent != NULL)
    turn->parent->n_children--;
  free_turn(record, turn);
}

void tnk__gw_record_forget(tnk__gw_record_t *record,
                           tnk__gw_session_t *session) {
  /* Removing the latest turn first is fast, as it comes first in the tables. */
  while (!tnk__list_empty(&session->turns))
    free_turn(record, TURN(session->turns.prev));
  tnk__list_remove(&session->link);
  tnk__gw_map_remove(&record->names, &session->node);
  tnk__free(record->alloc, session);
}

static int is_too_much(const tnk__gw_record_t *record) {
  return record->n_turns > record->max_turns ||
         (!record->has_file && record->n_memory > record->max_memory);
}

/* Drop the conversations of a session that have none of its `n_new` latest
 * turns. A conversation is a turn without a parent, with all turns that
 * continue it. */
static void forget_idle(tnk__gw_record_t *record, tnk__gw_session_t *session,
                        size_t n_new) {
  TNK__LIST_FOREACH (node, &session->turns) {
    TURN(node)->is_used = 0;
  }
  for (tnk__list_t *node = session->turns.prev; n_new > 0;
       node = node->prev, n_new--)
    for (tnk__gw_turn_t *turn = TURN(node); turn != NULL && !turn->is_used;
         turn = turn->parent)
      turn->is_used = 1;
  TNK__LIST_FOREACH (node, &session->turns) {
    if (TURN(node)->parent != NULL)
      TURN(node)->is_used = TURN(node)->parent->is_used;
  }
  /* Go backward, because parents come before their children. */
  for (tnk__list_t *node = session->turns.prev, *prev = node->prev;
       node != &session->turns; node = prev, prev = node->prev)
    if (!TURN(node)->is_used) {
      free_turn(record, TURN(node));
      record->has_forgotten = 1;
    }
}

void tnk__gw_record_heed(tnk__gw_record_t *record, tnk__gw_session_t *in_use) {
  TNK__LIST_FOREACH_SAFE (node, next, &record->sessions) {
    tnk__gw_session_t *session =
        tnk__container_of(node, tnk__gw_session_t, link);

    if (!is_too_much(record))
      return;
    if (session == in_use)
      continue;
    tnk__gw_record_forget(record, session);
    record->has_forgotten = 1;
  }
  for (size_t n = in_use->n_turns / 2; n > 0 && is_too_much(record); n /= 2)
    forget_idle(record, in_use, n < in_use->n_turns ? n : in_use->n_turns);
}

/* ---- Finding ---- */

tnk__gw_session_t *tnk__gw_record_session(const tnk__gw_record_t *record,
                                          const char *name) {
  tnk__gw_node_t *node =
      tnk__gw_map_find(&record->names, tnk__gw_hash(0, name, strlen(name)));

  for (; node != NULL; node = tnk__gw_map_next(node)) {
    tnk__gw_session_t *session =
        tnk__container_of(node, tnk__gw_session_t, node);

    if (strcmp(session->name, name) == 0)
      return session;
  }
  return NULL;
}

/* Sessions may start with the same messages, so the name of the session is part
 * of the key. */
static uint64_t key_in(const char *session, uint64_t key) {
  return tnk__gw_hash(key, session, strlen(session));
}

tnk__gw_turn_t *tnk__gw_record_find(const tnk__gw_record_t *record,
                                    const char *session, uint64_t key) {
  tnk__gw_node_t *node = tnk__gw_map_find(&record->keys, key_in(session, key));

  for (; node != NULL; node = tnk__gw_map_next(node)) {
    tnk__gw_turn_t *turn = tnk__container_of(node, tnk__gw_turn_t, by_key);

    if (strcmp(turn->session->name, session) == 0)
      return turn;
  }
  return NULL;
}

tnk__gw_turn_t *tnk__gw_record_turn(const tnk__gw_record_t *record,
                                    uint64_t number) {
  tnk__gw_node_t *node = tnk__gw_map_find(&record->numbers, number);

  return node != NULL ? tnk__container_of(node, tnk__gw_turn_t, by_number)
                      : NULL;
}

const tnk__list_t *tnk__gw_record_sessions(const tnk__gw_record_t *record) {
  return &record->sessions;
}

size_t tnk__gw_record_n_sessions(const tnk__gw_record_t *record) {
  return record->names.n;
}

/* ---- Where the lines are ---- */

int tnk__gw_record_is_shared(const tnk__gw_record_t *record) {
  return record->shared != NULL;
}

int tnk__gw_record_wait(tnk__gw_record_t *record, tnk__gw_waiter_t *waiter) {
  return record->shared != NULL ? tnk__gw_shared_wait(record->shared, waiter)
                                : tnk__gw_journal_wait(record->journal, waiter);
}

int tnk__gw_record_sync(tnk__gw_record_t *record, tnk__gw_waiter_t *waiter,
                        int is_writing) {
  return tnk__gw_shared_sync(record->shared, waiter, is_writing);
}

void tnk__gw_record_hurry(tnk__gw_record_t *record) {
  if (record->shared != NULL)
    tnk__gw_shared_hurry(record->shared);
}

void tnk__gw_record_leave(tnk__gw_waiter_t *waiter) {
  tnk__gw_journal_leave(waiter); /* a shared record has the same waiters */
}

const char *tnk__gw_record_why(const tnk__gw_record_t *record) {
  return record->shared != NULL ? tnk__gw_shared_why(record->shared) : NULL;
}

uint64_t tnk__gw_record_n_older(const tnk__gw_record_t *record) {
  return record->shared != NULL ? tnk__gw_shared_n_older(record->shared) : 0;
}

int tnk__gw_record_error(const tnk__gw_record_t *record) {
  return record->shared != NULL ? tnk__gw_shared_error(record->shared)
                                : tnk__gw_journal_error(record->journal);
}

uint64_t tnk__gw_record_size(const tnk__gw_record_t *record) {
  return tnk__gw_journal_size(record->journal);
}

/* Without a file, nothing is written. *offset is the position in the file. */
static int write_line(tnk__gw_record_t *record, const tnk__gw_about_t *about,
                      const void *line, size_t n, uint64_t *offset) {
  return record->shared != NULL
             ? tnk__gw_shared_add(record->shared, about, line, n)
             : tnk__gw_journal_add(record->journal, line, n, offset);
}

const tnk_allocator_t *
tnk__gw_record_allocator(const tnk__gw_record_t *record) {
  return record->alloc;
}

uint32_t tnk__gw_record_version(const tnk__gw_record_t *record) {
  return record->version;
}

uint64_t tnk__gw_record_next(const tnk__gw_record_t *record) {
  return record->next;
}

int tnk__gw_record_is_own(const tnk__gw_record_t *record, uint64_t number) {
  return number >> TNK__GW_SHARED_BITS == record->next >> TNK__GW_SHARED_BITS;
}

uint64_t tnk__gw_record_number(tnk__gw_record_t *record) {
  return record->next++;
}

/* ---- Ids ---- */

size_t tnk__gw_turn_n_ids(const tnk__gw_turn_t *turn) {
  return turn->n_before + turn->n_prompt + turn->n_sampled;
}

int tnk__gw_record_line(const tnk__gw_record_t *record,
                        const tnk__gw_turn_t *turn, json_t **out) {
  tnk__buf_t line;
  int err;

  *out = NULL;
  if (turn->line != NULL)
    return tnk__json_parse_object(out, turn->line, turn->n_line);
  tnk__buf_init(&line, record->alloc, turn->n_line);
  err =
      tnk__gw_journal_read(record->journal, turn->offset, turn->n_line, &line);
  if (err == TNK_OK)
    err = tnk__json_parse_object(out, line.data, line.len);
  tnk__buf_deinit(&line);
  return err == TNK_EPROTO ? TNK_EFILE : err;
}

/* Load the ids of a turn into memory. */
static int load(tnk__gw_record_t *record, tnk__gw_turn_t *turn) {
  json_t *line;
  int32_t *ids;
  int err;

  if (turn->ids != NULL || n_bytes(turn) == 0) {
    if (turn->ids != NULL) {
      tnk__list_remove(&turn->recent);
      tnk__list_append(&record->recent, &turn->recent);
    }
    return TNK_OK;
  }
  err = tnk__gw_record_line(record, turn, &line);
  if (err != TNK_OK)
    return err;
  ids = tnk__malloc(record->alloc, n_bytes(turn));
  err = ids == NULL ? TNK_ENOMEM : TNK_OK;
  if (err == TNK_OK &&
      (tnk__gw_line_ids(line, "prompt", ids, turn->n_prompt) != 0 ||
       tnk__gw_line_ids(line, "sampled", ids + turn->n_prompt,
                        turn->n_sampled) != 0))
    err = TNK_EFILE;
  json_decref(line);
  if (err == TNK_OK)
    keep_ids(record, turn, ids);
  else
    tnk__free(record->alloc, ids);
  return err;
}

int tnk__gw_record_ids(tnk__gw_record_t *record, tnk__gw_turn_t *turn,
                       tnk__buf_t *out) {
  size_t n = tnk__gw_turn_n_ids(turn) * sizeof(int32_t);
  size_t begin = out->len;
  int err = TNK_OK;

  if (tnk__buf_reserve(out, n) == NULL)
    return out->err;
  out->len += n;
  /* Go from the last turn to the first: each turn has its offset. */
  for (; turn != NULL && err == TNK_OK; turn = turn->parent) {
    err = load(record, turn);
    if (err == TNK_OK && n_bytes(turn) > 0)
      memcpy(out->data + begin + turn->n_before * sizeof(int32_t), turn->ids,
             n_bytes(turn));
  }
  heed_memory(record);
  if (err != TNK_OK)
    out->len = begin;
  return err;
}

/* ---- Adding ---- */

static tnk__gw_session_t *use_session(tnk__gw_record_t *record,
                                      const char *name) {
  tnk__gw_session_t *session = tnk__gw_record_session(record, name);
  size_t n = strlen(name);

  if (session == NULL) {
    session = tnk__calloc(record->alloc, 1, sizeof(*session) + n + 1);
    if (session == NULL)
      return NULL;
    memcpy(session->name, name, n + 1);
    tnk__list_init(&session->turns);
    if (tnk__gw_map_add(&record->names, &session->node,
                        tnk__gw_hash(0, name, n)) != TNK_OK) {
      tnk__free(record->alloc, session);
      return NULL;
    }
  } else {
    tnk__list_remove(&session->link);
  }
  tnk__list_append(&record->sessions, &session->link);
  return session;
}

int tnk__gw_record_link(tnk__gw_record_t *record, tnk__gw_turn_t *turn,
                        const char *session, uint64_t number, uint64_t key) {
  turn->session = use_session(record, session);
  tnk__list_init(&turn->link);
  tnk__list_init(&turn->recent);
  if (turn->session == NULL ||
      tnk__gw_map_add(&record->numbers, &turn->by_number, number) != TNK_OK) {
    tnk__free(record->alloc, turn);
    return TNK_ENOMEM;
  }
  if (tnk__gw_map_add(&record->keys, &turn->by_key, key_in(session, key)) !=
      TNK_OK) {
    tnk__gw_map_remove(&record->numbers, &turn->by_number);
    tnk__free(record->alloc, turn);
    return TNK_ENOMEM;
  }
  tnk__list_append(&turn->session->turns, &turn->link);
  turn->session->n_turns++;
  turn->session->n_changes++;
  record->n_turns++;
  if (turn->parent != NULL) {
    turn->parent->n_children++;
    turn->n_before = tnk__gw_turn_n_ids(turn->parent);
  }
  if (turn->version > record->version)
    record->version = turn->version;
  if (number >= record->next &&
      (record->shared == NULL ||
       number >> TNK__GW_SHARED_BITS == record->next >> TNK__GW_SHARED_BITS))
    record->next = number + 1;
  return TNK_OK;
}

static int32_t *copy_ids(const tnk__gw_record_t *record,
                         const tnk__gw_turn_new_t *new_) {
  int32_t *ids = tnk__alloc_array(
      record->alloc, new_->n_prompt + new_->n_sampled + 1, sizeof(*ids));

  if (ids == NULL)
    return NULL;
  if (new_->n_prompt > 0)
    memcpy(ids, new_->prompt, new_->n_prompt * sizeof(*ids));
  if (new_->n_sampled > 0)
    memcpy(ids + new_->n_prompt, new_->sampled, new_->n_sampled * sizeof(*ids));
  return ids;
}

/* Write the line of a turn. Without a file it stays in memory. */
static int append(tnk__gw_record_t *record, const tnk__gw_turn_new_t *new_,
                  tnk__gw_turn_t *turn) {
  const tnk__gw_about_t about = {.session = new_->session,
                                 .is = TNK__GW_IS_TURN,
                                 .number = turn->by_number.key};
  tnk__buf_t line;
  int err;

  tnk__buf_init(&line, record->alloc, SIZE_MAX);
  err = tnk__gw_line_turn(new_, turn->by_number.key, &line);
  turn->n_line = line.len;
  if (err == TNK_OK)
    err = write_line(record, &about, line.data, line.len, &turn->offset);
  if (err == TNK_OK && !record->has_file) {
    tnk__buf_trim(&line);
    turn->line = (char *)tnk__buf_take(&line, &turn->n_line);
    record->n_memory += turn->n_line;
  }
  tnk__buf_deinit(&line);
  return err;
}

/* Create a turn in memory before its line is written. A line in the file then
 * always has a turn in memory. */
static int make_turn(tnk__gw_record_t *record, const tnk__gw_turn_new_t *new_,
                     tnk__gw_turn_t **out) {
  tnk__gw_turn_t *turn = tnk__calloc(record->alloc, 1, sizeof(*turn));
  int32_t *ids = copy_ids(record, new_);
  int err = TNK_ENOMEM;

  if (turn != NULL && ids != NULL) {
    turn->parent = new_->parent;
    turn->reward = NAN;
    turn->n_prompt = (uint32_t)new_->n_prompt;
    turn->n_sampled = (uint32_t)new_->n_sampled;
    turn->version = new_->version;
    turn->request = new_->request;
    err = tnk__gw_record_link(record, turn, new_->session, record->next,
                              new_->key);
  } else {
    tnk__free(record->alloc, turn);
  }
  if (err == TNK_OK)
    keep_ids(record, turn, ids);
  else
    tnk__free(record->alloc, ids);
  *out = turn;
  return err;
}

int tnk__gw_record_add(tnk__gw_record_t *record, const tnk__gw_turn_new_t *new_,
                       tnk__gw_turn_t **out) {
  tnk__gw_turn_t *turn;
  int err = make_turn(record, new_, &turn);

  *out = NULL;
  if (err != TNK_OK)
    return err;
  err = append(record, new_, turn);
  if (err != TNK_OK) {
    tnk__gw_record_drop(record, turn);
    return err;
  }
  heed_memory(record);
  tnk__gw_record_heed(record, turn->session);
  *out = turn;
  return TNK_OK;
}

int tnk__gw_record_write(tnk__gw_record_t *record, const tnk__gw_about_t *about,
                         tnk__buf_t *line, int err) {
  uint64_t offset;

  if (err == TNK_OK)
    err = write_line(record, about, line->data, line->len, &offset);
  tnk__buf_deinit(line);
  return err;
}

int tnk__gw_record_reward(tnk__gw_record_t *record, tnk__gw_turn_t *turn,
                          double reward) {
  const tnk__gw_about_t about = {.session = turn->session->name,
                                 .is = TNK__GW_IS_CHANGE};
  tnk__buf_t line;
  int err;

  tnk__buf_init(&line, record->alloc, 4096);
  err = tnk__gw_line_reward(turn->by_number.key, reward, &line);
  err = tnk__gw_record_write(record, &about, &line, err);
  if (err == TNK_OK) {
    turn->reward = reward;
    turn->session->n_changes++;
  }
  return err;
}

int tnk__gw_record_note(tnk__gw_record_t *record, const tnk__gw_about_t *about,
                        const char *type, const char *name, const char *value,
                        uint64_t number) {
  tnk__buf_t line;
  int err;

  tnk__buf_init(&line, record->alloc, 64 * 1024);
  err = tnk__gw_line_note(type, name, value, number, &line);
  return tnk__gw_record_write(record, about, &line, err);
}

int tnk__gw_record_is_removed(const tnk__gw_record_t *record,
                              const char *session) {
  return tnk__gw_gone_has(&record->gone, session);
}

/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_RECORD_H
#define TNK_GATEWAY_RECORD_RECORD_H

#include "gateway/store/about.h"
#include "gateway/record/journal.h"
#include "gateway/record/turn.h"

/*
 * The record: sessions, each a tree of turns. A turn is one prompt with the
 * tokens sampled after it. A turn that continues another one is its child, and
 * its prompt starts with all ids of the parent, unchanged. Other turns have no
 * parent.
 *
 * Everything is a line of the journal. The offset of each turn is in memory.
 * The ids of the latest turns are in memory as well, up to a limit. Without a
 * file the lines are in memory. Beyond the limit the least recently used
 * sessions are dropped. Then the least recently used conversations of the
 * current session are dropped.
 *
 * A shared record has its lines in Valkey or Redis (shared.h) and, as without a
 * file, in memory. All processes read the lines in the order of the store. A
 * process gets 2^32 numbers of its own for its turns, so that no other has
 * them.
 */

typedef struct {
  const tnk_allocator_t *alloc;
  uv_loop_t *loop;  /* NULL: read only */
  const char *path; /* a file, or an address (see where.h); NULL: neither */
  /* Without `loop`: the lines that other processes append can be read with
   * tnk__gw_record_more(). The connection of a shared record is on this loop.
   * NULL: they cannot. */
  uv_loop_t *follows;
  int syncs;         /* sync turns to the disk, see journal.h */
  size_t max_memory; /* bytes of ids, or of lines without a file; 0: 256 MiB */
  size_t max_turns;  /* most turns in memory; 0: 2^20 */
  uint64_t first; /* number of the first turn, unless the file has later ones */
  /* Hash of the vocabulary, see vocabulary.h. A file with a different one is
   * rejected, as no turn can continue its ids. 0 accepts any. */
  uint64_t vocabulary;
  /* Called while the file is read, with each line of a type that is not the
   * record's. Returns TNK_OK, or a code that opening fails with. TNK_EPROTO
   * means that the line is malformed. May be NULL. */
  int (*take)(void *user, const char *type, const json_t *line);
  /* Of a shared record: the store cannot take a turn of this request, because
   * its line is too long. The turn is dropped. Called before those who wait for
   * the line. May be NULL. */
  void (*too_long)(void *user, uint64_t request);
  void *user;
  /* For a shared record with TLS, see shared.h. */
  const char *ca_file;
  const char *cert_file;
  const char *key_file;
  /* Of a shared record: which sessions stay. This process removes the others,
   * with all their lines, from the server and so from all processes. `take` is
   * called with a line of type "removed" before a session is dropped. */
  tnk__gw_keep_t keep;
  const tnk_logger_t *logger;
  char *why; /* receives a sentence if opening fails */
  size_t n_why;
} tnk__gw_record_options_t;

/* Open the record, and read the file of an earlier process. Blocks. Returns
 * TNK_OK, TNK_ENOMEM, or TNK_EFILE, also for a file of a different format. A
 * shared record has the codes of tnk__gw_shared_load() too. */
int tnk__gw_record_open(tnk__gw_record_t **out,
                        const tnk__gw_record_options_t *options);
/* Read the lines that other processes have appended since, if the record was
 * opened with `follows`. `path` is the same as then. A shared record reads them
 * by itself while the loop runs. Returns TNK_OK, or a code with a sentence in
 * `why` after which no more is read. */
int tnk__gw_record_more(tnk__gw_record_t *record, const char *path, char *why,
                        size_t n_why);
/* Write the remaining lines and free the record; then `closed` runs, see
 * tnk__gw_journal_close(). */
void tnk__gw_record_close(tnk__gw_record_t *record, void (*closed)(void *user),
                          void *user);
const tnk_allocator_t *tnk__gw_record_allocator(const tnk__gw_record_t *record);
/* The latest version of the weights that a turn has. */
uint32_t tnk__gw_record_version(const tnk__gw_record_t *record);
/* Returns whether the lines are shared with other processes. */
int tnk__gw_record_is_shared(const tnk__gw_record_t *record);
/* Wait until all lines so far are written. Returns 1 if they are, 0 if `done`
 * will be called from the loop, or a negative code. A code of TNK_ECONN means
 * that the store of a shared record has not answered for too long. */
int tnk__gw_record_wait(tnk__gw_record_t *record, tnk__gw_waiter_t *waiter);
/* Wait until a shared record has all that other processes have written so far,
 * and, if `is_writing`, while its store refuses lines. The same results, but
 * never 1. */
int tnk__gw_record_sync(tnk__gw_record_t *record, tnk__gw_waiter_t *waiter,
                        int is_writing);
/* Read what was written so far without waiting for the next poll. Does nothing
 * if the record is not shared. */
void tnk__gw_record_hurry(tnk__gw_record_t *record);
/* Stop waiting. */
void tnk__gw_record_leave(tnk__gw_waiter_t *waiter);
/* Why the store of a shared record is not usable now, or NULL. */
const char *tnk__gw_record_why(const tnk__gw_record_t *record);
/* How often the store of a shared record has come back as an older copy of
 * itself. */
uint64_t tnk__gw_record_n_older(const tnk__gw_record_t *record);
/* Returns TNK_OK, or a code after which nothing is written any more. */
int tnk__gw_record_error(const tnk__gw_record_t *record);
/* Bytes of the file. 0: there is none. */
uint64_t tnk__gw_record_size(const tnk__gw_record_t *record);

/* The latest turn of a session whose conversation has this key, or NULL. */
tnk__gw_turn_t *tnk__gw_record_find(const tnk__gw_record_t *record,
                                    const char *session, uint64_t key);
tnk__gw_turn_t *tnk__gw_record_turn(const tnk__gw_record_t *record,
                                    uint64_t number);
tnk__gw_session_t *tnk__gw_record_session(const tnk__gw_record_t *record,
                                          const char *name);
size_t tnk__gw_record_n_sessions(const tnk__gw_record_t *record);
/* All sessions, the most recently used last. Nodes are their `link`. */
const tnk__list_t *tnk__gw_record_sessions(const tnk__gw_record_t *record);

/* Number of ids of a turn and all turns before it. */
size_t tnk__gw_turn_n_ids(const tnk__gw_turn_t *turn);
/* Append these ids (i32). Returns TNK_OK, TNK_EFILE or TNK_ENOMEM. */
int tnk__gw_record_ids(tnk__gw_record_t *record, tnk__gw_turn_t *turn,
                       tnk__buf_t *out);
/* Read the line of a turn. The caller releases it with json_decref(). Returns
 * the same codes. */
int tnk__gw_record_line(const tnk__gw_record_t *record,
                        const tnk__gw_turn_t *turn, json_t **out);

/* Returns whether this process of a shared record has given a request or turn
 * this number. */
int tnk__gw_record_is_own(const tnk__gw_record_t *record, uint64_t number);
/* The number that the next turn gets. */
uint64_t tnk__gw_record_next(const tnk__gw_record_t *record);
/* Take a number for a request. No turn gets it. */
uint64_t tnk__gw_record_number(tnk__gw_record_t *record);
/* Add a turn. On failure no trace of it remains: TNK_ENOMEM, or a code of the
 * journal. */
int tnk__gw_record_add(tnk__gw_record_t *record, const tnk__gw_turn_new_t *new_,
                       tnk__gw_turn_t **out);
/* Set the reward of a turn. It replaces an earlier one. */
int tnk__gw_record_reward(tnk__gw_record_t *record, tnk__gw_turn_t *turn,
                          double reward);
/* Write a line of a type that is not the record's, unless `err` is a failure to
 * make it. `about` may be NULL: the line belongs to no session. Frees the
 * content of `line`. Returns `err`, or a code of the journal. */
int tnk__gw_record_write(tnk__gw_record_t *record, const tnk__gw_about_t *about,
                         tnk__buf_t *line, int err);
/* Write an informational line with a `type` and one more member. */
int tnk__gw_record_note(tnk__gw_record_t *record, const tnk__gw_about_t *about,
                        const char *type, const char *name, const char *value,
                        uint64_t number);
/* Whether a session was removed from a shared record, as far as this process
 * knows. What was written for it since was not recorded. */
int tnk__gw_record_is_removed(const tnk__gw_record_t *record,
                              const char *session);

#endif

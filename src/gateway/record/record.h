#ifndef TNK_GATEWAY_RECORD_RECORD_H
#define TNK_GATEWAY_RECORD_RECORD_H

#include "gateway/record/journal.h"
#include "gateway/record/turn.h"

/*
 * What was asked and answered: sessions, each a tree of turns. A turn is one
 * prompt with what was sampled behind it. A turn that goes on from another one
 * is its child, and its prompt begins with all ids of that one, unchanged; one
 * that does not has no parent.
 *
 * Everything is a line of the journal. In memory each turn has its place there,
 * and the latest ones their ids as well, up to a ceiling. Without a file the
 * lines are in memory, and beyond the ceiling sessions are forgotten, and of
 * the one in use the conversations that were not used for longest.
 */

typedef struct {
  const tnk_allocator_t *alloc;
  uv_loop_t *loop;   /* NULL: only to be read */
  const char *path;  /* NULL: nothing is written down */
  int syncs;         /* what is answered is on the disk, see journal.h */
  size_t max_memory; /* of ids, in bytes; 0: 256 MiB */
  size_t max_turns;  /* known at a time; 0: 2^20 */
  uint64_t first;    /* number of the first turn, unless there are later ones */
  /* Of the ids, see vocabulary.h; a file with those of another one is refused,
   * as nothing can go on from them. 0: any. */
  uint64_t vocabulary;
  char *why; /* for a sentence when opening fails */
  size_t n_why;
} tnk__gw_record_options_t;

/* Open, and read what an earlier process has left; blocks. TNK_OK, TNK_EFILE
 * (also for a file that is none of ours), TNK_ENOMEM. */
int tnk__gw_record_open(tnk__gw_record_t **out,
                        const tnk__gw_record_options_t *options);
/* Write what is left and free; then `closed` runs, as of a journal. */
void tnk__gw_record_close(tnk__gw_record_t *record, void (*closed)(void *user),
                          void *user);
const tnk_allocator_t *tnk__gw_record_allocator(const tnk__gw_record_t *record);
/* The latest number of weights that a turn has. */
uint32_t tnk__gw_record_version(const tnk__gw_record_t *record);
tnk__gw_journal_t *tnk__gw_record_journal(const tnk__gw_record_t *record);

/* The latest turn of a session whose conversation has this key, or NULL. */
tnk__gw_turn_t *tnk__gw_record_find(const tnk__gw_record_t *record,
                                    const char *session, uint64_t key);
tnk__gw_turn_t *tnk__gw_record_turn(const tnk__gw_record_t *record,
                                    uint64_t number);
tnk__gw_session_t *tnk__gw_record_session(const tnk__gw_record_t *record,
                                          const char *name);
/* All sessions, the latest used last: nodes are their `link`. */
const tnk__list_t *tnk__gw_record_sessions(const tnk__gw_record_t *record);

/* How many ids a turn has with all before it. */
size_t tnk__gw_turn_n_ids(const tnk__gw_turn_t *turn);
/* Append them, i32. TNK_OK, TNK_EFILE, TNK_ENOMEM. */
int tnk__gw_record_ids(tnk__gw_record_t *record, tnk__gw_turn_t *turn,
                       tnk__buf_t *out);
/* Read the line of a turn; to be dropped with json_decref(). The same codes. */
int tnk__gw_record_line(const tnk__gw_record_t *record,
                        const tnk__gw_turn_t *turn, json_t **out);

/* The number that the next turn gets. */
uint64_t tnk__gw_record_next(const tnk__gw_record_t *record);
/* A number for a request, which no turn gets. */
uint64_t tnk__gw_record_number(tnk__gw_record_t *record);
/* Add a turn. Nothing of it is known when that fails: TNK_ENOMEM, or a code of
 * the journal. */
int tnk__gw_record_add(tnk__gw_record_t *record, const tnk__gw_turn_new_t *new_,
                       tnk__gw_turn_t **out);
/* Give a turn a reward, in place of an earlier one. */
int tnk__gw_record_reward(tnk__gw_record_t *record, tnk__gw_turn_t *turn,
                          double reward);
/* Note something that is for people: a member `type`, with one more. */
int tnk__gw_record_note(tnk__gw_record_t *record, const char *type,
                        const char *name, const char *value, uint64_t number);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_STATE_H
#define TNK_GATEWAY_RECORD_STATE_H

#include "gateway/record/gone.h"
#include "gateway/record/held.h"
#include "gateway/store/shared.h"
#include "gateway/record/turn.h"

/* Internals of a record. Only the files of this folder and tests
 * include this. */

/* Each writer of a shared record has 2^32 numbers of its own. */
enum { TNK__GW_SHARED_BITS = 32 };

struct tnk__gw_record {
  const tnk_allocator_t *alloc;
  tnk__gw_journal_t *journal; /* keeps nothing if the record is shared */
  tnk__gw_shared_t *shared;   /* NULL: the record is a file, or in memory */
  int has_file;
  tnk__gw_map_t numbers;
  tnk__gw_map_t keys;
  tnk__gw_map_t names;
  tnk__list_t sessions;
  tnk__list_t
      recent;      /* turns with ids in memory, the most recently used last */
  size_t n_memory; /* bytes of these ids */
  size_t max_memory;
  size_t n_turns;
  size_t max_turns;
  int has_forgotten; /* some turns were dropped */
  int has_warned;    /* of a turn that the store lacks */
  tnk_logger_t logger;
  tnk__gw_gone_t gone;
  tnk__gw_held_t held; /* of a shared record */
  const char *id;      /* of the entry that is being read; or NULL */
  uint64_t next;
  uint32_t version;    /* latest version of the weights of a turn */
  uint64_t vocabulary; /* hash of the ids; 0: unknown */
  char weights[256];   /* name of the latest weights in the file; "": unknown */
  size_t n_lines;      /* lines read so far */
  int (*take)(void *user, const char *type, const json_t *line);
  void *take_user;
  void (*too_long)(void *user, uint64_t request); /* its user is the same */
  const char *path; /* this and the fields below are set while opening */
  char *why;
  size_t n_why;
};

/* Add a turn to the session and to all tables. Returns TNK_OK, or TNK_ENOMEM
 * after freeing the turn. */
int tnk__gw_record_link(tnk__gw_record_t *record, tnk__gw_turn_t *turn,
                        const char *session, uint64_t number, uint64_t key);
/* Take a line of a shared record. As on_line() in shared.h. */
int tnk__gw_record_take(void *user, const char *line, size_t n, const char *id,
                        int is_own);
/* Drop turns beyond the limits. First the least recently used sessions are
 * dropped as a whole, then the least recently used conversations of `in_use`.
 * The conversation with the latest turn stays, however large it is. A file
 * keeps all lines. */
void tnk__gw_record_heed(tnk__gw_record_t *record, tnk__gw_session_t *in_use);
/* Drop a turn that could not be written, and that has no children. */
void tnk__gw_record_drop(tnk__gw_record_t *record, tnk__gw_turn_t *turn);
/* Drop a session from memory. */
void tnk__gw_record_forget(tnk__gw_record_t *record,
                           tnk__gw_session_t *session);

#endif

#ifndef TNK_GATEWAY_RECORD_STATE_H
#define TNK_GATEWAY_RECORD_STATE_H

#include "gateway/record/journal.h"
#include "gateway/record/turn.h"

/* Inside of a record, for the files of this room alone. */

struct tnk__gw_record {
  const tnk_allocator_t *alloc;
  tnk__gw_journal_t *journal;
  int has_file;
  tnk__gw_map_t numbers;
  tnk__gw_map_t keys;
  tnk__gw_map_t names;
  tnk__list_t sessions;
  tnk__list_t recent; /* turns with ids, the latest used last */
  size_t n_memory;    /* bytes of these ids */
  size_t max_memory;
  size_t n_turns;
  size_t max_turns;
  int has_forgotten; /* some of those that there were */
  uint64_t next;
  uint32_t version;    /* the latest of a turn */
  uint64_t vocabulary; /* of the ids; 0: not told */
  char weights[256];   /* the latest ones, of a file; "": not told */
  size_t n_lines;      /* that were read */
  const char *path;    /* and below: while it is opened */
  char *why;
  size_t n_why;
};

/* Link a turn into everything. TNK_OK, or TNK_ENOMEM: it is free. */
int tnk__gw_record_link(tnk__gw_record_t *record, tnk__gw_turn_t *turn,
                        const char *session, uint64_t number, uint64_t key);
/* Forget what is too much. Sessions that were not used for longest are
 * forgotten as a whole; then of the one in use the conversations that were not.
 * A file has them still. The one with the latest turn stays, however large it
 * is. */
void tnk__gw_record_heed(tnk__gw_record_t *record, tnk__gw_session_t *in_use);
/* Forget a session. */
void tnk__gw_record_forget(tnk__gw_record_t *record,
                           tnk__gw_session_t *session);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_FOLLOW_H
#define TNK_GATEWAY_RECORD_FOLLOW_H

#include "gateway/record/datum.h"

/*
 * Examples of sessions that have ended, while other processes append to the
 * record. Nothing in a record says that a session has ended, so a session has
 * ended when no turn and no reward was added for some time.
 *
 * An example is written once. If a session continues after that, its new
 * branches are written when it is quiet again. The turns that were written
 * before have no advantage in them.
 */
typedef struct {
  int only_rewarded; /* examples without a reward wait for one */
  uint64_t quiet_ms;
  /* Called after the examples of a session were written, with the `user` of
   * `put`. `is_all`: nothing of the session is left. Returns TNK_OK, or a code
   * that ends everything. May be NULL. */
  int (*done)(void *user, const tnk__gw_session_t *session,
              const tnk__gw_branch_t *branches, size_t n, int is_all);
} tnk__gw_follow_options_t;

/* Write the examples that are due. Call it again and again, each time after
 * reading the new lines. A change counts from the first call that sees it.
 * Returns TNK_OK, TNK_EFILE, TNK_ENOMEM, or the code of `put`; then do not call
 * it again. */
int tnk__gw_follow(tnk__gw_record_t *record,
                   const tnk__gw_follow_options_t *options, uint64_t now_ms,
                   tnk__gw_datum_cb put, void *user);

/* ---- What was exported before ---- */

/* The example that ends with this turn was exported. It is not written again.
 * Does nothing if the turn is unknown. */
void tnk__gw_skip(tnk__gw_record_t *record, uint64_t leaf);
/* The same for all examples that have a mark in a shared record. */
void tnk__gw_skip_marked(tnk__gw_record_t *record);
/* Mark examples of a session in a shared record. Waiting for the record then
 * waits for the marks. Does nothing if the record is not shared. Returns
 * TNK_OK, TNK_ENOMEM, or a code of the record. */
int tnk__gw_mark(tnk__gw_record_t *record, const tnk__gw_session_t *session,
                 const tnk__gw_branch_t *branches, size_t n, int is_all);
/* Mark all examples. */
int tnk__gw_mark_all(tnk__gw_record_t *record,
                     const tnk__gw_datum_options_t *options);
/* Whether all examples of a session were written. */
int tnk__gw_is_all(const tnk__gw_session_t *session);

#endif

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
} tnk__gw_follow_options_t;

/* Write the examples that are due. Call it again and again, each time after
 * reading the new lines. A change counts from the first call that sees it.
 * Returns TNK_OK, TNK_EFILE, TNK_ENOMEM, or the code of `put`; then do not call
 * it again. */
int tnk__gw_follow(tnk__gw_record_t *record,
                   const tnk__gw_follow_options_t *options, uint64_t now_ms,
                   tnk__gw_datum_cb put, void *user);

#endif

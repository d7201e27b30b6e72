/* SPDX-License-Identifier: MIT */
#include "gateway/record/follow.h"

#include "lib/base/alloc.h"
#include "tnk/error.h"

static int is_due(tnk__gw_session_t *session, uint64_t quiet_ms,
                  uint64_t now_ms) {
  if (session->n_changes != session->n_seen) {
    session->n_seen = session->n_changes;
    session->seen_ms = now_ms;
    session->is_waiting = 1;
  }
  return session->is_waiting && now_ms - session->seen_ms >= quiet_ms;
}

int tnk__gw_follow(tnk__gw_record_t *record,
                   const tnk__gw_follow_options_t *options, uint64_t now_ms,
                   tnk__gw_datum_cb put, void *user) {
  const tnk__gw_datum_options_t how = {.only_rewarded = options->only_rewarded,
                                       .only_new = 1};
  int err = TNK_OK;

  TNK__LIST_FOREACH (node, tnk__gw_record_sessions(record)) {
    tnk__gw_session_t *session =
        tnk__container_of(node, tnk__gw_session_t, link);

    if (err != TNK_OK || !is_due(session, options->quiet_ms, now_ms))
      continue;
    session->is_waiting = 0;
    err = tnk__gw_datums(record, session, &how, put, user);
  }
  return err;
}

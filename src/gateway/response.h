/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RESPONSE_H
#define TNK_GATEWAY_RESPONSE_H

#include "gateway/state.h"

/*
 * Responses that a client reads again or deletes. A response is made from its
 * turn in the record. A deleted response is hidden from clients. Its turn stays
 * in the record, because agents must not remove examples to train on.
 */

#define TNK__GW_RESPONSES "/v1/responses/"
/* The type of the line that records a deletion. */
#define TNK__GW_DELETED "deleted"

/* Deleted responses in memory. Each needs a turn. */
enum { TNK__GW_MAX_HIDDEN = 1 << 20 };

/* Serve a request for a path below TNK__GW_RESPONSES. */
void tnk__gw_response_serve(const tnk__gw_call_t *call);
/* Find a turn that a client names. Returns NULL if it is of another session, is
 * unknown, or was deleted. */
const tnk__gw_turn_t *tnk__gw_response_find(const tnk_gateway_t *gateway,
                                            const char *session,
                                            uint64_t number);
/* Take a line of type TNK__GW_DELETED, of this gateway or of another one with
 * the same record. Returns TNK_OK, TNK_EPROTO or TNK_ENOMEM. */
int tnk__gw_response_take(tnk_gateway_t *gateway, const json_t *line);
/* Forget the deleted responses of a session that was removed. */
void tnk__gw_responses_drop(tnk_gateway_t *gateway,
                            const tnk__gw_session_t *session);
/* Free what is known of deleted responses. */
void tnk__gw_responses_deinit(tnk_gateway_t *gateway);

/* Replace the items of a request that are named by an id (item_reference) by
 * what this session has recorded. If there are any, *text receives the changed
 * body, for tnk__json_free_string(); else NULL. Returns 0, or -1 with the
 * reason in `fault`. */
int tnk__gw_items_put(tnk__gw_job_t *job, char **text, tnk__gw_fault_t *fault);
/* Append the messages of a turn and of all turns before it. Returns 0 or -1. */
int tnk__gw_history(const tnk__gw_record_t *record, const tnk__gw_turn_t *turn,
                    json_t *to);

#endif

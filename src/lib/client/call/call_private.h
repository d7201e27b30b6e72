/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_CALL_CALL_PRIVATE_H
#define TNK_LIB_CLIENT_CALL_CALL_PRIVATE_H

/*
 * The steps of a call, which call.c puts in order. Other folders never include
 * this.
 */
#include "lib/client/call/call.h"

struct tnk__failure;

/* ---- One attempt: call_send.c ---- */

/* Begin the exchange of one attempt. Returns TNK_OK, or a code if nothing has
 * begun. */
int tnk__call_send(tnk__call_t *call, const char *key);
/* Count a request for the client. */
void tnk__call_count_sent(const tnk__call_t *call);

/* ---- Retries: call_repeat.c ---- */

/* Returns whether another attempt follows that response, after a pause. */
int tnk__call_may_repeat(tnk__call_t *call, const tnk__reply_t *reply,
                         uint64_t *delay_ms);

/* ---- Members that servers refuse: call_extras.c ---- */

/* Remove members from the body that this server has refused before. */
void tnk__call_leave_out(tnk__call_t *call);
/* After a 422. Returns 1 if the body is shorter now and the request must be
 * sent again. */
int tnk__call_shorten(tnk__call_t *call, const tnk__reply_t *reply);
/* After a 2xx: members that were removed stay removed in later requests, and
 * the program is warned once. */
void tnk__call_learn_members(const tnk__call_t *call);
/* The request has ended or was given up: the owner's body is restored. */
void tnk__call_restore_body(tnk__call_t *call);

/* ---- Texts: call_words.c ---- */

/* Detect a response that the service did not send, and write its message to
 * `text`, which must live as long as the reply. */
void tnk__call_read_page(const tnk__call_t *call,
                         const tnk__http_result_t *result, tnk__reply_t *reply,
                         char *text, size_t size);
/* Build the error of a finished call from all that is known. */
tnk__error_t *tnk__call_error(const tnk__call_t *call,
                              const tnk__http_result_t *result,
                              const tnk__reply_t *reply,
                              const struct tnk__failure *failure);

/* ---- Refusals and restarts: call_doubt.c ---- */

/* Hold a call that has ended with this reply. Returns 1 if its `done` comes in
 * a later turn of the loop, 0 if it ends now. */
int tnk__doubt_hold(tnk__call_t *call, const tnk__reply_t *reply);
/* Drop a call that is held. Allocates nothing. */
void tnk__doubt_drop(tnk__call_t *call);
/* Returns whether the refused request was run. */
tnk_ran_t tnk__doubt_ran(const tnk__call_t *call);
/* Record the end of an attempt. */
void tnk__restart_note(tnk__call_t *call, const tnk__http_result_t *result,
                       tnk__outcome_t outcome);
/* Returns whether an attempt must wait now. */
int tnk__restart_holds(const tnk__call_t *call);
/* Pause the call until tnk__restart_over(). */
void tnk__restart_wait(tnk__call_t *call);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_LIMITS_H
#define TNK_LIB_BASE_LIMITS_H

/*
 * Limits on sizes that a peer controls. Input over a limit is rejected with
 * TNK_ETOOBIG or TNK_EPROTO. Most limits are next to the code that enforces
 * them; this file has the limits that several folders share.
 */
#define TNK__MIB ((size_t)1024 * 1024)

#define TNK__MAX_RESPONSE_HEAD ((size_t)64 * 1024) /* status line + headers */
#define TNK__MAX_RESPONSE_HEADERS 256              /* header lines */
#define TNK__MAX_RESPONSE_BODY (1024 * TNK__MIB)   /* as received */
#define TNK__MAX_CALL_ANSWER (4 * TNK__MIB) /* responses other than results */
#define TNK__MAX_UNREAD_BODY (4 * TNK__MIB) /* response read piece by piece */
#define TNK__MAX_REQUEST_HEAD ((size_t)64 * 1024)
#define TNK__MAX_REQUEST_BODY (1024 * TNK__MIB)
#define TNK__MAX_JSON_DEPTH 64
#define TNK__MAX_ERROR_TEXT ((size_t)2048) /* stored text of a server */
#define TNK__MAX_LOG_LINE ((size_t)1024)   /* longer lines are truncated */
#define TNK__MAX_CA_FILE (16 * TNK__MIB)
#define TNK__MAX_CREDENTIAL ((size_t)16 * 1024)
#define TNK__MAX_URL ((size_t)8192)
#define TNK__MAX_REDIRECTS 5
#define TNK__MAX_PROTO_FACTOR 64       /* decoded bytes for each encoded byte */
#define TNK__MAX_STRUCT ((size_t)4096) /* size of a caller's struct */
#define TNK__MAX_CUSTOM_METRICS 1024   /* metrics of a custom loss */
#define TNK__LOOP_BUDGET 64 /* callbacks of a kind in one turn of the loop */

#endif

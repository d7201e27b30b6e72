#ifndef TNK_LIB_BASE_LIMITS_H
#define TNK_LIB_BASE_LIMITS_H

/*
 * Ceilings on what a peer decides: what goes over one of them is refused with
 * TNK_ETOOBIG or TNK_EPROTO. Most limits of our own stand beside the code that
 * keeps them; here are those that several folders share.
 */
#define TNK__MIB ((size_t)1024 * 1024)

#define TNK__MAX_RESPONSE_HEAD ((size_t)64 * 1024) /* status line + headers */
#define TNK__MAX_RESPONSE_HEADERS 256              /* header lines */
#define TNK__MAX_RESPONSE_BODY (1024 * TNK__MIB)   /* as received */
#define TNK__MAX_CALL_ANSWER (4 * TNK__MIB)        /* of all but results */
#define TNK__MAX_UNREAD_BODY                                                   \
  (4 * TNK__MIB) /* of an answer read piece by piece */
#define TNK__MAX_REQUEST_HEAD ((size_t)64 * 1024)
#define TNK__MAX_REQUEST_BODY (1024 * TNK__MIB)
#define TNK__MAX_JSON_DEPTH 64
#define TNK__MAX_ERROR_TEXT ((size_t)2048) /* a server's text, kept */
#define TNK__MAX_LOG_LINE ((size_t)1024)   /* longer lines are cut */
#define TNK__MAX_CA_FILE (16 * TNK__MIB)
#define TNK__MAX_CREDENTIAL ((size_t)16 * 1024)
#define TNK__MAX_URL ((size_t)8192)
#define TNK__MAX_REDIRECTS 5
#define TNK__MAX_PROTO_FACTOR 64 /* decoded bytes an encoded byte may cost */
#define TNK__MAX_STRUCT ((size_t)4096) /* of a caller, by its size */
#define TNK__MAX_CUSTOM_METRICS 1024   /* of a loss of the caller */
#define TNK__LOOP_BUDGET 64 /* callbacks of a kind in a turn of the loop */

#endif

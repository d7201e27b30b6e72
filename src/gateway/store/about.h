/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_STORE_ABOUT_H
#define TNK_GATEWAY_STORE_ABOUT_H

#include <stdint.h>

/* The session of a line of a shared record, and what the line does to it. Lines
 * of a session are removed together. */

enum { TNK__GW_MAX_LINE_SESSION = 129 /* bytes of a name, with its NUL */ };

typedef enum {
  TNK__GW_IS_NOTE = 0,
  TNK__GW_IS_KEY,    /* of a key; it is no use of the session */
  TNK__GW_IS_CHANGE, /* a reward, so there is more to export */
  TNK__GW_IS_TURN,   /* the same of a turn */
  TNK__GW_IS_ASKED,  /* a request begins */
  TNK__GW_IS_ENDED   /* a request ends */
} tnk__gw_is_t;

typedef struct {
  const char *session; /* NULL: none, and the line is never removed */
  tnk__gw_is_t is;
  uint64_t number; /* of the request that begins or ends, or of the turn */
} tnk__gw_about_t;

/* The session of requests that name none. It is never removed, because its name
 * must stay usable. */
#define TNK__GW_UNNAMED "default"

/* Which sessions are removed from a shared record. All 0: none. */
typedef struct {
  uint64_t max_sessions; /* the most recently used ones stay; 0: no limit */
  uint64_t max_age_ms;   /* since the last use; 0: no limit */
  int only_exported;
} tnk__gw_keep_t;

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_TURN_H
#define TNK_GATEWAY_RECORD_TURN_H

#include <jansson.h>

#include "gateway/base/map.h"
#include "lib/base/list.h"

/* Sessions and their turns in memory; see record.h. */

typedef struct tnk__gw_record tnk__gw_record_t;

typedef struct tnk__gw_session {
  tnk__gw_node_t node; /* by the hash of its name */
  tnk__list_t link;    /* in the record, the most recently used last */
  tnk__list_t turns;   /* in order */
  size_t n_turns;
  uint64_t n_changes; /* turns and rewards so far */
  uint64_t n_seen;    /* this field and the next two are for follow.h */
  uint64_t seen_ms;
  int is_waiting;
  /* Of a shared record that is only read: id of the entry with the last turn or
   * reward. */
  char changed[48];
  char name[]; /* NUL-terminated */
} tnk__gw_session_t;

/* The fields of a new turn. Everything is copied. */
typedef struct {
  const char *session;
  uint64_t request;            /* number of its request */
  struct tnk__gw_turn *parent; /* or NULL */
  uint64_t key;                /* key of the conversation with this response */
  const char *api;             /* informational */
  const int32_t *prompt;       /* after the parent's ids */
  size_t n_prompt;
  size_t n_forced; /* trailing ids of the prompt that start a forced call;
                      informational */
  const int32_t *sampled;
  const float *logprobs; /* NULL: the service gave none */
  size_t n_sampled;
  const char *end;      /* "stop", "length" */
  const char *sequence; /* the service's id, or NULL */
  /* Informational: 1 if the response has the requested format, -1 if not, 0 if
   * it is unknown. `misfit` is the reason for -1. It may end within a
   * character. */
  int fits;
  const char *misfit;
  uint32_t attempt; /* number of the attempt; 0: there is only one */
  uint32_t version; /* of the weights */
  int64_t made_s;
  const json_t *messages; /* the new messages, with the response; or NULL */
  const json_t *tools;    /* only if it has no parent; or NULL */
} tnk__gw_turn_new_t;

typedef struct tnk__gw_turn {
  tnk__gw_node_t by_number;
  tnk__gw_node_t by_key;
  tnk__gw_session_t *session;
  struct tnk__gw_turn *parent;
  tnk__list_t link;   /* in the session */
  tnk__list_t recent; /* in the record while the ids are in memory */
  int32_t *ids;       /* prompt, then sampled; NULL: only in the file */
  char *line;         /* without a file: the whole line */
  uint64_t offset;    /* offset of the line in the file */
  size_t n_line;
  uint64_t request;  /* number of its request, which may have several turns */
  double reward;     /* NaN: none */
  size_t n_before;   /* ids of the parent and all turns before it */
  uint32_t n_prompt; /* ids of the prompt after these */
  uint32_t n_sampled;
  uint32_t version;
  uint32_t n_children;
  int is_used;     /* keeps the turn while a large session is cut */
  int is_told;     /* is in an earlier branch, see datum.h */
  int is_exported; /* an example that ends with it was exported, see follow.h */
} tnk__gw_turn_t;

#endif

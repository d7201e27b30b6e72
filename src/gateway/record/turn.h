#ifndef TNK_GATEWAY_RECORD_TURN_H
#define TNK_GATEWAY_RECORD_TURN_H

#include <jansson.h>

#include "gateway/record/map.h"
#include "lib/base/list.h"

/* Sessions and their turns, as they are in memory; see record.h. */

typedef struct tnk__gw_record tnk__gw_record_t;

typedef struct tnk__gw_session {
  tnk__gw_node_t node; /* by the hash of its name */
  tnk__list_t link;    /* in the record, the latest used last */
  tnk__list_t turns;   /* in order */
  size_t n_turns;
  char name[]; /* NUL-terminated */
} tnk__gw_session_t;

/* What a turn is recorded with; all is copied. */
typedef struct {
  const char *session;
  uint64_t request;            /* its number */
  struct tnk__gw_turn *parent; /* or NULL */
  uint64_t key;                /* of the conversation with this answer */
  const char *api;             /* for people */
  const int32_t *prompt;       /* behind the parent's ids */
  size_t n_prompt;
  size_t n_forced; /* ids at its end that begin a call, for people */
  const int32_t *sampled;
  const float *logprobs; /* NULL: the service gave none */
  size_t n_sampled;
  const char *end;      /* "stop", "length" */
  const char *sequence; /* the service's id, or NULL */
  uint32_t version;     /* of the weights */
  int64_t made_s;
  const json_t *messages; /* what is new, with the answer; or NULL */
  const json_t *tools;    /* of a turn without parent; or NULL */
} tnk__gw_turn_new_t;

typedef struct tnk__gw_turn {
  tnk__gw_node_t by_number;
  tnk__gw_node_t by_key;
  tnk__gw_session_t *session;
  struct tnk__gw_turn *parent;
  tnk__list_t link;   /* in the session */
  tnk__list_t recent; /* in the record while its ids are in memory */
  int32_t *ids;       /* prompt, then sampled; NULL: in the file alone */
  char *line;         /* without a file: all of it */
  uint64_t offset;    /* of it in the file */
  size_t n_line;
  uint64_t request;  /* whose answer it is, of several perhaps */
  double reward;     /* NaN: none was posted */
  size_t n_before;   /* ids of the parent, with those before it */
  uint32_t n_prompt; /* behind these */
  uint32_t n_sampled;
  uint32_t version;
  uint32_t n_children;
  int is_used; /* of a session that is too large: not to be forgotten */
  int is_told; /* of branches that are being listed: in an earlier one */
} tnk__gw_turn_t;

#endif

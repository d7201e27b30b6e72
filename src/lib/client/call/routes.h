#ifndef TNK_LIB_CLIENT_CALL_ROUTES_H
#define TNK_LIB_CLIENT_CALL_ROUTES_H

#include <stdint.h>

#include "lib/io/http/client.h"
#include "lib/policy/classify.h"

/* The calls of the protocol, one row each in routes.c. */
typedef enum {
  TNK__ROUTE_CLIENT_CONFIG,
  TNK__ROUTE_DYNAMIC_CONFIG,
  TNK__ROUTE_AUTH_TOKEN,
  TNK__ROUTE_CREATE_SESSION,
  TNK__ROUTE_HEARTBEAT,
  TNK__ROUTE_FINISH,
  TNK__ROUTE_CAPABILITIES,
  TNK__ROUTE_HEALTH,
  TNK__ROUTE_CREATE_MODEL,
  TNK__ROUTE_CREATE_LOSS,
  TNK__ROUTE_CREATE_FROM_STATE,
  TNK__ROUTE_WEIGHTS_INFO,
  TNK__ROUTE_GET_INFO,
  TNK__ROUTE_UNLOAD,
  TNK__ROUTE_CREATE_SAMPLING,
  TNK__ROUTE_GET_SAMPLER,
  TNK__ROUTE_JOIN_SAMPLING,
  TNK__ROUTE_FORWARD_BACKWARD,
  TNK__ROUTE_FORWARD, /* for passes in JSON only */
  TNK__ROUTE_OPTIM_STEP,
  TNK__ROUTE_SAVE_STATE,
  TNK__ROUTE_SAVE_SAMPLER,
  TNK__ROUTE_SAVE_EXTERNAL,
  TNK__ROUTE_LOAD_STATE,
  TNK__ROUTE_SAMPLE,
  TNK__ROUTE_STREAM_SAMPLE,
  TNK__ROUTE_RETRIEVE_FUTURE,
  TNK__ROUTE_RETRIEVE_SAMPLE,
  TNK__ROUTE_RETRIEVE_FUTURES,
  TNK__ROUTE_CANCEL_FUTURE,
  TNK__ROUTE_REST_GET, /* objects that a service keeps, see lib/store/ask.h */
  TNK__ROUTE_REST_POST,
  TNK__ROUTE_REST_PUT,
  TNK__ROUTE_REST_DELETE,
  TNK__ROUTE_ARCHIVE,
  TNK__ROUTE_PUBLISH,
  TNK__ROUTE_UNPUBLISH,
  TNK__ROUTE_SEARCH_SESSIONS,
  TNK__ROUTE_COPY_WEIGHTS,
  TNK__ROUTE_HOSTED,
  TNK__ROUTE_USAGE,
  TNK__ROUTE_STORAGE,
  TNK__ROUTE_AUDIT,
  TNK__ROUTE_GET_KEY,
  TNK__ROUTE_REVOKE_KEY,
  TNK__N_ROUTES
} tnk__route_id_t;

typedef enum { TNK__POST = 0, TNK__GET, TNK__PUT, TNK__DELETE } tnk__method_t;

typedef enum {
  TNK__OPTIONAL = 1,  /* servers may lack it */
  TNK__ABOUT_KEY = 2, /* sent with the key itself, not with a token */
  TNK__POINTS = 4,    /* its answer is a redirection */
  /* A 404 may be about the named object or about the call, so it does not
   * affect later calls. */
  TNK__NAMES = 8,
  TNK__LONG = 16,      /* slow to answer: silence is normal */
  TNK__IN_SESSION = 32 /* reads an object that belongs to the session */
} tnk__trait_t;

/* The constants of one call. Protocol: transport, timeouts. */
typedef struct {
  /* Relative to the base URL; "%s" stands for an id. For calls with their own
   * target: its prefix. */
  const char *path;
  tnk__method_t method;
  uint32_t timeout_ms; /* 0: the service's */
  tnk__call_kind_t kind;
  unsigned traits; /* a set of tnk__trait_t */
  tnk__lane_t lane;
} tnk__route_t;

const tnk__route_t *tnk__route(tnk__route_id_t id);
/* The call's bit in sets of calls. */
uint64_t tnk__route_bit(const tnk__route_t *route);

#endif

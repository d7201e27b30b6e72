#ifndef TNK_GATEWAY_WIRE_ASK_H
#define TNK_GATEWAY_WIRE_ASK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/wire/fault.h"

/*
 * What a client asks for, read from the body of its request. Members that the
 * gateway cannot do are refused by name; those that change nothing here, and
 * those that nobody knows, are passed over.
 */
enum {
  TNK__GW_MAX_STOPS = 16,
  TNK__GW_MAX_CHOICES = 128,
  TNK__GW_MAX_TOP = 20 /* likeliest tokens a place */
};

/* Whether the answer is to be a call. */
typedef enum {
  TNK__GW_FORCE_NOTHING = 0,
  TNK__GW_FORCE_ANY, /* of any tool */
  TNK__GW_FORCE_NAMED
} tnk__gw_force_t;

typedef struct {
  tnk__gw_api_t api;
  json_t *body;         /* texts below lie in it */
  const char *model;    /* NULL: the client names none */
  const char *previous; /* the answer that this one follows, or NULL */
  int64_t n;
  int64_t max_tokens; /* and numbers below: TNK_ABSENT where not given */
  int64_t top_k;
  int64_t seed;
  double temperature;
  double top_p;
  const char *stops[TNK__GW_MAX_STOPS];
  size_t n_stops;
  int is_stream;
  int with_usage; /* at the end of a stream, where that must be asked for */
  int with_logprobs;
  int64_t n_top;
  int no_tools; /* tools are told, and not to be called */
  tnk__gw_force_t force;
  const char *forced_name; /* the tool that is to be called, or NULL */
} tnk__gw_ask_t;

/* Read a body. 0, or -1 with the reason in `fault`; to be dropped either way.
 */
int tnk__gw_ask_read(tnk__gw_ask_t *ask, tnk__gw_api_t api, const void *body,
                     size_t n, tnk__gw_fault_t *fault);
void tnk__gw_ask_drop(tnk__gw_ask_t *ask);

#endif

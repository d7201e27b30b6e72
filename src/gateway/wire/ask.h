/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_WIRE_ASK_H
#define TNK_GATEWAY_WIRE_ASK_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/wire/form.h"

/*
 * The parameters of a request, read from its body. Unsupported parameters are
 * rejected with an error that names them, unknown ones too. Those without an
 * effect on the response are accepted, see known.c.
 */
enum {
  TNK__GW_MAX_STOPS = 16,
  TNK__GW_MAX_CHOICES = 128,
  TNK__GW_MAX_TOP = 20 /* likeliest tokens at a position */
};

/* The rule for calls in the response. */
typedef enum {
  TNK__GW_FORCE_NOTHING = 0,
  TNK__GW_FORCE_ANY, /* of any tool */
  TNK__GW_FORCE_NAMED
} tnk__gw_force_t;

typedef struct {
  tnk__gw_api_t api;
  int only_counts;      /* the tokens of the prompt */
  json_t *body;         /* owns the strings below */
  const char *model;    /* NULL: not named */
  const char *previous; /* id of the response that this one follows, or NULL */
  int64_t n;
  int64_t
      max_tokens; /* this and the numbers below are TNK_ABSENT if not given */
  int64_t top_k;
  int64_t seed;
  double temperature;
  double top_p;
  const char *stops[TNK__GW_MAX_STOPS];
  size_t n_stops;
  int is_stream;
  int with_usage; /* report usage at the end of a stream */
  int with_logprobs;
  int64_t n_top;
  int echo;      /* the response starts with the prompt */
  int continues; /* continue_final_message */
  int no_tools;  /* the prompt lists tools, but none may be called */
  tnk__gw_force_t force;
  const char *forced_name; /* the tool that must be called, or NULL */
  tnk__gw_form_t form;
} tnk__gw_ask_t;

/* Read a body. Returns 0, or -1 with the reason in `fault`. Call
 * tnk__gw_ask_drop() in either case. */
int tnk__gw_ask_read(tnk__gw_ask_t *ask, tnk__gw_api_t api, const void *body,
                     size_t n, tnk__gw_fault_t *fault);
/* Read a body whose tokens are only counted. */
int tnk__gw_ask_read_count(tnk__gw_ask_t *ask, tnk__gw_api_t api,
                           const void *body, size_t n, tnk__gw_fault_t *fault);
void tnk__gw_ask_drop(tnk__gw_ask_t *ask);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_WIRE_ANSWER_H
#define TNK_GATEWAY_WIRE_ANSWER_H

#include "gateway/schema/schema.h"
#include "gateway/wire/ask.h"
#include "gateway/wire/said.h"
#include "tnk/result.h"

/* A response, to be written whole or as the events of a stream. */
typedef enum {
  TNK__GW_END_STOP = 0, /* the model ended it */
  TNK__GW_END_LENGTH,   /* it has max_tokens tokens */
  TNK__GW_END_CALLS     /* it calls tools */
} tnk__gw_end_t;

typedef struct {
  tnk__gw_said_t said;
  /* Bytes of `said` of each kind that the client has already, as it has begun
   * the response. */
  size_t given[TNK__GW_KINDS];
  tnk__gw_end_t end;
  const char *stop; /* the stop string of the request that ended it, or NULL */
  const int32_t *ids;
  const float *logprobs; /* NULL: the service gave none */
  size_t n_ids;
  const tnk_topk_t *top; /* NULL: not requested */
  const int32_t *prompt;
  size_t n_prompt;
  /* Of the prompt, for a response that starts with it. NULL: not requested. */
  const float *prompt_logprobs;
  const tnk_topk_t *prompt_top;
  tnk__gw_fit_t fit;               /* if a format was requested */
  int is_checked;                  /* whether it was, and `fit` is set */
  char misfit[TNK__GW_SCHEMA_WHY]; /* why it does not fit, or "" */
} tnk__gw_choice_t;

typedef struct {
  const tnk__gw_ask_t *ask;
  uint64_t number; /* number of the first choice; the others follow */
  const char *model;
  int64_t made_s; /* seconds since 1970 */
  const tnk__gw_choice_t *choices;
  size_t n_choices;
  size_t n_prompt;
  size_t n_cached;
  /* Decode one id. The bytes may be a part of a character. */
  int (*text_of)(void *user, int32_t id, tnk__buf_t *out);
  void *user;
} tnk__gw_answer_t;

enum { TNK__GW_MAX_NAME = 40 };

/* Make the id by which a client knows a response, such as "chatcmpl-" and the
 * number. `out` has TNK__GW_MAX_NAME bytes. */
void tnk__gw_name(tnk__gw_api_t api, uint64_t number, char *out);
/* Read the number from such an id of any API. Returns 0, or -1 if it is
 * malformed. */
int tnk__gw_name_read(const char *name, uint64_t *number);

#endif

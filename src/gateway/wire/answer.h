#ifndef TNK_GATEWAY_WIRE_ANSWER_H
#define TNK_GATEWAY_WIRE_ANSWER_H

#include "gateway/wire/ask.h"
#include "gateway/wire/said.h"
#include "tnk/result.h"

/* An answer, as it is sent: to be written whole, or as the events of a stream.
 */
typedef enum {
  TNK__GW_END_STOP = 0, /* the model was done */
  TNK__GW_END_LENGTH,   /* there were max_tokens */
  TNK__GW_END_CALLS     /* it wants tools to be called */
} tnk__gw_end_t;

typedef struct {
  tnk__gw_said_t said;
  tnk__gw_end_t end;
  const char *stop; /* the text of the request that it ended at, or NULL */
  const int32_t *ids;
  const float *logprobs; /* NULL: the service gave none */
  size_t n_ids;
  const tnk_topk_t *top; /* NULL: not asked for */
} tnk__gw_choice_t;

typedef struct {
  const tnk__gw_ask_t *ask;
  uint64_t number; /* of the first choice; the others count on */
  const char *model;
  int64_t made_s; /* since 1970 */
  const tnk__gw_choice_t *choices;
  size_t n_choices;
  size_t n_prompt;
  size_t n_cached;
  /* The text of one id, which may be a piece of a character. */
  int (*text_of)(void *user, int32_t id, tnk__buf_t *out);
  void *user;
} tnk__gw_answer_t;

enum { TNK__GW_MAX_NAME = 40 };

/* The name that a client knows an answer by: "chatcmpl-" and the like with the
 * number behind it. `out` has TNK__GW_MAX_NAME bytes. */
void tnk__gw_name(tnk__gw_api_t api, uint64_t number, char *out);
/* The number in a name of any kind; 0, or -1: it is none. */
int tnk__gw_name_read(const char *name, uint64_t *number);

#endif

#ifndef TNK_GATEWAY_RECORD_DATUM_H
#define TNK_GATEWAY_RECORD_DATUM_H

#include "gateway/record/record.h"

/*
 * Training examples of what was recorded, one a line, in the protocol's JSON:
 * one for each turn that nothing goes on from, with all turns before it, for
 * the loss importance_sampling: target_tokens, logprobs, advantages. A sampled
 * token has the reward of its turn as its advantage, or that of the next turn
 * behind it which has one; others have none. What several examples begin with
 * counts in the first of them alone.
 */
typedef struct {
  int only_rewarded; /* leave out examples without any reward */
} tnk__gw_datum_options_t;

/* Called with each line, which ends in a line feed. 0, or a code that ends it.
 */
typedef int (*tnk__gw_datum_cb)(void *user, const char *line, size_t n);

/* Write those of a session, or of all where that is NULL. TNK_OK, TNK_EFILE,
 * TNK_ENOMEM, or the code of `put`. */
int tnk__gw_datums(tnk__gw_record_t *record, const tnk__gw_session_t *session,
                   const tnk__gw_datum_options_t *options, tnk__gw_datum_cb put,
                   void *user);

#endif

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
 *
 * Each tells the session and its `turns`: the number, the version of the
 * weights, the place of the sampled tokens in the targets, the reward; and
 * where the service has given all sequences an id, where its tokens are from
 * (`model_input_spans`, `loss_fn_input_spans`).
 */
typedef struct {
  int only_rewarded; /* leave out examples without any reward */
} tnk__gw_datum_options_t;

/* Called with each line, which ends in a line feed. 0, or a code that ends it.
 */
typedef int (*tnk__gw_datum_cb)(void *user, const char *line, size_t n);

/* What one example is made of. */
typedef struct {
  uint64_t leaf; /* the number of its last turn */
  uint64_t told; /* that of the last one that is in an earlier one; 0: none */
} tnk__gw_branch_t;

/* List those of a session, or of all where that is NULL: tnk__gw_branch_t, at
 * the end of `out`. Only memory is looked at. TNK_OK or TNK_ENOMEM. */
int tnk__gw_branches(tnk__gw_record_t *record, const tnk__gw_session_t *session,
                     const tnk__gw_datum_options_t *options, tnk__buf_t *out);
/* Write one, unless it was forgotten meanwhile. TNK_OK, TNK_EFILE, TNK_ENOMEM,
 * or the code of `put`. */
int tnk__gw_datum(tnk__gw_record_t *record, const tnk__gw_branch_t *branch,
                  tnk__gw_datum_cb put, void *user);
/* Write those of a session, or of all where that is NULL. TNK_OK, TNK_EFILE,
 * TNK_ENOMEM, or the code of `put`. */
int tnk__gw_datums(tnk__gw_record_t *record, const tnk__gw_session_t *session,
                   const tnk__gw_datum_options_t *options, tnk__gw_datum_cb put,
                   void *user);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_DATUM_H
#define TNK_GATEWAY_RECORD_DATUM_H

#include "gateway/record/record.h"

/*
 * Training examples from the record, one a line, in the protocol's JSON. There
 * is one for each turn that no other turn continues, with all turns before it.
 * The loss is importance_sampling: target_tokens, logprobs, advantages. The
 * advantage of a sampled token is the reward of its turn. If that turn has
 * none, it is the reward of the next turn that has one. All other tokens have
 * none. A turn that several examples share has an advantage in the first of
 * them only.
 *
 * Each line also has the session and its `turns`: number, version of the
 * weights, position of the sampled tokens in the targets, and reward. If the
 * service has given all sequences an id, the line also has the origin of its
 * tokens (`model_input_spans`, `loss_fn_input_spans`).
 */
typedef struct {
  int only_rewarded; /* leave out examples without any reward */
  /* Leave out examples that were listed before with this option. A turn of one
   * of them counts as shared, and its reward as none. */
  int only_new;
} tnk__gw_datum_options_t;

/* Called with each line, including its line feed. Returns 0, or a code that
 * ends the export. */
typedef int (*tnk__gw_datum_cb)(void *user, const char *line, size_t n);

/* Identifies one example. */
typedef struct {
  uint64_t leaf; /* number of its last turn */
  uint64_t told; /* number of the last turn shared with an earlier example; 0:
                    none */
} tnk__gw_branch_t;

/* Append the branches (tnk__gw_branch_t) of a session to `out`. NULL means all
 * sessions. Does not read the file. Returns TNK_OK or TNK_ENOMEM. */
int tnk__gw_branches(tnk__gw_record_t *record, const tnk__gw_session_t *session,
                     const tnk__gw_datum_options_t *options, tnk__buf_t *out);
/* Write one example, unless its turns were dropped meanwhile. Returns TNK_OK,
 * TNK_EFILE, TNK_ENOMEM, or the code of `put`. */
int tnk__gw_datum(tnk__gw_record_t *record, const tnk__gw_branch_t *branch,
                  tnk__gw_datum_cb put, void *user);
/* Write all examples of a session. NULL means all sessions. Returns TNK_OK,
 * TNK_EFILE, TNK_ENOMEM, or the code of `put`. */
int tnk__gw_datums(tnk__gw_record_t *record, const tnk__gw_session_t *session,
                   const tnk__gw_datum_options_t *options, tnk__gw_datum_cb put,
                   void *user);

#endif

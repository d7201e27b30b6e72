/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_RECORD_ATIF_H
#define TNK_GATEWAY_RECORD_ATIF_H

#include "gateway/record/datum.h"

/*
 * Trajectories from the record, one a line, in Harbor's agent trajectory
 * interchange format (ATIF). There is one for each branch of a conversation, as
 * of training examples. Its steps are the messages. The result of a tool is in
 * the step that called the tool. A sampled response has its tokens with their
 * log-probabilities, and in `extra` its turn, the version of its weights, and
 * its reward. The ids of prompts are left out, as each prompt repeats those
 * before it; training examples have them.
 */

/* Write the trajectories of all sessions. Returns TNK_OK, TNK_EFILE,
 * TNK_ENOMEM, or the code of `put`. */
int tnk__gw_atif(tnk__gw_record_t *record,
                 const tnk__gw_datum_options_t *options, tnk__gw_datum_cb put,
                 void *user);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_PASS_RESULT_H
#define TNK_LIB_WIRE_MESSAGE_PASS_RESULT_H

#include "lib/wire/message/results.h"

/*
 * The result of one forward or backward request, and the combination of several
 * results. No function here logs. Warnings are in pass->warnings.
 */

/* Read the response to one chunk, as protobuf or JSON. On success free *out
 * with tnk__pass_result_free(). The result does not reference `body`, and its
 * size is proportional to it. Returns TNK_EPROTO for malformed input, or
 * TNK_ENOMEM. */
int tnk__pass_result_read(tnk_pass_t **out, const tnk_allocator_t *alloc,
                          const void *body, size_t n, int is_proto);

/*
 * Combine the results of all chunks of a pass, in order: outputs are appended,
 * and metrics are reduced according to the suffix of their key. Use it for a
 * single chunk, too. `parts` has at least one element. `n_data` has the number
 * of examples of each chunk, or is NULL. It weights the means if a server sent
 * no outputs.
 *
 * On success *out owns the parts. On failure (TNK_ENOMEM) the caller still
 * does. A metric that cannot be reduced is omitted with a warning; the result
 * is still valid.
 */
int tnk__pass_result_combine(tnk_pass_t **out, const tnk_allocator_t *alloc,
                             tnk_pass_t *const *parts, const size_t *n_data,
                             size_t n);

/* Compute the loss of a pass with cross_entropy over this data, for servers
 * that send no metrics. Does nothing if that is impossible. */
void tnk__pass_fill_loss(tnk_pass_t *pass, const char *loss_fn,
                         const tnk_datum_t *data, size_t n_data);

#endif

#ifndef TNK_LIB_WIRE_MESSAGE_PASS_RESULT_H
#define TNK_LIB_WIRE_MESSAGE_PASS_RESULT_H

#include "lib/wire/message/results.h"

/*
 * The result of one forward or backward request, and the joining of several.
 * No function here logs; what is odd but no failure is in pass->warnings.
 */

/* Read the answer to one slice, as protobuf or as JSON. On success *out is
 * freed with tnk__pass_result_free(). The result keeps nothing of `body`, and
 * takes memory in proportion to it. TNK_EPROTO for what is malformed;
 * TNK_ENOMEM. */
int tnk__pass_result_read(tnk_pass_t **out, const tnk_allocator_t *alloc,
                          const void *body, size_t n, int is_proto);

/*
 * Join the results of all slices of a pass, in order: outputs are appended,
 * metrics reduced as the ending of each key says. Also to be applied to a
 * single slice. `parts` has at least one, and `n_data` the number of examples
 * of each slice, which weigh the means when a server has sent no outputs; it
 * may be NULL.
 *
 * On success *out owns the parts. On failure, TNK_ENOMEM, the caller still
 * does. A metric that cannot be reduced never costs the result: it is left out,
 * with a warning.
 */
int tnk__pass_result_combine(tnk_pass_t **out, const tnk_allocator_t *alloc,
                             tnk_pass_t *const *parts, const size_t *n_data,
                             size_t n);

/* Compute the loss of a pass with cross_entropy over this data, for servers
 * that send no metrics. Where that cannot be done, nothing happens. */
void tnk__pass_fill_loss(tnk_pass_t *pass, const char *loss_fn,
                         const tnk_datum_t *data, size_t n_data);

#endif

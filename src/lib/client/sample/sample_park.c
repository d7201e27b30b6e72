/*
 * Samples of a sampler that the server has lost and that is being recovered.
 * They wait, and are then submitted to the new sampler under new numbers, with
 * the same prompts and seeds.
 *
 *   any --the sampler is lost--> parked, holding nothing
 *   parked --it is there again--> waiting, as from the start
 *   parked --it cannot be made--> rejected
 */
#include "lib/base/alloc.h"
#include "lib/client/sample/sample.h"

static tnk__sample_t *sample_at(tnk__list_t *node) {
  return tnk__container_of(tnk__member_of(node), tnk__sample_t, member);
}

void tnk__samples_park(tnk_sampling_t *sampling) {
  TNK__LIST_FOREACH_SAFE (node, next, &sampling->samples)
    if (tnk__sample_may_park(sample_at(node)))
      tnk__sample_park(sample_at(node));
}

void tnk__samples_resume(tnk_sampling_t *sampling, tnk__error_t *error) {
  const tnk__session_t *session = sampling->session;

  TNK__LIST_FOREACH_SAFE (node, next, &sampling->samples) {
    tnk__sample_t *sample = sample_at(node);

    if (!sample->is_parked ||
        tnk__sample_retarget(&sample->body, &sample->seq_place, sampling->id) !=
            TNK_OK) {
      tnk__member_abort(&sample->member, error);
      continue;
    }
    sample->is_parked = 0;
    sample->n_unknown = 0;
    session->context->counters.n_resubmits++;
    tnk__sample_go_later(sample);
  }
}

void tnk__samples_refuse(tnk_sampling_t *sampling, tnk__error_t *error) {
  TNK__LIST_FOREACH_SAFE (node, next, &sampling->samples)
    if (sample_at(node)->is_parked)
      tnk__member_abort(tnk__member_of(node), error);
}

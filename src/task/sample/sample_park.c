/*
 * Samples of a sampler that the server has lost, and that is made again: they
 * wait for that, and are then submitted to the new one under new numbers, with
 * the same prompts and seeds.
 *
 *   any --the sampler is lost--> parked, holding nothing
 *   parked --it is there again--> waiting, as from the start
 *   parked --it cannot be made--> rejected
 */
#include "base/alloc.h"
#include "task/sample/sample.h"

static tnk__sample_t *sample_at(tnk__list_t *node) {
  return tnk__container_of(tnk__member_of(node), tnk__sample_t, member);
}

/* One whose bytes are gone, or that is to report the first failure, fails as
 * the server says. */
int tnk__sample_may_park(const tnk__sample_t *sample) {
  const tnk_sampling_t *sampling = sample->sampling;

  return sampling != NULL && sampling->is_lost && !sampling->closing &&
         sample->promise != NULL &&
         (sampling->model_path != NULL || sampling->is_of_base) &&
         tnk__sample_may_resubmit_lost(sample);
}

void tnk__sample_park(tnk__sample_t *sample) {
  tnk__session_t *session = sample->job.future.session;

  if (sample->is_parked)
    return;
  tnk__sample_settle(sample, 0);
  tnk__job_cancel(&sample->job);
  tnk__sample_give_back(sample);
  tnk__sample_leave(sample);
  tnk__sample_forget_ids(sample);
  sample->has_seq = 0;
  sample->is_parked = 1;
  sample->since_ms = tnk__context_now_ms(session->context);
  tnk__call_waits(&sample->job.future.call, TNK_WAITS_FOR_SESSION);
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
      sample->member.abort(&sample->member, error);
      continue;
    }
    sample->is_parked = 0;
    session->context->counters.n_resubmits++;
    tnk__sample_go_later(sample);
  }
}

void tnk__samples_refuse(tnk_sampling_t *sampling, tnk__error_t *error) {
  TNK__LIST_FOREACH_SAFE (node, next, &sampling->samples)
    if (sample_at(node)->is_parked)
      tnk__member_of(node)->abort(tnk__member_of(node), error);
}

/* SPDX-License-Identifier: MIT */
/*
 * The waits of a sample before it is submitted, in the order of
 * tnk__sample_need_t. It is in one queue at most: `waits_for` names the queue,
 * `holds` the resources it has. After a grant it continues with the next need
 * in the next turn of the loop.
 */
#include "lib/client/sample/sample.h"

#include "lib/base/alloc.h"
#include "lib/base/log.h"
#include "lib/policy/billing.h"

enum { THROTTLED_COST = 20 };

static tnk__session_t *session_of(const tnk__sample_t *sample) {
  return tnk__session_of(sample->job.future.call.endpoint);
}

static tnk__waiter_t *waiter_of(tnk__sample_t *sample) {
  return &tnk__job_payer(&sample->job)->waiter;
}

static tnk__sample_t *sample_of(tnk__waiter_t *waiter) {
  return tnk__container_of(tnk__job_of_waiter(waiter), tnk__sample_t, job);
}

static int holds(const tnk__sample_t *sample, tnk__sample_need_t need) {
  return (sample->holds & 1 << need) != 0;
}

static void hold(tnk__sample_t *sample, tnk__sample_need_t need) {
  sample->holds = (uint8_t)(sample->holds | 1 << need);
}

/* Returns 1 if it was held until now. */
static int let_go(tnk__sample_t *sample, tnk__sample_need_t need) {
  int had = holds(sample, need);

  sample->holds = (uint8_t)(sample->holds & ~(1 << need));
  return had;
}

/* Join a queue. */
static void wait_for(tnk__sample_t *sample, tnk__sample_need_t need) {
  static const tnk_waits_for_t names[] = {
      [TNK__SAMPLE_RUNNING] = TNK_WAITS_FOR_SLOT,
      [TNK__SAMPLE_SLOT] = TNK_WAITS_FOR_SLOT,
      [TNK__SAMPLE_GATE] = TNK_WAITS_FOR_BACK_OFF,
      [TNK__SAMPLE_THROTTLE] = TNK_WAITS_FOR_SLOT,
      [TNK__SAMPLE_BYTES] = TNK_WAITS_FOR_BYTES};

  sample->waits_for = (uint8_t)need;
  tnk__call_waits(&sample->job.future.call, names[need]);
}

/* ---- Queues ---- */

/* The gate and the budget have no semaphore. */
static tnk__semaphore_t *semaphore_of(tnk__session_t *session,
                                      tnk__sample_need_t need) {
  switch (need) {
  case TNK__SAMPLE_RUNNING:
    return &session->limits.sample_running;
  case TNK__SAMPLE_SLOT:
    return &session->limits.sample_slots;
  default:
    return &session->limits.sample_throttle;
  }
}

static void leave_queue(tnk__sample_t *sample) {
  tnk__session_t *session = session_of(sample);
  tnk__sample_need_t need = sample->waits_for;

  sample->waits_for = TNK__SAMPLE_NOTHING;
  if (need == TNK__SAMPLE_NOTHING)
    return;
  if (need == TNK__SAMPLE_GATE)
    tnk__gate_cancel(&session->limits.gate, waiter_of(sample));
  else if (need == TNK__SAMPLE_BYTES)
    tnk__budget_release(&session->limits.sample_bytes,
                        tnk__job_payer(&sample->job));
  else
    tnk__semaphore_cancel(semaphore_of(session, need), waiter_of(sample));
}

static void on_go(tnk__deferred_t *go) {
  tnk__sample_go_on(
      tnk__container_of(tnk__job_of_deferred(go), tnk__sample_t, job));
}

void tnk__sample_go_later(tnk__sample_t *sample) {
  tnk__deferred_t *go = tnk__job_deferred(&sample->job);

  go->fn = on_go;
  tnk__defer(session_of(sample)->context, go);
}

static void on_granted(tnk__waiter_t *waiter) {
  tnk__sample_t *sample = sample_of(waiter);

  if (sample->waits_for != TNK__SAMPLE_GATE)
    hold(sample, sample->waits_for);
  sample->waits_for = TNK__SAMPLE_NOTHING;
  tnk__sample_go_later(sample);
}

/* Returns 1 if it holds the slot, 0 if it waits in the queue. A sample that
 * returns after a refusal keeps its ticket. NULL: a slot that is not returned
 * after refusals. */
static int take(tnk__sample_t *sample, tnk__sample_need_t need,
                uint64_t *ticket) {
  tnk__waiter_t *waiter = waiter_of(sample);
  int has;

  if (holds(sample, need))
    return 1;
  waiter->granted = on_granted;
  waiter->ticket = ticket != NULL ? *ticket : 0;
  has = tnk__semaphore_acquire(semaphore_of(session_of(sample), need), waiter);
  if (ticket != NULL)
    *ticket = waiter->ticket;
  if (has)
    hold(sample, need);
  else
    wait_for(sample, need);
  return has;
}

static int pass_gate(tnk__sample_t *sample) {
  waiter_of(sample)->granted = on_granted;
  if (tnk__gate_pass(&session_of(sample)->limits.gate, waiter_of(sample)))
    return 1;
  wait_for(sample, TNK__SAMPLE_GATE);
  return 0;
}

/* ---- The budget ---- */

static uint64_t cost(tnk__payer_t *payer) {
  const tnk__sample_t *sample = sample_of(&payer->waiter);
  tnk__session_t *session = session_of(sample);
  int is_throttled = tnk__limiter_is_recent(
      &session->limits.limiter, tnk__context_now_ms(session->context));

  return sample->n_bytes * (is_throttled ? THROTTLED_COST : 1);
}

static int pay(tnk__sample_t *sample) {
  tnk__payer_t *payer = tnk__job_payer(&sample->job);

  if (holds(sample, TNK__SAMPLE_BYTES))
    return 1;
  payer->waiter.granted = on_granted;
  payer->cost = cost;
  if (tnk__budget_acquire(&session_of(sample)->limits.sample_bytes, payer)) {
    hold(sample, TNK__SAMPLE_BYTES);
    return 1;
  }
  wait_for(sample, TNK__SAMPLE_BYTES);
  return 0;
}

static void give_back_bytes(tnk__sample_t *sample) {
  if (let_go(sample, TNK__SAMPLE_BYTES))
    tnk__budget_release(&session_of(sample)->limits.sample_bytes,
                        tnk__job_payer(&sample->job));
}

/* ---- Taking and giving back ---- */

void tnk__sample_give_back(tnk__sample_t *sample) {
  tnk__session_t *session = session_of(sample);

  leave_queue(sample);
  give_back_bytes(sample);
  if (let_go(sample, TNK__SAMPLE_THROTTLE))
    tnk__semaphore_release(&session->limits.sample_throttle);
  if (let_go(sample, TNK__SAMPLE_SLOT))
    tnk__semaphore_release(&session->limits.sample_slots);
}

void tnk__sample_leave(tnk__sample_t *sample) {
  if (let_go(sample, TNK__SAMPLE_RUNNING))
    tnk__semaphore_release(&session_of(sample)->limits.sample_running);
}

/* ---- Recovery of a sampler ---- */

/* A sample without its body, and the sample that reports the first failure,
 * fail with the server's error. */
int tnk__sample_may_park(const tnk__sample_t *sample) {
  const tnk_sampling_t *sampling = sample->sampling;

  return sampling != NULL && sampling->is_lost && !sampling->closing &&
         sample->promise != NULL &&
         (sampling->model_path != NULL || sampling->is_of_base) &&
         tnk__sample_may_resubmit_lost(sample);
}

void tnk__sample_park(tnk__sample_t *sample) {
  tnk__session_t *session = tnk__session_of(sample->job.future.call.endpoint);

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

/* A heartbeat has shown that the session exists. */
int tnk__sample_insists(tnk__sample_t *sample, const tnk__reply_t *reply) {
  enum { MAX_UNKNOWN = 2 };
  tnk__session_t *session = session_of(sample);

  if (reply->status != 404 || session->config->options.recovery != TNK_YES ||
      session->endpoint.ended_session != NULL ||
      sample->sampling->foreign != NULL || sample->n_unknown == MAX_UNKNOWN ||
      !tnk__sample_may_resubmit_lost(sample))
    return 0;
  sample->n_unknown++;
  tnk__sample_park(sample);
  sample->is_parked = 0;
  session->context->counters.n_resubmits++;
  tnk__sample_go_later(sample);
  return 1;
}

/* ---- All needs in order ---- */

/* It entered when there were more second slots. Now it must queue again, and
 * pay the higher price. Returns 1 if it may stay. */
static int still_fits(tnk__sample_t *sample) {
  tnk__semaphore_t *throttle = &session_of(sample)->limits.sample_throttle;

  if (throttle->n_held <= throttle->limit)
    return 1;
  give_back_bytes(sample);
  let_go(sample, TNK__SAMPLE_THROTTLE);
  tnk__semaphore_release(throttle);
  take(sample, TNK__SAMPLE_THROTTLE, &sample->throttle_ticket);
  return 0;
}

/* A sample that waits for the end of a back-off holds none of the scarce second
 * slots. The limiter is checked again right before the bytes are sent. */
void tnk__sample_go_on(tnk__sample_t *sample) {
  if (sample->waits_for != TNK__SAMPLE_NOTHING || sample->is_parked)
    return;
  if (tnk__sample_may_park(sample)) {
    tnk__sample_park(sample);
    return;
  }
  if (!take(sample, TNK__SAMPLE_RUNNING, NULL) ||
      !take(sample, TNK__SAMPLE_SLOT, &sample->slot_ticket))
    return;
  if (!holds(sample, TNK__SAMPLE_THROTTLE) && !pass_gate(sample))
    return;
  if (!take(sample, TNK__SAMPLE_THROTTLE, &sample->throttle_ticket) ||
      !pay(sample))
    return;
  if (still_fits(sample) && pass_gate(sample))
    tnk__sample_submit(sample);
}

/* ---- A back-off ---- */

/* 429 and 402: all samples of the tenant wait. This one is first in line
 * afterwards. */
void tnk__sample_back_off(tnk__sample_t *sample, const tnk__reply_t *reply) {
  tnk__session_t *session = session_of(sample);
  uint64_t pause_ms = reply->retry_after_ms != 0
                          ? reply->retry_after_ms
                          : tnk__limiter_default_pause_ms(sample->n_bytes);

  if (reply->status == 402 && pause_ms < TNK__BILLING_DELAY_MS)
    pause_ms = TNK__BILLING_DELAY_MS;
  /* Log once per back-off: all samples in flight are refused alike. */
  if (tnk__limiter_wait_ms(&session->limits.limiter,
                           tnk__context_now_ms(session->context)) == 0)
    tnk__log(&session->context->logger, TNK_LOG_INFO, "sampling",
             "%s: all samples wait for %llu ms: %s",
             /* A canceled sample may outlive its client. */
             sample->promise != NULL ? sample->sampling->id : session->start.id,
             (unsigned long long)pause_ms, reply->error->pub.text);
  tnk__limiter_back_off(&session->limits.limiter,
                        tnk__context_now_ms(session->context) + pause_ms);
}

/* ---- Reasons of a wait ---- */

static size_t n_ahead(const tnk__sample_t *sample, const tnk__list_t *queue) {
  size_t n = 0;

  TNK__LIST_FOREACH (link, queue) {
    if (link == &tnk__job_payer_const(&sample->job)->waiter.link)
      break;
    n++;
  }
  return n;
}

static void explain_semaphore(const tnk__sample_t *sample, const char *what,
                              tnk__text_t *out) {
  const tnk__semaphore_t *sem =
      semaphore_of(session_of(sample), sample->waits_for);

  tnk__text_printf(out, "waits for one of the %zu %s, with %zu ahead of it",
                   sem->limit, what, n_ahead(sample, &sem->waiters));
}

static void explain_gate(const tnk__sample_t *sample, tnk__text_t *out) {
  tnk__session_t *session = session_of(sample);

  tnk__text_printf(out, "waits for the end of a back-off, in ");
  tnk__text_time(out,
                 tnk__limiter_wait_ms(&session->limits.limiter,
                                      tnk__context_now_ms(session->context)));
  tnk__text_printf(out, ", with %zu ahead of it",
                   n_ahead(sample, &session->limits.gate.waiting));
}

static void explain_budget(const tnk__sample_t *sample, tnk__text_t *out) {
  const tnk__budget_t *budget = &session_of(sample)->limits.sample_bytes;

  tnk__text_printf(out,
                   "waits for bytes of the dispatch budget (%lld of %lld are "
                   "taken, %zu ahead of it)",
                   (long long)(budget->size - budget->balance),
                   (long long)budget->size, n_ahead(sample, &budget->waiters));
}

static int explain_wait(const tnk__sample_t *sample, tnk__text_t *out) {
  switch (sample->waits_for) {
  case TNK__SAMPLE_RUNNING:
    explain_semaphore(sample, "slots for samples under way", out);
    break;
  case TNK__SAMPLE_SLOT:
    explain_semaphore(sample, "slots for submissions", out);
    break;
  case TNK__SAMPLE_GATE:
    explain_gate(sample, out);
    break;
  case TNK__SAMPLE_THROTTLE:
    explain_semaphore(sample, "slots that a recent back-off has left", out);
    break;
  case TNK__SAMPLE_BYTES:
    explain_budget(sample, out);
    break;
  default:
    return 0;
  }
  tnk__text_printf(out, ", since ");
  tnk__text_time(out, tnk__context_now_ms(session_of(sample)->context) -
                          sample->since_ms);
  return 1;
}

void tnk__sample_explain(const void *arg, tnk__text_t *out) {
  const tnk__sample_t *sample = arg;
  const tnk__timer_t *timer = tnk__job_timer_const(&sample->job);
  const uint64_t now = tnk__context_now_ms(session_of(sample)->context);

  tnk__text_printf(
      out, "%s: ", tnk__sample_name((tnk__sample_wants_t)sample->wants));
  if (sample->is_parked) {
    tnk__text_printf(out, "waits for its sampler to be made again, since ");
    tnk__text_time(out, now - sample->since_ms);
  } else if (explain_wait(sample, out)) {
    ; /* also between two attempts */
  } else if (sample->wants == TNK__SAMPLE_STREAM &&
             tnk__job_is_active(&sample->job)) {
    tnk__streamed_explain(sample, out);
  } else if (tnk__job_is_active(&sample->job)) {
    tnk__job_explain(&sample->job, out);
  } else if (tnk__timer_is_active(timer)) {
    tnk__text_printf(out, "is submitted again (resubmission %u) in ",
                     sample->n_resubmits);
    tnk__text_time(out, tnk__timer_left_ms(timer, now));
  } else {
    tnk__text_printf(out, "is about to be submitted");
  }
}

/* ---- Samples of a lost sampler ---- */

/*
 * Samples of a sampler that the server has lost and that is being recovered.
 * They wait, and are then submitted to the new sampler under new numbers, with
 * the same prompts and seeds.
 *
 *   any --the sampler is lost--> parked, holding nothing
 *   parked --it is there again--> waiting, as from the start
 *   parked --it cannot be made--> rejected
 */

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

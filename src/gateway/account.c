/* SPDX-License-Identifier: MIT */
/* Charges requests to the key of their session: what they may use, and what
 * they have used. */
#include <inttypes.h>

#include "gateway/account.h"
#include "gateway/reply.h"
#include "tnk/error.h"

/* This is more than the limit of any key, and far from an overflow. */
#define TOO_MUCH (INT64_C(1) << 62)

/* `n_cached` of the prompt's tokens were cache hits. */
static uint64_t cost_of(const tnk_gateway_t *gateway, uint64_t n_prompt,
                        uint64_t n_cached, uint64_t n_sampled) {
  double cost = (double)(n_prompt - n_cached) * gateway->pico_prompt +
                (double)n_cached * gateway->pico_cached +
                (double)n_sampled * gateway->pico_sampled;

  /* Round up, so that the sum is not below the real cost. */
  return cost < (double)TOO_MUCH
             ? (uint64_t)cost + (cost > (double)(uint64_t)cost)
             : (uint64_t)TOO_MUCH;
}

static int refuse(const char *what, uint64_t left, tnk__gw_fault_t *fault) {
  if (what[0] == 'U')
    (void)tnk__gw_fault(fault, 403, NULL,
                        "this key has %.6f USD left, and the request may cost "
                        "more",
                        (double)left / TNK__GW_PICO);
  else
    (void)tnk__gw_fault(fault, 403, NULL,
                        "this key has %" PRIu64
                        " %s left, and the request may use more",
                        left, what);
  fault->code = "key_limit";
  return -1;
}

/* The most that these prompts can use. Each is read once by the service,
 * whatever the number of its responses. */
static tnk__gw_use_t most_of(const tnk__gw_job_t *job, uint64_t n_prompts,
                             uint64_t n_tokens) {
  uint64_t n_turns = n_prompts * (uint64_t)job->ask.n;
  uint64_t n_sampled = n_turns * (uint64_t)tnk__gw_max_tokens(job);

  return (tnk__gw_use_t){.n_requests = 1,
                         .n_tokens = n_tokens + n_sampled,
                         .n_turns = n_turns,
                         .pico = cost_of(job->gateway, n_tokens, 0, n_sampled)};
}

int tnk__gw_account_begin(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  const tnk__gw_use_t most =
      most_of(job, tnk__gw_n_prompts(job), job->ids.len / sizeof(int32_t));
  const char *what = "";
  uint64_t left = 0;
  int err;

  if (job->grant == NULL)
    return 0;
  err = tnk__gw_grant_reserve(&job->gateway->grants, job->grant, &most, &what,
                              &left);
  if (err == TNK_EBUDGET)
    return refuse(what, left, fault);
  if (err != TNK_OK)
    return tnk__gw_fault(fault, 500, NULL,
                         "the use of the key cannot be recorded: %s",
                         tnk_strerror(err));
  job->most = most;
  return 0;
}

int tnk__gw_account_again(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  static const tnk__gw_use_t nothing = {0};

  if (job->grant == NULL)
    return 0;
  /* A sample that was kept has been settled. */
  if (job->most.n_requests > 0)
    tnk__gw_grant_settle(&job->gateway->grants, job->grant, &job->most,
                         &job->spent);
  job->most = job->spent = nothing;
  return tnk__gw_account_begin(job, fault);
}

static void add(tnk__gw_use_t *sum, const tnk__gw_use_t *use) {
  sum->n_requests = 1;
  sum->n_tokens += use->n_tokens;
  sum->n_turns += use->n_turns;
  sum->pico += use->pico;
}

/* The tokens and money that the samples of a prompt have used. */
static tnk__gw_use_t use_of(const tnk__gw_job_t *job, size_t i,
                            const tnk_samples_t *samples) {
  size_t n = tnk_samples_count(samples);
  int32_t n_hits = tnk_samples_cache_hit_tokens(samples);
  uint64_t n_cached = n_hits > 0 ? (uint64_t)n_hits : 0;
  uint64_t n_sampled = 0;
  size_t n_prompt;

  (void)tnk__gw_prompt_at(job, i, &n_prompt);
  if (n_cached > n_prompt)
    n_cached = n_prompt;
  for (size_t k = 0; k < n; k++) {
    size_t n_tokens;

    (void)tnk_samples_tokens(samples, k, &n_tokens);
    n_sampled += n_tokens;
  }
  return (tnk__gw_use_t){
      .n_tokens = n_prompt + n_sampled,
      .n_turns = n,
      .pico = cost_of(job->gateway, n_prompt, n_cached, n_sampled)};
}

void tnk__gw_account_samples(tnk__gw_job_t *job, size_t i,
                             const tnk_samples_t *samples) {
  const tnk__gw_use_t use = use_of(job, i, samples);

  if (job->grant != NULL)
    add(&job->spent, &use);
}

void tnk__gw_account_failed(tnk__gw_job_t *job) {
  for (size_t i = 0; job->grant != NULL && i < tnk__gw_n_prompts(job); i++) {
    const tnk_promise_t *promise = tnk__gw_draw_at(job, i);
    tnk__gw_use_t most;
    size_t n_prompt;

    (void)tnk__gw_prompt_at(job, i, &n_prompt);
    most = most_of(job, 1, n_prompt);
    if (tnk_promise_state(promise) == TNK_RESOLVED)
      tnk__gw_account_samples(job, i, tnk_promise_samples(promise));
    else if (tnk_promise_state(promise) == TNK_PENDING)
      add(&job->spent, &most);
  }
}

void tnk__gw_account_lost(tnk__gw_job_t *job) {
  job->spent = job->most;
}

void tnk__gw_account_end(tnk__gw_job_t *job) {
  static const tnk__gw_use_t nothing = {0};
  tnk__gw_grants_t *grants = &job->gateway->grants;

  if (job->grant == NULL)
    return;
  if (job->most.n_requests > 0)
    tnk__gw_grant_settle(grants, job->grant, &job->most, &job->spent);
  tnk__gw_grant_leave(grants, job->grant);
  job->grant = NULL;
  job->most = job->spent = nothing;
}

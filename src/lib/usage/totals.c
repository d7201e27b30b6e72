/* SPDX-License-Identifier: MIT */
#include "lib/usage/totals.h"

uint64_t tnk__sum(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t tnk__product(uint64_t a, uint64_t b) {
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

uint64_t tnk__use_tokens(const tnk__use_t *use) {
  return tnk__sum(tnk__sum(use->prompt, use->sampled), use->trained);
}

static void add(uint64_t *to, uint64_t more) {
  *to = tnk__sum(*to, more);
}

void tnk__totals_use(tnk__totals_t *totals, const tnk__use_t *use) {
  add(&totals->prompt_tokens, use->prompt);
  add(&totals->cached_tokens, use->cached);
  add(&totals->sampled_tokens, use->sampled);
  add(&totals->trained_tokens, use->trained);
}

void tnk__totals_add(tnk__totals_t *totals, const tnk__totals_t *more) {
  add(&totals->prompt_tokens, more->prompt_tokens);
  add(&totals->cached_tokens, more->cached_tokens);
  add(&totals->sampled_tokens, more->sampled_tokens);
  add(&totals->trained_tokens, more->trained_tokens);
  add(&totals->unpriced_tokens, more->unpriced_tokens);
  add(&totals->doubtful_tokens, more->doubtful_tokens);
  add(&totals->cost, more->cost);
  add(&totals->doubtful_cost, more->doubtful_cost);
  add(&totals->n_requests, more->n_requests);
  add(&totals->n_bytes_sent, more->n_bytes_sent);
  add(&totals->n_bytes_received, more->n_bytes_received);
}

static double usd(uint64_t parts) {
  return (double)parts / (double)TNK__USD;
}

void tnk__totals_show(tnk_totals_t *out, const tnk__totals_t *totals) {
  *out = (tnk_totals_t){.size = sizeof(*out),
                        .n_prompt_tokens = totals->prompt_tokens,
                        .n_cached_tokens = totals->cached_tokens,
                        .n_sampled_tokens = totals->sampled_tokens,
                        .n_trained_tokens = totals->trained_tokens,
                        .n_doubtful_tokens = totals->doubtful_tokens,
                        .n_requests = totals->n_requests,
                        .n_bytes_sent = totals->n_bytes_sent,
                        .n_bytes_received = totals->n_bytes_received,
                        .n_unpriced_tokens = totals->unpriced_tokens,
                        .cost_usd = usd(totals->cost),
                        .doubtful_usd = usd(totals->doubtful_cost)};
}

void tnk__totals_sent(tnk__totals_t *totals, uint64_t n_bytes) {
  add(&totals->n_requests, 1);
  add(&totals->n_bytes_sent, n_bytes);
}

void tnk__totals_received(tnk__totals_t *totals, uint64_t n_bytes) {
  add(&totals->n_bytes_received, n_bytes);
}

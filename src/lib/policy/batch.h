/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_POLICY_BATCH_H
#define TNK_LIB_POLICY_BATCH_H

#include "lib/policy/poll.h"

/*
 * Decisions of batched polling. One request at a time asks which samples of a
 * client have ended.
 *
 * While samples are waiting, the server holds a poll, which also acknowledges
 * received results. When no sample is waiting, a flush request acknowledges
 * them a moment later. Once the server has shown that it does not support
 * batched polling, it stays off.
 */

/* Delay from the first id to acknowledge to the flush, if no sample is
 * waiting. */
#define TNK__BATCH_FLUSH_MS 1000
/* Consecutive flushes that may fail before their ids are dropped. The server
 * expires those results by itself. */
#define TNK__BATCH_MAX_FLUSH_FAILURES 3

typedef enum {
  TNK__BATCH_NOTHING = 0,
  TNK__BATCH_POLL,
  TNK__BATCH_FLUSH
} tnk__batch_need_t;

typedef struct {
  int64_t cursor; /* cursor in the last response */
  tnk__poll_t pace;
  uint64_t next_ms; /* earliest time of the next request */
  uint32_t n_flush_failures;
  int is_off;
} tnk__batch_t;

void tnk__batch_init(tnk__batch_t *batch);
/* The next request that is needed. n_waiting: samples that wait. n_reports: ids
 * to acknowledge. */
tnk__batch_need_t tnk__batch_need(const tnk__batch_t *batch, size_t n_waiting,
                                  size_t n_reports);
/* Delay before the next request of that kind. */
uint64_t tnk__batch_wait_ms(const tnk__batch_t *batch, tnk__batch_need_t need,
                            uint64_t now_ms);
void tnk__batch_sent(tnk__batch_t *batch, uint64_t now_ms);
/* Record a good response. has_news: it ended a sample, so the next request may
 * follow at once. A new cursor does not count as news. */
void tnk__batch_answered(tnk__batch_t *batch, int64_t cursor, int has_news,
                         uint64_t now_ms);
/* Record a failed request, with the verdict of the retry table and the delay
 * that the server asked for. `u` is uniform in [0, 1). Returns 1 to ask again
 * after tnk__batch_wait_ms(), 0 if batched polling is off now. */
int tnk__batch_failed(tnk__batch_t *batch, const tnk__verdict_t *verdict,
                      tnk__outcome_t outcome, uint64_t server_ms,
                      uint64_t now_ms, double u);
/* Record a failed flush. Returns 1 if its ids should be dropped. */
int tnk__batch_drops_reports(tnk__batch_t *batch);

/* Returns how long a sample may be silent before it polls for itself: 60 to 120
 * s, spread by `u` in [0, 1). The notification of its completion may have been
 * lost. */
uint64_t tnk__batch_check_ms(double u);

#endif

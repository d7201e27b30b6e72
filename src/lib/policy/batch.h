#ifndef TNK_LIB_POLICY_BATCH_H
#define TNK_LIB_POLICY_BATCH_H

#include "lib/policy/poll.h"

/*
 * Decisions of batched polling: one request at a time tells which samples of
 * a client have ended.
 *
 * While somebody waits, a poll is held by the server. What has been received
 * rides on it; when nobody waits, it is told by a flush of its own, a moment
 * later. Off, for ever, once the server has shown that it cannot do this.
 */

/* From the first thing to report to the flush, if nobody waits. */
#define TNK__BATCH_FLUSH_MS 1000
/* Flushes in a row that may fail before what they report is dropped; the
 * server forgets those results by itself. */
#define TNK__BATCH_MAX_FLUSH_FAILURES 3

typedef enum {
  TNK__BATCH_NOTHING = 0,
  TNK__BATCH_POLL,
  TNK__BATCH_FLUSH
} tnk__batch_need_t;

typedef struct {
  int64_t cursor; /* of the last answer */
  tnk__poll_t pace;
  uint64_t next_ms; /* no request before then */
  uint32_t n_flush_failures;
  int is_off;
} tnk__batch_t;

void tnk__batch_init(tnk__batch_t *batch);
/* The request that is needed next, by how many wait and how many ids are to be
 * reported. */
tnk__batch_need_t tnk__batch_need(const tnk__batch_t *batch, size_t n_waiting,
                                  size_t n_reports);
/* How long the next request of that kind must wait. */
uint64_t tnk__batch_wait_ms(const tnk__batch_t *batch, tnk__batch_need_t need,
                            uint64_t now_ms);
void tnk__batch_sent(tnk__batch_t *batch, uint64_t now_ms);
/* Note a good answer. has_news: it ended somebody's wait, so that the next
 * request may follow at once; a cursor that moves is no news. */
void tnk__batch_answered(tnk__batch_t *batch, int64_t cursor, int has_news,
                         uint64_t now_ms);
/* Note a bad answer, with the verdict of the retry table, the server's wish and
 * u, uniform in [0, 1).
 * 1: ask again when tnk__batch_wait_ms() says. 0: it is off now. */
int tnk__batch_failed(tnk__batch_t *batch, const tnk__verdict_t *verdict,
                      tnk__outcome_t outcome, uint64_t server_ms,
                      uint64_t now_ms, double u);
/* Note a flush that has failed. 1: drop what it reported. */
int tnk__batch_drops_reports(tnk__batch_t *batch);

/* How long a sample may be silent before it is asked for by itself, because
 * its completion may have been lost: spread over 60 to 120 s by u in [0, 1). */
uint64_t tnk__batch_check_ms(double u);

#endif

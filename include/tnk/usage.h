/* SPDX-License-Identifier: MIT */
#ifndef TNK_USAGE_H
#define TNK_USAGE_H

#include "tnk/sampling.h"
#include "tnk/training.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Tokens, requests, bytes and cost of a program. The library counts what it
 * sends and receives, without asking the service. The result is an estimate of
 * the bill and excludes checkpoint storage. For the service's own figures,
 * which are available later, see tnk_rest_get_usage().
 */

/**
 * Counts of tokens, requests and bytes. A count never decreases and stops at
 * the largest number of its type.
 *
 * An operation is counted when its result has arrived. An operation that failed
 * or was not run counts as 0. If it is unknown whether the operation was run,
 * its maximum use is counted as doubtful. Examples are an operation that was
 * canceled after it was sent, and one whose result was lost.
 */
typedef struct {
  size_t size; /**< Set by TNK_TOTALS_INIT. */
  /** Tokens of prompts that were sampled from or scored. A prompt counts once,
   * however many sequences were sampled. An image counts as its
   * `expected_tokens`. */
  uint64_t n_prompt_tokens;
  uint64_t n_cached_tokens;  /**< Prompt tokens that were cache hits. */
  uint64_t n_sampled_tokens; /**< Tokens of all returned sequences. */
  /** Tokens of the inputs of passes, including forward passes. A custom loss
   * has two passes, and each one counts. */
  uint64_t n_trained_tokens;
  uint64_t n_doubtful_tokens; /**< Tokens that may have been used in addition to
                                   the others: an upper bound. */
  uint64_t n_requests;        /**< Requests sent, including retries. */
  /** For a service: HTTP bytes before TLS. For a client: the bodies of its
   * requests and responses. Request bodies count after compression, response
   * bodies before decompression. Polls that clients share count for the service
   * only. */
  uint64_t n_bytes_sent;
  uint64_t n_bytes_received;
  /** For a service and a run: tokens reserved for operations in progress. */
  uint64_t n_reserved_tokens;
  uint64_t
      n_unpriced_tokens; /**< Used tokens, of all kinds, without a price. */
  double cost_usd;       /**< Cost of the used tokens at the prices set then. */
  double doubtful_usd;
  double reserved_usd;
} tnk_totals_t;

#define TNK_TOTALS_INIT TNK_SIZED(tnk_totals_t)

/**
 * Get the totals of a service since it was opened, including those of closed
 * clients.
 *
 * @param[out] out  Initialize it with TNK_TOTALS_INIT. Members within its size
 *                  are set.
 * @param service   NULL sets all members to 0.
 *
 * @return TNK_OK, or TNK_EINVAL if the size is not a size of tnk_totals_t.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_service_totals(tnk_totals_t *out, const tnk_service_t *service);

/**
 * Get the totals of one training client. All members are 0 for NULL and for a
 * closed client. The requests that created the client count for the service
 * only.
 *
 * @param[out] out  As in tnk_service_totals().
 * @return As tnk_service_totals().
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_training_totals(tnk_totals_t *out,
                                const tnk_training_t *training);
/** Get the totals of one sampling client; as tnk_training_totals().
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1 */
TNK_API int tnk_sampling_totals(tnk_totals_t *out,
                                const tnk_sampling_t *sampling);

/** Prices per million tokens, in USD. */
typedef struct {
  /** Base model, as passed to the create call or as the service names it. NULL
   * applies to every model without its own row. */
  const char *model;
  double prompt;
  double cached; /**< Prompt tokens that were cache hits. */
  double sampled;
  double trained;
} tnk_price_t;

/** Limits and prices of a service. 0 or NULL selects the default. */
typedef struct {
  size_t size;         /**< Set by TNK_BUDGET_INIT. */
  uint64_t max_tokens; /**< Limit for all kinds together. 0 means no limit. */
  double max_usd; /**< Limit of the cost; needs prices. 0 means no limit. */
  const tnk_price_t *prices;
  size_t n_prices;
  /** Path of a file with prices, as an alternative to `prices`:
   * `{"prices": [{"model": "Qwen/Qwen3-8B", "prompt": 0.13, "cached": 0.03,
   * "sampled": 0.4, "trained": 0.4}]}`. A row without "model" applies to every
   * model without its own row. Without "cached", cache hits cost as much as
   * other prompt tokens. */
  const char *prices_file;
  /** Totals of earlier processes of the same run, which count toward the
   * limits. NULL takes them from the run's ledger (tnk/ledger.h) if one is
   * open. */
  const tnk_totals_t *before;
  uint64_t reserved;
} tnk_budget_t;

#define TNK_BUDGET_INIT TNK_SIZED(tnk_budget_t)

/**
 * Set the limits and prices of a service. They replace all limits and prices of
 * an earlier call, so you can raise a budget that is used up.
 *
 * With a limit, each operation reserves its maximum use. A pass reserves the
 * tokens of its inputs when it is called. A sample reserves its prompt and
 * max_tokens for each sequence just before it is submitted. If the reservation
 * exceeds the limit, the operation rejects with TNK_EBUDGET and is not sent.
 * The same happens if its maximum is unknown: a sample without max_tokens, or a
 * model without a price under max_usd. Operations in progress continue. When an
 * operation ends, its unused reservation is returned. Doubtful use stays
 * counted. The limit is therefore never exceeded.
 *
 * After a pass of a client was rejected, its optimizer steps are rejected too
 * until another pass is accepted, so that no step uses part of a batch. Saves
 * and other operations without tokens continue. Gradients of earlier passes
 * stay with the model.
 *
 * @param budget    NULL removes limits and prices. Copied.
 * @param why       After an error, receives one sentence that says what is
 *                  wrong. May be NULL.
 * @param why_size  Bytes at @p why; a longer sentence is truncated.
 *
 * @return TNK_OK, or one of the following, which changes nothing:
 *   TNK_EINVAL   no service, a number out of range, max_usd without prices,
 *                both prices and prices_file, or cache hits that cost more
 *                than other prompt tokens
 *   TNK_ENOTSUP  @p budget sets a field that this library does not know
 *   TNK_EFILE    prices_file cannot be read or has another format
 *   TNK_ENOMEM
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_service_set_budget(tnk_service_t *service,
                                   const tnk_budget_t *budget, char *why,
                                   size_t why_size);

/**
 * Get the totals of a run: `before` of its budget plus the totals of the
 * service. Store them for the next process of the run. A ledger does this
 * automatically.
 *
 * @param[out] out  As in tnk_service_totals().
 * @param service   NULL sets all members to 0.
 * @return As tnk_service_totals().
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_service_run_totals(tnk_totals_t *out,
                                   const tnk_service_t *service);

#ifdef __cplusplus
}
#endif

#endif

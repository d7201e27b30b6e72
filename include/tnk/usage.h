#ifndef TNK_USAGE_H
#define TNK_USAGE_H

#include "tnk/sampling.h"
#include "tnk/training.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What a program uses, as the library counts it from what is sent and returned,
 * without asking the service: an estimate of a bill, and no invoice. Storage is
 * not counted. What the service has counted, later, tnk_rest_get_usage() tells.
 */

/**
 * What was used: tokens by kind, requests, bytes. Counts only grow, and stay at
 * the largest number.
 *
 * An operation counts when its result has come. One that the service reports as
 * failed, or has not run, counts for nothing; where that is not known, as with
 * one that was canceled after it was sent, or whose result was lost, all that
 * it may have used is in doubt.
 */
typedef struct {
  size_t size; /**< Set by TNK_TOTALS_INIT. */
  /** Tokens of prompts that were sampled from or scored, once a prompt however
   * many sequences were sampled. Images count as `expected_tokens` says. */
  uint64_t n_prompt_tokens;
  uint64_t n_cached_tokens;  /**< Those among them found in a cache. */
  uint64_t n_sampled_tokens; /**< Of all sequences that came back. */
  /** Tokens of the inputs of passes, forward ones too. Each pass of a custom
   * loss counts, of which there are two. */
  uint64_t n_trained_tokens;
  uint64_t n_doubtful_tokens; /**< Beside these: used perhaps, at most. */
  uint64_t n_requests;        /**< Sent, repeats included. */
  /** Of a service: HTTP bytes before TLS. Of a client: the bodies of its
   * requests and answers, compressed ones as they are after that, answers as
   * they are before. Polls that clients share are the service's alone. */
  uint64_t n_bytes_sent;
  uint64_t n_bytes_received;
  /** Of a service and a run: what operations that are under way may still use,
   * which is reserved for them. */
  uint64_t n_reserved_tokens;
  uint64_t n_unpriced_tokens; /**< Used, of all kinds, without a price. */
  double cost_usd;            /**< Of what was used, at the prices then set. */
  double doubtful_usd;
  double reserved_usd;
} tnk_totals_t;

#define TNK_TOTALS_INIT TNK_SIZED(tnk_totals_t)

/**
 * What a service has used since it was opened, with clients that are closed.
 *
 * @param[out] out  Begins with TNK_TOTALS_INIT. Filled, as far as its size
 *                  goes.
 * @param service   NULL: all are 0.
 *
 * @return TNK_OK, or TNK_EINVAL for a size that is none of tnk_totals_t.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_service_totals(tnk_totals_t *out, const tnk_service_t *service);

/**
 * What one client has used; all 0 for NULL and one that is closed. What made
 * the client is the service's alone.
 *
 * @param[out] out  As in tnk_service_totals().
 * @return As tnk_service_totals().
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_training_totals(tnk_totals_t *out,
                                const tnk_training_t *training);
/** The same of a sampling client; as tnk_training_totals().
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1 */
TNK_API int tnk_sampling_totals(tnk_totals_t *out,
                                const tnk_sampling_t *sampling);

/** What a million tokens cost, in USD. */
typedef struct {
  /** The base model, as the clients are made with or the service names it;
   * NULL: each model without a row of its own. */
  const char *model;
  double prompt;
  double cached; /**< Of a prompt's tokens that were in a cache. */
  double sampled;
  double trained;
} tnk_price_t;

/** What a service may use. Zero means the default for every field. */
typedef struct {
  size_t size;         /**< Set by TNK_BUDGET_INIT. */
  uint64_t max_tokens; /**< Of all kinds together; 0: any number. */
  double max_usd;      /**< 0: any amount. It needs prices. */
  const tnk_price_t *prices;
  size_t n_prices;
  /** A file with the prices in place of the above:
   * `{"prices": [{"model": "Qwen/Qwen3-8B", "prompt": 0.13, "cached": 0.03,
   * "sampled": 0.4, "trained": 0.4}]}`. Without "model" a row is for each model
   * that has none, without "cached" those tokens cost as much as others. */
  const char *prices_file;
  /** What earlier processes of the same run have used, which counts as well.
   * NULL: what the ledger of the run says (tnk/ledger.h), if one is open. */
  const tnk_totals_t *before;
  uint64_t reserved;
} tnk_budget_t;

#define TNK_BUDGET_INIT TNK_SIZED(tnk_budget_t)

/**
 * Set a limit to what a service may use, and prices. What an earlier call has
 * set is replaced, all of it, so that a budget can be raised when it is used
 * up.
 *
 * Under a limit, an operation reserves what it may use at most: a pass the
 * tokens of its inputs, when it is called; a sample, right before it is
 * submitted, those of its prompt and max_tokens for each sequence. One that
 * does not fit in is rejected with TNK_EBUDGET, and is not sent; so is one of
 * which nobody knows how much it may use, such as a sample without max_tokens
 * or, for one in USD, a model without a price. What is under way goes on, and
 * the difference to what it has used is given back at its end. What is in doubt
 * stays counted. So the limit is never gone over.
 *
 * After a pass of a client that was refused, its optimizer steps are refused
 * too, until a pass is admitted again: none is taken on a part of a batch.
 * Saves and everything else that has no tokens go on. The gradients of passes
 * that came before the refused one stay with the model.
 *
 * @param budget    NULL: no limit and no prices. Copied.
 * @param why       On failure, receives one sentence on what is wrong; may be
 *                  NULL.
 * @param why_size  Bytes at @p why; a longer sentence is cut.
 *
 * @return TNK_OK, or, and then all is as before,
 *   TNK_EINVAL   no service, a number out of range, max_usd without prices, two
 *                kinds of prices, cached tokens that cost more than others
 *   TNK_ENOTSUP  @p budget sets a field this library does not know
 *   TNK_EFILE    prices_file cannot be read, or is not as said above
 *   TNK_ENOMEM
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_service_set_budget(tnk_service_t *service,
                                   const tnk_budget_t *budget, char *why,
                                   size_t why_size);

/**
 * What a run has used: `before` of its budget, and the service since it was
 * opened. To be kept where the next process of the run finds it; a ledger does.
 *
 * @param[out] out  As in tnk_service_totals().
 * @param service   NULL: all are 0.
 * @return As tnk_service_totals().
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_service_run_totals(tnk_totals_t *out,
                                   const tnk_service_t *service);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_SAMPLING_H
#define TNK_SAMPLING_H

#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Sampling parameters. TNK_SAMPLING_PARAMS_INIT makes every member absent. An
 * absent number is TNK_ABSENT, because 0 is a valid value.
 * Protocol: sampling.
 */
typedef struct {
  size_t size;        /**< Set by TNK_SAMPLING_PARAMS_INIT. */
  int32_t max_tokens; /**< At least 1. Absent: the server decides. */
  int32_t top_k;      /**< At least 0, or -1 for all. Absent: -1. */
  int64_t seed;       /**< Absent: random for each call. */
  double temperature; /**< At least 0. Absent: 1. */
  double top_p;       /**< From 0 to 1. Absent: 1. */
  /** Stop sequences, as strings or as tokens. If both are NULL, a sequence ends
   * at the model's end token. A pointer that is not NULL with a count of 0
   * disables all stops, so a sequence has max_tokens tokens. */
  const char *const *stop_texts;
  size_t n_stop_texts;
  const int32_t *stop_tokens;
  size_t n_stop_tokens;
} tnk_sampling_params_t;

#define TNK_SAMPLING_PARAMS_INIT                                               \
  {                                                                            \
    sizeof(tnk_sampling_params_t), TNK_ABSENT, TNK_ABSENT, TNK_ABSENT,         \
        TNK_ABSENT, TNK_ABSENT, NULL, 0, NULL, 0                               \
  }

/** Options of a sample. 0 or NULL selects the default. */
typedef struct {
  size_t size;                     /**< Set by TNK_SAMPLE_OPTIONS_INIT. */
  uint32_t n_samples;              /**< Number of sequences; 0 means 1. */
  tnk_choice_t prompt_logprobs;    /**< Default: no. */
  uint32_t topk_prompt_logprobs;   /**< Top-k per prompt position. */
  uint32_t topk_sample_logprobs;   /**< Top-k per sampled position. */
  uint32_t prompt_alt_tokens_k;    /**< Samples per prompt position. */
  uint32_t prompt_logprobs_last_n; /**< Only the last n positions; 0 means
                                         all. Needs prompt_logprobs. */
  /** i64 [prompt tokens - 1, K], dense or CSR: ids to score at each position,
   * -1 for none. May be NULL. */
  const tnk_tensor_t *target_prompt_logprobs;
  uint64_t reserved;
} tnk_sample_options_t;

#define TNK_SAMPLE_OPTIONS_INIT TNK_SIZED(tnk_sample_options_t)

/**
 * Sample from the model.
 *
 * Returns immediately, however many samples are in flight. A sample does not
 * wait for other calls of the client. After a 429 response it waits for the
 * shared rate limiter. Samples may complete in any order. Cancel ends the
 * operation.
 *
 * @param prompt   Copied.
 * @param params   NULL: all absent. Copied.
 * @param options  NULL for defaults. Copied.
 *
 * Protocol: sampling.
 * @return A promise of tnk_samples_t.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_ERATE if retry_samples is off; TNK_EEXPIRED if the service lost the
 *   result more often than the library submits the sample again.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_sampling_sample(tnk_sampling_t *sampling,
                                           const tnk_model_input_t *prompt,
                                           const tnk_sampling_params_t *params,
                                           const tnk_sample_options_t *options);

/** One token of a stream. `text` is valid until the callback returns. It is
 * empty if the token ends inside a character; a later token has the whole
 * character then. */
typedef struct {
  int32_t token;     /**< Vocabulary id. */
  uint32_t index;    /**< Position in the sequence, from 0. */
  float logprob;     /**< Logprob; NaN if the server sent none. */
  uint32_t reserved; /**< 0. */
  const char *text;  /**< Text of the token from the server; or NULL. */
} tnk_stream_token_t;

/** Called for each token. A result other than 0 rejects the promise with
 * TNK_ECANCELED. The callback may also cancel the promise or close the client
 * or the service. */
typedef int (*tnk_stream_token_cb)(const tnk_stream_token_t *token, void *user);

/** Options of a stream. 0 or NULL selects the default. */
typedef struct {
  size_t size; /**< Set by TNK_SAMPLE_STREAM_OPTIONS_INIT. */
  /** Called for each token. NULL: only the result is delivered. */
  tnk_stream_token_cb on_token;
  void *user;
  uint64_t silence_ms; /**< Maximum time without a byte, after which the promise
                            rejects with TNK_ETIMEDOUT. 0 means ten minutes. At
                            most one day. */
} tnk_sample_stream_options_t;

#define TNK_SAMPLE_STREAM_OPTIONS_INIT TNK_SIZED(tnk_sample_stream_options_t)

/**
 * Sample one sequence from the model and receive its tokens while they are
 * generated.
 *
 * Experimental: `tnk local` offers it, no public service is known to do so, and
 * the format of the response may change. If the server does not offer it, the
 * promise rejects with TNK_EUNSUPPORTED; use tnk_sampling_sample() instead.
 *
 * Rate limits, counts and budgets apply as for any sample. Temporary failures
 * are retried until the first token was delivered, and never after it. A stream
 * that breaks is therefore lost. It rejects with TNK_ECONN if it was cut off or
 * ended without a stop reason, with TNK_EFAILED if it reported a failure, and
 * with TNK_EPROTO if tokens are missing. The text says how many tokens were
 * received. Their cost counts as doubtful.
 *
 * @param prompt   Copied.
 * @param params   NULL: all absent. Copied.
 * @param options  NULL for defaults. Copied.
 *
 * Completion: on_token is called on the loop thread, never inside this call,
 * and never after the promise has settled. The library stops reading while it
 * runs. Cancel closes the stream. A server that notices stops generating.
 *
 * Protocol: sampling, streams.
 * @return A promise of tnk_samples_t with one sequence. It has logprobs if any
 *         token had one, with NaN for tokens without.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_sampling_sample_stream(tnk_sampling_t *sampling,
                           const tnk_model_input_t *prompt,
                           const tnk_sampling_params_t *params,
                           const tnk_sample_stream_options_t *options);

/** Options of tnk_sampling_compute_logprobs(). 0 selects the default. */
typedef struct {
  size_t size;     /**< Set by TNK_LOGPROBS_OPTIONS_INIT. */
  uint32_t last_n; /**< Score only the last n tokens; 0 means all. */
  uint32_t reserved;
} tnk_logprobs_options_t;

#define TNK_LOGPROBS_OPTIONS_INIT TNK_SIZED(tnk_logprobs_options_t)

/**
 * Compute the logprob of each prompt token given the tokens before it. The
 * service generates one token, which is discarded.
 *
 * @param prompt   Copied.
 * @param options  NULL for defaults. Copied.
 *
 * Protocol: sampling, compute_logprobs.
 * @return A promise of logprobs: one per prompt token, NaN if not computed.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_sampling_compute_logprobs(tnk_sampling_t *sampling,
                              const tnk_model_input_t *prompt,
                              const tnk_logprobs_options_t *options);

/**
 * Get the base model as the server or the caller named it; NULL if unknown.
 * Lifetime: as long as the client. Thread: loop thread. Since: 0.1
 */
TNK_API const char *tnk_sampling_base_model(const tnk_sampling_t *sampling);

/**
 * Get the id of the client's sampling session.
 *
 * Lifetime: as long as the client. If the service has `recovery` enabled, a
 * recovery creates a new session with another id, which on_recovery reports.
 * Keep a copy of the string.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const char *tnk_sampling_id(const tnk_sampling_t *sampling);

/**
 * Export the sampler as a string. Another process, also on another machine, can
 * sample from it: see `exported` of tnk_sampling_options_t.
 *
 * The string has a few hundred printable characters without blanks. It contains
 * ids, the base URL and the base model, but no key and no headers. The other
 * process needs a key of the same account. The format is that of the official
 * client, whose strings can also be imported. The sampler exists as long as the
 * session in which it was created, so keep that service open.
 *
 * @return The string; NULL for NULL, for a closed client, or if out of memory.
 * Protocol: sampling, creating, cloning and handing over.
 * Lifetime: as tnk_sampling_id().
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API const char *tnk_sampling_export(tnk_sampling_t *sampling);

/**
 * Create another client of the same sampler and service. It must be closed
 * separately. The service creates no new sampler.
 *
 * A client has 10^9 sequence numbers for its samples, including repeated
 * submissions. After that its samples reject with TNK_EFULL. A clone has its
 * own numbers.
 *
 * Protocol: sampling, creating, cloning and handing over.
 * @return A promise of tnk_sampling_t, as tnk_service_create_sampling().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_sampling_clone(tnk_sampling_t *sampling);

/**
 * Close the client. All pending promises reject with TNK_ECLOSED, then @p cb is
 * called. The handle stays valid as described for tnk_training_close().
 *
 * @param sampling  NULL does nothing and does not call @p cb.
 * @param cb        May be NULL.
 * @param user      Passed to @p cb.
 * Never fails and allocates nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_sampling_close(tnk_sampling_t *sampling, tnk_close_cb cb,
                                void *user);

#ifdef __cplusplus
}
#endif

#endif

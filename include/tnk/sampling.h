#ifndef TNK_SAMPLING_H
#define TNK_SAMPLING_H

#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * How tokens are drawn. TNK_SAMPLING_PARAMS_INIT makes every member absent; a
 * number is absent as TNK_ABSENT, since zero is a value like any other.
 * Protocol: sampling.
 */
typedef struct {
  size_t size;        /**< Set by TNK_SAMPLING_PARAMS_INIT. */
  int32_t max_tokens; /**< At least 1. Absent: up to the server. */
  int32_t top_k;      /**< -1: all; else at least 0. Absent: -1. */
  int64_t seed;       /**< Absent: another one each time. */
  double temperature; /**< At least 0. Absent: 1. */
  double top_p;       /**< From 0 to 1. Absent: 1. */
  /** Where a sequence ends, as texts or as tokens. NULL: at the model's own end
   * token. Not NULL with a count of 0: nowhere before max_tokens. */
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

/** What to return beside the tokens. Zero is the default. */
typedef struct {
  size_t size;                     /**< Set by TNK_SAMPLE_OPTIONS_INIT. */
  uint32_t n_samples;              /**< 0: 1. */
  tnk_choice_t prompt_logprobs;    /**< Default no. */
  uint32_t topk_prompt_logprobs;   /**< Likeliest tokens a prompt position. */
  uint32_t topk_sample_logprobs;   /**< Likeliest tokens a sampled position. */
  uint32_t prompt_alt_tokens_k;    /**< Draws a prompt position. */
  uint32_t prompt_logprobs_last_n; /**< 0: all; needs prompt_logprobs. */
  /** i64 [prompt tokens - 1, K]: ids to score at each position, -1 for none;
   * dense or CSR. NULL: none. */
  const tnk_tensor_t *target_prompt_logprobs;
  uint64_t reserved;
} tnk_sample_options_t;

#define TNK_SAMPLE_OPTIONS_INIT TNK_SIZED(tnk_sample_options_t)

/**
 * Sample from the model.
 *
 * Returns at once however many samples are in flight, and is never queued
 * behind another call; after a 429 it waits for the shared limiter. Order of
 * completion is the service's. Canceling stops the waiting.
 *
 * @param prompt   Copied.
 * @param params   NULL: all absent. Copied.
 * @param options  NULL for defaults. Copied.
 *
 * Protocol: sampling.
 * @return A promise of tnk_samples_t.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_ERATE with retry_samples off; TNK_EEXPIRED when the result was lost
 *   more often than it is asked for anew.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_sampling_sample(tnk_sampling_t *sampling,
                                           const tnk_model_input_t *prompt,
                                           const tnk_sampling_params_t *params,
                                           const tnk_sample_options_t *options);

/** One token of a stream. `text` lives until the callback returns, whatever it
 * does. */
typedef struct {
  int32_t token;     /**< Its id. */
  uint32_t index;    /**< Its place in the sequence, from 0. */
  float logprob;     /**< Log-probability; NaN if the server sent none. */
  uint32_t reserved; /**< 0. */
  const char *text;  /**< What the server says that it reads; NULL: nothing. */
} tnk_stream_token_t;

/** Hears of a token; anything but 0 ends the sample with TNK_ECANCELED. It may
 * cancel the promise, and close the client and the service, as well. */
typedef int (*tnk_stream_token_cb)(const tnk_stream_token_t *token, void *user);

/** How a sample is streamed. Zero is the default. */
typedef struct {
  size_t size; /**< Set by TNK_SAMPLE_STREAM_OPTIONS_INIT. */
  /** Gets each token as it comes. NULL: the result alone is wanted. */
  tnk_stream_token_cb on_token;
  void *user;
  uint64_t silence_ms; /**< Nothing comes for so long: TNK_ETIMEDOUT; 0: ten
                            minutes. At most a day. */
} tnk_sample_stream_options_t;

#define TNK_SAMPLE_STREAM_OPTIONS_INIT TNK_SIZED(tnk_sample_stream_options_t)

/**
 * Sample one sequence from the model, and hear of its tokens while they are
 * drawn.
 *
 * Experimental: no public service is known to offer it, and the form of its
 * answer may change; `tnk local` does. Where it is missing, the promise rejects
 * with TNK_EUNSUPPORTED, and tnk_sampling_sample() is the way.
 *
 * It waits, is counted and takes out of the budget as any sample. What fails in
 * a way that may pass is repeated until the first token has been given out, and
 * never after it. So a stream that breaks is lost: one that is cut off, or is
 * over without telling why it ended, is TNK_ECONN, one that reports a failure
 * TNK_EFAILED, one with tokens missing TNK_EPROTO, and the sentence tells how
 * many tokens had come. What they cost is counted as doubtful.
 *
 * @param prompt   Copied.
 * @param params   NULL: all absent. Copied.
 * @param options  NULL for defaults. Copied.
 *
 * Completion: on_token is called on the loop thread, never inside of this call,
 * and not after the promise has settled. A slow one makes the server wait.
 * Cancel closes the stream, and a server that notices stops to draw.
 *
 * Protocol: sampling, streams.
 * @return A promise of tnk_samples_t with one sequence, and log-probabilities
 * if any token had one, NaN for those without.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_sampling_sample_stream(tnk_sampling_t *sampling,
                           const tnk_model_input_t *prompt,
                           const tnk_sampling_params_t *params,
                           const tnk_sample_stream_options_t *options);

/** What to score. Zero is the default. */
typedef struct {
  size_t size;     /**< Set by TNK_LOGPROBS_OPTIONS_INIT. */
  uint32_t last_n; /**< Score only the last n tokens; 0: all. */
  uint32_t reserved;
} tnk_logprobs_options_t;

#define TNK_LOGPROBS_OPTIONS_INIT TNK_SIZED(tnk_logprobs_options_t)

/**
 * Score a prompt: the log-probability of each of its tokens given those
 * before. One token is generated and dropped.
 *
 * @param prompt   Copied.
 * @param options  NULL for defaults. Copied.
 *
 * Protocol: sampling, compute_logprobs.
 * @return A promise of logprobs, one a prompt token, NaN where not computed.
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_sampling_compute_logprobs(tnk_sampling_t *sampling,
                              const tnk_model_input_t *prompt,
                              const tnk_logprobs_options_t *options);

/**
 * The base model, as the server or the caller named it; NULL if unknown.
 * Lifetime: as long as the client. Thread: loop thread. Since: 0.1
 */
TNK_API const char *tnk_sampling_base_model(const tnk_sampling_t *sampling);

/**
 * The id of the client's sampling session.
 *
 * Lifetime: as long as the client; with the service's `recovery` until it is
 * made again, as on_recovery tells: keep a copy.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const char *tnk_sampling_id(const tnk_sampling_t *sampling);

/**
 * A text by which another process, perhaps on another machine, can sample from
 * the same sampler: `exported` of tnk_sampling_options_t.
 *
 * One printable word of a few hundred bytes, without blanks. It holds ids, the
 * base URL and the base model, and neither key nor headers; whoever has it
 * needs a key of the same account. It is in the form of the sampler handles of
 * the official client, whose texts can be imported as well. The sampler is gone
 * when the session is that it was made in: keep the service open that made it.
 *
 * @return The text; NULL for NULL, a closed client, and without memory.
 * Protocol: sampling, creating, cloning and handing over.
 * Lifetime: as tnk_sampling_id().
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API const char *tnk_sampling_export(tnk_sampling_t *sampling);

/**
 * One more client of the same sampler and service, which is closed by itself.
 * No new sampler is made.
 *
 * A client has 10^9 numbers for its samples, those submitted anew among them;
 * one that has used them up rejects with TNK_EFULL, and a clone has its own.
 *
 * Protocol: sampling, creating, cloning and handing over.
 * @return A promise of tnk_sampling_t, as tnk_service_create_sampling().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_sampling_clone(tnk_sampling_t *sampling);

/**
 * Close the client. Everything pending rejects with TNK_ECLOSED, then @p cb
 * runs. What is left of the handle is as after tnk_training_close().
 *
 * @param sampling  NULL calls nothing.
 * @param cb        May be NULL.
 * @param user      Handed to @p cb.
 * Never fails and allocates nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_sampling_close(tnk_sampling_t *sampling, tnk_close_cb cb,
                                void *user);

#ifdef __cplusplus
}
#endif

#endif

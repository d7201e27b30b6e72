/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_LM_LM_H
#define TNK_TOOLS_LOCAL_LM_LM_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "tnk/common.h"
#include "tnk/data.h"
#include "tnk/training.h"

/*
 * A small byte-level causal language model that can be trained.
 *
 *   base     the frozen weights; created once, equal on every machine
 *   lm       a model in training: LoRA adapters, gradients, optimizer
 *   weights  an immutable copy of base + adapters, for sampling
 *   draw     a sampling request with its weights
 *
 * Threads: there are no locks and no globals. A base and weights are read-only,
 * so threads may share them. An lm and a draw may be used on any thread, by one
 * call at a time. With threads, the allocator must be thread-safe. Lifetimes: a
 * base must outlive the objects created from it, and weights must outlive their
 * draws. There are no reference counts.
 *
 * Functions return TNK_OK or a negative code. A function that checks data from
 * a client has a parameter `why`, which may be NULL. It receives one sentence
 * that says where the error is.
 */

enum {
  TNK__LM_BOS = 256,   /* start of a text */
  TNK__LM_EOS = 257,   /* end of a text: stops sampling by default */
  TNK__LM_VOCAB = 258, /* ids 0..255 are bytes */
  TNK__LM_MAX_VOCAB = 1 << 24,
  TNK__LM_MAX_CONTEXT = 4096,
  TNK__LM_MAX_RANK = 256,
  TNK__LM_DEFAULT_RANK = 32,
  TNK__LM_MAX_TOPK = 258
};

/* Names of the special tokens in texts. */
#define TNK__LM_BOS_TEXT "<|begin|>"
#define TNK__LM_EOS_TEXT "<|end|>"

/* Name of the base model, and names of its parts. */
#define TNK__LM_NAME "tnk/byte-lm"
#define TNK__LM_ARCH "tnk_byte_lm"
#define TNK__LM_TOKENIZER "tnk/bytes"

typedef struct {
  char text[240]; /* NUL-terminated; empty without an error */
} tnk__lm_why_t;

typedef struct tnk__lm_base tnk__lm_base_t;
typedef struct tnk__lm_weights tnk__lm_weights_t;
typedef struct tnk__lm tnk__lm_t;
typedef struct tnk__lm_draw tnk__lm_draw_t;

/* Write the message, unless `why` is NULL, and return `code`. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int tnk__lm_refuse(tnk__lm_why_t *why, int code, const char *format, ...);

/* ---- Base and models ---- */

/* Create a base, which takes some milliseconds. Returns NULL without memory. */
tnk__lm_base_t *tnk__lm_base_new(const tnk_allocator_t *alloc);
void tnk__lm_base_free(tnk__lm_base_t *base);

typedef enum { TNK__LM_ADAMW = 0, TNK__LM_DIMUON = 1 } tnk__lm_optimizer_t;

/* The configuration of a model. */
typedef struct {
  uint32_t rank; /* 1 .. TNK__LM_MAX_RANK */
  uint64_t seed; /* seed of the adapters; equal seeds give equal adapters */
  uint8_t train_mlp;
  uint8_t train_attn;
  uint8_t train_unembed; /* at least one of the three must be set */
  tnk__lm_optimizer_t optimizer;
} tnk__lm_config_t;

#define TNK__LM_CONFIG_INIT                                                    \
  { TNK__LM_DEFAULT_RANK, 0, 1, 1, 1, TNK__LM_ADAMW }

/* Create a model. Returns TNK_EINVAL (rank, no train flag) or TNK_ENOMEM; then
 * *out is NULL. */
int tnk__lm_new(tnk__lm_t **out, const tnk__lm_base_t *base,
                const tnk__lm_config_t *config, const tnk_allocator_t *alloc,
                tnk__lm_why_t *why);
void tnk__lm_free(tnk__lm_t *lm);
const tnk__lm_config_t *tnk__lm_config(const tnk__lm_t *lm);

/* ---- Passes ---- */

typedef enum {
  TNK__LM_CROSS_ENTROPY = 0,
  TNK__LM_IMPORTANCE_SAMPLING = 1,
  TNK__LM_PPO = 2,
  TNK__LM_CISPO = 3,
  TNK__LM_DRO = 4,
  TNK__LM_GSPO = 5,
  TNK__LM_STABLE_REINFORCE = 6
} tnk__lm_loss_kind_t;

/* A loss function with its settings. */
typedef struct {
  tnk__lm_loss_kind_t kind;
  double clip_low;  /* ppo, gspo 0.8; cispo 0.0: bounds of the ratio itself */
  double clip_high; /* ppo, gspo 1.2; cispo 4.0 */
  double beta;      /* dro 0.05 */
  double kl_coeff;  /* stable_reinforce 0.01 */
} tnk__lm_loss_t;

/* Find a loss by its name in the protocol, and apply the settings to the
 * defaults. Returns TNK_EUNSUPPORTED for an unknown name, TNK_EINVAL for an
 * unknown setting, a string, or an invalid value. NULL: cross_entropy. */
int tnk__lm_loss_init(tnk__lm_loss_t *loss, const char *name,
                      const tnk_loss_setting_t *settings, size_t n_settings,
                      tnk__lm_why_t *why);

/* One example; N is n_tokens. Arrays are borrowed during the call. */
typedef struct {
  const int32_t *tokens;   /* N: the model's input */
  size_t n_tokens;         /* 1 .. TNK__LM_MAX_CONTEXT */
  const int64_t *targets;  /* N x n_targets: tokens to predict */
  size_t n_targets;        /* 1, or K for cross_entropy with (N, K) targets */
  const float *weights;    /* N x n_targets factors; NULL: all 1 */
  const float *logprobs;   /* N: from the sampler; for all but cross_entropy */
  const float *advantages; /* N: for all but cross_entropy */
  const float *clip_low;   /* N or NULL: overrides the loss's settings */
  const float *clip_high;  /* N or NULL */
  const float *mask;       /* N or NULL: gspo's sequence_ratio_mask */
  int32_t n_vocab;         /* see vocab.h; 0: TNK__LM_VOCAB */
} tnk__lm_datum_t;

/* Check the example of a pass: sizes, ids within the vocabulary, the arrays
 * that the loss reads, finite numbers. The message names array and position
 * without the datum's number: `"target_tokens"[7] is 300, ...`. */
int tnk__lm_datum_check(const tnk__lm_datum_t *datum,
                        const tnk__lm_loss_t *loss, tnk__lm_why_t *why);
/* Check ids without targets, such as a prompt; `what` names them in the
 * message. */
int tnk__lm_tokens_check(const int32_t *tokens, size_t n, int32_t n_vocab,
                         const char *what, tnk__lm_why_t *why);

/*
 * Run one example that passed tnk__lm_datum_check(). With `backward` its
 * gradients are added to the model's until the next step. A pass over a batch
 * is one call for each example, in order, with arbitrary other work in between:
 * the sums do not depend on the slicing. Weights do not change.
 *
 * logprobs  N x n_targets values are written (never NULL).
 * loss_sum  the example's loss is added: the metric "loss:sum".
 *
 * After TNK_ENOMEM the gradients are unchanged. A tnk__lm_reserve() for the
 * longest example rules that error out for the whole batch.
 */
int tnk__lm_run(tnk__lm_t *lm, const tnk__lm_loss_t *loss,
                const tnk__lm_datum_t *datum, int backward, float *logprobs,
                double *loss_sum);
int tnk__lm_reserve(tnk__lm_t *lm, size_t n_tokens);
/* Drop gradients that no step has used. */
void tnk__lm_zero_grad(tnk__lm_t *lm);

/* ---- Optimizer ---- */

typedef struct {
  double grad_norm; /* norm over all adapters, before clipping */
  uint64_t step;    /* number of this step, from 1 */
} tnk__lm_step_t;

/* Parameters of the two optimizers, with the service's defaults. */
typedef struct {
  double learning_rate;
  double beta1;
  double beta2;
  double eps;
  double weight_decay;
  double grad_clip_norm; /* 0: no clipping */
} tnk__adam_t;

typedef struct {
  double learning_rate;
  double grad_clip_norm; /* 0 or less: no clipping */
  double beta1;
} tnk__dimuon_t;

#define TNK__ADAM_INIT                                                         \
  { 0.0001, 0.9, 0.95, 1e-12, 0.0, 0.0 }
#define TNK__DIMUON_INIT(learning_rate)                                        \
  { (learning_rate), 0.0, 0.9 }

/*
 * Apply the gradients and clear them; missing gradients count as zero. Returns
 * TNK_EINVAL for parameters out of range or of the other optimizer family, or
 * TNK_ENOMEM; then nothing changes.
 *
 * AdamW: decoupled decay, bias correction, one global clip norm. Dimuon:
 * momentum, then five Newton-Schulz rounds make each factor's momentum matrix
 * nearly orthogonal, and it is scaled by sqrt(max(1, rows / columns)).
 */
int tnk__lm_step_adamw(tnk__lm_t *lm, const tnk__adam_t *params,
                       tnk__lm_step_t *out, tnk__lm_why_t *why);
int tnk__lm_step_dimuon(tnk__lm_t *lm, const tnk__dimuon_t *params,
                        tnk__lm_step_t *out, tnk__lm_why_t *why);

/* ---- Checkpoints ---- */

/* The files of a checkpoint, in a separate directory. The config is written
 * last, so a directory that has it is complete. */
#define TNK__LM_FILE_ADAPTER "adapter_model.safetensors"
#define TNK__LM_FILE_OPTIMIZER "optimizer.safetensors"
#define TNK__LM_FILE_CONFIG "adapter_config.json"

/*
 * Write a checkpoint into `dir`, which must exist. Each file gets a temporary
 * name, is synchronized, then renamed. Pending gradients are not saved. Blocks.
 * Returns TNK_EFAILED with the file and the reason.
 */
int tnk__lm_save(const tnk__lm_t *lm, const char *dir, int with_optimizer,
                 tnk__lm_why_t *why);
/* Create a model from a checkpoint. With the optimizer's state, training
 * continues bit for bit. Without it, moments and step count are zero, and
 * `optimizer` replaces the saved family. Returns TNK_ENOTFOUND, TNK_EPROTO
 * (malformed; the message names the file and the position), TNK_ENOMEM or
 * TNK_EFAILED. */
int tnk__lm_load(tnk__lm_t **out, const tnk__lm_base_t *base, const char *dir,
                 int with_optimizer, tnk__lm_optimizer_t optimizer,
                 const tnk_allocator_t *alloc, tnk__lm_why_t *why);
/* Load into an existing model; rank and flags must match (TNK_EINVAL). After a
 * failure the model is unchanged. Gradients are cleared. */
int tnk__lm_restore(tnk__lm_t *lm, const char *dir, int with_optimizer,
                    tnk__lm_why_t *why);
/* Read the configuration of a checkpoint without its tensors. */
int tnk__lm_read_config(tnk__lm_config_t *out, const char *dir,
                        int *has_optimizer, const tnk_allocator_t *alloc,
                        tnk__lm_why_t *why);

/* ---- For other programs ---- */

/* Write the two files of a PEFT adapter: the config, with the base model
 * `base_name`, and the tensors. Returns TNK_OK or the buffer's error. */
int tnk__lm_peft_config(const tnk__lm_config_t *config, const char *base_name,
                        tnk__buf_t *out);
int tnk__lm_peft_tensors(const tnk__lm_t *lm, tnk__buf_t *out);

/* ---- Weights for sampling ---- */

/* A copy of the model's current weights. NULL without memory. */
tnk__lm_weights_t *tnk__lm_snapshot(const tnk__lm_t *lm);
/* The weights of the base. NULL without memory. */
tnk__lm_weights_t *tnk__lm_base_weights(const tnk__lm_base_t *base,
                                        const tnk_allocator_t *alloc);
/* Load weights from a checkpoint; errors as in tnk__lm_load(). */
int tnk__lm_weights_load(tnk__lm_weights_t **out, const tnk__lm_base_t *base,
                         const char *dir, const tnk_allocator_t *alloc,
                         tnk__lm_why_t *why);
void tnk__lm_weights_free(tnk__lm_weights_t *weights);

/* ---- Sampling ---- */

typedef enum {
  TNK__LM_STOP_EOS = 0,   /* the end token only; the lists are ignored */
  TNK__LM_STOP_LISTED = 1 /* the lists only; they may be empty */
} tnk__lm_stop_kind_t;

typedef struct {
  const char *bytes;
  size_t length;
} tnk__lm_text_t;

/*
 * A sampling request. L is n_prompt. Zero it, then set the members;
 * tnk__lm_draw_new() copies the arrays. All reported logprobs are the model's,
 * before temperature, top_k and top_p. They equal those of a forward pass over
 * the same tokens.
 */
typedef struct {
  const int32_t *prompt;
  size_t n_prompt;     /* 1 .. TNK__LM_MAX_CONTEXT */
  uint32_t n_samples;  /* at least 1 */
  uint32_t max_tokens; /* 0: until the context is full */
  uint64_t seed; /* equal seeds give equal samples; without one from the client
                  * the caller draws it */
  double temperature; /* 0: the most likely token */
  int64_t top_k;      /* below 1: off */
  double top_p;       /* above 0; 1: off */
  tnk__lm_stop_kind_t stop_kind;
  const int32_t *stop_tokens;
  size_t n_stop_tokens;
  const tnk__lm_text_t *stop_texts; /* byte strings, none empty */
  size_t n_stop_texts;
  uint8_t prompt_logprobs;
  uint32_t topk_prompt;    /* best k at every prompt position; 0: off */
  uint32_t topk_sample;    /* best k at every sampled position; 0: off */
  uint32_t last_n;         /* 1 to L - 1: score only the last n prompt tokens
                            * for the first two; 0: all */
  uint32_t n_alternatives; /* draws at every prompt position >= 1; 0: off */
  const int64_t *ask;      /* (L - 1) x n_ask ids, row i for position i + 1, -1:
                            * skip; NULL: off */
  size_t n_ask;
  int32_t n_vocab; /* see vocab.h; 0: TNK__LM_VOCAB */
} tnk__lm_draw_options_t;

typedef enum {
  TNK__LM_STOPPED = 0, /* ended by a stop token or string, which is included */
  TNK__LM_LENGTH = 1   /* ended by max_tokens or the context */
} tnk__lm_stop_reason_t;

/* A finished sample. */
typedef struct {
  const int32_t *tokens;
  const float *logprobs;
  size_t n_tokens; /* 0 only if the prompt fills the context */
  tnk__lm_stop_reason_t reason;
  const int32_t *topk_tokens; /* n_tokens x topk_sample, best first */
  const float *topk_logprobs; /* NULL when off */
} tnk__lm_sample_t;

/* Results for the prompt; arrays are NULL when off. Positions that were not
 * scored hold NaN, and token -1 in lists of tokens. */
typedef struct {
  const float *logprobs;      /* L; the first is NaN */
  const int32_t *topk_tokens; /* L x topk_prompt, best first */
  const float *topk_logprobs;
  const int32_t *alt_tokens; /* (L - 1) x n_alternatives */
  const float *alt_logprobs;
  const float *ask_logprobs; /* (L - 1) x n_ask; 0 where not requested */
} tnk__lm_prompt_t;

/* Create a draw. Returns TNK_EINVAL with the name of the option, or TNK_ENOMEM.
 * The weights are borrowed until the draw is freed. Does not run the model. */
int tnk__lm_draw_new(tnk__lm_draw_t **out, const tnk__lm_weights_t *weights,
                     const tnk__lm_draw_options_t *options,
                     const tnk_allocator_t *alloc, tnk__lm_why_t *why);
void tnk__lm_draw_free(tnk__lm_draw_t *draw);
/*
 * Process about `n_tokens` tokens (at least 1; prompt and sampled tokens count
 * alike), then return. The prompt is read once for all samples. *done is set to
 * 1 when the results are available. The results do not depend on the slicing.
 * After TNK_ENOMEM the draw must be freed.
 */
int tnk__lm_draw_step(tnk__lm_draw_t *draw, size_t n_tokens, int *done);
/* Results of a finished draw; valid until the draw is freed. */
tnk__lm_sample_t tnk__lm_draw_sample(const tnk__lm_draw_t *draw, uint32_t i);
tnk__lm_prompt_t tnk__lm_draw_prompt(const tnk__lm_draw_t *draw);

/* ---- Tokenizer ---- */

/* Write the files of a tokenizer with the model's ids into `dir`, which must
 * exist. Each byte is a token; start and end of a text are special tokens. */
int tnk__lm_tokenizer_write(const char *dir, const tnk_allocator_t *alloc,
                            tnk__lm_why_t *why);

#endif

#ifndef TNK_TOOLS_LOCAL_LM_LM_H
#define TNK_TOOLS_LOCAL_LM_LM_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "tnk/common.h"
#include "tnk/data.h"
#include "tnk/training.h"

/*
 * A small byte-level causal language model that really trains.
 *
 *   base     the frozen weights; made once, the same on every machine
 *   lm       one model in training: LoRA adapters, gradients, optimizer
 *   weights  an immutable copy of base + adapters, for sampling
 *   draw     one sampling request running on some weights
 *
 * Threads: nothing here locks and nothing is global. A base and weights are
 * only read, so any number of threads may use one at a time; an lm and a draw
 * belong to whoever calls, one call at a time, on any thread. The allocator
 * must be thread-safe when threads are used. Lifetimes: a base outlives what
 * was made with it, weights outlive their draws; nobody counts references.
 *
 * Functions return TNK_OK or a negative code. A function that can refuse
 * what a client sent takes a `why`, which may be NULL and receives one
 * sentence that says where.
 */

enum {
  TNK__LM_BOS = 256,   /* begins a text */
  TNK__LM_EOS = 257,   /* the end token: stops sampling by default */
  TNK__LM_VOCAB = 258, /* ids 0..255 are bytes */
  TNK__LM_MAX_VOCAB = 1 << 24,
  TNK__LM_MAX_CONTEXT = 4096,
  TNK__LM_MAX_RANK = 256,
  TNK__LM_DEFAULT_RANK = 32,
  TNK__LM_MAX_TOPK = 258
};

/* Name under which the base is offered, and the names of its parts. */
#define TNK__LM_NAME "tnk/byte-lm"
#define TNK__LM_ARCH "tnk_byte_lm"
#define TNK__LM_TOKENIZER "tnk/bytes"

typedef struct {
  char text[240]; /* NUL-terminated; empty when nothing was refused */
} tnk__lm_why_t;

typedef struct tnk__lm_base tnk__lm_base_t;
typedef struct tnk__lm_weights tnk__lm_weights_t;
typedef struct tnk__lm tnk__lm_t;
typedef struct tnk__lm_draw tnk__lm_draw_t;

/* ---- Base and models ---- */

/* Make a base, which takes some milliseconds. NULL when memory is out. */
tnk__lm_base_t *tnk__lm_base_new(const tnk_allocator_t *alloc);
void tnk__lm_base_free(tnk__lm_base_t *base);

typedef enum { TNK__LM_ADAMW = 0, TNK__LM_DIMUON = 1 } tnk__lm_optimizer_t;

/* What a model is created with. */
typedef struct {
  uint32_t rank; /* 1 .. TNK__LM_MAX_RANK */
  uint64_t seed; /* of the adapters; equal seeds give equal adapters */
  uint8_t train_mlp;
  uint8_t train_attn;
  uint8_t train_unembed; /* at least one of the three */
  tnk__lm_optimizer_t optimizer;
} tnk__lm_config_t;

#define TNK__LM_CONFIG_INIT                                                    \
  { TNK__LM_DEFAULT_RANK, 0, 1, 1, 1, TNK__LM_ADAMW }

/* Make a model. TNK_EINVAL (rank, no train flag) or TNK_ENOMEM, then *out is
 * NULL. */
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

/* Look a loss up by its protocol name and apply the settings over the
 * defaults. TNK_EUNSUPPORTED for an unknown name; TNK_EINVAL for an unknown
 * setting, a text, or a value that makes no sense. NULL: cross_entropy. */
int tnk__lm_loss_init(tnk__lm_loss_t *loss, const char *name,
                      const tnk_loss_setting_t *settings, size_t n_settings,
                      tnk__lm_why_t *why);

/* One example; N is n_tokens. Arrays are borrowed for the call. */
typedef struct {
  const int32_t *tokens;   /* N: the model's input */
  size_t n_tokens;         /* 1 .. TNK__LM_MAX_CONTEXT */
  const int64_t *targets;  /* N x n_targets: what position i should predict */
  size_t n_targets;        /* 1, or K for cross_entropy with (N, K) targets */
  const float *weights;    /* N x n_targets factors; NULL: all 1 */
  const float *logprobs;   /* N: the sampler's; all but cross_entropy */
  const float *advantages; /* N: all but cross_entropy */
  const float *clip_low;   /* N or NULL: instead of the loss's settings */
  const float *clip_high;  /* N or NULL */
  const float *mask;       /* N or NULL: gspo's sequence_ratio_mask */
  int32_t n_vocab;         /* ids, see vocab.h; 0: TNK__LM_VOCAB */
} tnk__lm_datum_t;

/* Check everything a pass needs: sizes, ids within the vocabulary, the arrays
 * the loss reads, finite numbers. The sentence names array and position,
 * without the datum's number: `"target_tokens"[7] is 300, ...`. */
int tnk__lm_datum_check(const tnk__lm_datum_t *datum,
                        const tnk__lm_loss_t *loss, tnk__lm_why_t *why);
/* Check bare ids, such as a prompt; `what` names them. */
int tnk__lm_tokens_check(const int32_t *tokens, size_t n, int32_t n_vocab,
                         const char *what, tnk__lm_why_t *why);

/*
 * Run one example that passed tnk__lm_datum_check(); with `backward` its
 * gradients add up in the model until the next step. A pass over a batch is
 * one call an example, in order, with anything in between: the sums do not
 * depend on the slicing. Weights do not change.
 *
 * logprobs  N x n_targets values are written (never NULL).
 * loss_sum  the example's loss is added: the metric "loss:sum".
 *
 * TNK_ENOMEM leaves the gradients as they were. tnk__lm_reserve() for the
 * longest example makes that impossible for the whole batch.
 */
int tnk__lm_run(tnk__lm_t *lm, const tnk__lm_loss_t *loss,
                const tnk__lm_datum_t *datum, int backward, float *logprobs,
                double *loss_sum);
int tnk__lm_reserve(tnk__lm_t *lm, size_t n_tokens);
/* Forget gradients that no step has used. */
void tnk__lm_zero_grad(tnk__lm_t *lm);

/* ---- Optimizer ---- */

typedef struct {
  double grad_norm; /* of all adapters, before clipping */
  uint64_t step;    /* number of this step, from 1 */
} tnk__lm_step_t;

/* Parameters of the two optimizers; the service's defaults. */
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
 * Apply the gradients and clear them; without gradients they count as zero.
 * TNK_EINVAL for parameters out of range or of another family than the model's,
 * or TNK_ENOMEM; nothing changes then.
 *
 * AdamW: decoupled decay, bias correction, one global clip norm. Dimuon here:
 * momentum, then each factor's momentum matrix is brought near orthogonal by
 * five Newton-Schulz rounds and scaled by sqrt(max(1, rows / columns)).
 */
int tnk__lm_step_adamw(tnk__lm_t *lm, const tnk__adam_t *params,
                       tnk__lm_step_t *out, tnk__lm_why_t *why);
int tnk__lm_step_dimuon(tnk__lm_t *lm, const tnk__dimuon_t *params,
                        tnk__lm_step_t *out, tnk__lm_why_t *why);

/* ---- Checkpoints ---- */

/* The files of a checkpoint, inside a directory of their own. The config is
 * written last, so a directory that has it is complete. */
#define TNK__LM_FILE_ADAPTER "adapter_model.safetensors"
#define TNK__LM_FILE_OPTIMIZER "optimizer.safetensors"
#define TNK__LM_FILE_CONFIG "adapter_config.json"

/*
 * Write a checkpoint into `dir`, which exists: each file under a temporary
 * name, synced, then renamed. Gradients that wait for a step are not part of
 * it. Blocks on the disk. TNK_EFAILED with the file and the reason.
 */
int tnk__lm_save(const tnk__lm_t *lm, const char *dir, int with_optimizer,
                 tnk__lm_why_t *why);
/* Make a model from a checkpoint. With the optimizer's state it goes on bit for
 * bit; without, moments and step count are zero and `optimizer` is used instead
 * of the saved family. TNK_ENOTFOUND, TNK_EPROTO (malformed, the sentence says
 * in which file and where), TNK_ENOMEM, TNK_EFAILED. */
int tnk__lm_load(tnk__lm_t **out, const tnk__lm_base_t *base, const char *dir,
                 int with_optimizer, tnk__lm_optimizer_t optimizer,
                 const tnk_allocator_t *alloc, tnk__lm_why_t *why);
/* Load into a model that exists; rank and flags must be the saved ones
 * (TNK_EINVAL). The model is unchanged on failure; gradients are cleared. */
int tnk__lm_restore(tnk__lm_t *lm, const char *dir, int with_optimizer,
                    tnk__lm_why_t *why);
/* Read what a checkpoint was made with, without its tensors. */
int tnk__lm_read_config(tnk__lm_config_t *out, const char *dir,
                        int *has_optimizer, const tnk_allocator_t *alloc,
                        tnk__lm_why_t *why);

/* ---- For other programs ---- */

/* Write the two files of an adapter as PEFT has them: the config, whose base is
 * called `base_name`, and the tensors. TNK_OK or the buffer's failure. */
int tnk__lm_peft_config(const tnk__lm_config_t *config, const char *base_name,
                        tnk__buf_t *out);
int tnk__lm_peft_tensors(const tnk__lm_t *lm, tnk__buf_t *out);

/* ---- Weights for sampling ---- */

/* A copy of the model's weights as they are now. NULL: out of memory. */
tnk__lm_weights_t *tnk__lm_snapshot(const tnk__lm_t *lm);
/* The base's own weights. NULL: out of memory. */
tnk__lm_weights_t *tnk__lm_base_weights(const tnk__lm_base_t *base,
                                        const tnk_allocator_t *alloc);
/* Load them from a checkpoint; fails as tnk__lm_load(). */
int tnk__lm_weights_load(tnk__lm_weights_t **out, const tnk__lm_base_t *base,
                         const char *dir, const tnk_allocator_t *alloc,
                         tnk__lm_why_t *why);
void tnk__lm_weights_free(tnk__lm_weights_t *weights);

/* ---- Sampling ---- */

typedef enum {
  TNK__LM_STOP_EOS = 0,   /* the end token, and nothing of the lists */
  TNK__LM_STOP_LISTED = 1 /* only what the lists hold; they may be empty */
} tnk__lm_stop_kind_t;

typedef struct {
  const char *bytes;
  size_t length;
} tnk__lm_text_t;

/*
 * One sampling request. L is n_prompt. Zeroed, then filled; arrays are copied
 * by tnk__lm_draw_new(). All reported logprobs are those of the model itself,
 * without temperature, top_k and top_p, and equal what a forward pass over
 * the same tokens reports.
 */
typedef struct {
  const int32_t *prompt;
  size_t n_prompt;     /* 1 .. TNK__LM_MAX_CONTEXT */
  uint32_t n_samples;  /* at least 1 */
  uint32_t max_tokens; /* 0: as far as the context goes */
  uint64_t seed; /* the caller draws one when the client gave none; sample i
                    of two requests with equal seeds is equal */
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
  uint32_t last_n;         /* score only the last n prompt tokens for the
                              first two; 0: all; else 1 .. L - 1 */
  uint32_t n_alternatives; /* draws at every prompt position >= 1; 0: off */
  const int64_t *ask;      /* (L - 1) x n_ask ids, row i about position
                              i + 1, -1: not asked; NULL: off */
  size_t n_ask;
  int32_t n_vocab; /* ids, see vocab.h; 0: TNK__LM_VOCAB */
} tnk__lm_draw_options_t;

typedef enum {
  TNK__LM_STOPPED = 0, /* a stop token or text ended it; it is included */
  TNK__LM_LENGTH = 1   /* max_tokens or the context ended it */
} tnk__lm_stop_reason_t;

/* One finished sample. */
typedef struct {
  const int32_t *tokens;
  const float *logprobs;
  size_t n_tokens; /* 0 only when the prompt fills the context */
  tnk__lm_stop_reason_t reason;
  const int32_t *topk_tokens; /* n_tokens x topk_sample, best first */
  const float *topk_logprobs; /* NULL when off */
} tnk__lm_sample_t;

/* What was asked about the prompt; arrays are NULL when off. Positions that
 * were not scored hold NaN, and token -1 in the lists of tokens. */
typedef struct {
  const float *logprobs;      /* L; the first is NaN */
  const int32_t *topk_tokens; /* L x topk_prompt, best first */
  const float *topk_logprobs;
  const int32_t *alt_tokens; /* (L - 1) x n_alternatives */
  const float *alt_logprobs;
  const float *ask_logprobs; /* (L - 1) x n_ask; 0 where not asked */
} tnk__lm_prompt_t;

/* Make a draw. TNK_EINVAL names the option; TNK_ENOMEM. The weights stay
 * borrowed until the draw is freed. Costs no model work. */
int tnk__lm_draw_new(tnk__lm_draw_t **out, const tnk__lm_weights_t *weights,
                     const tnk__lm_draw_options_t *options,
                     const tnk_allocator_t *alloc, tnk__lm_why_t *why);
void tnk__lm_draw_free(tnk__lm_draw_t *draw);
/*
 * Work on the draw for about `n_tokens` tokens (at least 1; prompt and
 * sampled tokens count alike), then return. The prompt is read once for all
 * samples. *done becomes 1 when the results can be read. The outcome does not
 * depend on the slices. TNK_ENOMEM: free the draw.
 */
int tnk__lm_draw_step(tnk__lm_draw_t *draw, size_t n_tokens, int *done);
/* Results of a done draw; they live as long as the draw. */
tnk__lm_sample_t tnk__lm_draw_sample(const tnk__lm_draw_t *draw, uint32_t i);
tnk__lm_prompt_t tnk__lm_draw_prompt(const tnk__lm_draw_t *draw);

/* ---- Tokenizer ---- */

/* Write the files of a tokenizer with the model's ids into `dir`, which exists:
 * each byte is a token, begin and end of a text are special ones. */
int tnk__lm_tokenizer_write(const char *dir, const tnk_allocator_t *alloc,
                            tnk__lm_why_t *why);

#endif

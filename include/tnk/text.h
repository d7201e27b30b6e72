#ifndef TNK_TEXT_H
#define TNK_TEXT_H

#include "tnk/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Text for those who have a tokenizer. This library has none: a plug-in brings
 * one, such as tnk_tokenizer_plugin() of libtnk-tokenizers, or the caller's
 * own. A hub (hub.h) finds, downloads and keeps the files for it.
 */

/**
 * Takes ids from a plug-in, in order.
 * @return TNK_OK, or a code that encoding then fails with.
 * Since: 0.1
 */
typedef int (*tnk_take_ids_cb)(const int32_t *ids, size_t n, void *user);

/**
 * Takes bytes from a plug-in, in order; a piece may end inside a character.
 * @return TNK_OK, or a code that decoding then fails with.
 * Since: 0.1
 */
typedef int (*tnk_take_bytes_cb)(const char *bytes, size_t n, void *user);

/**
 * A tokenizer library as this one sees it. Static: a plug-in outlives all that
 * uses it. A tokenizer must not change once it is open, since it is used from
 * any thread.
 *
 * What fails writes a sentence to `why`, cut at `why_size`, and returns a code
 * of tnk_err_t.
 */
typedef struct {
  size_t size;      /**< Set by TNK_TOKENIZER_PLUGIN_INIT. */
  const char *name; /**< For sentences. */
  /** Names of files, up to a NULL. The first that a model has is its tokenizer.
   */
  const char *const *main_files;
  /** Files that belong beside it where a model has them; or NULL. */
  const char *const *more_files;
  /**
   * Read a tokenizer. Blocks; on a thread of libuv's pool.
   *
   * @param[out] tokenizer  Of the plug-in's own type.
   * @param path            Of the main file, the others are beside it; or the
   *                        folder that the caller named.
   * @param overrides       Of tnk_hub_tokenizer_options_t, sorted by name; an
   *                        unknown one is refused with TNK_ENOTSUP.
   * @param allocator       Valid until the return.
   */
  int (*open)(void **tokenizer, const char *path, const tnk_pair_t *overrides,
              size_t n_overrides, const tnk_allocator_t *allocator, char *why,
              size_t why_size);
  /** The last reference is gone. On any thread. */
  void (*close)(void *tokenizer);
  /** Give all ids of a text to `take`, in one piece or several. On any thread.
   * @param flags  Of the plug-in's own; 0 is its default. */
  int (*encode)(const void *tokenizer, const char *text, size_t n,
                unsigned flags, tnk_take_ids_cb take, void *user, char *why,
                size_t why_size);
  /** Give the bytes that ids stand for to `take`, in one piece or several:
   * those of each id, whatever stands before and behind it, special tokens as
   * their names. Ids that name no token are left out. Without it, or NULL, ids
   * cannot become text. On any thread.
   * @param flags  Of the plug-in's own; 0 is its default. */
  int (*decode)(const void *tokenizer, const int32_t *ids, size_t n,
                unsigned flags, tnk_take_bytes_cb take, void *user, char *why,
                size_t why_size);
} tnk_tokenizer_plugin_t;

#define TNK_TOKENIZER_PLUGIN_INIT TNK_SIZED(tnk_tokenizer_plugin_t)

/** A model input that owns its tokens. The struct is not named as the function
 * below, of which C++ would say that one hides the other. */
typedef struct tnk_text_tokens tnk_prompt_t;

/**
 * Turn a text into a model input.
 *
 *     tnk_prompt_t *prompt;
 *     tnk_prompt_from_text(&prompt, plugin, tokenizer, "Hello", 5, 0,
 *                               NULL, why, sizeof(why));
 *     tnk_sampling_sample(sampling, tnk_prompt_input(prompt), &params, NULL);
 *     tnk_prompt_free(prompt);
 *
 * @param[out] out   To be freed by the caller; NULL on failure.
 * @param tokenizer  What the plug-in opened: tnk_promise_tokenizer(), or one
 *                   that the caller opened itself.
 * @param text       UTF-8, @p n bytes; may be NULL when @p n is 0.
 * @param flags      The plug-in's own, such as TNK_ENCODE_ADD_SPECIAL; 0 is its
 *                   default.
 * @param allocator  Copied; NULL for malloc and its family.
 * @param why        On failure, receives one sentence, cut at @p why_size
 *                   bytes; may be NULL. It does not hold the text.
 *
 * @return TNK_OK; TNK_EINVAL for NULL or a plug-in without `encode`;
 *   TNK_ETOOBIG for 2^31 tokens or more; TNK_ENOMEM; or the plug-in's code.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_prompt_from_text(tnk_prompt_t **out,
                                 const tnk_tokenizer_plugin_t *plugin,
                                 const void *tokenizer, const char *text,
                                 size_t n, unsigned flags,
                                 const tnk_allocator_t *allocator, char *why,
                                 size_t why_size);

/**
 * The view to hand to calls. @return NULL for NULL.
 * Lifetime: until the input is freed. Thread: any. Since: 0.1
 */
TNK_API const tnk_model_input_t *tnk_prompt_input(const tnk_prompt_t *input);

/** Free an input and its tokens. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_prompt_free(tnk_prompt_t *input);

#ifdef __cplusplus
}
#endif

#endif

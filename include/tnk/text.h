/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEXT_H
#define TNK_TEXT_H

#include "tnk/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Text to token ids and back, through a tokenizer plug-in. libtnk has no
 * tokenizer. A plug-in provides one: tnk_tokenizer_plugin() of
 * libtnk-tokenizers, or your own. A hub (hub.h) finds, downloads and caches its
 * files.
 */

/**
 * Receives token ids from a plug-in, in order.
 * @return TNK_OK, or an error code with which the encoding then fails.
 * Since: 0.1
 */
typedef int (*tnk_take_ids_cb)(const int32_t *ids, size_t n, void *user);

/**
 * Receives bytes from a plug-in, in order. A piece may end inside a character.
 * @return TNK_OK, or an error code with which the decoding then fails.
 * Since: 0.1
 */
typedef int (*tnk_take_bytes_cb)(const char *bytes, size_t n, void *user);

/**
 * The functions of a tokenizer library. The struct must be static: it outlives
 * everything that uses it. A tokenizer must not change after it was opened,
 * because any thread may use it.
 *
 * A function that fails writes one sentence to `why`, truncated to `why_size`
 * bytes, and returns a code of tnk_err_t.
 */
typedef struct {
  size_t size;      /**< Set by TNK_TOKENIZER_PLUGIN_INIT. */
  const char *name; /**< Name of the plug-in, for messages. */
  /** File names, terminated by NULL. The first one that a model has is its
   * tokenizer. */
  const char *const *main_files;
  /** Further files of the tokenizer, terminated by NULL, which are fetched if
   * the model has them. NULL means none. */
  const char *const *more_files;
  /**
   * Open a tokenizer. May block; runs on a thread of libuv's pool.
   *
   * @param[out] tokenizer  A pointer of the plug-in's own type.
   * @param path            Path of the main file, with the other files in the
   *                        same folder; or the folder that the caller named.
   * @param overrides       From tnk_hub_tokenizer_options_t, sorted by name.
   *                        Reject an unknown one with TNK_ENOTSUP.
   * @param allocator       Valid until the function returns.
   */
  int (*open)(void **tokenizer, const char *path, const tnk_pair_t *overrides,
              size_t n_overrides, const tnk_allocator_t *allocator, char *why,
              size_t why_size);
  /** Free a tokenizer after its last reference was released. Any thread. */
  void (*close)(void *tokenizer);
  /** Encode a string and pass all ids to `take`, in one or more pieces. Any
   * thread.
   * @param flags  Defined by the plug-in; 0 is its default. */
  int (*encode)(const void *tokenizer, const char *text, size_t n,
                unsigned flags, tnk_take_ids_cb take, void *user, char *why,
                size_t why_size);
  /** Decode ids and pass the bytes to `take`, in one or more pieces. The bytes
   * of an id do not depend on its neighbors. Special tokens are written as
   * their names, and ids without a token are skipped. NULL means that the
   * plug-in cannot decode. Any thread.
   * @param flags  Defined by the plug-in; 0 is its default. */
  int (*decode)(const void *tokenizer, const int32_t *ids, size_t n,
                unsigned flags, tnk_take_bytes_cb take, void *user, char *why,
                size_t why_size);
  /** An added token by its index, from 0: `encode` finds it anywhere in a
   * string, such as the end of a turn. NULL means that the plug-in does not
   * list them. Any thread.
   * @param[out] n   The bytes of its text.
   * @param[out] id  Its id.
   * @return Its text, which lives as long as the tokenizer; NULL after the last
   *   one. */
  const char *(*added)(const void *tokenizer, size_t index, size_t *n,
                       int32_t *id);
  /** The flags with which `encode` finds no added token. Set with `added`. */
  unsigned plain_flags;
  uint32_t reserved; /**< 0. */
} tnk_tokenizer_plugin_t;

#define TNK_TOKENIZER_PLUGIN_INIT TNK_SIZED(tnk_tokenizer_plugin_t)

/** A model input that owns its tokens. The struct tag differs from the function
 * name below, because a C++ compiler warns if one hides the other. */
typedef struct tnk_text_tokens tnk_prompt_t;

/**
 * Encode a string as a model input.
 *
 *     tnk_prompt_t *prompt;
 *     tnk_prompt_from_text(&prompt, plugin, tokenizer, "Hello", 5, 0,
 *                               NULL, why, sizeof(why));
 *     tnk_sampling_sample(sampling, tnk_prompt_input(prompt), &params, NULL);
 *     tnk_prompt_free(prompt);
 *
 * @param[out] out   The input, which the caller must free; NULL after an error.
 * @param tokenizer  A tokenizer that the plug-in opened: the result of
 *                   tnk_promise_tokenizer(), or one that the caller opened.
 * @param text       UTF-8, @p n bytes; may be NULL when @p n is 0.
 * @param flags      Defined by the plug-in, such as TNK_ENCODE_ADD_SPECIAL; 0
 *                   is its default.
 * @param allocator  Copied; NULL selects malloc and its family.
 * @param why        After an error, receives one sentence, truncated to
 *                   @p why_size bytes. It does not contain the text. May be
 *                   NULL.
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
 * Get the model input to pass to calls. @return NULL for NULL.
 * Lifetime: until the input is freed. Thread: any. Since: 0.1
 */
TNK_API const tnk_model_input_t *tnk_prompt_input(const tnk_prompt_t *input);

/** Free an input and its tokens. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_prompt_free(tnk_prompt_t *input);

#ifdef __cplusplus
}
#endif

#endif

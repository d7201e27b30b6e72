/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_H
#define TNK_TOKENIZERS_H

#include "tnk/error.h"
#include "tnk/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Text to token ids and back. This is libtnk-tokenizers, a separate library. It
 * does not need libtnk, and libtnk does not need it.
 *
 * A hub of libtnk (hub.h) finds and downloads the files of a model and opens
 * them with this library through tnk_tokenizer_plugin().
 *
 * The library reads four kinds of files: Hugging Face's tokenizer.json,
 * tiktoken rank files (such as o200k_base.tiktoken, Whisper's files and Kimi's
 * tiktoken.model), Mistral's tekken.json, and SentencePiece models. The ids
 * equal those of the reference implementation of each format. If a file uses an
 * unsupported feature, loading fails with an error that names the feature.
 * Files are never read approximately.
 *
 *     tnk_tokenizer_t *tok;
 *     tnk_tokens_t *tokens = tnk_tokens_new(NULL);
 *     tnk_tokenizer_error_t error;
 *     if (tnk_tokenizer_load(&tok, "dir/tokenizer.json", NULL, &error) < 0)
 *       fprintf(stderr, "%s\n", error.text);
 *     tnk_tokenizer_encode(tok, tokens, text, strlen(text), 0, &error);
 *     ids = tnk_tokens_ids(tokens, &n_ids);
 *
 * Codes: TNK_EINVAL invalid argument, or text that is not UTF-8; TNK_EPROTO
 * malformed file; TNK_EUNSUPPORTED unsupported feature; TNK_ENOTFOUND missing
 * or unreadable file; TNK_ETOOBIG a limit was exceeded; TNK_ENOMEM.
 */

/** An immutable, reference-counted tokenizer. Any thread may use it. */
typedef struct tnk_tokenizer tnk_tokenizer_t;
/** A growing list of token ids with their positions in the text. */
typedef struct tnk_tokens tnk_tokens_t;
/** An incremental decoder, which returns whole characters. */
typedef struct tnk_detokenizer tnk_detokenizer_t;

/** An error with its description. Since: 0.1 */
typedef struct {
  int code;        /**< A code of tnk_err_t; TNK_OK after success. */
  uint64_t offset; /**< Byte offset of the error in the file or text, or 0. */
  char text[368];  /**< One sentence, NUL-terminated. */
} tnk_tokenizer_error_t;

/** File formats. */
typedef enum {
  TNK_TOKENIZER_AUTO = 0,         /**< Detect from the first bytes. */
  TNK_TOKENIZER_HF_JSON = 1,      /**< tokenizer.json or tekken.json */
  TNK_TOKENIZER_TIKTOKEN = 2,     /**< Lines of base64 and rank. */
  TNK_TOKENIZER_SENTENCEPIECE = 3 /**< A .model file. */
} tnk_tokenizer_format_t;

/** Options of loading. 0 or NULL selects the default. */
typedef struct {
  size_t size; /**< Set by TNK_TOKENIZER_OPTIONS_INIT. */
  /** Allocator of the tokenizer; copied. Must be thread-safe. */
  const tnk_allocator_t *allocator;
  /** Contents of tokenizer_config.json, which names the bos and eos tokens and
   * the special tokens of a tiktoken file. Used during the call only. If NULL,
   * tnk_tokenizer_load() reads the file next to the main file. */
  const void *config;
  size_t n_config;
  /** tiktoken only: the pre-tokenizer pattern, with the special tokens of
   * `config`; or the name of an encoding, with the special tokens of that
   * encoding: "gpt2", "r50k_base", "p50k_base", "p50k_edit", "cl100k_base",
   * "o200k_base", "o200k_harmony", "whisper" (99 languages), "whisper_v3" (100
   * languages) or "whisper_en". NULL selects the encoding that is the name of
   * the file before ".tiktoken"; Whisper's multilingual.tiktoken is "whisper"
   * and its gpt2.tiktoken is "whisper_en". For any other name, and for a file
   * in memory, NULL selects Kimi's pattern, its 256 special tokens after the
   * ranks, and its way of splitting long texts. */
  const char *pattern;
  tnk_tokenizer_format_t format;
  uint32_t reserved;
} tnk_tokenizer_options_t;
#define TNK_TOKENIZER_OPTIONS_INIT TNK_SIZED(tnk_tokenizer_options_t)

/** Flags of encoding. By default, added tokens in the text become their ids,
 * and no BOS or EOS token is added. A SentencePiece model has no added tokens.
 * It always finds its user-defined pieces and never its control tokens. No text
 * becomes a special token of a tekken.json. */
enum {
  /** Add the tokens that the file prescribes around the text, usually BOS. */
  TNK_ENCODE_ADD_SPECIAL = 1,
  /** Encode special tokens in the text as plain text (split_special_tokens).
   * Added tokens that are not special still become their ids. */
  TNK_ENCODE_SPLIT_SPECIAL = 2,
  /** Encode all added tokens in the text as plain text. */
  TNK_ENCODE_PLAIN = 4,
  /** Replace invalid UTF-8 with U+FFFD instead of failing. */
  TNK_ENCODE_LOSSY = 8,
  /** Store the position of every token; see tnk_tokens_offsets(). */
  TNK_ENCODE_OFFSETS = 16
};

/** Flags of decoding. */
enum {
  /** Omit special tokens. */
  TNK_DECODE_SKIP_SPECIAL = 1
};

/** Flags of a token. */
enum {
  TNK_TOKEN_SPECIAL = 1, /**< Control token, such as BOS or end of turn. */
  TNK_TOKEN_ADDED = 2    /**< Added token, matched before pre-tokenization. */
};

/** Position of a token: bytes [start, end) of the encoded text. */
typedef struct {
  size_t start;
  size_t end;
} tnk_token_span_t;

/**
 * Load a tokenizer from a file or a directory.
 *
 * @param[out] out  One reference, owned by the caller; NULL after an error.
 * @param path      A file, or a directory with tokenizer.json, tekken.json,
 * tiktoken.model or tokenizer.model. The first one found in this order is used.
 * @param options   NULL for defaults.
 * @param[out] error  Receives the error; may be NULL.
 *
 * @return TNK_OK, or TNK_EINVAL, TNK_ENOTFOUND, TNK_EPROTO,
 *   TNK_EUNSUPPORTED, TNK_ETOOBIG (file over 256 MiB), TNK_ENOTSUP (an option
 *   that this library does not know), TNK_ENOMEM.
 * Blocks: reads the file. Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_load(tnk_tokenizer_t **out, const char *path,
                               const tnk_tokenizer_options_t *options,
                               tnk_tokenizer_error_t *error);

/**
 * Load a tokenizer from memory. The function keeps no pointer to @p data.
 *
 * @return As tnk_tokenizer_load(), without TNK_ENOTFOUND.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_load_memory(tnk_tokenizer_t **out, const void *data,
                                      size_t n,
                                      const tnk_tokenizer_options_t *options,
                                      tnk_tokenizer_error_t *error);

/** Take another reference. @return @p tok. Thread: any. Since: 0.1 */
TNK_API tnk_tokenizer_t *tnk_tokenizer_ref(tnk_tokenizer_t *tok);
/** Release a reference. Releasing the last one frees the tokenizer. NULL does
 * nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_tokenizer_unref(tnk_tokenizer_t *tok);

/**
 * Create an empty token list.
 *
 * @param allocator  Copied; NULL selects malloc and its family.
 * @return Owned by the caller, see tnk_tokens_free(); NULL if out of memory.
 * Thread: any. Only one thread at a time may use a list. Since: 0.1
 */
TNK_API tnk_tokens_t *tnk_tokens_new(const tnk_allocator_t *allocator);
/** Free a list. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_tokens_free(tnk_tokens_t *tokens);
/** Remove all ids, but keep the memory. Thread: any. Since: 0.1 */
TNK_API void tnk_tokens_clear(tnk_tokens_t *tokens);
/**
 * Get the ids; @p n receives their number.
 * Lifetime: until @p tokens is changed or freed. Thread: any. Since: 0.1
 */
TNK_API const int32_t *tnk_tokens_ids(const tnk_tokens_t *tokens, size_t *n);
/**
 * Get the position of each id. NULL unless every id of the list was added with
 * TNK_ENCODE_OFFSETS.
 *
 * A token that is not in the text, such as BOS, has equal start and end. If
 * normalization changed the text, a token covers the whole changed sequence, so
 * adjacent tokens can overlap. A token may begin or end inside a character.
 * Blanks always belong to their token. The reference excludes them if the file
 * has trim_offsets.
 * Lifetime: until @p tokens is changed or freed. Thread: any. Since: 0.1
 */
TNK_API const tnk_token_span_t *tnk_tokens_offsets(const tnk_tokens_t *tokens);

/**
 * Encode @p text and append its tokens to @p tokens.
 *
 * @param text   UTF-8, @p n bytes. NUL is an ordinary character.
 * @param flags  TNK_ENCODE_* or 0.
 *
 * After an error @p tokens is unchanged. Offsets are relative to the beginning
 * of this text.
 * @return TNK_OK, or TNK_EINVAL (error->offset is the first invalid byte),
 *   TNK_ETOOBIG (2 GiB of text or more), TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_encode(const tnk_tokenizer_t *tok,
                                 tnk_tokens_t *tokens, const char *text,
                                 size_t n, unsigned flags,
                                 tnk_tokenizer_error_t *error);

/** A part of an input: text, or one id. */
typedef struct {
  const char *text; /**< NULL appends `id`. */
  size_t n;         /**< Bytes of text. */
  int32_t id;
  unsigned flags; /**< TNK_ENCODE_* for this part. */
} tnk_tokenizer_part_t;

/**
 * Encode several parts separately and append their tokens, as chat formats
 * require. Offsets are relative to the beginning of the first part.
 *
 * After an error @p tokens is unchanged.
 * @return As tnk_tokenizer_encode().
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_encode_parts(const tnk_tokenizer_t *tok,
                                       tnk_tokens_t *tokens,
                                       const tnk_tokenizer_part_t *parts,
                                       size_t n_parts,
                                       tnk_tokenizer_error_t *error);

/**
 * Count the tokens of @p text without storing them.
 *
 * @param[out] count  0 after an error.
 * @return As tnk_tokenizer_encode().
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_count(const tnk_tokenizer_t *tok, const char *text,
                                size_t n, unsigned flags, size_t *count,
                                tnk_tokenizer_error_t *error);

/**
 * Encode many texts on several threads.
 *
 * @param tokens     @p n_texts lists, one per text, to which ids are appended.
 * @param n_threads  0 or 1 uses only the calling thread. At most 64 are used.
 *
 * Returns when all texts are encoded. The code is that of the failed text with
 * the lowest index. The lists of failed texts are unchanged.
 * @return As tnk_tokenizer_encode().
 * Blocks: yes. Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_encode_batch(const tnk_tokenizer_t *tok,
                                       tnk_tokens_t *const *tokens,
                                       const char *const *texts,
                                       const size_t *n_bytes, size_t n_texts,
                                       unsigned flags, unsigned n_threads,
                                       tnk_tokenizer_error_t *error);

/**
 * Decode ids to text.
 *
 * Ids without a token are skipped. Invalid UTF-8 becomes U+FFFD.
 *
 * @param[out] text  NUL-terminated, allocated with the tokenizer's allocator;
 *                   free it with tnk_tokenizer_free_text(). NULL after an
 *                   error.
 * @param[out] n     Bytes of text; may be NULL.
 * @param flags      TNK_DECODE_* or 0.
 * @return TNK_OK, TNK_EINVAL, TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_decode(const tnk_tokenizer_t *tok, char **text,
                                 size_t *n, const int32_t *ids, size_t n_ids,
                                 unsigned flags);
/** Free a text from tnk_tokenizer_decode(). Thread: any. Since: 0.1 */
TNK_API void tnk_tokenizer_free_text(const tnk_tokenizer_t *tok, char *text);

/**
 * Get the bytes of a token. They may be parts of characters.
 *
 * @param[out] n      Number of bytes.
 * @param[out] flags  TNK_TOKEN_* or 0; may be NULL.
 * @return NULL if there is no such token. Lifetime: as long as the tokenizer.
 * Thread: any. Since: 0.1
 */
TNK_API const char *tnk_tokenizer_token(const tnk_tokenizer_t *tok, int32_t id,
                                        size_t *n, unsigned *flags);
/**
 * Get the id of the token with exactly these bytes. Added tokens take
 * precedence.
 * @return -1 if there is none. Thread: any. Since: 0.1
 */
TNK_API int32_t tnk_tokenizer_id(const tnk_tokenizer_t *tok, const char *bytes,
                                 size_t n);
/** Get the size of the vocabulary. All ids are less than this.
 * Thread: any. Since: 0.1 */
TNK_API size_t tnk_tokenizer_vocab_size(const tnk_tokenizer_t *tok);
/** Get the id of the BOS token, or -1. Thread: any. Since: 0.1 */
TNK_API int32_t tnk_tokenizer_bos(const tnk_tokenizer_t *tok);
/** Get the id of the EOS token, or -1. Thread: any. Since: 0.1 */
TNK_API int32_t tnk_tokenizer_eos(const tnk_tokenizer_t *tok);

/**
 * Create an incremental decoder.
 *
 * The concatenation of all returned texts equals the result of
 * tnk_tokenizer_decode() for all ids. A character is returned when its last
 * byte is known. With a tokenizer.json that has byte fallback, a run of byte
 * tokens is returned when it ends, because one wrong byte replaces all of them.
 *
 * @param[out] out  NULL after an error. It holds a reference to @p tok.
 * @param flags     TNK_DECODE_* or 0.
 * @return TNK_OK, TNK_EINVAL, TNK_ENOMEM.
 * Thread: any. Only one thread at a time may use a decoder. Since: 0.1
 */
TNK_API int tnk_detokenizer_new(tnk_detokenizer_t **out,
                                const tnk_tokenizer_t *tok, unsigned flags);
/** Free a decoder. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_detokenizer_free(tnk_detokenizer_t *detok);
/**
 * Add ids and get the text that is complete.
 *
 * @param[out] text  NUL-terminated, may be empty. Lifetime: until the next call
 *                   with @p detok.
 * @param[out] n     Bytes of text.
 * @return TNK_OK, TNK_EINVAL, TNK_ENOMEM (no id was added).
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_detokenizer_push(tnk_detokenizer_t *detok, const int32_t *ids,
                                 size_t n_ids, const char **text, size_t *n);
/**
 * End the text and get the rest. An incomplete character becomes U+FFFD. The
 * decoder can then be used for another text.
 *
 * Parameters and codes as tnk_detokenizer_push(). Thread: any. Since: 0.1
 */
TNK_API int tnk_detokenizer_finish(tnk_detokenizer_t *detok, const char **text,
                                   size_t *n);

/**
 * Get this library as a plug-in for functions of libtnk, such as
 * tnk_hub_tokenizer() and tnk_prompt_from_text(). The plug-in opens a
 * tnk_tokenizer_t. Its encoding flags are TNK_ENCODE_*. Its overrides are
 * "pattern" and "format" ("auto", "hf_json", "tiktoken", "sentencepiece"), as
 * in tnk_tokenizer_options_t.
 *
 * @return Static. Thread: any. Since: 0.1
 */
TNK_API const tnk_tokenizer_plugin_t *tnk_tokenizer_plugin(void);

#ifdef __cplusplus
}
#endif

#endif

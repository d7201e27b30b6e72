#ifndef TNK_TOKENIZERS_H
#define TNK_TOKENIZERS_H

#include "tnk/error.h"
#include "tnk/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Text to token ids and back: libtnk-tokenizers, a library of its own, which
 * neither needs libtnk nor is needed by it.
 *
 * A hub of libtnk (hub.h) finds and downloads the files of a model and opens
 * them with this library, by way of tnk_tokenizer_plugin().
 *
 * Three kinds of files are read: Hugging Face's tokenizer.json, tiktoken rank
 * files (Kimi's tiktoken.model), and SentencePiece models. Ids are those of
 * the reference implementation of each. A file that uses a feature this
 * library lacks is refused with the feature's name; it is never read
 * approximately.
 *
 *     tnk_tokenizer_t *tok;
 *     tnk_tokens_t *tokens = tnk_tokens_new(NULL);
 *     tnk_tokenizer_error_t error;
 *     if (tnk_tokenizer_load(&tok, "dir/tokenizer.json", NULL, &error) < 0)
 *       fprintf(stderr, "%s\n", error.text);
 *     tnk_tokenizer_encode(tok, tokens, text, strlen(text), 0, &error);
 *     ids = tnk_tokens_ids(tokens, &n_ids);
 *
 * Codes: TNK_EINVAL a bad argument, or text that is not UTF-8; TNK_EPROTO a
 * malformed file; TNK_EUNSUPPORTED a feature that is not implemented;
 * TNK_ENOTFOUND a missing or unreadable file; TNK_ETOOBIG more than a limit;
 * TNK_ENOMEM.
 */

/** An immutable tokenizer, counted, used from any thread. */
typedef struct tnk_tokenizer tnk_tokenizer_t;
/** A growing list of token ids with their places in the text. */
typedef struct tnk_tokens tnk_tokens_t;
/** Turns a stream of ids into text, whole characters at a time. */
typedef struct tnk_detokenizer tnk_detokenizer_t;

/** What went wrong, in a sentence. Since: 0.1 */
typedef struct {
  int code;        /**< A code of tnk_err_t; TNK_OK after success. */
  uint64_t offset; /**< Byte of the file or text it is about, or 0. */
  char text[368];  /**< One sentence, NUL-terminated. */
} tnk_tokenizer_error_t;

/** What kind of file it is. */
typedef enum {
  TNK_TOKENIZER_AUTO = 0,         /**< By the first bytes of the file. */
  TNK_TOKENIZER_HF_JSON = 1,      /**< tokenizer.json */
  TNK_TOKENIZER_TIKTOKEN = 2,     /**< Lines of base64 and rank. */
  TNK_TOKENIZER_SENTENCEPIECE = 3 /**< A .model file. */
} tnk_tokenizer_format_t;

/** How a tokenizer is loaded. Zero is the default of every member. */
typedef struct {
  size_t size; /**< Set by TNK_TOKENIZER_OPTIONS_INIT. */
  /** For everything the tokenizer allocates; copied. Must be thread-safe. */
  const tnk_allocator_t *allocator;
  /** Contents of tokenizer_config.json, where bos and eos tokens and the
   * special tokens of a tiktoken file are named; borrowed for the call. When
   * NULL, tnk_tokenizer_load() looks for the file beside the main one. */
  const void *config;
  size_t n_config;
  /** tiktoken only: the split expression. NULL means Kimi's, with Kimi's 256
   * special tokens behind the ranks and its cuts of long texts; otherwise the
   * special tokens are those that `config` names. */
  const char *pattern;
  tnk_tokenizer_format_t format;
  uint32_t reserved;
} tnk_tokenizer_options_t;
#define TNK_TOKENIZER_OPTIONS_INIT TNK_SIZED(tnk_tokenizer_options_t)

/** Flags of encoding. By default added tokens are found in the text and
 * nothing is put around it. A SentencePiece model has no added tokens: it
 * finds its own user-defined pieces whatever the flags, and never its control
 * tokens. */
enum {
  /** Put around the text what the file says: a BOS token for most. */
  TNK_ENCODE_ADD_SPECIAL = 1,
  /** Special tokens that occur in the text are text (split_special_tokens);
   * added tokens that are not special are still found. */
  TNK_ENCODE_SPLIT_SPECIAL = 2,
  /** No added token is found in the text. */
  TNK_ENCODE_PLAIN = 4,
  /** Replace what is not UTF-8 by U+FFFD instead of refusing it. */
  TNK_ENCODE_LOSSY = 8,
  /** Record the place of every token; see tnk_tokens_offsets(). */
  TNK_ENCODE_OFFSETS = 16
};

/** Flags of decoding. */
enum {
  /** Leave special tokens out. */
  TNK_DECODE_SKIP_SPECIAL = 1
};

/** What a token is. */
enum {
  TNK_TOKEN_SPECIAL = 1, /**< Control token: BOS, end of turn ... */
  TNK_TOKEN_ADDED = 2    /**< Found in the text before anything else. */
};

/** Where a token stands: bytes [start, end) of the text that was given. */
typedef struct {
  size_t start;
  size_t end;
} tnk_token_span_t;

/**
 * Read a tokenizer from a file, or from the directory it is in.
 *
 * @param[out] out  One reference, owned by the caller; NULL on failure.
 * @param path      A file, or a directory with one of tokenizer.json,
 *                  tiktoken.model, tokenizer.model (tried in this order).
 * @param options   NULL for defaults.
 * @param[out] error  What went wrong; may be NULL.
 *
 * @return TNK_OK, or TNK_EINVAL, TNK_ENOTFOUND, TNK_EPROTO,
 *   TNK_EUNSUPPORTED, TNK_ETOOBIG (file over 256 MiB), TNK_ENOTSUP (an option
 *   this library does not know), TNK_ENOMEM.
 * Blocks: reads the file. Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_load(tnk_tokenizer_t **out, const char *path,
                               const tnk_tokenizer_options_t *options,
                               tnk_tokenizer_error_t *error);

/**
 * Read a tokenizer from memory. Nothing of @p data is kept.
 *
 * @return As tnk_tokenizer_load(), without TNK_ENOTFOUND.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_load_memory(tnk_tokenizer_t **out, const void *data,
                                      size_t n,
                                      const tnk_tokenizer_options_t *options,
                                      tnk_tokenizer_error_t *error);

/** Take one more reference. @return @p tok. Thread: any. Since: 0.1 */
TNK_API tnk_tokenizer_t *tnk_tokenizer_ref(tnk_tokenizer_t *tok);
/** Give up a reference; the last one frees. NULL does nothing. Thread: any.
 * Since: 0.1 */
TNK_API void tnk_tokenizer_unref(tnk_tokenizer_t *tok);

/**
 * Make an empty list.
 *
 * @param allocator  Copied; NULL for malloc and its family.
 * @return Owned by the caller, see tnk_tokens_free(); NULL when memory is out.
 * Thread: any; one list is used by one thread at a time. Since: 0.1
 */
TNK_API tnk_tokens_t *tnk_tokens_new(const tnk_allocator_t *allocator);
/** Free a list. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_tokens_free(tnk_tokens_t *tokens);
/** Forget the contents, keep the memory. Thread: any. Since: 0.1 */
TNK_API void tnk_tokens_clear(tnk_tokens_t *tokens);
/**
 * The ids; @p n receives their number.
 * Lifetime: until @p tokens is changed or freed. Thread: any. Since: 0.1
 */
TNK_API const int32_t *tnk_tokens_ids(const tnk_tokens_t *tokens, size_t *n);
/**
 * The places, one an id, of lists filled with TNK_ENCODE_OFFSETS throughout;
 * NULL for others. A token that the file puts around the text has start equal
 * to end. Where normalization changed the text, a token covers the whole
 * changed sequence; neighbours may then overlap. A token may begin or end
 * inside a character. Blanks belong to their token also where the reference
 * takes them off the place, which a file may ask for (trim_offsets).
 * Lifetime: until @p tokens is changed or freed. Thread: any. Since: 0.1
 */
TNK_API const tnk_token_span_t *tnk_tokens_offsets(const tnk_tokens_t *tokens);

/**
 * Append the tokens of @p text to @p tokens.
 *
 * @param text   UTF-8, @p n bytes; NUL is a character like any other.
 * @param flags  TNK_ENCODE_* or 0.
 *
 * On failure @p tokens is as it was. Offsets count from the beginning of
 * this text.
 * @return TNK_OK, or TNK_EINVAL (error->offset is the first bad byte),
 *   TNK_ETOOBIG (2 GiB of text or more), TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_encode(const tnk_tokenizer_t *tok,
                                 tnk_tokens_t *tokens, const char *text,
                                 size_t n, unsigned flags,
                                 tnk_tokenizer_error_t *error);

/** A part of an input: text, or one id. */
typedef struct {
  const char *text; /**< NULL: `id` is appended as it is. */
  size_t n;         /**< Bytes of text. */
  int32_t id;
  unsigned flags; /**< TNK_ENCODE_* for this part. */
} tnk_tokenizer_part_t;

/**
 * Append the tokens of several parts, each tokenized on its own, as chat
 * formats want it. Offsets count from the beginning of the first part.
 *
 * On failure @p tokens is as it was.
 * @return As tnk_tokenizer_encode().
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_encode_parts(const tnk_tokenizer_t *tok,
                                       tnk_tokens_t *tokens,
                                       const tnk_tokenizer_part_t *parts,
                                       size_t n_parts,
                                       tnk_tokenizer_error_t *error);

/**
 * How many tokens @p text has, without keeping them.
 *
 * @param[out] count  0 on failure.
 * @return As tnk_tokenizer_encode().
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_count(const tnk_tokenizer_t *tok, const char *text,
                                size_t n, unsigned flags, size_t *count,
                                tnk_tokenizer_error_t *error);

/**
 * Encode many texts on several threads.
 *
 * @param tokens     @p n_texts lists, one a text, each appended to.
 * @param n_threads  0 or 1: the calling thread alone. At most 64 are used.
 *
 * The call returns when all are done. Its code is that of the first text, by
 * index, that failed; lists of failed texts are as they were.
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
 * Turn ids into text.
 *
 * Ids that name no token are left out. Bytes that are not UTF-8 become
 * U+FFFD.
 *
 * @param[out] text  NUL-terminated, allocated with the tokenizer's allocator;
 *                   free it with tnk_tokenizer_free_text(). NULL on failure.
 * @param[out] n     Bytes of text; may be NULL.
 * @param flags      TNK_DECODE_* or 0.
 * @return TNK_OK, TNK_EINVAL, TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_tokenizer_decode(const tnk_tokenizer_t *tok, char **text,
                                 size_t *n, const int32_t *ids, size_t n_ids,
                                 unsigned flags);
/** Free what tnk_tokenizer_decode() gave. Thread: any. Since: 0.1 */
TNK_API void tnk_tokenizer_free_text(const tnk_tokenizer_t *tok, char *text);

/**
 * The bytes a token stands for; they need not be whole characters.
 *
 * @param[out] n      Their number.
 * @param[out] flags  TNK_TOKEN_* or 0; may be NULL.
 * @return NULL when there is no such token. Lifetime: the tokenizer's.
 * Thread: any. Since: 0.1
 */
TNK_API const char *tnk_tokenizer_token(const tnk_tokenizer_t *tok, int32_t id,
                                        size_t *n, unsigned *flags);
/**
 * The id of the token that stands for exactly these bytes; the text of an
 * added token wins.
 * @return -1 when there is none. Thread: any. Since: 0.1
 */
TNK_API int32_t tnk_tokenizer_id(const tnk_tokenizer_t *tok, const char *bytes,
                                 size_t n);
/** All ids are below this. Thread: any. Since: 0.1 */
TNK_API size_t tnk_tokenizer_vocab_size(const tnk_tokenizer_t *tok);
/** The id that begins a text, or -1. Thread: any. Since: 0.1 */
TNK_API int32_t tnk_tokenizer_bos(const tnk_tokenizer_t *tok);
/** The id that ends a text, or -1. Thread: any. Since: 0.1 */
TNK_API int32_t tnk_tokenizer_eos(const tnk_tokenizer_t *tok);

/**
 * A decoder for ids that come one after the other.
 *
 * All texts it hands out, put together, are the text tnk_tokenizer_decode()
 * gives for all ids. A character is handed out once its last byte is known.
 *
 * @param[out] out  NULL on failure. It holds a reference to @p tok.
 * @param flags     TNK_DECODE_* or 0.
 * @return TNK_OK, TNK_EINVAL, TNK_ENOMEM.
 * Thread: any; one decoder is used by one thread at a time. Since: 0.1
 */
TNK_API int tnk_detokenizer_new(tnk_detokenizer_t **out,
                                const tnk_tokenizer_t *tok, unsigned flags);
/** Free a decoder. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_detokenizer_free(tnk_detokenizer_t *detok);
/**
 * Take ids in, give the text that is certain.
 *
 * @param[out] text  NUL-terminated, maybe empty. Lifetime: until the next
 *                   call on @p detok.
 * @param[out] n     Its bytes.
 * @return TNK_OK, TNK_EINVAL, TNK_ENOMEM (then no id was taken).
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_detokenizer_push(tnk_detokenizer_t *detok, const int32_t *ids,
                                 size_t n_ids, const char **text, size_t *n);
/**
 * End the text: give what was held back, as U+FFFD where it is not a whole
 * character.
 * The decoder can then be used for another text. Parameters and codes as
 * tnk_detokenizer_push(). Thread: any. Since: 0.1
 */
TNK_API int tnk_detokenizer_finish(tnk_detokenizer_t *detok, const char **text,
                                   size_t *n);

/**
 * This library as a plug-in, for functions of libtnk that take one, such as
 * tnk_hub_tokenizer() and tnk_prompt_from_text(). What it opens is a
 * tnk_tokenizer_t. Flags of encoding are TNK_ENCODE_*. Overrides are "pattern"
 * and "format" ("auto", "hf_json", "tiktoken", "sentencepiece"), with the
 * meanings they have in tnk_tokenizer_options_t.
 *
 * @return Static. Thread: any. Since: 0.1
 */
TNK_API const tnk_tokenizer_plugin_t *tnk_tokenizer_plugin(void);

#ifdef __cplusplus
}
#endif

#endif

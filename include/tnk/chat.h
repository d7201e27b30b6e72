/* SPDX-License-Identifier: MIT */
#ifndef TNK_CHAT_H
#define TNK_CHAT_H

#include "tnk/error.h"
#include "tnk/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Messages to tokens and back: libtnk-chat, a library that does not depend on
 * libtnk. It works with each tokenizer plug-in of text.h that has the member
 * `decode`, such as that of tokenizers.h.
 *
 * A template is the model's own `chat_template`. The result is the same, byte
 * for byte, as that of Hugging Face's library. An unsupported feature is
 * rejected with an error that names the feature and its line.
 *
 *     tnk_chat_template_load(&template, "dir", NULL, &error);
 *     tnk_chat_t *chat = tnk_chat_new(NULL);
 *     tnk_chat_add(chat, "user", "What is 6 times 7?", &error);
 *     tnk_chat_add(chat, "assistant", "42", &error);
 *     options.train_on = TNK_CHAT_TRAIN_LAST_ANSWER;
 *     tnk_chat_encode(tokens, template, &tokenizer, chat, &options, &error);
 *     ids = tnk_chat_tokens_ids(tokens, &n);
 *     tnk_batch_add_tokens(batch, ids, tnk_chat_tokens_weights(tokens), n);
 *
 * Error codes: TNK_EINVAL for a bad argument, a malformed template, or messages
 * that the template rejects; TNK_EPROTO for a malformed file; TNK_EUNSUPPORTED
 * for something that this library, the template or the plug-in cannot do;
 * TNK_ENOTFOUND for a missing or unreadable file; TNK_ETOOBIG beyond a limit;
 * TNK_ECANCELED; TNK_ENOMEM; or a code of the plug-in.
 */

/** A compiled template. It is immutable and reference-counted, and can be used
 * from any thread. */
typedef struct tnk_chat_template tnk_chat_template_t;
/** A conversation: messages, tools and variables. Use it from one thread at a
 * time. */
typedef struct tnk_chat tnk_chat_t;
/** Token ids, each with its weight and its message. Use it from one thread at a
 * time. */
typedef struct tnk_chat_tokens tnk_chat_tokens_t;
/** Parser that converts sampled ids to a message. Use it from one thread at a
 * time. */
typedef struct tnk_chat_parser tnk_chat_parser_t;

/** An error. Since: 0.1 */
typedef struct {
  int code;       /**< A code of tnk_err_t; TNK_OK after success. */
  uint32_t line;  /**< Line of the template, from 1; 0 if there is none. */
  char text[368]; /**< One sentence, NUL-terminated. */
} tnk_chat_error_t;

/** A tokenizer with the plug-in that opened it. Borrowed. */
typedef struct {
  const tnk_tokenizer_plugin_t *plugin; /**< Needs `encode` and `decode`. */
  const void *tokenizer;                /**< From its `open`. */
} tnk_chat_tokenizer_t;

/** The JSON format of messages. */
typedef enum {
  /** The format of templates: {"messages": [{"role": ..., "content": ...}],
   * "tools": [...]}. Arguments of calls are objects. */
  TNK_CHAT_TEMPLATE = 0,
  /** Request body of OpenAI's chat completions. Arguments of calls are JSON in
   * a string. */
  TNK_CHAT_OPENAI = 1,
  /** Request body of OpenAI's responses: instructions and input items. */
  TNK_CHAT_RESPONSES = 2,
  /** Request body of Anthropic's messages: content blocks. */
  TNK_CHAT_ANTHROPIC = 3
} tnk_chat_shape_t;

/** How the models of a family write thoughts and tool calls. */
typedef enum {
  TNK_CHAT_PLAIN = 0,    /**< Everything is content. */
  TNK_CHAT_THINK = 1,    /**< A think block, then content. */
  TNK_CHAT_HERMES = 2,   /**< Calls as JSON in tool_call marks. */
  TNK_CHAT_XML = 3,      /**< Calls as function and parameter marks. */
  TNK_CHAT_DEEPSEEK = 4, /**< Sections of calls between control tokens. */
  TNK_CHAT_DSML = 5,     /**< DeepSeek's blocks of invocations. */
  TNK_CHAT_KIMI = 6,     /**< Kimi's section of calls. */
  TNK_CHAT_GLM = 7,      /**< Calls as pairs of a key and a value. */
  TNK_CHAT_HARMONY = 8,  /**< Channels, of gpt-oss. */
  TNK_CHAT_MISTRAL = 9,  /**< A list of calls after a control token. */
  TNK_CHAT_LLAMA = 10,   /**< A call as the whole answer, in JSON. */
  TNK_CHAT_XTML = 11     /**< Channels and calls as tags, of Kimi K3. */
} tnk_chat_family_t;

/* ---- Templates ---- */

/** Options of a template. Zero selects the default of each member. */
typedef struct {
  size_t size; /**< Set by TNK_CHAT_TEMPLATE_OPTIONS_INIT. */
  /** For all that the template allocates; copied. Must be thread-safe. */
  const tnk_allocator_t *allocator;
  /** Contents of tokenizer_config.json. Its special tokens become variables of
   * the template (bos_token, eos_token and so on). If no other template is
   * given, its template is used. Borrowed. */
  const char *config;
  size_t n_config;
  /** Name of the template, if a file has several. NULL means "default", and
   * "tool_use" for conversations with tools. */
  const char *name;
  /** Stop strings that end an answer, terminated by NULL. NULL means the
   * eos_token of the config. Copied. */
  const char *const *stops;
} tnk_chat_template_options_t;

#define TNK_CHAT_TEMPLATE_OPTIONS_INIT TNK_SIZED(tnk_chat_template_options_t)

/**
 * Compile a template.
 *
 * @param[out] out  A reference that the caller owns; NULL on failure.
 * @param text      UTF-8, @p n bytes. NULL means the template of the config.
 *                  Without a config it means the plain template of roles:
 *                  "User: Hi", an empty line, "Assistant: Hello" and so on. It
 *                  ends an answer with an empty line and "User:", and begins
 *                  with the variable bos_token if that is set.
 * @param options   NULL for defaults.
 * @param[out] error  Receives the error; may be NULL.
 *
 * Templates and values with the deepest nesting need up to 116 KiB of the
 * thread's stack, here and in each use, without the plug-in. A thread with 128
 * KiB is enough. A rendering may nest 300 calls and nodes, and fewer if they
 * need more stack than that, as on s390x. A value may nest 100 others.
 *
 * A template may be untrusted. Its text has at most 1 MiB. A rendering that
 * needs more than half a second of CPU time fails with TNK_ETOOBIG. So does one
 * with more work than a fixed budget, which does not depend on the machine.
 *
 * All functions here are synchronous, so a call takes as long as its
 * renderings. tnk_chat_text() and a prompt take one, tnk_chat_continue() three
 * to twelve, and a mask up to six for each message. Call them on another
 * thread if the template is untrusted and your loop must not wait. They share
 * nothing but the template and the tokenizer, which do not change, and the
 * allocators that you pass. The option `is_canceled` ends a call early. A
 * conversation that another thread renders must not be changed or freed before
 * that call returns.
 *
 * @return TNK_OK, or TNK_EINVAL (malformed template; error->line has the line),
 *         TNK_EPROTO (config), TNK_EUNSUPPORTED (unsupported feature of the
 *         template), TNK_ENOTFOUND (no template with that name), TNK_ETOOBIG,
 *         TNK_ENOTSUP, TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_template_open(tnk_chat_template_t **out, const char *text,
                                   size_t n,
                                   const tnk_chat_template_options_t *options,
                                   tnk_chat_error_t *error);

/**
 * Compile the template of a model from files.
 *
 * @param path  A folder with chat_template.jinja (preferred) or
 *              tokenizer_config.json, or one of these files. The special tokens
 *              come from the tokenizer_config.json in the same folder, unless
 *              the options have a config.
 *
 * @return As tnk_chat_template_open(); TNK_ENOTFOUND also if there is no such
 *         file.
 * Blocks: reads files. Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_template_load(tnk_chat_template_t **out, const char *path,
                                   const tnk_chat_template_options_t *options,
                                   tnk_chat_error_t *error);

/** Take a reference. @return @p template_. Thread: any. Since: 0.1 */
TNK_API tnk_chat_template_t *
tnk_chat_template_ref(tnk_chat_template_t *template_);
/** Release a reference; the last one frees the template. NULL does nothing.
 * Thread: any. Since: 0.1 */
TNK_API void tnk_chat_template_unref(tnk_chat_template_t *template_);
/**
 * Get the stop strings that end an answer, terminated by NULL. Pass them as
 * stops to a sampler of the same model.
 * @return Never NULL. Lifetime: as long as the template.
 *
 * Thread: any. Since: 0.1
 */
TNK_API const char *const *
tnk_chat_template_stops(const tnk_chat_template_t *template_);

/* ---- Conversations ---- */

/**
 * Create an empty conversation.
 *
 * @param allocator  NULL means malloc() and its family. Copied.
 * @return The caller frees it. NULL if there is no memory.
 * Thread: any. Since: 0.1
 */
TNK_API tnk_chat_t *tnk_chat_new(const tnk_allocator_t *allocator);
/** Free a conversation. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_chat_free(tnk_chat_t *chat);

/**
 * Append a message of plain text.
 *
 * @param role  "system", "user", "assistant", or another role of the template.
 * @param text  UTF-8, NUL-terminated.
 *
 * @return TNK_OK, TNK_EINVAL, TNK_ETOOBIG, TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_add(tnk_chat_t *chat, const char *role, const char *text,
                         tnk_chat_error_t *error);

/**
 * Append the messages of a JSON document. Its tools replace earlier ones.
 *
 * @param json  A request body of format @p shape, whose other members are
 *              ignored, or an array of messages.
 *
 * In the formats of APIs an assistant message without content, for example with
 * tool calls only, gets an empty string as content. In the format
 * TNK_CHAT_TEMPLATE messages are not changed. Templates see them as in
 * transformers 5.24: a member that is null is missing. The thoughts of a
 * message are its first member of `reasoning_content`, `thinking` and
 * `reasoning`, and are visible as `reasoning_content` and as `thinking`.
 *
 * On failure the conversation is unchanged.
 * @return TNK_OK; TNK_EINVAL for invalid JSON, for more than 64 levels, and for
 *         an invalid message, whose position is in the error; TNK_EUNSUPPORTED
 *         for an unknown kind of content; TNK_ETOOBIG beyond 64 MiB, or 256 MiB
 *         of memory for the whole conversation; TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_read(tnk_chat_t *chat, tnk_chat_shape_t shape,
                          const char *json, size_t n, tnk_chat_error_t *error);

/**
 * Write the messages and tools as JSON: an object that tnk_chat_read() accepts.
 *
 * @param[out] json  NUL-terminated. Free it with tnk_chat_free_text(). NULL on
 *                   failure.
 * @param[out] n     Length in bytes; may be NULL.
 *
 * @return TNK_OK; TNK_EUNSUPPORTED if the format cannot represent a message;
 *         TNK_EINVAL; TNK_ETOOBIG; TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_write(const tnk_chat_t *chat, tnk_chat_shape_t shape,
                           char **json, size_t *n, tnk_chat_error_t *error);

/**
 * Set a variable of the template, for example "enable_thinking" to "false".
 *
 * @param json  Its value in JSON. NULL removes the variable.
 *
 * @return TNK_OK; TNK_EINVAL for invalid JSON, and for "messages", "tools" and
 *         "add_generation_prompt"; TNK_ETOOBIG; TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_set(tnk_chat_t *chat, const char *name, const char *json,
                         tnk_chat_error_t *error);

/** Get the number of messages. Thread: any. Since: 0.1 */
TNK_API size_t tnk_chat_count(const tnk_chat_t *chat);
/**
 * Get the index of the first assistant message at or after @p from.
 *
 * @return SIZE_MAX if there is none. Thread: any. Since: 0.1
 */
TNK_API size_t tnk_chat_next_answer(const tnk_chat_t *chat, size_t from);
/** Free a string that a function returned for this conversation. Thread: any.
 * Since: 0.1 */
TNK_API void tnk_chat_free_text(const tnk_chat_t *chat, char *text);

/* ---- Text and tokens ---- */

/** Which tokens are trained. */
typedef enum {
  TNK_CHAT_TRAIN_NOTHING = 0, /**< All weights are 0: a prompt. */
  TNK_CHAT_TRAIN_LAST_ANSWER =
      1, /**< The last message, which must be the assistant's. */
  TNK_CHAT_TRAIN_ALL_ANSWERS = 2, /**< All messages of the assistant. */
  TNK_CHAT_TRAIN_ROLES = 3,       /**< Messages whose role is in `roles`. */
  TNK_CHAT_TRAIN_EVERYTHING = 4,  /**< All tokens. */
  TNK_CHAT_TRAIN_BY_MESSAGE = 5   /**< As `message_weights` says. */
} tnk_chat_train_t;

/** Options for text and tokens. Zero selects the default of each member. */
typedef struct {
  size_t size; /**< Set by TNK_CHAT_OPTIONS_INIT. */
  /** Whether to append the beginning of the next answer (generation prompt).
   * Default: yes, if nothing is trained and the last message is not the
   * assistant's. */
  tnk_choice_t generation_prompt;
  /** TNK_YES tokenizes pieces separately, as the renderers of Tinker's cookbook
   * do: the header of a message, and its content with its end. Text without
   * weights is split at the positions that it has in the whole. By default the
   * text is tokenized as a whole, which gives the ids of Hugging Face's
   * apply_chat_template(). */
  tnk_choice_t by_parts;
  tnk_chat_train_t train_on; /**< Which tokens have a weight. */
  uint32_t n_roles;
  const char *const *roles; /**< For TNK_CHAT_TRAIN_ROLES. */
  /** For TNK_CHAT_TRAIN_BY_MESSAGE: one finite weight for each message. */
  const float *message_weights;
  size_t n_message_weights;
  /** Clock for templates that show the date: seconds since 1970 in the time
   * zone to show. Called on the thread of the call. NULL: such a template is
   * rejected. */
  int64_t (*now_s)(void *user);
  void *user; /**< Passed to now_s and is_canceled. */
  /** Roles whose messages are plain text, such as "user" and "tool". A control
   * token in such a message is encoded as the characters that it consists of,
   * so a web page or a file that a tool has read cannot end the turn. Control
   * tokens are all added tokens of the tokenizer except blanks. The tokens of
   * the template itself are not affected, and the role is not checked. A
   * template that searches such a message for a control token does not find
   * it. Needs `added` and `plain_flags` of the plug-in. Ignored by
   * tnk_chat_text(). Borrowed. */
  const char *const *text_roles;
  size_t n_text_roles;
  /** Called on the thread of the call, at the start of each rendering and about
   * once in each millisecond of it. If it returns nonzero, the call fails with
   * TNK_ECANCELED. Another thread can thus end the call, for example with an
   * atomic flag. The plug-in is not interrupted. NULL: nothing ends the call
   * early. */
  int (*is_canceled)(void *user);
} tnk_chat_options_t;

#define TNK_CHAT_OPTIONS_INIT TNK_SIZED(tnk_chat_options_t)

/**
 * Render a conversation as text.
 *
 * @param[out] text  NUL-terminated. Free it with tnk_chat_free_text(). NULL on
 *                   failure.
 * @param[out] n     Length in bytes; may be NULL.
 * @param options    NULL for defaults. Only generation_prompt, now_s and
 *                   is_canceled are used.
 *
 * @return TNK_OK; TNK_EINVAL if the template rejects the messages, with its
 *         message; TNK_EUNSUPPORTED; TNK_ETOOBIG beyond the limits of an
 *         untrusted template; TNK_ECANCELED; TNK_ENOTSUP; TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_text(char **text, size_t *n,
                          const tnk_chat_template_t *template_,
                          const tnk_chat_t *chat,
                          const tnk_chat_options_t *options,
                          tnk_chat_error_t *error);

/**
 * Create an empty list of tokens.
 *
 * @param allocator  NULL means malloc() and its family. Copied.
 * @return The caller frees it. NULL if there is no memory.
 * Thread: any. Since: 0.1
 */
TNK_API tnk_chat_tokens_t *
tnk_chat_tokens_new(const tnk_allocator_t *allocator);
/** Free a list. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_chat_tokens_free(tnk_chat_tokens_t *tokens);
/** Get the ids; @p n receives their number.
 * Lifetime: until @p tokens is filled again. Thread: any. Since: 0.1 */
TNK_API const int32_t *tnk_chat_tokens_ids(const tnk_chat_tokens_t *tokens,
                                           size_t *n);
/** Get the weights, one for each id, for tnk_batch_add_tokens().
 * Lifetime: as long as the ids. Thread: any. Since: 0.1 */
TNK_API const float *tnk_chat_tokens_weights(const tnk_chat_tokens_t *tokens);
/** Get the index of the message of each id. It is -1 for ids without a message,
 * for example the generation prompt, and for all ids if no mask needed it.
 * Lifetime: as long as the ids. Thread: any. Since: 0.1 */
TNK_API const int32_t *
tnk_chat_tokens_messages(const tnk_chat_tokens_t *tokens);

/**
 * Encode a conversation as tokens with weights. Special tokens in the text
 * become such tokens, also in user messages, as in the reference. The option
 * `text_roles` makes them plain text there.
 *
 * To find the weights, the messages up to each one are rendered two or three
 * times, which shows where the message begins and ends. The time grows with the
 * square of the number of messages, unless the template has `generation`
 * blocks, which are then used instead. An answer begins after the generation
 * prompt and ends with a stop string (tnk_chat_template_stops()). With the
 * plain template, a final answer is followed by its stop string "User:".
 *
 * Both ends must be token boundaries, and each rendering must be a prefix of
 * the next one. A template that writes a message differently when others follow
 * is rejected, and the error names the message. There are exceptions for
 * answers of which the template shows the trained tokens unchanged. If only the
 * end of an answer differs, the end is not trained. If the generation prompt
 * begins thoughts that the answer does not have, the answer is trained from its
 * own words on. If an empty block of at most 256 bytes before an answer is
 * removed, the answer is trained without it.
 *
 * @param tokens   Receives the tokens. Its previous contents are lost, also on
 *                 failure.
 * @param options  NULL for defaults: a prompt.
 *
 * @return As tnk_chat_text(); TNK_EUNSUPPORTED also for a mask that the
 *         template does not allow, and for a plug-in without `encode` or
 *         `decode`; TNK_EINVAL if the mask selects no tokens; or the plug-in's
 *         code.
 * Thread: any. Since: 0.1
 */
TNK_API int
tnk_chat_encode(tnk_chat_tokens_t *tokens, const tnk_chat_template_t *template_,
                const tnk_chat_tokenizer_t *tokenizer, const tnk_chat_t *chat,
                const tnk_chat_options_t *options, tnk_chat_error_t *error);

/**
 * Encode a training example for one answer: the tokens of the messages up to
 * it, of which only the answer is trained.
 *
 * Many templates remove the thoughts of earlier answers. A mask over all
 * answers is then rejected, because the whole text does not show each answer as
 * it was sampled. One example for each answer does:
 *
 *     for (size_t i = 0; (i = tnk_chat_next_answer(chat, i)) != SIZE_MAX; i++)
 *       tnk_chat_encode_answer(tokens, template, &tokenizer, chat, i, NULL, e);
 *
 * @param tokens   Receives the example. Its previous contents are lost, also on
 *                 failure.
 * @param index    Index of a message of the assistant.
 * @param options  NULL for defaults. `train_on`, its roles and weights, and
 *                 `generation_prompt` are ignored.
 *
 * @return As tnk_chat_encode(); TNK_EINVAL also if the message is not the
 *         assistant's.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_encode_answer(tnk_chat_tokens_t *tokens,
                                   const tnk_chat_template_t *template_,
                                   const tnk_chat_tokenizer_t *tokenizer,
                                   const tnk_chat_t *chat, size_t index,
                                   const tnk_chat_options_t *options,
                                   tnk_chat_error_t *error);

/**
 * Encode the tokens that follow a sampled answer: the rest of its end, the new
 * messages, and the generation prompt. Sampled ids are never tokenized again.
 * The next prompt consists of the old ids followed by these tokens.
 *
 * The part of the end that was sampled is not repeated. The ids may end with a
 * stop string of the template, with the control token that the template writes
 * after an answer, or with its plain text, such as "</answer>". White space
 * after a plain text may be missing.
 *
 * @param tokens  Receives the tokens, with weight 0 and no message. Its
 *                previous contents are lost, also on failure.
 * @param ids     The prompt and the sampled ids. Only their end is read.
 * @param chat    The conversation with its tools and variables. The messages
 *                before @p first may be incomplete. The last of them is the
 *                answer, if there are any, and names the calls that new
 *                messages answer.
 * @param first   Index of the first new message. There must be at least one.
 * @param options NULL for defaults. Only by_parts, now_s, is_canceled and
 *                text_roles are used.
 *
 * @return As tnk_chat_encode(); TNK_EUNSUPPORTED if the template writes an
 *         answer differently when these messages follow it, or if the ids end
 *         with another stop string than the template writes there. Encode the
 *         whole conversation then.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_continue(tnk_chat_tokens_t *tokens,
                              const tnk_chat_template_t *template_,
                              const tnk_chat_tokenizer_t *tokenizer,
                              const int32_t *ids, size_t n_ids,
                              const tnk_chat_t *chat, size_t first,
                              const tnk_chat_options_t *options,
                              tnk_chat_error_t *error);

/**
 * Get a tokenizer plug-in in which each byte is a token: ids 0 to 255, 256 for
 * the begin of a text and 257 for its end, as in the built-in model
 * tnk/byte-lm. Its `open` reads nothing, and its tokenizer may be NULL.
 *
 * @return Static. Thread: any. Since: 0.1
 */
TNK_API const tnk_tokenizer_plugin_t *tnk_chat_bytes_plugin(void);

/* ---- Answers ---- */

/** A piece of an answer. */
typedef enum {
  TNK_CHAT_DELTA_THINKING = 0,   /**< More of the thoughts. */
  TNK_CHAT_DELTA_CONTENT = 1,    /**< More of the content. */
  TNK_CHAT_DELTA_CALL_BEGIN = 2, /**< A call begins; it has `name` and `id`. */
  TNK_CHAT_DELTA_ARGUMENTS = 3,  /**< More JSON of its arguments. */
  TNK_CHAT_DELTA_CALL_END = 4,   /**< The call is complete. */
  TNK_CHAT_DELTA_UNPARSED =
      5 /**< Text that looks like a call but cannot be parsed. */
} tnk_chat_delta_kind_t;

/** A parsed piece of an answer. */
typedef struct {
  tnk_chat_delta_kind_t kind;
  uint32_t call;    /**< Index of the call, from 0. */
  const char *text; /**< UTF-8, whole characters, not NUL-terminated. */
  size_t n;         /**< Length of `text` in bytes. */
  const char *name; /**< CALL_BEGIN: the function's name; else NULL. */
  const char *id;   /**< CALL_BEGIN: the id of the call; else NULL. */
} tnk_chat_delta_t;

/**
 * Receives a piece of an answer, inside the call that parsed it.
 * Lifetime: the delta is valid until the function returns.
 * Thread: that of the call. Since: 0.1
 */
typedef void (*tnk_chat_delta_cb)(const tnk_chat_delta_t *delta, void *user);

/**
 * Create a parser for one answer.
 *
 * @param[out] out   The caller frees it. NULL on failure.
 * @param tokenizer  Copied; the plug-in and the tokenizer are borrowed until
 *                   the parser is freed. Needs `decode`.
 * @param chat       Its tools give the types of arguments, and its variables
 *                   are read. Only used during the call. May be NULL.
 *
 * @return TNK_OK, TNK_EINVAL, TNK_EUNSUPPORTED for a plug-in without `decode`,
 *         TNK_ENOTSUP for a plug-in with unknown members, TNK_ETOOBIG for tools
 *         of more than 64 MiB, TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_parser_open(tnk_chat_parser_t **out,
                                 tnk_chat_family_t family,
                                 const tnk_chat_tokenizer_t *tokenizer,
                                 const tnk_chat_t *chat,
                                 const tnk_allocator_t *allocator,
                                 tnk_chat_error_t *error);
/** Free a parser. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_chat_parser_free(tnk_chat_parser_t *parser);
/**
 * Set the prompt that the answer continues, before its first ids. A prompt may
 * have opened a block of thoughts already.
 *
 * @param prompt  Ids [n]. Only the end is read. May be NULL if @p n is 0.
 * @param stops   Stop strings of the answer, terminated by NULL, such as
 *                tnk_chat_template_stops(). Copied. NULL means those of the
 *                family.
 * @return TNK_OK; TNK_EINVAL after the first ids, and for an empty stop string;
 *         TNK_ETOOBIG; TNK_ENOMEM; or the plug-in's code.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_parser_prompt(tnk_chat_parser_t *parser,
                                   const int32_t *prompt, size_t n,
                                   const char *const *stops);
/**
 * Parse sampled ids. @p delta is called with the text that is certain: never
 * with part of a character or of a mark.
 *
 * @param delta  May be NULL.
 * @return TNK_OK; TNK_EINVAL after the end; TNK_ETOOBIG for an answer of more
 *         than 16 MiB; TNK_ENOMEM; or the plug-in's code.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_parser_feed(tnk_chat_parser_t *parser, const int32_t *ids,
                                 size_t n, tnk_chat_delta_cb delta, void *user);
/**
 * End the answer, and call @p delta with the rest of it.
 *
 * @param[out] json  The message, as an element of "messages" in the format
 *                   TNK_CHAT_TEMPLATE. Text that could not be parsed is in its
 *                   member "extra". NUL-terminated. Lifetime: as long as the
 *                   parser.
 *                   NULL on failure.
 * @param[out] n     Length in bytes; may be NULL.
 * @return TNK_OK, TNK_EINVAL, TNK_ETOOBIG, TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_parser_finish(tnk_chat_parser_t *parser,
                                   tnk_chat_delta_cb delta, void *user,
                                   const char **json, size_t *n);

/* ---- Names of renderers ---- */

/** The settings for a renderer of Tinker's cookbook. */
typedef struct {
  const char *name;            /**< Name in the cookbook, such as "qwen3". */
  tnk_chat_family_t family;    /**< How its answers are parsed. */
  uint32_t n_variables;        /**< Number of variables. */
  const tnk_pair_t *variables; /**< For tnk_chat_set(); values are JSON. */
  const char *const *stops;    /**< Texts that end an answer, up to a NULL. */
  const char *note;            /**< Difference from the cookbook, or NULL. */
} tnk_chat_renderer_t;

/**
 * Get the settings for a renderer of Tinker's cookbook. The template is always
 * the model's own.
 * @return Static; NULL for an unknown name. Thread: any. Since: 0.1
 */
TNK_API const tnk_chat_renderer_t *tnk_chat_find(const char *name);
/** Get all renderers, sorted by name; @p n receives their number.
 * @return Static. Thread: any. Since: 0.1 */
TNK_API const tnk_chat_renderer_t *tnk_chat_renderers(size_t *n);

#ifdef __cplusplus
}
#endif

#endif

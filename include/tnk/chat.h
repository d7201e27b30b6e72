#ifndef TNK_CHAT_H
#define TNK_CHAT_H

#include "tnk/error.h"
#include "tnk/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Messages to tokens and back: libtnk-chat, a library of its own, which neither
 * needs libtnk nor is needed by it. Any tokenizer serves that comes as a
 * plug-in of text.h with the member `decode`, such as that of tokenizers.h.
 *
 * A template is the model's own `chat_template`, in the language that Hugging
 * Face's library runs: what it gives here is what it gives there, byte for
 * byte. A feature that is lacking is refused with its name and line.
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
 * Codes: TNK_EINVAL a bad argument, a malformed template, or messages that it
 * does not take; TNK_EPROTO a malformed file; TNK_EUNSUPPORTED what this
 * library, the template or the plug-in cannot do; TNK_ENOTFOUND a missing or
 * unreadable file; TNK_ETOOBIG more than a limit; TNK_ENOMEM; or a code of the
 * plug-in.
 */

/** A compiled template: immutable, counted, used from any thread. */
typedef struct tnk_chat_template tnk_chat_template_t;
/** A conversation: messages, tools and variables; of one thread at a time. */
typedef struct tnk_chat tnk_chat_t;
/** Ids, each with its weight and its message; of one thread at a time. */
typedef struct tnk_chat_tokens tnk_chat_tokens_t;
/** Makes a message of sampled ids; of one thread at a time. */
typedef struct tnk_chat_parser tnk_chat_parser_t;

/** What went wrong, in a sentence. Since: 0.1 */
typedef struct {
  int code;       /**< A code of tnk_err_t; TNK_OK after success. */
  uint32_t line;  /**< Of the template, from 1; 0: it is of no line. */
  char text[368]; /**< One sentence, NUL-terminated. */
} tnk_chat_error_t;

/** A tokenizer with the plug-in that opened it. Borrowed. */
typedef struct {
  const tnk_tokenizer_plugin_t *plugin; /**< With `encode` and `decode`. */
  const void *tokenizer;                /**< Of its `open`. */
} tnk_chat_tokenizer_t;

/** Whose JSON messages are read from, and written as. */
typedef enum {
  /** As templates want them: {"messages": [{"role": ..., "content": ...}],
   * "tools": [...]}, arguments of calls being objects. */
  TNK_CHAT_TEMPLATE = 0,
  /** A body of OpenAI's chat completions; arguments are JSON in a text. */
  TNK_CHAT_OPENAI = 1,
  /** A body of OpenAI's responses: instructions and input items. */
  TNK_CHAT_RESPONSES = 2,
  /** A body of Anthropic's messages: content blocks. */
  TNK_CHAT_ANTHROPIC = 3
} tnk_chat_shape_t;

/** How models of a family write what is not plain text. */
typedef enum {
  TNK_CHAT_PLAIN = 0,    /**< All is content. */
  TNK_CHAT_THINK = 1,    /**< A think block, then content. */
  TNK_CHAT_HERMES = 2,   /**< Calls as JSON in tool_call marks. */
  TNK_CHAT_XML = 3,      /**< Calls as function and parameter marks. */
  TNK_CHAT_DEEPSEEK = 4, /**< Sections of calls between control tokens. */
  TNK_CHAT_DSML = 5,     /**< DeepSeek's blocks of invocations. */
  TNK_CHAT_KIMI = 6,     /**< Kimi's section of calls. */
  TNK_CHAT_GLM = 7,      /**< Calls as pairs of a key and a value. */
  TNK_CHAT_HARMONY = 8,  /**< Channels, of gpt-oss. */
  TNK_CHAT_MISTRAL = 9,  /**< A list of calls behind a control token. */
  TNK_CHAT_LLAMA = 10,   /**< A call as the whole answer, in JSON. */
  TNK_CHAT_XTML = 11     /**< Channels and calls as tags, of Kimi K3. */
} tnk_chat_family_t;

/* ---- Templates ---- */

/** How a template is opened. Zero is the default of every member. */
typedef struct {
  size_t size; /**< Set by TNK_CHAT_TEMPLATE_OPTIONS_INIT. */
  /** For all that the template allocates; copied. Must be thread-safe. */
  const tnk_allocator_t *allocator;
  /** Contents of tokenizer_config.json: the texts of its special tokens are
   * variables of the template (bos_token, eos_token ...). Borrowed. Where there
   * is no other template, it holds the template as well. */
  const char *config;
  size_t n_config;
  /** Which of several templates of a file; NULL: "default", and "tool_use" for
   * conversations with tools. */
  const char *name;
  /** Texts that end an answer, up to a NULL. NULL: the config's eos_token.
   * Copied. */
  const char *const *stops;
} tnk_chat_template_options_t;

#define TNK_CHAT_TEMPLATE_OPTIONS_INIT TNK_SIZED(tnk_chat_template_options_t)

/**
 * Compile a template.
 *
 * @param[out] out  One reference, owned by the caller; NULL on failure.
 * @param text      UTF-8, @p n bytes. NULL: that of the config, and where there
 *                  is no config either, the plain one of the roles: "User: Hi",
 *                  an empty line, "Assistant: Hello", and so on, which ends an
 *                  answer with an empty line and "User:". The variable
 *                  bos_token, where it is set, stands in front.
 * @param options   NULL for defaults.
 * @param[out] error  What went wrong; may be NULL.
 *
 * Templates and values that are nested as deeply as is allowed take up to 100
 * KiB of the thread's stack, here and wherever they are used, what a plug-in
 * takes aside: a thread of 128 KiB does. A rendering may nest 300 calls and
 * nodes of the template, and a value 100 others.
 *
 * A template may be untrusted. It has at most 1 MiB of text. A rendering that
 * would take more than about half a second of a processor fails with
 * TNK_ETOOBIG; what counts is the work that it asks for, not the time.
 *
 * @return TNK_OK, or TNK_EINVAL (of a malformed template error->line says
 * where), TNK_EPROTO (the config), TNK_EUNSUPPORTED (what the template uses and
 * this library lacks), TNK_ENOTFOUND (no template of that name), TNK_ETOOBIG,
 * TNK_ENOTSUP, TNK_ENOMEM. Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_template_open(tnk_chat_template_t **out, const char *text,
                                   size_t n,
                                   const tnk_chat_template_options_t *options,
                                   tnk_chat_error_t *error);

/**
 * Compile the template of a model on the disk.
 *
 * @param path  A folder with chat_template.jinja or tokenizer_config.json (the
 *              former counts), or one of these files. The tokens are those of
 *              the tokenizer_config.json there, unless the options have one.
 *
 * @return As tnk_chat_template_open(); TNK_ENOTFOUND also where there is no
 *   such file.
 * Blocks: reads files. Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_template_load(tnk_chat_template_t **out, const char *path,
                                   const tnk_chat_template_options_t *options,
                                   tnk_chat_error_t *error);

/** Take one more reference. @return @p template_. Thread: any. Since: 0.1 */
TNK_API tnk_chat_template_t *
tnk_chat_template_ref(tnk_chat_template_t *template_);
/** Give up a reference; the last one frees. NULL does nothing. Thread: any.
 * Since: 0.1 */
TNK_API void tnk_chat_template_unref(tnk_chat_template_t *template_);
/**
 * Texts that end an answer, up to a NULL: what to give as stops to a sampler
 * whose tokenizer is of the same model.
 * @return Never NULL. Lifetime: the template's. Thread: any. Since: 0.1
 */
TNK_API const char *const *
tnk_chat_template_stops(const tnk_chat_template_t *template_);

/* ---- Conversations ---- */

/**
 * A conversation without messages.
 *
 * @param allocator  Copied; NULL for malloc and its family.
 * @return To be freed by the caller; NULL when there is no memory.
 * Thread: any. Since: 0.1
 */
TNK_API tnk_chat_t *tnk_chat_new(const tnk_allocator_t *allocator);
/** Free a conversation. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_chat_free(tnk_chat_t *chat);

/**
 * Append a message of plain text.
 *
 * @param role  "system", "user", "assistant", or what the template knows.
 * @param text  UTF-8, NUL-terminated.
 *
 * @return TNK_OK, TNK_EINVAL, TNK_ETOOBIG, TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_add(tnk_chat_t *chat, const char *role, const char *text,
                         tnk_chat_error_t *error);

/**
 * Append the messages of a JSON document, and take its tools, which replace
 * earlier ones.
 *
 * @param json  A body of @p shape, of which other members are passed over; or
 *              an array, which is of messages.
 *
 * In the shapes of APIs an answer without content, such as one of calls alone,
 * has an empty text as its content. In the shape TNK_CHAT_TEMPLATE messages are
 * kept as they are. A template sees them as transformers 5.24 shows them: a
 * member that is null is missing, and the thoughts of a message, which are its
 * first member of `reasoning_content`, `thinking` and `reasoning`, are there as
 * `reasoning_content` and as `thinking`.
 *
 * On failure the conversation is as it was.
 * @return TNK_OK; TNK_EINVAL for what is no JSON or has more than 64 levels,
 * and for what is no message, with its place in the sentence; TNK_EUNSUPPORTED
 *   for a kind of content that is not known; TNK_ETOOBIG (64 MiB, and 256 MiB
 *   of memory for all that was given to the conversation); TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_read(tnk_chat_t *chat, tnk_chat_shape_t shape,
                          const char *json, size_t n, tnk_chat_error_t *error);

/**
 * Write the messages and tools as a JSON document of a shape: an object with
 * the members that tnk_chat_read() takes.
 *
 * @param[out] json  NUL-terminated; to be freed with tnk_chat_free_text(). NULL
 *                   on failure.
 * @param[out] n     Its bytes; may be NULL.
 *
 * @return TNK_OK; TNK_EUNSUPPORTED for what that shape cannot say; TNK_EINVAL;
 *   TNK_ETOOBIG; TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_write(const tnk_chat_t *chat, tnk_chat_shape_t shape,
                           char **json, size_t *n, tnk_chat_error_t *error);

/**
 * Set a variable that the template sees beside the messages, such as
 * "enable_thinking" to "false".
 *
 * @param json  Its value in JSON. NULL: the variable is not there any more.
 *
 * @return TNK_OK; TNK_EINVAL for what is no JSON, and for "messages", "tools"
 *   and "add_generation_prompt"; TNK_ETOOBIG; TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_set(tnk_chat_t *chat, const char *name, const char *json,
                         tnk_chat_error_t *error);

/** How many messages there are. Thread: any. Since: 0.1 */
TNK_API size_t tnk_chat_count(const tnk_chat_t *chat);
/**
 * The index of the first message of the assistant at or behind @p from.
 *
 * @return SIZE_MAX: there is none. Thread: any. Since: 0.1
 */
TNK_API size_t tnk_chat_next_answer(const tnk_chat_t *chat, size_t from);
/** Free a text that was given for this conversation. Thread: any. Since: 0.1 */
TNK_API void tnk_chat_free_text(const tnk_chat_t *chat, char *text);

/* ---- Text and tokens ---- */

/** Which tokens are to be learnt. */
typedef enum {
  TNK_CHAT_TRAIN_NOTHING = 0,     /**< All weights are 0: a prompt. */
  TNK_CHAT_TRAIN_LAST_ANSWER = 1, /**< The last message, an assistant's. */
  TNK_CHAT_TRAIN_ALL_ANSWERS = 2, /**< All messages of the assistant. */
  TNK_CHAT_TRAIN_ROLES = 3,       /**< Messages of the roles in `roles`. */
  TNK_CHAT_TRAIN_EVERYTHING = 4,  /**< All tokens. */
  TNK_CHAT_TRAIN_BY_MESSAGE = 5   /**< As `message_weights` says. */
} tnk_chat_train_t;

/** How a conversation becomes text and tokens. Zero is the default of every
 * member. */
typedef struct {
  size_t size; /**< Set by TNK_CHAT_OPTIONS_INIT. */
  /** Whether to end with what begins the next answer. The default is yes, when
   * nothing is to be learnt and the last message is not the assistant's. */
  tnk_choice_t generation_prompt;
  /** TNK_YES: pieces are tokenized apart, as the renderers of Tinker's cookbook
   * do: what stands before the words of a message, and these words with what
   * ends them; what nobody learns from is cut where it stands in the whole. By
   * default the text is tokenized as a whole, which gives the ids of Hugging
   * Face's apply_chat_template(). */
  tnk_choice_t by_parts;
  tnk_chat_train_t train_on; /**< What has a weight. */
  uint32_t n_roles;
  const char *const *roles; /**< Of TNK_CHAT_TRAIN_ROLES. */
  /** Of TNK_CHAT_TRAIN_BY_MESSAGE: one for each message, finite. */
  const float *message_weights;
  size_t n_message_weights;
  /** The time for templates that tell the date, in seconds since 1970 of the
   * time zone that they are to show. NULL: such a template is refused. */
  int64_t (*now_s)(void *user);
  void *user; /**< Handed to now_s. */
  /** Roles whose messages are plain text, such as "user" and "tool": a control
   * token in such a message is encoded as the text that it looks like, so that
   * a web page or a file that a tool has read cannot end the turn. Control
   * tokens are all added tokens of the tokenizer but blanks. The template's own
   * stay what they are. The role itself is not checked. A template that looks
   * for a control token in such a message does not find it. Needs `added` and
   * `plain_flags` of the plug-in. tnk_chat_text() ignores it. Borrowed. */
  const char *const *text_roles;
  size_t n_text_roles;
} tnk_chat_options_t;

#define TNK_CHAT_OPTIONS_INIT TNK_SIZED(tnk_chat_options_t)

/**
 * The text of a conversation.
 *
 * @param[out] text  NUL-terminated; to be freed with tnk_chat_free_text(). NULL
 *                   on failure.
 * @param[out] n     Its bytes; may be NULL.
 * @param options    NULL for defaults. Only the generation prompt and the time
 *                   matter.
 *
 * @return TNK_OK; TNK_EINVAL where the template refuses the messages, with its
 *   words; TNK_EUNSUPPORTED; TNK_ETOOBIG for more than the limits of an
 *   untrusted template; TNK_ENOTSUP; TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_text(char **text, size_t *n,
                          const tnk_chat_template_t *template_,
                          const tnk_chat_t *chat,
                          const tnk_chat_options_t *options,
                          tnk_chat_error_t *error);

/**
 * An empty list.
 *
 * @param allocator  Copied; NULL for malloc and its family.
 * @return To be freed by the caller; NULL when there is no memory.
 * Thread: any. Since: 0.1
 */
TNK_API tnk_chat_tokens_t *
tnk_chat_tokens_new(const tnk_allocator_t *allocator);
/** Free a list. NULL does nothing. Thread: any. Since: 0.1 */
TNK_API void tnk_chat_tokens_free(tnk_chat_tokens_t *tokens);
/** The ids [n]; @p n receives their number.
 * Lifetime: until @p tokens is filled anew. Thread: any. Since: 0.1 */
TNK_API const int32_t *tnk_chat_tokens_ids(const tnk_chat_tokens_t *tokens,
                                           size_t *n);
/** The weights, f32 [n], as tnk_batch_add_tokens() takes them.
 * Lifetime: as the ids. Thread: any. Since: 0.1 */
TNK_API const float *tnk_chat_tokens_weights(const tnk_chat_tokens_t *tokens);
/** The message that each id is of, i32 [n]; -1: of none, as the generation
 * prompt; and of all ids where a mask did not ask for it.
 * Lifetime: as the ids. Thread: any. Since: 0.1 */
TNK_API const int32_t *
tnk_chat_tokens_messages(const tnk_chat_tokens_t *tokens);

/**
 * The tokens of a conversation, with weights. Special tokens in the text are
 * such tokens, also in what people wrote, as in the reference. The option
 * `text_roles` makes them plain text in messages.
 *
 * Where weights are to be found the messages up to each one are rendered, twice
 * or three times, to see where it begins and ends (so that twice as many
 * messages take four times as long, unless there are blocks for it): an answer
 * begins behind the generation prompt, and ends with the text that ends answers
 * (of tnk_chat_template_stops()). `generation` blocks of the template are
 * heeded instead where it has them. With the plain template the last message,
 * if it is an answer, is followed by "User:", which belongs to it: the stop
 * ends there. Both ends must be ends of tokens, and each rendering the
 * beginning of the next; a template for which that does not hold, as it writes
 * a message differently once others follow, is refused with the reason.
 *
 * @param tokens   What it held is gone, also on failure.
 * @param options  NULL for defaults: a prompt.
 *
 * @return As tnk_chat_text(); TNK_EUNSUPPORTED also for a mask that the
 *   template does not allow, and for a plug-in without `encode` or `decode`;
 *   TNK_EINVAL for a mask that has nothing to learn; or the plug-in's code.
 * Thread: any. Since: 0.1
 */
TNK_API int
tnk_chat_encode(tnk_chat_tokens_t *tokens, const tnk_chat_template_t *template_,
                const tnk_chat_tokenizer_t *tokenizer, const tnk_chat_t *chat,
                const tnk_chat_options_t *options, tnk_chat_error_t *error);

/**
 * A training example for one answer: the tokens of the messages up to it, of
 * which only the answer is learnt.
 *
 * Many templates leave the thoughts of earlier answers out. Then the mask of
 * all answers is refused, since the whole text does not show each answer as it
 * was sampled. One example per answer shows it so:
 *
 *     for (size_t i = 0; (i = tnk_chat_next_answer(chat, i)) != SIZE_MAX; i++)
 *       tnk_chat_encode_answer(tokens, template, &tokenizer, chat, i, NULL, e);
 *
 * @param tokens   Receives the example. What it held is gone, also on failure.
 * @param index    Of a message of the assistant.
 * @param options  NULL for defaults. `train_on`, its roles and weights, and
 *                 `generation_prompt` are ignored.
 *
 * @return As tnk_chat_encode(); TNK_EINVAL also if the message is not the
 *   assistant's.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_encode_answer(tnk_chat_tokens_t *tokens,
                                   const tnk_chat_template_t *template_,
                                   const tnk_chat_tokenizer_t *tokenizer,
                                   const tnk_chat_t *chat, size_t index,
                                   const tnk_chat_options_t *options,
                                   tnk_chat_error_t *error);

/**
 * The tokens that go on from sampled ones: what ends the answer, unless it was
 * sampled too, the new messages, and the generation prompt. The ids so far are
 * never tokenized again: the next prompt is these, unchanged, and behind them
 * what this gives.
 *
 * @param tokens  Receives the ids that follow, of weight 0 and of no message.
 *                What it held is gone, also on failure.
 * @param ids     The prompt and what was sampled, [n_ids]: the end is looked
 * at.
 * @param chat    The conversation with its tools and variables. The messages
 *                before @p first need not be whole; the last of them is the
 *                answer, if there are any, and names the calls that new
 *                messages answer.
 * @param first   Index of the first new message; there is at least one.
 * @param options NULL for defaults. by_parts and the time matter.
 *
 * @return As tnk_chat_encode(); TNK_EUNSUPPORTED where the template writes an
 *   answer differently once these messages follow it, so that what was sampled
 *   cannot stay as it is: the conversation is then to be encoded as a whole.
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
 * A tokenizer for which each byte is a token: ids 0 to 255, 256 begins a text
 * and 257 ends one, as the built-in model tnk/byte-lm has them. Its `open`
 * reads nothing; NULL does for a tokenizer.
 *
 * @return Static. Thread: any. Since: 0.1
 */
TNK_API const tnk_tokenizer_plugin_t *tnk_chat_bytes_plugin(void);

/* ---- Answers ---- */

/** A piece of an answer. */
typedef enum {
  TNK_CHAT_DELTA_THINKING = 0,   /**< More of what it thinks. */
  TNK_CHAT_DELTA_CONTENT = 1,    /**< More of what it says. */
  TNK_CHAT_DELTA_CALL_BEGIN = 2, /**< A call: `name` and `id`. */
  TNK_CHAT_DELTA_ARGUMENTS = 3,  /**< More JSON of its arguments. */
  TNK_CHAT_DELTA_CALL_END = 4,   /**< The call is whole. */
  TNK_CHAT_DELTA_UNPARSED = 5    /**< What was meant as a call and is none. */
} tnk_chat_delta_kind_t;

/** What was understood of the latest ids. */
typedef struct {
  tnk_chat_delta_kind_t kind;
  uint32_t call;    /**< Of calls: which one, from 0. */
  const char *text; /**< UTF-8, whole characters, not NUL-terminated. */
  size_t n;         /**< Its bytes. */
  const char *name; /**< Of CALL_BEGIN: of the function; else NULL. */
  const char *id;   /**< Of CALL_BEGIN: of the call; else NULL. */
} tnk_chat_delta_t;

/**
 * Receives a piece of an answer, inside of the call that made it.
 * Lifetime: the delta is valid until the function returns.
 * Thread: that of the call. Since: 0.1
 */
typedef void (*tnk_chat_delta_cb)(const tnk_chat_delta_t *delta, void *user);

/**
 * A parser for one answer.
 *
 * @param[out] out   To be freed by the caller; NULL on failure.
 * @param tokenizer  Copied; what it names is borrowed until the parser is
 *                   freed. Needs `decode`.
 * @param chat       For its tools, which say what the type of an argument is,
 *                   and its variables; borrowed for the call. May be NULL.
 *
 * @return TNK_OK, TNK_EINVAL, TNK_EUNSUPPORTED for a plug-in without `decode`,
 *   TNK_ENOTSUP for one with members that are not known here, TNK_ETOOBIG for
 *   tools of more than 64 MiB, TNK_ENOMEM.
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
 * Tell what the answer goes on from, before the first ids of it: a prompt may
 * have opened the thoughts already.
 *
 * @param prompt  Ids [n]; only the end is looked at. May be NULL when @p n is
 * 0.
 * @param stops   Texts that end the answer, up to a NULL, such as
 *                tnk_chat_template_stops(); copied. NULL: those of the family.
 * @return TNK_OK; TNK_EINVAL after the first ids, and for a stop without text;
 *   TNK_ETOOBIG; TNK_ENOMEM; or the plug-in's code.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_parser_prompt(tnk_chat_parser_t *parser,
                                   const int32_t *prompt, size_t n,
                                   const char *const *stops);
/**
 * Take sampled ids in; what is certain is told to @p delta, never half a
 * character and never a part of a mark.
 *
 * @param delta  May be NULL.
 * @return TNK_OK; TNK_EINVAL after the end; TNK_ETOOBIG for an answer of more
 *   than 16 MiB; TNK_ENOMEM; or the plug-in's code.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_parser_feed(tnk_chat_parser_t *parser, const int32_t *ids,
                                 size_t n, tnk_chat_delta_cb delta, void *user);
/**
 * End the answer: tell what was held back.
 *
 * @param[out] json  The message, as an element of "messages" in the shape of
 *                   TNK_CHAT_TEMPLATE; what could not be understood is in its
 *                   member "extra". NUL-terminated. Lifetime: the parser's.
 *                   NULL on failure.
 * @param[out] n     Its bytes; may be NULL.
 * @return TNK_OK, TNK_EINVAL, TNK_ETOOBIG, TNK_ENOMEM.
 * Thread: any. Since: 0.1
 */
TNK_API int tnk_chat_parser_finish(tnk_chat_parser_t *parser,
                                   tnk_chat_delta_cb delta, void *user,
                                   const char **json, size_t *n);

/* ---- Names of renderers ---- */

/** What a renderer of Tinker's cookbook is here. */
typedef struct {
  const char *name;            /**< The cookbook's: "qwen3". */
  tnk_chat_family_t family;    /**< How its answers are parsed. */
  uint32_t n_variables;        /**< Of `variables`. */
  const tnk_pair_t *variables; /**< For tnk_chat_set(), values in JSON. */
  const char *const *stops;    /**< Texts that end an answer, up to a NULL. */
  const char *note;            /**< Where it differs; or NULL. */
} tnk_chat_renderer_t;

/**
 * What there is for the name of a renderer. Which template it is run with is
 * the model's own.
 * @return Static; NULL for a name that is not known. Thread: any. Since: 0.1
 */
TNK_API const tnk_chat_renderer_t *tnk_chat_find(const char *name);
/** All of them, sorted by name; @p n receives their number.
 * @return Static. Thread: any. Since: 0.1 */
TNK_API const tnk_chat_renderer_t *tnk_chat_renderers(size_t *n);

#ifdef __cplusplus
}
#endif

#endif

#ifndef TNK_GATEWAY_H
#define TNK_GATEWAY_H

#include "tnk/chat.h"
#include "tnk/sampling.h"
#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A server that speaks the APIs of OpenAI and Anthropic to agents, and samples
 * from a service: libtnk-gateway, a library beside libtnk and libtnk-chat, by
 * whose public calls it works. It runs on the caller's loop. Every token that
 * was sampled is recorded as it was drawn, and the next turn of its
 * conversation goes on from it: what was sampled is never tokenized again.
 *
 *     tnk_gateway_options_t options = TNK_GATEWAY_OPTIONS_INIT;
 *     options.tokenizer = tokenizer;
 *     tnk_gateway_open(&gateway, &loop, service, &options, why, sizeof(why));
 *     tnk_wait(tnk_gateway_use(gateway, &weights));
 *     puts(tnk_gateway_address(gateway));
 *     uv_run(&loop, UV_RUN_DEFAULT);
 *
 * Endpoints: POST /v1/chat/completions, /v1/completions, /v1/responses,
 * /v1/messages; GET /v1/models, /healthz. For those who train: POST
 * /tnk/reward, POST /tnk/sampler, GET /tnk/datums. In front of each path may
 * stand /s/NAME, which names the session of the request; so do the header
 * X-Tnk-Session, and a key with ":NAME" behind it. A session that nobody names
 * is "default".
 *
 * Whatever model a request names, it is served with the weights in use.
 * /healthz answers 503 once the record cannot be written, as on a full disk:
 * then nothing is sampled any more until a gateway is opened anew.
 *
 * A call that a client wants (tool_choice) is begun in the prompt, with the ids
 * that calls of the tool begin with, or of all tools, in the template's own
 * words; such ids are recorded as the prompt's. What follows is the model's,
 * and not kept to the schema. Forms of answers (response_format and the like)
 * other than text are refused. What a service samples behind the first stop is
 * left out, of the answer and of what is recorded.
 */

/** A server; of the loop's thread. */
typedef struct tnk_gateway tnk_gateway_t;

/** How it serves. Zero is the default of every member but the tokenizer. */
typedef struct {
  size_t size; /**< Set by TNK_GATEWAY_OPTIONS_INIT. */
  /** A numeric address; NULL: 127.0.0.1. Others than loopback ones need a key.
   */
  const char *host;
  /** What clients must send, as a bearer token or in X-Api-Key; NULL or "":
   * none, and then no web page may ask. It has nothing to do with the key of
   * the service, which never leaves it. Copied. */
  const char *key;
  const char *model; /**< What clients call it; NULL: the base model. Copied. */
  /** A file that everything is recorded in, written before the answer is sent,
   * so that a process that is killed loses nothing of it; one of an earlier
   * process is gone on with, unless its ids are of another vocabulary, which is
   * refused. NULL: in memory. */
  const char *record;
  /** Of the model. Borrowed until the gateway is closed. `decode` is needed. */
  tnk_chat_tokenizer_t tokenizer;
  /** Of the model; a reference is taken. NULL: the plain one of the roles. */
  tnk_chat_template_t *template_;
  const tnk_pair_t *variables; /**< For templates; values in JSON. Copied. */
  size_t n_variables;
  tnk_chat_family_t family; /**< How answers are parsed. */
  int32_t port;             /**< 0: any free one. */
  uint32_t max_requests;    /**< Under way at a time; 0: 16,384. More: 503. */
  int32_t max_tokens;       /**< Where a client names none; 0: 1,024. */
  uint64_t max_memory;      /**< For what is recorded, in bytes; 0: 256 MiB. */
  uint64_t max_body; /**< Of a request, in bytes; 0: 64 MiB. More: 413. */
  uint32_t max_connections; /**< Open at a time; 0: 65,536. More wait. */
  /** A client that waits for a stream hears something as often as this, in
   * milliseconds, so that no proxy takes it for dead; 0: 15,000. */
  uint32_t keep_alive_ms;
  const tnk_allocator_t *allocator; /**< Copied; NULL: malloc. */
  const char *tls_cert;             /**< PEM files; NULL, both: no TLS. */
  const char *tls_key;
  /** TNK_YES: what is recorded is on the disk before the answer is sent, so
   * that a machine that loses its power loses nothing of it either; each answer
   * waits for the disk then. */
  tnk_choice_t record_sync;
  /** TNK_YES: control tokens in messages of users and in results of tools count
   * as control tokens. By default they are plain text, if the plug-in of the
   * tokenizer lists them (`added`), so that a web page that a tool has read
   * cannot end the turn and begin another one. */
  tnk_choice_t keep_control_tokens;
} tnk_gateway_options_t;

#define TNK_GATEWAY_OPTIONS_INIT TNK_SIZED(tnk_gateway_options_t)

/**
 * Open a gateway and listen. It can sample after tnk_gateway_use(). Requests
 * that come while the first of these calls is pending wait for it, for 60
 * seconds at most. Without such a call they get 503 at once.
 *
 * SIGPIPE is blocked in the calling thread.
 *
 * @param[out] out  To be closed by the caller, before the service. NULL on
 *                  failure.
 * @param loop      That of @p service; outlives the gateway. After a failure
 *                  it may have to run once more before it can be closed.
 * @param service   What samplers are made with; outlives the gateway.
 * @param options   Begins with TNK_GATEWAY_OPTIONS_INIT; a tokenizer is needed.
 * @param why       On failure, receives one sentence; may be NULL.
 * @param why_size  Bytes at @p why; a longer sentence is cut.
 *
 * @return TNK_OK, or TNK_EINVAL (an argument is NULL, an option out of range,
 *   no tokenizer that can decode, another address than a loopback one without
 *   a key), TNK_ENOTSUP (an option that this library does not know), TNK_EFILE
 *   (the record), TNK_ESYSTEM (the address cannot be listened on), TNK_ENOMEM.
 * Blocks: reads the record. Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_gateway_open(tnk_gateway_t **out, uv_loop_t *loop,
                             tnk_service_t *service,
                             const tnk_gateway_options_t *options, char *why,
                             size_t why_size);

/**
 * Where it listens: "http://127.0.0.1:PORT", without a slash behind it. Clients
 * of OpenAI want "/v1" added.
 *
 * @return The address; NULL for NULL.
 * Lifetime: the gateway's. Thread: loop thread. Since: 0.1
 */
TNK_API const char *tnk_gateway_address(const tnk_gateway_t *gateway);

/**
 * Sample from these weights from now on. Requests under way end with those that
 * they began with; none is dropped. Each recorded turn has the number of the
 * weights that drew it: 1 for the first, and so on; a gateway that goes on with
 * a record goes on with the numbers.
 *
 * @param gateway  Whose requests are served with them.
 * @param options  As of tnk_service_create_sampling(). Copied.
 *
 * @return A promise of tnk_sampling_t, which belongs to the gateway; once it
 *   has resolved, requests are served with it. NULL from a gateway that is
 *   NULL or closing, and without memory.
 * Rejects with: the error of tnk_service_create_sampling(); earlier weights
 *   stay in use then.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_gateway_use(tnk_gateway_t *gateway,
                                       const tnk_sampling_options_t *options);

/**
 * Say what an answer is worth, as POST /tnk/reward does. The latest reward of
 * an answer counts. It is written soon, and on the disk when the gateway has
 * closed.
 *
 * @param gateway  What has answered.
 * @param session  Its name; NULL: "default". Not looked at with an @p id.
 * @param id       Of the answer, as the client has got it; NULL: the latest one
 *                 of the session.
 * @param choice   Which one, where the client asked for several; from 0.
 * @param reward   Finite, within the range of a float.
 *
 * @return TNK_OK, or TNK_EINVAL (a reward out of range, @p gateway NULL or
 *   closing), TNK_ENOTFOUND (no such answer is remembered), TNK_EFILE (an
 *   earlier write has failed), TNK_ETOOBIG (the disk is too slow), TNK_ENOMEM.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_gateway_reward(tnk_gateway_t *gateway, const char *session,
                               const char *id, uint32_t choice, double reward);

/**
 * Gets an example of what was recorded.
 *
 * @param user  As given to tnk_gateway_datums().
 * @param line  A datum as JSON, with a line feed; not NUL-terminated. Lives
 *              during the call.
 * @param n     Its bytes.
 * @return TNK_OK, or a code that ends the export. Must not call the gateway.
 */
typedef int (*tnk_gateway_line_cb)(void *user, const char *line, size_t n);

/**
 * Hand out what was recorded as examples to train on, one for each branch of a
 * conversation, as GET /tnk/datums gives them: lines of JSON that tnk lint
 * reads, with the sampled tokens as targets, their log-probabilities, and
 * rewards as advantages. Beside them: "session"; "turns", of each the number,
 * the version of the weights, the reward, and which targets it has sampled
 * ("offset", "length"); and where the service has named all sequences, the
 * spans of tnk_datum_t, as "model_input_spans" and "loss_fn_input_spans".
 *
 * @param gateway   What has recorded.
 * @param session   Its name; NULL: all of them.
 * @param rewarded  Not 0: only branches with a reward.
 * @param cb        Called with each, from inside of this call.
 * @param user      Handed to @p cb.
 *
 * @return TNK_OK, or TNK_EINVAL (@p gateway or @p cb NULL, or closing),
 *   TNK_ENOTFOUND (no such session), TNK_EFILE (the record cannot be read),
 *   TNK_ENOMEM, or the code of @p cb.
 * Blocks: reads the record, some milliseconds for each branch.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_gateway_datums(tnk_gateway_t *gateway, const char *session,
                               int rewarded, tnk_gateway_line_cb cb,
                               void *user);

/** What a gateway has done so far. Since: 0.1 */
typedef struct {
  size_t size;             /**< Set by TNK_GATEWAY_STATS_INIT. */
  uint64_t n_requests;     /**< Come, of any kind. */
  uint64_t n_answered;     /**< Of those to sample: answered. */
  uint64_t n_failed;       /**< Of those to sample: refused, or failed. */
  uint64_t n_gone;         /**< Of those to sample: the client hung up. */
  uint64_t n_tokens;       /**< Sampled, in what was answered. */
  uint64_t n_continued;    /**< Prompts that went on from what was sampled. */
  uint32_t n_under_way;    /**< Requests to sample, now. */
  uint32_t n_connections;  /**< Open now. */
  uint32_t version;        /**< Number of the weights in use; 0: none. */
  uint32_t n_old_samplers; /**< Replaced, with requests under way. */
} tnk_gateway_stats_t;

#define TNK_GATEWAY_STATS_INIT TNK_SIZED(tnk_gateway_stats_t)

/**
 * Read the counters of a gateway.
 *
 * @param[out] out  Begins with TNK_GATEWAY_STATS_INIT. Filled, as far as its
 *                  size goes; a counter that this library does not have is 0.
 * @param gateway   NULL: all are 0.
 *
 * @return TNK_OK, or TNK_EINVAL for a size that is none of tnk_gateway_stats_t.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_gateway_stats(tnk_gateway_stats_t *out,
                              const tnk_gateway_t *gateway);

/**
 * Take no further connections, and finish the requests under way. Idle
 * connections close at once, the others when their requests are answered and
 * recorded. `n_connections` of tnk_gateway_stats() is 0 then; call
 * tnk_gateway_close() when it is, or when you have waited long enough.
 *
 * @param gateway  NULL does nothing, like a second call.
 * Never fails. Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_gateway_drain(tnk_gateway_t *gateway);

/**
 * Close it. Connections are closed, samples under way canceled; what was
 * answered is on the disk. Then @p cb runs, from the loop, and the gateway is
 * gone.
 *
 * @param gateway  NULL calls nothing.
 * @param cb       May be NULL.
 * @param user     Handed to @p cb.
 * Never fails. Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_gateway_close(tnk_gateway_t *gateway, tnk_close_cb cb,
                               void *user);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_H
#define TNK_GATEWAY_H

#include "tnk/chat.h"
#include "tnk/otlp.h"
#include "tnk/sampling.h"
#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A server that speaks the APIs of OpenAI and Anthropic to agents, and samples
 * from a service. It is the library libtnk-gateway, which uses only the public
 * functions of libtnk and libtnk-chat. It runs on the caller's loop.
 * With a template of the program, conversations are rendered on libuv's thread
 * pool, at most two at a time, so a slow template does not stop the loop. Every
 * sampled token is recorded. The next turn of a conversation continues from the
 * sampled tokens; they are never tokenized again.
 *
 *     tnk_gateway_options_t options = TNK_GATEWAY_OPTIONS_INIT;
 *     options.tokenizer = tokenizer;
 *     tnk_gateway_open(&gateway, &loop, service, &options, why, sizeof(why));
 *     tnk_wait(tnk_gateway_use(gateway, &weights));
 *     puts(tnk_gateway_address(gateway));
 *     uv_run(&loop, UV_RUN_DEFAULT);
 *
 * Endpoints: POST /v1/chat/completions, /v1/completions, /v1/responses,
 * /v1/messages, /v1/messages/count_tokens, /v1/responses/input_tokens; GET and
 * DELETE /v1/responses/ID; GET /v1/responses/ID/input_items, /v1/models,
 * /health, /healthz, /readyz. For training: POST /tnk/reward, POST
 * /tnk/sampler, GET /tnk/datums. A slash at the end of a path is ignored. A
 * request names its session by /s/NAME in front of the path, by the header
 * X-Tnk-Session, or by ":NAME" after the key.
 * Without a name it is "default".
 *
 * Agents run generated code beside their key. So `key` only samples, and the
 * endpoints for training need `admin_key`. POST /tnk/sessions creates a key
 * that is bound to one session and has limits; see tnk_gateway_key_create().
 *
 * The model name of a request is ignored: the gateway uses its current weights.
 * If the record cannot be written, for example because the disk is full,
 * /healthz returns 503, and nothing is sampled until a gateway is opened again.
 * It also returns 503 after the service has ended the session, unless the
 * service was opened with `recovery` and this could restore it.
 * /readyz also returns 503 while there are no weights and after
 * tnk_gateway_leave(). These two, and /health, which is the same as /healthz,
 * need no key. GET /metrics, for Prometheus, needs `admin_key`.
 *
 * If a client forces a tool call (tool_choice), the prompt ends with the tokens
 * with which the template starts calls of that tool, or of all tools. These
 * tokens are recorded as part of the prompt. The model generates the rest,
 * which may violate the schema of the tool. Tokens after the first stop are
 * removed from the response and from the record.
 *
 * A client that repeats a request gets the answer of the first one, and nothing
 * is sampled again. It repeats a request with the same Idempotency-Key, or with
 * the same body if an SDK counts it as a retry, or if the client of the first
 * one has disconnected before its answer. Answers are known for ten minutes, at
 * most 64 MiB of them, in this process, and in all gateways of a shared record
 * if the client has named or counted its requests.
 *
 * If the last message is the assistant's, the response continues it: always in
 * /v1/messages, and with continue_final_message in /v1/chat/completions. A
 * recorded response is continued from its sampled tokens. If the template
 * cannot continue a message, the request is rejected.
 *
 * GET /v1/responses/ID makes the response from its turn in the record. The
 * options of its request are not recorded, so they are null or have the
 * defaults of the API. A client can read and delete responses of its own
 * session only. A deleted response is hidden from clients. Its turn stays in
 * the record.
 *
 * If a client asks for a format (response_format, text.format, output_config),
 * the system message asks the model for it, with the schema. The service
 * returns no logits, so the sampling is not constrained. The record says of
 * each response whether it has the format. `formats` selects what else happens.
 * A schema with a keyword that the gateway does not check is rejected.
 */

/** A gateway. It belongs to the thread of its loop. */
typedef struct tnk_gateway tnk_gateway_t;

/** What happens if a client asks for a format of the response: JSON, or JSON
 * that fits a schema. Since: 0.1 */
typedef enum {
  /** The system message asks for the format. */
  TNK_GATEWAY_FORMATS_HINT = 0,
  /** The same, and if the response does not have the format, it is sampled
   * again, at most `max_attempts` times in all. The client gets the last one.
   */
  TNK_GATEWAY_FORMATS_RETRY,
  TNK_GATEWAY_FORMATS_REFUSE /**< The request is rejected. */
} tnk_gateway_formats_t;

/** Options of a gateway. Zero selects the default of each member, except the
 * tokenizer. */
typedef struct {
  size_t size; /**< Set by TNK_GATEWAY_OPTIONS_INIT. */
  /** Numeric address. NULL means 127.0.0.1. An address that is not loopback
   * needs `key` or `admin_key`. */
  const char *host;
  /** The key with which agents sample, as a bearer token or in X-Api-Key. With
   * NULL or "" there is none. Without `admin_key` too, every local client is
   * served, and requests of web pages are rejected. It is not the key of the
   * service, which is never sent to clients. Copied. */
  const char *key;
  const char *model; /**< Model name that clients see. NULL means the base
                        model. Copied. */
  /** File of the record. A turn is written to it before its response is sent,
   * so a killed process loses nothing that it answered. If the file exists,
   * recording continues in it; opening fails if it was recorded with another
   * vocabulary. NULL keeps the record in memory. The address
   * valkey://[[USER]:PASSWORD@]HOST[:PORT]/NAME, or redis://, shares the record
   * with other gateways: each of them continues the conversations of all. With
   * valkeys:// or rediss:// the connection uses TLS, and the server's
   * certificate must be trusted and name the host. Its
   * server is Valkey, or Redis 5 or later. A turn is in the server before its
   * response is sent. If the server does not answer, requests wait for it for
   * 30 seconds and then get 503, and nothing is sampled. Keys with their totals
   * are shared too, and so are the weights: a gateway that joins others begins
   * with theirs, and tnk_gateway_use() at one changes all. A request that
   * another gateway has sampled, or is sampling, gets the answer of that one.
   * `max_concurrent` and `max_per_minute` apply to each gateway separately. */
  const char *record;
  /** Tokenizer of the model, which is also used on threads of libuv's pool.
   * Borrowed until the gateway is closed. `decode` is required. */
  tnk_chat_tokenizer_t tokenizer;
  /** Chat template of the model; the gateway takes a reference. NULL means the
   * plain template of roles. */
  tnk_chat_template_t *template_;
  const tnk_pair_t
      *variables; /**< Variables of the template, with JSON values. Copied. */
  size_t n_variables;
  tnk_chat_family_t family; /**< How responses are parsed. */
  int32_t port;             /**< 0 selects a free port. */
  uint32_t max_requests; /**< Most requests in progress; further ones get 503. 0
                            means 16,384. */
  int32_t max_tokens;  /**< Default for clients that set none. 0 means 1,024. */
  uint64_t max_memory; /**< Bytes of the record in memory. 0 means 256 MiB. */
  uint64_t
      max_body; /**< Bytes of a request; larger ones get 413. 0 means 64 MiB. */
  uint32_t max_connections; /**< Most open connections; further ones wait. 0
                               means 65,536. */
  /** Interval in milliseconds of comments in a stream that has no data yet.
   * They keep proxies from closing the connection. 0 means 15,000. Other
   * responses get their head after three intervals of sampling, with status
   * 200, and then an empty line per interval before the JSON. If such a request
   * fails, the response is cut off. */
  uint32_t keep_alive_ms;
  const tnk_allocator_t *allocator; /**< NULL means malloc(). Copied. */
  const char *tls_cert;             /**< PEM files. Both NULL means no TLS. */
  const char *tls_key;
  /** TNK_YES syncs each turn to disk before its response is sent, so a power
   * failure loses nothing that was answered. Each response then waits for the
   * disk. Default: no. */
  tnk_choice_t record_sync;
  /** TNK_YES interprets control tokens in user messages and tool results. By
   * default they are plain text, if the tokenizer plug-in lists them
   * (`added`). A web page that a tool has read then cannot end the turn and
   * begin another one. */
  tnk_choice_t keep_control_tokens;
  /** Receives a line of level INFO for each request, when it ends: method,
   * path, status, session, sampled tokens and duration. NULL means no log.
   * Copied. */
  const tnk_logger_t *logger;
  /** The key for everything under /tnk/: rewards, weights, the record. `key`
   * then only samples. NULL or "" means none: /tnk/ is refused to clients with
   * `key`, and open to all clients if there is no `key` either. It may equal
   * `key`. Copied. */
  const char *admin_key;
  /** Prices of the model in USD per million tokens, for keys with `max_usd`.
   * Both 0 means that the prices are unknown. */
  double usd_prompt;
  double usd_sampled;
  /** Price of prompt tokens that were cache hits. 0 means `usd_prompt`. A
   * request reserves the full price, and returns the rest when it ends. */
  double usd_cached;
  tnk_gateway_formats_t formats; /**< Default: TNK_GATEWAY_FORMATS_HINT. */
  /** Samples for one response with TNK_GATEWAY_FORMATS_RETRY. 0 means 3, and
   * the maximum is 16. */
  uint32_t max_attempts;
  /** For a shared record with TLS: PEM file of trusted certificates. It
   * replaces SSL_CERT_FILE and the system's store. Copied. */
  const char *record_ca_file;
  /** For a server of a shared record that wants a client certificate: PEM file
   * of the certificate, and PEM file of its key without a passphrase. Both may
   * be the same file. Both NULL means no client certificate. Copied. */
  const char *record_cert_file;
  const char *record_key_file;
  /** Name of this process among those that share its port, 1 to 32 letters,
   * digits, '-' and '_'. All metrics have it as the label `worker`. NULL means
   * no label. Copied. */
  const char *worker;
  /** Time in milliseconds for which a sample continues after its client has
   * disconnected, so that the client receives it if it repeats the request. 0
   * means 30,000. 1 cancels it at once. */
  uint32_t repeat_ms;
  /** TNK_YES lets other processes of this user listen on the same port, if they
   * set it too. The system spreads the connections over them. It needs Linux or
   * FreeBSD. Such gateways should share their record. Default: no. */
  tnk_choice_t share_port;
  /** TNK_YES removes a session from a shared record only after all of its
   * examples were exported with "tnk gateway --datums". Without the two limits
   * below, the session is removed as soon as that is so. Default: no. */
  tnk_choice_t keep_unexported;
  /** For a shared record: the number of sessions that stay in it, the most
   * recently used ones. Each gateway with a limit removes the other sessions,
   * with all their lines, for all gateways. A session with a request in
   * progress stays, and so does the session "default". Requests of a removed
   * session get 410, for a day at least, and its keys end. 0 means no limit. */
  uint64_t keep_sessions;
  /** For a shared record: time in milliseconds after which an unused session is
   * removed in the same way. 0 means no limit. */
  uint64_t keep_age_ms;
  /** Exports a span for each request for a sample, and the metrics of GET
   * /metrics. It must be closed after the gateway. A request with a header
   * traceparent continues its trace. If the exporter also observes the service
   * (tnk_otlp_event()), the operations of a request are below its span. NULL
   * means no export. */
  tnk_otlp_t *otlp;
  /** PEM file of the authorities that sign the certificates of clients. With it
   * every client needs a certificate of one of them, that has not expired and
   * has no other purpose than clients; otherwise the TLS handshake fails.
   * Needs `tls_cert`. TLS sessions are not resumed then, so that each
   * connection is checked. NULL means that no client is asked for a
   * certificate. */
  const char *client_ca_file;
  /** PEM file of revocation lists of these authorities, which is read when the
   * gateway opens. A client with a revoked certificate is refused, and so are
   * all clients of an authority whose list is out of date. NULL means no list.
   */
  const char *client_crl_file;
  /** TNK_YES also serves clients without a certificate, such as load balancers
   * that ask for /healthz. Keys that are bound to a certificate are refused to
   * them. A client with an invalid certificate is still refused. Default: no.
   */
  tnk_choice_t client_optional;
  uint32_t reserved; /**< Must be 0. */
} tnk_gateway_options_t;

#define TNK_GATEWAY_OPTIONS_INIT TNK_SIZED(tnk_gateway_options_t)

/**
 * Open a gateway and listen. It can sample after tnk_gateway_use(). Requests
 * that arrive while the first such call is pending wait for it, at most 60
 * seconds. Before any such call requests get 503 at once.
 *
 * SIGPIPE is blocked in the calling thread.
 *
 * @param[out] out  The gateway. The caller closes it before the service. NULL
 *                  on failure.
 * @param loop      The loop of @p service. It must outlive the gateway. After a
 *                  failure it may have to run once more before it can be
 *                  closed.
 * @param service   Creates the samplers. It must outlive the gateway.
 * @param options   Initialize them with TNK_GATEWAY_OPTIONS_INIT. A tokenizer
 *                  is required.
 * @param why       On failure, receives one sentence; may be NULL.
 * @param why_size  Size of @p why in bytes; a longer sentence is truncated.
 *
 * @return TNK_OK, or TNK_EINVAL (an argument is NULL, an option is out of
 *         range, the tokenizer cannot decode, or a non-loopback address has no
 *         key), TNK_ENOTSUP (an option that this library does not know),
 *         TNK_EFILE (the record), TNK_EDNS, TNK_ECONN, TNK_ETIMEDOUT,
 *         TNK_ECERT or TNK_ETLS (the server of a shared record),
 *         TNK_ESYSTEM (cannot listen on the address), TNK_ENOMEM.
 * Blocks: reads the record. Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_gateway_open(tnk_gateway_t **out, uv_loop_t *loop,
                             tnk_service_t *service,
                             const tnk_gateway_options_t *options, char *why,
                             size_t why_size);

/**
 * Get the URL of the gateway: "http://127.0.0.1:PORT", without a trailing
 * slash. OpenAI clients need "/v1" appended.
 *
 * @return The URL; NULL for NULL.
 * Lifetime: as long as the gateway. Thread: loop thread. Since: 0.1
 */
TNK_API const char *tnk_gateway_address(const tnk_gateway_t *gateway);

/**
 * Use these weights for new requests. Requests in progress finish with the
 * weights that they started with; none is dropped. Each recorded turn has the
 * version of its weights. Versions count from 1, and continue in a record that
 * already has some. With a shared record, all its gateways follow. The first
 * call at a gateway that joins others uses their weights, and not the model of
 * @p options.
 *
 * @param gateway  The gateway.
 * @param options  As for tnk_service_create_sampling(). Copied.
 *
 * @return A promise of tnk_sampling_t, which the gateway owns. When it
 *         resolves, requests use it. NULL if @p gateway is NULL or closing, and
 *         if there is no memory.
 * Rejects with: the error of tnk_service_create_sampling(); the earlier weights
 *   then stay in use.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_gateway_use(tnk_gateway_t *gateway,
                                       const tnk_sampling_options_t *options);

/**
 * Set the reward of a response, as POST /tnk/reward does. The latest reward of
 * a response counts. It is written asynchronously, and is on disk when the
 * gateway has closed.
 *
 * @param gateway  The gateway.
 * @param session  Name of the session. NULL means "default". Ignored if @p id
 *                 is set.
 * @param id       Id of the response, as the client received it. NULL means the
 *                 latest response of the session.
 * @param choice   Index of the choice, if the client asked for several.
 * @param reward   Finite, within the range of a float.
 *
 * @return TNK_OK, or TNK_EINVAL (the reward is out of range, or @p gateway is
 *         NULL or closing), TNK_ENOTFOUND (unknown response), TNK_EFILE (an
 *         earlier write has failed), TNK_ETOOBIG (the disk is too slow),
 *         TNK_ENOMEM.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_gateway_reward(tnk_gateway_t *gateway, const char *session,
                               const char *id, uint32_t choice, double reward);

/** A key for one session, with limits. 0 or NULL means no limit. */
typedef struct {
  size_t size; /**< Set by TNK_GATEWAY_KEY_OPTIONS_INIT. */
  /** Name of the session: 1 to 128 printable ASCII characters without space and
   * '/'. NULL makes a name. Copied. */
  const char *session;
  uint64_t expires_in_s;   /**< Lifetime in seconds, at most 100 years. */
  uint64_t max_requests;   /**< Most answered requests. */
  uint64_t max_tokens;     /**< Most tokens of prompts and answers together. */
  uint64_t max_turns;      /**< Most answers; a request for n choices has n. */
  double max_usd;          /**< Most costs; needs prices. At most 1,000,000. */
  uint64_t max_body;       /**< Bytes of a request; larger ones get 413. */
  uint32_t max_concurrent; /**< Most requests in progress. */
  uint32_t max_per_minute; /**< Most requests in a minute, at most 1,000,000. */
  /** TNK_YES permits POST /tnk/reward for this session. Default: no. */
  tnk_choice_t may_reward;
  uint32_t reserved; /**< Must be 0. */
  /** The certificate of the client that may use the key, so that the key alone
   * is useless to a thief. It is the SHA-256 of the certificate as
   * "sha256:HEX", or a name in it: "DNS:agent-7.example",
   * "URI:spiffe://example/agent-7" or "CN:agent-7". At most 255 bytes. Needs
   * `client_ca_file` of the gateway. Without the certificate a request gets
   * 403. NULL means any client. Copied. */
  const char *certificate;
} tnk_gateway_key_options_t;

#define TNK_GATEWAY_KEY_OPTIONS_INIT TNK_SIZED(tnk_gateway_key_options_t)

enum {
  TNK_GATEWAY_KEY_SIZE = 80,   /**< Enough for a key and its NUL. */
  TNK_GATEWAY_KEY_ID_SIZE = 32 /**< Enough for the id of a key and its NUL. */
};

/**
 * Create a key for one session, as POST /tnk/sessions does. A client with this
 * key samples in this session alone: a request that names another one gets 403.
 * A request reserves the most that it can use before it is sampled, and returns
 * the rest when it ends. Requests beyond a total get 403, requests beyond
 * `max_concurrent` or `max_per_minute` get 429.
 *
 * The gateway keeps only a hash of the key. With a record file, the key and its
 * use survive a restart; they are written asynchronously, and are on disk when
 * the gateway has closed.
 *
 * @param gateway   Must have a key or an admin key. Otherwise all clients could
 *                  do everything without any key.
 * @param options   NULL means a key for a new session, without limits. Copied.
 * @param[out] key  Receives the key. Wipe it after use.
 * @param key_size  Size of @p key in bytes: TNK_GATEWAY_KEY_SIZE.
 * @param[out] id   Receives the id, which is not secret. May be NULL.
 * @param id_size   Size of @p id in bytes: TNK_GATEWAY_KEY_ID_SIZE.
 *
 * @return TNK_OK, or TNK_EINVAL (an argument is NULL or too small, an option is
 *         out of range, max_usd without prices, or a gateway that has no key or
 *         is closing), TNK_ENOTSUP (an option that this library does not know),
 *         TNK_EFULL (65,536 keys), TNK_EFILE (an earlier write has failed),
 *         TNK_ETOOBIG (the disk is too slow), TNK_ESYSTEM (no random numbers),
 *         TNK_ENOMEM.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_gateway_key_create(tnk_gateway_t *gateway,
                                   const tnk_gateway_key_options_t *options,
                                   char *key, size_t key_size, char *id,
                                   size_t id_size);

/**
 * Replace the secret of a key, as POST /tnk/sessions/ID/rotate does. The old
 * one ends at once. Id, limits and use stay.
 *
 * @param gateway   The gateway.
 * @param id        Id of the key.
 * @param[out] key  Receives the new key. Wipe it after use.
 * @param key_size  Size of @p key in bytes: TNK_GATEWAY_KEY_SIZE.
 *
 * @return TNK_OK, or TNK_EINVAL (an argument is NULL or too small, or the
 *         gateway is closing), TNK_ENOTFOUND (no such key), or TNK_EFILE,
 *         TNK_ETOOBIG, TNK_ESYSTEM or TNK_ENOMEM as for
 *         tnk_gateway_key_create(). After a failure the old key is valid.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_gateway_key_rotate(tnk_gateway_t *gateway, const char *id,
                                   char *key, size_t key_size);

/**
 * End a key, as DELETE /tnk/sessions/ID does. Requests in progress are
 * answered.
 *
 * @param gateway  The gateway.
 * @param id       Id of the key.
 *
 * @return TNK_OK, or TNK_EINVAL (an argument is NULL, or the gateway is
 *         closing), TNK_ENOTFOUND (no such key), or TNK_EFILE, TNK_ETOOBIG or
 *         TNK_ENOMEM as for tnk_gateway_key_create(). After a failure the key
 *         is valid.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_gateway_key_revoke(tnk_gateway_t *gateway, const char *id);

/**
 * Receives one recorded example, or one key. It must not call the gateway.
 *
 * @param user  As passed to tnk_gateway_datums() or tnk_gateway_keys().
 * @param line  The example or the key as JSON with a newline, not
 *              NUL-terminated. Valid during the call.
 * @param n     Length of @p line in bytes.
 * @return TNK_OK, or a code that ends the export.
 */
typedef int (*tnk_gateway_line_cb)(void *user, const char *line, size_t n);

/**
 * List the keys of sessions, as GET /tnk/sessions does. Each key is a line of
 * JSON with "id", "session", "expires_at" (seconds since 1970, if it expires),
 * "may_reward", "limits", "used" (requests, tokens, turns, usd; with what is
 * reserved for requests in progress) and "active" (requests in progress). No
 * line has a key or a hash.
 *
 * @param gateway  The gateway.
 * @param cb       Called for each key, inside this call.
 * @param user     Passed to @p cb.
 *
 * @return TNK_OK, TNK_EINVAL (@p gateway or @p cb is NULL, or the gateway is
 *         closing), TNK_ENOMEM, or the code of @p cb.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_gateway_keys(tnk_gateway_t *gateway, tnk_gateway_line_cb cb,
                             void *user);

/**
 * Export the record as training examples, one for each branch of a
 * conversation, as GET /tnk/datums does. Each example is a line of JSON that
 * tnk lint reads. Its targets are the sampled tokens, with their logprobs, and
 * with the rewards as advantages. It also has:
 * - "session": the name of the session.
 * - "turns": for each turn its number, the version of its weights, its reward,
 * and the position of its sampled tokens in the targets ("offset", "length").
 * - "model_input_spans" and "loss_fn_input_spans": the spans of tnk_datum_t, if
 * the service has named all sequences.
 *
 * @param gateway   The gateway.
 * @param session   Name of the session. NULL means all sessions.
 * @param rewarded  Not 0 exports only branches with a reward.
 * @param cb        Called for each example, inside this call.
 * @param user      Passed to @p cb.
 *
 * @return TNK_OK, or TNK_EINVAL (@p gateway or @p cb is NULL, or the gateway is
 *         closing), TNK_ENOTFOUND (no such session), TNK_EFILE (the record
 *         cannot be read), TNK_ENOMEM, or the code of @p cb.
 * Blocks: reads the record, some milliseconds for each branch.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_gateway_datums(tnk_gateway_t *gateway, const char *session,
                               int rewarded, tnk_gateway_line_cb cb,
                               void *user);

/** Counters of a gateway. Since: 0.1 */
typedef struct {
  size_t size;          /**< Set by TNK_GATEWAY_STATS_INIT. */
  uint64_t n_requests;  /**< Requests of any kind. */
  uint64_t n_answered;  /**< Sampling requests that were answered. */
  uint64_t n_failed;    /**< Sampling requests that were rejected or failed. */
  uint64_t n_gone;      /**< Sampling requests whose client disconnected. */
  uint64_t n_tokens;    /**< Sampled tokens in responses. */
  uint64_t n_continued; /**< Prompts that continued from sampled tokens. */
  uint32_t n_under_way; /**< Sampling requests in progress. */
  uint32_t n_connections;  /**< Open now. */
  uint32_t version;        /**< Version of the current weights; 0 if none. */
  uint32_t n_old_samplers; /**< Replaced samplers that still have requests. */
} tnk_gateway_stats_t;

#define TNK_GATEWAY_STATS_INIT TNK_SIZED(tnk_gateway_stats_t)

/**
 * Read the counters of a gateway.
 *
 * @param[out] out  Initialize it with TNK_GATEWAY_STATS_INIT. Members that this
 *                  library does not know are set to 0.
 * @param gateway   NULL sets all counters to 0.
 *
 * @return TNK_OK, or TNK_EINVAL if `size` is not a size of tnk_gateway_stats_t.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_gateway_stats(tnk_gateway_stats_t *out,
                              const tnk_gateway_t *gateway);

/**
 * Tell load balancers that this gateway will end: GET /readyz returns 503 from
 * now on. All requests are served as before. Call tnk_gateway_drain() when the
 * load balancers have noticed.
 *
 * @param gateway  NULL does nothing. A second call does nothing.
 * Never fails. Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_gateway_leave(tnk_gateway_t *gateway);

/**
 * Accept no more connections, and finish the requests in progress. Idle
 * connections are closed at once, the others when their requests are answered
 * and recorded. Then `n_connections` of tnk_gateway_stats() is 0. Call
 * tnk_gateway_close() at that time, or when you do not want to wait longer.
 *
 * @param gateway  NULL does nothing. A second call does nothing.
 * Never fails. Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_gateway_drain(tnk_gateway_t *gateway);

/**
 * Close the gateway. It closes connections and cancels samples in progress. All
 * answered turns are on disk when @p cb is called from the loop. After that the
 * handle is invalid.
 *
 * @param gateway  NULL does nothing and does not call @p cb.
 * @param cb       May be NULL.
 * @param user     Passed to @p cb.
 * Never fails. Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_gateway_close(tnk_gateway_t *gateway, tnk_close_cb cb,
                               void *user);

#ifdef __cplusplus
}
#endif

#endif

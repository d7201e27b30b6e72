/* SPDX-License-Identifier: MIT */
#ifndef TNK_SERVICE_H
#define TNK_SERVICE_H

#include "tnk/observe.h"
#include "tnk/promise.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which services share the backoff after a 429 (rate limit). */
typedef enum {
  TNK_LIMITER_SHARED = 0, /**< Services of this loop with equal URL and key. */
  TNK_LIMITER_PRIVATE = 1 /**< Only this service. */
} tnk_limiter_scope_t;

/** The HTTP version. With HTTP/2 many requests share a connection. It needs a
 * library built with nghttp2, see tnk_http2_version(). */
typedef enum {
  /** Over TLS: HTTP/2 or HTTP/1.1, as the server prefers (ALPN), and HTTP/1.1
   * for training requests. Without TLS: HTTP/1.1. If HTTP/2 does not work with
   * a server, the library changes to HTTP/1.1. */
  TNK_HTTP_AUTO = 0,
  TNK_HTTP_1_1 = 1,
  TNK_HTTP_2 = 2, /**< Over TLS: HTTP/2 only. Without TLS: HTTP/1.1. */
  /** HTTP/2 only, also without TLS, where the server cannot be asked first. A
   * server without HTTP/2 gets HTTP/1.1 there. Not possible without TLS
   * through a proxy. */
  TNK_HTTP_2_PRIOR_KNOWLEDGE = 3
} tnk_http_version_t;

/** Why operations of a client wait. Protocol: futures, queue observers. */
typedef enum {
  TNK_QUEUE_UNKNOWN = 0,
  TNK_QUEUE_ACTIVE = 1,
  TNK_QUEUE_PAUSED_CAPACITY = 2,
  TNK_QUEUE_PAUSED_RATE_LIMIT = 3,
  /** Reported by the library, not by the server. No pending operation of the
   * client was accepted or has ended for 60 s, then for 120 s, 240 s and so
   * on. Not reported while the service is unreachable. */
  TNK_QUEUE_STALLED = 4,
  /** The server has ended the session, or no longer knows it, for example after
   * a restart. Operations that it rejects from now on reject with
   * TNK_ESESSION. Reported once. */
  TNK_QUEUE_SESSION_LOST = 5,
  /** Reported by the library, not by the server. No attempt got a response for
   * five seconds or more, or the server returned only HTTP 5xx for 30 s. A
   * server that has never responded and refuses the connection is reported at
   * once. Operations wait and continue by themselves. This is reported once.
   * TNK_QUEUE_ACTIVE follows after the first good response. That response also
   * ends the pauses between attempts within a second, except those that the
   * server asked for (Retry-After). */
  TNK_QUEUE_UNREACHABLE = 6,
  /** Reported by the library, not by the server. The weights of a training
   * client may be others than the program expects, because the server
   * - does not know the model, or the result of a request that it had accepted,
   * - expects a sequence number that it has run, or
   * - refused connections and answers again: it was probably restarted, and its
   *   weights may be older. This costs nothing while no connection is refused.
   *   Connections through a proxy are not considered.
   * The client has stopped. Pending and later operations reject with
   * TNK_ESESSION until tnk_training_go_on() is called, which this callback may
   * do. With `recovery` the client is restored instead. Also reported once for
   * a sampling client whose sampler the server does not know. */
  TNK_QUEUE_MEMORY_LOST = 7
} tnk_queue_state_t;

/**
 * Called when operations of a client wait at the service, at most once in 60
 * seconds for each client. Also called when a client makes no progress, and for
 * the states that the library reports itself.
 *
 * @param client  Model id or sampling session id. For operations without a
 *                client: their name. For TNK_QUEUE_SESSION_LOST: the session's
 *                id. For TNK_QUEUE_UNREACHABLE and its end: the server's host.
 *                Valid until the callback returns.
 * @param reason  One sentence of the server or of the library. Valid until the
 *                callback returns.
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_queue_state_cb)(const char *client, tnk_queue_state_t state,
                                   const char *reason, void *user);

/** The state of the recovery of a session or a client. */
typedef enum {
  /** The server has lost it. The first attempt follows, after `retry_ms`. */
  TNK_RECOVERY_DETECTED = 0,
  TNK_RECOVERY_STARTED = 1, /**< An attempt begins. */
  /** It exists again, under another id. A training client accepts operations
   * from now on, and has the weights of `path`, after `n_steps` steps. */
  TNK_RECOVERY_COMPLETED = 2,
  /** One attempt has failed, for `reason`. The recovery continues: the next
   * attempt follows after `retry_ms`. */
  TNK_RECOVERY_FAILED = 3,
  /** The recovery has ended without success, for `reason`: it was the last
   * attempt, or another one would fail as well. The client stays lost, its
   * operations reject with TNK_ESESSION, and no more events follow. */
  TNK_RECOVERY_EXHAUSTED = 4
} tnk_recovery_state_t;

/**
 * A step in the recovery of a session or a client. The session comes first,
 * then its clients, one after the other. Later versions may append members.
 *
 * Lifetime: until the callback returns. Since: 0.1
 */
typedef struct {
  tnk_recovery_state_t state;
  uint32_t attempt;         /**< The first is 1; 0 means none yet. */
  const char *client;       /**< The id of the client or the session. */
  tnk_training_t *training; /**< The training client, or NULL. */
  tnk_sampling_t *sampling; /**< The sampling client, or NULL. */
  /** Path of the state or weights that are restored. NULL for a session, for a
   * sampler of a base model, and for a model that was never saved and begins
   * again at step 0. */
  const char *path;
  /** Number of optimizer steps in `path`. It counts the steps that the service
   * had accepted before the save, since the model was created or a state was
   * loaded; in a run that tnk_ledger_resume() resumed, since the start of the
   * run. Continue with the next step, see tnk_training_ready(). */
  uint64_t n_steps;
  uint64_t retry_ms;  /**< Time until the next attempt, in milliseconds. */
  const char *reason; /**< Reason of the failure, or NULL. */
} tnk_recovery_event_t;

/**
 * Called for each event of a recovery. It may call any function of the library
 * except tnk_wait(), and may close the service.
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_recovery_cb)(const tnk_recovery_event_t *event, void *user);

/**
 * Options of a service. Zero selects the default of a field. An environment
 * variable that is unset or empty is ignored.
 */
typedef struct {
  size_t size; /**< Set by TNK_SERVICE_OPTIONS_INIT. */
  /** API key. NULL means TINKER_API_KEY. If that is unset and there is no
   * command, the library reads ~/.tinker/credentials.json: the key of this
   * base URL, else a key without a server. The latter is not sent unencrypted
   * to another machine. Copied, and wiped when the service ends. */
  const char *api_key;
  /** A command for /bin/sh that prints a credential. NULL means
   * TINKER_CREDENTIAL_CMD. It runs whenever a token is needed, if there is no
   * key or if the server asks for its output instead of a key. The output is
   * trimmed, and wiped after use. The command must end with status 0 within 30
   * seconds. Its standard input is empty, and its standard error is discarded.
   * Copied. */
  const char *credential_cmd;
  /** Base URL, http:// or https://. NULL means TINKER_BASE_URL, else the hosted
   * service. */
  const char *base_url;
  const char *project_id; /**< Project. NULL means TINKER_PROJECT_ID. */
  /** Tags of the session, separated by commas. Spaces around them are removed.
   * NULL means TINKER_TAGS. */
  const char *tags;
  const tnk_pair_t *user_metadata; /**< Sent with create_session. */
  size_t n_user_metadata;
  const char *display_name; /**< Name of the session. */
  /** Headers added to each request. They replace headers of the library with
   * the same name. Headers that frame a message, such as Host and
   * Content-Length, are rejected. */
  const tnk_pair_t *headers;
  size_t n_headers;
  const tnk_allocator_t *allocator; /**< NULL means malloc(). Copied. */
  const tnk_logger_t *logger;       /**< NULL means no log. Copied. */
  tnk_queue_state_cb on_queue_state;
  void *queue_state_user;
  /** PEM file of trusted certificates. It replaces SSL_CERT_FILE and the
   * system's store. */
  const char *ca_file;
  /** Proxy for all requests: http://[user[:password]@]host[:port]. With
   * https:// the connection to the proxy uses TLS. With socks5:// this machine
   * resolves host names, with socks5h:// the proxy does. User and password are
   * percent-encoded; they are sent only to the proxy and are wiped. The
   * default port is 80, 443 or 1080. "" means no proxy. NULL means the
   * environment: https_proxy or HTTPS_PROXY for https://, http_proxy in lower
   * case for http://, then all_proxy or ALL_PROXY for both. Requests to
   * https:// are tunneled (CONNECT or SOCKS), so the proxy sees only host and
   * port. */
  const char *proxy;
  /** Hosts that are reached without the proxy, separated by commas or spaces:
   * names (with their subdomains), addresses, networks such as 10.0.0.0/8, or
   * "*". A ":port" limits an entry to that port. This machine is included only
   * if it is listed. "" means that all hosts use the proxy. NULL means
   * no_proxy or NO_PROXY, unless `proxy` is set. */
  const char *no_proxy;
  const tnk_pair_t *proxy_headers; /**< Headers for an HTTP proxy. Copied. */
  size_t n_proxy_headers;
  uint64_t connect_timeout_ms; /**< Time limit for DNS, TCP, proxy and TLS
                                  together, in milliseconds. 0 means 5,000. */
  /** Idle timeout of one request, in milliseconds: no byte in either direction,
   * or no response after the last byte was sent. 0 means 60,000. */
  uint64_t timeout_ms;
  /** Idle timeout of one long poll, in milliseconds: no response header, and
   * after it no byte of the body. 0 means 45,000. */
  uint64_t poll_timeout_ms;
  /** Maximum number of retries of a failed request. 0 means 10; UINT32_MAX
   * disables all retries. Training, saving and sampling requests use
   * patience_ms instead. */
  uint32_t max_retries;
  /** Maximum number of open long polls of samples. 0 means 2,048. Over HTTP/1.1
   * the process's limit of open files can reduce it, with a warning. Polls of
   * training operations are not counted. */
  uint32_t max_polls;
  /** Maximum number of operations that are queued or running. 0 means
   * 1,048,576. */
  uint32_t max_pending;
  tnk_limiter_scope_t limiter_scope;
  /** TNK_NO rejects a sample after its first failure. Default: yes. */
  tnk_choice_t retry_samples;
  uint32_t padding; /**< Ignored. */
  /** TNK_YES: the service keeps the loop alive until it is closed, even while
   * it is idle. Set it if another event loop runs this libuv loop, see
   * bindings.h. libuv runs no timers of a loop that is not alive, so the
   * session would miss its heartbeats. Default: no. */
  tnk_choice_t keep_loop_alive;
  uint32_t reserved;
  /** PEM file with the client certificate and its chain, for servers that ask
   * for one. NULL means TNK_CERT_FILE, else none. */
  const char *cert_file;
  /** PEM file with the key of cert_file, not encrypted. NULL means the same
   * file, or TNK_KEY_FILE if cert_file is NULL too. The library wipes its
   * copy. */
  const char *key_file;
  /** HTTP version. With TNK_HTTP_AUTO the variable TNK_HTTP_VERSION decides if
   * it is set: "auto", "1.1", "2" or "2-prior-knowledge". */
  tnk_http_version_t http_version;
  /** Maximum number of HTTP/2 connections. 0 means 256. Each carries up to 100
   * requests, or as many as the server allows. */
  uint32_t max_http2_connections;
  /** Maximum wait after HTTP 402, in milliseconds, before TNK_EBILLING. 0 means
   * the service's value, else one hour; a larger value does not extend it.
   * UINT64_MAX rejects at once. Training, saving and sampling wait. With
   * `recovery` all requests wait, once the service has accepted work. */
  uint64_t max_billing_pause_ms;
  /** How long a failed request is retried, in milliseconds since its first
   * failure. 0 means 300,000; UINT64_MAX means without limit. It applies to
   * training, saving and sampling requests, which are repeated with the same
   * bytes, number and key. Other requests are retried at most max_retries
   * times, except while a server that has never responded refuses the
   * connection. A retry that is in progress when the time ends may take two
   * more seconds, or longer while bytes are transferred. A 429 is not a
   * failure: samples wait for the rate limit. After the service has accepted
   * an operation, the library waits for its result without limit. */
  uint64_t patience_ms;
  /** Called for every step of every operation. NULL means no observer. */
  tnk_observe_cb observer;
  void *observer_user;
  /** W3C trace context, "00-<trace id>-<span id>-<flags>". Each request then
   * has a header traceparent with this trace and a new span id, which the
   * observer receives. NULL sends no header. */
  const char *traceparent;
  /** A file for the dump of the service (tnk_service_dump() in JSON), which
   * `tnk top` displays. It is replaced as a whole each second while the loop
   * runs, and when the service closes. The name with ".new" appended is used
   * for the new version. NULL means TNK_DUMP_FILE, else none. Use a different
   * file for each service. */
  const char *dump_file;
  /** TNK_YES: if the server has lost the session or a model, the client
   * restores it. It opens a new session, creates samplers again from their
   * paths, and restores training clients from their last saved or loaded
   * state, with the optimizer. A model that was never saved is created
   * again at step 0. Samples in flight are submitted to the new sampler,
   * unless retry_samples is off. Operations of a training client reject
   * with TNK_ESESSION until it is restored; tnk_training_ready() and
   * on_recovery report the step from which to continue. Handles stay valid,
   * but their ids change.
   *
   * After refused connections every training client is restored, because
   * the weights may be older (TNK_QUEUE_MEMORY_LOST). The steps since the
   * last save are then repeated, even if the server had lost nothing.
   * Default: no. */
  tnk_choice_t recovery;
  uint32_t recovery_attempts;     /**< Attempts for each one; 0 means 3. */
  uint64_t recovery_delay_ms;     /**< Pause before the second attempt, in
                                     milliseconds, then doubled. 0: 5,000. */
  uint64_t recovery_max_delay_ms; /**< Longest pause between attempts, in
                                     milliseconds. 0 means 60,000. */
  tnk_recovery_cb on_recovery;
  void *recovery_user;
  /** Interval in milliseconds at which the library asks whether the service
   * marks the run of a training client as corrupted. Such a client counts as
   * lost. Only with `recovery`. 0 means 30,000; UINT64_MAX disables it. A
   * server without training runs is asked only once. */
  uint64_t recovery_poll_ms;
  /** Number of failed attempts in a row, of any session or client, after which
   * all attempts pause for recovery_breaker_ms. One attempt then decides
   * whether they continue. 0 disables the pause. */
  uint64_t recovery_breaker;
  uint64_t recovery_breaker_ms; /**< Pause in milliseconds. 0 means 30,000. */
} tnk_service_options_t;

#define TNK_SERVICE_OPTIONS_INIT TNK_SIZED(tnk_service_options_t)

/**
 * Open a service on the caller's loop. This sends nothing.
 *
 * The first operation that needs them fetches the configuration and creates a
 * session. A service without pending operations does not keep the loop alive,
 * unless keep_loop_alive is TNK_YES.
 *
 * SIGPIPE is blocked in the calling thread, because libuv's writes can raise
 * it.
 *
 * @param[out] out  The service. The caller closes it. NULL on failure.
 * @param loop      Must outlive the service.
 * @param options   NULL for defaults. Copied.
 * @param why       On failure, receives one sentence with the reason; may be
 *                  NULL.
 * @param why_size  Size of @p why in bytes; a longer sentence is truncated.
 *
 * Protocol: transport, base URL; transport, provider selection.
 * @return TNK_OK, or
 *   TNK_EINVAL       an option is out of range, or the base URL, a string, a
 *                    header or the proxy (also from the environment) cannot be
 *                    used
 *   TNK_ECREDENTIAL  there is no API key and no command, or the key is neither
 *                    tml-... nor a JWT
 *   TNK_ENOTSUP      @p options sets a field that this library does not know
 *   TNK_ECERT        ca_file could not be read
 *   TNK_EFILE        cert_file or key_file cannot be used; @p why has the
 *                    reason
 *   TNK_ENOMEM
 *   TNK_ESYSTEM      @p why has the system's reason
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_service_open(tnk_service_t **out, uv_loop_t *loop,
                             const tnk_service_options_t *options, char *why,
                             size_t why_size);

/**
 * Called when a closed object and its memory are freed.
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_close_cb)(void *user);

/**
 * Close a service and all its clients.
 *
 * Legal in every state. Pending promises reject with TNK_ECLOSED. If there is a
 * session, the library reports its end to the server and waits at most two
 * seconds for the response. Then it closes the sockets and calls @p cb.
 *
 * Until @p cb runs, calls on the handle reject with TNK_ECLOSED, and a second
 * close does nothing and does not call its callback. After that the handle is
 * invalid; a debug build of the library may abort if it is used.
 * tnk_training_close() says how long the handles of clients are valid.
 *
 * @param service  NULL does nothing and does not call @p cb.
 * @param cb       May be NULL.
 * @param user     Passed to @p cb.
 *
 * Never fails. It allocates memory only for the last dump of a `dump_file`,
 * which is left out if there is no memory.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_service_close(tnk_service_t *service, tnk_close_cb cb,
                               void *user);

/**
 * List the models that the server offers. Does not create a session. Protocol:
 * session, capabilities.
 *
 * @return A promise of tnk_capabilities_t.
 * Rejects with: Caller, Transport, Service (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_service_capabilities(tnk_service_t *service);

/**
 * Check whether the server is up. Does not create a session. Protocol: session,
 * health.
 *
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_service_health(tnk_service_t *service);

/**
 * Get the id of the session, or NULL before it exists.
 *
 * Lifetime: as long as the service. With `recovery` it ends when a new session
 * replaces the old one (see on_recovery), so keep a copy.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const char *tnk_service_session_id(const tnk_service_t *service);

/** The optimizer families. Protocol: training, optimizers. */
typedef enum {
  TNK_OPTIMIZER_ADAMW = 0,
  TNK_OPTIMIZER_DIMUON = 1,
  TNK_OPTIMIZER_RAW = 2 /**< The JSON object in optimizer_json. */
} tnk_optimizer_t;

/** Options of a new LoRA model. Zero selects the default, except for `seed`. */
typedef struct {
  size_t size;                /**< Set by TNK_LORA_OPTIONS_INIT. */
  const char *base_model;     /**< Required, such as "Qwen/Qwen3-8B". */
  uint32_t rank;              /**< 0 means 32. */
  tnk_optimizer_t optimizer;  /**< It cannot be changed later. */
  int64_t seed;               /**< TNK_ABSENT: the server chooses. */
  tnk_choice_t train_mlp;     /**< Default: yes. One is needed. */
  tnk_choice_t train_attn;    /**< Default yes. */
  tnk_choice_t train_unembed; /**< Default yes. */
  uint32_t reserved;
  const char *optimizer_json; /**< TNK_OPTIMIZER_RAW: `{"type":...}`. */
  const tnk_pair_t *user_metadata;
  size_t n_user_metadata;
} tnk_lora_options_t;

#ifdef __cplusplus
extern "C++" {
namespace tnk_detail {
inline tnk_lora_options_t lora_options() {
  tnk_lora_options_t value = sized<tnk_lora_options_t>();
  value.seed = TNK_ABSENT;
  return value;
}
} // namespace tnk_detail
}
#define TNK_LORA_OPTIONS_INIT tnk_detail::lora_options()
#else
#define TNK_LORA_OPTIONS_INIT                                                  \
  { .size = sizeof(tnk_lora_options_t), .seed = TNK_ABSENT }
#endif

/**
 * Create a model to train. Protocol: session, creating a training client.
 *
 * @param options  Copied.
 * @return A promise of tnk_training_t. The handle is valid until
 *         tnk_training_close() or tnk_service_close().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EINVAL without a base model, and if all three parts are off.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_service_create_lora(tnk_service_t *service,
                        const tnk_lora_options_t *options);

/** Options of a model that starts from a saved state. */
typedef struct {
  size_t size;            /**< Set by TNK_RESTORE_OPTIONS_INIT. */
  const char *path;       /**< Required: `tinker://RUN/weights/NAME`. */
  const char *base_model; /**< NULL means the checkpoint's base model. */
  /** TNK_YES also restores the moments and the step count of the optimizer.
   * Default: no. */
  tnk_choice_t with_optimizer;
  /** TNK_YES uses three requests (weights_info, create_model, load_weights),
   * for servers that cannot restore a model in one. TNK_NO uses one request
   * only. Default: one request, or three if the server rejects it because it
   * wants an existing model and has done nothing. */
  tnk_choice_t classic;
  const char *weights_access_token; /**< For a state of another user. */
  tnk_optimizer_t optimizer;        /**< Only if with_optimizer is no. */
  const char *optimizer_json;
  const tnk_pair_t *user_metadata;
  size_t n_user_metadata;
  uint64_t reserved;
} tnk_restore_options_t;

#define TNK_RESTORE_OPTIONS_INIT TNK_SIZED(tnk_restore_options_t)

/**
 * Create a model from a saved state. Protocol: session, creating a training
 * client.
 *
 * @param options  Copied.
 * @return A promise of tnk_training_t, as tnk_service_create_lora().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_ENOTFOUND if the path does not exist, or TNK_EFAILED if the server
 *   notices this only when it loads the state.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_service_restore(tnk_service_t *service,
                    const tnk_restore_options_t *options);

/** What to sample from: a path, a base model, both, or the sampler of another
 * client. */
typedef struct {
  size_t size;            /**< Set by TNK_SAMPLING_OPTIONS_INIT. */
  const char *model_path; /**< Path of sampler weights, tinker://... */
  const char *base_model;
  tnk_choice_t record_stability_info; /**< Default no. */
  uint32_t reserved;
  /** A string from tnk_sampling_export(), of this or another process or
   * machine. It replaces all other options. */
  const char *exported;
} tnk_sampling_options_t;

#define TNK_SAMPLING_OPTIONS_INIT TNK_SIZED(tnk_sampling_options_t)

/**
 * Create a sampling client. Protocol: session, sampling-session validation;
 * sampling, creating, cloning and handing over.
 *
 * With `exported` the library creates neither a sampler nor a session. The
 * client uses the sampler that the string names, with its own sequence numbers,
 * so no two clients request the same sample. It also sends heartbeats for the
 * session of that sampler, but does not end it. The session ends with the
 * service that created it. After that this client cannot sample:
 * `on_queue_state` is called with TNK_QUEUE_SESSION_LOST and the id of that
 * session, and samples reject with TNK_ESESSION. `recovery` does not restore
 * this client. Import a new string of the service that created the sampler.
 *
 * The string contains no key. Requests go to the server of this service's
 * options. If the string names another server, a warning is logged.
 *
 * @param options  Copied.
 * @return A promise of tnk_sampling_t. The handle is valid until
 *         tnk_sampling_close() or tnk_service_close().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EINVAL without a model, if the path is not tinker://, and if `exported`
 *   is not a string of tnk_sampling_export(); TNK_ENOTFOUND; TNK_ESESSION if
 *   the server does not know the sampler of `exported` any more.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_service_create_sampling(tnk_service_t *service,
                            const tnk_sampling_options_t *options);

/** Counters of a service since it was opened. */
typedef struct {
  size_t size;            /**< Set by TNK_STATS_INIT. */
  uint64_t n_requests;    /**< Requests sent, including retries. */
  uint64_t n_retries;     /**< Retries among them. */
  uint64_t n_late_events; /**< Responses that came after their request was given
                             up. */
  uint64_t n_double_settles;  /**< Always 0; another value is a bug. */
  uint64_t n_bytes_sent;      /**< HTTP bytes before TLS. */
  uint64_t n_bytes_received;  /**< HTTP bytes after TLS. */
  uint32_t n_pending;         /**< Promises that are pending. */
  uint32_t n_connections;     /**< Open now. */
  uint32_t max_connections;   /**< Largest number open at one time. */
  uint32_t n_polls;           /**< Long polls open now. */
  uint64_t n_retries_connect; /**< Retries by cause, n_retries in total: no
                                 connection could be made, ... */
  uint64_t
      n_retries_lost; /**< ... the connection was lost after sending, ... */
  uint64_t n_retries_timeout; /**< ... timeout or HTTP 408, ... */
  uint64_t n_retries_rate;    /**< ... HTTP 429, ... */
  uint64_t n_retries_billing; /**< ... HTTP 402, ... */
  uint64_t n_retries_server;  /**< ... HTTP 5xx, ... */
  uint64_t n_retries_other;   /**< ... or another response. */
  uint64_t n_resubmits;       /**< Samples submitted again. */
  uint64_t n_stalls;          /**< Reports of TNK_QUEUE_STALLED. */
  uint64_t loop_lag_ms;       /**< Delay of the service's last timer, caused by
                                 callbacks before it. */
  uint64_t max_loop_lag_ms;   /**< Largest delay so far. */
} tnk_stats_t;

#define TNK_STATS_INIT TNK_SIZED(tnk_stats_t)

/**
 * Read the counters of a service. This sends nothing.
 *
 * @param[out] out  Initialize it with TNK_STATS_INIT. Members that this library
 *                  does not know are set to 0.
 * @param service   NULL sets all counters to 0.
 *
 * @return TNK_OK, or TNK_EINVAL if `size` is not a size of tnk_stats_t.
 * Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_service_stats(tnk_stats_t *out, const tnk_service_t *service);

/** Forms of tnk_service_dump(). */
typedef enum {
  TNK_DUMP_TEXT = 0, /**< Indented lines, for people. */
  TNK_DUMP_JSON = 1  /**< One object and a newline. */
} tnk_dump_format_t;

/**
 * Receives a dump. It may call any function of this library except tnk_wait(),
 * and may close the service.
 *
 * @param text    Not NUL-terminated; valid until the function returns.
 * @param length  Bytes at @p text.
 * @param user    As passed to tnk_service_dump().
 *
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_dump_cb)(const char *text, size_t length, void *user);

/**
 * Write the state of a service: session and heartbeat, counters, loop lag,
 * connections, limits, each client with its queue and what its oldest
 * operations wait for, and each download of weights.
 *
 * It contains no secrets: only the kind of the key, the names of headers, and
 * the hosts of signed URLs. It contains no prompts and no bodies. Names and
 * fields may change between versions.
 *
 * @param format  For people or for programs.
 * @param write   Called once, inside this call, and only on success.
 * @param user    Passed to @p write.
 *
 * @return TNK_OK, TNK_ENOMEM, or TNK_EINVAL for NULL, an unknown format, and an
 *         option that is not UTF-8 and so cannot be written as JSON.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_service_dump(const tnk_service_t *service,
                             tnk_dump_format_t format, tnk_dump_cb write,
                             void *user);

#ifdef __cplusplus
}
#endif

#endif

#ifndef TNK_SERVICE_H
#define TNK_SERVICE_H

#include "tnk/observe.h"
#include "tnk/promise.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Which services share one back-off after a 429. */
typedef enum {
  TNK_LIMITER_SHARED = 0, /**< All on this loop with equal URL and key. */
  TNK_LIMITER_PRIVATE = 1 /**< This service alone. */
} tnk_limiter_scope_t;

/** Which version of HTTP is spoken. With HTTP/2 many requests share a
 * connection; only a library built with nghttp2 has it, see
 * tnk_http2_version(). */
typedef enum {
  /** Over TLS what the server prefers of HTTP/2 and HTTP/1.1 (ALPN), and
   * HTTP/1.1 for submissions of training; HTTP/1.1 without TLS. A server whose
   * HTTP/2 does not work gets HTTP/1.1 from there on. */
  TNK_HTTP_AUTO = 0,
  TNK_HTTP_1_1 = 1,
  TNK_HTTP_2 = 2, /**< Over TLS nothing else; HTTP/1.1 without. */
  /** Nothing else over TLS, and without TLS at once, though a server cannot be
   * asked there; with one that does not speak it, HTTP/1.1. Not through a proxy
   * without TLS. */
  TNK_HTTP_2_PRIOR_KNOWLEDGE = 3
} tnk_http_version_t;

/** How a service is told to pause. Protocol: futures, queue observers. */
typedef enum {
  TNK_QUEUE_UNKNOWN = 0,
  TNK_QUEUE_ACTIVE = 1,
  TNK_QUEUE_PAUSED_CAPACITY = 2,
  TNK_QUEUE_PAUSED_RATE_LIMIT = 3,
  /** Not the server's word: nothing pending of the client has been accepted or
   * has ended for 60 s, then 120 s, 240 s and so on; not while the service is
   * known to be out of reach. */
  TNK_QUEUE_STALLED = 4,
  /** The server has ended the session, or does not know it any more, as after a
   * restart; operations that it refuses from now on reject with TNK_ESESSION.
   * Told once. */
  TNK_QUEUE_SESSION_LOST = 5,
  /** The library's own finding: attempts got no response for five seconds or
   * more, or only HTTP 5xx for 30 s. A server that has never answered and
   * refuses the connection is reported at once. Operations wait and continue by
   * themselves. This is reported once; TNK_QUEUE_ACTIVE follows after the first
   * good response, which also ends the pauses between attempts within a second,
   * except those that the server asked for (Retry-After). */
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
 * Hears that operations of one client wait on the service's side, at most once
 * in 60 seconds for each client; that nothing moves; and that the session is
 * lost.
 *
 * @param client  Model id, or sampling session id; for operations of no
 *                client their name; for TNK_QUEUE_SESSION_LOST the session's
 *                id; for TNK_QUEUE_UNREACHABLE, and the end of that, the
 *                server's host. Valid until the return.
 * @param reason  The server's words, or ours; valid until the return.
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
 * What is told of a recovery: of the session first, then of its clients, one
 * after the other. Later versions may append members.
 *
 * Lifetime: until the callback returns. Since: 0.1
 */
typedef struct {
  tnk_recovery_state_t state;
  uint32_t attempt;         /**< From 1; 0: none yet. */
  const char *client;       /**< Its id, or the session's. */
  tnk_training_t *training; /**< Of a training client, else NULL. */
  tnk_sampling_t *sampling; /**< Of a sampling client, else NULL. */
  /** What it is made from. NULL for a session, for a sampler of a base model,
   * and for a model that was never saved and begins again at step 0. */
  const char *path;
  /** Steps of the optimizer that are in `path`, as this client has counted
   * them: those that the service had accepted before it was saved, since the
   * model was made or a state loaded. The program continues with the next one,
   * see tnk_training_ready(). */
  uint64_t n_steps;
  uint64_t retry_ms;  /**< Until the next attempt. */
  const char *reason; /**< Why it failed, or NULL. */
} tnk_recovery_event_t;

/**
 * Hears of recoveries, and may use everything, close the service too.
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_recovery_cb)(const tnk_recovery_event_t *event, void *user);

/**
 * How to reach a service. Zero means the default for every field, and an
 * environment variable that is unset or empty counts as absent.
 */
typedef struct {
  size_t size; /**< Set by TNK_SERVICE_OPTIONS_INIT. */
  /** NULL: TINKER_API_KEY, else, without a command, what is stored in
   * ~/.tinker/credentials.json: the key of this base URL, or a default one
   * that names no server, but that not in clear text to another machine.
   * Copied, and wiped when the service ends. */
  const char *api_key;
  /** A command for /bin/sh that prints a credential; NULL:
   * TINKER_CREDENTIAL_CMD. Run whenever a token is needed, if there is no key,
   * or if the server asks for its output instead of a key. What it prints is
   * trimmed, and wiped after use; it has 30 seconds and must end with status
   * 0. It reads nothing, and its errors go nowhere. Copied. */
  const char *credential_cmd;
  /** NULL: TINKER_BASE_URL, else the hosted service. http:// or https://. */
  const char *base_url;
  const char *project_id; /**< NULL: TINKER_PROJECT_ID. */
  /** Session tags, comma-separated; NULL: TINKER_TAGS. Blanks are trimmed. */
  const char *tags;
  const tnk_pair_t *user_metadata; /**< Sent with create_session. */
  size_t n_user_metadata;
  const char *display_name; /**< Name of the session. */
  /** Sent with each request, over our own; those that frame a message, such as
   * Host and Content-Length, are refused. */
  const tnk_pair_t *headers;
  size_t n_headers;
  const tnk_allocator_t *allocator; /**< NULL: malloc. Copied. */
  const tnk_logger_t *logger;       /**< NULL: no output. Copied. */
  tnk_queue_state_cb on_queue_state;
  void *queue_state_user;
  /** PEM file of trusted certificates, instead of SSL_CERT_FILE and the
   * system's store. */
  const char *ca_file;
  /** http://[user[:password]@]host[:port] of a proxy for everything, or
   * https:// where TLS is spoken with the proxy itself, or socks5://, where
   * names are looked up here, or socks5h://, where the proxy does that. User
   * and password are percent-encoded, go to the proxy alone and are wiped. The
   * port is 80, 443 or 1080 unless it is given. "": none. NULL: for https://
   * the variables https_proxy, else HTTPS_PROXY, for http:// the variable
   * http_proxy, in small letters only; for both else all_proxy, else ALL_PROXY.
   * https:// is tunnelled (CONNECT or SOCKS), so the proxy learns the host and
   * the port and no more. */
  const char *proxy;
  /** Hosts that need no proxy: names, for all that is below them too,
   * addresses, networks such as 10.0.0.0/8, each with :port if only that is
   * meant, or "*"; between commas or blanks. This machine is no exception
   * unless it is listed. "": every host needs it. NULL: no_proxy, else
   * NO_PROXY, unless `proxy` is given. */
  const char *no_proxy;
  const tnk_pair_t *proxy_headers; /**< For one of HTTP alone; copied. */
  size_t n_proxy_headers;
  uint64_t connect_timeout_ms; /**< DNS, TCP, proxy, TLS together; 0: 5,000. */
  /** One request: without a byte sent or received, and from its last byte to
   * the answer; 0: 60,000. */
  uint64_t timeout_ms;
  /** One long poll: to the head of its answer, then without a byte of it; 0:
   * 45,000. */
  uint64_t poll_timeout_ms;
  /** Repeats of a failed request; 0: 10. UINT32_MAX: none, of anything. What
   * trains, saves or samples has patience_ms in place of a number. */
  uint32_t max_retries;
  /** Long polls of samples that may be held at once; 0: 2,048. Over HTTP/1.1
   * bounded by the process's limit of open files, with a warning. Polls of
   * training have places of their own. */
  uint32_t max_polls;
  /** Operations that may be queued or running; 0: 1,048,576. */
  uint32_t max_pending;
  tnk_limiter_scope_t limiter_scope;
  /** Retry samples by policy after a failure; TNK_NO: report the first. */
  tnk_choice_t retry_samples;
  uint32_t padding; /**< Ignored. */
  /** TNK_YES: the service keeps the loop alive until it is closed, also while
   * it is idle. Set it if another event loop turns this libuv loop, see
   * bindings.h: libuv runs no timer of a loop that is not alive, so the session
   * would miss its heartbeats. Off by default. */
  tnk_choice_t keep_loop_alive;
  uint32_t reserved;
  /** PEM file with the certificate of this client and those that vouch for it,
   * for servers that ask for one. NULL: TNK_CERT_FILE, else none. */
  const char *cert_file;
  /** PEM file with its key, not encrypted. NULL: TNK_KEY_FILE where cert_file
   * is NULL too, else the same file. What was read of it is wiped. */
  const char *key_file;
  /** TNK_HTTP_AUTO: TNK_HTTP_VERSION, which is "auto", "1.1", "2" or
   * "2-prior-knowledge", else as TNK_HTTP_AUTO says. */
  tnk_http_version_t http_version;
  /** Connections of HTTP/2 that may be open; 0: 256. Each takes up to 100
   * requests, or as many as the server allows. */
  uint32_t max_http2_connections;
  /** How long operations wait for credit, where the service refuses them for
   * billing reasons (402), before they reject with TNK_EBILLING. 0: as long as
   * the service says, else an hour; nothing makes it longer. UINT64_MAX: not at
   * all. */
  uint64_t max_billing_pause_ms;
  /** How long a failed request may be repeated, in milliseconds from its first
   * failure. 0 means 300,000; UINT64_MAX means without limit. Training
   * operations, saves and samples are repeated that long, with the same bytes,
   * number and key. Other requests make at most max_retries repeats; where
   * nothing has ever answered and the connection is refused, they are repeated
   * as long as patience lasts. A repeat that is under way when patience ends
   * may take two more seconds, or longer while its bytes move. A 429 is not a
   * failure: samples wait for the rate limit. What the service has accepted is
   * waited for without limit. */
  uint64_t patience_ms;
  /** Hears of every step of every operation; NULL: nobody does. */
  tnk_observe_cb observer;
  void *observer_user;
  /** W3C's trace context, "00-<trace id>-<span id>-<flags>": each request goes
   * out with a header traceparent of this trace, with a span id of its own,
   * which the observer is told. NULL: none does. */
  const char *traceparent;
  /** A file that the dump of the service (tnk_service_dump(), JSON) is written
   * to each second while the loop turns and when the service closes, as a whole
   * each time; `tnk top` shows it. A name beside it, with ".new" behind, is
   * used meanwhile. NULL: TNK_DUMP_FILE, else none. Give each service a file of
   * its own. */
  const char *dump_file;
  /** TNK_YES: the client replaces what the server has lost: it opens a new
   * session, makes samplers again from their paths, and restores training
   * clients from their last saved or loaded state, with the optimizer. A model
   * that was never saved is made again at step 0. Samples under way are
   * submitted to the new sampler, unless retry_samples is off. Operations of a
   * training client reject with TNK_ESESSION until it is restored;
   * tnk_training_ready() and on_recovery tell from which step to continue. The
   * handles stay the same, their ids change.
   *
   * After refused connections every training client is restored, because the
   * weights may be older (TNK_QUEUE_MEMORY_LOST). The steps since the last save
   * are then repeated, even if the server had lost nothing. Default: off. */
  tnk_choice_t recovery;
  uint32_t recovery_attempts; /**< For each of them; 0: 3. */
  uint64_t recovery_delay_ms; /**< Before the second; 0: 5,000; doubled ... */
  uint64_t recovery_max_delay_ms; /**< ... up to this; 0: 60,000. */
  tnk_recovery_cb on_recovery;
  void *recovery_user;
  /** With recovery: how often the service is asked whether it marks the run of
   * a training client as corrupted, which then counts as lost. 0: 30,000;
   * UINT64_MAX: never. One that keeps no runs is asked once. */
  uint64_t recovery_poll_ms;
  /** After so many failed attempts in a row, of whatever, none is made for
   * recovery_breaker_ms; then one decides. 0: any number. */
  uint64_t recovery_breaker;
  uint64_t recovery_breaker_ms; /**< 0: 30,000. */
} tnk_service_options_t;

#define TNK_SERVICE_OPTIONS_INIT TNK_SIZED(tnk_service_options_t)

/**
 * Open a service on the caller's loop. Nothing is sent yet.
 *
 * The first operation that needs them fetches the configuration and creates a
 * session. A service without pending operations does not keep the loop alive,
 * unless keep_loop_alive is TNK_YES.
 *
 * SIGPIPE is blocked in the calling thread, because libuv's writes raise it.
 *
 * @param[out] out  The service, to be closed by the caller. NULL on failure.
 * @param loop      Outlives the service.
 * @param options   NULL for defaults. Copied.
 * @param why       On failure, receives one sentence on what is wrong; may be
 *                  NULL.
 * @param why_size  Bytes at @p why; a longer sentence is cut.
 *
 * Protocol: transport, base URL; transport, provider selection.
 * @return TNK_OK, or
 *   TNK_EINVAL       an option out of range, a base URL that is none, a text
 *                    or header that cannot be sent, a proxy that cannot be
 *                    used (also one of the environment)
 *   TNK_ECREDENTIAL  no API key and no command, or a key that is neither
 *                    tml-... nor a JWT
 *   TNK_ENOTSUP      @p options sets a field this library does not know
 *   TNK_ECERT        ca_file could not be read
 *   TNK_EFILE        cert_file or key_file cannot be used; the sentence says
 *                    why
 *   TNK_ENOMEM
 *   TNK_ESYSTEM      the sentence has the system's reason
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_service_open(tnk_service_t **out, uv_loop_t *loop,
                             const tnk_service_options_t *options, char *why,
                             size_t why_size);

/**
 * Hears that a closed object is gone and its memory free.
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_close_cb)(void *user);

/**
 * Close a service and all clients made with it.
 *
 * Legal in every state. Everything pending rejects with TNK_ECLOSED, the
 * session is reported as finished if there is one (waiting at most two
 * seconds for the answer), sockets close, then @p cb runs. Until then calls on
 * the handle reject with TNK_ECLOSED, and a second close does nothing and calls
 * nothing; after that the handle is gone, and using it is a mistake that a
 * debug build of the library may end the program for. Of the clients' handles
 * and how long they can be used tnk_training_close() tells.
 *
 * @param service  NULL calls nothing.
 * @param cb       May be NULL.
 * @param user     Handed to @p cb.
 *
 * Never fails, and allocates nothing but the last dump of a `dump_file`, which
 * is left out without memory.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_service_close(tnk_service_t *service, tnk_close_cb cb,
                               void *user);

/**
 * What models the server offers. Protocol: session, capabilities.
 *
 * @return A promise of tnk_capabilities_t. Does not create a session.
 * Rejects with: Caller, Transport, Service (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_service_capabilities(tnk_service_t *service);

/**
 * Ask whether the server is up. Protocol: session, health.
 *
 * @return A promise without a result; no session is created.
 * Rejects with: Caller, Transport, Service (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_service_health(tnk_service_t *service);

/**
 * The session's id, or NULL before it exists.
 *
 * Lifetime: as long as the service; with `recovery` until another session takes
 * its place, as on_recovery tells: keep a copy.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const char *tnk_service_session_id(const tnk_service_t *service);

/** The optimizer families. Protocol: training, optimizers. */
typedef enum {
  TNK_OPTIMIZER_ADAMW = 0,
  TNK_OPTIMIZER_DIMUON = 1,
  TNK_OPTIMIZER_RAW = 2 /**< The JSON object given beside it. */
} tnk_optimizer_t;

/** A new LoRA model. Zero means the default, but for `seed`. */
typedef struct {
  size_t size;                /**< Set by TNK_LORA_OPTIONS_INIT. */
  const char *base_model;     /**< Required, such as "Qwen/Qwen3-8B". */
  uint32_t rank;              /**< 0: 32. */
  tnk_optimizer_t optimizer;  /**< Fixed for the model's life. */
  int64_t seed;               /**< TNK_ABSENT: up to the server. */
  tnk_choice_t train_mlp;     /**< Default yes; one of the three must be. */
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
 * @return A promise of tnk_training_t; the handle lives until
 *         tnk_training_close() or tnk_service_close().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EINVAL for no base model, and for all three parts off.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_service_create_lora(tnk_service_t *service,
                        const tnk_lora_options_t *options);

/** A model that starts from a saved state. */
typedef struct {
  size_t size;            /**< Set by TNK_RESTORE_OPTIONS_INIT. */
  const char *path;       /**< Required: `tinker://RUN/weights/NAME`. */
  const char *base_model; /**< NULL: the checkpoint's. */
  /** TNK_YES: moments and step count of the optimizer too. Default no. */
  tnk_choice_t with_optimizer;
  /** TNK_YES: in several calls, weights_info, create_model and load_weights,
   * as servers want that do not know the form in one call. TNK_NO: in one call
   * or not at all. Default: in one call, and where the server refuses that for
   * want of a model, having done nothing, in several. */
  tnk_choice_t classic;
  const char *weights_access_token; /**< For somebody else's state. */
  tnk_optimizer_t optimizer;        /**< Only without with_optimizer. */
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
 *   TNK_ENOTFOUND for the path, or TNK_EFAILED where the server learns of it
 *   only when it loads.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_service_restore(tnk_service_t *service,
                    const tnk_restore_options_t *options);

/** What to sample from: a path, or a base model, or both, or the sampler of
 * another client. */
typedef struct {
  size_t size;            /**< Set by TNK_SAMPLING_OPTIONS_INIT. */
  const char *model_path; /**< tinker://... sampler weights. */
  const char *base_model;
  tnk_choice_t record_stability_info; /**< Default no. */
  uint32_t reserved;
  /** A text of tnk_sampling_export(), of this or of another process or machine.
   * Everything else is said by it. */
  const char *exported;
} tnk_sampling_options_t;

#define TNK_SAMPLING_OPTIONS_INIT TNK_SIZED(tnk_sampling_options_t)

/**
 * Create a sampling client. Protocol: session, sampling-session validation;
 * sampling, creating, cloning and handing over.
 *
 * With `exported` no new sampler is made, and no session: the client is one
 * more of the sampler that the text names, with numbers of its own, so that no
 * two clients ever ask for the same sample. It keeps the session of that
 * sampler alive too, and does not end it. The session ends with the service
 * that made it, and then nothing more can be sampled here either:
 * `on_queue_state` hears of TNK_QUEUE_SESSION_LOST with that session's id.
 *
 * A text holds no key, and requests go where this service's options say,
 * whatever it says; a warning is logged where the two differ.
 *
 * @param options  Copied.
 * @return A promise of tnk_sampling_t; the handle lives until
 *         tnk_sampling_close() or tnk_service_close().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_EINVAL for no model, for a path that is not tinker://, and for a text
 *   that is not one of an export; TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_service_create_sampling(tnk_service_t *service,
                            const tnk_sampling_options_t *options);

/** Counters of a service since it was opened. */
typedef struct {
  size_t size;                /**< Set by TNK_STATS_INIT. */
  uint64_t n_requests;        /**< Sent, repeats included. */
  uint64_t n_retries;         /**< Repeats among them. */
  uint64_t n_late_events;     /**< Answers nobody waited for any more. */
  uint64_t n_double_settles;  /**< Always 0, or there is a bug. */
  uint64_t n_bytes_sent;      /**< HTTP bytes before TLS. */
  uint64_t n_bytes_received;  /**< HTTP bytes after TLS. */
  uint32_t n_pending;         /**< Promises that have not settled. */
  uint32_t n_connections;     /**< Open now. */
  uint32_t max_connections;   /**< Most that were ever open at once. */
  uint32_t n_polls;           /**< Long polls held now. */
  uint64_t n_retries_connect; /**< By cause, together n_retries: no connection
                                   could be made, */
  uint64_t n_retries_lost;    /**< ... it was lost, after sending, */
  uint64_t n_retries_timeout; /**< ... no answer in time, or a 408, */
  uint64_t n_retries_rate;    /**< ... 429, */
  uint64_t n_retries_billing; /**< ... 402, */
  uint64_t n_retries_server;  /**< ... 5xx, */
  uint64_t n_retries_other;   /**< ... or another answer. */
  uint64_t n_resubmits;       /**< Samples submitted anew. */
  uint64_t n_stalls;          /**< Notices of TNK_QUEUE_STALLED. */
  uint64_t loop_lag_ms;       /**< How late the last timer of the service ran:
                                   what callbacks before it took. */
  uint64_t max_loop_lag_ms;   /**< The most of that so far. */
} tnk_stats_t;

#define TNK_STATS_INIT TNK_SIZED(tnk_stats_t)

/**
 * Read the counters of a service; nothing is sent.
 *
 * @param[out] out  Begins with TNK_STATS_INIT. Filled, as far as its size
 *                  goes; a counter that this library does not have is 0.
 * @param service   NULL: all are 0.
 *
 * @return TNK_OK, or TNK_EINVAL for a size that is none of tnk_stats_t.
 * Thread: loop thread. Since: 0.1
 */
TNK_API int tnk_service_stats(tnk_stats_t *out, const tnk_service_t *service);

/** Forms of tnk_service_dump(). */
typedef enum {
  TNK_DUMP_TEXT = 0, /**< Indented lines, for people. */
  TNK_DUMP_JSON = 1  /**< One object and a newline. */
} tnk_dump_format_t;

/**
 * Receives a dump.
 *
 * @param text    Not NUL-terminated; valid until the function returns.
 * @param length  Bytes at @p text.
 * @param user    As given.
 *
 * Any function of this library may be called, closing included, but not
 * tnk_wait().
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_dump_cb)(const char *text, size_t length, void *user);

/**
 * The whole picture of a service: session and heartbeat, counters, lag of the
 * loop, connections, limits, each client with its queue and what its oldest
 * operations wait for, and each download of weights.
 *
 * Holds no secret: of the key only its kind, of the headers their names, of
 * signed URLs their hosts, and no prompt or body. Names and fields may be added
 * or change between versions.
 *
 * @param format  For people or for programs.
 * @param write   Called once, from inside this call, and only on success.
 * @param user    Handed to @p write.
 *
 * @return TNK_OK, TNK_ENOMEM, or TNK_EINVAL for NULL, an unknown format, and
 *         an option's text that is not UTF-8 and so has no place in JSON.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_service_dump(const tnk_service_t *service,
                             tnk_dump_format_t format, tnk_dump_cb write,
                             void *user);

#ifdef __cplusplus
}
#endif

#endif

#ifndef TNK_HUB_H
#define TNK_HUB_H

#include "tnk/service.h"
#include "tnk/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A hub: where files of models come from. It downloads with the library's own
 * HTTP stack on the caller's loop, and reads and writes the cache of Hugging
 * Face's Python library, so that both use the same files. It needs no service
 * and no API key.
 *
 * All files are read and written by libuv's thread pool, never on the loop.
 */

/** A hub on one loop. */
typedef struct tnk_hub tnk_hub_t;

/**
 * Hears that more of a file has come. The end is told by the promise.
 *
 * @param file     Its name; valid until the return.
 * @param n_bytes  How many have come. It may fall when a download begins anew.
 * @param n_total  How many there will be; 0: not known.
 *
 * Any function of this library may be called, closing included, but not
 * tnk_wait().
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_progress_cb)(const char *file, uint64_t n_bytes,
                                uint64_t n_total, void *user);

/**
 * Where the tokenizer of a model is, for names that the library's own table
 * does not know or knows otherwise.
 */
typedef struct {
  /** The name of a model, or of a tokenizer on a hub; or how it begins, and
   * "*". Without ":" and what follows it. */
  const char *model;
  const char *tokenizer; /**< Its name on the hub; NULL: the same. */
  const char *revision;  /**< Commit, branch or tag; NULL: the usual one. */
  const char *directory; /**< A folder that has the files; NULL: the hub. */
} tnk_tokenizer_rule_t;

/**
 * How to use a hub. Zero means the default for every field, and an environment
 * variable that is unset or empty counts as absent.
 */
typedef struct {
  size_t size; /**< Set by TNK_HUB_OPTIONS_INIT. */
  /** NULL: HF_ENDPOINT, else https://huggingface.co. */
  const char *endpoint;
  /** For the endpoint, and sent to no other origin. NULL: HF_TOKEN, else the
   * file that HF_TOKEN_PATH names, else $HF_HOME/token, unless
   * HF_HUB_DISABLE_IMPLICIT_TOKEN is set. "": none. Copied, and wiped when the
   * hub ends. */
  const char *token;
  /** NULL: HF_HUB_CACHE, else $HF_HOME/hub, else
   * $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. */
  const char *cache_dir;
  /** TNK_YES: files of models come from the cache alone, nobody is asked.
   * Default: HF_HUB_OFFLINE. */
  tnk_choice_t offline;
  /** Repeats of a download in a row that bring no byte; 0: 4. UINT32_MAX:
   * none. */
  uint32_t max_retries;
  uint64_t connect_timeout_ms; /**< DNS, TCP, proxy, TLS together; 0: 5,000. */
  uint64_t silence_timeout_ms; /**< Longest time without a byte; 0: 30,000. */
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
  const tnk_allocator_t *allocator; /**< NULL: malloc. Copied. */
  const tnk_logger_t *logger;       /**< NULL: no output. Copied. */
  tnk_progress_cb on_progress;      /**< Of files of models; may be NULL. */
  void *progress_user;
  /** Looked at before the library's own table, the first that fits counts.
   * Copied. */
  const tnk_tokenizer_rule_t *tokenizer_rules;
  size_t n_tokenizer_rules;
  /** Loaded tokenizers that the hub keeps; 0: 32. UINT32_MAX: all. One more,
   * and it lets go of the one that was asked for longest ago, as by
   * tnk_hub_forget(). */
  uint32_t max_tokenizers;
  uint64_t reserved;
  /** Hears of every step of every operation; NULL: nobody does. */
  tnk_observe_cb observer;
  void *observer_user;
} tnk_hub_options_t;

#define TNK_HUB_OPTIONS_INIT TNK_SIZED(tnk_hub_options_t)

/**
 * Open a hub on the caller's loop. Nothing is sent yet; while nothing is
 * pending, the hub does not keep the loop alive.
 *
 * SIGPIPE is blocked in the calling thread, because libuv's writes raise it.
 *
 * @param[out] out  The hub, to be closed by the caller. NULL on failure.
 * @param loop      Outlives the hub.
 * @param options   NULL for defaults. Copied.
 * @param why       On failure, receives one sentence on what is wrong; may be
 *                  NULL.
 * @param why_size  Bytes at @p why; a longer sentence is cut.
 *
 * @return TNK_OK, or
 *   TNK_EINVAL   no @p out or @p loop, an endpoint that is no URL, no folder
 *                for the cache, a token that cannot be sent, rules for
 *                tokenizers without a model or more than 1,024 of them, a proxy
 *                that cannot be used (also one of the environment)
 *   TNK_ENOTSUP  @p options sets a field this library does not know
 *   TNK_ECERT    ca_file could not be read
 *   TNK_ENOMEM, TNK_ESYSTEM (the sentence has the system's reason)
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_hub_open(tnk_hub_t **out, uv_loop_t *loop,
                         const tnk_hub_options_t *options, char *why,
                         size_t why_size);

/**
 * Close a hub.
 *
 * Legal in every state. Everything pending rejects with TNK_ECLOSED, sockets
 * close, unfinished files are removed, then @p cb runs. Until then calls on the
 * handle reject with TNK_ECLOSED, and a second close does nothing and calls
 * nothing; after that the handle is gone, as that of a service is.
 *
 * @param hub  NULL calls nothing.
 * @param cb   May be NULL.
 * @param user Passed to @p cb.
 *
 * Never fails and allocates nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_hub_close(tnk_hub_t *hub, tnk_close_cb cb, void *user);

/** One download. Zero is the default of every member. */
typedef struct {
  size_t size; /**< Set by TNK_DOWNLOAD_OPTIONS_INIT. */
  /** Sent as a bearer token to the URL's own origin only. The hub's token is
   * not used here. Copied, and wiped at the end. */
  const char *token;
  const char *sha256;          /**< 64 hexadecimal digits; NULL: not checked. */
  uint64_t n_bytes;            /**< The size it must have; 0: not checked. */
  uint64_t max_bytes;          /**< The size it may have; 0: any. */
  tnk_progress_cb on_progress; /**< May be NULL. `file` is the path. */
  void *progress_user;
  uint64_t reserved;
} tnk_download_options_t;

#define TNK_DOWNLOAD_OPTIONS_INIT TNK_SIZED(tnk_download_options_t)

/**
 * Download what a URL names to a file, in bounded memory.
 *
 * Redirections are followed, never from https to http. What fails in a way
 * that may pass is repeated, and goes on where it ended if the server allows;
 * not when the server wants to be left alone for more than a minute, which is
 * error->retry_after_ms then.
 * The bytes go to a temporary file beside @p path, which takes its place only
 * when it is complete, checked and on the disk; otherwise what was at @p path
 * stays. Missing folders are made.
 *
 * One path is written by one download at a time: a second one to the same path
 * is refused with TNK_ECONFLICT. Paths are compared as they are given.
 *
 * @param url      http:// or https://. It may be signed: it is neither logged
 *                 nor told in errors, but for its host.
 * @param path     The file to write.
 * @param options  NULL for defaults. Copied.
 *
 * Completion: cancel ends the download and removes the temporary file.
 * @return A promise of tnk_promise_path(), which gives @p path.
 * Rejects with: Caller, Transport, Service (groups of error.h), TNK_EFILE
 *   (error->cause is libuv's code), TNK_ECORRUPT (size or checksum).
 *   TNK_ETOOBIG is for max_bytes too.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_hub_download(tnk_hub_t *hub, const char *url,
                                        const char *path,
                                        const tnk_download_options_t *options);

/** One file of a model. Zero is the default of every member. */
typedef struct {
  size_t size;          /**< Set by TNK_HUB_FILE_OPTIONS_INIT. */
  const char *revision; /**< Commit, branch or tag; NULL: "main". */
  uint64_t reserved;
} tnk_hub_file_options_t;

#define TNK_HUB_FILE_OPTIONS_INIT TNK_SIZED(tnk_hub_file_options_t)

/**
 * Get a file of a model into the cache.
 *
 * What the cache has of a commit is taken as it is. For a branch or tag the
 * hub is asked which commit it stands for, unless the hub is offline; when it
 * does not answer, or not for this asker, what the cache has is good enough,
 * and a warning is logged.
 * Size and, of large files, the checksum are checked. Python's huggingface_hub
 * finds the file afterwards, and the other way round.
 *
 * Calls for a file that is under way, those of tnk_hub_tokenizer() included,
 * share one download, which a cancel ends when nobody else waits for it. A
 * failure rejects all that wait and is not kept.
 *
 * @param model    Its name on the hub, such as "Qwen/Qwen3-8B".
 * @param file     Its name in there, such as "tokenizer.json".
 * @param options  NULL for defaults.
 *
 * @return A promise of tnk_promise_path(): the file in the cache, to be read
 *         only.
 * Rejects with: Caller, Transport, Service (groups of error.h), TNK_EFILE,
 *   TNK_ECORRUPT, as tnk_hub_download(): TNK_ENOTFOUND for no such model,
 *   revision or file, as the sentence says, and offline for what is not in the
 *   cache; TNK_EAUTH when it is private or gated, or the token is bad, and the
 *   sentence says what to do; TNK_ERATE with the hub's wish in
 *   error->retry_after_ms; TNK_EPROTO when the endpoint is no hub.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_hub_file(tnk_hub_t *hub, const char *model,
                                    const char *file,
                                    const tnk_hub_file_options_t *options);

/** Which tokenizer of a model. Zero is the default of every member. */
typedef struct {
  size_t size; /**< Set by TNK_HUB_TOKENIZER_OPTIONS_INIT. */
  /** What the server says: tnk_training_info_t.tokenizer_id. NULL: it follows
   * from the model's name. */
  const char *tokenizer_id;
  const char *revision;  /**< NULL: that of the rules, else "main". */
  const char *directory; /**< A folder that has the files; NULL: the hub. */
  const tnk_pair_t *overrides; /**< For the plug-in; it names them. */
  size_t n_overrides;
  uint64_t reserved;
} tnk_hub_tokenizer_options_t;

#define TNK_HUB_TOKENIZER_OPTIONS_INIT TNK_SIZED(tnk_hub_tokenizer_options_t)

/**
 * The tokenizer of a model, by way of a plug-in.
 *
 * The name is turned into that of a tokenizer by the rules of the hub and the
 * library's own, as the official client does. Its files come from a folder or
 * as by tnk_hub_file(), and the plug-in reads them on the thread pool.
 *
 * What has been loaded stays until the hub closes, forgets it
 * (tnk_hub_forget()) or has max_tokenizers others, and is the answer to every
 * call meanwhile for the same tokenizer, revision, folder and overrides, by
 * whatever name. Calls for one that is being loaded wait for that one. A
 * failure rejects all that wait and is forgotten: the next call tries anew.
 *
 * @param plugin   Such as tnk_tokenizer_plugin(). Not copied.
 * @param model    A model's name, such as "meta-llama/Llama-3.1-8B".
 * @param options  NULL for defaults. Copied.
 *
 * @return A promise of tnk_promise_tokenizer().
 * Protocol: session, tokenizer choice.
 * Rejects with: Caller, Transport, Service (groups of error.h), TNK_EFILE,
 *   TNK_ECORRUPT, as tnk_hub_file(), and the plug-in's codes: TNK_EUNSUPPORTED
 *   for a tokenizer that is not public.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_hub_tokenizer(tnk_hub_t *hub, const tnk_tokenizer_plugin_t *plugin,
                  const char *model,
                  const tnk_hub_tokenizer_options_t *options);

/**
 * The result of tnk_hub_tokenizer(): what the plug-in opened, such as a
 * tnk_tokenizer_t.
 *
 * @return NULL unless resolved with that type. Lifetime: as long as the promise
 *         and, beyond that, by the plug-in's own means (tnk_tokenizer_ref()).
 * Thread: loop thread. Since: 0.1
 */
TNK_API void *tnk_promise_tokenizer(const tnk_promise_t *promise);

/**
 * Let go of a loaded tokenizer, for its memory or to have it loaded anew.
 *
 * It is closed when no promise holds it any more; references of the plug-in's
 * own (tnk_tokenizer_ref()) stay good. A later call for it reads its files
 * again, and asks what a branch stands for now. What is being loaded goes on.
 *
 * @param tokenizer  What tnk_promise_tokenizer() gave; NULL: all of them. One
 *                   that the hub does not keep does nothing.
 *
 * Calls the plug-in's close(), and allocates nothing.
 * @return TNK_OK; TNK_EINVAL for no hub, TNK_ECLOSED, TNK_ETHREAD, TNK_EFORKED.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_hub_forget(tnk_hub_t *hub, const void *tokenizer);

#ifdef __cplusplus
}
#endif

#endif

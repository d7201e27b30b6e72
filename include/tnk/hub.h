/* SPDX-License-Identifier: MIT */
#ifndef TNK_HUB_H
#define TNK_HUB_H

#include "tnk/service.h"
#include "tnk/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A hub is a source of model files, such as tokenizers. It downloads with the
 * library's own HTTP client on the caller's loop. It shares its cache with
 * Hugging Face's Python library, so both use the same files. A hub needs no
 * service and no API key.
 *
 * libuv's thread pool reads and writes all files. The loop thread never does.
 */

/** A hub on one loop. */
typedef struct tnk_hub tnk_hub_t;

/**
 * Called when more bytes of a file have arrived. The promise reports the end.
 *
 * @param file     File name; valid until the function returns.
 * @param n_bytes  Bytes received. Falls if a download starts again.
 * @param n_total  Size of the file; 0 if unknown.
 *
 * The callback may call any function of this library, including functions that
 * close objects. Exception: it must not call tnk_wait().
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_progress_cb)(const char *file, uint64_t n_bytes,
                                uint64_t n_total, void *user);

/**
 * The tokenizer of a model. Rules add to the library's own table of model names
 * and take precedence over it.
 */
typedef struct {
  /** Name of a model, or of a tokenizer on a hub, without ":" and the part
   * after it. A trailing "*" matches every name with this prefix. */
  const char *model;
  const char *tokenizer; /**< Its name on the hub; NULL for the same name. */
  const char *revision;  /**< Commit, branch or tag; NULL for the default. */
  const char *directory; /**< Folder with the files; NULL for the hub. */
} tnk_tokenizer_rule_t;

/**
 * Options of a hub. 0 or NULL selects the default. An environment variable that
 * is empty counts as unset.
 */
typedef struct {
  size_t size; /**< Set by TNK_HUB_OPTIONS_INIT. */
  /** Base URL. NULL means HF_ENDPOINT, else https://huggingface.co. */
  const char *endpoint;
  /** Token, which is sent to the endpoint's origin only. NULL means HF_TOKEN,
   * else the file that HF_TOKEN_PATH names, else $HF_HOME/token. If
   * HF_HUB_DISABLE_IMPLICIT_TOKEN is set, NULL means no token. "" means no
   * token. Copied, and wiped when the hub is freed. */
  const char *token;
  /** NULL means HF_HUB_CACHE, else $HF_HOME/hub, else
   * $XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. */
  const char *cache_dir;
  /** TNK_YES takes model files from the cache only and sends no request.
   * Default: HF_HUB_OFFLINE. */
  tnk_choice_t offline;
  /** Maximum retries in a row without a new byte. 0 means 4; UINT32_MAX
   * disables retries. */
  uint32_t max_retries;
  uint64_t connect_timeout_ms; /**< DNS, TCP, proxy, TLS together; 0 means
                                    5,000. */
  uint64_t silence_timeout_ms; /**< Maximum time without a byte; 0 means
                                    30,000. */
  /** PEM file of trusted certificates, instead of SSL_CERT_FILE and the
   * system's store. */
  const char *ca_file;
  /** Proxy for all requests: http://[user[:password]@]host[:port]. Use https://
   * to speak TLS with the proxy, socks5:// to resolve names here, and
   * socks5h:// to let the proxy resolve them. The default port is 80, 443 or
   * 1080. User and password are percent-encoded, sent to the proxy only, and
   * wiped. "" means no proxy.
   *
   * NULL reads the environment. For https:// URLs: https_proxy, else
   * HTTPS_PROXY. For http:// URLs: http_proxy in lower case only. For both:
   * else all_proxy, else ALL_PROXY. https:// URLs go through a tunnel (CONNECT
   * or SOCKS), so the proxy sees only their host and port. */
  const char *proxy;
  /** Hosts that need no proxy, separated by commas or blanks: host names, which
   * include their subdomains; addresses; networks such as 10.0.0.0/8; or "*".
   * Append :port to match one port only. This machine needs the proxy unless it
   * is listed. "" means that every host needs it. NULL means no_proxy, else
   * NO_PROXY, unless `proxy` is set. */
  const char *no_proxy;
  const tnk_pair_t *proxy_headers; /**< Headers for an HTTP proxy; copied. */
  size_t n_proxy_headers;
  const tnk_allocator_t *allocator; /**< NULL: malloc. Copied. */
  const tnk_logger_t *logger;       /**< NULL: no output. Copied. */
  tnk_progress_cb on_progress;      /**< For model files. May be NULL. */
  void *progress_user;
  /** Rules that are tried before the library's own table. The first match is
   * used. Copied. */
  const tnk_tokenizer_rule_t *tokenizer_rules;
  size_t n_tokenizer_rules;
  /** Maximum number of loaded tokenizers that the hub keeps. 0 means 32;
   * UINT32_MAX means no limit. Beyond it the hub releases the least recently
   * used one, as tnk_hub_forget() does. */
  uint32_t max_tokenizers;
  uint64_t reserved;
  /** Called for every step of every operation; may be NULL. */
  tnk_observe_cb observer;
  void *observer_user;
} tnk_hub_options_t;

#define TNK_HUB_OPTIONS_INIT TNK_SIZED(tnk_hub_options_t)

/**
 * Open a hub on the caller's loop. The call sends nothing. An idle hub does not
 * keep the loop alive.
 *
 * The call blocks SIGPIPE in the calling thread, because libuv's writes can
 * raise it.
 *
 * @param[out] out  The hub, which the caller must close. NULL after an error.
 * @param loop      Must outlive the hub.
 * @param options   NULL for defaults. Copied.
 * @param why       After an error, receives one sentence that says what is
 *                  wrong. May be NULL.
 * @param why_size  Bytes at @p why; a longer sentence is truncated.
 *
 * @return TNK_OK, or
 *   TNK_EINVAL   no @p out or @p loop, an endpoint that is not a URL, no folder
 *                for the cache, a token with invalid characters, tokenizer
 *                rules without a model, more than 1,024 rules, or an invalid
 *                proxy (including one from the environment)
 *   TNK_ENOTSUP  @p options sets a field that this library does not know
 *   TNK_ECERT    ca_file could not be read
 *   TNK_ENOMEM, TNK_ESYSTEM (the sentence has the system's reason)
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_hub_open(tnk_hub_t **out, uv_loop_t *loop,
                         const tnk_hub_options_t *options, char *why,
                         size_t why_size);

/**
 * Close a hub. Legal in every state.
 *
 * All pending promises reject with TNK_ECLOSED, sockets are closed, incomplete
 * files are removed, and then @p cb is called. Until then calls with the handle
 * reject with TNK_ECLOSED, and a second close does nothing. After @p cb the
 * handle is invalid.
 *
 * @param hub  NULL does nothing and does not call @p cb.
 * @param cb   May be NULL.
 * @param user Passed to @p cb.
 *
 * Never fails and allocates nothing.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API void tnk_hub_close(tnk_hub_t *hub, tnk_close_cb cb, void *user);

/** Options of a download. 0 or NULL selects the default. */
typedef struct {
  size_t size; /**< Set by TNK_DOWNLOAD_OPTIONS_INIT. */
  /** Bearer token, which is sent to the URL's origin only. The hub's own token
   * is not used. Copied, and wiped at the end. */
  const char *token;
  const char *sha256; /**< Expected digest, 64 hexadecimal digits; NULL means no
                           check. */
  uint64_t n_bytes;   /**< Expected size; 0 means no check. */
  uint64_t max_bytes; /**< Maximum size; 0 means no limit. */
  tnk_progress_cb on_progress; /**< May be NULL. `file` is the path. */
  void *progress_user;
  uint64_t reserved;
} tnk_download_options_t;

#define TNK_DOWNLOAD_OPTIONS_INIT TNK_SIZED(tnk_download_options_t)

/**
 * Download a URL to a file, with bounded memory.
 *
 * Redirects are followed, but never from https to http. Temporary failures are
 * retried, and the download continues at its last byte if the server supports
 * it. Exception: if the server asks for a delay of more than a minute, the
 * promise rejects and error->retry_after_ms has the delay.
 *
 * The bytes go to a temporary file next to @p path. It replaces @p path when it
 * is complete, verified and synced to disk. After a failure the old file stays.
 * Missing folders are created.
 *
 * Only one download at a time may write a path. A second one to the same path
 * rejects with TNK_ECONFLICT. Paths are compared as strings.
 *
 * @param url      http:// or https://. It may be signed: only its host appears
 *                 in logs and errors.
 * @param path     The file to write.
 * @param options  NULL for defaults. Copied.
 *
 * Completion: cancel ends the download and removes the temporary file.
 * @return A promise of tnk_promise_path(), which gives @p path.
 * Rejects with: Caller, Transport, Service (groups of error.h), TNK_EFILE
 *   (error->cause is libuv's code), TNK_ECORRUPT (wrong size or checksum).
 *   TNK_ETOOBIG also for max_bytes.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_hub_download(tnk_hub_t *hub, const char *url,
                                        const char *path,
                                        const tnk_download_options_t *options);

/** Options of tnk_hub_file(). 0 or NULL selects the default. */
typedef struct {
  size_t size;          /**< Set by TNK_HUB_FILE_OPTIONS_INIT. */
  const char *revision; /**< Commit, branch or tag; NULL means "main". */
  uint64_t reserved;
} tnk_hub_file_options_t;

#define TNK_HUB_FILE_OPTIONS_INIT TNK_SIZED(tnk_hub_file_options_t)

/**
 * Get a model file, from the cache or from the hub.
 *
 * Files of a commit in the cache are used without a request. For a branch or
 * tag, the library asks the hub for its current commit unless the hub is
 * offline. If the hub does not respond or denies access, the cached file is
 * used and a warning is logged. The library verifies the size, and for large
 * files the checksum. Python's huggingface_hub finds the file in the cache, and
 * this function finds the files that it downloaded.
 *
 * Calls for a file that is being downloaded, including by tnk_hub_tokenizer(),
 * share one download. Canceling a call ends the download if no other call waits
 * for it. A failure rejects all waiting calls and is not cached.
 *
 * @param model    Name on the hub, such as "Qwen/Qwen3-8B".
 * @param file     Name in the repository, such as "tokenizer.json".
 * @param options  NULL for defaults.
 *
 * @return A promise of tnk_promise_path(): the file in the cache. Do not modify
 *         it.
 * Rejects with: Caller, Transport, Service (groups of error.h), TNK_EFILE,
 *   TNK_ECORRUPT, as tnk_hub_download(). TNK_ENOTFOUND if the model, revision
 *   or file does not exist (the text says which), or is not in the cache of an
 *   offline hub; TNK_EAUTH if the model is private or gated or the token is
 *   invalid (the text says what to do); TNK_ERATE with error->retry_after_ms;
 *   TNK_EPROTO if the endpoint is not a hub.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_hub_file(tnk_hub_t *hub, const char *model,
                                    const char *file,
                                    const tnk_hub_file_options_t *options);

/** Options of tnk_hub_tokenizer(). 0 or NULL selects the default. */
typedef struct {
  size_t size; /**< Set by TNK_HUB_TOKENIZER_OPTIONS_INIT. */
  /** The server's tnk_training_info_t.tokenizer_id. NULL derives the tokenizer
   * from the name of the model. */
  const char *tokenizer_id;
  const char *revision;  /**< NULL means the rule's revision, else "main". */
  const char *directory; /**< Folder with the files; NULL for the hub. */
  const tnk_pair_t *overrides; /**< Settings that the plug-in defines. */
  size_t n_overrides;
  uint64_t reserved;
} tnk_hub_tokenizer_options_t;

#define TNK_HUB_TOKENIZER_OPTIONS_INIT TNK_SIZED(tnk_hub_tokenizer_options_t)

/**
 * Load the tokenizer of a model with a plug-in.
 *
 * The rules of the hub and the library's own table map the model to a
 * tokenizer, as the official client does. The files come from a folder or as in
 * tnk_hub_file(), and the plug-in reads them on the thread pool.
 *
 * The hub keeps a loaded tokenizer until it is closed, forgets it
 * (tnk_hub_forget()), or has loaded max_tokenizers others. A call for the same
 * tokenizer, revision, folder and overrides returns the loaded one, whatever
 * model name it uses. Calls during loading wait for the same load. A failure
 * rejects all waiting calls, and the next call tries again.
 *
 * @param plugin   For example tnk_tokenizer_plugin(). Not copied.
 * @param model    Name of a model, such as "meta-llama/Llama-3.1-8B".
 * @param options  NULL for defaults. Copied.
 *
 * @return A promise of tnk_promise_tokenizer().
 * Protocol: session, tokenizer choice.
 * Rejects with: Caller, Transport, Service (groups of error.h), TNK_EFILE,
 *   TNK_ECORRUPT, as tnk_hub_file(), and the plug-in's codes. TNK_EUNSUPPORTED
 *   if the tokenizer is not public.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_hub_tokenizer(tnk_hub_t *hub, const tnk_tokenizer_plugin_t *plugin,
                  const char *model,
                  const tnk_hub_tokenizer_options_t *options);

/**
 * Get the result of tnk_hub_tokenizer(): the object that the plug-in opened,
 * such as a tnk_tokenizer_t.
 *
 * @return NULL unless resolved with that type. Lifetime: as long as the
 *         promise. To keep it longer, use the plug-in's own references
 *         (tnk_tokenizer_ref()).
 * Thread: loop thread. Since: 0.1
 */
TNK_API void *tnk_promise_tokenizer(const tnk_promise_t *promise);

/**
 * Release a loaded tokenizer, to free its memory or to load it again.
 *
 * It is closed when no promise holds it. References of the plug-in
 * (tnk_tokenizer_ref()) stay valid. The next call for the same tokenizer reads
 * its files again and asks for the current commit of a branch. A load in
 * progress continues.
 *
 * @param tokenizer  From tnk_promise_tokenizer(). NULL means all of them. A
 *                   tokenizer that the hub does not keep does nothing.
 *
 * Calls the plug-in's close(). Allocates nothing.
 * @return TNK_OK; TNK_EINVAL for a NULL hub, TNK_ECLOSED, TNK_ETHREAD,
 *         TNK_EFORKED.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_hub_forget(tnk_hub_t *hub, const void *tokenizer);

#ifdef __cplusplus
}
#endif

#endif

#ifndef TNK_HUB_H
#define TNK_HUB_H

#include "tnk/service.h"

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
 * Told that more of a file has come; not at the end, which the promise tells.
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
  /** TNK_YES: ask nobody, use what the cache has. Default: HF_HUB_OFFLINE. */
  tnk_choice_t offline;
  /** Repeats of a download in a row that bring no byte; 0: 4. UINT32_MAX:
   * none. */
  uint32_t max_retries;
  uint64_t connect_timeout_ms; /**< DNS, TCP and TLS together; 0: 5,000. */
  uint64_t silence_timeout_ms; /**< Longest time without a byte; 0: 30,000. */
  /** PEM file of trusted certificates, instead of SSL_CERT_FILE and the
   * system's store. */
  const char *ca_file;
  const tnk_allocator_t *allocator; /**< NULL: malloc. Copied. */
  const tnk_logger_t *logger;       /**< NULL: no output. Copied. */
  tnk_progress_cb on_progress;      /**< Of files of models; may be NULL. */
  void *progress_user;
  uint64_t reserved;
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
 * @param text      On failure, receives one sentence on what is wrong; may be
 *                  NULL.
 * @param text_size Bytes at @p text; a longer sentence is cut.
 *
 * @return TNK_OK, or
 *   TNK_EINVAL   an endpoint that is no URL, no folder for the cache
 *   TNK_ENOTSUP  @p options sets a field this library does not know
 *   TNK_ECERT    ca_file could not be read
 *   TNK_ENOMEM, or a code of libuv
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API int tnk_hub_open(tnk_hub_t **out, uv_loop_t *loop,
                         const tnk_hub_options_t *options, char *text,
                         size_t text_size);

/**
 * Close a hub.
 *
 * Legal in every state. Everything pending rejects with TNK_ECLOSED, sockets
 * close, unfinished files go away, then @p cb runs. The handle is invalid from
 * this call on. A second call does nothing.
 *
 * @param hub  NULL calls nothing.
 * @param cb   May be NULL.
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
 * that may pass is repeated, and goes on where it ended if the server allows.
 * The bytes go to a temporary file beside @p path, which takes its place only
 * when it is complete, checked and on the disk; otherwise what was at @p path
 * stays. Missing folders are made.
 *
 * @param url      http:// or https://. It may be signed: it is neither logged
 *                 nor told in errors, but for its host.
 * @param path     The file to write.
 * @param options  NULL for defaults. Copied.
 *
 * Completion: cancel ends the download and removes the temporary file.
 * @return A promise of tnk_promise_path(), which gives @p path.
 * Rejects with: TNK_EINVAL, TNK_EFILE (error->cause is libuv's code),
 *   TNK_ECORRUPT (size or checksum), TNK_ETOOBIG (max_bytes), TNK_EAUTH,
 *   TNK_ENOTFOUND, TNK_EREQUEST, TNK_ERATE, TNK_ESERVER, TNK_ECANCELED,
 *   TNK_ECLOSED, TNK_ENOMEM, and the transport's codes.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_hub_download(tnk_hub_t *hub, const char *url,
                                        const char *path,
                                        const tnk_download_options_t *options);

#ifdef __cplusplus
}
#endif

#endif

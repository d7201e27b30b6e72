/* SPDX-License-Identifier: MIT */
#ifndef TNK_WEIGHTS_H
#define TNK_WEIGHTS_H

#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Download the files of a checkpoint to a directory.
 *
 *     tnk_promise_t *p = tnk_weights_download(
 *         service, "tinker://run/external_weights/name", "adapter", NULL);
 *     if (tnk_wait(p) == TNK_OK)
 *       printf("%s: %zu files\n", tnk_promise_weights(p)->directory,
 *              tnk_promise_weights(p)->n_files);
 *     else
 *       fprintf(stderr, "%s\n", tnk_promise_text(p));
 *     tnk_promise_unref(p);
 *
 * The directory appears when every file is complete and synced to disk. A
 * directory that it replaces stays in place until then. Incomplete files are in
 * a directory next to it, here "adapter.incomplete". It stays when a download
 * fails, is canceled or is killed. The next call for the same checkpoint and
 * directory resumes from it. Remove it if you do not want to resume. Received
 * bytes are requested again only if the file store does not support ranges or
 * the file there has changed.
 */

/** Progress of a download. Belongs to the library; later versions may append
 * members. */
typedef struct {
  const char *file; /**< File of the most recent bytes. */
  size_t n_files;
  size_t n_files_done;
  uint64_t n_bytes;     /**< Bytes on disk. Falls if a file starts again. */
  uint64_t n_total;     /**< Bytes of all files; 0 if not yet known. */
  uint64_t n_fetched;   /**< Bytes received by this download. */
  uint64_t bytes_per_s; /**< Recent rate. */
} tnk_weights_progress_t;

/**
 * Called while a download makes progress: at most ten times a second, and once
 * when all bytes are present. The promise reports the end.
 *
 * @param progress  Valid until the function returns.
 *
 * The callback may call any function of this library, including functions that
 * close objects. Exception: it must not call tnk_wait().
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_weights_progress_cb)(const tnk_weights_progress_t *progress,
                                        void *user);

/** Options of a download. 0 or NULL selects the default. */
typedef struct {
  size_t size; /**< Set by TNK_WEIGHTS_OPTIONS_INIT. */
  /** TNK_YES replaces an existing directory that is not empty, when the new one
   * is complete. Default: no. */
  tnk_choice_t force;
  uint32_t max_parallel; /**< Files at the same time; 0 means 4. At most 64. */
  uint64_t timeout_ms;   /**< Limit of the whole download; 0 means none. */
  uint64_t silence_timeout_ms;         /**< Maximum time without a byte; 0 means
                                            30,000. */
  tnk_weights_progress_cb on_progress; /**< May be NULL. */
  void *progress_user;
  /** Private key "AGE-SECRET-KEY-1...". Files that were encrypted with age for
   * its recipient are decrypted, and ".age" is removed from their names. NULL
   * keeps files as they are. Copied, and wiped at the end. */
  const char *identity;
  /** Maximum retries in a row without a new byte, for each file. 0 means 10;
   * UINT32_MAX disables retries. */
  uint32_t max_retries;
  /** Whether to download one archive, as older servers offer it. Default: if
   * the server has no list of files. TNK_YES: always, for any kind of weights.
   * TNK_NO: never. TNK_YES cannot be combined with an identity. */
  tnk_choice_t archive;
} tnk_weights_options_t;

#define TNK_WEIGHTS_OPTIONS_INIT TNK_SIZED(tnk_weights_options_t)

/** Result of a download. Belongs to its promise; later versions may append
 * members. */
typedef struct {
  const char *directory; /**< As given, without a trailing "/". */
  size_t n_files;
  uint64_t n_bytes;   /**< Bytes of all files. */
  uint64_t n_fetched; /**< Bytes received by this download; the others were
                           already on disk. */
} tnk_weights_t;

/**
 * Download the files of a checkpoint to a directory. Protocol: rest-and-cli,
 * external weights; rest-and-cli, archive URL; rest-and-cli, download.
 *
 * A training checkpoint ("weights") has no files of its own. The library loads
 * it into a new model of the service's session, saves that model as external
 * weights with a lifetime of one hour, and downloads these. At the end it
 * deletes the saved weights, also after an error. tnk_service_close() waits for
 * the deletion, for at most five seconds. The model stays until the session
 * ends. A repeated download uses the external weights of the earlier one if
 * they still exist.
 *
 * Older servers offer an archive of any kind of checkpoint (tar; plain, gzip or
 * zstd). The progress shows it as one file until it is unpacked. Unpacking
 * needs the same space again next to the directory. Only regular files whose
 * paths stay below the directory are extracted. Their total size may be 1 GiB
 * plus a hundred times the size of the archive, and their number 4,096.
 *
 * The service returns a signed URL for each file. The library downloads several
 * files in parallel and renews a URL before it expires or after it was
 * rejected. Signed URLs never appear in logs, errors or dumps. A URL must use
 * https, or http on this machine; the same holds for redirects. The library
 * sends no key, header or certificate of the service to these URLs.
 *
 * @param path       "tinker://<run>/external_weights/<name>" or
 *                   "tinker://<run>/weights/<name>". With options.archive also
 *                   "tinker://<run>/sampler_weights/<name>". Copied.
 * @param directory  Created together with missing parent directories. An
 *                   existing directory must be empty unless options.force is
 *                   set. Copied.
 * @param options    NULL for defaults. Copied.
 *
 * Completion: cancel ends the download and keeps the received bytes. A cancel
 * while the directory gets its final name comes too late.
 * @return A promise of tnk_promise_weights().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_ENOTFOUND; TNK_EINVAL for sampler weights without options.archive, and
 *   for an identity that decrypts none of the files; TNK_EPROTO,
 *   TNK_EUNSUPPORTED, TNK_ETOOBIG for an archive with entries that are not
 *   accepted; TNK_EFILE (error->cause is libuv's code: UV_EEXIST for a
 *   directory that is not empty); TNK_ECONFLICT while another download to the
 *   same directory is running, in any process; TNK_ECORRUPT if a file is too
 *   short, too long or has changed; TNK_ETIMEDOUT also for options.timeout_ms.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_weights_download(tnk_service_t *service, const char *path,
                     const char *directory,
                     const tnk_weights_options_t *options);

/**
 * Get the result of tnk_weights_download().
 *
 * @return NULL unless resolved with that type. Lifetime: as long as the
 * promise.
 * Thread: loop thread, or taker. Since: 0.1
 */
TNK_API const tnk_weights_t *tnk_promise_weights(const tnk_promise_t *promise);

#ifdef __cplusplus
}
#endif

#endif

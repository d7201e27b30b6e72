#ifndef TNK_WEIGHTS_H
#define TNK_WEIGHTS_H

#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Taking weights home: the files of a checkpoint, in a directory.
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
 * The directory appears only when every file is complete and on the disk, and
 * one that it replaces is there until then. What comes before that lies beside
 * it, in "adapter.incomplete". When a download fails, is canceled or killed,
 * that stays, and the next call for the same checkpoint and directory goes on
 * from there; whoever does not want that removes it. Bytes that have come are
 * asked for again only where the store of the files cannot do otherwise, or has
 * others now.
 */

/** How far a download is. Belongs to the library, and may get more members. */
typedef struct {
  const char *file; /**< Of which the last bytes have come. */
  size_t n_files;
  size_t n_files_done;
  uint64_t n_bytes;   /**< That are there; may fall when a file begins anew. */
  uint64_t n_total;   /**< Of all files; 0: not known yet. */
  uint64_t n_fetched; /**< That this download has brought. */
  uint64_t bytes_per_s; /**< Lately. */
} tnk_weights_progress_t;

/**
 * Hears that more has come: ten times a second at most, and once when all is
 * there. The end is told by the promise.
 *
 * @param progress  Valid until the return.
 *
 * Any function of this library may be called, closing included, but not
 * tnk_wait().
 * Thread: loop thread. Since: 0.1
 */
typedef void (*tnk_weights_progress_cb)(const tnk_weights_progress_t *progress,
                                        void *user);

/** One download. Zero is the default of every member. */
typedef struct {
  size_t size; /**< Set by TNK_WEIGHTS_OPTIONS_INIT. */
  /** TNK_YES: a directory that is there and not empty is replaced, when the
   * new one is complete. Default no. */
  tnk_choice_t force;
  uint32_t max_parallel;       /**< Files at once; 0: 4. At most 64. */
  uint64_t timeout_ms;         /**< Of everything; 0: none. */
  uint64_t silence_timeout_ms; /**< Longest time without a byte; 0: 30,000. */
  tnk_weights_progress_cb on_progress; /**< May be NULL. */
  void *progress_user;
  /** "AGE-SECRET-KEY-1...": what was encrypted with age for its recipient is
   * decrypted, and ".age" taken off the names. NULL: files come as they are.
   * Copied, and wiped at the end. */
  const char *identity;
  /** Repeats in a row that bring no byte, of each file; 0: 10. UINT32_MAX:
   * none. */
  uint32_t max_retries;
  /** As one archive, which older servers have in place of files. By default
   * where the server has no list of files; TNK_YES: at once, of any kind of
   * weights; TNK_NO: never. Not with an identity. */
  tnk_choice_t archive;
} tnk_weights_options_t;

#define TNK_WEIGHTS_OPTIONS_INIT TNK_SIZED(tnk_weights_options_t)

/** What has come. Belongs to its promise, and may get more members. */
typedef struct {
  const char *directory; /**< As it was given, without "/" at its end. */
  size_t n_files;
  uint64_t n_bytes;   /**< Of all files. */
  uint64_t n_fetched; /**< That this download has brought; others were there. */
} tnk_weights_t;

/**
 * Download the files of a checkpoint to a directory. Protocol: rest-and-cli,
 * external weights; rest-and-cli, archive URL; rest-and-cli, download.
 *
 * Weights to go on training from have no files of their own. They are loaded
 * into a new model of the service's session, saved from there for other
 * programs, for an hour, and downloaded; what was saved is removed at the end,
 * however it ends (tnk_service_close() waits for that, up to five seconds). The
 * model stays as long as the session. A download that is begun anew uses what
 * an earlier one has had saved, if it is still there.
 *
 * Older servers have an archive (tar; plain, gzip or zstd) of a checkpoint, of
 * any kind. It is one file until it is complete and unpacked, in the progress
 * as well, and needs as much room again beside the directory. Only files are
 * taken out of it, whose names stay below the directory; their bytes may be 1
 * GiB and a hundred times those of the archive, and the number of files 4,096.
 *
 * The service gives a signed URL for each file. They are fetched side by side,
 * renewed before they expire or when they are refused, and told nowhere: not in
 * the log, not in errors, not in dumps. They have to be https, or http on this
 * machine; redirections are followed by the same rule. No key, header or
 * certificate of the service's goes to them.
 *
 * @param path       "tinker://<run>/external_weights/<name>", or
 *                   "tinker://<run>/weights/<name>"; with options.archive
 *                   "tinker://<run>/sampler_weights/<name>" too. Copied.
 * @param directory  Is made, with what is missing on the way to it. One that is
 *                   there has to be empty, but for options.force. Copied.
 * @param options    NULL for defaults. Copied.
 *
 * Completion: cancel ends it and keeps what has come; while the directory is
 * being given its name, it comes too late.
 * @return A promise of tnk_promise_weights().
 * Rejects with: Caller, Transport, Service, Operation (groups of error.h):
 *   TNK_ENOTFOUND; TNK_EINVAL for weights for sampling, and for an
 *   identity that opens none of the files; TNK_EPROTO, TNK_EUNSUPPORTED,
 *   TNK_ETOOBIG for an archive that has what is not taken;
 *   TNK_EFILE (error->cause is libuv's code: UV_EEXIST for a directory that is
 *   not empty); TNK_ECONFLICT while another download to the same directory is
 *   under way, here or in another process; TNK_ECORRUPT when files end too
 *   early or too late, or are others than before; TNK_ETIMEDOUT also for
 *   options.timeout_ms.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_weights_download(tnk_service_t *service, const char *path,
                     const char *directory,
                     const tnk_weights_options_t *options);

/**
 * The result of tnk_weights_download().
 *
 * @return NULL unless resolved with that type. Lifetime: that of the promise.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const tnk_weights_t *tnk_promise_weights(const tnk_promise_t *promise);

#ifdef __cplusplus
}
#endif

#endif

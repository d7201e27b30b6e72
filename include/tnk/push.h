/* SPDX-License-Identifier: MIT */
#ifndef TNK_PUSH_H
#define TNK_PUSH_H

#include "tnk/hub.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Publish trained weights to a model hub. The files of a directory, for example
 * downloaded external weights, become a commit of a repository.
 */

/**
 * Options of a push. 0 or NULL selects the default of every member except
 * `checkpoint`.
 */
typedef struct {
  size_t size; /**< Set by TNK_PUSH_OPTIONS_INIT. */
  /** "tinker://" path of the weights. Required. The model card contains it and
   * so identifies the checkpoint of a repository. */
  const char *checkpoint;
  /** "OWNER/NAME", or "NAME" for the owner of the token. NULL means
   * "tinker-MODEL-RUN". MODEL is the last part of `base_model`, or "adapter".
   * RUN is the run of the checkpoint. Characters that names cannot have become
   * "-". */
  const char *repo;
  /** Branch, which is created if it is missing. NULL means "main" if `repo` is
   * set, else the checkpoint's id, such as "weights-final". */
  const char *revision;
  const char *message; /**< Commit message, one line. NULL for a default. */
  /** TNK_YES creates a public repository. An existing one is not changed. */
  tnk_choice_t is_public;
  /** TNK_YES opens a pull request with the commit. */
  tnk_choice_t opens_pull_request;
  /** TNK_NO does not create a model card if the directory has none. */
  tnk_choice_t model_card;
  /** Trained layers, for the model card. TNK_DEFAULT states nothing. */
  tnk_choice_t trained_attn;
  tnk_choice_t trained_mlp;
  tnk_choice_t trained_unembed;
  uint32_t lora_rank; /**< LoRA rank, for the model card. 0 states nothing. */
  /** TNK_YES creates nothing and needs no directory. It checks the options, the
   * token, and that an existing repository does not hold another checkpoint.
   * Use it before a large download. */
  tnk_choice_t only_checks;
  /** Base model. NULL means "unknown". If adapter_config.json does not name a
   * base model, the pushed copy of this file gets the name. The file in the
   * directory is not changed. */
  const char *base_model;
  /** Patterns of the files to push: files that match a pattern of `allow`, if
   * there is one, and no pattern of `ignore`. "*" matches any characters
   * including slashes, "?" one character, "[...]" one of a set. A pattern that
   * ends in a slash matches all files below that folder. Without `allow`,
   * "checkpoint_complete" is not pushed. */
  const char *const *allow;
  size_t n_allow;
  const char *const *ignore;
  size_t n_ignore;
  /** Called with the number of bytes of a large file that were read for
   * sending. May be NULL. */
  tnk_progress_cb on_progress;
  void *progress_user;
  uint64_t reserved;
} tnk_push_options_t;

#define TNK_PUSH_OPTIONS_INIT TNK_SIZED(tnk_push_options_t)

/**
 * Result of a push. Strings are never NULL.
 *
 * Only the library creates this struct, so later versions may append members.
 * Since: 0.1
 */
typedef struct {
  const char *repo;     /**< "OWNER/NAME". */
  const char *revision; /**< Branch. */
  const char *commit;   /**< Id of the commit; "" with only_checks. */
  const char *url;      /**< URL of the pull request if there is one, else of
                             the commit; "" with only_checks. */
  uint64_t n_files;     /**< Files in the commit. */
  uint64_t n_sent;      /**< Bytes of large files that were uploaded. */
} tnk_pushed_t;

/**
 * Push weights to a repository of the hub. The library creates the repository
 * if it does not exist, uploads large files to the hub's file store, and makes
 * one commit with all files.
 *
 * The directory must hold a PEFT adapter: adapter_config.json and
 * adapter_model.safetensors or .bin. The library does not change it. If the
 * model card of the repository names another checkpoint, the push rejects with
 * TNK_ECONFLICT. The thread pool reads large files piece by piece, so memory
 * use does not depend on their size. If the store supports it, files are
 * uploaded in parts.
 *
 * Temporary failures are retried as in tnk_hub_download(). Exception: a commit
 * that may have succeeded is not repeated, and the error text says so. A push
 * needs the hub's token, which is sent to the hub's endpoint only.
 *
 * @param directory  Directory of the files. May be NULL with only_checks.
 * @param options    Copied.
 *
 * Completion: cancel ends the push. Uploaded files without a commit are not
 * visible.
 * @return A promise of tnk_promise_pushed().
 * Rejects with: Caller, Transport, Service (groups of error.h), TNK_EFILE
 *   (error->cause is libuv's code; also if a file changed during the push).
 *   TNK_EINVAL also if the directory has no adapter, TNK_ECREDENTIAL if the hub
 *   has no token, TNK_EAUTH if the hub rejects the token, TNK_ECONFLICT if the
 *   repository holds another checkpoint.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_hub_push(tnk_hub_t *hub, const char *directory,
                                    const tnk_push_options_t *options);

/**
 * Get the result of tnk_hub_push().
 *
 * @return NULL unless resolved with that type. Lifetime: as long as the
 * promise.
 * Thread: loop thread, or taker. Since: 0.1
 */
TNK_API const tnk_pushed_t *tnk_promise_pushed(const tnk_promise_t *promise);

#ifdef __cplusplus
}
#endif

#endif

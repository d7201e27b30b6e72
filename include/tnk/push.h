#ifndef TNK_PUSH_H
#define TNK_PUSH_H

#include "tnk/hub.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Trained weights to a model hub: what stands in a directory, such as a
 * download of external weights, becomes a commit of a repository.
 */

/**
 * What is pushed, and to where. Zero is the default of every member but
 * `checkpoint`.
 */
typedef struct {
  size_t size; /**< Set by TNK_PUSH_OPTIONS_INIT. */
  /** The tinker:// path of the weights. The model card names it, and by that a
   * repository is known to hold them. Required. */
  const char *checkpoint;
  /** "OWNER/NAME", or "NAME" of the token's owner. NULL:
   * "tinker-MODEL-RUN", of the last part of `base_model` ("adapter" without
   * one) and the checkpoint's run, with "-" for what names do not have. */
  const char *repo;
  /** A branch, which is made if it is missing. NULL: "main", or without `repo`
   * the checkpoint's id, such as "weights-final". */
  const char *revision;
  const char *message; /**< Of the commit, one line. NULL: a usual one. */
  /** TNK_YES: a new repository is public. One that exists stays as it is. */
  tnk_choice_t is_public;
  /** TNK_YES: the commit is proposed as a pull request. */
  tnk_choice_t opens_pull_request;
  /** TNK_NO: no model card is written where the directory has none. */
  tnk_choice_t model_card;
  /** What the card says of how they were trained; TNK_DEFAULT: nothing. */
  tnk_choice_t trained_attn;
  tnk_choice_t trained_mlp;
  tnk_choice_t trained_unembed;
  uint32_t lora_rank; /**< The same; 0: nothing. */
  /** TNK_YES: nothing is made, and no directory needed: only the options are
   * checked, the token, and that the repository, where there is one, has no
   * other checkpoint. Good to know before much is downloaded. */
  tnk_choice_t only_checks;
  /** The model that was trained. NULL: "unknown". It is set in
   * adapter_config.json where that names none; the file itself stays as it
   * is. */
  const char *base_model;
  /** Which files go: those that a pattern of the first list fits, if there is
   * one, and none of the second. "*" stands for any characters, slashes too,
   * "?" for one, "[...]" for one of these; one that ends in a slash means all
   * below that folder. Without `allow`, "checkpoint_complete" stays here. */
  const char *const *allow;
  size_t n_allow;
  const char *const *ignore;
  size_t n_ignore;
  /** Hears how many bytes of a large file have been read to be sent; may be
   * NULL. */
  tnk_progress_cb on_progress;
  void *progress_user;
  uint64_t reserved;
} tnk_push_options_t;

#define TNK_PUSH_OPTIONS_INIT TNK_SIZED(tnk_push_options_t)

/**
 * What a push has made. Texts are never NULL.
 *
 * Made by the library only, so later versions may append members.
 * Since: 0.1
 */
typedef struct {
  const char *repo;     /**< "OWNER/NAME". */
  const char *revision; /**< The branch. */
  const char *commit;   /**< Its id; "" with only_checks. */
  const char *url;      /**< Of the pull request if there is one, else of the
                             commit; "" with only_checks. */
  uint64_t n_files;     /**< That are in the commit. */
  uint64_t n_sent;      /**< Bytes of large files that the hub did not have. */
} tnk_pushed_t;

/**
 * Push weights to a repository of the hub: it is created if need be, large
 * files go to its store, and one commit brings all of them.
 *
 * The directory must hold a PEFT adapter: adapter_config.json and
 * adapter_model.safetensors or .bin. Nothing in it is changed. A repository
 * whose model card names another checkpoint is refused with TNK_ECONFLICT.
 * Large files are read by the thread pool, piece by piece while they are sent,
 * so memory stays flat; stores that offer it get them in parts.
 *
 * What fails in a way that may pass is repeated, as by tnk_hub_download(), but
 * not a commit that may have been made: the sentence says so. The hub's token
 * is needed, and goes to its endpoint alone.
 *
 * @param directory  Where the files are; may be NULL with only_checks.
 * @param options    Copied.
 *
 * Completion: cancel ends it; what is uploaded without a commit shows nowhere.
 * @return A promise of tnk_promise_pushed().
 * Rejects with: Caller, Transport, Service (groups of error.h), TNK_EFILE
 *   (error->cause is libuv's code; also a file that changed meanwhile).
 *   TNK_EINVAL is for a directory without an adapter too, TNK_ECREDENTIAL for a
 *   hub without a token, TNK_EAUTH for one that it does not take, TNK_ECONFLICT
 *   for a repository of another checkpoint.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_hub_push(tnk_hub_t *hub, const char *directory,
                                    const tnk_push_options_t *options);

/**
 * The result of tnk_hub_push().
 *
 * @return NULL unless resolved with that type. Lifetime: the promise's.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const tnk_pushed_t *tnk_promise_pushed(const tnk_promise_t *promise);

#ifdef __cplusplus
}
#endif

#endif

#ifndef TNK_REST_H
#define TNK_REST_H

#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the service keeps: training runs, checkpoints, sessions, samplers.
 *
 * These calls need a service but no session: as long as nothing else is asked
 * of it, a service makes none, belongs to no project and sends no heartbeat.
 *
 *     tnk_list_options_t options = TNK_LIST_OPTIONS_INIT;
 *     tnk_promise_t *p = tnk_rest_list_checkpoints(service, &options);
 *     while (tnk_wait(p) == TNK_OK) {
 *       const tnk_page_t *page = tnk_promise_page(p);
 *       for (size_t i = 0; i < tnk_page_count(page); i++)
 *         puts(tnk_page_checkpoint(page, i)->path);
 *       if (tnk_page_is_last(page))
 *         break;
 *       tnk_promise_t *next = tnk_rest_next_page(service, page);
 *       tnk_promise_unref(p);
 *       p = next;
 *     }
 *
 * What an answer has beyond what is told here is ignored, and a word that this
 * library does not know is handed on as it is. An answer that lacks what is
 * said to be never NULL rejects with TNK_EPROTO, and the sentence names it.
 *
 * Ids and paths are looked at before anything is sent: what would make another
 * address of them ("?", "#", "%", "/", "\", blanks, control characters, "." and
 * "..", nothing at all) is TNK_EINVAL.
 */

/** Records of one kind, as one answer had them. Immutable; belongs to its
 * promise. A call for a single record gives a page of one. */
typedef struct tnk_page tnk_page_t;

/* Times count in microseconds since the beginning of 1970, UTC. Records are
 * made by the library only, so later versions may append members. Whatever is
 * said to be unknown may also be missing by the server's will. */

/** What a checkpoint is for. */
typedef enum {
  TNK_CHECKPOINT_OTHER = 0,    /**< A word that this library does not know. */
  TNK_CHECKPOINT_TRAINING = 1, /**< To go on training. */
  TNK_CHECKPOINT_SAMPLER = 2,  /**< To sample from. */
  TNK_CHECKPOINT_EXTERNAL = 3  /**< Files for other programs. */
} tnk_checkpoint_kind_t;

/** A checkpoint that the service keeps. */
typedef struct {
  const char *path;           /**< "tinker://..."; never NULL. */
  const char *id;             /**< "weights/0001"; never NULL. */
  const char *type;           /**< The server's word for kind; never NULL. */
  tnk_checkpoint_kind_t kind; /**< What `type` means. */
  int is_public;              /**< 1: others may use it. */
  int64_t time_us;            /**< When it was made. */
  int64_t expires_us;         /**< When it is removed; 0: never. */
  int64_t size_bytes;         /**< -1: unknown. */
  const tnk_pair_t *user_metadata;
  size_t n_user_metadata;
} tnk_checkpoint_t;

/** A training run, which is a model with what was done to it. */
typedef struct {
  const char *id;          /**< Also the model's; never NULL. */
  const char *base_model;  /**< Never NULL. */
  const char *owner;       /**< Never NULL. */
  int is_lora;             /**< 1: its weights are a LoRA adapter. */
  int is_corrupted;        /**< 1: it has failed and cannot go on. */
  int64_t lora_rank;       /**< 0: unknown. */
  int64_t last_request_us; /**< When it was last asked for anything. */
  const tnk_checkpoint_t *last_checkpoint;         /**< NULL: none. */
  const tnk_checkpoint_t *last_sampler_checkpoint; /**< NULL: none. */
  const tnk_pair_t *user_metadata;
  size_t n_user_metadata;
} tnk_run_t;

/** Whose things are meant. */
typedef enum {
  TNK_SCOPE_OWNED = 0,     /**< The caller's own. */
  TNK_SCOPE_ACCESSIBLE = 1 /**< All that the caller may see. */
} tnk_scope_t;

/** A part of a list. Zero is the default of every member. */
typedef struct {
  size_t size; /**< Set by TNK_LIST_OPTIONS_INIT. */
  /** Records a page, which the server may lower; 0: 20 runs or sessions, 100
   * checkpoints. */
  uint32_t limit;
  tnk_scope_t scope;      /**< Of runs and sessions. */
  uint64_t offset;        /**< So many are passed over. */
  const char *project_id; /**< Of runs; NULL: of all projects. */
  uint64_t reserved;
} tnk_list_options_t;

#define TNK_LIST_OPTIONS_INIT TNK_SIZED(tnk_list_options_t)

/**
 * A page of the training runs.
 *
 * @param options  NULL for defaults. Copied.
 *
 * Protocol: rest-and-cli, paging.
 * @return A promise of tnk_promise_page(), to be read with tnk_page_run().
 * Rejects with: Caller, Transport, Service (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_list_runs(tnk_service_t *service,
                                          const tnk_list_options_t *options);

/**
 * One training run.
 *
 * @param run_id  Such as the id of a model. Copied.
 * @param scope   TNK_SCOPE_ACCESSIBLE for somebody else's.
 *
 * @return A promise of tnk_promise_page(), which has one tnk_page_run().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_run(tnk_service_t *service,
                                        const char *run_id, tnk_scope_t scope);

/**
 * All checkpoints of a training run, in one answer.
 *
 * @param run_id  Copied.
 *
 * @return A promise of tnk_promise_page(), to be read with
 *         tnk_page_checkpoint().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_list_run_checkpoints(tnk_service_t *service,
                                                     const char *run_id);

/**
 * A page of the checkpoints of all own runs, newest first.
 *
 * @param options  NULL for defaults; `scope` and `project_id` are not used
 *                 here and refused. Copied.
 *
 * @return A promise of tnk_promise_page(), to be read with
 *         tnk_page_checkpoint().
 * Rejects with: Caller, Transport, Service (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_rest_list_checkpoints(tnk_service_t *service,
                          const tnk_list_options_t *options);

/**
 * The page that follows another one of a list.
 *
 * It begins behind what the server has sent so far, however few that were.
 * Lists move while they are read: what comes once more, because something was
 * added in front of it, is left out (as far as the last 1,024 records tell);
 * what was removed in front may make others be missed.
 *
 * @param service  That of @p page, or another with the same key.
 * @param page     Not the last one. It may go when this returns.
 *
 * @return A promise of tnk_promise_page(), of the same kind. It may be empty
 *         and yet not the last one.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EINVAL for
 *   the last page.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_next_page(tnk_service_t *service,
                                          const tnk_page_t *page);

/**
 * The result of these calls.
 *
 * @return NULL unless resolved with that type. Lifetime: as long as the
 *         promise.
 * Thread: loop thread. Since: 0.1
 */
TNK_API const tnk_page_t *tnk_promise_page(const tnk_promise_t *promise);

/** How many records the page has. Thread: any. Since: 0.1 */
TNK_API size_t tnk_page_count(const tnk_page_t *page);

/** Whether nothing follows it: 1 also for single records and for lists that
 * come whole. Thread: any. Since: 0.1 */
TNK_API int tnk_page_is_last(const tnk_page_t *page);

/** How many records the whole list has, as this answer says; -1: it does not
 * say. Thread: any. Since: 0.1 */
TNK_API int64_t tnk_page_total(const tnk_page_t *page);

/** How many records of the list lie before this page's end, by the server's
 * count. Where that is less than the total, the list goes on. Thread: any.
 * Since: 0.1 */
TNK_API uint64_t tnk_page_end(const tnk_page_t *page);

/** Training run @p index; NULL when there is none, or the page has others.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_run_t *tnk_page_run(const tnk_page_t *page, size_t index);

/** Checkpoint @p index; NULL when there is none, or the page has others.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_checkpoint_t *tnk_page_checkpoint(const tnk_page_t *page,
                                                    size_t index);

#ifdef __cplusplus
}
#endif

#endif

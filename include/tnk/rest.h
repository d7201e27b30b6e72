#ifndef TNK_REST_H
#define TNK_REST_H

#include "tnk/record.h"
#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the service keeps: training runs, checkpoints, sessions, samplers; and
 * what it has cost.
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
 *     if (tnk_promise_status(p) != TNK_OK)
 *       fprintf(stderr, "%s\n", tnk_promise_text(p));
 *     tnk_promise_unref(p);
 *
 * What an answer has beyond what is told here is ignored, and a word that this
 * library does not know is handed on as it is. An answer that lacks what is
 * said to be never NULL rejects with TNK_EPROTO, and the sentence names it.
 *
 * Ids and paths are looked at before anything is sent: what would make another
 * address of them ("?", "#", "%", "/", "\", blanks, control characters, "." and
 * "..", nothing at all) is TNK_EINVAL.
 */

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
 * What weights were made from.
 *
 * @param path  Any "tinker://" path of weights. Copied.
 *
 * @return A promise of tnk_promise_page(), which has one
 *         tnk_page_weights_info().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_weights_info(tnk_service_t *service,
                                                 const char *path);

/**
 * Where the files of a checkpoint for other programs are. Asking again renews
 * the URLs. Protocol: rest-and-cli, external weights.
 *
 * @param path  "tinker://<run>/external_weights/<name>". Copied.
 *
 * @return A promise of tnk_promise_page(), which has one
 *         tnk_page_external_files().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND;
 *   TNK_EPROTO also for a name that leads out of a folder.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_external_files(tnk_service_t *service,
                                                   const char *path);

/* ---- Changing checkpoints ---- */

/**
 * Remove a checkpoint for good. Only its owner can.
 *
 * When an answer is lost the request is repeated; that nothing is there any
 * more then means that it was removed.
 *
 * @param path  Such as tnk_checkpoint_t.path. Copied.
 *
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_delete_checkpoint(tnk_service_t *service,
                                                  const char *path);

/**
 * Let everybody use a checkpoint. One that is public already is no error.
 *
 * @param path  Copied.
 *
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_publish_checkpoint(tnk_service_t *service,
                                                   const char *path);

/**
 * Take back what tnk_rest_publish_checkpoint() did. One that is not public is
 * no error.
 *
 * @param path  Copied.
 *
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_unpublish_checkpoint(tnk_service_t *service,
                                                     const char *path);

/**
 * Set when a checkpoint is removed.
 *
 * @param path         Copied.
 * @param ttl_seconds  From when the service gets it: an hour to ten years. 0:
 *                     it stays.
 *
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EINVAL for
 *   other times; TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_set_checkpoint_ttl(tnk_service_t *service,
                                                   const char *path,
                                                   int64_t ttl_seconds);

/** A copy of weights. Zero is the default of every member but the path. */
typedef struct {
  size_t size;            /**< Set by TNK_COPY_OPTIONS_INIT. */
  const char *path;       /**< Required: what is copied. */
  const char *project_id; /**< Where to; NULL: the service's project. */
  int64_t ttl_seconds; /**< Of the copy: an hour to ten years; 0: it stays. */
  /** For somebody else's weights. Sent in a header of its own, and in no log
   * or error. */
  const char *weights_access_token;
  uint64_t reserved;
} tnk_copy_options_t;

#define TNK_COPY_OPTIONS_INIT TNK_SIZED(tnk_copy_options_t)

/**
 * Copy weights into a project: of the same kind, in a run of its own that
 * cannot be trained, without moving bytes. Repeats are known to the service by
 * their key, so one call makes one copy; two calls make two.
 *
 * @param options  Copied.
 *
 * @return A promise of tnk_promise_path(): that of the copy.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EINVAL
 *   without a path or a project; TNK_EAUTH, TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_copy_weights(tnk_service_t *service,
                                             const tnk_copy_options_t *options);

/* ---- Sessions and samplers ---- */

/**
 * One session: its runs, its samplers and what it was given at its making.
 *
 * @param session_id  Copied.
 * @param scope       TNK_SCOPE_ACCESSIBLE for somebody else's.
 *
 * @return A promise of tnk_promise_page(), which has one tnk_page_session().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_session(tnk_service_t *service,
                                            const char *session_id,
                                            tnk_scope_t scope);

/**
 * A page of the ids of sessions. The service does not say how many there are:
 * the last page is an empty one.
 *
 * @param options  NULL for defaults; `project_id` is not used here and refused.
 *                 Copied.
 *
 * @return A promise of tnk_promise_page(), to be read with tnk_page_session().
 * Rejects with: Caller, Transport, Service (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_rest_list_sessions(tnk_service_t *service,
                       const tnk_list_options_t *options);

/** Whose sessions are searched. */
typedef enum {
  TNK_OWNER_SELF = 0, /**< The caller's. */
  TNK_OWNER_ANY = 1,  /**< All that the caller may see. */
  TNK_OWNER_USERS = 2 /**< Those of `owner_urns`. */
} tnk_owner_t;

/** How sessions stand, to be added up. */
typedef enum {
  TNK_SESSION_ACTIVE = 1,
  TNK_SESSION_CANCELLED = 2,
  TNK_SESSION_FAILED = 4,
  TNK_SESSION_SUCCESS = 8, /**< Finished by their client, and so on. */
  TNK_SESSION_ERRORED = 16,
  TNK_SESSION_INTERRUPTED = 32
} tnk_session_state_t;

/** Which sessions. Zero is the default of every member. */
typedef struct {
  size_t size;              /**< Set by TNK_SEARCH_OPTIONS_INIT. */
  const char *session_id;   /**< Exactly this one, or those of the name. */
  const char *display_name; /**< Each of its words occurs. */
  const char *const *project_ids; /**< NULL: of all projects. */
  size_t n_project_ids;
  const tnk_pair_t *user_metadata; /**< All of them are there. */
  size_t n_user_metadata;
  const char *const *owner_urns; /**< Of TNK_OWNER_USERS: one to ten. */
  size_t n_owner_urns;
  tnk_owner_t owner;
  uint32_t states; /**< Of tnk_session_state_t; 0: any. */
  uint32_t limit;  /**< Records a page, at most 200; 0: 50. */
  uint32_t reserved;
} tnk_search_options_t;

#define TNK_SEARCH_OPTIONS_INIT TNK_SIZED(tnk_search_options_t)

/**
 * Search sessions, newest first. The service calls this experimental: it may
 * change without notice. Protocol: rest-and-cli, session search.
 *
 * @param options  NULL for defaults. Copied.
 *
 * @return A promise of tnk_promise_page(), to be read with tnk_page_session().
 * Rejects with: Caller, Transport, Service (groups of error.h):
 *   TNK_EUNSUPPORTED where there is no such call.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_rest_search_sessions(tnk_service_t *service,
                         const tnk_search_options_t *options);

/**
 * Move a session, with its runs and samplers, to a project. It can be moved on,
 * but not out of all projects again.
 *
 * @param session_id  Copied.
 * @param project_id  Copied.
 *
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_move_session(tnk_service_t *service,
                                             const char *session_id,
                                             const char *project_id);

/**
 * Have the trace of a session made, and wait for it: as long as it takes,
 * asking every five seconds.
 *
 * @param session_id  Copied.
 *
 * @return A promise of tnk_promise_path(): a URL that is good for about an
 *         hour, and as secret as the trace, which is a Perfetto file.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND;
 *   TNK_EFAILED: the service could not make it.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_export_trace(tnk_service_t *service,
                                             const char *session_id);

/**
 * One sampler.
 *
 * @param sampler_id  Such as tnk_sampling_id(). Copied.
 *
 * @return A promise of tnk_promise_page(), which has one tnk_page_sampler().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_sampler(tnk_service_t *service,
                                            const char *sampler_id);

/**
 * Who the service takes the caller for. It says so in the token that it gives
 * for the key, so mostly nothing is sent for this.
 *
 * @return A promise of tnk_promise_page(), which has one tnk_page_identity().
 * Protocol: rest-and-cli, whoami.
 * Rejects with: Caller, Transport, Service (groups of error.h):
 *   TNK_EUNSUPPORTED where the service gives no tokens.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_whoami(tnk_service_t *service);

/**
 * What the service knows of the API key in use. Nothing else is sent before, no
 * token is asked for: to check a key, open a service with it and ask this.
 *
 * @return A promise of tnk_promise_page(), which has one tnk_page_api_key().
 * Protocol: transport, stored credentials.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EAUTH for a
 *   key that the service does not take; TNK_EUNSUPPORTED where there is no such
 *   call.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_api_key(tnk_service_t *service);

/**
 * Revoke the API key in use, for good: nobody can use it any more, this service
 * neither.
 *
 * @return A promise without a result.
 * Protocol: transport, stored credentials.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EAUTH;
 *   TNK_EUNSUPPORTED where there is no such call.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_revoke_api_key(tnk_service_t *service);

/* ---- Administration ---- */

/**
 * What was used, hour by hour. For administrators.
 * Protocol: rest-and-cli, billing response.
 *
 * @param start_us  Microseconds since the beginning of 1970, UTC; a full hour.
 * @param end_us    Not part of it; at most 14 days later.
 *
 * @return A promise of tnk_promise_page(), to be read with tnk_page_usage().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EINVAL for
 *   an end that is not behind the start, TNK_EAUTH.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_usage(tnk_service_t *service,
                                          int64_t start_us, int64_t end_us);

/**
 * What checkpoints take now. For administrators.
 *
 * @param project_id  NULL: the whole organization. Copied.
 *
 * @return A promise of tnk_promise_page(), to be read with tnk_page_storage().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EAUTH.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_storage(tnk_service_t *service,
                                            const char *project_id);

/**
 * The audit log of one day, sorted by time. For administrators.
 *
 * @param event_type  "checkpoints", "projects", "teams", "organizations"; NULL:
 *                    all. Copied.
 * @param day         "2026-01-02", UTC; NULL: today. Copied.
 *
 * @return A promise of tnk_promise_page(), to be read with
 *         tnk_page_audit_entry().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EAUTH.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_audit_log(tnk_service_t *service,
                                              const char *event_type,
                                              const char *day);

/* ---- Lists and records ---- */

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

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_REST_H
#define TNK_REST_H

#include "tnk/record.h"
#include "tnk/service.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Training runs, checkpoints, sessions, samplers and usage on the service.
 *
 * These calls need a service but no session. A service that is used for nothing
 * else creates no session, belongs to no project and sends no heartbeats.
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
 * The library ignores members of a response that it does not know. It passes
 * unknown strings of an enumeration through unchanged. If a response lacks a
 * member that is documented as never NULL, the promise rejects with TNK_EPROTO
 * and the text names the member.
 *
 * The library validates ids and paths before it sends a request. It rejects
 * characters that would change the URL with TNK_EINVAL: "?", "#", "%", "/",
 * "\", blanks and control characters. It also rejects ".", ".." and an empty
 * string.
 */

/** Owner of the listed objects. */
typedef enum {
  TNK_SCOPE_OWNED = 0,     /**< Objects of the caller. */
  TNK_SCOPE_ACCESSIBLE = 1 /**< All objects that the caller may read. */
} tnk_scope_t;

/** Options of a list. 0 or NULL selects the default. */
typedef struct {
  size_t size; /**< Set by TNK_LIST_OPTIONS_INIT. */
  /** Maximum records per page. The server may return fewer. 0 means 20 runs or
   * sessions, or 100 checkpoints. */
  uint32_t limit;
  tnk_scope_t scope;      /**< For runs and sessions. */
  uint64_t offset;        /**< Number of records to skip. */
  const char *project_id; /**< For runs; NULL means all projects. */
  uint64_t reserved;
} tnk_list_options_t;

#define TNK_LIST_OPTIONS_INIT TNK_SIZED(tnk_list_options_t)

/**
 * List training runs, one page.
 *
 * @param options  NULL for defaults. Copied.
 *
 * Protocol: rest-and-cli, paging.
 * @return A promise of tnk_promise_page(). Read it with tnk_page_run().
 * Rejects with: Caller, Transport, Service (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_list_runs(tnk_service_t *service,
                                          const tnk_list_options_t *options);

/**
 * Get one training run.
 *
 * @param run_id  The id of the run, which is also the id of its model. Copied.
 * @param scope   TNK_SCOPE_ACCESSIBLE for a run of another user.
 *
 * Protocol: rest-and-cli, get run.
 * @return A promise of tnk_promise_page() with one tnk_page_run().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_run(tnk_service_t *service,
                                        const char *run_id, tnk_scope_t scope);

/**
 * List all checkpoints of a training run, in one page.
 *
 * @param run_id  Copied.
 *
 * Protocol: rest-and-cli, list run checkpoints.
 * @return A promise of tnk_promise_page(). Read it with tnk_page_checkpoint().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_list_run_checkpoints(tnk_service_t *service,
                                                     const char *run_id);

/**
 * List the checkpoints of all own runs, newest first, one page.
 *
 * @param options  NULL for defaults. `scope` and `project_id` must not be set.
 *                 Copied.
 *
 * Protocol: rest-and-cli, list own checkpoints.
 * @return A promise of tnk_promise_page(). Read it with tnk_page_checkpoint().
 * Rejects with: Caller, Transport, Service (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_rest_list_checkpoints(tnk_service_t *service,
                          const tnk_list_options_t *options);

/**
 * Get the base model and training settings of weights.
 *
 * @param path  Any "tinker://" path of weights. Copied.
 *
 * Protocol: rest-and-cli, weights info.
 * @return A promise of tnk_promise_page() with one tnk_page_weights_info().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_weights_info(tnk_service_t *service,
                                                 const char *path);

/**
 * Get the files of external weights with their URLs. Call it again to renew the
 * URLs. Protocol: rest-and-cli, external weights.
 *
 * @param path  "tinker://<run>/external_weights/<name>". Copied.
 *
 * @return A promise of tnk_promise_page() with one tnk_page_external_files().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND;
 *   TNK_EPROTO also for a file name that leaves its folder.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_external_files(tnk_service_t *service,
                                                   const char *path);

/* ---- Changing checkpoints ---- */

/**
 * Delete a checkpoint permanently. Only its owner can do this.
 *
 * If a response is lost, the library repeats the request. If the repeated
 * request finds no checkpoint, the promise resolves.
 *
 * @param path  For example tnk_checkpoint_t.path. Copied.
 *
 * Protocol: rest-and-cli, delete checkpoint.
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_delete_checkpoint(tnk_service_t *service,
                                                  const char *path);

/**
 * Make a checkpoint public, so that every user can read it. Does nothing if it
 * is already public.
 *
 * @param path  Copied.
 *
 * Protocol: rest-and-cli, publish.
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_publish_checkpoint(tnk_service_t *service,
                                                   const char *path);

/**
 * Make a checkpoint private again. Does nothing if it is not public.
 *
 * @param path  Copied.
 *
 * Protocol: rest-and-cli, unpublish.
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_unpublish_checkpoint(tnk_service_t *service,
                                                     const char *path);

/**
 * Set the lifetime of a checkpoint.
 *
 * @param path         Copied.
 * @param ttl_seconds  Seconds until its removal, counted from the arrival of
 *                     the request: one hour to ten years. 0 keeps it forever.
 *
 * Protocol: rest-and-cli, set / remove TTL.
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EINVAL for
 *   other lifetimes; TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_set_checkpoint_ttl(tnk_service_t *service,
                                                   const char *path,
                                                   int64_t ttl_seconds);

/** Options of a copy. 0 or NULL selects the default of every member except the
 * path. */
typedef struct {
  size_t size;            /**< Set by TNK_COPY_OPTIONS_INIT. */
  const char *path;       /**< The weights to copy. Required. */
  const char *project_id; /**< Target; NULL means the service's project. */
  int64_t ttl_seconds; /**< Lifetime of the copy: one hour to ten years; 0 keeps
                            it forever. */
  /** Access token for the weights of another user. It is sent in its own header
   * and never logged. */
  const char *weights_access_token;
  uint64_t reserved;
} tnk_copy_options_t;

#define TNK_COPY_OPTIONS_INIT TNK_SIZED(tnk_copy_options_t)

/**
 * Copy weights into a project. The copy has the same kind and belongs to a new
 * run, which cannot be trained. The service moves no bytes. Each call creates
 * one copy: retries have an idempotency key, so the service ignores duplicates.
 *
 * @param options  Copied.
 *
 * Protocol: rest-and-cli, copy weights.
 * @return A promise of tnk_promise_path(): the path of the copy.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EINVAL
 *   without a path or a project; TNK_EAUTH, TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_copy_weights(tnk_service_t *service,
                                             const tnk_copy_options_t *options);

/* ---- Sessions and samplers ---- */

/**
 * Get one session with its runs, its samplers and its user metadata.
 *
 * @param session_id  Copied.
 * @param scope       TNK_SCOPE_ACCESSIBLE for a session of another user.
 *
 * Protocol: rest-and-cli, get session.
 * @return A promise of tnk_promise_page() with one tnk_page_session().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_session(tnk_service_t *service,
                                            const char *session_id,
                                            tnk_scope_t scope);

/**
 * List the ids of sessions, one page. The service does not state their number:
 * the last page is empty.
 *
 * @param options  NULL for defaults. `project_id` must not be set. Copied.
 *
 * Protocol: rest-and-cli, list sessions.
 * @return A promise of tnk_promise_page(). Read it with tnk_page_session().
 * Rejects with: Caller, Transport, Service (groups of error.h).
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_rest_list_sessions(tnk_service_t *service,
                       const tnk_list_options_t *options);

/** Owner of the sessions to search. */
typedef enum {
  TNK_OWNER_SELF = 0, /**< The caller. */
  TNK_OWNER_ANY = 1,  /**< Any user whose sessions the caller may read. */
  TNK_OWNER_USERS = 2 /**< The users in `owner_urns`. */
} tnk_owner_t;

/** States of sessions, as flags. */
typedef enum {
  TNK_SESSION_ACTIVE = 1,
  TNK_SESSION_CANCELED = 2,
  TNK_SESSION_FAILED = 4,
  TNK_SESSION_SUCCESS = 8, /**< For example finished by its client. */
  TNK_SESSION_ERRORED = 16,
  TNK_SESSION_INTERRUPTED = 32
} tnk_session_state_t;

/** Filters of a search. 0 or NULL selects the default. */
typedef struct {
  size_t size;              /**< Set by TNK_SEARCH_OPTIONS_INIT. */
  const char *session_id;   /**< Only this id. May be combined with
                                 display_name: either may match. */
  const char *display_name; /**< Every word of it must occur in the name. */
  const char *const *project_ids; /**< NULL means all projects. */
  size_t n_project_ids;
  const tnk_pair_t *user_metadata; /**< All pairs must match. */
  size_t n_user_metadata;
  const char *const *owner_urns; /**< For TNK_OWNER_USERS: one to ten. */
  size_t n_owner_urns;
  tnk_owner_t owner;
  uint32_t states; /**< Sum of tnk_session_state_t flags; 0 means any state. */
  uint32_t limit;  /**< Records per page, at most 200; 0 means 50. */
  uint32_t reserved;
} tnk_search_options_t;

#define TNK_SEARCH_OPTIONS_INIT TNK_SIZED(tnk_search_options_t)

/**
 * Search sessions, newest first. The service marks this call as experimental;
 * it may change. Protocol: rest-and-cli, session search.
 *
 * @param options  NULL for defaults. Copied.
 *
 * @return A promise of tnk_promise_page(). Read it with tnk_page_session().
 * Rejects with: Caller, Transport, Service (groups of error.h):
 *   TNK_EUNSUPPORTED if the server does not offer the call.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *
tnk_rest_search_sessions(tnk_service_t *service,
                         const tnk_search_options_t *options);

/**
 * Move a session with its runs and samplers to a project. You can move it to
 * another project later, but not out of all projects.
 *
 * @param session_id  Copied.
 * @param project_id  Copied.
 *
 * Protocol: rest-and-cli, move session.
 * @return A promise without a result.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_move_session(tnk_service_t *service,
                                             const char *session_id,
                                             const char *project_id);

/**
 * Export the trace of a session. The library polls every five seconds until the
 * service has created the trace. There is no time limit.
 *
 * @param session_id  Copied.
 *
 * Protocol: rest-and-cli, trace export.
 * @return A promise of tnk_promise_path(): the URL of a Perfetto file. It
 *         expires after about an hour. Anyone with the URL can read the trace.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND;
 *   TNK_EFAILED if the service could not create the trace.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_export_trace(tnk_service_t *service,
                                             const char *session_id);

/**
 * Get one sampler.
 *
 * @param sampler_id  For example tnk_sampling_id(). Copied.
 *
 * Protocol: rest-and-cli, get sampler.
 * @return A promise of tnk_promise_page() with one tnk_page_sampler().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_ENOTFOUND.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_sampler(tnk_service_t *service,
                                            const char *sampler_id);

/**
 * Get the user of the API key. The access token that the service issues for the
 * key contains it, so this call usually sends no request.
 *
 * @return A promise of tnk_promise_page() with one tnk_page_identity().
 * Protocol: rest-and-cli, whoami.
 * Rejects with: Caller, Transport, Service (groups of error.h):
 *   TNK_EUNSUPPORTED if the service issues no tokens.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_whoami(tnk_service_t *service);

/**
 * Get the properties of the API key in use. This is the only request that is
 * sent, without a token exchange. To check a key, open a service with it and
 * call this function.
 *
 * @return A promise of tnk_promise_page() with one tnk_page_api_key().
 * Protocol: transport, stored credentials.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EAUTH if
 *   the service rejects the key; TNK_EUNSUPPORTED if the server does not offer
 *   the call.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_api_key(tnk_service_t *service);

/**
 * Revoke the API key in use permanently. Afterwards the key cannot be used any
 * more, not even by this service.
 *
 * @return A promise without a result.
 * Protocol: transport, stored credentials.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EAUTH;
 *   TNK_EUNSUPPORTED if the server does not offer the call.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_revoke_api_key(tnk_service_t *service);

/* ---- Administration ---- */

/**
 * Get the usage by hour. For administrators.
 * Protocol: rest-and-cli, billing response.
 *
 * @param start_us  Microseconds since 1970-01-01, UTC; a full hour.
 * @param end_us    End, exclusive; at most 14 days after the start.
 *
 * @return A promise of tnk_promise_page(). Read it with tnk_page_usage().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EINVAL if
 *   the end is not after the start; TNK_EAUTH.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_usage(tnk_service_t *service,
                                          int64_t start_us, int64_t end_us);

/**
 * Get the current storage of checkpoints. For administrators.
 *
 * @param project_id  NULL means the whole organization. Copied.
 *
 * Protocol: rest-and-cli, current checkpoint storage.
 * @return A promise of tnk_promise_page(). Read it with tnk_page_storage().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EAUTH.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_storage(tnk_service_t *service,
                                            const char *project_id);

/**
 * Get the audit log of one day, sorted by time. For administrators.
 *
 * @param event_type  "checkpoints", "projects", "teams" or "organizations";
 *                    NULL means all. Copied.
 * @param day         A day in UTC such as "2026-01-02"; NULL means today.
 *                    Copied.
 *
 * Protocol: rest-and-cli, audit log.
 * @return A promise of tnk_promise_page(). Read it with tnk_page_audit_entry().
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EAUTH.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_get_audit_log(tnk_service_t *service,
                                              const char *event_type,
                                              const char *day);

/* ---- Next page ---- */

/**
 * Get the next page of a list.
 *
 * The page begins after the records that the server has sent so far. A list can
 * change while it is read. If records were added before the current position,
 * some records arrive twice; the library removes them, as far as the last 1,024
 * records show. If records were removed there, others can be missed.
 *
 * @param service  The service of @p page, or another one with the same key.
 * @param page     Not the last page. It may be freed after this call.
 *
 * Protocol: rest-and-cli, paging.
 * @return A promise of tnk_promise_page() with records of the same kind. The
 *         page may be empty without being the last one.
 * Rejects with: Caller, Transport, Service (groups of error.h): TNK_EINVAL if
 *   @p page is the last one.
 * Thread: loop thread. Callable from callbacks: yes. Since: 0.1
 */
TNK_API tnk_promise_t *tnk_rest_next_page(tnk_service_t *service,
                                          const tnk_page_t *page);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_RECORD_H
#define TNK_RECORD_H

#include "tnk/promise.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Records of the service: runs, checkpoints, sessions, keys, usage and others.
 * The calls of rest.h return them in pages. A promise owns its page, and the
 * page owns its records, so all pointers are valid as long as the promise.
 */

/** Page: the records of one response, all of the same kind. Immutable; belongs
 * to its promise. A call for a single record returns a page with one record. */
typedef struct tnk_page tnk_page_t;

/* Times are microseconds since 1970-01-01, UTC. Only the library creates
 * records, so later versions may append members. A server may omit any value
 * that has a representation for "unknown". */

/** Purpose of a checkpoint. */
typedef enum {
  TNK_CHECKPOINT_OTHER = 0,    /**< Unknown to this library. */
  TNK_CHECKPOINT_TRAINING = 1, /**< Training state. */
  TNK_CHECKPOINT_SAMPLER = 2,  /**< Sampler weights. */
  TNK_CHECKPOINT_EXTERNAL = 3  /**< Files for other programs. */
} tnk_checkpoint_kind_t;

/** A checkpoint on the service. */
typedef struct {
  const char *path;           /**< "tinker://..."; never NULL. */
  const char *id;             /**< "weights/0001"; never NULL. */
  const char *type;           /**< Kind as the server names it; never NULL. */
  tnk_checkpoint_kind_t kind; /**< Kind as this library knows it. */
  int is_public;              /**< 1 if other users may read it. */
  int64_t time_us;            /**< Time of creation. */
  int64_t expires_us;         /**< Time of removal; 0 means never. */
  int64_t size_bytes;         /**< -1 if unknown. */
  const tnk_pair_t *user_metadata;
  size_t n_user_metadata;
} tnk_checkpoint_t;

/** A training run: one model and its history. */
typedef struct {
  const char *id;          /**< Equals the model's id; never NULL. */
  const char *base_model;  /**< Never NULL. */
  const char *owner;       /**< Never NULL. */
  int is_lora;             /**< 1 if the weights are a LoRA adapter. */
  int is_corrupted;        /**< 1 if it failed and cannot continue. */
  int64_t lora_rank;       /**< 0 if unknown. */
  int64_t last_request_us; /**< Time of its last request. */
  const tnk_checkpoint_t *last_checkpoint;         /**< NULL if none. */
  const tnk_checkpoint_t *last_sampler_checkpoint; /**< NULL if none. */
  const tnk_pair_t *user_metadata;
  size_t n_user_metadata;
} tnk_run_t;

/** Base model and training settings of weights. */
typedef struct {
  const char *base_model;     /**< Never NULL. */
  int is_lora;                /**< 1 if they are a LoRA adapter. */
  int64_t lora_rank;          /**< 0 if unknown. */
  tnk_choice_t train_mlp;     /**< TNK_DEFAULT if unknown. */
  tnk_choice_t train_attn;    /**< TNK_DEFAULT if unknown. */
  tnk_choice_t train_unembed; /**< TNK_DEFAULT if unknown. */
  const char *optimizer_json; /**< A JSON object; NULL if unknown. */
} tnk_weights_info_t;

/** Files of external weights, with temporary URLs. */
typedef struct {
  /** Pairs of a relative path and a signed URL. The library has checked that
   * the path stays below its folder. Anyone with the URL can read the file, so
   * keep it secret. */
  const tnk_pair_t *files;
  size_t n_files;
  int64_t expires_us; /**< Time at which the URLs expire; 0 if unknown. */
} tnk_external_files_t;

/** Status of a session, with strings of the server. */
typedef struct {
  const char *type;     /**< "active", "failed" ...; never NULL. */
  const char *detail;   /**< Description; or NULL. */
  const char *category; /**< Cause: "user", "internal"; or NULL. */
  const char *message;  /**< Error message; or NULL. */
  const char *reason;   /**< Reason of the end, a JSON object; or NULL. */
} tnk_session_status_t;

/** A session. A list of sessions sets only the id. A search sets all members
 * except run_ids and sampler_ids. tnk_rest_get_session() sets these two and the
 * user metadata. */
typedef struct {
  const char *id;                     /**< Never NULL. */
  const char *display_name;           /**< Or NULL. */
  const char *owner;                  /**< Or NULL. */
  const char *project_id;             /**< Or NULL. */
  int64_t created_us;                 /**< 0 if unknown. */
  int64_t n_checkpoints;              /**< -1 if unknown. */
  int64_t checkpoint_bytes;           /**< -1 if unknown. */
  const tnk_session_status_t *status; /**< NULL if unknown. */
  const tnk_pair_t *user_metadata;
  size_t n_user_metadata;
  const char *const *run_ids;
  size_t n_run_ids;
  const char *const *sampler_ids;
  size_t n_sampler_ids;
} tnk_session_t;

/** A sampling session of the service. */
typedef struct {
  const char *id;         /**< Never NULL. */
  const char *base_model; /**< Never NULL. */
  const char *model_path; /**< "tinker://..."; NULL for the base model. */
} tnk_sampler_t;

/** The user of the API key. */
typedef struct {
  const char *user_urn; /**< Never NULL. */
  const char *org_urn;  /**< Never NULL. */
  const char *email;    /**< Or NULL. */
} tnk_identity_t;

/** Properties of an API key. The key itself is not included. */
typedef struct {
  int64_t id;
  const char *name;         /**< Never NULL. */
  const char *note;         /**< Or NULL. */
  const char *organization; /**< Name of the organization; or NULL. */
  const char *email;        /**< Email address of the user; or NULL. */
  const char *details;      /**< A JSON object; or NULL. */
} tnk_api_key_t;

/** Kinds of usage. */
typedef enum {
  TNK_USAGE_OTHER = 0, /**< Unknown to this library. */
  TNK_USAGE_TRAINING = 1,
  TNK_USAGE_PREFILL = 2, /**< Prompt tokens of samples. */
  TNK_USAGE_SAMPLE = 3,  /**< Sampled tokens. */
  TNK_USAGE_CHECKPOINT = 4,
  TNK_USAGE_STORAGE = 5
} tnk_usage_kind_t;

/** Kind and amount of a usage. Members of other kinds are 0. */
typedef struct {
  const char *type;      /**< Kind as the server names it; "" if missing. */
  tnk_usage_kind_t kind; /**< Kind as this library knows it. */
  int is_cached;         /**< PREFILL: 1 for cache hits. */
  int is_free;           /**< STORAGE: 1 if it is free. */
  uint32_t reserved;
  int64_t n_tokens;      /**< TRAINING, PREFILL, SAMPLE. */
  int64_t n_checkpoints; /**< CHECKPOINT. */
  double gigabyte_hours; /**< STORAGE. */
  const char *json;      /**< The whole event as sent; never NULL. */
} tnk_usage_event_t;

/** One row of a usage report, before credits. It is not an invoice. An amount
 * is NaN if it is unknown or does not apply. */
typedef struct {
  int64_t start_us;       /**< Start of the hour. */
  int64_t end_us;         /**< End, exclusive. */
  const char *base_model; /**< NULL if unknown. */
  const char *user_id;    /**< URN; or NULL. */
  const char *user_name;  /**< Or NULL. */
  const char *session_id; /**< NULL for storage, or if unknown. */
  const char *project_id; /**< Current project of the session; or NULL. */
  const tnk_usage_event_t *event; /**< Never NULL. */
  double cost_usd;
  double usd_per_million_tokens;
  double usd_per_gigabyte_month;
  const tnk_pair_t *user_metadata; /**< Metadata of the session. */
  size_t n_user_metadata;
} tnk_usage_t;

/** Current storage of one user's checkpoints in one project. An amount is NaN
 * if it is unknown. */
typedef struct {
  const char *project_id; /**< Or NULL. */
  const char *user_urn;   /**< Or NULL. */
  const char *user_email; /**< Or NULL. */
  const char *user_name;  /**< Or NULL. */
  int64_t n_checkpoints;
  int64_t size_bytes;
  double size_gigabytes; /**< In the unit of the bill. */
  double usd_per_month;  /**< Cost at list price. */
} tnk_storage_t;

/** An entry of the audit log. */
typedef struct {
  int64_t time_us;
  const char *event;       /**< "checkpoint_read"; never NULL. */
  const char *details;     /**< A JSON object; or NULL. */
  const char *model_id;    /**< Or NULL. */
  const char *tinker_path; /**< Or NULL. */
  const char *purpose;     /**< Or NULL. */
} tnk_audit_entry_t;

/**
 * Get the page that a call of rest.h returned.
 *
 * @return NULL unless resolved with that type. Lifetime: as long as the
 *         promise.
 * Thread: loop thread, or taker. Since: 0.1
 */
TNK_API const tnk_page_t *tnk_promise_page(const tnk_promise_t *promise);

/** Get the number of records of the page. Thread: any. Since: 0.1 */
TNK_API size_t tnk_page_count(const tnk_page_t *page);

/** Check whether this is the last page of its list. Returns 1 also for single
 * records and for lists that have only one page. Thread: any. Since: 0.1 */
TNK_API int tnk_page_is_last(const tnk_page_t *page);

/** Get the number of records of the whole list as the server stated it with
 * this page; -1 if it did not. Thread: any. Since: 0.1 */
TNK_API int64_t tnk_page_total(const tnk_page_t *page);

/** Get the number of list records up to the end of this page, as the server
 * counts them. If it is less than the total, more pages follow. Thread: any.
 * Since: 0.1 */
TNK_API uint64_t tnk_page_end(const tnk_page_t *page);

/** Get training run @p index; NULL if there is none or the page has another
 * kind. Lifetime: as long as the promise. Thread: any. Since: 0.1 */
TNK_API const tnk_run_t *tnk_page_run(const tnk_page_t *page, size_t index);

/** Get checkpoint @p index; NULL if there is none or the page has another
 * kind. Lifetime: as long as the promise. Thread: any. Since: 0.1 */
TNK_API const tnk_checkpoint_t *tnk_page_checkpoint(const tnk_page_t *page,
                                                    size_t index);

/** Get weights info @p index; NULL if there is none or the page has another
 * kind. Lifetime: as long as the promise. Thread: any. Since: 0.1 */
TNK_API const tnk_weights_info_t *tnk_page_weights_info(const tnk_page_t *page,
                                                        size_t index);

/** Get the external files @p index; NULL if there are none or the page has
 * another kind. Lifetime: as long as the promise. Thread: any. Since: 0.1 */
TNK_API const tnk_external_files_t *
tnk_page_external_files(const tnk_page_t *page, size_t index);

/** Get session @p index; NULL if there is none or the page has another
 * kind. Lifetime: as long as the promise. Thread: any. Since: 0.1 */
TNK_API const tnk_session_t *tnk_page_session(const tnk_page_t *page,
                                              size_t index);

/** Get sampler @p index; NULL if there is none or the page has another
 * kind. Lifetime: as long as the promise. Thread: any. Since: 0.1 */
TNK_API const tnk_sampler_t *tnk_page_sampler(const tnk_page_t *page,
                                              size_t index);

/** Get identity @p index; NULL if there is none or the page has another
 * kind. Lifetime: as long as the promise. Thread: any. Since: 0.1 */
TNK_API const tnk_identity_t *tnk_page_identity(const tnk_page_t *page,
                                                size_t index);

/** Get API key @p index; NULL if there is none or the page has another
 * kind. Lifetime: as long as the promise. Thread: any. Since: 0.1 */
TNK_API const tnk_api_key_t *tnk_page_api_key(const tnk_page_t *page,
                                              size_t index);

/** Get usage row @p index; NULL if there is none or the page has another
 * kind. Lifetime: as long as the promise. Thread: any. Since: 0.1 */
TNK_API const tnk_usage_t *tnk_page_usage(const tnk_page_t *page, size_t index);

/** Get storage row @p index; NULL if there is none or the page has another
 * kind. Lifetime: as long as the promise. Thread: any. Since: 0.1 */
TNK_API const tnk_storage_t *tnk_page_storage(const tnk_page_t *page,
                                              size_t index);

/** Get audit log entry @p index; NULL if there is none or the page has another
 * kind. Lifetime: as long as the promise. Thread: any. Since: 0.1 */
TNK_API const tnk_audit_entry_t *tnk_page_audit_entry(const tnk_page_t *page,
                                                      size_t index);

/** Get the time up to which the costs of tnk_rest_get_usage() come from
 * invoices. Later costs come from a price list. 0 means all of them.
 * Thread: any. Since: 0.1 */
TNK_API int64_t tnk_page_cost_through_us(const tnk_page_t *page);

/** Get the price of tnk_rest_get_storage() in USD per gigabyte and month; NaN
 * if unknown. Thread: any. Since: 0.1 */
TNK_API double tnk_page_storage_rate(const tnk_page_t *page);

#ifdef __cplusplus
}
#endif

#endif

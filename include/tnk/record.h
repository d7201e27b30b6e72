#ifndef TNK_RECORD_H
#define TNK_RECORD_H

#include "tnk/promise.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Records of what the service keeps, which the calls of rest.h ask for.
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

/** What weights were made from, and how. */
typedef struct {
  const char *base_model;     /**< Never NULL. */
  int is_lora;                /**< 1: they are a LoRA adapter. */
  int64_t lora_rank;          /**< 0: unknown. */
  tnk_choice_t train_mlp;     /**< TNK_DEFAULT: unknown. */
  tnk_choice_t train_attn;    /**< TNK_DEFAULT: unknown. */
  tnk_choice_t train_unembed; /**< TNK_DEFAULT: unknown. */
  const char *optimizer_json; /**< A JSON object; NULL: unknown. */
} tnk_weights_info_t;

/** Files of a checkpoint for other programs, and where they are for a while. */
typedef struct {
  /** Names, which lead nowhere but below a folder, and URLs. Who has such a URL
   * may read the file, so it is as secret as that is. */
  const tnk_pair_t *files;
  size_t n_files;
  int64_t expires_us; /**< Until when the URLs are good; unless 0: unknown. */
} tnk_external_files_t;

/** How a session stands. Words of the server, unless they are NULL. */
typedef struct {
  const char *type;     /**< "active", "failed" ...; never NULL. */
  const char *detail;   /**< In its own words; or NULL. */
  const char *category; /**< Whose fault: "user", "internal"; or NULL. */
  const char *message;  /**< Of a failure; or NULL. */
  const char *reason;   /**< Why it ended, a JSON object; or NULL. */
} tnk_session_status_t;

/** A session. A list knows the id alone, a search all but the last two lists,
 * and tnk_rest_get_session() those and what is the caller's. */
typedef struct {
  const char *id;                     /**< Never NULL. */
  const char *display_name;           /**< Or NULL. */
  const char *owner;                  /**< Or NULL. */
  const char *project_id;             /**< Or NULL. */
  int64_t created_us;                 /**< 0: unknown. */
  int64_t n_checkpoints;              /**< -1: unknown. */
  int64_t checkpoint_bytes;           /**< -1: unknown. */
  const tnk_session_status_t *status; /**< NULL: unknown. */
  const tnk_pair_t *user_metadata;
  size_t n_user_metadata;
  const char *const *run_ids;
  size_t n_run_ids;
  const char *const *sampler_ids;
  size_t n_sampler_ids;
} tnk_session_t;

/** A sampler, which is a sampling session at the service. */
typedef struct {
  const char *id;         /**< Never NULL. */
  const char *base_model; /**< Never NULL. */
  const char *model_path; /**< "tinker://..."; NULL: the base model itself. */
} tnk_sampler_t;

/** Who asks. */
typedef struct {
  const char *user_urn; /**< Never NULL. */
  const char *org_urn;  /**< Never NULL. */
  const char *email;    /**< Or NULL. */
} tnk_identity_t;

/** An API key, as the service knows it; the key itself is not told. */
typedef struct {
  int64_t id;
  const char *name;         /**< Never NULL. */
  const char *note;         /**< Or NULL. */
  const char *organization; /**< Its name; or NULL. */
  const char *email;        /**< Of the user; or NULL. */
  const char *details;      /**< A JSON object; NULL: none. */
} tnk_api_key_t;

/** What can be used. */
typedef enum {
  TNK_USAGE_OTHER = 0, /**< A word that this library does not know. */
  TNK_USAGE_TRAINING = 1,
  TNK_USAGE_PREFILL = 2, /**< Tokens of prompts that were sampled from. */
  TNK_USAGE_SAMPLE = 3,  /**< Tokens that were sampled. */
  TNK_USAGE_CHECKPOINT = 4,
  TNK_USAGE_STORAGE = 5
} tnk_usage_kind_t;

/** The kind of a use, and how much of it. Members of other kinds are 0. */
typedef struct {
  const char *type;      /**< The server's word for kind; "": it gives none. */
  tnk_usage_kind_t kind; /**< What `type` means. */
  int is_cached;         /**< Of PREFILL: they were in a cache. */
  int is_free;           /**< Of STORAGE: it costs nothing. */
  uint32_t reserved;
  int64_t n_tokens;      /**< Of TRAINING, PREFILL, SAMPLE. */
  int64_t n_checkpoints; /**< Of CHECKPOINT. */
  double gigabyte_hours; /**< Of STORAGE. */
  const char *json;      /**< All of it as the server wrote it; never NULL. */
} tnk_usage_event_t;

/** One row of a bill, before credits: not an invoice. Amounts are NaN where the
 * service does not know them, or they do not apply. */
typedef struct {
  int64_t start_us;       /**< Of the hour. */
  int64_t end_us;         /**< Not part of it. */
  const char *base_model; /**< NULL: unknown. */
  const char *user_id;    /**< URN; or NULL. */
  const char *user_name;  /**< Or NULL. */
  const char *session_id; /**< NULL of storage, and where nobody knows. */
  const char *project_id; /**< Where the session is now; or NULL. */
  const tnk_usage_event_t *event; /**< Never NULL. */
  double cost_usd;
  double usd_per_million_tokens;
  double usd_per_gigabyte_month;
  const tnk_pair_t *user_metadata; /**< Of the session. */
  size_t n_user_metadata;
} tnk_usage_t;

/** What a user's checkpoints in one project take now. Amounts are NaN where the
 * service does not know them. */
typedef struct {
  const char *project_id; /**< Or NULL. */
  const char *user_urn;   /**< Or NULL. */
  const char *user_email; /**< Or NULL. */
  const char *user_name;  /**< Or NULL. */
  int64_t n_checkpoints;
  int64_t size_bytes;
  double size_gigabytes; /**< The unit of bills. */
  double usd_per_month;  /**< At list price. */
} tnk_storage_t;

/** An entry of the audit log. */
typedef struct {
  int64_t time_us;
  const char *event;       /**< "checkpoint_read"; never NULL. */
  const char *details;     /**< A JSON object; NULL: none. */
  const char *model_id;    /**< Or NULL. */
  const char *tinker_path; /**< Or NULL. */
  const char *purpose;     /**< Or NULL. */
} tnk_audit_entry_t;

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

/** Weights @p index; NULL when there are none, or the page has others.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_weights_info_t *tnk_page_weights_info(const tnk_page_t *page,
                                                        size_t index);

/** Files @p index; NULL when there are none, or the page has others.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_external_files_t *
tnk_page_external_files(const tnk_page_t *page, size_t index);

/** Session @p index; NULL when there is none, or the page has others.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_session_t *tnk_page_session(const tnk_page_t *page,
                                              size_t index);

/** Sampler @p index; NULL when there is none, or the page has others.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_sampler_t *tnk_page_sampler(const tnk_page_t *page,
                                              size_t index);

/** Identity @p index; NULL when there is none, or the page has others.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_identity_t *tnk_page_identity(const tnk_page_t *page,
                                                size_t index);

/** Key @p index; NULL when there is none, or the page has others.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_api_key_t *tnk_page_api_key(const tnk_page_t *page,
                                              size_t index);

/** Use @p index; NULL when there is none, or the page has others.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_usage_t *tnk_page_usage(const tnk_page_t *page, size_t index);

/** Storage @p index; NULL when there is none, or the page has others.
 * Thread: any. Since: 0.1 */
TNK_API const tnk_storage_t *tnk_page_storage(const tnk_page_t *page,
                                              size_t index);

/** Entry @p index of an audit log; NULL when there is none, or the page has
 * others. Thread: any. Since: 0.1 */
TNK_API const tnk_audit_entry_t *tnk_page_audit_entry(const tnk_page_t *page,
                                                      size_t index);

/** Until when the costs of tnk_rest_get_usage() are those of invoices, not of a
 * price list; 0: no day of them is. Thread: any. Since: 0.1 */
TNK_API int64_t tnk_page_cost_through_us(const tnk_page_t *page);

/** The price of tnk_rest_get_storage(), in USD for a gigabyte and a month; NaN:
 * unknown. Thread: any. Since: 0.1 */
TNK_API double tnk_page_storage_rate(const tnk_page_t *page);

#ifdef __cplusplus
}
#endif

#endif

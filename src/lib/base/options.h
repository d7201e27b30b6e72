/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_BASE_OPTIONS_H
#define TNK_LIB_BASE_OPTIONS_H

#include <stddef.h>

#include "tnk/chat.h"
#include "tnk/gateway.h"
#include "tnk/tnk.h"
#include "tnk/tokenizers.h"

/*
 * Every struct of the public headers that begins with its size.
 * test/hygiene/check_sized.py finds a struct that is missing here.
 * test/api/test_sized.c finds a call without a test of old and new callers.
 *
 * X(type, INIT, first, bytes, last, RESERVED)
 *
 * INIT      What the caller begins with, for sentences.
 * first     The last member when the struct was first released: a caller's
 *           struct ends there at the earliest. Never changes after that.
 * bytes     The size up to `first` with 64-bit pointers; checked.
 * last      The current last member. No padding follows it, in which an
 *           appended member could hide.
 * RESERVED  YES: the struct has a member `reserved`, which must be zero.
 *
 * The second list has the structs that the library fills.
 */
#define TNK__STRUCTS_IN(X)                                                     \
  X(tnk_service_options_t, TNK_SERVICE_OPTIONS_INIT, reserved, 216,            \
    recovery_breaker_ms, YES)                                                  \
  X(tnk_lora_options_t, TNK_LORA_OPTIONS_INIT, n_user_metadata, 72,            \
    n_user_metadata, YES)                                                      \
  X(tnk_restore_options_t, TNK_RESTORE_OPTIONS_INIT, reserved, 80, reserved,   \
    YES)                                                                       \
  X(tnk_sampling_options_t, TNK_SAMPLING_OPTIONS_INIT, reserved, 32, exported, \
    YES)                                                                       \
  X(tnk_pass_options_t, TNK_PASS_OPTIONS_INIT, reserved, 56, loss, YES)        \
  X(tnk_plan_options_t, TNK_PLAN_OPTIONS_INIT, allocator, 72, allocator, NO)   \
  X(tnk_eval_options_t, TNK_EVAL_OPTIONS_INIT, n_batch, 24, n_batch, NO)       \
  X(tnk_schedule_t, TNK_SCHEDULE_INIT, n_steps, 40, n_steps, YES)              \
  X(tnk_budget_t, TNK_BUDGET_INIT, reserved, 64, reserved, YES)                \
  X(tnk_loss_options_t, TNK_LOSS_OPTIONS_INIT, reserved, 48, reserved, YES)    \
  X(tnk_optim_t, TNK_OPTIM_INIT, json, 72, json, YES)                          \
  X(tnk_load_options_t, TNK_LOAD_OPTIONS_INIT, weights_access_token, 32,       \
    weights_access_token, YES)                                                 \
  X(tnk_logprobs_options_t, TNK_LOGPROBS_OPTIONS_INIT, reserved, 16, reserved, \
    YES)                                                                       \
  X(tnk_save_options_t, TNK_SAVE_OPTIONS_INIT, n_recipients, 56, n_recipients, \
    YES)                                                                       \
  X(tnk_ledger_options_t, TNK_LEDGER_OPTIONS_INIT, run, 16, n_rolling, NO)     \
  X(tnk_ledger_resume_t, TNK_LEDGER_RESUME_INIT, reserved, 16, reserved, YES)  \
  X(tnk_ledger_save_t, TNK_LEDGER_SAVE_INIT, is_final, 56, reserved, YES)      \
  X(tnk_sampling_params_t, TNK_SAMPLING_PARAMS_INIT, n_stop_tokens, 72,        \
    n_stop_tokens, NO)                                                         \
  X(tnk_sample_options_t, TNK_SAMPLE_OPTIONS_INIT, reserved, 48, reserved,     \
    YES)                                                                       \
  X(tnk_sample_stream_options_t, TNK_SAMPLE_STREAM_OPTIONS_INIT, silence_ms,   \
    32, silence_ms, NO)                                                        \
  X(tnk_copy_options_t, TNK_COPY_OPTIONS_INIT, reserved, 48, reserved, YES)    \
  X(tnk_search_options_t, TNK_SEARCH_OPTIONS_INIT, reserved, 88, reserved,     \
    YES)                                                                       \
  X(tnk_hosted_request_t, TNK_HOSTED_REQUEST_INIT, reserved, 64, reserved,     \
    YES)                                                                       \
  X(tnk_list_options_t, TNK_LIST_OPTIONS_INIT, reserved, 40, reserved, YES)    \
  X(tnk_weights_options_t, TNK_WEIGHTS_OPTIONS_INIT, archive, 64, archive, NO) \
  X(tnk_hub_options_t, TNK_HUB_OPTIONS_INIT, reserved, 160, observer_user,     \
    YES)                                                                       \
  X(tnk_otlp_options_t, TNK_OTLP_OPTIONS_INIT, logger, 48, logger, NO)         \
  X(tnk_download_options_t, TNK_DOWNLOAD_OPTIONS_INIT, reserved, 64, reserved, \
    YES)                                                                       \
  X(tnk_hub_file_options_t, TNK_HUB_FILE_OPTIONS_INIT, reserved, 24, reserved, \
    YES)                                                                       \
  X(tnk_hub_tokenizer_options_t, TNK_HUB_TOKENIZER_OPTIONS_INIT, reserved, 56, \
    reserved, YES)                                                             \
  X(tnk_push_options_t, TNK_PUSH_OPTIONS_INIT, reserved, 136, reserved, YES)   \
  X(tnk_tokenizer_plugin_t, TNK_TOKENIZER_PLUGIN_INIT, encode, 56, reserved,   \
    YES)                                                                       \
  X(tnk_tokenizer_options_t, TNK_TOKENIZER_OPTIONS_INIT, reserved, 48,         \
    reserved, YES)                                                             \
  X(tnk_chat_template_options_t, TNK_CHAT_TEMPLATE_OPTIONS_INIT, stops, 48,    \
    stops, NO)                                                                 \
  X(tnk_chat_options_t, TNK_CHAT_OPTIONS_INIT, user, 64, is_canceled, NO)      \
  X(tnk_gateway_options_t, TNK_GATEWAY_OPTIONS_INIT, tls_key, 144, reserved,   \
    YES)                                                                       \
  X(tnk_gateway_key_options_t, TNK_GATEWAY_KEY_OPTIONS_INIT, reserved, 80,     \
    certificate, YES)

/* Their members of type tnk_choice_t, which allow only its three values.
 * test/hygiene/check_sized.py finds a missing one. */
#define TNK__CHOICES(X)                                                        \
  X(tnk_service_options_t, retry_samples)                                      \
  X(tnk_service_options_t, keep_loop_alive)                                    \
  X(tnk_service_options_t, recovery)                                           \
  X(tnk_lora_options_t, train_mlp)                                             \
  X(tnk_lora_options_t, train_attn)                                            \
  X(tnk_lora_options_t, train_unembed)                                         \
  X(tnk_restore_options_t, with_optimizer)                                     \
  X(tnk_restore_options_t, classic)                                            \
  X(tnk_sampling_options_t, record_stability_info)                             \
  X(tnk_load_options_t, with_optimizer)                                        \
  X(tnk_save_options_t, overwrite)                                             \
  X(tnk_ledger_resume_t, with_optimizer)                                       \
  X(tnk_ledger_save_t, with_sampler)                                           \
  X(tnk_ledger_save_t, is_final)                                               \
  X(tnk_ledger_save_t, is_rolling)                                             \
  X(tnk_sample_options_t, prompt_logprobs)                                     \
  X(tnk_weights_options_t, force)                                              \
  X(tnk_weights_options_t, archive)                                            \
  X(tnk_hub_options_t, offline)                                                \
  X(tnk_push_options_t, is_public)                                             \
  X(tnk_push_options_t, opens_pull_request)                                    \
  X(tnk_push_options_t, model_card)                                            \
  X(tnk_push_options_t, trained_attn)                                          \
  X(tnk_push_options_t, trained_mlp)                                           \
  X(tnk_push_options_t, trained_unembed)                                       \
  X(tnk_push_options_t, only_checks)                                           \
  X(tnk_chat_options_t, generation_prompt)                                     \
  X(tnk_chat_options_t, by_parts)                                              \
  X(tnk_gateway_options_t, record_sync)                                        \
  X(tnk_gateway_options_t, keep_control_tokens)                                \
  X(tnk_gateway_options_t, share_port)                                         \
  X(tnk_gateway_options_t, keep_unexported)                                    \
  X(tnk_gateway_options_t, client_optional)                                    \
  X(tnk_gateway_key_options_t, may_reward)

#define TNK__STRUCTS_OUT(X)                                                    \
  X(tnk_drift_t, TNK_DRIFT_INIT, effective_tokens, 96, effective_tokens, NO)   \
  X(tnk_totals_t, TNK_TOTALS_INIT, reserved_usd, 112, reserved_usd, NO)        \
  X(tnk_stats_t, TNK_STATS_INIT, max_loop_lag_ms, 160, max_loop_lag_ms, NO)    \
  X(tnk_training_info_t, TNK_TRAINING_INFO_INIT, reserved, 56, reserved, YES)  \
  X(tnk_path_t, TNK_PATH_INIT, name, 40, name, YES)                            \
  X(tnk_otlp_stats_t, TNK_OTLP_STATS_INIT, n_queued, 32, n_queued, NO)         \
  X(tnk_gateway_stats_t, TNK_GATEWAY_STATS_INIT, n_old_samplers, 72,           \
    n_old_samplers, NO)

typedef enum {
#define TNK__NUMBER(type, ...) TNK__STRUCT_##type,
  TNK__STRUCTS_IN(TNK__NUMBER) TNK__STRUCTS_OUT(TNK__NUMBER)
#undef TNK__NUMBER
      TNK__N_STRUCTS
} tnk__struct_id_t;

/* Size for any sentence of tnk__struct_load(). */
#define TNK__MAX_WHY 256

/* A row of the table above. */
typedef struct {
  const char *name;
  const char *init;
  size_t size;        /* size of the struct in this library */
  size_t first;       /* size of the struct in its first release */
  size_t reserved_at; /* offset of `reserved` */
  size_t n_reserved;  /* size of `reserved`; 0: it has no such member */
} tnk__struct_t;

const tnk__struct_t *tnk__struct(tnk__struct_id_t id);

/*
 * Copy a caller's struct to `dst`, which has the defaults.
 *
 * Older caller: members that it does not know keep their defaults. Newer
 * caller: accepted only if every byte unknown to this library is zero. NULL
 * changes nothing.
 *
 * Returns TNK_OK. Returns TNK_EINVAL for an invalid size, and TNK_ENOTSUP for
 * nonzero unknown bytes or a nonzero reserved member. On failure `dst` is
 * unchanged, and `why`, which may be NULL, has a sentence truncated to
 * `why_size`.
 */
int tnk__struct_load(void *dst, const tnk__struct_t *row, const void *src,
                     char *why, size_t why_size);

/*
 * The same, also checking members of type tnk_choice_t. Returns TNK_EINVAL for
 * an invalid choice; `dst` is changed then.
 */
int tnk__struct_read(void *dst, const tnk__struct_t *row, const void *src,
                     char *why, size_t why_size);

/*
 * Copy `src`, which belongs to this library, into a caller's struct, as far as
 * it fits. The caller's size is kept, and members unknown to this library
 * become zero. Returns TNK_OK, or TNK_EINVAL as above without writing.
 */
int tnk__struct_fill(void *dst, const tnk__struct_t *row, const void *src);

#define TNK__LOAD(type, dst, src, why, why_size)                               \
  tnk__struct_read(TNK__SAME(type, dst), tnk__struct(TNK__STRUCT_##type),      \
                   TNK__SAME(const type, src), why, why_size)
#define TNK__FILL(type, dst, src)                                              \
  tnk__struct_fill(TNK__SAME(type, dst), tnk__struct(TNK__STRUCT_##type),      \
                   TNK__SAME(const type, src))
/* The pointer, which must have this type; otherwise compilation fails. */
#define TNK__SAME(type, pointer) (1 ? (pointer) : (type *)NULL)

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_CALLS_TRAINING_H
#define TNK_LIB_WIRE_MESSAGE_CALLS_TRAINING_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "tnk/training.h"

/*
 * Bodies and responses of the calls about models and their weights, except
 * passes and optimizer steps. The rules of lib/wire/message/calls_session.h
 * apply. Options must be checked by lib/wire/data/check.h.
 */

/* ---- Creating ---- */

void tnk__create_model_write(tnk__buf_t *out, const char *session_id,
                             uint64_t model_seq_id,
                             const tnk_lora_options_t *options);
/* Write the body of load_weights that creates a model from a saved state in one
 * call. The response does not name the model, see tnk__model_id_write(). */
void tnk__create_from_state_write(tnk__buf_t *out, const char *session_id,
                                  uint64_t model_seq_id,
                                  const tnk_restore_options_t *options);
/* Write the id that the server gives to such a model:
 * "<session>:train:<number>". */
void tnk__model_id_write(tnk__buf_t *out, const char *session_id,
                         uint64_t model_seq_id);
/* Read the result of create_model. */
int tnk__create_model_read(const char **model_id, tnk__arena_t *arena,
                           const uint8_t *body, size_t n);

/* Write the body of create_custom_loss. Its result is one string, loss_id. */
void tnk__create_loss_write(tnk__buf_t *out, const char *session_id,
                            uint64_t loss_seq_id,
                            const tnk_loss_options_t *options);
int tnk__create_loss_read(const char **loss_id, tnk__arena_t *arena,
                          const uint8_t *body, size_t n);

/* ---- Queries ---- */

void tnk__get_info_write(tnk__buf_t *out, const char *model_id);
/* Read the response. base_model, arch, tokenizer_id and lora_rank may be
 * missing. The optimizer is "adamw" unless stated. */
int tnk__get_info_read(tnk_training_info_t *out, tnk__arena_t *arena,
                       const uint8_t *body, size_t n);

void tnk__weights_info_write(tnk__buf_t *out, const char *path);

typedef struct {
  const char *base_model;
  int is_lora;
  uint32_t lora_rank;         /* 0: not stated */
  tnk_choice_t train_mlp;     /* TNK_YES or TNK_NO; TNK_YES if not stated */
  tnk_choice_t train_attn;    /* the same */
  tnk_choice_t train_unembed; /* the same */
  const char *optimizer;      /* type; "adamw" if not stated */
  const char *optimizer_json; /* JSON of the server; NULL: not stated */
} tnk__weights_info_t;

int tnk__weights_info_read(tnk__weights_info_t *out, tnk__arena_t *arena,
                           const uint8_t *body, size_t n);

void tnk__unload_model_write(tnk__buf_t *out, const char *model_id);

/* ---- Saving and loading ---- */

/* Write the body of save_weights. Here and below, NULL options are the
 * defaults. */
void tnk__save_weights_write(tnk__buf_t *out, const char *model_id,
                             uint64_t seq_id, const char *name,
                             const tnk_save_options_t *options);
/* Write the body of save_weights_for_sampler under a name. */
void tnk__save_sampler_write(tnk__buf_t *out, const char *model_id,
                             uint64_t seq_id, const char *name,
                             const tnk_save_options_t *options);
/* Write the body of a save without a name, which creates a sampling session.
 * Its number must stay the same in all repeats. */
void tnk__save_ephemeral_write(tnk__buf_t *out, const char *model_id,
                               uint64_t seq_id, uint64_t sampling_seq_id,
                               tnk_sampling_kind_t kind);
/* Write the body of save_weights_external. */
void tnk__save_external_write(tnk__buf_t *out, const char *model_id,
                              uint64_t seq_id, const char *name,
                              const tnk_save_options_t *options);
/* Write the body of load_weights into an existing model. */
void tnk__load_weights_write(tnk__buf_t *out, const char *model_id,
                             uint64_t seq_id, const char *path,
                             int with_optimizer, const char *access_token);

/* The result of all five calls. The required members depend on the call, so the
 * caller checks for NULL. */
typedef struct {
  const char *path;                /* in the server's spelling, or NULL */
  const char *sampling_session_id; /* set for a save without a name, or NULL */
  const char *model_id;            /* set for load_weights, or NULL */
  int64_t size_bytes;              /* -1: not stated */
} tnk__saved_t;

int tnk__saved_read(tnk__saved_t *out, tnk__arena_t *arena, const uint8_t *body,
                    size_t n);

#endif

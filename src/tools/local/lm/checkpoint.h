/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_LM_CHECKPOINT_H
#define TNK_TOOLS_LOCAL_LM_CHECKPOINT_H

#include "lib/base/buf.h"
#include "tools/local/lm/file.h"
#include "tools/local/lm/state.h"

/*
 * The parameters of a model and their moments as safetensors files: eight bytes
 * of header length, the JSON header, then float32 data. Factors have the names
 * and the orientation of a PEFT adapter: lora_A has `rank` rows, lora_B has one
 * row per output. Padding is not written.
 */

/* Append a file with the arrays `first` .. `first + count - 1` of lm->param.
 * Errors are kept in buf->err. */
void tnk__lm_tensors_write(const tnk__lm_t *lm, size_t first, size_t count,
                           tnk__buf_t *buf);
/* Parse such a file into param[first] ..., n_params floats each, with zeroed
 * padding. `name` is the name of the file. TNK_EPROTO, TNK_ENOMEM. */
int tnk__lm_tensors_read(const tnk__lm_t *lm, size_t first, size_t count,
                         const uint8_t *data, size_t n, float *const *param,
                         const char *name, tnk__lm_why_t *why);

/* The config file of a checkpoint: PEFT's fields for programs that read
 * adapters, and the fields for resuming under "tnk". */
typedef struct {
  tnk__lm_config_t config;
  uint64_t n_steps;
  int has_optimizer;
  tnk__lm_sum_t adapter;
  tnk__lm_sum_t optimizer; /* valid with has_optimizer */
} tnk__lm_saved_config_t;

/* Write the file; errors are kept in buf->err. */
void tnk__lm_config_write(const tnk__lm_saved_config_t *saved, tnk__buf_t *buf);
int tnk__lm_config_read(tnk__lm_saved_config_t *out, const char *dir,
                        const tnk_allocator_t *alloc, tnk__lm_why_t *why);

#endif

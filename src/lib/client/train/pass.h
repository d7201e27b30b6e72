/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_CLIENT_TRAIN_PASS_H
#define TNK_LIB_CLIENT_TRAIN_PASS_H

#include "lib/base/arena.h"
#include "lib/client/train/op.h"
#include "lib/wire/message/results.h"

/*
 * Forward and backward passes. The data is split into chunks, each request
 * sends one chunk, and the results are joined.
 */

/* The examples of one request. */
typedef struct {
  size_t begin;
  size_t n;
  uint64_t n_bytes; /* as counted by the dispatch budget */
  uint64_t n_tokens;
} tnk__slice_t;

typedef struct {
  tnk__op_t op;
  tnk__arena_t arena;
  const tnk_datum_t *data;
  size_t n_data;
  const char *loss_fn;
  const tnk_loss_setting_t *settings;
  size_t n_settings;
  int forward_only;
  tnk__slice_t *slices;
  size_t n_slices;
  tnk_pass_t **results; /* one per chunk; NULL once joined */
  /* The release callback of lent data is called once. After it, or at once
   * without one, the memory is freed. */
  void (*release)(void *user);
  void *release_user;
  int is_lent;
  tnk__deferred_t released;
  int is_over;
} tnk__pass_op_t;

/* Make an operation of `size` bytes, beginning with a tnk__pass_op_t, for
 * custom.c. NULL without memory; then *promise is rejected. */
tnk__pass_op_t *tnk__pass_new(size_t size, const tnk__op_class_t *type,
                              tnk_training_t *training, const tnk_datum_t *data,
                              size_t n_data, const tnk_pass_options_t *options,
                              tnk_promise_t **promise);
/* Queue the pass. If the budget does not cover n_passes over its data, it is
 * destroyed and its promise rejected. */
void tnk__pass_enter(tnk__pass_op_t *pass, uint64_t n_passes);
/* Behavior that a custom loss shares with a plain pass. */
int tnk__pass_prepare(tnk__op_t *op, size_t *n_parts);
tnk__fwdbwd_t tnk__pass_request(tnk__op_t *op, size_t index, uint64_t number);
uint64_t tnk__pass_cost(tnk__op_t *op, size_t index);
uint64_t tnk__pass_tokens(tnk__op_t *op, size_t index);
int tnk__pass_result_read_part(tnk__op_t *op, size_t index,
                               const tnk__reply_t *reply, tnk__text_t *why);
void tnk__pass_submitted(tnk__op_t *op);
void tnk__pass_destroy(tnk__op_t *op);
/* Join the results of all chunks. The caller owns *out. */
int tnk__pass_join(tnk__pass_op_t *pass, tnk_pass_t **out);

#endif

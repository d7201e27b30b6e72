/* SPDX-License-Identifier: MIT */
#ifndef INTEROP_WIRE_ARGS_H
#define INTEROP_WIRE_ARGS_H

#include <jansson.h>

#include "tnk/tnk.h"

/*
 * The arguments of calls.json as this library's structs. Whatever is made
 * lives in the pool until `pool_free`, texts as long as the JSON.
 */
typedef struct pool_item {
  struct pool_item *next;
  max_align_t data[];
} pool_item_t;

typedef struct {
  pool_item_t *items;
} pool_t;

/* Zeroed; ends the program when memory is out. */
void *pool_get(pool_t *pool, size_t size);
void pool_free(pool_t *pool);

const char *arg_text(const json_t *args, const char *name);
int64_t arg_int(const json_t *args, const char *name, int64_t otherwise);
double arg_number(const json_t *args, const char *name, double otherwise);
tnk_choice_t arg_choice(const json_t *args, const char *name);
/* An object's members as pairs. */
const tnk_pair_t *arg_pairs(pool_t *pool, const json_t *args, const char *name,
                            size_t *n);
const char *const *arg_texts(pool_t *pool, const json_t *args, const char *name,
                             size_t *n);
/* "optimizer" and, for an unknown one, its JSON. */
tnk_optimizer_t arg_optimizer(pool_t *pool, const json_t *args,
                              const char **json);
/* A JSON value written out, compact. */
const char *arg_dump(pool_t *pool, const json_t *value);

tnk_model_input_t arg_input(pool_t *pool, const json_t *chunks);
tnk_tensor_t arg_tensor(pool_t *pool, const json_t *spec);
/* "data", each `times` times. */
const tnk_datum_t *arg_data(pool_t *pool, const json_t *args, size_t *n);
const tnk_loss_setting_t *arg_settings(pool_t *pool, const json_t *args,
                                       size_t *n);
tnk_sampling_params_t arg_params(pool_t *pool, const json_t *args);
tnk_sample_options_t arg_sample_options(pool_t *pool, const json_t *args);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_STORE_SHAPES_H
#define TNK_LIB_STORE_SHAPES_H

#include "lib/store/record.h"
#include "tnk/rest.h"

/* The shapes of the records of include/tnk/rest.h. */
extern const tnk__shape_t tnk__shape_run;
extern const tnk__shape_t tnk__shape_checkpoint;
extern const tnk__shape_t tnk__shape_weights_info;
extern const tnk__shape_t tnk__shape_external_files;
extern const tnk__shape_t tnk__shape_session;
extern const tnk__shape_t tnk__shape_session_summary;
extern const tnk__shape_t tnk__shape_sampler;
extern const tnk__shape_t tnk__shape_api_key;
extern const tnk__shape_t tnk__shape_usage;
extern const tnk__shape_t tnk__shape_storage;
extern const tnk__shape_t tnk__shape_audit_entry;

/* The sessions in a list of uses. Their order has no meaning. */
typedef struct {
  const char *id;
  const tnk_pair_t *user_metadata;
  size_t n_user_metadata;
} tnk__usage_session_t;

extern const tnk__shape_t tnk__shape_usage_session;

#endif

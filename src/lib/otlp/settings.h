/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_OTLP_SETTINGS_H
#define TNK_LIB_OTLP_SETTINGS_H

#include "lib/base/arena.h"
#include "lib/wire/format/location.h"
#include "tnk/otlp.h"

/* The kinds of data that have a target each. */
typedef enum {
  TNK__OTLP_TRACES = 0,
  TNK__OTLP_METRICS,
  TNK__OTLP_SIGNALS
} tnk__otlp_signal_t;

/* Where and how a kind of data is sent. */
typedef struct {
  int is_on;
  tnk__location_t at;  /* secret, because it may have a query */
  tnk_pair_t *headers; /* secret */
  size_t n_headers;
  uint64_t timeout_ms; /* of one attempt */
  int is_gzip;
} tnk__otlp_target_t;

typedef enum {
  TNK__OTLP_ALWAYS_ON = 0,
  TNK__OTLP_ALWAYS_OFF,
  TNK__OTLP_RATIO
} tnk__otlp_sampler_t;

/* The variables OTEL_*, checked. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__arena_t arena; /* of all strings, also of secrets */
  tnk__otlp_target_t targets[TNK__OTLP_SIGNALS];
  tnk__otlp_sampler_t sampler;
  int follows_parent; /* the sampler decides only for spans without parent */
  double ratio;
  const char *service_name;       /* or NULL */
  tnk_otlp_attribute_t *resource; /* OTEL_RESOURCE_ATTRIBUTES */
  size_t n_resource;
  const char *ca_file, *cert_file, *key_file; /* or NULL */
  uint64_t batch_delay_ms;
  uint64_t batch_patience_ms; /* for all attempts at a batch */
  uint64_t max_queue;         /* spans */
  uint64_t max_batch;         /* spans */
  uint64_t metrics_interval_ms;
  uint64_t metrics_patience_ms;
} tnk__otlp_settings_t;

/* Returns the value of a variable, or NULL. */
typedef const char *(*tnk__otlp_env_t)(const char *name);

/* Read all variables. No target is on if the environment asks for no export.
 * Returns TNK_OK, TNK_ENOMEM, or TNK_EINVAL with a sentence in `why` that names
 * the variable and has no secret. The caller must call
 * tnk__otlp_settings_deinit() in every case. */
int tnk__otlp_settings_read(tnk__otlp_settings_t *out,
                            const tnk_allocator_t *alloc, tnk__otlp_env_t env,
                            char *why, size_t why_size);
void tnk__otlp_settings_deinit(tnk__otlp_settings_t *settings);
/* Returns whether anything is to be exported. */
int tnk__otlp_settings_are_on(const tnk__otlp_settings_t *settings);

/* Returns whether a header of a target has a value that is in this text. */
int tnk__otlp_target_leaks(const tnk__otlp_target_t *target, const char *text);

/* Read "name=value,name=value" with percent-encoded values. Blanks around names
 * and values are dropped. Returns TNK_OK, TNK_ENOMEM or TNK_EINVAL. */
int tnk__otlp_pairs_read(tnk_pair_t **out, size_t *n, tnk__arena_t *arena,
                         const char *text);

#endif

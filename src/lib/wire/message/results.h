/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_WIRE_MESSAGE_RESULTS_H
#define TNK_LIB_WIRE_MESSAGE_RESULTS_H

#include <jansson.h>

#include "lib/wire/format/room.h"
#include "tnk/result.h"
#include "tnk/training.h"

typedef struct {
  const char *key;
  double value;
  uint64_t hash; /* exact number behind value, if is_hash */
  int is_hash;
} tnk__metric_t;

struct tnk_metrics {
  tnk__metric_t *items; /* in the server's order, without duplicate keys */
  const tnk__metric_t **by_key; /* the same, sorted by key */
  size_t n;
  tnk__arena_t arena; /* empty if the metrics belong to a pass */
};

/* Messages for the caller of a decoder to log, in the order of their detection.
 * If there are too many, the rest is dropped. */
enum { TNK__MAX_WARNINGS = 16 };
typedef struct {
  /* Sentences without values from the server. */
  const char *text[TNK__MAX_WARNINGS];
  size_t n;
} tnk__warnings_t;

/* Create metrics from n entries, which stay in place. A duplicate key keeps its
 * first position and its last value. Failures are kept in `room`. */
void tnk__metrics_build(tnk_metrics_t *metrics, tnk__room_t *room,
                        tnk__metric_t *items, size_t n);
/* Create metrics from a JSON object; NULL creates empty metrics. null becomes
 * NaN. Other values that are not numbers are omitted, with a warning if
 * `warnings` is not NULL. */
void tnk__metrics_from_json(tnk_metrics_t *metrics, tnk__room_t *room,
                            const json_t *object, tnk__warnings_t *warnings);
/* The metric with this key, or NULL. */
const tnk__metric_t *tnk__metrics_find(const tnk_metrics_t *metrics,
                                       const char *key);

/* Add a sentence to the warnings, unless it is already there. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void tnk__warnings_add(tnk__warnings_t *warnings, tnk__room_t *room,
                       const char *format, ...);

/*
 * The structs of the result types of tnk/result.h. Each result is one arena
 * that also contains the struct itself. The accessors of tnk/result.h that need
 * no promise are in results.c.
 *
 * lib/wire/message/pass_result.h, lib/wire/message/sample_wire.h and
 * lib/wire/message/optim_wire.h create results, on any thread. Results are then
 * read-only. Exception: the functions below that say so.
 *
 * The tnk__*_free() functions have the signature for tnk__promise_resolve().
 * They take the allocator, because a result may outlive the allocator struct of
 * its creator. It must be the same allocator.
 */

/* A tensor of an output, with the server's name. */
typedef struct {
  const char *name;
  tnk_tensor_t tensor;
} tnk__field_t;

/* The outputs of one example. */
typedef struct {
  const tnk__field_t *fields;
  size_t n_fields;
} tnk__output_t;

struct tnk_pass {
  tnk_metrics_t metrics;
  double own_loss; /* computed from logprobs and weights */
  int has_own_loss;
  const char *output_type;
  const tnk__output_t *outputs;
  size_t n_outputs;
  tnk__warnings_t warnings;
  tnk_pass_t *parts; /* results combined into this one; owned */
  tnk_pass_t *next;  /* next of these parts */
  tnk__arena_t arena;
};

/* One sampled sequence. */
typedef struct {
  const int32_t *tokens;
  size_t n_tokens;
  const float *logprobs; /* NULL: none */
  size_t n_logprobs;
  tnk_stop_reason_t stop_reason;
  const char *id;         /* NULL: none */
  const tnk_topk_t *topk; /* NULL: none */
} tnk__sequence_t;

struct tnk_samples {
  tnk__sequence_t *sequences;
  size_t n_sequences;
  const float *prompt_logprobs; /* NULL: none */
  size_t n_prompt_logprobs;
  int32_t cache_hit_tokens;
  const tnk_topk_t *prompt_topk;
  const tnk_tensor_t *target_logprobs;
  const tnk_tensor_t *alt_tokens;
  const tnk_tensor_t *alt_logprobs;
  tnk__arena_t arena;
};

/* Free a tnk_pass_t, tnk_samples_t or tnk_metrics_t; NULL does nothing. */
void tnk__pass_result_free(const tnk_allocator_t *alloc, void *value);
void tnk__samples_free(const tnk_allocator_t *alloc, void *value);
void tnk__metrics_free(const tnk_allocator_t *alloc, void *value);

/* Add the metrics of a custom loss, before the result is published. The
 * caller's metrics are copied and replace metrics of the server with the same
 * names. "loss:sum" becomes `loss`; the server's value moves to
 * "surrogate_loss:sum". Returns TNK_OK, or TNK_ENOMEM without any change. */
int tnk__pass_result_set_custom_loss(tnk_pass_t *pass, double loss,
                                     const tnk_custom_metric_t *metrics,
                                     size_t n_metrics);

/* Set the ids of the sequences, in order, before the result is published. The
 * ids come from the response to the submission. Returns TNK_OK, also without
 * any ids. Returns TNK_EPROTO if the number of ids differs from the number of
 * sequences; no id is set then. Otherwise returns TNK_ENOMEM. */
int tnk__samples_set_ids(tnk_samples_t *samples, const char *const *ids,
                         size_t n);

#endif

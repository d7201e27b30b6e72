#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/wire/data/data.h"
#include "lib/wire/message/pass_result.h"
#include "tnk/error.h"

/* The state of the combination while metrics are reduced. */
typedef struct {
  tnk__room_t room;
  tnk_pass_t *const *parts;
  size_t n_parts;
  const double *weights;
  double total;   /* sum of the weights, above 0 */
  double *values; /* values of the current metric, one for each chunk */
  tnk_pass_t *pass;
  tnk__metric_t *items;
  size_t n_items;
} joint_t;

typedef void (*reducer_t)(joint_t *joint, const char *key);

static void add(joint_t *joint, const char *key, double value) {
  joint->items[joint->n_items++] = (tnk__metric_t){.key = key, .value = value};
}

static double weighted_mean(const joint_t *joint) {
  double sum = 0;

  for (size_t i = 0; i < joint->n_parts; i++)
    sum += joint->weights[i] * joint->values[i];
  return sum / joint->total;
}

/* sign 1: the maximum; -1: the minimum. NaN wins over both. */
static double extreme(const joint_t *joint, double sign) {
  double best = joint->values[0];

  for (size_t i = 1; i < joint->n_parts; i++) {
    double value = joint->values[i];

    if (isnan(value) || sign * value > sign * best)
      best = isnan(best) ? best : value;
  }
  return best;
}

static void reduce_mean(joint_t *joint, const char *key) {
  add(joint, key, weighted_mean(joint));
}

static void reduce_sum(joint_t *joint, const char *key) {
  double sum = 0;

  for (size_t i = 0; i < joint->n_parts; i++)
    sum += joint->values[i];
  add(joint, key, sum);
}

static void reduce_min(joint_t *joint, const char *key) {
  add(joint, key, extreme(joint, -1));
}

static void reduce_max(joint_t *joint, const char *key) {
  add(joint, key, extreme(joint, 1));
}

static void reduce_slack(joint_t *joint, const char *key) {
  add(joint, key, extreme(joint, 1) - weighted_mean(joint));
}

/* Keep the value of each chunk under a separate key: "k:unique", "k:unique_1"
 * ... */
static void reduce_unique(joint_t *joint, const char *key) {
  size_t size = strlen(key) + 24;

  add(joint, key, joint->values[0]);
  for (size_t i = 1; i < joint->n_parts; i++) {
    char *own = tnk__room_get(&joint->room, size, 1);

    if (own == NULL)
      return;
    snprintf(own, size, "%s_%zu", key, i);
    add(joint, own, joint->values[i]);
  }
}

/* The integer part of the value modulo 2^64: its bits, shifted. */
static uint64_t hash_of(double value) {
  uint64_t bits, number;
  int shift;

  memcpy(&bits, &value, sizeof(bits));
  /* 1075 is the bias of the exponent, 1023, plus the 52 bits of the fraction,
   * which is used as an integer. Zero and subnormal numbers end far below 1. */
  shift = (int)(bits >> 52 & 0x7ff) - 1075;
  number = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
  if (shift >= 64 || shift <= -64)
    number = 0;
  else
    number = shift >= 0 ? number << shift : number >> -shift;
  return bits >> 63 ? 0 - number : number;
}

static void reduce_hash(joint_t *joint, const char *key) {
  uint64_t sum = 0;

  for (size_t i = 0; i < joint->n_parts; i++) {
    if (!isfinite(joint->values[i])) {
      tnk__warnings_add(&joint->pass->warnings, &joint->room,
                        "metric \"%.64s\" is left out: it is not finite", key);
      return;
    }
    sum += hash_of(joint->values[i]);
  }
  add(joint, key, (double)sum);
  joint->items[joint->n_items - 1].hash = sum;
  joint->items[joint->n_items - 1].is_hash = 1;
}

static const struct {
  const char *name;
  reducer_t reduce;
} reducers[] = {{"mean", reduce_mean},   {"sum", reduce_sum},
                {"min", reduce_min},     {"max", reduce_max},
                {"slack", reduce_slack}, {"unique", reduce_unique},
                {"hash2", reduce_hash}};

/* The reducer for the suffix after the last colon. A key without one is
 * averaged. */
static reducer_t reducer_of(const char *key) {
  const char *colon = strrchr(key, ':');

  if (colon == NULL)
    return reduce_mean;
  for (size_t i = 0; i < sizeof(reducers) / sizeof(reducers[0]); i++)
    if (strcmp(colon + 1, reducers[i].name) == 0)
      return reducers[i].reduce;
  return NULL;
}

/* Collect the values of a key. Returns 0 if a chunk does not have it. */
static int collect(joint_t *joint, const char *key) {
  for (size_t i = 0; i < joint->n_parts; i++) {
    const tnk__metric_t *found =
        tnk__metrics_find(&joint->parts[i]->metrics, key);

    if (found == NULL)
      return 0;
    joint->values[i] = found->value;
  }
  return 1;
}

/* The official client fails the whole result if it cannot reduce a key. The
 * gradient has been applied by then, so this library only warns. */
static void reduce_key(joint_t *joint, const char *key) {
  reducer_t reduce = reducer_of(key);
  const char *why = NULL;

  if (reduce == NULL)
    why = "its ending is not known";
  else if (!collect(joint, key))
    why = "not every chunk has it";
  if (why == NULL)
    reduce(joint, key);
  else
    tnk__warnings_add(&joint->pass->warnings, &joint->room,
                      "metric \"%.64s\" is left out: %s", key, why);
}

/* Only "unique" turns one metric into several. */
static size_t count_items(const joint_t *joint) {
  const tnk_metrics_t *first = &joint->parts[0]->metrics;
  size_t n = first->n;

  for (size_t i = 0; i < first->n; i++)
    if (reducer_of(first->items[i].key) == reduce_unique)
      n += joint->n_parts - 1;
  return n;
}

static void join_metrics(joint_t *joint) {
  const tnk_metrics_t *first = &joint->parts[0]->metrics;
  tnk_pass_t *pass = joint->pass;

  /* One array serves all keys: each is reduced before the next is collected. */
  joint->values =
      tnk__room_get(&joint->room, joint->n_parts, sizeof(*joint->values));
  joint->items =
      tnk__room_get(&joint->room, count_items(joint), sizeof(*joint->items));
  for (size_t i = 0; i < first->n && joint->room.err == TNK_OK; i++)
    reduce_key(joint, first->items[i].key);
  tnk__metrics_build(&pass->metrics, &joint->room, joint->items,
                     joint->n_items);
  /* Users look at this metric first, and a custom loss requires it. */
  if (joint->room.err == TNK_OK &&
      tnk__metrics_find(&pass->metrics, "loss:sum") == NULL)
    tnk__warnings_add(&pass->warnings, &joint->room,
                      "the server sent no metric \"loss:sum\"");
}

/* The weight of a chunk is its number of outputs. Without any outputs it is the
 * number of examples sent. If that is unknown, all chunks have the same
 * weight. */
static void weigh(joint_t *joint, const size_t *n_data) {
  double *weights =
      tnk__room_get(&joint->room, joint->n_parts, sizeof(*weights));
  int from = 0;

  for (joint->total = 0; weights != NULL && !(joint->total > 0); from++) {
    for (size_t i = 0; i < joint->n_parts; i++) {
      weights[i] = 1;
      if (from == 0)
        weights[i] = (double)joint->parts[i]->n_outputs;
      else if (from == 1 && n_data != NULL)
        weights[i] = (double)n_data[i];
      joint->total += weights[i];
    }
  }
  joint->weights = weights;
}

static void join_outputs(joint_t *joint) {
  tnk_pass_t *pass = joint->pass;
  tnk__output_t *outputs;
  size_t at = 0;

  /* As in the official client. A different type in a later chunk only causes a
   * warning. */
  pass->output_type = joint->parts[0]->output_type;
  for (size_t i = 0; i < joint->n_parts; i++)
    pass->n_outputs += joint->parts[i]->n_outputs;
  outputs = tnk__room_get(&joint->room, pass->n_outputs, sizeof(*outputs));
  for (size_t i = 0; i < joint->n_parts && outputs != NULL; i++) {
    const tnk_pass_t *part = joint->parts[i];

    if (part->n_outputs > 0)
      memcpy(outputs + at, part->outputs, part->n_outputs * sizeof(*outputs));
    at += part->n_outputs;
    if (strcmp(part->output_type, pass->output_type) != 0)
      tnk__warnings_add(&pass->warnings, &joint->room,
                        "the chunks have outputs of different types");
    for (size_t w = 0; w < part->warnings.n; w++)
      tnk__warnings_add(&pass->warnings, &joint->room, "%s",
                        part->warnings.text[w]);
  }
  pass->outputs = outputs;
}

int tnk__pass_result_combine(tnk_pass_t **out, const tnk_allocator_t *alloc,
                             tnk_pass_t *const *parts, const size_t *n_data,
                             size_t n) {
  joint_t joint = {.parts = parts, .n_parts = n};

  *out = NULL;
  if (n == 0)
    return TNK_EINTERNAL;
  /* The added memory follows from the content of the parts, so no limit is
   * needed. */
  tnk__room_init(&joint.room, alloc, SIZE_MAX);
  joint.pass = tnk__room_zeroed(&joint.room, 1, sizeof(*joint.pass));
  if (joint.pass != NULL) {
    join_outputs(&joint);
    weigh(&joint, n_data);
    join_metrics(&joint);
  }
  if (joint.room.err != TNK_OK) {
    tnk__arena_deinit(&joint.room.arena);
    return joint.room.err;
  }
  /* The outputs point into the parts, which therefore have the same
   * lifetime. */
  for (size_t i = n; i > 0; i--) {
    parts[i - 1]->next = joint.pass->parts;
    joint.pass->parts = parts[i - 1];
  }
  joint.pass->arena = joint.room.arena;
  *out = joint.pass;
  return TNK_OK;
}

/* ---- Computing a missing loss ---- */

/* Get the weights of an example. Without weights each is 1, and 1 is returned
 * too. Returns 0 if they are sparse or not floating-point numbers. */
static int weights_of(const tnk_datum_t *datum, tnk_tensor_t *out) {
  const size_t at = tnk__datum_find(datum, "weights");

  *out = (tnk_tensor_t){0};
  if (at == SIZE_MAX)
    return 1;
  *out = tnk__datum_input_at(datum, at).tensor;
  return out->crow == NULL && !tnk__dtype_is_int(out->dtype);
}

/* Returns 1 if the loss of one example was added. */
static int add_loss(double *sum, const tnk_tensor_t *logprobs,
                    const tnk_datum_t *datum) {
  tnk_tensor_t weights;
  double loss = 0;

  if (logprobs == NULL || logprobs->crow != NULL ||
      tnk__dtype_is_int(logprobs->dtype) || !weights_of(datum, &weights) ||
      (weights.data != NULL && weights.n_values != logprobs->n_values))
    return 0;
  for (size_t i = 0; i < logprobs->n_values; i++) {
    const double weight =
        weights.data != NULL ? tnk__tensor_float(&weights, i) : 1;

    /* An undefined logprob of a token with weight 0 must not make the sum
     * undefined. */
    if (weight != 0)
      loss -= weight * tnk__tensor_float(logprobs, i);
  }
  *sum += loss;
  return 1;
}

void tnk__pass_fill_loss(tnk_pass_t *pass, const char *loss_fn,
                         const tnk_datum_t *data, size_t n_data) {
  double sum = 0;

  if (strcmp(loss_fn, "cross_entropy") != 0 || pass->n_outputs != n_data)
    return;
  for (size_t i = 0; i < n_data; i++)
    if (!add_loss(&sum, tnk_pass_tensor(pass, i, "logprobs"), &data[i]))
      return;
  pass->own_loss = sum;
  pass->has_own_loss = 1;
}

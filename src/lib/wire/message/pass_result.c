/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/pass_result.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/wire/data/data.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/message/tensor_read.h"
#include "tinker.pb-c.h"
#include "tnk/error.h"

/* ---- One result ---- */

typedef TinkerPublic__ForwardBackwardOutput message_t;
typedef TinkerPublic__ArrayRecord record_t;

/* One field of a record, with all its examples in one array. */
typedef struct {
  const char *name;
  tnk_tensor_t whole; /* all elements, without a shape */
  /* N + 1 offsets, in bytes of the type in the message. */
  const int64_t *offsets;
  size_t n;
  size_t size; /* size of an element in the message */
  int64_t per_row;
  const TinkerPublic__BatchedTensor *message;
} column_t;

/* ---- One result: protobuf ---- */

/* Set the number of elements in a row. Returns whether the trailing dimensions
 * are possible. */
static int trailing(column_t *column) {
  tnk_tensor_t probe = {.n_dims = (uint32_t)column->message->n_trailing_shape};
  size_t n;

  column->per_row = 1;
  /* One dimension is needed for the rows. */
  if (column->message->n_trailing_shape >= TNK_MAX_DIMS)
    return 0;
  if (probe.n_dims == 0)
    return 1;
  memcpy(probe.shape, column->message->trailing_shape,
         probe.n_dims * sizeof(probe.shape[0]));
  if (!tnk__tensor_elements(&probe, &n) || n > INT64_MAX)
    return 0;
  column->per_row = (int64_t)n;
  return 1;
}

static int read_column(tnk__room_t *room, column_t *column,
                       const TinkerPublic__ArrayRecord__FieldsEntry *entry) {
  const TinkerPublic__BatchedTensor *message = entry->value;
  size_t n;

  if (message == NULL) {
    tnk__room_bad(room);
    return 0;
  }
  column->name = entry->key;
  column->message = message;
  column->size = tnk__wire_size((int)message->dtype);
  if (!tnk__wire_elements(room, &message->data, (int)message->dtype,
                          &column->whole))
    return 0;
  column->offsets = tnk__wire_array(room, &message->offsets, 8, &n);
  column->n = n == 0 ? 0 : n - 1;
  if (!trailing(column))
    tnk__room_bad(room);
  for (size_t i = 0; i < n && room->err == TNK_OK; i++)
    if (column->offsets[i] < 0 ||
        (uint64_t)column->offsets[i] % column->size != 0 ||
        (i > 0 && column->offsets[i] < column->offsets[i - 1]))
      tnk__room_bad(room);
  return room->err == TNK_OK;
}

/* Set the part of a column that belongs to example i. */
static void cut(tnk__room_t *room, tnk_pass_t *pass, const column_t *column,
                size_t i, tnk_tensor_t *out) {
  uint64_t from = (uint64_t)column->offsets[i] / column->size;
  uint64_t to = (uint64_t)column->offsets[i + 1] / column->size;
  size_t n_dims = column->message->n_trailing_shape;
  const tnk_tensor_t *whole = &column->whole;

  if (to > whole->n_values) {
    tnk__warnings_add(&pass->warnings, room,
                      "output \"%.64s\" is shorter than its offsets say",
                      column->name);
    to = whole->n_values;
    from = from < to ? from : to;
  }
  *out = (tnk_tensor_t){.dtype = whole->dtype};
  out->n_values = (size_t)(to - from);
  if (out->n_values > 0)
    out->data =
        (const char *)whole->data +
        from * (whole->dtype == TNK_I64 ? sizeof(int64_t) : sizeof(float));
  out->n_dims = (uint32_t)n_dims + 1;
  for (size_t d = 0; d < n_dims; d++)
    out->shape[d + 1] = column->message->trailing_shape[d];
  /* Rows without elements cannot be counted, so there are none. */
  if (column->per_row > 0) {
    out->shape[0] = (int64_t)out->n_values / column->per_row;
    if ((int64_t)out->n_values % column->per_row != 0)
      tnk__room_bad(room);
  } else if (out->n_values > 0) {
    tnk__room_bad(room);
  }
}

/* The number of examples in a record: its own count, or the count of its first
 * field. */
static size_t record_count(tnk__room_t *room, const record_t *record) {
  const TinkerPublic__BatchedTensor *first =
      record->n_fields > 0 ? record->fields[0]->value : NULL;

  if (record->num_datums < 0 || (uint64_t)record->num_datums > SIZE_MAX)
    tnk__room_bad(room);
  else if (record->num_datums > 0)
    return (size_t)record->num_datums;
  return first == NULL || first->offsets.len < 8 ? 0
                                                 : first->offsets.len / 8 - 1;
}

static void read_record(tnk__room_t *room, tnk_pass_t *pass,
                        const record_t *record, tnk__output_t *outputs,
                        size_t count) {
  size_t n_fields = record->n_fields;
  column_t *columns = tnk__room_zeroed(room, n_fields, sizeof(*columns));
  tnk__field_t *fields;

  /* A record without fields may claim many examples; they need no memory. */
  for (size_t f = 0; f < n_fields && columns != NULL; f++) {
    if (!read_column(room, &columns[f], record->fields[f]))
      return;
    /* More examples than the record's count are accepted, as in the official
     * client. */
    if (columns[f].n < count)
      tnk__room_bad(room);
  }
  if (room->err != TNK_OK || n_fields == 0)
    return;
  /* Every example has 8 bytes of offsets in every field, so the product is less
   * than the size of the body. */
  fields = tnk__room_get(room, n_fields * count, sizeof(*fields));
  for (size_t i = 0; i < count && fields != NULL; i++) {
    outputs[i].fields = fields + i * n_fields;
    outputs[i].n_fields = n_fields;
    for (size_t f = 0; f < n_fields && room->err == TNK_OK; f++) {
      fields[i * n_fields + f].name = columns[f].name;
      cut(room, pass, &columns[f], i, &fields[i * n_fields + f].tensor);
    }
  }
}

static void read_records(tnk__room_t *room, tnk_pass_t *pass,
                         const message_t *message) {
  tnk__output_t *outputs;
  size_t total = 0;
  size_t at = 0;

  for (size_t i = 0; i < message->n_loss_fn_outputs; i++) {
    size_t count = record_count(room, message->loss_fn_outputs[i]);

    /* A record without fields may claim any number of examples without
     * containing any. */
    if (count > SIZE_MAX - total)
      tnk__room_bad(room);
    if (room->err != TNK_OK)
      return;
    total += count;
  }
  outputs = tnk__room_zeroed(room, total, sizeof(*outputs));
  for (size_t i = 0; i < message->n_loss_fn_outputs && outputs != NULL; i++) {
    const record_t *record = message->loss_fn_outputs[i];
    size_t count = record_count(room, record);

    read_record(room, pass, record, outputs + at, count);
    at += count;
  }
  pass->outputs = outputs;
  pass->n_outputs = total;
}

/* "a.b:C" becomes C if there are records. Otherwise it stays unchanged. */
static const char *output_type(const message_t *message) {
  const char *type = message->loss_fn_output_type;
  const char *colon = strrchr(type, ':');

  if (message->n_loss_fn_outputs > 0 && colon != NULL)
    return colon + 1;
  return message->n_loss_fn_outputs == 0 && type[0] == '\0' ? "ArrayRecord"
                                                            : type;
}

static void read_protobuf(tnk__room_t *room, tnk_pass_t *pass, const void *body,
                          size_t n) {
  ProtobufCAllocator alloc = tnk__room_protobuf(room);
  const message_t *message =
      tinker_public__forward_backward_output__unpack(&alloc, n, body);
  tnk__metric_t *metrics;

  if (message == NULL) {
    tnk__room_bad(room);
    return;
  }
  pass->output_type = output_type(message);
  read_records(room, pass, message);
  metrics = tnk__room_zeroed(room, message->n_metrics, sizeof(*metrics));
  for (size_t i = 0; i < message->n_metrics && metrics != NULL; i++) {
    metrics[i].key = message->metrics[i]->key;
    metrics[i].value = message->metrics[i]->value;
  }
  tnk__metrics_build(&pass->metrics, room, metrics, message->n_metrics);
}

/* ---- One result: JSON ---- */

/* Most examples have the same fields, so reuse the name of the previous
 * example's field. */
static const char *field_name(tnk__room_t *room, const tnk__output_t *last,
                              size_t f, const char *name) {
  if (last != NULL && f < last->n_fields &&
      strcmp(last->fields[f].name, name) == 0)
    return last->fields[f].name;
  return tnk__room_text(room, name);
}

/* Returns whether a member can be a tensor at all. */
static int looks_like_tensor(const json_t *value) {
  const json_t *first = json_array_get(value, 0);

  if (json_is_array(value))
    return first == NULL || json_is_number(first) || json_is_null(first);
  return json_is_number(value) || tnk__json_arr(value, "data") != NULL;
}

static void read_json_output(tnk__room_t *room, tnk_pass_t *pass,
                             const json_t *object, tnk__output_t *output,
                             const tnk__output_t *last) {
  tnk__field_t *fields =
      tnk__room_get(room, json_object_size(object), sizeof(*fields));
  const char *name;
  json_t *value;
  size_t n = 0;

  if (!json_is_object(object) && !json_is_null(object))
    tnk__room_bad(room);
  json_object_foreach((json_t *)object, name, value) {
    if (room->err != TNK_OK)
      return;
    if (!looks_like_tensor(value)) {
      tnk__warnings_add(&pass->warnings, room, "output \"%.64s\" is no tensor",
                        name);
      continue;
    }
    fields[n].name = field_name(room, last, n, name);
    if (tnk__json_tensor(room, value, &fields[n].tensor))
      n++;
  }
  output->fields = fields;
  output->n_fields = n;
}

static void read_json_outputs(tnk__room_t *room, tnk_pass_t *pass,
                              const json_t *array) {
  size_t n = json_array_size(array);
  tnk__output_t *outputs = tnk__room_zeroed(room, n, sizeof(*outputs));

  for (size_t i = 0; i < n && room->err == TNK_OK; i++)
    read_json_output(room, pass, json_array_get(array, i), &outputs[i],
                     i > 0 ? &outputs[i - 1] : NULL);
  pass->outputs = outputs;
  pass->n_outputs = n;
}

static void read_json(tnk__room_t *room, tnk_pass_t *pass, const void *body,
                      size_t n) {
  const json_t *outputs = NULL, *metrics = NULL;
  const char *type = "";
  json_t *root;
  int err = tnk__json_parse_object(&root, body, n);

  if (err != TNK_OK) {
    room->err = err;
    return;
  }
  if (tnk__json_get_array(root, "loss_fn_outputs", &outputs) ==
          TNK__JSON_WRONG ||
      tnk__json_get_object(root, "metrics", &metrics) == TNK__JSON_WRONG ||
      tnk__json_get_text(root, "loss_fn_output_type", &type) == TNK__JSON_WRONG)
    tnk__room_bad(room);
  /* At least one member of a result must be present. */
  if (json_object_get(root, "loss_fn_outputs") == NULL &&
      json_object_get(root, "metrics") == NULL)
    tnk__room_bad(room);
  pass->output_type = tnk__room_text(room, type);
  if (room->err == TNK_OK)
    read_json_outputs(room, pass, outputs);
  if (room->err == TNK_OK)
    tnk__metrics_from_json(&pass->metrics, room, metrics, &pass->warnings);
  json_decref(root);
}

int tnk__pass_result_read(tnk_pass_t **out, const tnk_allocator_t *alloc,
                          const void *body, size_t n, int is_proto) {
  tnk__room_t room;
  tnk_pass_t *pass;

  *out = NULL;
  tnk__room_init(&room, alloc, n);
  pass = tnk__room_zeroed(&room, 1, sizeof(*pass));
  if (pass != NULL && is_proto)
    read_protobuf(&room, pass, body, n);
  else if (pass != NULL)
    read_json(&room, pass, body, n);
  if (room.err != TNK_OK) {
    tnk__arena_deinit(&room.arena);
    return room.err;
  }
  pass->arena = room.arena;
  *out = pass;
  return TNK_OK;
}

/* ---- Combining ---- */

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

/* ---- Combining: computing a missing loss ---- */

void tnk__pass_fill_loss(tnk_pass_t *pass, const char *loss_fn,
                         const tnk_datum_t *data, size_t n_data) {
  double sum = 0;

  if (strcmp(loss_fn, "cross_entropy") != 0 || pass->n_outputs != n_data)
    return;
  for (size_t i = 0; i < n_data; i++)
    if (!tnk__datum_add_loss(&sum, tnk_pass_tensor(pass, i, "logprobs"),
                             &data[i]))
      return;
  pass->own_loss = sum;
  pass->has_own_loss = 1;
}

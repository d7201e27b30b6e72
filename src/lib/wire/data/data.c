/* SPDX-License-Identifier: MIT */
#include "lib/wire/data/data.h"

#include <string.h>

#include "lib/base/options.h"
#include "tnk/error.h"

/* ---- Dmel ---- */

/* The head: a mark, which precedes a tensor of one constant value, the type of
 * the elements, the number of dimensions, and the dimensions. The numbers are
 * in groups of seven bits, the lowest first. */
enum { CONSTANT = 254, MAX_DTYPE = 7, MORE = 0x80 };

typedef struct {
  const uint8_t *at;
  const uint8_t *end;
} head_t;

/* Returns NULL, or a description of the fault. */
static const char *read_number(head_t *head, uint64_t *out) {
  uint64_t value = 0;
  uint8_t byte = MORE;

  for (unsigned shift = 0; (byte & MORE) != 0; shift += 7) {
    if (head->at == head->end)
      return "its head is cut off";
    /* Nine groups suffice for any real number. */
    if (shift >= 63)
      return "a number in its head is too large";
    byte = *head->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
  }
  *out = value;
  return NULL;
}

static const char *read_head(head_t *head, uint64_t *length) {
  uint64_t n_dims, dim;
  const char *why;

  if (head->at < head->end && *head->at == CONSTANT)
    head->at++;
  if (head->at == head->end)
    return "its head is cut off";
  if (*head->at++ > MAX_DTYPE)
    return "its elements are of no known type";
  why = read_number(head, &n_dims);
  if (why == NULL && n_dims == 0)
    why = "it has no dimensions";
  /* Each dimension takes at least a byte, so the input bounds this loop. */
  for (uint64_t i = 0; why == NULL && i < n_dims; i++)
    why = read_number(head, i == 0 ? length : &dim);
  return why == NULL && *length > INT32_MAX ? "it is too long" : why;
}

int64_t tnk__dmel_length(const void *bytes, size_t n, const char **why) {
  head_t head = {.at = bytes, .end = (const uint8_t *)bytes + n};
  uint64_t length = 0;
  const char *wrong = read_head(&head, &length);

  if (why != NULL)
    *why = wrong;
  return wrong == NULL ? (int64_t)length : -1;
}

/* ---- Data ---- */

tnk_tensor_t tnk_tensor_i64(const int64_t *values, size_t n) {
  return (tnk_tensor_t){.dtype = TNK_I64, .data = values, .n_values = n};
}

tnk_tensor_t tnk_tensor_f32(const float *values, size_t n) {
  return (tnk_tensor_t){.dtype = TNK_F32, .data = values, .n_values = n};
}

tnk_chunk_t tnk_chunk_text(const int32_t *tokens, size_t n_tokens) {
  return (tnk_chunk_t){
      .kind = TNK_CHUNK_TEXT, .tokens = tokens, .n_tokens = n_tokens};
}

static int parse_path(tnk_path_t *out, const char *text) {
  static const char scheme[] = "tinker://";
  static const struct {
    const char *text;
    tnk_path_kind_t kind;
  } kinds[] = {{"weights", TNK_PATH_WEIGHTS},
               {"sampler_weights", TNK_PATH_SAMPLER_WEIGHTS},
               {"external_weights", TNK_PATH_EXTERNAL_WEIGHTS}};
  const char *run, *kind, *name;

  if (strncmp(text, scheme, sizeof(scheme) - 1) != 0)
    return TNK_EINVAL;
  run = text + sizeof(scheme) - 1;
  kind = strchr(run, '/');
  name = kind == NULL ? NULL : strchr(kind + 1, '/');
  /* A name with a slash would be a path of more components, and no component
   * may be empty. */
  if (name == NULL || kind == run || name[1] == '\0' ||
      strchr(name + 1, '/') != NULL)
    return TNK_EINVAL;
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    size_t n = strlen(kinds[i].text);

    if ((size_t)(name - kind - 1) == n &&
        memcmp(kind + 1, kinds[i].text, n) == 0) {
      out->kind = kinds[i].kind;
      out->run = run;
      out->run_length = (size_t)(kind - run);
      out->name = name + 1;
      return TNK_OK;
    }
  }
  return TNK_EINVAL;
}

int tnk_path_parse(tnk_path_t *out, const char *text) {
  tnk_path_t own = TNK_PATH_INIT;
  int err;

  if (out == NULL || text == NULL)
    return TNK_EINVAL;
  err = parse_path(&own, text);
  return err == TNK_OK ? TNK__FILL(tnk_path_t, out, &own) : err;
}

size_t tnk__dtype_size(tnk_dtype_t dtype) {
  switch (dtype) {
  case TNK_I64:
    return sizeof(int64_t);
  case TNK_F32:
    return sizeof(float);
  case TNK_I32:
    return sizeof(int32_t);
  case TNK_F64:
    return sizeof(double);
  }
  return 0;
}

size_t tnk__dtype_wire_size(tnk_dtype_t dtype) {
  return tnk__dtype_is_int(dtype) ? sizeof(int64_t) : sizeof(float);
}

int tnk__dtype_is_int(tnk_dtype_t dtype) {
  return dtype == TNK_I64 || dtype == TNK_I32;
}

int tnk__tensor_elements(const tnk_tensor_t *tensor, size_t *out) {
  size_t n = 1;
  int zero = 0;

  if (tensor->n_dims == 0) {
    *out = tensor->n_values;
    return 1;
  }
  for (uint32_t i = 0; i < tensor->n_dims; i++) {
    if (tensor->shape[i] < 0)
      return 0;
    /* Look for a zero first, because the other dimensions may overflow then. */
    zero |= tensor->shape[i] == 0;
  }
  /* If one dimension is zero, the others may have any size. */
  for (uint32_t i = 0; i < tensor->n_dims && !zero; i++) {
    if ((uint64_t)tensor->shape[i] > SIZE_MAX / n)
      return 0;
    n *= (size_t)tensor->shape[i];
  }
  *out = zero ? 0 : n;
  return 1;
}

size_t tnk__tensor_n_crow(const tnk_tensor_t *tensor) {
  return tensor->crow == NULL ? 0 : (size_t)tensor->shape[0] + 1;
}

int64_t tnk__tensor_int(const tnk_tensor_t *tensor, size_t i) {
  if (tensor->dtype == TNK_I32)
    return ((const int32_t *)tensor->data)[i];
  return ((const int64_t *)tensor->data)[i];
}

double tnk__tensor_float(const tnk_tensor_t *tensor, size_t i) {
  if (tensor->dtype == TNK_F32)
    return (double)((const float *)tensor->data)[i];
  return ((const double *)tensor->data)[i];
}

size_t tnk__input_n_chunks(const tnk_model_input_t *input) {
  return input->tokens != NULL ? 1 : input->n_chunks;
}

tnk_chunk_t tnk__input_chunk(const tnk_model_input_t *input, size_t i) {
  return input->tokens != NULL ? tnk_chunk_text(input->tokens, input->n_tokens)
                               : input->chunks[i];
}

uint64_t tnk__input_tokens(const tnk_model_input_t *input, int *is_whole) {
  uint64_t n = 0;

  *is_whole = 1;
  for (size_t i = 0; i < tnk__input_n_chunks(input); i++) {
    const tnk_chunk_t chunk = tnk__input_chunk(input, i);

    if (chunk.kind == TNK_CHUNK_TEXT)
      n += chunk.n_tokens;
    else if (chunk.kind == TNK_CHUNK_DMEL)
      n += (uint64_t)tnk__dmel_length(chunk.bytes, chunk.n_bytes, NULL);
    else if (chunk.expected_tokens > 0)
      n += (uint64_t)chunk.expected_tokens;
    else
      *is_whole = 0;
  }
  return n;
}

int64_t tnk__input_length(const tnk_model_input_t *input) {
  int is_whole;
  const uint64_t n = tnk__input_tokens(input, &is_whole);

  return is_whole ? (int64_t)n : -1;
}

size_t tnk__datum_n_inputs(const tnk_datum_t *datum) {
  return (size_t)(datum->targets != NULL) + (size_t)(datum->weights != NULL) +
         datum->n_loss_inputs;
}

tnk_loss_input_t tnk__datum_input_at(const tnk_datum_t *datum, size_t i) {
  const tnk_model_input_t *input = &datum->input;

  /* The check requires that the length is known. */
  if (datum->targets != NULL && i-- == 0)
    return (tnk_loss_input_t){
        "target_tokens",
        tnk_tensor_i64(datum->targets, (size_t)tnk__input_length(input))};
  if (datum->weights != NULL && i-- == 0)
    return (tnk_loss_input_t){
        "weights",
        tnk_tensor_f32(datum->weights, (size_t)tnk__input_length(input))};
  return datum->loss_inputs[i];
}

size_t tnk__datum_find(const tnk_datum_t *datum, const char *name) {
  for (size_t i = 0; i < tnk__datum_n_inputs(datum); i++)
    if (strcmp(tnk__datum_input_at(datum, i).name, name) == 0)
      return i;
  return SIZE_MAX;
}

/* ---- Losses ---- */

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

int tnk__datum_add_loss(double *sum, const tnk_tensor_t *logprobs,
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

/* ---- Sizes ---- */

static size_t input_bytes(const tnk_model_input_t *input, size_t token_bytes) {
  size_t n = 0;

  for (size_t i = 0; i < tnk__input_n_chunks(input); i++) {
    const tnk_chunk_t chunk = tnk__input_chunk(input, i);

    if (chunk.kind == TNK_CHUNK_TEXT)
      n += token_bytes * chunk.n_tokens;
    else if (chunk.kind != TNK_CHUNK_IMAGE_POINTER)
      n += chunk.n_bytes;
    else
      n += strlen(chunk.location);
  }
  return n;
}

/* The factors 4 and 10 are the service's own. Its other clients use them too,
 * which keeps chunks and byte budgets comparable. */
size_t tnk__datum_bytes(const tnk_datum_t *datum) {
  size_t n = input_bytes(&datum->input, 4);

  for (size_t i = 0; i < tnk__datum_n_inputs(datum); i++) {
    const tnk_tensor_t tensor = tnk__datum_input_at(datum, i).tensor;

    n += tnk__dtype_wire_size(tensor.dtype) * tensor.n_values;
    if (tensor.crow != NULL)
      n += 8 * (tnk__tensor_n_crow(&tensor) + tensor.n_values);
  }
  return n;
}

size_t tnk__prompt_bytes(const tnk_model_input_t *prompt) {
  return input_bytes(prompt, 10);
}

/* ---- Copies ---- */

/*
 * A deep copy runs the same code twice: first without a target, to compute the
 * size, then into one block of that size.
 */
typedef struct {
  unsigned char *base; /* NULL while measuring */
  size_t used;
} target_t;

/* The alignment of every part, which suffices for pointers, int64_t and
 * double. */
enum { ALIGN = 8 };

static void *put(target_t *to, const void *data, size_t size) {
  unsigned char *at = to->base == NULL ? NULL : to->base + to->used;

  to->used += (size + ALIGN - 1) / ALIGN * ALIGN;
  if (at != NULL && size > 0)
    memcpy(at, data, size);
  return at;
}

static char *put_text(target_t *to, const char *text) {
  return text == NULL ? NULL : put(to, text, strlen(text) + 1);
}

/* `copy` is NULL while measuring, also in the functions below. */
static void put_tensor(target_t *to, const tnk_tensor_t *tensor,
                       tnk_tensor_t *copy) {
  size_t n = tensor->n_values;
  void *data = put(to, tensor->data, n * tnk__dtype_size(tensor->dtype));
  int64_t *crow = NULL;
  int64_t *col = NULL;

  if (tensor->crow != NULL) {
    crow = put(to, tensor->crow, tnk__tensor_n_crow(tensor) * sizeof(*crow));
    col = put(to, tensor->col, n * sizeof(*col));
  }
  if (copy == NULL)
    return;
  copy->data = data;
  copy->crow = crow;
  copy->col = col;
}

static void put_input(target_t *to, const tnk_model_input_t *input,
                      tnk_model_input_t *copy) {
  int32_t *tokens = put(to, input->tokens, input->n_tokens * sizeof(*tokens));
  /* This reserves memory; the elements are overwritten below. */
  tnk_chunk_t *chunks =
      put(to, input->chunks, input->n_chunks * sizeof(*chunks));

  for (size_t i = 0; i < input->n_chunks; i++) {
    const tnk_chunk_t *chunk = &input->chunks[i];
    /* Members that do not belong to the kind are ignored. */
    tnk_chunk_t own = {.kind = chunk->kind,
                       .format = chunk->format,
                       .expected_tokens = chunk->expected_tokens};

    if (chunk->kind == TNK_CHUNK_TEXT) {
      own.n_tokens = chunk->n_tokens;
      own.tokens = put(to, chunk->tokens, own.n_tokens * sizeof(int32_t));
    } else if (chunk->kind != TNK_CHUNK_IMAGE_POINTER) {
      own.n_bytes = chunk->n_bytes;
      own.bytes = put(to, chunk->bytes, own.n_bytes);
    } else {
      own.location = put_text(to, chunk->location);
    }
    if (chunks != NULL)
      chunks[i] = own;
  }
  if (copy == NULL)
    return;
  copy->tokens = input->tokens != NULL ? tokens : NULL;
  copy->chunks = chunks;
}

static tnk_span_t *put_spans(target_t *to, const tnk_span_t *spans, size_t n) {
  tnk_span_t *copy = put(to, spans, n * sizeof(*copy));

  for (size_t i = 0; i < n; i++) {
    char *id = put_text(to, spans[i].sequence_id);

    if (copy != NULL)
      copy[i].sequence_id = id;
  }
  return copy;
}

static void put_datum(target_t *to, const tnk_datum_t *datum,
                      tnk_datum_t *copy) {
  tnk_loss_input_t *inputs =
      put(to, datum->loss_inputs, datum->n_loss_inputs * sizeof(*inputs));
  const size_t length = datum->targets != NULL || datum->weights != NULL
                            ? (size_t)tnk__input_length(&datum->input)
                            : 0;
  int64_t *targets = NULL;
  float *weights = NULL;
  tnk_span_t *input_spans, *loss_spans;

  put_input(to, &datum->input, copy == NULL ? NULL : &copy->input);
  if (datum->targets != NULL)
    targets = put(to, datum->targets, length * sizeof(*targets));
  if (datum->weights != NULL)
    weights = put(to, datum->weights, length * sizeof(*weights));
  for (size_t i = 0; i < datum->n_loss_inputs; i++) {
    char *name = put_text(to, datum->loss_inputs[i].name);

    if (inputs != NULL)
      inputs[i].name = name;
    put_tensor(to, &datum->loss_inputs[i].tensor,
               inputs == NULL ? NULL : &inputs[i].tensor);
  }
  input_spans = put_spans(to, datum->input_spans, datum->n_input_spans);
  loss_spans =
      put_spans(to, datum->loss_input_spans, datum->n_loss_input_spans);
  if (copy == NULL)
    return;
  copy->targets = targets;
  copy->weights = weights;
  copy->loss_inputs = inputs;
  copy->input_spans = input_spans;
  copy->loss_input_spans = loss_spans;
}

/* Copy an object with everything that it references; `n` is for arrays. */
static tnk_datum_t *put_data(target_t *to, const tnk_datum_t *data, size_t n) {
  tnk_datum_t *copy = put(to, data, n * sizeof(*copy));

  for (size_t i = 0; i < n; i++)
    put_datum(to, &data[i], copy == NULL ? NULL : &copy[i]);
  return copy;
}

/* The first pass measures, the second copies. */
tnk_datum_t *tnk__data_copy(tnk__arena_t *arena, const tnk_datum_t *data,
                            size_t n) {
  target_t to = {0};

  put_data(&to, data, n);
  to = (target_t){.base = tnk__arena_alloc(arena, to.used)};
  return to.base == NULL ? NULL : put_data(&to, data, n);
}

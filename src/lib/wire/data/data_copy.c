#include <string.h>

#include "lib/wire/data/data.h"

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

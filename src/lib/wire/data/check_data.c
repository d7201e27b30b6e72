/* SPDX-License-Identifier: MIT */
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/utf8.h"
#include "lib/wire/data/check.h"
#include "lib/wire/data/check_where.h"
#include "lib/wire/data/data.h"
#include "lib/wire/format/scan.h"
#include "tnk/error.h"

/* ---- Tensors ---- */

int tnk__refuse(const tnk__where_t *where, const char *format, ...) {
  int used = 0;
  va_list args;

  if (where->text == NULL || where->size == 0)
    return TNK_EINVAL;
  /* In case formatting fails. */
  where->text[0] = '\0';
  if (where->kind != NULL)
    used = snprintf(where->text, where->size, "%s %zu: ", where->kind,
                    where->index);
  if (used >= 0 && (size_t)used < where->size) {
    va_start(args, format);
    vsnprintf(where->text + used, where->size - (size_t)used, format, args);
    va_end(args);
  }
  return TNK_EINVAL;
}

int tnk__check_text_at(const tnk__where_t *where, const char *what,
                       const char *value) {
  size_t n;

  if (value == NULL)
    return tnk__refuse(where, "%s is missing", what);
  n = strlen(value);
  if (tnk__utf8_valid((const uint8_t *)value, n) < n)
    return tnk__refuse(where, "%s is not valid UTF-8", what);
  return TNK_OK;
}

static int check_shape(const tnk__where_t *where, const char *name,
                       const tnk_tensor_t *tensor) {
  size_t n;

  if (tensor->n_dims > TNK_MAX_DIMS)
    return tnk__refuse(where, "\"%s\" has %u dimensions, at most %d", name,
                       (unsigned)tensor->n_dims, TNK_MAX_DIMS);
  if (!tnk__tensor_elements(tensor, &n))
    return tnk__refuse(
        where, "\"%s\" has a dimension that is negative or too large", name);
  if (tensor->crow == NULL && n != tensor->n_values)
    return tnk__refuse(where, "\"%s\" has %zu values, its shape has %zu", name,
                       tensor->n_values, n);
  /* This keeps sizes in bytes from overflowing later. */
  if (tensor->n_values > SIZE_MAX / sizeof(int64_t))
    return tnk__refuse(where, "\"%s\" has too many values", name);
  if (tensor->n_values > 0 && tensor->data == NULL)
    return tnk__refuse(where, "\"%s\" has no data", name);
  return TNK_OK;
}

/* Check that row starts increase from 0 to the number of values, and columns
 * increase within each row. */
static int check_csr(const tnk__where_t *where, const char *name,
                     const tnk_tensor_t *tensor) {
  const int64_t *crow = tensor->crow;
  int64_t n = (int64_t)tensor->n_values;

  if (tensor->n_dims != 2)
    return tnk__refuse(where, "\"%s\" is sparse and needs two dimensions",
                       name);
  if (tensor->n_values > 0 && tensor->col == NULL)
    return tnk__refuse(where, "\"%s\" is sparse and has no columns", name);
  /* tnk/data.h requires that crow has rows + 1 entries, which cannot be
   * checked. */
  if (crow[0] != 0 || crow[tensor->shape[0]] != n)
    return tnk__refuse(where, "\"%s\": its row starts do not go from 0 to %zu",
                       name, tensor->n_values);
  for (int64_t row = 0; row < tensor->shape[0]; row++) {
    if (crow[row + 1] < crow[row] || crow[row + 1] > n)
      return tnk__refuse(where, "\"%s\": the start of row %lld is wrong", name,
                         (long long)row + 1);
    for (int64_t i = crow[row]; i < crow[row + 1]; i++)
      if (tensor->col[i] < 0 || tensor->col[i] >= tensor->shape[1] ||
          (i > crow[row] && tensor->col[i] <= tensor->col[i - 1]))
        return tnk__refuse(
            where, "\"%s\": row %lld has a column out of order or range", name,
            (long long)row);
  }
  return TNK_OK;
}

static int check_finite(const tnk__where_t *where, const char *name,
                        const tnk_tensor_t *tensor) {
  size_t i = 0;

  if (tensor->dtype == TNK_F32)
    i = tnk__scan_not_finite(tensor->data, tensor->n_values);
  for (; i < tensor->n_values; i++) {
    double value = tnk__tensor_float(tensor, i);

    if (!isfinite(value))
      return tnk__refuse(where, "\"%s\" value %zu is not a finite number", name,
                         i);
    /* Messages have no doubles, so the value must fit in a float. */
    if (tensor->dtype == TNK_F64 && isinf((float)value))
      return tnk__refuse(where, "\"%s\" value %zu is too large for f32", name,
                         i);
  }
  return TNK_OK;
}

int tnk__check_tensor_at(const tnk__where_t *where, const char *name,
                         const tnk_tensor_t *tensor) {
  int err;

  if (tensor->reserved != 0)
    return tnk__refuse(where, "\"%s\" has a reserved member set", name);
  if (tnk__dtype_size(tensor->dtype) == 0)
    return tnk__refuse(where, "\"%s\" has an unknown element type", name);
  err = check_shape(where, name, tensor);
  if (err == TNK_OK && tensor->crow != NULL)
    err = check_csr(where, name, tensor);
  if (err == TNK_OK && !tnk__dtype_is_int(tensor->dtype))
    err = check_finite(where, name, tensor);
  return err;
}

static int check_image(const tnk__where_t *where, size_t i,
                       const tnk_chunk_t *chunk) {
  if (chunk->format != TNK_PNG && chunk->format != TNK_JPEG)
    return tnk__refuse(where, "chunk %zu is an image of an unknown format", i);
  if (chunk->kind == TNK_CHUNK_IMAGE &&
      (chunk->bytes == NULL || chunk->n_bytes == 0))
    return tnk__refuse(where, "chunk %zu is an image without bytes", i);
  if (chunk->kind == TNK_CHUNK_IMAGE_POINTER &&
      (chunk->location == NULL || chunk->location[0] == '\0'))
    return tnk__refuse(where, "chunk %zu has no location", i);
  if (chunk->kind == TNK_CHUNK_IMAGE_POINTER)
    return tnk__check_text_at(where, "location of an image", chunk->location);
  return TNK_OK;
}

static int check_dmel(const tnk__where_t *where, size_t i,
                      const tnk_chunk_t *chunk) {
  const char *why;

  if (chunk->bytes == NULL || chunk->n_bytes == 0)
    return tnk__refuse(where, "chunk %zu is audio without bytes", i);
  if (tnk__dmel_length(chunk->bytes, chunk->n_bytes, &why) < 0)
    return tnk__refuse(where, "chunk %zu is no dMel: %s", i, why);
  return TNK_OK;
}

static int check_tokens(const tnk__where_t *where, size_t i,
                        const tnk_chunk_t *chunk) {
  size_t t;

  /* The largest estimate is 10 bytes for each token (lib/wire/data/data.c), and
   * must not overflow. */
  if (chunk->n_tokens > SIZE_MAX / 16)
    return tnk__refuse(where, "chunk %zu has too many tokens", i);
  if (chunk->n_tokens > 0 && chunk->tokens == NULL)
    return tnk__refuse(where, "chunk %zu has no tokens", i);
  t = tnk__scan_negative(chunk->tokens, chunk->n_tokens);
  if (t < chunk->n_tokens)
    return tnk__refuse(where, "chunk %zu: token %zu is %ld", i, t,
                       (long)chunk->tokens[t]);
  return TNK_OK;
}

static int check_chunk(const tnk__where_t *where, size_t i,
                       const tnk_chunk_t *chunk, int allow_pointer) {
  const int is_text = chunk->kind == TNK_CHUNK_TEXT;
  const int is_dmel = chunk->kind == TNK_CHUNK_DMEL;

  if (chunk->reserved != 0)
    return tnk__refuse(where, "chunk %zu has a reserved member set", i);
  if (!is_text && !is_dmel && chunk->kind != TNK_CHUNK_IMAGE &&
      chunk->kind != TNK_CHUNK_IMAGE_POINTER)
    return tnk__refuse(where, "chunk %zu is of an unknown kind", i);
  /* Text is kind 0. A chunk with other data but without a kind would be read as
   * no tokens. */
  if (is_text && (chunk->bytes != NULL || chunk->location != NULL))
    return tnk__refuse(
        where, "chunk %zu is text, and has %s", i,
        chunk->format == 0 && chunk->location == NULL ? "bytes" : "an image");
  if (!is_text && chunk->tokens != NULL)
    return tnk__refuse(where, "chunk %zu is %s, and has tokens", i,
                       is_dmel ? "audio" : "an image");
  if (is_text)
    return check_tokens(where, i, chunk);
  if (is_dmel)
    return check_dmel(where, i, chunk);
  if (chunk->kind == TNK_CHUNK_IMAGE_POINTER && !allow_pointer)
    return tnk__refuse(
        where, "chunk %zu is an image pointer, which training does not accept",
        i);
  return check_image(where, i, chunk);
}

int tnk__check_input_at(const tnk__where_t *where,
                        const tnk_model_input_t *input, int allow_pointer) {
  int err = TNK_OK;

  if (input->tokens != NULL && (input->chunks != NULL || input->n_chunks > 0))
    return tnk__refuse(where,
                       "the model input is given as tokens and as chunks");
  if (input->n_tokens > 0 && input->tokens == NULL)
    return tnk__refuse(where, "the model input has no tokens");
  if (input->n_chunks > 0 && input->chunks == NULL)
    return tnk__refuse(where, "the model input has no chunks");
  for (size_t i = 0; i < tnk__input_n_chunks(input) && err == TNK_OK; i++) {
    const tnk_chunk_t chunk = tnk__input_chunk(input, i);

    err = check_chunk(where, i, &chunk, allow_pointer);
  }
  return err;
}

/* ---- Data ---- */

/* The inputs of each loss: the required ones, and the optional ones. Servers
 * multiply any loss by weights, which default to 1, or ignore them. Protocol:
 * reference, losses. */
enum { MAX_NEEDS = 3, MAX_READS = 4 };

typedef struct {
  const char *loss;
  const char *needs[MAX_NEEDS];
  const char *reads[MAX_READS];
} loss_rule_t;

static const loss_rule_t losses[] = {
    {"cross_entropy", {"target_tokens"}, {"weights"}},
    {"importance_sampling",
     {"target_tokens", "logprobs", "advantages"},
     {"weights"}},
    {"ppo",
     {"target_tokens", "logprobs", "advantages"},
     {"weights", "clip_low_threshold", "clip_high_threshold"}},
    {"cispo",
     {"target_tokens", "logprobs", "advantages"},
     {"weights", "clip_low_threshold", "clip_high_threshold"}},
    {"dro", {"target_tokens", "logprobs", "advantages"}, {"weights"}},
    {"gspo",
     {"target_tokens", "logprobs", "advantages"},
     {"weights", "clip_low_threshold", "clip_high_threshold",
      "sequence_ratio_mask"}},
};

/* Inputs with one value or one row for each position. */
static const char *const per_token[] = {"weights",
                                        "advantages",
                                        "logprobs",
                                        "clip_low_threshold",
                                        "clip_high_threshold",
                                        "sequence_ratio_mask"};

static const loss_rule_t *find_loss(const char *name) {
  for (size_t i = 0; name != NULL && i < sizeof(losses) / sizeof(losses[0]);
       i++)
    if (strcmp(losses[i].loss, name) == 0)
      return &losses[i];
  return NULL;
}

int tnk__loss_is_known(const char *name) {
  return find_loss(name) != NULL;
}

static size_t common_prefix(const char *a, const char *b) {
  size_t n = 0;

  while (a[n] != '\0' && a[n] == b[n])
    n++;
  return n;
}

/* The name with the longest common prefix; `best` is the length of that
 * prefix. */
static const char *most_alike(const char *const *names, size_t n,
                              const char *name, size_t *best) {
  const char *found = NULL;

  for (size_t i = 0; i < n && names[i] != NULL; i++)
    if (common_prefix(names[i], name) > *best) {
      found = names[i];
      *best = common_prefix(found, name);
    }
  return found;
}

/* A misspelled name would be ignored, and the loss would be a different one. */
static int check_is_read(const tnk__where_t *where, const loss_rule_t *rule,
                         const char *name) {
  size_t n_alike = 2; /* a shorter common prefix gives no suggestion */
  const char *needed = most_alike(rule->needs, MAX_NEEDS, name, &n_alike);
  const char *read = most_alike(rule->reads, MAX_READS, name, &n_alike);
  const char *guess = read != NULL ? read : needed;

  if (guess != NULL && strcmp(guess, name) == 0)
    return TNK_OK;
  if (guess == NULL)
    return tnk__refuse(where, "loss \"%s\" does not read \"%.64s\"", rule->loss,
                       name);
  return tnk__refuse(
      where, "loss \"%s\" does not read \"%.64s\"; did you mean \"%s\"?",
      rule->loss, name, guess);
}

static int is_per_token(const char *name) {
  for (size_t i = 0; i < sizeof(per_token) / sizeof(per_token[0]); i++)
    if (strcmp(per_token[i], name) == 0)
      return 1;
  return 0;
}

/* Check for a vector of `expected` values, or for `expected` rows. */
static int check_rows(const tnk__where_t *where, const char *name,
                      const tnk_tensor_t *tensor, int64_t expected) {
  if (tensor->n_dims <= 1 && (int64_t)tensor->n_values != expected)
    return tnk__refuse(where, "\"%s\" has %zu values, expected %lld", name,
                       tensor->n_values, (long long)expected);
  if (tensor->n_dims == 2 && tensor->shape[0] != expected)
    return tnk__refuse(where, "\"%s\" has %lld rows, expected %lld", name,
                       (long long)tensor->shape[0], (long long)expected);
  if (tensor->n_dims > 2)
    return tnk__refuse(where, "\"%s\" has %u dimensions, at most 2", name,
                       (unsigned)tensor->n_dims);
  return TNK_OK;
}

static int check_targets(const tnk__where_t *where,
                         const tnk_tensor_t *tensor) {
  size_t i = 0;

  if (!tnk__dtype_is_int(tensor->dtype))
    return tnk__refuse(where, "\"target_tokens\" must be integers");

  /* The scan stops at or before the first invalid value. The loop below finds
   * it and writes the sentence. */
  if (tensor->dtype == TNK_I64)
    i = tnk__scan_no_id(tensor->data, tensor->n_values);
  else
    i = tnk__scan_negative(tensor->data, tensor->n_values);
  for (; i < tensor->n_values; i++) {
    int64_t id = tnk__tensor_int(tensor, i);

    if (id < 0 || id > INT32_MAX)
      return tnk__refuse(where, "\"target_tokens\" value %zu is %lld", i,
                         (long long)id);
  }
  return TNK_OK;
}

static int check_input(const tnk__where_t *where, const tnk_loss_input_t *input,
                       int64_t length, int know_loss) {
  int target, position;
  int err = tnk__check_text_at(where, "the name of a loss input", input->name);

  if (err == TNK_OK && input->name[0] == '\0')
    err = tnk__refuse(where, "a loss input has an empty name");
  if (err == TNK_OK)
    err = tnk__check_tensor_at(where, input->name, &input->tensor);
  if (err != TNK_OK)
    return err;
  target = strcmp(input->name, "target_tokens") == 0;
  position = is_per_token(input->name);
  if (target)
    err = check_targets(where, &input->tensor);
  else if (position && tnk__dtype_is_int(input->tensor.dtype))
    err = tnk__refuse(where, "\"%s\" must be f32", input->name);
  /* If an image does not state its number of tokens, the length is unknown. */
  if (err == TNK_OK && length >= 0 && (target || (position && know_loss)))
    err = check_rows(where, input->name, &input->tensor, length);
  return err;
}

/* Check that all inputs required by the loss are present, and no unknown
 * ones. */
static int check_names(const tnk__where_t *where, const tnk_datum_t *datum,
                       const loss_rule_t *rule) {
  int err = TNK_OK;

  for (size_t i = 0; i < MAX_NEEDS && rule->needs[i] != NULL; i++)
    if (tnk__datum_find(datum, rule->needs[i]) == SIZE_MAX)
      return tnk__refuse(where, "loss \"%s\" needs \"%s\"", rule->loss,
                         rule->needs[i]);
  for (size_t i = 0; i < tnk__datum_n_inputs(datum) && err == TNK_OK; i++)
    err = check_is_read(where, rule, tnk__datum_input_at(datum, i).name);
  return err;
}

static int check_inputs(const tnk__where_t *where, const tnk_datum_t *datum,
                        const char *loss_fn) {
  const loss_rule_t *rule = find_loss(loss_fn);
  /* -1: unknown; the lengths of inputs are then not checked. */
  int64_t length = tnk__input_length(&datum->input);

  if (datum->n_loss_inputs > 0 && datum->loss_inputs == NULL)
    return tnk__refuse(where, "it has no loss inputs");
  if (length < 0 && (datum->targets != NULL || datum->weights != NULL))
    return tnk__refuse(where, "the length of its targets or weights is "
                              "unknown: an image does not state its tokens");
  for (size_t i = 0; i < tnk__datum_n_inputs(datum); i++) {
    const tnk_loss_input_t input = tnk__datum_input_at(datum, i);
    int err =
        check_input(where, &input, length, rule != NULL || loss_fn == NULL);

    if (err != TNK_OK)
      return err;
    /* The search finds the first input of a name, so a different index means a
     * duplicate. */
    if (tnk__datum_find(datum, input.name) != i)
      return tnk__refuse(where, "\"%s\" is given twice", input.name);
  }
  return rule != NULL ? check_names(where, datum, rule) : TNK_OK;
}

/* Runs follow each other without gaps, so only their sum can be wrong. */
static int check_runs(const tnk__where_t *where, const char *what,
                      const tnk_span_t *spans, size_t n, int64_t expected) {
  int64_t sum = 0;

  for (size_t i = 0; i < n; i++) {
    const tnk_span_t *span = &spans[i];

    if (span->kind != TNK_SPAN_PROMPT && span->kind != TNK_SPAN_SAMPLED)
      return tnk__refuse(where, "%s span %zu is of an unknown kind", what, i);
    if (span->sequence_id == NULL || span->sequence_id[0] == '\0')
      return tnk__refuse(where, "%s span %zu has no sequence id", what, i);
    if (tnk__check_text_at(where, "the sequence id of a span",
                           span->sequence_id) != TNK_OK)
      return TNK_EINVAL;
    if (span->offset < 0 || span->length < 0 || span->length > INT64_MAX - sum)
      return tnk__refuse(where, "%s span %zu is out of range", what, i);
    sum += span->length;
  }
  if (expected >= 0 && sum != expected)
    return tnk__refuse(where, "%s spans cover %lld tokens, expected %lld", what,
                       (long long)sum, (long long)expected);
  return TNK_OK;
}

static int check_spans(const tnk__where_t *where, const tnk_datum_t *datum) {
  const size_t target = tnk__datum_find(datum, "target_tokens");
  int64_t n_targets = -1;
  int err;

  if (datum->n_input_spans == 0 && datum->n_loss_input_spans == 0)
    return TNK_OK;
  if (datum->input_spans == NULL || datum->loss_input_spans == NULL)
    return tnk__refuse(where, "set both span lists or neither");
  /* Spans cover positions, but two-dimensional targets do not state the number
   * of positions. */
  if (target != SIZE_MAX) {
    const tnk_tensor_t tensor = tnk__datum_input_at(datum, target).tensor;

    if (tensor.n_dims <= 1)
      n_targets = (int64_t)tensor.n_values;
  }
  err = check_runs(where, "model input", datum->input_spans,
                   datum->n_input_spans, tnk__input_length(&datum->input));
  if (err == TNK_OK)
    err = check_runs(where, "loss input", datum->loss_input_spans,
                     datum->n_loss_input_spans, n_targets);
  return err;
}

int tnk__check_data(const tnk_datum_t *data, size_t n, const char *loss_fn,
                    char *text, size_t size) {
  tnk__where_t where = {.text = text, .size = size};
  int err = TNK_OK;

  if (data == NULL || n == 0)
    return tnk__refuse(&where, "there is no datum");
  if (loss_fn != NULL)
    err = tnk__check_text_at(&where, "the name of the loss", loss_fn);
  where.kind = "datum";
  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    where.index = i;
    if (data[i].reserved != 0)
      err = tnk__refuse(&where, "it has a reserved member set");
    if (err == TNK_OK)
      err = tnk__check_input_at(&where, &data[i].input, 0);
    if (err == TNK_OK)
      err = check_inputs(&where, &data[i], loss_fn);
    if (err == TNK_OK)
      err = check_spans(&where, &data[i]);
  }
  return err;
}

int tnk_data_check(const tnk_datum_t *data, size_t n_data, const char *loss_fn,
                   char *why, size_t why_size) {
  return tnk__check_data(data, n_data, loss_fn, why, why_size);
}

int tnk__check_settings(const tnk_loss_setting_t *settings, size_t n,
                        char *text, size_t size) {
  tnk__where_t where = {.text = text, .size = size, .kind = "loss setting"};

  if (n > 0 && settings == NULL)
    return tnk__refuse(&where, "it is missing");
  for (size_t i = 0; i < n; i++) {
    int err;

    where.index = i;
    err = tnk__check_text_at(&where, "its name", settings[i].name);
    if (err == TNK_OK && settings[i].text != NULL)
      err = tnk__check_text_at(&where, "its text", settings[i].text);
    else if (err == TNK_OK && !isfinite(settings[i].number))
      err = tnk__refuse(&where, "\"%s\" is not a finite number",
                        settings[i].name);
    for (size_t j = 0; j < i && err == TNK_OK; j++)
      if (strcmp(settings[i].name, settings[j].name) == 0)
        err = tnk__refuse(&where, "\"%s\" is given twice", settings[i].name);
    if (err != TNK_OK)
      return err;
  }
  return TNK_OK;
}

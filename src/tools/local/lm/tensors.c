#include "tools/local/lm/tensors.h"

#include <stdio.h>
#include <string.h>

#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "lib/wire/format/le.h"
#include "tnk/error.h"
#include "tools/local/lm/check.h"

/* MAX_HEADER: our models need a few KB; it bounds the memory for a corrupt
 * length. */
enum { MAX_HEADER = 1 << 20, ALIGN = 8, FACTORS = 2 };

/* A factor of a matrix, as stored in a file. Element (i, j) is the array's
 * element offset + i + j * stride. */
typedef struct {
  char name[112];
  size_t rows;
  size_t cols;
  size_t offset;
  size_t stride;
} tensor_t;

/* The names that Transformers uses for such layers. */
static void module_name(char *to, size_t size, size_t matrix) {
  static const char *const names[M_PER_LAYER] = {
      "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
      "self_attn.o_proj", "mlp.up_proj",      "mlp.down_proj"};

  if (matrix == M_UNEMBED)
    snprintf(to, size, "lm_head");
  else
    snprintf(to, size, "model.layers.%zu.%s", matrix / M_PER_LAYER,
             names[matrix % M_PER_LAYER]);
}

/* `kind` is the array; only the values have PEFT's suffix. */
static tensor_t tensor_of(const tnk__lm_t *lm, size_t matrix, size_t factor,
                          size_t kind) {
  static const char *const endings[PARAM_KINDS] = {"weight", "exp_avg",
                                                   "exp_avg_sq"};
  tnk__lm_matrix_t m = tnk__lm_matrix(matrix);
  tensor_t t;
  char module[64];

  module_name(module, sizeof(module), matrix);
  snprintf(t.name, sizeof(t.name), "base_model.model.%s.lora_%c.%s", module,
           factor == 0 ? 'A' : 'B', endings[kind]);
  t.rows = factor == 0 ? lm->config.rank : m.n_real;
  t.cols = factor == 0 ? m.n_in : lm->config.rank;
  t.offset = factor == 0 ? lm->factors[matrix].a : lm->factors[matrix].b;
  t.stride = factor == 0 ? lm->lanes : m.n_out;
  return t;
}

/* Iterates over all tensors of the arrays [first, end). */
typedef struct {
  const tnk__lm_t *lm;
  size_t kind;
  size_t end;
  size_t at; /* matrix and factor */
} walk_t;

static int next(walk_t *walk, tensor_t *t, size_t *kind) {
  for (; walk->kind < walk->end; walk->kind++, walk->at = 0)
    while (walk->at < FACTORS * TNK__LM_N_MATRICES) {
      size_t at = walk->at++;
      if (!walk->lm->factors[at / FACTORS].trained)
        continue;
      *t = tensor_of(walk->lm, at / FACTORS, at % FACTORS, walk->kind);
      *kind = walk->kind;
      return 1;
    }
  return 0;
}

static void write_header(walk_t walk, tnk__buf_t *buf) {
  tnk__json_writer_t w;
  uint64_t at = 0;
  tensor_t t;
  size_t kind;

  tnk__json_writer_init(&w, buf);
  tnk__json_begin_object(&w);
  tnk__json_key(&w, "__metadata__");
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "format", "pt");
  tnk__json_end(&w);
  while (next(&walk, &t, &kind)) {
    tnk__json_key(&w, t.name);
    tnk__json_begin_object(&w);
    tnk__json_put_text(&w, "dtype", "F32");
    tnk__json_key(&w, "shape");
    tnk__json_begin_array(&w);
    tnk__json_uint(&w, t.rows);
    tnk__json_uint(&w, t.cols);
    tnk__json_end(&w);
    tnk__json_key(&w, "data_offsets");
    tnk__json_begin_array(&w);
    tnk__json_uint(&w, at);
    at += t.rows * t.cols * sizeof(float);
    tnk__json_uint(&w, at);
    tnk__json_end(&w);
    tnk__json_end(&w);
  }
  tnk__json_end(&w);
  if (tnk__json_finish(&w) != TNK_OK && buf->err == TNK_OK)
    buf->err = TNK_EINTERNAL;
}

static void write_tensor(const tensor_t *t, const float *param,
                         tnk__buf_t *buf) {
  const size_t size = t->rows * t->cols * sizeof(float);
  uint8_t *to = tnk__buf_reserve(buf, size);
  size_t i;
  size_t j;

  if (to == NULL)
    return;
  for (i = 0; i < t->rows; i++)
    for (j = 0; j < t->cols; j++, to += sizeof(float))
      tnk__le_copy(to, &param[t->offset + i + j * t->stride], 1, sizeof(float));
  buf->len += size;
}

void tnk__lm_tensors_write(const tnk__lm_t *lm, size_t first, size_t count,
                           tnk__buf_t *buf) {
  walk_t walk = {lm, first, first + count, 0};
  const size_t begin = buf->len;
  uint8_t zero[ALIGN] = {0};
  tensor_t t;
  size_t kind;

  tnk__buf_append(buf, zero, sizeof(zero));
  write_header(walk, buf);
  /* Spaces at the end of the header align the data. */
  while (buf->err == TNK_OK && (buf->len - begin) % ALIGN != 0)
    tnk__buf_byte(buf, ' ');
  if (buf->err != TNK_OK)
    return;
  tnk__le_put64(buf->data + begin, buf->len - begin - ALIGN);
  while (next(&walk, &t, &kind))
    write_tensor(&t, lm->param[kind], buf);
}

int tnk__lm_peft_tensors(const tnk__lm_t *lm, tnk__buf_t *out) {
  tnk__lm_tensors_write(lm, PARAM_VALUE, 1, out);
  return out->err;
}

/* Parse an array of two integers. */
static int get_pair(const json_t *object, const char *key, uint64_t *pair) {
  const json_t *array = tnk__json_arr(object, key);
  size_t i;

  if (array == NULL || json_array_size(array) != 2)
    return 0;
  for (i = 0; i < 2; i++) {
    const json_t *number = json_array_get(array, i);
    if (!json_is_integer(number) || json_integer_value(number) < 0)
      return 0;
    pair[i] = (uint64_t)json_integer_value(number);
  }
  return 1;
}

static int read_tensor(const tensor_t *t, const json_t *header,
                       const uint8_t *data, size_t n, float *param,
                       const char *name, tnk__lm_why_t *why) {
  const json_t *entry = tnk__json_obj(header, t->name);
  const char *dtype = tnk__json_str(entry, "dtype");
  uint64_t shape[2];
  uint64_t at[2];
  size_t i;
  size_t j;

  if (entry == NULL)
    return tnk__lm_refuse(why, TNK_EPROTO, "%s: %s is missing", name, t->name);
  if (dtype == NULL || strcmp(dtype, "F32") != 0 ||
      !get_pair(entry, "shape", shape) || shape[0] != t->rows ||
      shape[1] != t->cols)
    return tnk__lm_refuse(why, TNK_EPROTO, "%s: %s is not F32 [%zu, %zu]", name,
                          t->name, t->rows, t->cols);
  if (!get_pair(entry, "data_offsets", at) || at[0] > at[1] || at[1] > n ||
      at[1] - at[0] != t->rows * t->cols * sizeof(float))
    return tnk__lm_refuse(why, TNK_EPROTO, "%s: the data of %s are outside",
                          name, t->name);
  data += at[0];
  for (i = 0; i < t->rows; i++)
    for (j = 0; j < t->cols; j++, data += sizeof(float))
      tnk__le_copy(&param[t->offset + i + j * t->stride], data, 1,
                   sizeof(float));
  return TNK_OK;
}

int tnk__lm_tensors_read(const tnk__lm_t *lm, size_t first, size_t count,
                         const uint8_t *data, size_t n, float *const *param,
                         const char *name, tnk__lm_why_t *why) {
  walk_t walk = {lm, first, first + count, 0};
  json_t *header = NULL;
  uint64_t n_header = n < ALIGN ? 0 : tnk__le_get64(data);
  tensor_t t;
  size_t kind;
  int err;

  /* Compared without an addition, which could overflow. */
  if (n < ALIGN || n_header > MAX_HEADER || n_header > n - ALIGN)
    return tnk__lm_refuse(why, TNK_EPROTO, "%s: the header is cut off", name);
  err = tnk__json_parse_object(&header, data + ALIGN, (size_t)n_header);
  if (err == TNK_ENOMEM)
    return tnk__lm_refuse(why, err, "out of memory");
  if (err != TNK_OK)
    return tnk__lm_refuse(why, TNK_EPROTO, "%s: the header is no JSON object",
                          name);
  data += ALIGN + n_header;
  n -= ALIGN + (size_t)n_header;
  while (err == TNK_OK && next(&walk, &t, &kind))
    err = read_tensor(&t, header, data, n, param[kind], name, why);
  json_decref(header);
  return err;
}

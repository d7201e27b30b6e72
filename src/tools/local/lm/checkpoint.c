/* SPDX-License-Identifier: MIT */
#include "tools/local/lm/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "lib/wire/format/le.h"
#include "tnk/error.h"
#include "tools/local/lm/lm.h"

/* ---- The tensors ---- */

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
  tnk__json_put_object(&w, "__metadata__");
  tnk__json_put_text(&w, "format", "pt");
  tnk__json_end(&w);
  while (next(&walk, &t, &kind)) {
    tnk__json_put_object(&w, t.name);
    tnk__json_put_text(&w, "dtype", "F32");
    tnk__json_put_array(&w, "shape");
    tnk__json_uint(&w, t.rows);
    tnk__json_uint(&w, t.cols);
    tnk__json_end(&w);
    tnk__json_put_array(&w, "data_offsets");
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
    return tnk__lm_refuse(why, TNK_EPROTO,
                          "%s: the header is not a JSON object", name);
  data += ALIGN + n_header;
  n -= ALIGN + (size_t)n_header;
  while (err == TNK_OK && next(&walk, &t, &kind))
    err = read_tensor(&t, header, data, n, param[kind], name, why);
  json_decref(header);
  return err;
}

/* ---- The configuration ---- */

/*
 * Only tnk uses the names under "tnk". A missing field or a field of another
 * type makes the whole file invalid, because a partial config would train a
 * different model.
 */

enum { MAX_CONFIG = 65536 };

/* In the order of tnk__lm_optimizer_t. */
static const char *const families[] = {"adamw", "dimuon"};

static void put_count(tnk__json_writer_t *w, const char *key, uint64_t value) {
  char text[24];

  snprintf(text, sizeof(text), "%" PRIu64, value);
  tnk__json_put_text(w, key, text);
}

/* PEFT's names of the layers with an adapter. */
static void write_modules(const tnk__lm_config_t *c, tnk__json_writer_t *w) {
  tnk__json_put_array(w, "target_modules");
  if (c->train_attn) {
    tnk__json_text(w, "q_proj");
    tnk__json_text(w, "k_proj");
    tnk__json_text(w, "v_proj");
    tnk__json_text(w, "o_proj");
  }
  if (c->train_mlp) {
    tnk__json_text(w, "up_proj");
    tnk__json_text(w, "down_proj");
  }
  if (c->train_unembed)
    tnk__json_text(w, "lm_head");
  tnk__json_end(w);
}

/* The fields that PEFT requires for every adapter. */
static void write_peft(const tnk__lm_config_t *c, const char *base_name,
                       tnk__json_writer_t *w) {
  tnk__json_put_text(w, "peft_type", "LORA");
  tnk__json_put_text(w, "task_type", "CAUSAL_LM");
  tnk__json_put_text(w, "base_model_name_or_path", base_name);
  tnk__json_put_int(w, "r", c->rank);
  tnk__json_put_int(w, "lora_alpha", TNK__LM_ALPHA);
  tnk__json_put_double(w, "lora_dropout", 0);
  tnk__json_put_text(w, "bias", "none");
  write_modules(c, w);
}

int tnk__lm_peft_config(const tnk__lm_config_t *config, const char *base_name,
                        tnk__buf_t *out) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  write_peft(config, base_name, &w);
  tnk__json_put_bool(&w, "fan_in_fan_out", 0);
  tnk__json_put_bool(&w, "inference_mode", 1);
  tnk__json_put_bool(&w, "init_lora_weights", 1);
  tnk__json_put_text(&w, "modules_to_save", NULL);
  tnk__json_put_bool(&w, "use_dora", 0);
  tnk__json_put_bool(&w, "use_rslora", 0);
  tnk__json_end(&w);
  return tnk__json_finish(&w);
}

void tnk__lm_config_write(const tnk__lm_saved_config_t *saved,
                          tnk__buf_t *buf) {
  const tnk__lm_config_t *c = &saved->config;
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, buf);
  tnk__json_begin_object(&w);
  write_peft(c, TNK__LM_NAME, &w);
  tnk__json_put_object(&w, "tnk");
  tnk__json_put_int(&w, "base_version", TNK__LM_BASE_VERSION);
  put_count(&w, "seed", c->seed);
  put_count(&w, "n_steps", saved->n_steps);
  tnk__json_put_bool(&w, "train_mlp", c->train_mlp);
  tnk__json_put_bool(&w, "train_attn", c->train_attn);
  tnk__json_put_bool(&w, "train_unembed", c->train_unembed);
  tnk__json_put_text(&w, "optimizer", families[c->optimizer]);
  tnk__json_put_text(&w, "adapter_sum", saved->adapter.text);
  if (saved->has_optimizer)
    tnk__json_put_text(&w, "optimizer_sum", saved->optimizer.text);
  tnk__json_end(&w);
  tnk__json_end(&w);
  if (tnk__json_finish(&w) != TNK_OK && buf->err == TNK_OK)
    buf->err = TNK_EINTERNAL;
}

/* A 64-bit integer is stored as a string, because JSON parsers may round it. */
static int get_count(const json_t *object, const char *key, uint64_t *out) {
  const char *text = tnk__json_str(object, key);

  return text != NULL && tnk__text_u64(text, UINT64_MAX, out) == TNK_OK;
}

static int get_flag(const json_t *object, const char *key, uint8_t *out) {
  int value = 0;

  if (tnk__json_get_bool(object, key, &value) != TNK__JSON_FOUND)
    return 0;
  *out = (uint8_t)value;
  return 1;
}

static int get_sum(const json_t *object, const char *key, tnk__lm_sum_t *out) {
  const char *text = tnk__json_str(object, key);

  if (text == NULL || strlen(text) + 1 != sizeof(out->text))
    return 0;
  memcpy(out->text, text, sizeof(out->text));
  return 1;
}

static int get_family(const json_t *object, tnk__lm_optimizer_t *out) {
  const char *text = tnk__json_str(object, "optimizer");

  if (text == NULL)
    return 0;
  *out = strcmp(text, families[TNK__LM_DIMUON]) == 0 ? TNK__LM_DIMUON
                                                     : TNK__LM_ADAMW;
  return strcmp(text, families[*out]) == 0;
}

/* Returns the first missing or wrong field, or NULL. */
static const char *take(tnk__lm_saved_config_t *out, const json_t *root) {
  const json_t *own = tnk__json_obj(root, "tnk");
  tnk__lm_config_t *c = &out->config;
  int64_t number = 0;

  if (own == NULL)
    return "tnk";
  if (tnk__json_get_int(own, "base_version", TNK__LM_BASE_VERSION,
                        TNK__LM_BASE_VERSION, &number) != TNK__JSON_FOUND)
    return "base_version";
  if (tnk__json_get_int(root, "r", 1, TNK__LM_MAX_RANK, &number) !=
      TNK__JSON_FOUND)
    return "r";
  c->rank = (uint32_t)number;
  if (!get_count(own, "seed", &c->seed))
    return "seed";
  if (!get_count(own, "n_steps", &out->n_steps))
    return "n_steps";
  if (!get_flag(own, "train_mlp", &c->train_mlp))
    return "train_mlp";
  if (!get_flag(own, "train_attn", &c->train_attn))
    return "train_attn";
  if (!get_flag(own, "train_unembed", &c->train_unembed))
    return "train_unembed";
  if (!get_family(own, &c->optimizer))
    return "optimizer";
  if (!get_sum(own, "adapter_sum", &out->adapter))
    return "adapter_sum";
  out->has_optimizer = tnk__json_str(own, "optimizer_sum") != NULL;
  if (out->has_optimizer && !get_sum(own, "optimizer_sum", &out->optimizer))
    return "optimizer_sum";
  return NULL;
}

int tnk__lm_config_read(tnk__lm_saved_config_t *out, const char *dir,
                        const tnk_allocator_t *alloc, tnk__lm_why_t *why) {
  const char *name = TNK__LM_FILE_CONFIG;
  const char *wrong = NULL;
  json_t *root = NULL;
  tnk__buf_t buf;
  int err;

  memset(out, 0, sizeof(*out));
  tnk__buf_init(&buf, alloc, 2 * MAX_CONFIG);
  err = tnk__lm_file_read(dir, name, &buf, why);
  if (err == TNK_OK) {
    err = tnk__json_parse_object(&root, buf.data, buf.len);
    if (err == TNK_ENOMEM)
      tnk__lm_refuse(why, err, "out of memory");
    else if (err != TNK_OK)
      err = tnk__lm_refuse(why, TNK_EPROTO, "%s: no JSON object", name);
  }
  tnk__buf_deinit(&buf);
  if (err != TNK_OK)
    return err;
  wrong = take(out, root);
  if (wrong != NULL)
    err = tnk__lm_refuse(why, TNK_EPROTO, "%s: \"%s\" is missing or wrong",
                         name, wrong);
  else if (tnk__lm_config_check(&out->config, NULL) != TNK_OK)
    err = tnk__lm_refuse(why, TNK_EPROTO, "%s: no module is trained", name);
  json_decref(root);
  return err;
}

/* ---- A checkpoint ---- */

/*
 * Checkpoints. Writing: first the tensors, last the config with their
 * checksums. Reading: first the config, then the tensors that it lists, into
 * separate arrays. These replace the model's arrays only if there was no error.
 */

/* The moments of a model with the highest rank have 11 MB. */
#define MAX_FILE ((size_t)64 << 20)

/* Number of moment arrays of an optimizer family. */
static size_t n_moments(tnk__lm_optimizer_t optimizer) {
  return optimizer == TNK__LM_DIMUON ? 1 : 2;
}

static int write_error(const tnk__buf_t *buf, const char *name,
                       tnk__lm_why_t *why) {
  if (buf->err == TNK_OK)
    return TNK_OK;
  if (buf->err == TNK_ENOMEM)
    return tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
  return tnk__lm_refuse(why, TNK_EFAILED, "%s: cannot be written", name);
}

static int save_tensors(const tnk__lm_t *lm, const char *dir, const char *name,
                        size_t first, size_t count, tnk__lm_sum_t *sum,
                        tnk__lm_why_t *why) {
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, lm->alloc, MAX_FILE);
  tnk__lm_tensors_write(lm, first, count, &buf);
  err = write_error(&buf, name, why);
  if (err == TNK_OK) {
    *sum = tnk__lm_file_sum(buf.data, buf.len);
    err = tnk__lm_file_write(dir, name, &buf, why);
  }
  tnk__buf_deinit(&buf);
  return err;
}

int tnk__lm_save(const tnk__lm_t *lm, const char *dir, int with_optimizer,
                 tnk__lm_why_t *why) {
  tnk__lm_saved_config_t saved = {0};
  tnk__buf_t buf;
  int err = save_tensors(lm, dir, TNK__LM_FILE_ADAPTER, PARAM_VALUE, 1,
                         &saved.adapter, why);

  if (err == TNK_OK && with_optimizer)
    err = save_tensors(lm, dir, TNK__LM_FILE_OPTIMIZER, PARAM_MOMENT1,
                       n_moments(lm->config.optimizer), &saved.optimizer, why);
  if (err != TNK_OK)
    return err;
  saved.config = lm->config;
  saved.n_steps = lm->n_steps;
  saved.has_optimizer = with_optimizer != 0;
  tnk__buf_init(&buf, lm->alloc, MAX_FILE);
  tnk__lm_config_write(&saved, &buf);
  err = write_error(&buf, TNK__LM_FILE_CONFIG, why);
  if (err == TNK_OK)
    err = tnk__lm_file_write(dir, TNK__LM_FILE_CONFIG, &buf, why);
  tnk__buf_deinit(&buf);
  if (err == TNK_OK && !with_optimizer)
    tnk__lm_file_remove(lm->alloc, dir, TNK__LM_FILE_OPTIMIZER);
  if (err == TNK_OK)
    tnk__lm_dir_sync(dir);
  return err;
}

static int load_tensors(const tnk__lm_t *lm, const char *dir, const char *name,
                        size_t first, size_t count, const tnk__lm_sum_t *sum,
                        float *const *param, tnk__lm_why_t *why) {
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, lm->alloc, MAX_FILE);
  err = tnk__lm_file_read(dir, name, &buf, why);
  if (err == TNK_ENOTFOUND)
    err = TNK_EPROTO; /* the config lists the file */
  if (err == TNK_OK &&
      strcmp(tnk__lm_file_sum(buf.data, buf.len).text, sum->text) != 0)
    err = tnk__lm_refuse(why, TNK_EPROTO, "%s: the check sum is wrong", name);
  if (err == TNK_OK)
    err = tnk__lm_tensors_read(lm, first, count, buf.data, buf.len, param, name,
                               why);
  tnk__buf_deinit(&buf);
  return err;
}

/* Fill `param`, zeroed arrays with the layout of lm. */
static int load_params(const tnk__lm_t *lm, const tnk__lm_saved_config_t *saved,
                       const char *dir, int with_optimizer, float *const *param,
                       tnk__lm_why_t *why) {
  int err = load_tensors(lm, dir, TNK__LM_FILE_ADAPTER, PARAM_VALUE, 1,
                         &saved->adapter, param, why);

  if (err == TNK_OK && with_optimizer)
    err = load_tensors(lm, dir, TNK__LM_FILE_OPTIMIZER, PARAM_MOMENT1,
                       n_moments(saved->config.optimizer), &saved->optimizer,
                       param, why);
  return err;
}

static int need_optimizer(const tnk__lm_saved_config_t *saved,
                          int with_optimizer, tnk__lm_why_t *why) {
  if (with_optimizer && !saved->has_optimizer)
    return tnk__lm_refuse(why, TNK_ENOTFOUND,
                          "the checkpoint has no optimizer state");
  return TNK_OK;
}

int tnk__lm_load(tnk__lm_t **out, const tnk__lm_base_t *base, const char *dir,
                 int with_optimizer, tnk__lm_optimizer_t optimizer,
                 const tnk_allocator_t *alloc, tnk__lm_why_t *why) {
  tnk__lm_saved_config_t saved;
  tnk__lm_t *lm = NULL;
  int err = tnk__lm_config_read(&saved, dir, alloc, why);

  *out = NULL;
  if (err == TNK_OK)
    err = need_optimizer(&saved, with_optimizer, why);
  if (err != TNK_OK)
    return err;
  if (!with_optimizer)
    saved.config.optimizer = optimizer;
  err = tnk__lm_new(&lm, base, &saved.config, alloc, why);
  if (err == TNK_OK)
    err = load_params(lm, &saved, dir, with_optimizer, lm->param, why);
  if (err != TNK_OK) {
    tnk__lm_free(lm);
    return err;
  }
  lm->n_steps = with_optimizer ? saved.n_steps : 0;
  tnk__lm_merge(lm);
  *out = lm;
  return TNK_OK;
}

static int check_fit(const tnk__lm_t *lm, const tnk__lm_saved_config_t *saved,
                     int with_optimizer, tnk__lm_why_t *why) {
  const tnk__lm_config_t *a = &lm->config;
  const tnk__lm_config_t *b = &saved->config;

  if (a->rank != b->rank)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the checkpoint has rank %lu, the model %lu",
                          (unsigned long)b->rank, (unsigned long)a->rank);
  if (!a->train_mlp != !b->train_mlp || !a->train_attn != !b->train_attn ||
      !a->train_unembed != !b->train_unembed)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the checkpoint trains other layers than the model");
  if (with_optimizer && a->optimizer != b->optimizer)
    return tnk__lm_refuse(why, TNK_EINVAL,
                          "the checkpoint has another optimizer than the "
                          "model");
  return need_optimizer(saved, with_optimizer, why);
}

/* Replace the model's arrays by the loaded ones. */
static void take_over(tnk__lm_t *lm, float **param, uint64_t n_steps) {
  size_t i;

  for (i = 0; i < PARAM_KINDS; i++) {
    float *old = lm->param[i];
    lm->param[i] = param[i];
    param[i] = old;
  }
  lm->n_steps = n_steps;
  tnk__lm_zero_grad(lm);
  tnk__lm_merge(lm);
}

int tnk__lm_restore(tnk__lm_t *lm, const char *dir, int with_optimizer,
                    tnk__lm_why_t *why) {
  tnk__lm_saved_config_t saved;
  float *param[PARAM_KINDS] = {NULL};
  size_t i;
  int err = tnk__lm_config_read(&saved, dir, lm->alloc, why);

  if (err == TNK_OK)
    err = check_fit(lm, &saved, with_optimizer, why);
  for (i = 0; err == TNK_OK && i < PARAM_KINDS; i++) {
    param[i] = tnk__calloc(lm->alloc, lm->n_params, sizeof(float));
    if (param[i] == NULL)
      err = tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
  }
  if (err == TNK_OK)
    err = load_params(lm, &saved, dir, with_optimizer, param, why);
  if (err == TNK_OK)
    take_over(lm, param, with_optimizer ? saved.n_steps : 0);
  for (i = 0; i < PARAM_KINDS; i++)
    tnk__free(lm->alloc, param[i]);
  return err;
}

int tnk__lm_read_config(tnk__lm_config_t *out, const char *dir,
                        int *has_optimizer, const tnk_allocator_t *alloc,
                        tnk__lm_why_t *why) {
  tnk__lm_saved_config_t saved;
  int err = tnk__lm_config_read(&saved, dir, alloc, why);

  if (err == TNK_OK) {
    *out = saved.config;
    *has_optimizer = saved.has_optimizer;
  }
  return err;
}

int tnk__lm_weights_load(tnk__lm_weights_t **out, const tnk__lm_base_t *base,
                         const char *dir, const tnk_allocator_t *alloc,
                         tnk__lm_why_t *why) {
  tnk__lm_t *lm;
  int err = tnk__lm_load(&lm, base, dir, 0, TNK__LM_ADAMW, alloc, why);

  *out = NULL;
  if (err != TNK_OK)
    return err;
  *out = tnk__lm_snapshot(lm);
  tnk__lm_free(lm);
  return *out != NULL ? TNK_OK
                      : tnk__lm_refuse(why, TNK_ENOMEM, "out of memory");
}

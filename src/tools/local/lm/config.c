#include "tools/local/lm/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"
#include "tools/local/lm/check.h"
#include "tools/local/lm/state.h"

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
  tnk__json_key(w, "target_modules");
  tnk__json_begin_array(w);
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
  tnk__json_key(&w, "tnk");
  tnk__json_begin_object(&w);
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
    err = tnk__lm_refuse(why, TNK_EPROTO, "%s: nothing is trained", name);
  json_decref(root);
  return err;
}

/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"
#include "tools/local/lm/checkpoint.h"

/*
 * The files of a checkpoint of the local server. A first byte 'c': what
 * follows is the config file. Else it is the header of an adapter, which the
 * target completes with its length and with data.
 */
enum { N_DATA = (128 + 258) * 4, MAX_SIZE = 1 << 20 };

typedef struct {
  tnk__lm_base_t *base;
  tnk__lm_t *lm;
  char dir[64];
} rig_t;

static void remove_dir(void);

static rig_t *get(void) {
  static rig_t rig;
  tnk__lm_config_t config = TNK__LM_CONFIG_INIT;
  const tnk_allocator_t *alloc = tnk__allocator_default();

  if (rig.lm != NULL)
    return &rig;
  config.rank = 1;
  config.train_mlp = config.train_attn = 0;
  rig.base = tnk__lm_base_new(alloc);
  FUZZ_CHECK(rig.base != NULL);
  FUZZ_CHECK(tnk__lm_new(&rig.lm, rig.base, &config, alloc, NULL) == TNK_OK);
  snprintf(rig.dir, sizeof(rig.dir), "/tmp/tnk-fuzz-XXXXXX");
  FUZZ_CHECK(mkdtemp(rig.dir) != NULL);
  atexit(remove_dir);
  return &rig;
}

static void remove_dir(void) {
  char path[128];

  snprintf(path, sizeof(path), "%s/%s", get()->dir, TNK__LM_FILE_CONFIG);
  unlink(path);
  rmdir(get()->dir);
}

/* ---- The config ---- */

static int read_config(const rig_t *rig, tnk__lm_saved_config_t *out,
                       const void *data, size_t n) {
  tnk__lm_why_t why = {{0}};
  char path[128];
  FILE *file;
  int err;

  snprintf(path, sizeof(path), "%s/%s", rig->dir, TNK__LM_FILE_CONFIG);
  file = fopen(path, "w");
  FUZZ_CHECK(file != NULL && fwrite(data, 1, n, file) == n);
  fclose(file);
  err = tnk__lm_config_read(out, rig->dir, tnk__allocator_default(), &why);
  FUZZ_CHECK(err == TNK_OK || (err == TNK_EPROTO && why.text[0] != '\0'));
  return err;
}

/* Written and read again it says the same. */
static void check_config(const rig_t *rig, const uint8_t *data, size_t n) {
  tnk__lm_saved_config_t saved, again;
  tnk__buf_t buf;

  if (read_config(rig, &saved, data, n) != TNK_OK)
    return;
  FUZZ_CHECK(saved.config.rank >= 1 && saved.config.rank <= TNK__LM_MAX_RANK);
  FUZZ_CHECK(strlen(saved.adapter.text) == 16);
  tnk__buf_init(&buf, tnk__allocator_default(), MAX_SIZE);
  tnk__lm_config_write(&saved, &buf);
  FUZZ_CHECK(buf.err == TNK_OK);
  FUZZ_CHECK(read_config(rig, &again, buf.data, buf.len) == TNK_OK);
  FUZZ_CHECK(again.config.rank == saved.config.rank &&
             again.config.seed == saved.config.seed &&
             again.config.train_mlp == saved.config.train_mlp &&
             again.config.train_attn == saved.config.train_attn &&
             again.config.train_unembed == saved.config.train_unembed &&
             again.config.optimizer == saved.config.optimizer &&
             again.n_steps == saved.n_steps &&
             again.has_optimizer == saved.has_optimizer);
  tnk__buf_deinit(&buf);
}

/* ---- The adapter ---- */

static void assemble(tnk__buf_t *file, const uint8_t *header, size_t n) {
  tnk__buf_init(file, tnk__allocator_default(), MAX_SIZE);
  for (int i = 0; i < 8; i++)
    tnk__buf_byte(file, (uint8_t)(i < 4 ? n >> (8 * i) : 0));
  tnk__buf_append(file, header, n);
  for (size_t i = 0; i < N_DATA; i++)
    tnk__buf_byte(file, (uint8_t)(i * 7 + n));
  FUZZ_CHECK(file->err == TNK_OK);
}

static int read_adapter(const rig_t *rig, const tnk__buf_t *file) {
  tnk__lm_why_t why = {{0}};
  int err = tnk__lm_tensors_read(rig->lm, PARAM_VALUE, 1, file->data, file->len,
                                 rig->lm->param, "f", &why);

  FUZZ_CHECK(err == TNK_OK || (err == TNK_EPROTO && why.text[0] != '\0'));
  return err;
}

/* What was read is written and read with the same bits. */
static void check_adapter(const rig_t *rig, const uint8_t *header, size_t n) {
  tnk__buf_t file, first, second;

  assemble(&file, header, n);
  if (read_adapter(rig, &file) == TNK_OK) {
    tnk__buf_init(&first, tnk__allocator_default(), MAX_SIZE);
    tnk__buf_init(&second, tnk__allocator_default(), MAX_SIZE);
    tnk__lm_tensors_write(rig->lm, PARAM_VALUE, 1, &first);
    FUZZ_CHECK(read_adapter(rig, &first) == TNK_OK);
    tnk__lm_tensors_write(rig->lm, PARAM_VALUE, 1, &second);
    FUZZ_CHECK(first.len == second.len &&
               memcmp(first.data, second.data, first.len) == 0);
    tnk__buf_deinit(&first);
    tnk__buf_deinit(&second);
  }
  tnk__buf_deinit(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const rig_t *rig = get();

  if (size == 0 || size > MAX_SIZE / 2)
    return 0;
  if (data[0] == 'c')
    check_config(rig, data + 1, size - 1);
  else
    check_adapter(rig, data + 1, size - 1);
  return 0;
}

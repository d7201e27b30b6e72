/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lm_help.h"
#include "tools/local/lm/state.h"

static const char *const files[] = {
    TNK__LM_FILE_ADAPTER, TNK__LM_FILE_OPTIMIZER, TNK__LM_FILE_CONFIG};

typedef struct {
  char dir[64];
  char path[160];
  tnk__lm_base_t *base;
} setup_t;

static void set_up(setup_t *s) {
  snprintf(s->dir, sizeof(s->dir), "%s", "/tmp/tnk_lm_XXXXXX");
  CHECK(mkdtemp(s->dir) != NULL);
  s->base = tnk__lm_base_new(test_allocator());
  CHECK(s->base != NULL);
}

static const char *in(setup_t *s, const char *name) {
  snprintf(s->path, sizeof(s->path), "%s/%s", s->dir, name);
  return s->path;
}

static void tear_down(setup_t *s) {
  size_t i;

  for (i = 0; i < 3; i++)
    unlink(in(s, files[i]));
  /* No temporary file is left, or this fails. */
  CHECK_INT(rmdir(s->dir), 0);
  tnk__lm_base_free(s->base);
}

static tnk__lm_t *load(setup_t *s, int with_optimizer) {
  tnk__lm_why_t why = {""};
  tnk__lm_t *lm;
  int err = tnk__lm_load(&lm, s->base, s->dir, with_optimizer, TNK__LM_ADAMW,
                         test_allocator(), &why);

  CHECK_STR(why.text, "");
  CHECK_INT(err, TNK_OK);
  return lm;
}

static void check_equal(const tnk__lm_t *a, const tnk__lm_t *b,
                        size_t n_arrays) {
  size_t i;

  CHECK_INT(a->n_params, b->n_params);
  for (i = 0; i < n_arrays; i++)
    CHECK_INT(memcmp(a->param[i], b->param[i], a->n_params * sizeof(float)), 0);
  CHECK_INT(memcmp(a->w, b->w, TNK__LM_N_WEIGHTS * sizeof(float)), 0);
}

TEST(training_goes_on_bit_for_bit) {
  setup_t s;
  tnk__lm_t *lm;
  tnk__lm_t *again;

  set_up(&s);
  lm = lm_model(s.base, 5, 9);
  lm_learn(lm, 3, 40);
  CHECK_INT(tnk__lm_save(lm, s.dir, 1, NULL), TNK_OK);
  again = load(&s, 1);
  CHECK_INT(again->n_steps, 3);
  CHECK_INT(tnk__lm_config(again)->seed, 9);
  check_equal(lm, again, PARAM_KINDS);
  lm_learn(lm, 2, 40);
  lm_learn(again, 2, 40);
  check_equal(lm, again, PARAM_KINDS);
  tnk__lm_free(again);
  tnk__lm_free(lm);
  tear_down(&s);
}

TEST(without_the_optimizer_moments_start_anew) {
  setup_t s;
  tnk__lm_config_t config;
  tnk__lm_weights_t *weights;
  tnk__lm_why_t why;
  tnk__lm_t *lm;
  tnk__lm_t *again;
  int has = 1;
  size_t i;

  set_up(&s);
  lm = lm_model(s.base, 17, 1);
  lm_learn(lm, 2, 40);
  /* The second save takes the place of the first and its moments. */
  CHECK_INT(tnk__lm_save(lm, s.dir, 1, NULL), TNK_OK);
  CHECK_INT(tnk__lm_save(lm, s.dir, 0, NULL), TNK_OK);
  CHECK(access(in(&s, TNK__LM_FILE_OPTIMIZER), F_OK) != 0);
  CHECK_INT(tnk__lm_read_config(&config, s.dir, &has, test_allocator(), NULL),
            TNK_OK);
  CHECK_INT(config.rank, 17);
  CHECK_INT(has, 0);
  CHECK_INT(tnk__lm_load(&again, s.base, s.dir, 1, TNK__LM_ADAMW,
                         test_allocator(), &why),
            TNK_ENOTFOUND);
  CHECK_STR(why.text, "the checkpoint has no optimizer state");
  again = load(&s, 0);
  CHECK_INT(again->n_steps, 0);
  check_equal(lm, again, 1);
  for (i = 0; i < again->n_params; i++)
    CHECK(again->param[PARAM_MOMENT2][i] == 0);
  CHECK_INT(
      tnk__lm_weights_load(&weights, s.base, s.dir, test_allocator(), NULL),
      TNK_OK);
  CHECK_INT(memcmp(weights->w, lm->w, TNK__LM_N_WEIGHTS * sizeof(float)), 0);
  tnk__lm_weights_free(weights);
  tnk__lm_free(again);
  tnk__lm_free(lm);
  tear_down(&s);
}

TEST(restore_into_a_model) {
  setup_t s;
  tnk__lm_t *lm;
  tnk__lm_t *other;
  tnk__lm_t *wider;
  tnk__lm_why_t why;
  float *before;

  set_up(&s);
  lm = lm_model(s.base, 4, 1);
  other = lm_model(s.base, 4, 2);
  wider = lm_model(s.base, 8, 2);
  lm_learn(lm, 2, 40);
  lm_learn(other, 1, 40);
  CHECK_INT(tnk__lm_save(lm, s.dir, 1, NULL), TNK_OK);
  CHECK_INT(tnk__lm_restore(wider, s.dir, 1, &why), TNK_EINVAL);
  CHECK_STR(why.text, "the checkpoint has rank 4, the model 8");
  CHECK_INT(tnk__lm_restore(other, s.dir, 1, NULL), TNK_OK);
  CHECK_INT(other->n_steps, 2);
  check_equal(lm, other, PARAM_KINDS);
  /* A failure leaves the model alone. */
  lm_learn(other, 1, 40);
  before = malloc(other->n_params * sizeof(*before));
  CHECK(before != NULL);
  memcpy(before, other->param[0], other->n_params * sizeof(*before));
  CHECK_INT(truncate(in(&s, TNK__LM_FILE_OPTIMIZER), 1000), 0);
  CHECK_INT(tnk__lm_restore(other, s.dir, 1, &why), TNK_EPROTO);
  CHECK_STR(why.text, "optimizer.safetensors: the check sum is wrong");
  CHECK_INT(memcmp(before, other->param[0], other->n_params * sizeof(*before)),
            0);
  CHECK_INT(other->n_steps, 3);
  CHECK_INT(tnk__lm_restore(other, s.dir, 0, NULL), TNK_OK);
  CHECK_INT(other->n_steps, 0);
  check_equal(lm, other, 1);
  free(before);
  tnk__lm_free(lm);
  tnk__lm_free(other);
  tnk__lm_free(wider);
  tear_down(&s);
}

/* Overwrite one byte, or cut the file there. */
static void damage(const char *path, long at, int cut) {
  FILE *f = fopen(path, "r+b");
  int byte;

  CHECK(f != NULL);
  if (!cut) {
    CHECK_INT(fseek(f, at, SEEK_SET), 0);
    byte = fgetc(f);
    CHECK(byte != EOF);
    CHECK_INT(fseek(f, at, SEEK_SET), 0);
    CHECK(fputc(byte ^ 0x21, f) != EOF);
  }
  fclose(f);
  if (cut)
    CHECK_INT(truncate(path, at), 0);
}

TEST(damaged_files_are_refused) {
  setup_t s;
  tnk__lm_config_t config = TNK__LM_CONFIG_INIT;
  tnk__lm_t *lm;
  tnk__lm_t *again;
  struct stat st;
  size_t i;
  int k;

  set_up(&s);
  config.rank = 1;
  config.train_attn = config.train_mlp = 0;
  CHECK_INT(tnk__lm_new(&lm, s.base, &config, test_allocator(), NULL), TNK_OK);
  for (i = 0; i < 2; i++)
    for (k = 0; k < 12; k++) {
      CHECK_INT(tnk__lm_save(lm, s.dir, 1, NULL), TNK_OK);
      CHECK_INT(stat(in(&s, files[i]), &st), 0);
      damage(s.path, (long)st.st_size * k / 12, k % 2);
      CHECK_INT(tnk__lm_load(&again, s.base, s.dir, 1, TNK__LM_ADAMW,
                             test_allocator(), NULL),
                TNK_EPROTO);
      CHECK(again == NULL);
    }
  CHECK_INT(tnk__lm_save(lm, s.dir, 1, NULL), TNK_OK);
  CHECK_INT(unlink(in(&s, TNK__LM_FILE_ADAPTER)), 0);
  CHECK_INT(tnk__lm_load(&again, s.base, s.dir, 1, TNK__LM_ADAMW,
                         test_allocator(), NULL),
            TNK_EPROTO);
  CHECK_INT(unlink(in(&s, TNK__LM_FILE_CONFIG)), 0);
  CHECK_INT(tnk__lm_load(&again, s.base, s.dir, 1, TNK__LM_ADAMW,
                         test_allocator(), NULL),
            TNK_ENOTFOUND);
  tnk__lm_free(lm);
  tear_down(&s);
}

/* The config is small enough to try each place. */
TEST(no_cut_or_changed_config_does_harm) {
  setup_t s;
  tnk__lm_config_t config;
  tnk__lm_t *lm;
  char text[1024];
  FILE *f;
  size_t n;
  size_t i;
  int has;

  set_up(&s);
  lm = lm_model(s.base, 1, 1);
  CHECK_INT(tnk__lm_save(lm, s.dir, 1, NULL), TNK_OK);
  tnk__lm_free(lm);
  f = fopen(in(&s, TNK__LM_FILE_CONFIG), "rb");
  CHECK(f != NULL);
  n = fread(text, 1, sizeof(text), f);
  fclose(f);
  CHECK(n > 100 && n < sizeof(text));
  for (i = 0; i < n; i++) {
    f = fopen(s.path, "wb");
    CHECK(f != NULL);
    CHECK_INT(fwrite(text, 1, i, f), i);
    fclose(f);
    CHECK_INT(tnk__lm_read_config(&config, s.dir, &has, test_allocator(), NULL),
              TNK_EPROTO);
  }
  tear_down(&s);
}

typedef struct {
  const char *from;
  const char *to;
  const char *why;
} change_t;

TEST(configs_with_a_wrong_field) {
  static const change_t changes[] = {
      {"\"r\":1,", "\"r\":0,", "\"r\" is missing or wrong"},
      {"\"r\":1,", "\"r\":257,", "\"r\" is missing or wrong"},
      {"\"base_version\":1", "\"base_version\":0",
       "\"base_version\" is missing or wrong"},
      {"\"seed\":\"1\"", "\"seed\":\"-1\"", "\"seed\" is missing or wrong"},
      {"\"seed\":\"1\"", "\"seed\":\"18446744073709551616\"",
       "\"seed\" is missing or wrong"},
      {"\"train_mlp\":true", "\"train_mlp\":1",
       "\"train_mlp\" is missing or wrong"},
      {"\"adamw\"", "\"sgd\"", "\"optimizer\" is missing or wrong"},
      {"\"tnk\":{", "\"tnk\":7,\"x\":{", "\"tnk\" is missing or wrong"},
  };
  setup_t s;
  tnk__lm_config_t config;
  tnk__lm_why_t why;
  char text[1024];
  char expected[128];
  tnk__lm_t *lm;
  size_t i;
  int has;

  set_up(&s);
  lm = lm_model(s.base, 1, 1);
  CHECK_INT(tnk__lm_save(lm, s.dir, 0, NULL), TNK_OK);
  tnk__lm_free(lm);
  for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
    const change_t *c = &changes[i];
    char *at;
    FILE *f = fopen(in(&s, TNK__LM_FILE_CONFIG), "rb");
    size_t n;
    CHECK(f != NULL);
    n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    at = strstr(text, c->from);
    CHECK(at != NULL);
    f = fopen(s.path, "wb");
    CHECK(f != NULL);
    fprintf(f, "%.*s%s%s", (int)(at - text), text, c->to, at + strlen(c->from));
    fclose(f);
    CHECK_INT(tnk__lm_read_config(&config, s.dir, &has, test_allocator(), &why),
              TNK_EPROTO);
    snprintf(expected, sizeof(expected), "adapter_config.json: %s", c->why);
    CHECK_STR(why.text, expected);
    f = fopen(s.path, "wb");
    CHECK(f != NULL);
    CHECK_INT(fwrite(text, 1, n, f), n);
    fclose(f);
  }
  tear_down(&s);
}

TEST(a_directory_that_is_not_there) {
  setup_t s;
  tnk__lm_why_t why;
  tnk__lm_t *lm;
  tnk__lm_t *again;

  set_up(&s);
  lm = lm_model(s.base, 1, 1);
  CHECK_INT(tnk__lm_save(lm, in(&s, "none"), 1, &why), TNK_EFAILED);
  CHECK_STR(why.text, "adapter_model.safetensors: No such file or directory");
  CHECK_INT(tnk__lm_load(&again, s.base, in(&s, "none"), 1, TNK__LM_ADAMW,
                         test_allocator(), &why),
            TNK_ENOTFOUND);
  tnk__lm_free(lm);
  tear_down(&s);
}

TEST(every_allocation_of_a_checkpoint_may_fail) {
  setup_t s;
  tnk__lm_t *lm;
  tnk__lm_t *again;
  int err = TNK_ENOMEM;
  long n;

  set_up(&s);
  lm = lm_model(s.base, 1, 1);
  for (n = 0; err != TNK_OK; n++) {
    test_alloc_fail_at(n);
    err = tnk__lm_save(lm, s.dir, 1, NULL);
    CHECK(err == TNK_ENOMEM || (err == TNK_OK && !test_alloc_did_fail()));
  }
  CHECK(n > 5);
  for (n = 0, err = TNK_ENOMEM; err != TNK_OK; n++) {
    test_alloc_fail_at(n);
    err = tnk__lm_load(&again, s.base, s.dir, 1, TNK__LM_ADAMW,
                       test_allocator(), NULL);
    tnk__lm_free(again);
    CHECK(err == TNK_ENOMEM || (err == TNK_OK && !test_alloc_did_fail()));
  }
  for (n = 0, err = TNK_ENOMEM; err != TNK_OK; n++) {
    test_alloc_fail_at(n);
    err = tnk__lm_restore(lm, s.dir, 1, NULL);
    CHECK(err == TNK_ENOMEM || (err == TNK_OK && !test_alloc_did_fail()));
  }
  test_alloc_fail_at(-1);
  tnk__lm_free(lm);
  tear_down(&s);
}

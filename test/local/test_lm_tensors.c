/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "lm_help.h"
#include "tools/local/lm/checkpoint.h"

/* What is read from a file whose check sum is right, so to speak. */

typedef struct {
  tnk__lm_base_t *base;
  tnk__lm_t *lm;
  float *param[PARAM_KINDS];
  tnk__buf_t buf;
} setup_t;

static void set_up(setup_t *s) {
  tnk__lm_config_t config = TNK__LM_CONFIG_INIT;

  config.rank = 1;
  config.train_mlp = config.train_attn = 0;
  s->base = tnk__lm_base_new(test_allocator());
  CHECK(s->base != NULL);
  CHECK_INT(tnk__lm_new(&s->lm, s->base, &config, test_allocator(), NULL),
            TNK_OK);
  tnk__buf_init(&s->buf, test_allocator(), 1 << 20);
  tnk__lm_tensors_write(s->lm, PARAM_VALUE, 1, &s->buf);
  CHECK_INT(s->buf.err, TNK_OK);
  memcpy(s->param, s->lm->param, sizeof(s->param));
}

static void tear_down(setup_t *s) {
  tnk__buf_deinit(&s->buf);
  tnk__lm_free(s->lm);
  tnk__lm_base_free(s->base);
}

static int read_back(setup_t *s, const void *data, size_t n,
                     tnk__lm_why_t *why) {
  return tnk__lm_tensors_read(s->lm, PARAM_VALUE, 1, data, n, s->param, "f",
                              why);
}

TEST(a_file_has_the_form_others_read) {
  static const char header[] =
      "{\"__metadata__\":{\"format\":\"pt\"},"
      "\"base_model.model.lm_head.lora_A.weight\":"
      "{\"dtype\":\"F32\",\"shape\":[1,128],\"data_offsets\":[0,512]},"
      "\"base_model.model.lm_head.lora_B.weight\":"
      "{\"dtype\":\"F32\",\"shape\":[258,1],\"data_offsets\":[512,1544]}}";
  setup_t s;
  size_t n;

  set_up(&s);
  n = s.buf.data[0] + 256u * s.buf.data[1];
  CHECK(n % 8 == 0 && n >= sizeof(header) - 1);
  CHECK_MEM(s.buf.data + 8, sizeof(header) - 1, header, sizeof(header) - 1);
  CHECK_INT(s.buf.len, 8 + n + 1544);
  CHECK_INT(read_back(&s, s.buf.data, s.buf.len, NULL), TNK_OK);
  tear_down(&s);
}

TEST(every_cut_is_refused) {
  setup_t s;
  size_t i;

  set_up(&s);
  for (i = 0; i < s.buf.len; i++) {
    /* In memory of its own, so that a sanitizer sees the end. */
    uint8_t *copy = malloc(i + 1);
    CHECK(copy != NULL);
    memcpy(copy, s.buf.data, i);
    CHECK_INT(read_back(&s, copy, i, NULL), TNK_EPROTO);
    free(copy);
  }
  tear_down(&s);
}

/* No changed byte of the header makes it read elsewhere. */
TEST(changed_headers_do_no_harm) {
  setup_t s;
  uint64_t state = 1;
  size_t n_header;
  int i;

  set_up(&s);
  n_header = s.buf.len - 1544;
  for (i = 0; i < 3000; i++) {
    size_t at = (size_t)(test_random(&state) % n_header);
    uint8_t old = s.buf.data[at];
    int err;
    s.buf.data[at] = (uint8_t)test_random(&state);
    err = read_back(&s, s.buf.data, s.buf.len, NULL);
    CHECK(err == TNK_OK || err == TNK_EPROTO);
    s.buf.data[at] = old;
  }
  tear_down(&s);
}

static void with_header(setup_t *s, const char *header, const char *text) {
  static uint8_t file[4096];
  tnk__lm_why_t why;

  memset(file, 0, sizeof(file));
  file[0] = (uint8_t)(strlen(header) % 256);
  file[1] = (uint8_t)(strlen(header) / 256);
  memcpy(file + 8, header, strlen(header));
  CHECK_INT(read_back(s, file, sizeof(file), &why), TNK_EPROTO);
  CHECK_STR(why.text, text);
}

#define A "\"base_model.model.lm_head.lora_A.weight\":"
#define NOT_F32 "f: base_model.model.lm_head.lora_A.weight is not F32 [1, 128]"
#define OUTSIDE                                                                \
  "f: the data of base_model.model.lm_head.lora_A.weight are outside"

TEST(headers_that_lie) {
  setup_t s;

  set_up(&s);
  with_header(&s, "[]", "f: the header is not a JSON object");
  with_header(&s, "{}", "f: base_model.model.lm_head.lora_A.weight is missing");
  with_header(&s,
              "{" A "{\"dtype\":\"F16\",\"shape\":[1,128],"
              "\"data_offsets\":[0,512]}}",
              NOT_F32);
  with_header(&s,
              "{" A "{\"dtype\":\"F32\",\"shape\":[128,1],"
              "\"data_offsets\":[0,512]}}",
              NOT_F32);
  with_header(&s,
              "{" A "{\"dtype\":\"F32\",\"shape\":[1,128],"
              "\"data_offsets\":[4000,4512]}}",
              OUTSIDE);
  with_header(&s,
              "{" A "{\"dtype\":\"F32\",\"shape\":[1,128],"
              "\"data_offsets\":[-512,0]}}",
              OUTSIDE);
  with_header(&s,
              "{" A "{\"dtype\":\"F32\",\"shape\":[1,128],"
              "\"data_offsets\":[0,508]}}",
              OUTSIDE);
  tear_down(&s);
}

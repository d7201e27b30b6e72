/* SPDX-License-Identifier: MIT */
/* The text by which another process samples from the same sampler. */
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/limits.h"
#include "lib/wire/message/sampler_text.h"
#include "support/test.h"
#include "tnk/error.h"

static const tnk__sampler_text_t sampler = {
    .session_id = "s1",
    .sampling_session_id = "s1:sample:0",
    .base_url = "https://h/p",
    .base_model = "m/x",
    .record_stability_info = 1,
};

/* The form of the official client's, member by member. */
static const char json[] =
    "{\"session_id\":\"s1\",\"sampling_session_id\":\"s1:sample:0\","
    "\"holder\":{\"base_url\":\"https://h/p\",\"default_headers_overrides\":{},"
    "\"client_config\":{},\"client_dynamic_config\":{},\"api_key\":null},"
    "\"base_model\":\"m/x\",\"record_stability_info\":true}";

typedef struct {
  tnk__arena_t arena;
  tnk__sampler_text_t read;
  const char *why;
  int err;
} reading_t;

static void read_text(reading_t *r, const char *text) {
  tnk__arena_init(&r->arena, test_allocator(), TNK__MIB);
  memset(&r->read, 0, sizeof(r->read));
  r->err = tnk__sampler_text_read(&r->read, &r->arena, text, &r->why);
}

/* What the JSON says, as a text. */
static void read_json(reading_t *r, const char *text) {
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), TNK__MIB);
  tnk__base64_write(&buf, text, strlen(text));
  tnk__buf_byte(&buf, '\0');
  read_text(r, (const char *)buf.data);
  tnk__buf_deinit(&buf);
}

static void expect_refused(const char *text, const char *why) {
  reading_t r;

  read_json(&r, text);
  CHECK_INT(r.err, TNK_EINVAL);
  CHECK_STR(r.why, why);
  tnk__arena_deinit(&r.arena);
}

TEST(D18_a_sampler_is_written_as_one_printable_word) {
  uint8_t back[sizeof(json) + 8];
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), TNK__MIB);
  tnk__sampler_text_write(&buf, &sampler);
  CHECK_INT(buf.err, TNK_OK);
  for (size_t i = 0; i < buf.len; i++)
    CHECK(strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                 "0123456789-_=",
                 buf.data[i]) != NULL);
  CHECK_INT(buf.len, (sizeof(json) - 1 + 2) / 3 * 4);
  CHECK_MEM(back, tnk__base64_decode(back, (const char *)buf.data, buf.len),
            json, sizeof(json) - 1);
  tnk__buf_deinit(&buf);
}

TEST(D18_a_sampler_is_read_back) {
  reading_t r;
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), TNK__MIB);
  tnk__sampler_text_write(&buf, &sampler);
  tnk__buf_byte(&buf, '\0');
  read_text(&r, (const char *)buf.data);
  tnk__buf_deinit(&buf);
  CHECK_INT(r.err, TNK_OK);
  CHECK_STR(r.read.session_id, "s1");
  CHECK_STR(r.read.sampling_session_id, "s1:sample:0");
  CHECK_STR(r.read.base_url, "https://h/p");
  CHECK_STR(r.read.base_model, "m/x");
  CHECK_INT(r.read.record_stability_info, 1);
  tnk__arena_deinit(&r.arena);
}

/* Those of the official client hold its flags, and newer ones may hold more. */
TEST(D18_what_is_not_known_in_a_text_is_ignored) {
  reading_t r;

  read_json(&r, "{\"session_id\":\"s\",\"sampling_session_id\":\"t\","
                "\"holder\":{\"base_url\":\"http://evil\","
                "\"default_headers_overrides\":{\"a\":\"b\"},"
                "\"client_config\":{\"pjwt_auth_enabled\":false},"
                "\"api_key\":\"tml-x\"},\"base_model\":null,\"new\":[1]}");
  CHECK_INT(r.err, TNK_OK);
  CHECK_STR(r.read.sampling_session_id, "t");
  CHECK(r.read.base_model == NULL);
  CHECK_INT(r.read.record_stability_info, 0);
  tnk__arena_deinit(&r.arena);
}

TEST(D18_a_text_that_is_none_is_refused) {
  static const char cut[] = "it was cut or changed on the way";
  static char long_text[70000];
  reading_t r;

  expect_refused("", cut);
  expect_refused("[]", cut);
  expect_refused("{}", cut);
  expect_refused("{\"session_id\":\"s\"}", cut);
  expect_refused("{\"sampling_session_id\":\"s\"}", cut);
  expect_refused("{\"session_id\":\"\",\"sampling_session_id\":\"t\"}", cut);
  expect_refused("{\"session_id\":1,\"sampling_session_id\":\"t\"}", cut);
  expect_refused("{\"session_id\":\"a b\",\"sampling_session_id\":\"t\"}", cut);
  expect_refused("{\"session_id\":\"s\",\"sampling_session_id\":\"t\\n\"}",
                 cut);
  expect_refused("{\"session_id\":\"s\",\"sampling_session_id\":\"t\","
                 "\"base_model\":1}",
                 cut);
  expect_refused("{\"session_id\":\"s\",\"sampling_session_id\":\"t\","
                 "\"record_stability_info\":1}",
                 cut);
  read_text(&r, "not base64!");
  CHECK_INT(r.err, TNK_EINVAL);
  CHECK_STR(r.why, cut);
  tnk__arena_deinit(&r.arena);
  memset(long_text, 'A', sizeof(long_text) - 1);
  read_text(&r, long_text);
  CHECK_INT(r.err, TNK_EINVAL);
  CHECK_STR(r.why, "it is too long");
  tnk__arena_deinit(&r.arena);
}

TEST(D18_a_text_is_refused_wherever_it_is_cut) {
  char text[sizeof(json) * 2];
  reading_t r;
  tnk__buf_t buf;
  size_t n;

  tnk__buf_init(&buf, test_allocator(), TNK__MIB);
  tnk__sampler_text_write(&buf, &sampler);
  n = buf.len;
  memcpy(text, buf.data, n);
  tnk__buf_deinit(&buf);
  while (n-- > 0) {
    /* All but the padding, which may be missing. */
    if (text[n] == '=')
      continue;
    text[n] = '\0';
    read_text(&r, text);
    CHECK_INT(r.err, TNK_EINVAL);
    tnk__arena_deinit(&r.arena);
  }
}

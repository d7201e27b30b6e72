/* SPDX-License-Identifier: MIT */
#include "lib/wire/message/pass_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/wire.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"

/* A chunk with n outputs, each an empty map, and these metrics. */
static tnk_pass_t *chunk(size_t n, const char *metrics) {
  tnk__buf_t buf;
  tnk_pass_t *pass;

  tnk__buf_init(&buf, tnk__allocator_default(), 1 << 24);
  tnk__buf_text(&buf, "{\"loss_fn_output_type\":\"t\",\"loss_fn_outputs\":[");
  for (size_t i = 0; i < n; i++)
    tnk__buf_printf(&buf, "%s{\"i\":[%zu]}", i > 0 ? "," : "", i);
  tnk__buf_printf(&buf, "],\"metrics\":{%s}}", metrics);
  CHECK_INT(
      tnk__pass_result_read(&pass, test_allocator(), buf.data, buf.len, 0),
      TNK_OK);
  tnk__buf_deinit(&buf);
  return pass;
}

static tnk_pass_t *combine(tnk_pass_t **parts, size_t n) {
  tnk_pass_t *pass;

  CHECK_INT(tnk__pass_result_combine(&pass, test_allocator(), parts, NULL, n),
            TNK_OK);
  return pass;
}

static double get(const tnk_pass_t *pass, const char *key) {
  return tnk_metrics_get(tnk_pass_metrics(pass), key);
}

static int warned(const tnk_pass_t *pass, const char *text) {
  for (size_t i = 0; i < pass->warnings.n; i++)
    if (strstr(pass->warnings.text[i], text) != NULL)
      return 1;
  return 0;
}

TEST(S1_4b_vector_K_metrics_combine_by_suffix) {
  tnk_pass_t *parts[] = {
      chunk(1, "\"a:mean\":1,\"b:slack\":1,\"f:unique\":1,\"g:hash2\":1.9,"
               "\"h:last\":1,\"i:mean\":1,\"j:sum\":1,\"k:min\":1,\"l:max\":1"),
      chunk(3, "\"a:mean\":2,\"b:slack\":2,\"f:unique\":2,\"g:hash2\":-3.9,"
               "\"h:last\":2,\"j:sum\":2,\"k:min\":2,\"l:max\":2")};
  tnk_pass_t *pass = combine(parts, 2);
  const tnk_metrics_t *metrics = tnk_pass_metrics(pass);
  uint64_t hash = 0;

  CHECK_NEAR(get(pass, "a:mean"), 1.75, 0);
  CHECK_NEAR(get(pass, "b:slack"), 0.25, 0);
  CHECK_NEAR(get(pass, "f:unique"), 1, 0);
  CHECK_NEAR(get(pass, "f:unique_1"), 2, 0);
  CHECK_INT(tnk_metrics_hash(&hash, metrics, "g:hash2"), 1);
  CHECK(hash == 18446744073709551614u);
  CHECK_NEAR(get(pass, "j:sum"), 3, 0);
  CHECK_NEAR(get(pass, "k:min"), 1, 0);
  CHECK_NEAR(get(pass, "l:max"), 2, 0);
  CHECK(isnan(get(pass, "h:last")));
  CHECK(isnan(get(pass, "i:mean")));
  CHECK_INT(tnk_metrics_count(metrics), 8);
  CHECK_STR(tnk_metrics_key(metrics, 0), "a:mean");
  CHECK_STR(tnk_metrics_key(metrics, 3), "f:unique_1");
  CHECK_INT(tnk_metrics_hash(&hash, metrics, "a:mean"), 0);
  CHECK(warned(pass, "metric \"h:last\" is left out: its ending"));
  CHECK(warned(pass, "metric \"i:mean\" is left out: not every"));
  CHECK(warned(pass, "no metric \"loss:sum\""));
  CHECK_INT(tnk_pass_count(pass), 4);
  tnk__pass_result_free(test_allocator(), pass);
}

TEST(hash2_is_exact_modulo_2_to_64) {
  static const struct {
    const char *first;
    const char *second; /* NULL: one chunk */
    uint64_t sum;
  } cases[] = {
      {"18446744073709551616.0", "9223372036854775808.0", 9223372036854775808u},
      {"-1.0", NULL, 18446744073709551615u},
      {"-0.9", NULL, 0},
      {"0", "0.99", 0},
      {"5", "-5", 0},
      {"1e300", "3", 3},
      {"2251799813685249.5", NULL, 2251799813685249u},
      {"9223372036854774784.0", NULL, 9223372036854774784u},
      {"5e-324", "7.5", 7},
      {"-18446744073709549568.0", NULL, 2048}};
  char text[64];

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    tnk_pass_t *parts[2], *pass;
    uint64_t hash = 1;
    size_t n = cases[i].second == NULL ? 1 : 2;

    snprintf(text, sizeof(text), "\"h:hash2\":%s", cases[i].first);
    parts[0] = chunk(1, text);
    if (n == 2) {
      snprintf(text, sizeof(text), "\"h:hash2\":%s", cases[i].second);
      parts[1] = chunk(1, text);
    }
    pass = combine(parts, n);
    CHECK_INT(tnk_metrics_hash(&hash, tnk_pass_metrics(pass), "h:hash2"), 1);
    if (hash != cases[i].sum)
      test_fail(__FILE__, __LINE__, "case %zu: %llu", i,
                (unsigned long long)hash);
    tnk__pass_result_free(test_allocator(), pass);
  }
}

TEST(a_hash_that_is_not_finite_costs_only_itself) {
  tnk_pass_t *parts[] = {chunk(1, "\"h:hash2\":null,\"loss:sum\":2")};
  tnk_pass_t *pass = combine(parts, 1);

  CHECK(isnan(get(pass, "h:hash2")));
  CHECK_INT(tnk_metrics_count(tnk_pass_metrics(pass)), 1);
  CHECK_INT(pass->warnings.n, 1);
  CHECK(warned(pass, "not finite"));
  CHECK_NEAR(tnk_pass_loss(pass), 2, 0);
  tnk__pass_result_free(test_allocator(), pass);
}

TEST(M5_keys_without_a_colon_are_averaged) {
  tnk_pass_t *parts[] = {chunk(1, "\"loss\":1,\"x:y:sum\":1,\"z:\":1"),
                         chunk(3, "\"loss\":2,\"x:y:sum\":2,\"z:\":1")};
  tnk_pass_t *pass = combine(parts, 2);

  CHECK_NEAR(tnk_pass_loss(pass), 1.75, 0);
  CHECK_NEAR(get(pass, "x:y:sum"), 3, 0);
  CHECK(isnan(get(pass, "z:")));
  tnk__pass_result_free(test_allocator(), pass);
}

TEST(M6_weights_without_outputs) {
  static const size_t n_data[] = {1, 3}, none[] = {0, 0};
  const size_t *const weights[] = {NULL, n_data, none};
  static const double means[] = {1.5, 1.75, 1.5};

  for (int i = 0; i < 3; i++) {
    tnk_pass_t *parts[] = {chunk(0, "\"a:mean\":1,\"b:slack\":1"),
                           chunk(0, "\"a:mean\":2,\"b:slack\":2")};
    tnk_pass_t *pass;

    CHECK_INT(
        tnk__pass_result_combine(&pass, test_allocator(), parts, weights[i], 2),
        TNK_OK);
    CHECK_NEAR(get(pass, "a:mean"), means[i], 0);
    CHECK_NEAR(get(pass, "b:slack"), 2 - means[i], 0);
    tnk__pass_result_free(test_allocator(), pass);
  }
}

TEST(M8_a_single_chunk_is_reduced_too) {
  tnk_pass_t *parts[] = {
      chunk(2, "\"a:mean\":4,\"b:slack\":4,\"c:last\":4,\"d:unique\":4")};
  tnk_pass_t *pass = combine(parts, 1);

  CHECK_NEAR(get(pass, "a:mean"), 4, 0);
  CHECK_NEAR(get(pass, "b:slack"), 0, 0);
  CHECK_NEAR(get(pass, "d:unique"), 4, 0);
  CHECK_INT(tnk_metrics_count(tnk_pass_metrics(pass)), 3);
  tnk__pass_result_free(test_allocator(), pass);
}

TEST(nan_goes_through_all_reducers) {
  static const char *const keys[] = {"a:sum", "a:min", "a:max", "a:mean",
                                     "a:slack"};
  for (int at = 0; at < 3; at++) {
    tnk_pass_t *parts[3];
    tnk_pass_t *pass;

    for (int i = 0; i < 3; i++)
      parts[i] = chunk(1, i == at ? "\"a:sum\":null,\"a:min\":null,\"a:max\":"
                                    "null,\"a:mean\":null,\"a:slack\":null"
                                  : "\"a:sum\":1,\"a:min\":1,\"a:max\":1,"
                                    "\"a:mean\":1,\"a:slack\":1");
    pass = combine(parts, 3);
    CHECK_INT(tnk_metrics_count(tnk_pass_metrics(pass)), 5);
    for (int k = 0; k < 5; k++)
      CHECK(isnan(get(pass, keys[k])));
    tnk__pass_result_free(test_allocator(), pass);
  }
}

TEST(M9_output_types_that_differ) {
  static const char other[] =
      "{\"loss_fn_output_type\":\"u\",\"metrics\":{\"loss:sum\":1}}";
  tnk_pass_t *parts[] = {chunk(1, "\"loss:sum\":1"), NULL};
  tnk_pass_t *pass;

  CHECK_INT(tnk__pass_result_read(&parts[1], test_allocator(), other,
                                  strlen(other), 0),
            TNK_OK);
  pass = combine(parts, 2);
  CHECK_STR(tnk_pass_output_type(pass), "t");
  CHECK_INT(pass->warnings.n, 1);
  CHECK(warned(pass, "different types"));
  tnk__pass_result_free(test_allocator(), pass);
}

TEST(S3_6b_outputs_keep_the_order_of_the_chunks) {
  enum { CHUNKS = 7 };
  tnk_pass_t *parts[CHUNKS], *pass;
  size_t at = 0;

  for (size_t i = 0; i < CHUNKS; i++)
    parts[i] = chunk(i, "\"loss:sum\":0.5");
  pass = combine(parts, CHUNKS);
  CHECK_INT(tnk_pass_count(pass), 21);
  for (size_t i = 0; i < CHUNKS; i++)
    for (size_t d = 0; d < i; d++, at++) {
      const tnk_tensor_t *tensor = tnk_pass_tensor(pass, at, "i");

      CHECK_INT(((const int64_t *)tensor->data)[0], d);
    }
  CHECK_NEAR(tnk_pass_loss(pass), 3.5, 0);
  CHECK_INT(pass->warnings.n, 0);
  tnk__pass_result_free(test_allocator(), pass);
}

TEST(S1_4b_ten_thousand_keys) {
  enum { KEYS = 10000 };
  tnk__buf_t text;
  tnk_pass_t *parts[3], *pass;
  char key[32];

  tnk__buf_init(&text, tnk__allocator_default(), 1 << 20);
  for (int i = 0; i < KEYS; i++)
    tnk__buf_printf(&text, "%s\"key%d:sum\":%d", i > 0 ? "," : "",
                    i * 7919 % KEYS, i);
  for (int i = 0; i < 3; i++)
    parts[i] = chunk(1, tnk__buf_cstr(&text));
  tnk__buf_deinit(&text);
  pass = combine(parts, 3);
  CHECK_INT(tnk_metrics_count(tnk_pass_metrics(pass)), KEYS);
  for (int i = 0; i < KEYS; i++) {
    snprintf(key, sizeof(key), "key%d:sum", i * 7919 % KEYS);
    CHECK_STR(tnk_metrics_key(tnk_pass_metrics(pass), (size_t)i), key);
    CHECK_NEAR(get(pass, key), 3 * i, 0);
  }
  tnk__pass_result_free(test_allocator(), pass);
}

TEST(warnings_have_an_end) {
  tnk__buf_t text;
  tnk_pass_t *parts[1], *pass;

  tnk__buf_init(&text, tnk__allocator_default(), 1 << 20);
  for (int i = 0; i < 100; i++)
    tnk__buf_printf(&text, "%s\"k%d:what\":1", i > 0 ? "," : "", i);
  parts[0] = chunk(1, tnk__buf_cstr(&text));
  tnk__buf_deinit(&text);
  pass = combine(parts, 1);
  CHECK_INT(pass->warnings.n, TNK__MAX_WARNINGS);
  tnk__pass_result_free(test_allocator(), pass);
}

/* A key is cut inside of a character, and has a line break. */
TEST(warnings_are_clean_text) {
  tnk_pass_t *parts[] = {chunk(1, "\"a\":1")}, *pass;

  parts[0]->metrics.items[0].key = "\n2\xff:x";
  pass = combine(parts, 1);
  CHECK_STR(pass->warnings.text[0],
            "metric \"?2?:x\" is left out: its ending is not known");
  tnk__pass_result_free(test_allocator(), pass);
  parts[0] =
      chunk(1, "\"12345678901234567890123456789012345678901234567890123456789"
               "0123\xc3\xa4\":\"\"");
  CHECK_STR(parts[0]->warnings.text[0],
            "metric \"123456789012345678901234567890123456789012345678901234567"
            "890123?\" is not a number");
  tnk__pass_result_free(test_allocator(), parts[0]);
}

TEST(S3_26a_combining_without_memory) {
  for (long at = 0;; at++) {
    tnk_pass_t *parts[] = {
        chunk(1, "\"a:mean\":1,\"f:unique\":1,\"h:last\":1,\"j:hash2\":1"),
        chunk(3, "\"a:mean\":2,\"f:unique\":2,\"h:last\":2,\"j:hash2\":2")};
    tnk_pass_t *pass;
    int err;

    test_alloc_fail_at(at);
    err = tnk__pass_result_combine(&pass, test_allocator(), parts, NULL, 2);
    test_alloc_fail_at(-1);
    if (err == TNK_OK) {
      CHECK(at > 0);
      tnk__pass_result_free(test_allocator(), pass);
      return;
    }
    CHECK_INT(err, TNK_ENOMEM);
    CHECK(pass == NULL);
    tnk__pass_result_free(test_allocator(), parts[0]);
    tnk__pass_result_free(test_allocator(), parts[1]);
    CHECK_INT(test_alloc_live(), 0);
  }
}

/* The maker's copy of the allocator may be gone by the time of freeing. */
TEST(freed_with_an_allocator_of_its_own) {
  static const char body[] = "{\"metrics\":{\"loss:sum\":1}}";
  tnk_allocator_t copy = *test_allocator();
  tnk_pass_t *parts[2], *pass;

  for (int i = 0; i < 2; i++)
    CHECK_INT(tnk__pass_result_read(&parts[i], &copy, body, strlen(body), 0),
              TNK_OK);
  CHECK_INT(tnk__pass_result_combine(&pass, &copy, parts, NULL, 2), TNK_OK);
  memset(&copy, 0, sizeof(copy));
  tnk__pass_result_free(test_allocator(), pass);
  CHECK_INT(test_alloc_live(), 0);
}

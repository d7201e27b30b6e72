/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"
#include "tools/local/lm/lm.h"
#include "tools/local/lm/math.h"

TEST(loss_names_and_defaults) {
  tnk__lm_loss_t loss;

  CHECK_INT(tnk__lm_loss_init(&loss, NULL, NULL, 0, NULL), TNK_OK);
  CHECK_INT(loss.kind, TNK__LM_CROSS_ENTROPY);
  CHECK_INT(tnk__lm_loss_init(&loss, "ppo", NULL, 0, NULL), TNK_OK);
  CHECK_NEAR(loss.clip_low, 0.8, 0);
  CHECK_NEAR(loss.clip_high, 1.2, 0);
  CHECK_INT(tnk__lm_loss_init(&loss, "cispo", NULL, 0, NULL), TNK_OK);
  CHECK_NEAR(loss.clip_low, 0.0, 0);
  CHECK_NEAR(loss.clip_high, 4.0, 0);
  CHECK_INT(tnk__lm_loss_init(&loss, "dro", NULL, 0, NULL), TNK_OK);
  CHECK_NEAR(loss.beta, 0.05, 0);
}

TEST(loss_settings) {
  tnk_loss_setting_t s[] = {{"clip_low_threshold", 0.5, NULL},
                            {"clip_high_threshold", 2, NULL}};
  tnk_loss_setting_t text = {"beta", 0, "x"};
  tnk__lm_loss_t loss;
  tnk__lm_why_t why;

  CHECK_INT(tnk__lm_loss_init(&loss, "ppo", s, 2, &why), TNK_OK);
  CHECK_NEAR(loss.clip_low, 0.5, 0);
  CHECK_NEAR(loss.clip_high, 2, 0);
  CHECK_INT(tnk__lm_loss_init(&loss, "dro", s, 1, &why), TNK_EINVAL);
  CHECK_STR(why.text, "dro has no setting \"clip_low_threshold\"");
  CHECK_INT(tnk__lm_loss_init(&loss, "dro", &text, 1, &why), TNK_EINVAL);
  CHECK_STR(why.text, "\"beta\" of dro must be a number of at least 0");
  s[0].number = 3;
  CHECK_INT(tnk__lm_loss_init(&loss, "ppo", s, 2, &why), TNK_EINVAL);
  CHECK_INT(tnk__lm_loss_init(&loss, "grpo", s, 2, &why), TNK_EUNSUPPORTED);
  CHECK_STR(why.text, "loss \"grpo\" is not known to this server");
}

TEST(a_datum_is_refused_with_its_place) {
  int32_t tokens[] = {65, 66, 258};
  int64_t targets[] = {66, 300, 67};
  float weights[] = {1, 1, 1};
  float logprobs[] = {-1, -1, NAN};
  tnk__lm_datum_t datum = {.tokens = tokens,
                           .n_tokens = 3,
                           .targets = targets,
                           .n_targets = 1,
                           .weights = weights};
  tnk__lm_loss_t ce;
  tnk__lm_loss_t ppo;
  tnk__lm_why_t why;

  CHECK_INT(tnk__lm_loss_init(&ce, NULL, NULL, 0, NULL), TNK_OK);
  CHECK_INT(tnk__lm_loss_init(&ppo, "ppo", NULL, 0, NULL), TNK_OK);
  CHECK_INT(tnk__lm_datum_check(&datum, &ce, &why), TNK_EINVAL);
  CHECK_STR(why.text, "tokens[2] is 258, the vocabulary has ids 0 to 257");
  tokens[2] = 256;
  CHECK_INT(tnk__lm_datum_check(&datum, &ce, &why), TNK_EINVAL);
  CHECK_STR(why.text, "\"target_tokens\"[1] is 300, the vocabulary has ids 0 "
                      "to 257");
  weights[1] = 0;
  CHECK_INT(tnk__lm_datum_check(&datum, &ce, &why), TNK_OK);
  CHECK_INT(tnk__lm_datum_check(&datum, &ppo, &why), TNK_EINVAL);
  CHECK_STR(why.text, "the loss needs \"logprobs\"");
  datum.logprobs = logprobs;
  CHECK_INT(tnk__lm_datum_check(&datum, &ppo, &why), TNK_EINVAL);
  CHECK_STR(why.text, "\"logprobs\"[2] is not finite");
  logprobs[2] = -1;
  CHECK_INT(tnk__lm_datum_check(&datum, &ppo, &why), TNK_EINVAL);
  CHECK_STR(why.text, "the loss needs \"advantages\"");
  datum.n_tokens = 0;
  CHECK_INT(tnk__lm_datum_check(&datum, &ce, &why), TNK_EINVAL);
  datum.n_tokens = TNK__LM_MAX_CONTEXT + 1;
  CHECK_INT(tnk__lm_datum_check(&datum, &ce, &why), TNK_EINVAL);
}

enum { MAX_M = 9, MAX_N = 49, MAX_K = 260, GAP = 3 };

typedef struct {
  float a[MAX_M * MAX_K];
  float b[MAX_K * (MAX_N + GAP)];
  float c[MAX_M * (MAX_N + GAP)];
  float expected[MAX_M * (MAX_N + GAP)];
} product_t;

/* The product by definition: each element is one sum in the order of k. */
static void expect_product(product_t *p, tnk__lm_view_t a, size_t m, size_t n,
                           size_t k, int add) {
  size_t i;
  size_t j;
  size_t q;

  memcpy(p->expected, p->c, sizeof(p->c));
  for (i = 0; i < m; i++)
    for (j = 0; j < n; j++) {
      float sum = add ? p->c[i * (n + GAP) + j] : 0;
      for (q = 0; q < k; q++) {
        float product = a.at[i * a.row + q * a.col] * p->b[q * (n + GAP) + j];
        sum += product;
      }
      p->expected[i * (n + GAP) + j] = sum;
    }
}

/* Every remainder of a tile, both orders of `a` in memory, and nothing written
 * between the rows. */
TEST(products_have_the_bits_of_sums_in_order) {
  static const size_t ns[] = {1, 5, 15, 16, 17, 31, 32, 33, 48, 49};
  static const size_t ks[] = {1, 3, 4, 7, 127, 128, 129, 258};
  static product_t p;
  tnk__lm_rng_t rng = tnk__lm_rng(1, 2);
  size_t m;
  size_t n;
  size_t i;
  int way;

  for (i = 0; i < sizeof(p) / sizeof(float); i++)
    ((float *)&p)[i] = tnk__lm_rng_uniform(&rng, 1);
  for (m = 1; m <= MAX_M; m++)
    for (n = 0; n < sizeof(ns) / sizeof(*ns); n++)
      for (i = 0; i < sizeof(ks) / sizeof(*ks); i++)
        for (way = 0; way < 4; way++) {
          tnk__lm_view_t a = {p.a, way & 1 ? ks[i] : 1, way & 1 ? 1 : m};
          expect_product(&p, a, m, ns[n], ks[i], way & 2);
          tnk__lm_gemm(p.c, ns[n] + GAP, a, p.b, ns[n] + GAP, m, ns[n], ks[i],
                       way & 2);
          CHECK(memcmp(p.c, p.expected, sizeof(p.c)) == 0);
        }
}

/* Where the processor has wide vectors, they compute what they say. */
TEST(wide_products_leave_less_than_a_tile) {
  static product_t p;
  tnk__lm_view_t a = {p.a, 4, 1};
  size_t n;

  for (n = 0; n <= MAX_N; n++) {
    size_t done = tnk__lm_gemm_wide(p.c, MAX_N, a, p.b, MAX_N, 5, n, 4);
    CHECK(done == n - n % 16 || done == 0);
  }
}

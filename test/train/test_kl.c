/* SPDX-License-Identifier: MIT */
#include "tools/tnk/learn/kl.h"
#include "tools/tnk/learn/seed.h"

#include <math.h>

#include "support/test.h"

/* ---- Advantages from a teacher ---- */

/* Computed by hand from
 * a(t) = -coefficient * (sampled(t) - teacher(t)) + discount * a(t + 1). */
TEST(advantages_are_the_penalty_for_leaving_the_teacher) {
  static const float sampled[] = {-1, -2, -0.5f};
  static const float teacher[] = {-3, -1, -0.5f};
  static const struct {
    size_t n;
    double coefficient, discount;
    float advantages[3];
    double sum;
  } rows[] = {
      /* Likelier to the student than to the teacher: less of it. */
      {3, 1, 0, {-2, 1, 0}, 1},
      {3, 2, 0, {-4, 2, 0}, 1},
      {3, 0.5, 0, {-1, 0.5f, 0}, 1},
      /* -2 + 0.5 * 1; the last one has no later token. */
      {3, 1, 0.5, {-1.5f, 1, 0}, 1},
      {3, 1, 1, {-1, 1, 0}, 1},
      {2, 2, 0.25, {-3.5f, 2, 9}, 1},
      /* No mean is subtracted from a single token. */
      {1, 1, 1, {-2, 9, 9}, 2},
      {0, 1, 1, {9, 9, 9}, 0},
  };

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    float got[3] = {9, 9, 9};
    const double sum =
        learn_kl_advantages(got, sampled, teacher, rows[i].n,
                            rows[i].coefficient, rows[i].discount);

    CHECK(fabs(sum - rows[i].sum) < 1e-12);
    for (size_t t = 0; t < 3; t++)
      CHECK(got[t] == rows[i].advantages[t]);
  }
}

TEST(seeds_differ_and_are_those_of_every_machine) {
  uint64_t seen[64];

  for (uint64_t i = 0; i < 64; i++) {
    seen[i] = learn_seed(i / 32, i % 32);
    CHECK(seen[i] < 1 << 30);
    for (uint64_t j = 0; j < i; j++)
      CHECK(seen[j] != seen[i]);
  }
  CHECK(learn_seed(7, 3) == learn_seed(7, 3));
}

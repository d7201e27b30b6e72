/* SPDX-License-Identifier: MIT */
#include "lib/wire/format/scan.h"

#include <math.h>

#include "support/test.h"

enum { N = 200 };

/* One bad element at every place, and in lists of every length around it. */
TEST(scan_finds_the_first_bad_element) {
  int32_t tokens[N];
  int64_t ids[N];
  float values[N];

  for (size_t bad = 0; bad < N; bad++) {
    for (size_t i = 0; i < N; i++) {
      tokens[i] = INT32_MAX - (int32_t)i;
      ids[i] = INT32_MAX - (int64_t)i;
      values[i] = i % 2 ? -3.4028235e38f : 3.4028235e38f;
    }
    CHECK_INT(tnk__scan_negative(tokens, N), N);
    CHECK_INT(tnk__scan_no_id(ids, N), N);
    CHECK_INT(tnk__scan_not_finite(values, N), N);
    tokens[bad] = -1;
    ids[bad] = bad % 2 ? -1 : (int64_t)INT32_MAX + 1;
    values[bad] = bad % 3 == 0 ? INFINITY : bad % 3 == 1 ? -INFINITY : NAN;
    for (size_t n = bad > 70 ? bad - 70 : 0; n < N; n++) {
      size_t expected = bad < n ? bad : n;
      CHECK_INT(tnk__scan_negative(tokens, n), expected);
      CHECK_INT(tnk__scan_no_id(ids, n), expected);
      CHECK_INT(tnk__scan_not_finite(values, n), expected);
    }
  }
}

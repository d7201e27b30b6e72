#include "tools/common/base/nearest.h"

#include <string.h>

enum { MAX_WORD = 40 };

static size_t least(size_t a, size_t b, size_t c) {
  size_t ab = a < b ? a : b;

  return ab < c ? ab : c;
}

/* The number of letters to insert, delete, change, or swap with a neighbor.
 * rows[i % 3][k] is the distance between the first i letters of one word and
 * the first k letters of the other. */
static size_t distance(const char *a, size_t n_a, const char *b, size_t n_b) {
  size_t rows[3][MAX_WORD + 1];

  for (size_t k = 0; k <= n_b; k++)
    rows[0][k] = k;
  for (size_t i = 1; i <= n_a; i++) {
    size_t *row = rows[i % 3];
    const size_t *above = rows[(i + 2) % 3];

    row[0] = i;
    for (size_t k = 1; k <= n_b; k++) {
      row[k] = least(above[k] + 1, row[k - 1] + 1,
                     above[k - 1] + (a[i - 1] != b[k - 1]));
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
        row[k] = least(row[k], rows[(i + 1) % 3][k - 2] + 1, row[k]);
    }
  }
  return rows[n_a % 3][n_b];
}

const char *cli_nearest(const char *word, const char *(*name_of)(size_t i),
                        size_t n) {
  size_t n_word = strcspn(word, "=");
  size_t nearest = n;
  size_t fewest = 3;

  for (size_t i = 0; i < n; i++) {
    const char *name = name_of(i);
    size_t n_name = strlen(name);
    size_t d;

    if (n_word > MAX_WORD || n_name > MAX_WORD)
      continue;
    d = distance(word, n_word, name, n_name);
    /* If both letters of a two-letter name differ, it is another word. */
    if (d < fewest && 2 * d < n_name) {
      fewest = d;
      nearest = i;
    }
  }
  return nearest < n ? name_of(nearest) : NULL;
}

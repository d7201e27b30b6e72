/* SPDX-License-Identifier: MIT */
#include "tools/tnk/sample/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

int cli_set_number(const char *value, double max, double *out, char *why,
                   size_t n_why) {
  json_t *root = NULL;
  double number = NAN;

  if (tnk__json_parse(&root, value, strlen(value)) == TNK_OK &&
      json_is_number(root))
    number = json_number_value(root);
  json_decref(root);
  if (number >= 0 && number <= max) {
    *out = number;
    return 0;
  }
  snprintf(why, n_why, "is not a number from 0 to %g", max);
  return -1;
}

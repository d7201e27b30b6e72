/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "gateway/schema/schema.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* A schema of a client, a line feed, and a value that it checks. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
  char why[TNK__GW_SCHEMA_WHY];
  json_t *schema = NULL;
  json_t *value = NULL;

  if (end != NULL &&
      tnk__json_parse(&schema, data, (size_t)(end - data)) == TNK_OK &&
      tnk__json_parse(&value, end + 1, size - (size_t)(end + 1 - data)) ==
          TNK_OK) {
    if (tnk__gw_schema_read(schema, why) != 0)
      FUZZ_CHECK(why[0] != '\0' && strlen(why) < sizeof(why));
    else
      FUZZ_CHECK((tnk__gw_schema_fit(schema, value, why) == TNK__GW_FITS) ==
                 (why[0] == '\0'));
  }
  json_decref(schema);
  json_decref(value);
  return 0;
}

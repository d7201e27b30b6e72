/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/limits.h"
#include "lib/wire/data/check.h"
#include "lib/wire/data/datum_json.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* A line of a file that tnk lint reads. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char text[128] = "";
  tnk__arena_t arena;
  tnk_datum_t datum;
  json_t *json;
  int err;

  if (tnk__json_parse(&json, data, size) != TNK_OK)
    return 0;
  tnk__arena_init(&arena, tnk__allocator_default(), 256 * TNK__MIB);
  err = tnk__datum_read(&datum, &arena, json, text, sizeof(text));
  FUZZ_CHECK(err == TNK_OK || text[0] != '\0' || err == TNK_ENOMEM);
  if (err == TNK_OK)
    err = tnk__check_data(&datum, 1, "cross_entropy", text, sizeof(text));
  FUZZ_CHECK(err == TNK_OK || text[0] != '\0' || err == TNK_ENOMEM);
  tnk__arena_deinit(&arena);
  json_decref(json);
  return 0;
}

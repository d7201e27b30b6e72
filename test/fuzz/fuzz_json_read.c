/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* What was parsed can be written, and reads back as the same value. */
static void check_again(const json_t *value) {
  char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
  json_t *again = NULL;
  size_t n = 0;

  FUZZ_CHECK(text != NULL);
  while (text[n] != '\0')
    n++;
  FUZZ_CHECK(tnk__json_parse(&again, text, n) == TNK_OK);
  FUZZ_CHECK(json_equal(value, again));
  json_decref(again);
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  json_t *root;
  int err = tnk__json_parse(&root, data, size);

  FUZZ_CHECK((root != NULL) == (err == TNK_OK));
  FUZZ_CHECK(err == TNK_OK || err == TNK_EPROTO || err == TNK_ENOMEM);
  if (err == TNK_OK)
    check_again(root);
  json_decref(root);
  return 0;
}

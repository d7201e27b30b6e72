/* SPDX-License-Identifier: MIT */
/* JSON as a value, written in every way and read again: it is the same value,
 * equal to itself and in one order. */
#include <string.h>

#include "chat/value/value.h"
#include "fuzz.h"
#include "lib/base/alloc.h"
#include "tnk/error.h"

static tnk__value_t read_back(tnk__heap_t *heap, const tnk__buf_t *json) {
  tnk__value_t value;

  FUZZ_CHECK(tnk__value_from_json(heap, (const char *)json->data, json->len,
                                  &value) == TNK_OK);
  return value;
}

static void check_written(tnk__heap_t *heap, tnk__value_t value,
                          const tnk__value_json_t *how) {
  tnk__buf_t json, again;
  tnk__value_t back;
  int order = 1;

  tnk__buf_init(&json, tnk__allocator_default(), 1 << 26);
  tnk__buf_init(&again, tnk__allocator_default(), 1 << 26);
  FUZZ_CHECK(tnk__value_to_json(&json, value, how) == TNK_OK);
  back = read_back(heap, &json);
  FUZZ_CHECK(tnk__value_equal(value, back) && tnk__value_equal(back, value));
  FUZZ_CHECK(tnk__value_truth(value) == tnk__value_truth(back));
  if (tnk__value_compare(value, back, &order))
    FUZZ_CHECK(order == 0);
  FUZZ_CHECK(tnk__value_to_json(&again, back, how) == TNK_OK);
  FUZZ_CHECK(json.len == again.len &&
             memcmp(json.data, again.data, json.len) == 0);
  tnk__buf_deinit(&again);
  tnk__buf_deinit(&json);
}

/* Members are found by their names. */
static void check_members(tnk__value_t value) {
  if (value.kind != TNK__VALUE_DICT)
    return;
  for (size_t i = 0; i < value.as.dict->n; i++) {
    const tnk__value_entry_t *entry = &value.as.dict->entries[i];

    FUZZ_CHECK(tnk__value_has(value, entry->key));
    FUZZ_CHECK(
        tnk__value_equal(tnk__value_find(value, entry->key), entry->value));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const tnk__value_json_t ways[] = {
      {0}, {.is_compact = 1}, {.is_ascii = 1}, {.is_sorted = 1}, {.indent = 2}};
  tnk__value_t value;
  tnk__heap_t heap;

  tnk__heap_init(&heap, tnk__allocator_default(), 1 << 26);
  if (tnk__value_from_json(&heap, (const char *)data, size, &value) == TNK_OK) {
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
      check_written(&heap, value, &ways[i]);
    check_members(value);
  }
  tnk__heap_deinit(&heap);
  return 0;
}

/* SPDX-License-Identifier: MIT */
#include "tokenizer_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  return fuzz_load(data, size, TNK_TOKENIZER_SENTENCEPIECE, NULL);
}

/* SPDX-License-Identifier: MIT */
#include "tokenizer_file.h"

/* As Kimi's, and with the special tokens of each kind of encoding: some have
 * ids of their own, which the file may use, and Whisper's follow the ranks. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const patterns[] = {NULL, "cl100k_base", "o200k_harmony",
                                         "whisper_v3"};

  for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
    fuzz_load(data, size, TNK_TOKENIZER_TIKTOKEN, patterns[i]);
  return 0;
}

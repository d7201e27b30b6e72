/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_LM_VOCAB_H
#define TNK_TOOLS_LOCAL_LM_VOCAB_H

#include "tools/local/lm/lm.h"

/*
 * A vocabulary wider than the model's, for tokenizers of any size. Ids that
 * differ by multiples of TNK__LM_VOCAB form a class, which the model cannot
 * distinguish. The members of a class share its probability equally, so that
 * the probabilities of all ids add up to 1. For the width TNK__LM_VOCAB, or 0
 * as its default, each class has one member, and nothing changes.
 */
static inline int32_t tnk__lm_width(int32_t n_vocab) {
  return n_vocab > 0 ? n_vocab : TNK__LM_VOCAB;
}

static inline int32_t tnk__lm_class(int64_t id) {
  return (int32_t)(id % TNK__LM_VOCAB);
}

static inline int32_t tnk__lm_members(int32_t of_class, int32_t n_vocab) {
  return (tnk__lm_width(n_vocab) - of_class + TNK__LM_VOCAB - 1) /
         TNK__LM_VOCAB;
}

#endif

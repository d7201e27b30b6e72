/* SPDX-License-Identifier: MIT */
#include "tokenizers/split/split.h"

#include <string.h>

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define SPACES "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define UP "\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}"
#define LO "\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}"
#define PREFIX "[^\\r\\n\\p{L}\\p{N}]?"
#define CL100K(digits)                                                         \
  CONTRACTIONS "|" PREFIX "\\p{L}+|" digits                                    \
               "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*" SPACES
#define CASED(not, contractions, digits, tail)                                 \
  PREFIX "[" UP not "]*[" LO not "]+" contractions "|" PREFIX                  \
                                 "[" UP not "]+[" LO not "]*" contractions     \
                                                         "|" digits "| "       \
                                                         "?[^\\s\\p{L}\\p{N}]" \
                                                         "+" tail SPACES

static const struct {
  tnk__shape_t shape;
  const char *pattern;
} known[] = {
    {TNK__SHAPE_CL100K1, CL100K("\\p{N}")},
    {TNK__SHAPE_CL100K3, CL100K("\\p{N}{1,3}")},
    {TNK__SHAPE_QWEN35,
     CONTRACTIONS "|" PREFIX "[\\p{L}\\p{M}]+|\\p{N}"
                  "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*" SPACES},
    {TNK__SHAPE_O200K,
     CASED("", CONTRACTIONS "?", "\\p{N}{1,3}", "[\\r\\n/]*")},
    {TNK__SHAPE_TEKKEN, CASED("", "", "\\p{N}", "[\\r\\n/]*")},
    {TNK__SHAPE_KIMI, "[\\p{Han}]+|" CASED("&&[^\\p{Han}]", CONTRACTIONS "?",
                                           "\\p{N}{1,3}", "[\\r\\n]*")},
    {TNK__SHAPE_GPT2,
     "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
     "|\\s+(?!\\S)|\\s+"},
};

/* The brackets of the third expression contain real newlines, not escapes. */
static const char *const deepseek[3] = {
    "\\p{N}{1,3}",
    "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-"
    "\xe3\x83\xbf]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
    "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*"
    "|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
};

tnk__shape_t tnk__split_find(const char *pattern, size_t n) {
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    if (strlen(known[i].pattern) == n &&
        memcmp(known[i].pattern, pattern, n) == 0)
      return known[i].shape;
  return TNK__SHAPE_NONE;
}

tnk__shape_t tnk__split_find3(const char *const *patterns, const size_t *n) {
  for (size_t i = 0; i < 3; i++)
    if (strlen(deepseek[i]) != n[i] ||
        memcmp(deepseek[i], patterns[i], n[i]) != 0)
      return TNK__SHAPE_NONE;
  return TNK__SHAPE_DEEPSEEK;
}

static const uint8_t *next_whole(tnk__splitter_t *splitter, const uint8_t *p,
                                 const uint8_t *end) {
  (void)splitter;
  (void)p;
  return end;
}

void tnk__split_init(tnk__splitter_t *splitter, tnk__shape_t shape) {
  splitter->region = NULL;
  splitter->next = tnk__split_letters(shape);
  if (splitter->next == NULL)
    splitter->next = tnk__split_cased(shape);
  if (splitter->next == NULL)
    splitter->next =
        shape == TNK__SHAPE_DEEPSEEK ? tnk__split_deepseek : next_whole;
}

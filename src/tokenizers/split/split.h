#ifndef TNK_TOKENIZERS_SPLIT_SPLIT_H
#define TNK_TOKENIZERS_SPLIT_SPLIT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Cutting text into pieces, as the regular expressions of the served models
 * do. Each expression is known as a whole; a scanner of ours stands for it.
 * Text is valid UTF-8, and a piece never crosses the end of its segment.
 */
typedef struct tnk__splitter tnk__splitter_t;

/* The end of the piece that begins at p; p < end. */
typedef const uint8_t *(*tnk__split_fn)(tnk__splitter_t *splitter,
                                        const uint8_t *p, const uint8_t *end);

/* What a scanner remembers between two pieces of one segment. */
struct tnk__splitter {
  tnk__split_fn next;
  const uint8_t *region; /* DeepSeek: end of the region p is in, or NULL */
};

typedef enum {
  TNK__SHAPE_NONE = 0, /* the segment is one piece */
  TNK__SHAPE_GPT2,
  TNK__SHAPE_CL100K1, /* Qwen 2 and 3: single digits */
  TNK__SHAPE_CL100K3, /* Llama 3: up to three digits */
  TNK__SHAPE_QWEN35,  /* as Qwen 3, marks belong to letters */
  TNK__SHAPE_O200K,   /* gpt-oss */
  TNK__SHAPE_TEKKEN,  /* Nemotron, Mistral */
  TNK__SHAPE_KIMI,
  TNK__SHAPE_DEEPSEEK /* three expressions one after the other */
} tnk__shape_t;

/* The shape of one expression, NONE when it is not known. */
tnk__shape_t tnk__split_find(const char *pattern, size_t n);
/* The shape of three expressions in a row, NONE when it is not known. */
tnk__shape_t tnk__split_find3(const char *const *patterns, const size_t *n);
void tnk__split_init(tnk__splitter_t *splitter, tnk__shape_t shape);

/* The scanners, one file a family. */
tnk__split_fn tnk__split_letters(tnk__shape_t shape);
tnk__split_fn tnk__split_cased(tnk__shape_t shape);
const uint8_t *tnk__split_deepseek(tnk__splitter_t *splitter, const uint8_t *p,
                                   const uint8_t *end);

#endif

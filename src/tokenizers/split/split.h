/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_SPLIT_SPLIT_H
#define TNK_TOKENIZERS_SPLIT_SPLIT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Cutting text into pieces, as the regular expressions of the models do. Each
 * known expression has a hand-written scanner. Text must be valid UTF-8. A
 * piece never crosses the end of its segment.
 */
typedef struct tnk__splitter tnk__splitter_t;

/* Returns the end of the piece that starts at p; p < end. */
typedef const uint8_t *(*tnk__split_fn)(tnk__splitter_t *splitter,
                                        const uint8_t *p, const uint8_t *end);

/* State of a scanner within a segment. */
struct tnk__splitter {
  tnk__split_fn next;
  /* DeepSeek and digits: end of the region around p, or NULL. */
  const uint8_t *region;
  const uint8_t *mark; /* tnk__split_before() */
  size_t n_mark;
};

typedef enum {
  TNK__SHAPE_NONE = 0, /* the segment is one piece */
  TNK__SHAPE_GPT2,
  TNK__SHAPE_CL100K1, /* Qwen 2 and 3: single digits */
  TNK__SHAPE_CL100K3, /* Llama 3: up to three digits */
  TNK__SHAPE_QWEN35,  /* as Qwen 3, but marks belong to letters */
  TNK__SHAPE_O200K,   /* gpt-oss */
  TNK__SHAPE_TEKKEN,  /* Nemotron, Mistral */
  TNK__SHAPE_KIMI,
  TNK__SHAPE_DEEPSEEK,   /* three expressions in sequence */
  TNK__SHAPE_CL100K_END, /* tiktoken's own: blanks at the end are one piece */
  TNK__SHAPE_DIGITS,     /* each digit is cut off, then GPT2: Command R */
  TNK__SHAPE_NUMBERS     /* each run of digits is cut off, then GPT2 */
} tnk__shape_t;

/* The shape of an expression, or NONE if it is unknown. */
tnk__shape_t tnk__split_find(const char *pattern, size_t n);
/* The shape of three expressions in sequence, or NONE if they are unknown. */
tnk__shape_t tnk__split_find3(const char *const *patterns, const size_t *n);
void tnk__split_init(tnk__splitter_t *splitter, tnk__shape_t shape);
/* Cut before each `mark`, a character that must outlive the splitter. */
void tnk__split_before(tnk__splitter_t *splitter, const uint8_t *mark,
                       size_t n_mark);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOKENIZERS_MODEL_ADDED_H
#define TNK_TOKENIZERS_MODEL_ADDED_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/*
 * Added tokens. They are searched for before anything else, in two passes. The
 * first pass searches the text as given. The second pass searches the rest
 * after normalization.
 */
enum {
  TNK__ADDED_SPECIAL = 1,
  TNK__ADDED_NORMALIZED = 2, /* searched for in the second pass */
  TNK__ADDED_LSTRIP = 4,
  TNK__ADDED_RSTRIP = 8,
  TNK__ADDED_SINGLE_WORD = 16 /* matches only at word boundaries */
};

typedef struct {
  uint32_t id;
  unsigned flags;
  uint32_t offset; /* offset of the searched text in the blob */
  uint32_t n;
} tnk__added_token_t;

/* The tokens of one pass, sorted bytewise. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__added_token_t *tokens;
  size_t n;
  size_t cap;
  uint8_t *blob;
  size_t n_blob;
  size_t cap_blob;
  uint32_t first[257];   /* index of the first token for each first byte */
  uint32_t seconds[256]; /* for each first byte: 32 bits of the possible next
                            bytes */
  int only;              /* the first byte of all tokens; -1 if they differ */
} tnk__added_t;

void tnk__added_init(tnk__added_t *added, const tnk_allocator_t *alloc);
void tnk__added_deinit(tnk__added_t *added);
/* Add a token. Returns TNK_OK, TNK_ENOMEM or TNK_ETOOBIG. */
int tnk__added_put(tnk__added_t *added, const uint8_t *text, size_t n,
                   uint32_t id, unsigned flags);
/* Sort the tokens. Call this after the last put and before any search. */
void tnk__added_finish(tnk__added_t *added);
/* Returns whether the same text is in both sets, or twice in one of them. A
 * search would find only one of the two tokens. */
int tnk__added_twice(const tnk__added_t *one, const tnk__added_t *other);
/* The id of the token with exactly this text, or -1. */
int32_t tnk__added_find(const tnk__added_t *added, const uint8_t *text,
                        size_t n);

/* A search in one text. */
typedef struct {
  const tnk__added_t *added;
  const uint8_t *text;
  size_t n;
  size_t at;      /* where the search continues */
  size_t covered; /* end of the last match, including white space */
  int skip_special;
  size_t blanks; /* start of the cached run of white space */
  size_t blanks_end;
} tnk__added_search_t;

/* A match, including the white space that it covers. */
typedef struct {
  size_t start;
  size_t end;
  uint32_t id;
} tnk__added_match_t;

/* Find the next match: the leftmost one, and of these the longest one. Returns
 * 0 if no match is left. */
int tnk__added_next(tnk__added_search_t *search, tnk__added_match_t *match);

#endif

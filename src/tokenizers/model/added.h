#ifndef TNK_TOKENIZERS_MODEL_ADDED_H
#define TNK_TOKENIZERS_MODEL_ADDED_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/*
 * Added tokens: found in the text before anything else, in two passes. The
 * first looks through the text as it was given, the second through what is
 * left of it after normalization.
 */
enum {
  TNK__ADDED_SPECIAL = 1,
  TNK__ADDED_NORMALIZED = 2, /* belongs to the second pass */
  TNK__ADDED_LSTRIP = 4,
  TNK__ADDED_RSTRIP = 8,
  TNK__ADDED_SINGLE_WORD = 16 /* found where no word goes on */
};

typedef struct {
  uint32_t id;
  unsigned flags;
  uint32_t offset; /* of what is looked for, in the blob */
  uint32_t n;
} tnk__added_token_t;

/* The tokens of one pass, sorted by their bytes. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__added_token_t *tokens;
  size_t n;
  size_t cap;
  uint8_t *blob;
  size_t n_blob;
  size_t cap_blob;
  uint32_t first[257];   /* tokens by their first byte */
  uint32_t seconds[256]; /* by first byte: 32 bits of what follows it */
  int only;              /* the first byte of all tokens; -1: they differ */
} tnk__added_t;

void tnk__added_init(tnk__added_t *added, const tnk_allocator_t *alloc);
void tnk__added_deinit(tnk__added_t *added);
/* Put a token in. TNK_OK, TNK_ENOMEM, TNK_ETOOBIG. */
int tnk__added_put(tnk__added_t *added, const uint8_t *text, size_t n,
                   uint32_t id, unsigned flags);
/* Sort; to be called after the last put and before any search. */
void tnk__added_finish(tnk__added_t *added);
/* Whether both have a token with the same text, or one of them has two. A
 * search could find but one of these, and would trip over the other. */
int tnk__added_twice(const tnk__added_t *one, const tnk__added_t *other);
/* The id of the token with exactly this text, or -1. */
int32_t tnk__added_find(const tnk__added_t *added, const uint8_t *text,
                        size_t n);

/* A search through one text. */
typedef struct {
  const tnk__added_t *added;
  const uint8_t *text;
  size_t n;
  size_t at;      /* where the search goes on */
  size_t covered; /* behind the last token, blanks it took included */
  int skip_special;
  size_t blanks; /* a place in a run of blanks */
  size_t blanks_end;
} tnk__added_search_t;

/* Where a token stands, blanks it takes included. */
typedef struct {
  size_t start;
  size_t end;
  uint32_t id;
} tnk__added_match_t;

/* Find the next token: the leftmost one, and the longest there. 0: there is
 * none. */
int tnk__added_next(tnk__added_search_t *search, tnk__added_match_t *match);

#endif

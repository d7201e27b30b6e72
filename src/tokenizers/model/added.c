/* SPDX-License-Identifier: MIT */
#include "tokenizers/model/added.h"

#include <string.h>

#include "tnk/error.h"
#include "lib/base/alloc.h"
#include "tokenizers/unicode/unicode.h"

void tnk__added_init(tnk__added_t *added, const tnk_allocator_t *alloc) {
  memset(added, 0, sizeof(*added));
  added->alloc = alloc;
}

void tnk__added_deinit(tnk__added_t *added) {
  tnk__free(added->alloc, added->tokens);
  tnk__free(added->alloc, added->blob);
}

static int grow(tnk__added_t *added, size_t n) {
  if (added->n == added->cap) {
    size_t cap = added->cap * 2 + 32;
    tnk__added_token_t *tokens =
        tnk__realloc(added->alloc, added->tokens, cap * sizeof(*tokens));

    if (tokens == NULL)
      return TNK_ENOMEM;
    added->tokens = tokens;
    added->cap = cap;
  }
  if (added->cap_blob - added->n_blob < n) {
    size_t cap = added->cap_blob * 2 + n + 256;
    uint8_t *blob = tnk__realloc(added->alloc, added->blob, cap);

    if (blob == NULL)
      return TNK_ENOMEM;
    added->blob = blob;
    added->cap_blob = cap;
  }
  return TNK_OK;
}

int tnk__added_put(tnk__added_t *added, const uint8_t *text, size_t n,
                   uint32_t id, unsigned flags) {
  tnk__added_token_t *token;

  if (n > UINT32_MAX / 4 || added->n_blob > UINT32_MAX / 4)
    return TNK_ETOOBIG;
  if (grow(added, n) < 0)
    return TNK_ENOMEM;
  token = &added->tokens[added->n++];
  token->id = id;
  token->flags = flags;
  token->offset = (uint32_t)added->n_blob;
  token->n = (uint32_t)n;
  memcpy(added->blob + added->n_blob, text, n);
  added->n_blob += n;
  return TNK_OK;
}

static int compare(const uint8_t *blob, const tnk__added_token_t *a,
                   const tnk__added_token_t *b) {
  size_t n = a->n < b->n ? a->n : b->n;
  int order = memcmp(blob + a->offset, blob + b->offset, n);

  return order != 0 ? order : (a->n > b->n) - (a->n < b->n);
}

/* Heap sort: qsort() has no context argument, and there are only about a
 * thousand tokens. */
static void sift(tnk__added_t *added, size_t i, size_t n) {
  tnk__added_token_t item = added->tokens[i];

  for (;;) {
    size_t child = 2 * i + 1;

    if (child >= n)
      break;
    if (child + 1 < n && compare(added->blob, &added->tokens[child + 1],
                                 &added->tokens[child]) > 0)
      child++;
    if (compare(added->blob, &added->tokens[child], &item) <= 0)
      break;
    added->tokens[i] = added->tokens[child];
    i = child;
  }
  added->tokens[i] = item;
}

static uint32_t second_bit(uint8_t byte) {
  return UINT32_C(1) << (byte & 31);
}

void tnk__added_finish(tnk__added_t *added) {
  size_t at = 0;

  for (size_t i = added->n / 2; i-- > 0;)
    sift(added, i, added->n);
  for (size_t n = added->n; n > 1; n--) {
    tnk__added_token_t last = added->tokens[n - 1];

    added->tokens[n - 1] = added->tokens[0];
    added->tokens[0] = last;
    sift(added, 0, n - 1);
  }
  for (unsigned byte = 0; byte < 256; byte++) {
    added->first[byte] = (uint32_t)at;
    for (; at < added->n && added->blob[added->tokens[at].offset] == byte;
         at++) {
      const tnk__added_token_t *token = &added->tokens[at];

      added->seconds[byte] |= token->n == 1
                                  ? UINT32_MAX
                                  : second_bit(added->blob[token->offset + 1]);
    }
  }
  added->first[256] = (uint32_t)at;
  added->only = -1;
  if (added->n > 0) {
    uint8_t byte = added->blob[added->tokens[0].offset];

    if (added->first[byte + 1u] == added->n)
      added->only = byte;
  }
}

/* Find the first token in [low, high) whose byte at `depth` is at least `byte`.
 * These tokens agree in the first `depth` bytes and are longer. */
static size_t bound(const tnk__added_t *added, size_t low, size_t high,
                    size_t depth, unsigned byte) {
  while (low < high) {
    size_t mid = (low + high) / 2;

    if (added->blob[added->tokens[mid].offset + depth] < byte)
      low = mid + 1;
    else
      high = mid;
  }
  return low;
}

static int has_byte(const tnk__added_t *added, size_t i, size_t depth,
                    unsigned byte) {
  return added->blob[added->tokens[i].offset + depth] == byte;
}

/* The longest token at p, or NULL. Each byte narrows the range of
 * candidates. */
static const tnk__added_token_t *longest(const tnk__added_t *added,
                                         const uint8_t *p, size_t n) {
  const tnk__added_token_t *best = NULL;
  size_t low = added->first[*p], high = added->first[*p + 1u];

  for (size_t depth = 1; low < high; depth++) {
    if (added->tokens[low].n == depth)
      best = &added->tokens[low++];
    if (depth == n)
      break;
    /* Usually all remaining candidates have this byte. */
    if (low < high && has_byte(added, low, depth, p[depth]) &&
        has_byte(added, high - 1, depth, p[depth]))
      continue;
    low = bound(added, low, high, depth, p[depth]);
    high = bound(added, low, high, depth, p[depth] + 1u);
  }
  return best;
}

int32_t tnk__added_find(const tnk__added_t *added, const uint8_t *text,
                        size_t n) {
  const tnk__added_token_t *token = longest(added, text, n);

  return token != NULL && token->n == n ? (int32_t)token->id : -1;
}

static int has_equals(const tnk__added_t *added) {
  for (size_t i = 1; i < added->n; i++)
    if (compare(added->blob, &added->tokens[i - 1], &added->tokens[i]) == 0)
      return 1;
  return 0;
}

int tnk__added_twice(const tnk__added_t *one, const tnk__added_t *other) {
  if (has_equals(one) || has_equals(other))
    return 1;
  for (size_t i = 0; i < other->n; i++) {
    const tnk__added_token_t *token = &other->tokens[i];

    if (tnk__added_find(one, other->blob + token->offset, token->n) >= 0)
      return 1;
  }
  return 0;
}

/* Find the next position at which a token matches. */
static const tnk__added_token_t *find(tnk__added_search_t *search) {
  const tnk__added_t *added = search->added;
  const uint8_t *text = search->text;

  for (; search->at < search->n; search->at++) {
    const uint8_t *p = text + search->at;
    uint32_t seconds;
    const tnk__added_token_t *token;

    if (added->only >= 0) {
      p = memchr(p, added->only, search->n - search->at);
      if (p == NULL)
        break;
      search->at = (size_t)(p - text);
    }
    seconds = added->seconds[*p];
    if (seconds == 0 || (seconds != UINT32_MAX && search->n - search->at > 1 &&
                         (seconds & second_bit(p[1])) == 0))
      continue;
    token = longest(added, p, search->n - search->at);
    if (token != NULL)
      return token;
  }
  search->at = search->n;
  return NULL;
}

static size_t char_before(const uint8_t *text, size_t at) {
  do
    at--;
  while (at > 0 && (text[at] & 0xc0) == 0x80);
  return at;
}

static int is_space_at(const uint8_t *p) {
  return (tnk__char_class(tnk__utf8_get(p)) & TNK__C_SPACE) != 0;
}

/* The end of the white space at `at`. It is cached, so that many tokens in one
 * run of white space do not scan it again and again. */
static size_t behind_blanks(tnk__added_search_t *search, size_t at) {
  size_t end = at;

  if (at < search->blanks || at >= search->blanks_end) {
    while (end < search->n && is_space_at(search->text + end))
      end += tnk__utf8_length(search->text[end]);
    search->blanks = at;
    search->blanks_end = end;
  }
  return search->blanks_end;
}

static void strip(tnk__added_search_t *search, unsigned flags,
                  tnk__added_match_t *match) {
  const uint8_t *text = search->text;

  if (flags & TNK__ADDED_LSTRIP) {
    /* Do not scan the text of the last match again. */
    while (match->start > search->covered) {
      size_t before = char_before(text, match->start);

      if (!is_space_at(text + before))
        break;
      match->start = before;
    }
    if (match->start < search->covered)
      match->start = search->covered;
  }
  if (flags & TNK__ADDED_RSTRIP)
    match->end = behind_blanks(search, match->end);
}

static int is_in_word(const tnk__added_search_t *search,
                      const tnk__added_match_t *match) {
  const uint8_t *text = search->text;

  return (match->start > 0 && tnk__is_word(tnk__utf8_get(
                                  text + char_before(text, match->start)))) ||
         (match->end < search->n &&
          tnk__is_word(tnk__utf8_get(text + match->end)));
}

int tnk__added_next(tnk__added_search_t *search, tnk__added_match_t *match) {
  const tnk__added_token_t *token;

  while ((token = find(search)) != NULL) {
    match->start = search->at;
    match->end = search->at + token->n;
    match->id = token->id;
    /* A rejected match still consumes its text. */
    search->at = match->end;
    if ((search->skip_special && (token->flags & TNK__ADDED_SPECIAL)) ||
        ((token->flags & TNK__ADDED_SINGLE_WORD) && is_in_word(search, match)))
      continue;
    strip(search, token->flags, match);
    /* Drop a token of white space that the previous match has covered. */
    if (match->start >= match->end)
      continue;
    search->covered = match->end;
    return 1;
  }
  return 0;
}

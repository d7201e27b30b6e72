/* SPDX-License-Identifier: MIT */
#include "chat/render/tokens.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "tnk/error.h"

#define MAX_BYTES (SIZE_MAX / 2)

void tnk__marked_init(tnk__marked_t *marked, const tnk_allocator_t *alloc) {
  tnk__buf_init(&marked->ids, alloc, MAX_BYTES);
  tnk__buf_init(&marked->weights, alloc, MAX_BYTES);
  tnk__buf_init(&marked->messages, alloc, MAX_BYTES);
}

void tnk__marked_deinit(tnk__marked_t *marked) {
  tnk__buf_deinit(&marked->ids);
  tnk__buf_deinit(&marked->weights);
  tnk__buf_deinit(&marked->messages);
}

void tnk__marked_clear(tnk__marked_t *marked) {
  tnk__buf_clear(&marked->ids);
  tnk__buf_clear(&marked->weights);
  tnk__buf_clear(&marked->messages);
}

/* Grow an array of 4-byte elements to one for each id. The caller fills the new
 * ones. NULL: out of memory. */
static void *widen(tnk__buf_t *buf, size_t n_ids, size_t *had) {
  *had = buf->len / 4;
  if (*had < n_ids && tnk__buf_reserve(buf, (n_ids - *had) * 4) != NULL)
    buf->len = n_ids * 4;
  return buf->err == TNK_OK ? buf->data : NULL;
}

int tnk__marked_fill(tnk__marked_t *marked, float weight, int32_t message,
                     tnk__why_t *why) {
  const size_t n = tnk__n_ids(&marked->ids);
  size_t i, k;
  float *weights = widen(&marked->weights, n, &i);
  int32_t *messages = widen(&marked->messages, n, &k);

  if (n > 0 && (weights == NULL || messages == NULL))
    return tnk__why(why, TNK_ENOMEM, 0, "out of memory");
  for (; i < n; i++)
    weights[i] = weight;
  for (; k < n; k++)
    messages[k] = message;
  return TNK_OK;
}

static const tnk__cut_t *cut_at(const tnk__buf_t *cuts, size_t i) {
  return (const tnk__cut_t *)(const void *)cuts->data + i;
}

static size_t n_cuts(const tnk__buf_t *cuts) {
  return cuts->len / sizeof(tnk__cut_t);
}

/* Weights are finite. */
static int same(float a, float b) {
  return !(a < b) && !(b < a);
}

static int refuse(const tnk__buf_t *text, size_t begin, size_t end, size_t cut,
                  int32_t message, tnk__why_t *why) {
  char piece[40];

  tnk__prompt_quote(text, begin, piece, sizeof(piece));
  if (end - begin < strlen(piece))
    piece[end - begin] = '\0';
  tnk__utf8_repair(piece);
  return tnk__why(why, TNK_EUNSUPPORTED, 0,
                  "message %d cannot be trained: at byte %zu of the text the "
                  "tokenizer makes one token of what stands on both sides, "
                  "\"%s\"; tokenize by parts",
                  (int)message, cut, piece);
}

/* Mark the tokens whose ends in the text are known. */
static int mark(const tnk__buf_t *text, const tnk__buf_t *cuts,
                const tnk__buf_t *ends, tnk__marked_t *marked,
                tnk__why_t *why) {
  const size_t *end = (const size_t *)(const void *)ends->data;
  size_t begin = 0, at = 0;

  for (size_t i = 0; i < ends->len / sizeof(*end); i++) {
    const tnk__cut_t *cut;

    while (at + 1 < n_cuts(cuts) && cut_at(cuts, at)->end <= begin)
      at++;
    cut = cut_at(cuts, at);
    for (size_t k = at; k + 1 < n_cuts(cuts) && cut_at(cuts, k)->end < end[i];
         k++)
      if (!same(cut_at(cuts, k)->weight, cut_at(cuts, k + 1)->weight))
        return refuse(text, begin, end[i], cut_at(cuts, k)->end,
                      cut_at(cuts, k + 1)->message, why);
    (void)tnk__buf_append(&marked->weights, &cut->weight, sizeof(cut->weight));
    (void)tnk__buf_append(&marked->messages, &cut->message,
                          sizeof(cut->message));
    begin = end[i];
  }
  return tnk__marked_fill(marked, 0, -1, why);
}

/* Returns whether the ids from `before` on are a prefix of the whole. */
static int is_beginning(const tnk__buf_t *ids, size_t before,
                        const tnk__buf_t *whole) {
  const size_t n = ids->len - before;

  return n == 0 ||
         (n <= whole->len && memcmp(ids->data + before, whole->data, n) == 0);
}

/* Tokenize the parts between changes of the weight. Together they must give the
 * ids of the whole text. */
static int mark_pieces(const tnk__coder_t *coder, const tnk__buf_t *text,
                       const tnk__buf_t *cuts, const tnk__buf_t *whole,
                       tnk__marked_t *marked, tnk__why_t *why) {
  const size_t before = marked->ids.len;
  size_t begin = 0;
  int err = TNK_OK;

  for (size_t i = 0; i < n_cuts(cuts) && err == TNK_OK; i++) {
    const tnk__cut_t *cut = cut_at(cuts, i);

    if (i + 1 < n_cuts(cuts) && same(cut->weight, cut_at(cuts, i + 1)->weight))
      continue;
    err = tnk__ids_encode(coder, text, begin, cut->end, &marked->ids, why);
    if (err == TNK_OK && !is_beginning(&marked->ids, before, whole))
      err = refuse(text, begin, cut->end, cut->end, cut->message, why);
    if (err == TNK_OK)
      err = tnk__marked_fill(marked, cut->weight, cut->message, why);
    begin = cut->end;
  }
  if (err == TNK_OK && marked->ids.len - before != whole->len)
    err = tnk__why(why, TNK_EUNSUPPORTED, 0,
                   "the tokenizer gives fewer tokens for pieces of the text "
                   "than for the whole; tokenize by parts");
  return err;
}

int tnk__tokens_whole(const tnk__coder_t *coder, const tnk__buf_t *text,
                      const tnk__buf_t *cuts, tnk__marked_t *marked,
                      tnk__why_t *why) {
  tnk__buf_t ids, ends;
  int err;

  tnk__buf_init(&ids, marked->ids.alloc, MAX_BYTES);
  tnk__buf_init(&ends, marked->ids.alloc, MAX_BYTES);
  err = tnk__ids_encode(coder, text, 0, text->len, &ids, why);
  if (err == TNK_OK)
    err = tnk__ids_ends(coder, &ids, (const char *)text->data, text->len, &ends,
                        why);
  if (err == TNK_OK && ends.len == 0 && ids.len > 0) {
    err = mark_pieces(coder, text, cuts, &ids, marked, why);
  } else if (err == TNK_OK && ids.len > 0) {
    (void)tnk__buf_append(&marked->ids, ids.data, ids.len);
    err = marked->ids.err != TNK_OK
              ? tnk__why(why, TNK_ENOMEM, 0, "out of memory")
              : mark(text, cuts, &ends, marked, why);
  }
  tnk__buf_deinit(&ids);
  tnk__buf_deinit(&ends);
  return err;
}

int tnk__tokens_parts(const tnk__coder_t *coder, const tnk__buf_t *text,
                      const tnk__buf_t *cuts, tnk__marked_t *marked,
                      tnk__why_t *why) {
  size_t begin = 0;
  int err = TNK_OK;

  for (size_t i = 0; i < n_cuts(cuts) && err == TNK_OK; i++) {
    const tnk__cut_t *cut = cut_at(cuts, i);

    err = tnk__ids_encode(coder, text, begin, cut->end, &marked->ids, why);
    if (err == TNK_OK)
      err = tnk__marked_fill(marked, cut->weight, cut->message, why);
    begin = cut->end;
  }
  return err;
}

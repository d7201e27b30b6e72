/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "support/test.h"
#include "tnk/error.h"
#include "lib/base/alloc.h"
#include "tokenizers/model/chars.h"
#include "tokenizers/unicode/unicode.h"

/*
 * Random vocabularies over few characters, trained badly on purpose: pairs are
 * merged in random order, so that tokens end and begin inside of characters.
 * Whatever is done ahead or apart has to give what the definition gives.
 */
enum { N_MERGES = 70, N_TEXT = 1500, MAX_PIECE = 800, VOCABULARIES = 60 };

static const char *const alphabet[] = {"\xe3\x81\x82",
                                       "\xe3\x81\x8c",
                                       "\xe3\x82\x8c",
                                       "\xe4\xb8\xad",
                                       "\xe4\xb8\x8c",
                                       "\xe4\xba\x8c",
                                       "\xea\xb0\x80",
                                       "\xc3\xa9",
                                       "\xc3\x81",
                                       "\xf0\x9f\x98\x80",
                                       "a",
                                       " "};
#define N_ALPHABET (sizeof(alphabet) / sizeof(alphabet[0]))

typedef struct {
  int32_t left;
  int32_t right;
  int32_t merged;
} merge_t;

typedef struct {
  uint64_t seed;
  tnk__vocab_t vocab;
  tnk__bpe_t bpe;
  merge_t merges[N_MERGES];
  size_t n_merges;
  size_t n_cuts;
  size_t n_alone;
  size_t n_ahead;
} world_t;

static size_t make_text(world_t *world, uint8_t *out, size_t n_chars) {
  size_t n = 0;

  for (size_t i = 0; i < n_chars; i++) {
    const char *c = alphabet[test_random(&world->seed) % N_ALPHABET];

    memcpy(out + n, c, strlen(c));
    n += strlen(c);
  }
  return n;
}

static size_t apply(const merge_t *merge, int32_t *ids, size_t n) {
  size_t n_out = 0;

  for (size_t i = 0; i < n; i++) {
    int both = i + 1 < n && ids[i] == merge->left && ids[i + 1] == merge->right;

    ids[n_out++] = both ? merge->merged : ids[i];
    i += both ? 1 : 0;
  }
  return n_out;
}

/* The definition: the lowest rank everywhere, from the left, again and
 * again. */
static size_t plain_bpe(const world_t *world, const uint8_t *bytes, size_t n,
                        int32_t *ids) {
  for (size_t i = 0; i < n; i++)
    ids[i] = world->bpe.byte_id[bytes[i]];
  for (;;) {
    size_t rank = 0, at = n;

    for (; rank < world->n_merges && at == n; rank++)
      for (size_t i = 0; i + 1 < n && at == n; i++)
        if (ids[i] == world->merges[rank].left &&
            ids[i + 1] == world->merges[rank].right)
          at = i;
    if (at == n)
      return n;
    ids[at] = world->merges[rank - 1].merged;
    memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof(*ids));
    n--;
  }
}

static void add_token(world_t *world, const uint8_t *bytes, size_t n,
                      int32_t *id) {
  uint8_t *room = tnk__vocab_reserve(&world->vocab, n);

  *id = (int32_t)world->vocab.n;
  CHECK(room != NULL);
  memcpy(room, bytes, n);
  CHECK_INT(tnk__vocab_put(&world->vocab, (uint32_t)*id, n, 0, 1), TNK_OK);
}

/* Merge any two neighbors of the text; 0 at the end of the vocabulary. */
static int add_merge(world_t *world, int32_t *ids, size_t *n) {
  merge_t *merge = &world->merges[world->n_merges];
  size_t at, n_left, n_right;
  uint8_t bytes[N_TEXT * 4];
  const uint8_t *p;

  if (*n < 2)
    return 0;
  at = (size_t)(test_random(&world->seed) % (*n - 1));
  merge->left = ids[at];
  merge->right = ids[at + 1];
  for (size_t i = 0; i < world->n_merges; i++)
    if (world->merges[i].left == merge->left &&
        world->merges[i].right == merge->right)
      return 0;
  p = tnk__vocab_bytes(&world->vocab, (uint32_t)merge->left, &n_left);
  memcpy(bytes, p, n_left);
  p = tnk__vocab_bytes(&world->vocab, (uint32_t)merge->right, &n_right);
  memcpy(bytes + n_left, p, n_right);
  merge->merged = tnk__vocab_find(&world->vocab, bytes, n_left + n_right, 0);
  if (merge->merged < 0)
    add_token(world, bytes, n_left + n_right, &merge->merged);
  CHECK_INT(tnk__bpe_add(&world->bpe, merge->left, merge->right, merge->merged),
            TNK_OK);
  world->n_merges++;
  *n = apply(merge, ids, *n);
  return 1;
}

static void make_world(world_t *world) {
  static uint8_t text[N_TEXT * 4];
  static int32_t ids[N_TEXT * 4];
  size_t n;

  world->n_merges = 0;
  tnk__vocab_init(&world->vocab, test_allocator());
  tnk__bpe_init(&world->bpe, test_allocator());
  for (unsigned i = 0; i < 256; i++) {
    uint8_t byte = (uint8_t)i;

    add_token(world, &byte, 1, &world->bpe.byte_id[i]);
  }
  n = make_text(world, text, N_TEXT);
  for (size_t i = 0; i < n; i++)
    ids[i] = world->bpe.byte_id[text[i]];
  while (world->n_merges < N_MERGES && add_merge(world, ids, &n))
    ;
  CHECK_INT(tnk__bpe_finish(&world->bpe), TNK_OK);
  CHECK_INT(tnk__chars_prepare(&world->bpe, &world->vocab), TNK_OK);
}

/* The piece by its segments. */
static size_t by_segments(world_t *world, const uint8_t *p, size_t n,
                          int32_t *ids) {
  const uint8_t *end = p + n;
  size_t n_out = 0;

  while (p < end) {
    int32_t id;
    const uint8_t *stop = tnk__chars_segment(&world->bpe, p, end, &id);

    CHECK(stop > p && stop <= end);
    if (id >= 0)
      ids[n_out++] = id;
    else
      n_out += plain_bpe(world, p, (size_t)(stop - p), ids + n_out);
    world->n_alone += id >= 0;
    world->n_cuts += stop < end;
    p = stop;
  }
  return n_out;
}

static void check_piece(world_t *world, const uint8_t *p, size_t n) {
  static int32_t expected[MAX_PIECE], got[MAX_PIECE];
  size_t n_expected = plain_bpe(world, p, n, expected), n_got, n_begin;
  tnk__bpe_work_t work = {test_allocator(), NULL, 0};
  int32_t id;

  n_got = by_segments(world, p, n, got);
  CHECK_MEM(got, n_got * sizeof(*got), expected, n_expected * sizeof(*got));
  n_begin = tnk__chars_ids(&world->bpe, p, n, got);
  world->n_ahead += n_begin < n;
  n_got = (size_t)tnk__bpe_ids(&world->bpe, &work, got, n_begin);
  CHECK_MEM(got, n_got * sizeof(*got), expected, n_expected * sizeof(*got));
  n_got = (size_t)tnk__bpe_bytes(&world->bpe, &work, p, n, got);
  CHECK_MEM(got, n_got * sizeof(*got), expected, n_expected * sizeof(*got));
  /* What is a token as a whole is never cut. */
  if (tnk__vocab_find(&world->vocab, p, n, 0) >= 0)
    CHECK(tnk__chars_segment(&world->bpe, p, p + n, &id) == p + n);
  tnk__free(test_allocator(), work.memory);
}

TEST_LIMIT(what_is_merged_apart_and_ahead_is_the_same, 60) {
  world_t world = {.seed = 11};
  uint8_t piece[MAX_PIECE];

  for (int i = 0; i < VOCABULARIES; i++) {
    make_world(&world);
    for (int k = 0; k < 150; k++) {
      size_t n_chars = 1 + (size_t)(test_random(&world.seed) % 14);

      n_chars = k % 75 == 0 ? 120 : n_chars;
      check_piece(&world, piece, make_text(&world, piece, n_chars));
    }
    for (uint32_t id = 256; id < world.vocab.n; id++) {
      size_t n;
      const uint8_t *bytes = tnk__vocab_bytes(&world.vocab, id, &n);

      if (tnk__utf8_valid(bytes, n) == n && n < MAX_PIECE)
        check_piece(&world, bytes, n);
    }
    tnk__vocab_deinit(&world.vocab);
    tnk__bpe_deinit(&world.bpe);
  }
  /* It was about something. */
  CHECK(world.n_cuts > 1000);
  CHECK(world.n_alone > 1000);
  CHECK(world.n_ahead > 1000);
}

/* SPDX-License-Identifier: MIT */
#include "tokenizers/model/bpe.h"

#include <string.h>

#include "tnk/error.h"
#include "lib/base/alloc.h"

#define MIN_FILTER_LOG2 10u
#define MAX_FILTER_LOG2 22u /* number of bits; 512 KiB */
#define MUL UINT64_C(0x9e3779b97f4a7c15)

void tnk__bpe_init(tnk__bpe_t *bpe, const tnk_allocator_t *alloc) {
  memset(bpe, 0, sizeof(*bpe));
  bpe->alloc = alloc;
  for (size_t i = 0; i < 256; i++)
    bpe->byte_id[i] = -1;
}

void tnk__bpe_deinit(tnk__bpe_t *bpe) {
  tnk__free(bpe->alloc, bpe->pairs);
  tnk__free(bpe->alloc, bpe->table);
  tnk__free(bpe->alloc, bpe->merged);
  tnk__free(bpe->alloc, bpe->filter);
  tnk__free(bpe->alloc, bpe->byte_pair_rank);
  tnk__free(bpe->alloc, bpe->chars);
  tnk__free(bpe->alloc, bpe->joined);
  tnk__free(bpe->alloc, bpe->settled);
}

static uint64_t pair_key(int32_t left, int32_t right) {
  return (uint64_t)(uint32_t)left << 20 | (uint32_t)right;
}

/* Find the slot of the pair, or the empty slot where it belongs. */
static inline size_t find_entry(const tnk__bpe_t *bpe, uint64_t key,
                                uint64_t hash) {
  size_t at = (size_t)((hash >> 32) * bpe->n_slots >> 32);

  while (bpe->table[at] != UINT64_MAX && bpe->table[at] >> 24 != key)
    if (++at == bpe->n_slots)
      at = 0;
  return at;
}

/* Grow an array by at least a factor of two. */
static void *grow(const tnk_allocator_t *alloc, void *array, uint32_t *cap,
                  uint32_t need, size_t size) {
  uint32_t more = *cap < 512 ? 1024 : *cap * 2;

  more = more < need ? need : more;
  array = tnk__realloc(alloc, array, more * size);
  if (array != NULL)
    *cap = more;
  return array;
}

/* Grow `merged` to include this rank. */
static int grow_merged(tnk__bpe_t *bpe, uint32_t rank) {
  int32_t *merged;

  if (rank < bpe->cap_merges)
    return TNK_OK;
  if (rank >= TNK__MAX_MERGES - 1)
    return TNK_ETOOBIG;
  merged = grow(bpe->alloc, bpe->merged, &bpe->cap_merges, rank + 1,
                sizeof(*merged));
  if (merged == NULL)
    return TNK_ENOMEM;
  bpe->merged = merged;
  return TNK_OK;
}

static int put_pair(tnk__bpe_t *bpe, int32_t left, int32_t right,
                    uint32_t rank) {
  uint64_t *pairs = bpe->pairs;

  if (bpe->n_pairs == bpe->cap_pairs) {
    if (bpe->n_pairs >= TNK__MAX_MERGES * 4)
      return TNK_ETOOBIG;
    pairs = grow(bpe->alloc, pairs, &bpe->cap_pairs, bpe->n_pairs + 1,
                 sizeof(*pairs));
    if (pairs == NULL)
      return TNK_ENOMEM;
    bpe->pairs = pairs;
  }
  pairs[bpe->n_pairs++] = pair_key(left, right) << 24 | rank;
  return TNK_OK;
}

int tnk__bpe_add(tnk__bpe_t *bpe, int32_t left, int32_t right, int32_t merged) {
  int err = grow_merged(bpe, bpe->n_merges);

  if (err == TNK_OK)
    err = put_pair(bpe, left, right, bpe->n_merges);
  if (err == TNK_OK)
    bpe->merged[bpe->n_merges++] = merged;
  return err;
}

int tnk__bpe_add_ranked(tnk__bpe_t *bpe, int32_t left, int32_t right,
                        int32_t merged) {
  int err = grow_merged(bpe, (uint32_t)merged);

  if (err == TNK_OK)
    err = put_pair(bpe, left, right, (uint32_t)merged);
  if (err == TNK_OK) {
    bpe->merged[merged] = merged;
    if ((uint32_t)merged >= bpe->n_merges)
      bpe->n_merges = (uint32_t)merged + 1;
  }
  return err;
}

/* Insert all pairs into the table, which is two thirds full, and into the
 * filter. The slots are prefetched some pairs ahead. */
#define AHEAD 16u

static int build_table(tnk__bpe_t *bpe) {
  bpe->n_slots = bpe->n_pairs + bpe->n_pairs / 2 + 2;
  bpe->table = tnk__alloc_array(bpe->alloc, bpe->n_slots, sizeof(*bpe->table));
  if (bpe->table == NULL)
    return TNK_ENOMEM;
  memset(bpe->table, 0xff, bpe->n_slots * sizeof(*bpe->table));
  for (uint32_t i = 0; i < bpe->n_pairs; i++) {
    uint64_t hash = (bpe->pairs[i] >> 24) * MUL;
    size_t word = (size_t)(hash >> bpe->filter_shift) >> 5;

    if (i + AHEAD < bpe->n_pairs)
      tnk__prefetch(bpe->table + ((bpe->pairs[i + AHEAD] >> 24) * MUL >> 32) *
                                     bpe->n_slots / (UINT64_C(1) << 32));
    bpe->table[find_entry(bpe, bpe->pairs[i] >> 24, hash)] = bpe->pairs[i];
    bpe->filter[word] |=
        1u << (hash >> bpe->filter_shift & 31) | 1u << (hash & 31);
  }
  return TNK_OK;
}

static int make_filter(tnk__bpe_t *bpe) {
  unsigned log2 = MIN_FILTER_LOG2;

  while (log2 < MAX_FILTER_LOG2 && (uint64_t)1 << log2 < bpe->n_pairs * 12ull)
    log2++;
  bpe->filter = tnk__calloc(bpe->alloc, (size_t)1 << (log2 - 5), 4);
  bpe->filter_shift = 64 - log2;
  return bpe->filter == NULL ? TNK_ENOMEM : TNK_OK;
}

/* Free memory that only loading needs. If shrinking fails, the larger block is
 * kept. */
static void trim(tnk__bpe_t *bpe) {
  int32_t *merged =
      tnk__realloc(bpe->alloc, bpe->merged, bpe->n_merges * sizeof(*merged));

  if (merged != NULL) {
    bpe->merged = merged;
    bpe->cap_merges = bpe->n_merges;
  }
  tnk__free(bpe->alloc, bpe->pairs);
  bpe->pairs = NULL;
}

/* Allocate the bits of settled tokens, all 0. */
static int make_settled(tnk__bpe_t *bpe) {
  int32_t last = -1;
  size_t n;

  for (uint32_t i = 0; i < bpe->n_merges; i++)
    last = bpe->merged[i] > last ? bpe->merged[i] : last;
  n = (size_t)last + 1; /* without merges this is 0 */
  bpe->settled =
      tnk__alloc_array(bpe->alloc, n / 32 + 1, sizeof(*bpe->settled));
  if (bpe->settled == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < n / 32 + 1; i++)
    atomic_init(&bpe->settled[i], 0);
  bpe->n_settled = (uint32_t)n;
  return TNK_OK;
}

int tnk__bpe_finish(tnk__bpe_t *bpe) {
  if (make_filter(bpe) < 0 || build_table(bpe) < 0 || make_settled(bpe) < 0)
    return TNK_ENOMEM;
  trim(bpe);
  bpe->byte_pair_rank = tnk__alloc_array(bpe->alloc, 65536, 4);
  if (bpe->byte_pair_rank == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < 65536; i++) {
    int32_t left = bpe->byte_id[i >> 8], right = bpe->byte_id[i & 255];

    bpe->byte_pair_rank[i] =
        left < 0 || right < 0 ? TNK__NO_RANK : tnk__bpe_rank(bpe, left, right);
  }
  return TNK_OK;
}

static inline uint32_t get_rank(const tnk__bpe_t *bpe, int32_t left,
                                int32_t right) {
  uint64_t key = pair_key(left, right);
  uint64_t hash = key * MUL;
  uint32_t bits = 1u << (hash >> bpe->filter_shift & 31) | 1u << (hash & 31);
  uint64_t entry;

  if ((bpe->filter[(hash >> bpe->filter_shift) >> 5] & bits) != bits)
    return TNK__NO_RANK;
  entry = bpe->table[find_entry(bpe, key, hash)];
  return entry == UINT64_MAX ? TNK__NO_RANK : (uint32_t)(entry & 0xffffff);
}

uint32_t tnk__bpe_rank(const tnk__bpe_t *bpe, int32_t left, int32_t right) {
  return get_rank(bpe, left, right);
}

void tnk__bpe_settle(const tnk__bpe_t *bpe, int32_t id) {
  if ((uint32_t)id < bpe->n_settled)
    (void)atomic_fetch_or_explicit(&bpe->settled[(uint32_t)id / 32],
                                   1u << ((uint32_t)id % 32),
                                   memory_order_relaxed);
}

/*
 * Short pieces: a list in small arrays, and a scan for the smallest key. The
 * key of a pair is rank << 8 | position. Equal ranks are therefore merged from
 * left to right, and the smallest key contains its position.
 */
#define SCAN_MAX 96
#define STEP 4u /* keys per step of the scan */

typedef struct {
  uint32_t keys[SCAN_MAX + STEP];
  uint8_t next[SCAN_MAX + 1];
  uint8_t prev[SCAN_MAX + 1];
} scan_t;

static inline uint32_t pair_at(const tnk__bpe_t *bpe, const int32_t *ids,
                               size_t at, size_t next) {
  uint32_t rank = get_rank(bpe, ids[at], ids[next]);

  return rank == TNK__NO_RANK ? rank : rank << 8 | (uint32_t)at;
}

/* Initialize the lists for n ids whose keys are set. */
static void scan_init(scan_t *scan, size_t n) {
  for (size_t i = 0; i <= n; i++) {
    scan->next[i] = (uint8_t)(i + 1);
    scan->prev[i] = (uint8_t)(i - 1);
  }
  for (size_t i = 0; i < STEP; i++)
    scan->keys[n - 1 + i] = TNK__NO_RANK;
}

static inline uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

static inline uint32_t smallest(const uint32_t *keys, size_t n) {
  uint32_t a = TNK__NO_RANK, b = a, c = a, d = a;

  for (size_t i = 0; i < n; i += STEP) {
    a = smaller(a, keys[i]);
    b = smaller(b, keys[i + 1]);
    c = smaller(c, keys[i + 2]);
    d = smaller(d, keys[i + 3]);
  }
  return smaller(smaller(a, b), smaller(c, d));
}

static size_t merge_scan(const tnk__bpe_t *bpe, scan_t *scan, int32_t *ids,
                         size_t n) {
  uint32_t key;
  size_t n_out = 0;

  scan_init(scan, n);
  while ((key = smallest(scan->keys, n - 1)) != TNK__NO_RANK) {
    size_t at = key & 0xff, gone = scan->next[at], next = scan->next[gone];

    ids[at] = bpe->merged[key >> 8];
    scan->next[at] = (uint8_t)next;
    scan->prev[next] = (uint8_t)at;
    scan->keys[gone] = TNK__NO_RANK;
    scan->keys[at] = next < n ? pair_at(bpe, ids, at, next) : TNK__NO_RANK;
    if (at > 0)
      scan->keys[scan->prev[at]] = pair_at(bpe, ids, scan->prev[at], at);
  }
  for (size_t i = 0; i < n; i = scan->next[i])
    ids[n_out++] = ids[i];
  return n_out;
}

/*
 * Long pieces: a linked list and a heap of rank << 32 | position, so equal
 * ranks are merged from left to right. An entry is stale if the pair at its
 * position has a different rank by now. Stale entries are dropped when they
 * reach the top. A merge adds at most three entries and removes one, so the
 * heap has at most n + 2n. It reuses the slot of the removed entry, which keeps
 * it below 2n.
 */
typedef struct {
  uint32_t next;
  uint32_t prev;
  int32_t id;
  uint32_t rank; /* rank of the pair with the next node */
} node_t;

static void sift_down(uint64_t *heap, size_t n, size_t i) {
  uint64_t item = heap[i];

  for (;;) {
    size_t child = 2 * i + 1;

    if (child >= n)
      break;
    if (child + 1 < n && heap[child + 1] < heap[child])
      child++;
    if (heap[child] >= item)
      break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = item;
}

static void sift_up(uint64_t *heap, size_t i) {
  uint64_t item = heap[i];

  while (i > 0 && heap[(i - 1) / 2] > item) {
    heap[i] = heap[(i - 1) / 2];
    i = (i - 1) / 2;
  }
  heap[i] = item;
}

static size_t heap_fill(uint64_t *heap, const node_t *nodes, size_t n) {
  size_t n_heap = 0;

  for (size_t i = 0; i < n; i++)
    if (nodes[i].rank != TNK__NO_RANK)
      heap[n_heap++] = (uint64_t)nodes[i].rank << 32 | i;
  for (size_t i = n_heap / 2; i-- > 0;)
    sift_down(heap, n_heap, i);
  return n_heap;
}

static size_t heap_push(uint64_t *heap, size_t n_heap, uint32_t rank,
                        uint32_t at) {
  if (rank == TNK__NO_RANK)
    return n_heap;
  heap[n_heap] = (uint64_t)rank << 32 | at;
  sift_up(heap, n_heap);
  return n_heap + 1;
}

static void merge_heap(const tnk__bpe_t *bpe, node_t *nodes, uint64_t *heap,
                       size_t n) {
  size_t n_heap = heap_fill(heap, nodes, n);

  while (n_heap > 0) {
    uint32_t at = (uint32_t)heap[0], rank = (uint32_t)(heap[0] >> 32);
    uint32_t next, prev;

    heap[0] = heap[--n_heap];
    if (n_heap > 0)
      sift_down(heap, n_heap, 0);
    if (nodes[at].rank != rank)
      continue;
    next = nodes[at].next;
    prev = nodes[at].prev;
    nodes[at].id = bpe->merged[rank];
    nodes[at].next = nodes[next].next;
    nodes[next].rank = TNK__NO_RANK;
    nodes[next].id = -1;
    nodes[at].rank = TNK__NO_RANK;
    if (nodes[at].next < n) {
      nodes[nodes[at].next].prev = at;
      nodes[at].rank = get_rank(bpe, nodes[at].id, nodes[nodes[at].next].id);
      n_heap = heap_push(heap, n_heap, nodes[at].rank, at);
    }
    if (prev < n) {
      nodes[prev].rank = get_rank(bpe, nodes[prev].id, nodes[at].id);
      n_heap = heap_push(heap, n_heap, nodes[prev].rank, prev);
    }
  }
}

/* One block for n nodes and a heap of 2n entries. */
static int work_reserve(tnk__bpe_work_t *work, size_t n) {
  size_t size = n * (sizeof(node_t) + 2 * sizeof(uint64_t));

  if (n > UINT32_MAX / 2)
    return TNK_ETOOBIG;
  if (size > work->size) {
    tnk__free(work->alloc, work->memory);
    work->memory = tnk__malloc(work->alloc, size);
    work->size = work->memory == NULL ? 0 : size;
  }
  return work->memory == NULL ? TNK_ENOMEM : TNK_OK;
}

static int64_t merge_long(const tnk__bpe_t *bpe, tnk__bpe_work_t *work,
                          int32_t *ids, size_t n) {
  node_t *nodes;
  size_t n_out = 0;
  int err = work_reserve(work, n);

  if (err < 0)
    return err;
  nodes = work->memory;
  for (size_t i = 0; i < n; i++) {
    nodes[i].id = ids[i];
    nodes[i].next = (uint32_t)(i + 1);
    nodes[i].prev = i == 0 ? UINT32_MAX : (uint32_t)(i - 1);
    nodes[i].rank =
        i + 1 < n ? get_rank(bpe, ids[i], ids[i + 1]) : TNK__NO_RANK;
  }
  merge_heap(bpe, nodes, (uint64_t *)(void *)(nodes + n), n);
  for (size_t i = 0; i < n; i = nodes[i].next)
    ids[n_out++] = nodes[i].id;
  return (int64_t)n_out;
}

int64_t tnk__bpe_ids(const tnk__bpe_t *bpe, tnk__bpe_work_t *work, int32_t *ids,
                     size_t n) {
  scan_t scan;

  if (n > SCAN_MAX)
    return merge_long(bpe, work, ids, n);
  if (n < 2)
    return (int64_t)n;
  for (size_t i = 0; i + 1 < n; i++)
    scan.keys[i] = pair_at(bpe, ids, i, i + 1);
  return (int64_t)merge_scan(bpe, &scan, ids, n);
}

int64_t tnk__bpe_bytes(const tnk__bpe_t *bpe, tnk__bpe_work_t *work,
                       const uint8_t *bytes, size_t n, int32_t *out) {
  scan_t scan;

  for (size_t i = 0; i < n; i++)
    out[i] = bpe->byte_id[bytes[i]];
  if (n > SCAN_MAX)
    return merge_long(bpe, work, out, n);
  if (n < 2)
    return (int64_t)n;
  for (size_t i = 0; i + 1 < n; i++) {
    uint32_t rank = bpe->byte_pair_rank[(size_t)bytes[i] << 8 | bytes[i + 1]];

    scan.keys[i] = rank == TNK__NO_RANK ? rank : rank << 8 | (uint32_t)i;
  }
  return (int64_t)merge_scan(bpe, &scan, out, n);
}

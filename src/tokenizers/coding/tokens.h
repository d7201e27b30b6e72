#ifndef TNK_TOKENIZERS_CODING_TOKENS_H
#define TNK_TOKENIZERS_CODING_TOKENS_H

#include "tnk/tokenizers.h"
#include "lib/base/buf.h"
#include "tokenizers/model/bpe.h"

/*
 * Short pieces come again and again. What became of them is kept by their
 * bytes, which fill the key with zeros and end in their number; an entry that
 * was never written has number 0, which no piece has. Ids are packed, 20 bits
 * each, three to a word; the first word ends in their number. Entries come in
 * pairs, the one used last in front.
 */
#define TNK__CACHE_LOG2 15 /* of pairs; 2 MiB */
#define TNK__CACHE_BYTES 15u
#define TNK__CACHE_IDS 6u

typedef struct {
  uint64_t key[2];
  uint64_t ids[2];
} tnk__cache_entry_t;

/* Memory of one encoder, kept from call to call. */
typedef struct {
  tnk__cache_entry_t *cache;     /* NULL until enough text was seen */
  const tnk_tokenizer_t *cached; /* whose pieces: counted, or NULL */
  size_t n_seen;                 /* bytes encoded with `cached` */
  tnk__bpe_work_t work;
  tnk__buf_t clean;   /* text with replaced bytes */
  tnk__buf_t normal;  /* normalized text */
  tnk__buf_t cps;     /* of a section being normalized */
  tnk__buf_t cleaned; /* tnk__nfc_change_t: clean against given text */
  tnk__buf_t changes; /* the same: normal against clean text */
} tnk__scratch_t;

struct tnk_tokens {
  tnk_allocator_t alloc;
  int32_t *ids;
  size_t n;
  size_t cap;
  tnk_token_span_t *spans;
  size_t n_spans;
  size_t cap_spans;
  tnk__scratch_t scratch;
};

/* Make an empty list in memory of the caller. */
void tnk__tokens_init(tnk_tokens_t *tokens, const tnk_allocator_t *alloc);
void tnk__tokens_deinit(tnk_tokens_t *tokens);
/* Reserve memory for n more ids behind the last. */
int tnk__tokens_reserve(tnk_tokens_t *tokens, size_t n);
int tnk__tokens_reserve_spans(tnk_tokens_t *tokens, size_t n);

#endif

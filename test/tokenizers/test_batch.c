/* SPDX-License-Identifier: MIT */
#include <pthread.h>

#include "tokenizers/small.h"

/* One handle, many threads. */
enum { N_TEXTS = 200, N_THREADS = 8, N_ENCODES = 1000 };

static char texts[N_TEXTS][64];
static size_t n_bytes[N_TEXTS];

static void make_texts(void) {
  static const char *const words[] = {
      "Word",       " ",         "\n\n", "123", "\xe4\xb8\xad",
      "<|im_end|>", "e\xcc\x81", "...",  "'s",  "<think>"};
  uint64_t seed = 7;

  for (size_t i = 0; i < N_TEXTS; i++)
    for (size_t j = 0; j < 1 + i % 5; j++) {
      const char *word = words[test_random(&seed) % 10];

      memcpy(texts[i] + n_bytes[i], word, strlen(word));
      n_bytes[i] += strlen(word);
    }
}

TEST(a_batch_is_the_same_as_one_by_one) {
  tnk_tokenizer_t *tok = small_load("qwen2");
  tnk_tokens_t *lists[N_TEXTS];
  const char *pointers[N_TEXTS];
  tnk_tokenizer_error_t error;

  make_texts();
  for (unsigned n_threads = 0; n_threads < 6; n_threads++) {
    for (size_t i = 0; i < N_TEXTS; i++) {
      lists[i] = tnk_tokens_new(test_allocator());
      pointers[i] = texts[i];
    }
    CHECK_INT(tnk_tokenizer_encode_batch(tok, lists, pointers, n_bytes, N_TEXTS,
                                         TNK_ENCODE_OFFSETS, n_threads, &error),
              TNK_OK);
    for (size_t i = 0; i < N_TEXTS; i++) {
      tnk_tokens_t *one =
          small_encode(tok, texts[i], n_bytes[i], TNK_ENCODE_OFFSETS);
      size_t n;
      const int32_t *ids = tnk_tokens_ids(one, &n);

      small_check_ids(lists[i], ids, n);
      CHECK_MEM(tnk_tokens_offsets(lists[i]), n * sizeof(tnk_token_span_t),
                tnk_tokens_offsets(one), n * sizeof(tnk_token_span_t));
      tnk_tokens_free(one);
      tnk_tokens_free(lists[i]);
    }
  }
  tnk_tokenizer_unref(tok);
}

TEST(a_batch_reports_the_first_text_that_failed) {
  tnk_tokenizer_t *tok = small_load("gpt2");
  const char *pointers[] = {"a", "\xff", "b", "xx\xff", "c"};
  const size_t lengths[] = {1, 1, 1, 3, 1};
  tnk_tokens_t *lists[5];
  tnk_tokenizer_error_t error;
  size_t n;

  for (size_t i = 0; i < 5; i++)
    lists[i] = tnk_tokens_new(test_allocator());
  CHECK_INT(tnk_tokenizer_encode_batch(tok, lists, pointers, lengths, 5, 0, 3,
                                       &error),
            TNK_EINVAL);
  CHECK_INT(error.offset, 0);
  for (size_t i = 0; i < 5; i++) {
    (void)tnk_tokens_ids(lists[i], &n);
    CHECK_INT(n, i % 2 == 0 ? 1 : 0);
    tnk_tokens_free(lists[i]);
  }
  tnk_tokenizer_unref(tok);
}

/* The owner's reference may go while the others work. */
typedef struct {
  tnk_tokenizer_t *tok;
  int32_t (*expected)[64];
  size_t *n_expected;
  unsigned start;
  int ok;
} shared_t;

static void *encode_many(void *arg) {
  shared_t *shared = arg;
  tnk_tokens_t *tokens = tnk_tokens_new(NULL);

  shared->ok = tokens != NULL;
  for (unsigned i = 0; i < N_ENCODES && shared->ok; i++) {
    size_t at = (shared->start + i) % N_TEXTS, n;
    const int32_t *ids;

    tnk_tokens_clear(tokens);
    shared->ok = tnk_tokenizer_encode(shared->tok, tokens, texts[at],
                                      n_bytes[at], 0, NULL) == TNK_OK;
    ids = tnk_tokens_ids(tokens, &n);
    shared->ok = shared->ok && n == shared->n_expected[at] &&
                 memcmp(ids, shared->expected[at], n * sizeof(*ids)) == 0;
  }
  tnk_tokens_free(tokens);
  tnk_tokenizer_unref(shared->tok);
  return NULL;
}

TEST_LIMIT(S0_5_one_handle_is_used_by_eight_threads, 30) {
  static int32_t expected[N_TEXTS][64];
  static size_t n_expected[N_TEXTS];
  tnk_tokenizer_t *tok;
  tnk_tokenizer_error_t error;
  pthread_t threads[N_THREADS];
  shared_t shared[N_THREADS];

  make_texts();
  CHECK_INT(tnk_tokenizer_load(&tok, TNK_TEST_DATA "/qwen2.json", NULL, &error),
            TNK_OK);
  for (size_t i = 0; i < N_TEXTS; i++) {
    tnk_tokens_t *one = small_encode(tok, texts[i], n_bytes[i], 0);
    const int32_t *ids = tnk_tokens_ids(one, &n_expected[i]);

    CHECK(n_expected[i] <= 64);
    memcpy(expected[i], ids, n_expected[i] * sizeof(*ids));
    tnk_tokens_free(one);
  }
  for (unsigned i = 0; i < N_THREADS; i++) {
    shared[i] =
        (shared_t){tnk_tokenizer_ref(tok), expected, n_expected, i * 17, 0};
    CHECK_INT(pthread_create(&threads[i], NULL, encode_many, &shared[i]), 0);
  }
  tnk_tokenizer_unref(tok);
  for (unsigned i = 0; i < N_THREADS; i++) {
    CHECK_INT(pthread_join(threads[i], NULL), 0);
    CHECK(shared[i].ok);
  }
}

/* SPDX-License-Identifier: MIT */
#include <pthread.h>

#include "lib/base/alloc.h"
#include "tokenizers/coding/encode.h"

/*
 * Encoding of many texts on several threads. A free worker takes the next text
 * from a shared counter. Each worker encodes into its own list, which keeps its
 * cache warm, and copies the result to the text's list.
 */
#define MAX_THREADS 64

typedef struct {
  const tnk_tokenizer_t *tok;
  tnk_tokens_t *const *tokens;
  const char *const *texts;
  const size_t *n_bytes;
  size_t n_texts;
  unsigned flags;
  atomic_size_t next;
} batch_t;

/* Result of one worker. `failed` is the first of its texts that failed, or
 * n_texts. */
typedef struct {
  batch_t *batch;
  pthread_t thread;
  tnk_tokens_t scratch;
  size_t failed;
  tnk_tokenizer_error_t error;
} worker_t;

static int copy_result(tnk_tokens_t *to, const tnk_tokens_t *from) {
  if (tnk__tokens_reserve(to, from->n) < 0 ||
      tnk__tokens_reserve_spans(to, from->n_spans) < 0)
    return TNK_ENOMEM;
  for (size_t i = 0; i < from->n; i++)
    to->ids[to->n++] = from->ids[i];
  for (size_t i = 0; i < from->n_spans; i++)
    to->spans[to->n_spans++] = from->spans[i];
  return TNK_OK;
}

static void *work(void *arg) {
  worker_t *worker = arg;
  batch_t *batch = worker->batch;
  tnk_tokens_t *scratch = &worker->scratch;

  for (;;) {
    size_t i = atomic_fetch_add_explicit(&batch->next, 1, memory_order_relaxed);
    tnk__encoder_t encoder = {batch->tok, scratch, batch->flags, 0, 0, 0};
    tnk_tokenizer_error_t error;
    int err;

    if (i >= batch->n_texts)
      return NULL;
    scratch->n = scratch->n_spans = 0;
    err = tnk__encode(&encoder, batch->texts[i], batch->n_bytes[i], &error);
    if (err == TNK_OK && copy_result(batch->tokens[i], scratch) < 0)
      err = tnk__fault_memory(&error);
    if (err < 0 && i < worker->failed) {
      worker->failed = i;
      worker->error = error;
    }
  }
}

static int check(const batch_t *batch, tnk_tokenizer_error_t *error) {
  if (batch->tok == NULL ||
      (batch->n_texts > 0 && (batch->tokens == NULL || batch->texts == NULL ||
                              batch->n_bytes == NULL)))
    return tnk__fault(error, TNK_EINVAL, 0, "no tokenizer, lists or texts");
  for (size_t i = 0; i < batch->n_texts; i++)
    if (batch->tokens[i] == NULL)
      return tnk__fault(error, TNK_EINVAL, 0, "no list for text %zu", i);
  return TNK_OK;
}

/* Start n - 1 threads, work on this one, and wait for all. If a thread cannot
 * be started, the others do its work. */
static void run(worker_t *workers, unsigned n) {
  unsigned n_started = 0;

  while (n_started + 1 < n && pthread_create(&workers[n_started].thread, NULL,
                                             work, &workers[n_started]) == 0)
    n_started++;
  (void)work(&workers[n - 1]);
  for (unsigned i = 0; i < n_started; i++)
    (void)pthread_join(workers[i].thread, NULL);
}

int tnk_tokenizer_encode_batch(const tnk_tokenizer_t *tok,
                               tnk_tokens_t *const *tokens,
                               const char *const *texts, const size_t *n_bytes,
                               size_t n_texts, unsigned flags,
                               unsigned n_threads,
                               tnk_tokenizer_error_t *error) {
  batch_t batch = {tok, tokens, texts, n_bytes, n_texts, flags, 0};
  worker_t *workers, *first;
  int err;

  tnk__fault_clear(error);
  err = check(&batch, error);
  if (err < 0 || n_texts == 0)
    return err;
  n_threads = n_threads == 0 ? 1 : n_threads;
  n_threads = n_threads > MAX_THREADS ? MAX_THREADS : n_threads;
  if (n_threads > n_texts)
    n_threads = (unsigned)n_texts;
  workers = tnk__calloc(&tok->alloc, n_threads, sizeof(*workers));
  if (workers == NULL)
    return tnk__fault_memory(error);
  for (unsigned i = 0; i < n_threads; i++) {
    workers[i].batch = &batch;
    workers[i].failed = n_texts;
    tnk__tokens_init(&workers[i].scratch, &tok->alloc);
  }
  run(workers, n_threads);
  first = &workers[0];
  for (unsigned i = 0; i < n_threads; i++) {
    if (workers[i].failed < first->failed)
      first = &workers[i];
    tnk__tokens_deinit(&workers[i].scratch);
  }
  err = first->failed < n_texts ? first->error.code : TNK_OK;
  if (err < 0 && error != NULL)
    *error = first->error;
  tnk__free(&tok->alloc, workers);
  return err;
}

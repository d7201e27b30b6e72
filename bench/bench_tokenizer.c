/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tnk/tokenizers.h"

/*
 * Speed of libtnk-tokenizers on one core, and the memory it takes.
 *
 *   bench_tokenizer TOKENIZER [TEXT ...]
 *
 * Prints one line for loading and one a text: megabytes a second of encoding
 * (in calls of 4 KiB, cut at line ends, and in one call), of counting, of
 * decoding, and of encoding the same portions as one batch on two threads. CPU
 * time is counted, except for the batch, and the best of several rounds is
 * taken, for the machine may be busy. test/tokenizers/bench.py runs it beside
 * the reference. Without texts it makes hard ones: ten times the text should
 * take ten times as long.
 */
enum { ROUNDS = 7, PORTION = 4096, THREADS = 2 };

static double seconds(clockid_t clock) {
  struct timespec t;

  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* CPU time of this process. */
static double now(void) {
  return seconds(CLOCK_PROCESS_CPUTIME_ID);
}

/* Bytes in use, for which each block begins with its size. */
static struct {
  size_t now;
  size_t peak;
} memory;

enum { HEAD = 16 };

static void *counted_realloc(void *ptr, size_t size, void *user) {
  char *block = ptr == NULL ? NULL : (char *)ptr - HEAD;
  size_t old = 0;

  (void)user;
  if (block != NULL)
    memcpy(&old, block, sizeof(old));
  block = realloc(block, size + HEAD);
  if (block == NULL)
    return NULL;
  memcpy(block, &size, sizeof(size));
  memory.now += size - old;
  memory.peak = memory.now > memory.peak ? memory.now : memory.peak;
  return block + HEAD;
}

static void *counted_malloc(size_t size, void *user) {
  return counted_realloc(NULL, size, user);
}

static void *counted_calloc(size_t n, size_t size, void *user) {
  void *ptr = counted_realloc(NULL, n * size, user);

  if (ptr != NULL)
    memset(ptr, 0, n * size);
  return ptr;
}

static void counted_free(void *ptr, void *user) {
  size_t size;

  (void)user;
  if (ptr == NULL)
    return;
  memcpy(&size, (char *)ptr - HEAD, sizeof(size));
  memory.now -= size;
  free((char *)ptr - HEAD);
}

static char *read_file(const char *path, size_t *n) {
  FILE *from = fopen(path, "rb");
  char *text = NULL;
  long size;

  if (from != NULL && fseek(from, 0, SEEK_END) == 0 &&
      (size = ftell(from)) >= 0 && fseek(from, 0, SEEK_SET) == 0) {
    text = malloc((size_t)size + 1);
    *n = text == NULL ? 0 : fread(text, 1, (size_t)size, from);
  }
  if (from != NULL)
    fclose(from);
  if (text == NULL)
    fprintf(stderr, "cannot read %s\n", path);
  return text;
}

/* Memory in use now, in KiB; 0 where the system does not tell. */
static long resident(void) {
  FILE *from = fopen("/proc/self/statm", "r");
  long all = 0, here = 0;

  if (from != NULL) {
    if (fscanf(from, "%ld %ld", &all, &here) != 2)
      here = 0;
    fclose(from);
  }
  return here * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The end of the portion that begins at p. */
static const char *portion(const char *p, const char *end) {
  const char *stop;

  if (end - p <= PORTION)
    return end;
  stop = memchr(p + PORTION, '\n', (size_t)(end - p) - PORTION);
  return stop == NULL ? end : stop + 1;
}

static int encode(const tnk_tokenizer_t *tok, tnk_tokens_t *tokens,
                  const char *text, size_t n, int whole) {
  const char *end = text + n;
  tnk_tokenizer_error_t error;

  tnk_tokens_clear(tokens);
  for (const char *p = text, *stop; p < end; p = stop) {
    stop = whole ? end : portion(p, end);
    if (tnk_tokenizer_encode(tok, tokens, p, (size_t)(stop - p),
                             TNK_ENCODE_LOSSY, &error) < 0) {
      fprintf(stderr, "%s\n", error.text);
      return -1;
    }
  }
  return 0;
}

/* Seconds of the fastest round; each begins with an empty cache. */
static double time_encode(const tnk_tokenizer_t *tok, const char *text,
                          size_t n, int whole) {
  double best = 1e9;

  for (int i = 0; i < ROUNDS; i++) {
    tnk_tokens_t *tokens = tnk_tokens_new(NULL);
    double start = now();

    if (tokens == NULL || encode(tok, tokens, text, n, whole) < 0)
      exit(1);
    best = now() - start < best ? now() - start : best;
    tnk_tokens_free(tokens);
  }
  return best;
}

static double time_decode(const tnk_tokenizer_t *tok, const char *text,
                          size_t n, size_t *n_ids) {
  tnk_tokens_t *tokens = tnk_tokens_new(NULL);
  double best = 1e9;

  if (tokens == NULL || encode(tok, tokens, text, n, 1) < 0)
    exit(1);
  for (int i = 0; i < ROUNDS; i++) {
    const int32_t *ids = tnk_tokens_ids(tokens, n_ids);
    double start = now();
    char *back;

    if (tnk_tokenizer_decode(tok, &back, NULL, ids, *n_ids, 0) < 0)
      exit(1);
    best = now() - start < best ? now() - start : best;
    tnk_tokenizer_free_text(tok, back);
  }
  tnk_tokens_free(tokens);
  return best;
}

/* Texts of one batch, and a list for each. */
typedef struct {
  const char **texts;
  size_t *sizes;
  tnk_tokens_t **tokens;
  size_t n;
} batch_t;

static void batch_init(batch_t *batch, const char *text, size_t n) {
  size_t cap = n / PORTION + 1;

  batch->n = 0;
  batch->texts = calloc(cap, sizeof(*batch->texts));
  batch->sizes = calloc(cap, sizeof(*batch->sizes));
  batch->tokens = calloc(cap, sizeof(*batch->tokens));
  if (batch->texts == NULL || batch->sizes == NULL || batch->tokens == NULL)
    exit(1);
  for (const char *p = text, *stop; p < text + n; p = stop) {
    stop = portion(p, text + n);
    batch->texts[batch->n] = p;
    batch->sizes[batch->n] = (size_t)(stop - p);
    batch->tokens[batch->n] = tnk_tokens_new(NULL);
    if (batch->tokens[batch->n++] == NULL)
      exit(1);
  }
}

static void batch_deinit(batch_t *batch) {
  for (size_t i = 0; i < batch->n; i++)
    tnk_tokens_free(batch->tokens[i]);
  free(batch->texts);
  free(batch->sizes);
  free(batch->tokens);
}

/* By the clock on the wall, for it is about two cores; *cpu is the CPU time of
 * both. */
static double time_batch(const tnk_tokenizer_t *tok, const char *text, size_t n,
                         double *cpu) {
  double best = 1e9;
  batch_t batch;

  *cpu = 1e9;
  batch_init(&batch, text, n);
  for (int i = 0; i < ROUNDS; i++) {
    double start = seconds(CLOCK_MONOTONIC), cpu_start = now(), took;

    for (size_t k = 0; k < batch.n; k++)
      tnk_tokens_clear(batch.tokens[k]);
    if (tnk_tokenizer_encode_batch(tok, batch.tokens, batch.texts, batch.sizes,
                                   batch.n, TNK_ENCODE_LOSSY, THREADS,
                                   NULL) < 0)
      exit(1);
    took = seconds(CLOCK_MONOTONIC) - start;
    best = took < best ? took : best;
    took = now() - cpu_start;
    *cpu = took < *cpu ? took : *cpu;
  }
  batch_deinit(&batch);
  return best;
}

static double time_count(const tnk_tokenizer_t *tok, const char *text,
                         size_t n) {
  double best = 1e9;

  for (int i = 0; i < ROUNDS; i++) {
    double start = now();
    size_t count;

    if (tnk_tokenizer_count(tok, text, n, TNK_ENCODE_LOSSY, &count, NULL) < 0)
      exit(1);
    best = now() - start < best ? now() - start : best;
  }
  return best;
}

/* The tokenizer, after several loads of which the first is measured for
 * memory and the fastest for time. */
static tnk_tokenizer_t *load(const char *path) {
  static const tnk_allocator_t counting = {counted_malloc, counted_calloc,
                                           counted_realloc, counted_free, NULL};
  tnk_tokenizer_options_t options = TNK_TOKENIZER_OPTIONS_INIT;
  tnk_tokenizer_t *tok = NULL;
  tnk_tokenizer_error_t error;
  long before = resident(), grown = 0;
  double best = 1e9;

  options.allocator = &counting;
  for (int i = 0; i < ROUNDS; i++) {
    double start;

    tnk_tokenizer_unref(tok);
    start = now();
    if (tnk_tokenizer_load(&tok, path, &options, &error) < 0) {
      fprintf(stderr, "%s\n", error.text);
      exit(1);
    }
    best = now() - start < best ? now() - start : best;
    grown = i == 0 ? resident() - before : grown;
  }
  printf("load %.1f ms, %zu ids, holds %.1f MB, at most %.1f MB while loading, "
         "process grown by %.1f MB\n",
         best * 1e3, tnk_tokenizer_vocab_size(tok), (double)memory.now * 1e-6,
         (double)memory.peak * 1e-6, (double)grown * 1024e-6);
  return tok;
}

/* Texts without a place to cut, of a tenth of the size and of the whole. */
static void time_hard(const tnk_tokenizer_t *tok) {
  static const struct {
    const char *name;
    const char *unit;
    size_t n;
  } hard[] = {{"one letter", "a", 10000000},
              {"two letters", "ab", 10000000},
              {"blanks", " ", 1000000},
              {"newlines", "\n", 1000000},
              {"symbols", "=", 1000000},
              {"zeros", "0", 1000000},
              {"one character of Chinese", "\xe4\xb8\xad", 3000000},
              {"one syllable of Korean", "\xea\xb0\x80", 3000000},
              {"marks", "\xcc\x81", 1000000},
              {"marks of two classes", "\xcc\x81\xcc\xa3", 1000000},
              {"beginnings of added tokens", "<|im_", 1000000}};

  for (size_t i = 0; i < sizeof(hard) / sizeof(hard[0]); i++) {
    size_t n_unit = strlen(hard[i].unit), n = hard[i].n / n_unit * n_unit;
    char *text = malloc(n);
    double tenth, whole;

    if (text == NULL)
      exit(1);
    for (size_t k = 0; k < n; k++)
      text[k] = hard[i].unit[k % n_unit];
    tenth = time_count(tok, text, n / 10 / n_unit * n_unit);
    whole = time_count(tok, text, n);
    printf("%s: %.1f MB in %.1f ms, a tenth in %.1f ms\n", hard[i].name,
           (double)n * 1e-6, whole * 1e3, tenth * 1e3);
    free(text);
  }
}

int main(int argc, char **argv) {
  tnk_tokenizer_t *tok;

  if (argc < 2) {
    fprintf(stderr, "usage: %s TOKENIZER [TEXT ...]\n", argv[0]);
    return 2;
  }
  tok = load(argv[1]);
  if (argc == 2)
    time_hard(tok);
  for (int i = 2; i < argc; i++) {
    size_t n, n_ids;
    char *text = read_file(argv[i], &n);
    double mb = (double)n * 1e-6, cpu, wall;

    if (text == NULL)
      return 1;
    printf("%s %.2f MB encode %.1f MB/s whole %.1f MB/s", argv[i], mb,
           mb / time_encode(tok, text, n, 0),
           mb / time_encode(tok, text, n, 1));
    printf(" count %.1f MB/s", mb / time_count(tok, text, n));
    printf(" decode %.1f MB/s", mb / time_decode(tok, text, n, &n_ids));
    wall = time_batch(tok, text, n, &cpu);
    printf(" batch %.1f MB/s, %.1f a CPU-second", mb / wall, mb / cpu);
    printf(" ids %zu\n", n_ids);
    fflush(stdout);
    free(text);
  }
  tnk_tokenizer_unref(tok);
  return 0;
}

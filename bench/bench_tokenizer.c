#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tnk/tokenizers.h"

/*
 * Speed of libtnk-tokenizers on one core.
 *
 *   bench_tokenizer TOKENIZER TEXT ...
 *
 * Prints one line for loading and one a text: megabytes a second of encoding
 * (in calls of 4 KiB, cut at line ends, and in one call) and of decoding. The
 * best of several rounds counts, for the machine may be busy. test/tokenizers/
 * bench.py runs it beside the reference.
 */
enum { ROUNDS = 5, PORTION = 4096 };

static double now(void) {
  struct timespec t;

  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
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

int main(int argc, char **argv) {
  tnk_tokenizer_t *tok = NULL;
  tnk_tokenizer_error_t error;
  long before = resident();
  double best = 1e9;

  if (argc < 2) {
    fprintf(stderr, "usage: %s TOKENIZER TEXT ...\n", argv[0]);
    return 2;
  }
  for (int i = 0; i < ROUNDS; i++) {
    double start = now();

    tnk_tokenizer_unref(tok);
    if (tnk_tokenizer_load(&tok, argv[1], NULL, &error) < 0) {
      fprintf(stderr, "%s\n", error.text);
      return 1;
    }
    best = now() - start < best ? now() - start : best;
  }
  printf("load %.1f ms, %zu ids, holds %ld KiB\n", best * 1e3,
         tnk_tokenizer_vocab_size(tok), resident() - before);
  for (int i = 2; i < argc; i++) {
    size_t n, n_ids;
    char *text = read_file(argv[i], &n);
    double mb = (double)n * 1e-6;

    if (text == NULL)
      return 1;
    printf("%s %.2f MB encode %.1f MB/s whole %.1f MB/s", argv[i], mb,
           mb / time_encode(tok, text, n, 0),
           mb / time_encode(tok, text, n, 1));
    printf(" decode %.1f MB/s", mb / time_decode(tok, text, n, &n_ids));
    printf(" ids %zu\n", n_ids);
    free(text);
  }
  tnk_tokenizer_unref(tok);
  return 0;
}

/* SPDX-License-Identifier: MIT */
/*
 * A conversation to its text and to its tokens, again and again: CPU time of
 * each, and of reading it from JSON.
 *
 *   bench_chat FOLDER CONVERSATION [ROUNDS]                          200
 *
 * FOLDER has tokenizer.json and tokenizer_config.json with the template,
 * CONVERSATION is a file with {"messages": [...], "tools": [...]}. Prints one
 * line of JSON; `hash` is of the ids, so that others can show that they have
 * the same ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tnk/chat.h>
#include <tnk/tokenizers.h>

typedef struct {
  tnk_chat_template_t *template_;
  tnk_chat_tokenizer_t coder;
  tnk_chat_t *chat;
  tnk_chat_tokens_t *tokens;
  tnk_chat_options_t options;
  tnk_chat_error_t error;
  char *json;
  size_t n_json;
} bench_t;

static double cpu_us(void) {
  struct timespec now;

  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int64_t now_s(void *user) {
  (void)user;
  return (int64_t)time(NULL);
}

static char *read_file(const char *path, size_t *n) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  long size;

  if (file == NULL)
    return NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0 &&
      fseek(file, 0, SEEK_SET) == 0 && (text = malloc((size_t)size)) != NULL)
    *n = fread(text, 1, (size_t)size, file);
  fclose(file);
  return text;
}

/* ---- What is measured ---- */

static int make_text(bench_t *bench) {
  char *text;
  int err = tnk_chat_text(&text, NULL, bench->template_, bench->chat,
                          &bench->options, &bench->error);

  tnk_chat_free_text(bench->chat, text);
  return err;
}

static int make_ids(bench_t *bench) {
  return tnk_chat_encode(bench->tokens, bench->template_, &bench->coder,
                         bench->chat, &bench->options, &bench->error);
}

static int read_chat(bench_t *bench) {
  tnk_chat_free(bench->chat);
  bench->chat = tnk_chat_new(NULL);
  return tnk_chat_read(bench->chat, TNK_CHAT_TEMPLATE, bench->json,
                       bench->n_json, &bench->error);
}

/* The mean of the rounds; the first one warms up. */
static double measure(bench_t *bench, int (*what)(bench_t *), long n) {
  double from;

  if (what(bench) != TNK_OK)
    return -1;
  from = cpu_us();
  for (long i = 0; i < n; i++)
    (void)what(bench);
  return (cpu_us() - from) / (double)n;
}

static uint32_t hash_of(const int32_t *ids, size_t n) {
  uint32_t hash = 0;

  for (size_t i = 0; i < n; i++)
    hash = hash * 31 + (uint32_t)ids[i];
  return hash;
}

/* ---- Life ---- */

static int open_all(bench_t *bench, const char *folder, const char *path) {
  void *tokenizer = NULL;
  char why[256] = "";

  bench->options = (tnk_chat_options_t)TNK_CHAT_OPTIONS_INIT;
  bench->options.now_s = now_s;
  bench->options.generation_prompt = TNK_YES;
  bench->json = read_file(path, &bench->n_json);
  bench->tokens = tnk_chat_tokens_new(NULL);
  bench->coder.plugin = tnk_tokenizer_plugin();
  if (bench->json == NULL || bench->tokens == NULL ||
      bench->coder.plugin->open(&tokenizer, folder, NULL, 0, NULL, why,
                                sizeof(why)) != TNK_OK) {
    fprintf(stderr, "cannot be opened: %s\n", why);
    return 0;
  }
  bench->coder.tokenizer = tokenizer;
  return tnk_chat_template_load(&bench->template_, folder, NULL,
                                &bench->error) == TNK_OK &&
         read_chat(bench) == TNK_OK;
}

int main(int argc, char **argv) {
  const long n = argc > 3 ? strtol(argv[3], NULL, 10) : 200;
  bench_t bench = {.json = NULL};
  double read_us, text_us, ids_us;
  const int32_t *ids;
  size_t n_ids;

  if (argc < 3) {
    fprintf(stderr, "usage: bench_chat FOLDER CONVERSATION [ROUNDS]\n");
    return 2;
  }
  if (!open_all(&bench, argv[1], argv[2])) {
    fprintf(stderr, "%s\n", bench.error.text);
    return 1;
  }
  read_us = measure(&bench, read_chat, n);
  text_us = measure(&bench, make_text, n);
  ids_us = measure(&bench, make_ids, n);
  ids = tnk_chat_tokens_ids(bench.tokens, &n_ids);
  if (read_us < 0 || text_us < 0 || ids_us < 0)
    fprintf(stderr, "%s\n", bench.error.text);
  else
    printf("{\"read_us\":%.2f,\"text_us\":%.2f,\"ids_us\":%.2f,\"n_ids\":%zu,"
           "\"hash\":%u}\n",
           read_us, text_us, ids_us, n_ids, hash_of(ids, n_ids));
  tnk_chat_tokens_free(bench.tokens);
  tnk_chat_free(bench.chat);
  tnk_chat_template_unref(bench.template_);
  bench.coder.plugin->close((void *)(uintptr_t)bench.coder.tokenizer);
  free(bench.json);
  return ids_us < 0;
}

#include "tools/tnk/sample/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/number.h"
#include "tnk/error.h"

/* The model of tnk local; its first 256 tokens are bytes. */
#define BYTE_MODEL "tnk/byte-lm"

int cli_words_open(cli_words_t *words, const cli_t *cli,
                   const cli_tokenizer_t *which, const char *model) {
  cli_tokenizer_t wanted = *which;
  char why[512];
  int status = CLI_EXIT_OK;

  words->tokenizer = NULL;
  if (wanted.path == NULL) {
    if (strcmp(model, BYTE_MODEL) == 0)
      return CLI_EXIT_OK;
    wanted.model = model;
  }
  words->tokenizer =
      cli_tokenizer_open(cli, &wanted, &status, why, sizeof(why));
  if (words->tokenizer != NULL)
    return CLI_EXIT_OK;
  return cli_tokenizer_failed(
      cli, &wanted, status, why,
      "--tokenizer names a file with the model's tokenizer.");
}

void cli_words_close(cli_words_t *words) {
  tnk_tokenizer_unref(words->tokenizer);
}

/* ---- Text to ids ---- */

static int32_t *ids_of_bytes(const char *text, size_t n) {
  int32_t *ids = calloc(n > 0 ? n : 1, sizeof(*ids));

  for (size_t i = 0; i < n && ids != NULL; i++)
    ids[i] = (unsigned char)text[i];
  return ids;
}

static int encode(const cli_words_t *words, const char *text, size_t n,
                  int32_t **ids, size_t *n_ids, tnk_tokenizer_error_t *error) {
  tnk_tokens_t *tokens = tnk_tokens_new(NULL);
  const int32_t *found;
  int err = tokens != NULL ? tnk_tokenizer_encode(words->tokenizer, tokens,
                                                  text, n, 0, error)
                           : TNK_ENOMEM;

  if (err == TNK_OK) {
    found = tnk_tokens_ids(tokens, n_ids);
    *ids = calloc(*n_ids > 0 ? *n_ids : 1, sizeof(**ids));
    if (*ids == NULL)
      err = TNK_ENOMEM;
    else if (*n_ids > 0)
      memcpy(*ids, found, *n_ids * sizeof(**ids));
  }
  tnk_tokens_free(tokens);
  return err;
}

int cli_words_encode(const cli_words_t *words, const cli_t *cli,
                     const char *text, size_t n, int32_t **ids, size_t *n_ids) {
  tnk_tokenizer_error_t error = {0, 0, "out of memory"};

  *ids = NULL;
  *n_ids = n;
  if (words->tokenizer == NULL)
    *ids = ids_of_bytes(text, n);
  else
    (void)encode(words, text, n, ids, n_ids, &error);
  return *ids != NULL ? CLI_EXIT_OK
                      : cli_fail(cli, CLI_EXIT_FAILED, "%s", error.text);
}

int cli_ids_read(const cli_t *cli, const char *text, size_t n, int32_t **ids,
                 size_t *n_ids) {
  const char *end = text + n;

  *n_ids = 0;
  /* Each id has at least one digit. */
  *ids = calloc(n > 0 ? n : 1, sizeof(**ids));
  if (*ids == NULL)
    return cli_fail(cli, CLI_EXIT_FAILED, "out of memory");
  for (;;) {
    uint64_t id;

    while (text < end && *text != '\0' && strchr(" \t\r\n,[]", *text) != NULL)
      text++;
    if (text == end)
      return CLI_EXIT_OK;
    if (tnk__read_u64(&text, end, INT32_MAX, &id) != TNK_OK)
      return cli_fail(cli, CLI_EXIT_USAGE,
                      "the prompt: \"%.*s\" is no token id",
                      (int)(end - text < 20 ? end - text : 20), text);
    (*ids)[(*n_ids)++] = (int32_t)id;
  }
}

/* ---- Ids to text ---- */

/* Ids that are not bytes have no text. */
static char *bytes_of_ids(const int32_t *ids, size_t n_ids, size_t *n) {
  char *text = malloc(n_ids + 1);

  *n = 0;
  for (size_t i = 0; i < n_ids && text != NULL; i++)
    if (ids[i] >= 0 && ids[i] < 256)
      text[(*n)++] = (char)(unsigned char)ids[i];
  if (text != NULL)
    text[*n] = '\0';
  return text;
}

char *cli_words_decode(const cli_words_t *words, const int32_t *ids,
                       size_t n_ids, size_t *n) {
  char *found = NULL;
  char *text;

  if (words->tokenizer == NULL)
    return bytes_of_ids(ids, n_ids, n);
  if (tnk_tokenizer_decode(words->tokenizer, &found, n, ids, n_ids,
                           TNK_DECODE_SKIP_SPECIAL) != TNK_OK)
    return NULL;
  text = malloc(*n + 1);
  if (text != NULL)
    memcpy(text, found, *n + 1);
  tnk_tokenizer_free_text(words->tokenizer, found);
  return text;
}

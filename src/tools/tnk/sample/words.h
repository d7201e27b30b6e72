#ifndef TNK_TOOLS_TNK_SAMPLE_WORDS_H
#define TNK_TOOLS_TNK_SAMPLE_WORDS_H

#include <stdint.h>

#include "tools/tnk/text/tokenizer.h"

/* Converts text to token ids and back with a tokenizer, or byte by byte for
 * models whose tokens are bytes. */
typedef struct {
  tnk_tokenizer_t *tokenizer; /* NULL: bytes */
} cli_words_t;

/* Open the tokenizer that the options name, else the model's. Returns the exit
 * status; errors have been reported. */
int cli_words_open(cli_words_t *words, const cli_t *cli,
                   const cli_tokenizer_t *which, const char *model);
void cli_words_close(cli_words_t *words);
/* Get the ids of a text; the caller frees them. Returns the exit status; errors
 * have been reported. */
int cli_words_encode(const cli_words_t *words, const cli_t *cli,
                     const char *text, size_t n, int32_t **ids, size_t *n_ids);
/* As above, for a text that lists ids. */
int cli_ids_read(const cli_t *cli, const char *text, size_t n, int32_t **ids,
                 size_t *n_ids);
/* Get the text of ids; the caller frees it. NULL without memory. */
char *cli_words_decode(const cli_words_t *words, const int32_t *ids,
                       size_t n_ids, size_t *n);

#endif

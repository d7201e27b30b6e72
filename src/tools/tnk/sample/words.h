#ifndef TNK_TOOLS_TNK_SAMPLE_WORDS_H
#define TNK_TOOLS_TNK_SAMPLE_WORDS_H

#include <stdint.h>

#include "tools/tnk/text/tokenizer.h"

/* From text to token ids and back: by a tokenizer, or, for models that know
 * bytes alone, byte by byte. */
typedef struct {
  tnk_tokenizer_t *tokenizer; /* NULL: bytes */
} cli_words_t;

/* Open the tokenizer of the switches, else that of the model. Returns the exit
 * status, and has told what is wrong. */
int cli_words_open(cli_words_t *words, const cli_t *cli,
                   const cli_tokenizer_t *which, const char *model);
void cli_words_close(cli_words_t *words);
/* The ids of a text, to be freed. Returns the exit status, and has told what is
 * wrong. */
int cli_words_encode(const cli_words_t *words, const cli_t *cli,
                     const char *text, size_t n, int32_t **ids, size_t *n_ids);
/* The ids that a text lists, likewise. */
int cli_ids_read(const cli_t *cli, const char *text, size_t n, int32_t **ids,
                 size_t *n_ids);
/* The text of ids, to be freed; NULL without memory. */
char *cli_words_decode(const cli_words_t *words, const int32_t *ids,
                       size_t n_ids, size_t *n);

#endif

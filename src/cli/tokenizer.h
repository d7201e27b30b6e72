#ifndef TNK_CLI_TOKENIZER_H
#define TNK_CLI_TOKENIZER_H

#include "tnk/tokenizers.h"

/* Which tokenizer a command is to use: a file, or a model of a hub. */
typedef struct {
  const char *path;
  const char *model;
  const char *revision;
} cli_tokenizer_t;

#define CLI_TOKENIZER_HELP                                                     \
  "  --tokenizer PATH  tokenizer.json, tiktoken.model or a SentencePiece\n"    \
  "                    model, or the directory it is in\n"                     \
  "  --model NAME      the tokenizer of this model, from the cache of\n"       \
  "                    Hugging Face's library or downloaded to it; see its\n"  \
  "                    HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_ENDPOINT and\n"     \
  "                    HF_HUB_OFFLINE\n"                                       \
  "  --revision REV    a commit, branch or tag of it\n"

/* Where the value of a switch belongs, or NULL when it is none of these. */
const char **cli_tokenizer_switch(cli_tokenizer_t *which, const char *arg);
/* What is wrong with the switches together, or NULL. */
const char *cli_tokenizer_check(const cli_tokenizer_t *which);
/* Open it. Returns one reference, or NULL with a sentence in `why`. A download
 * tells its progress on the standard error, when that is a terminal. */
tnk_tokenizer_t *cli_tokenizer_open(const cli_tokenizer_t *which, char *why,
                                    size_t n_why);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TEXT_TOKENIZER_H
#define TNK_TOOLS_TNK_TEXT_TOKENIZER_H

#include "tnk/tokenizers.h"
#include "tools/common/frame/cli.h"

/* The tokenizer of a command: a file, or a model of a hub. */
typedef struct {
  const char *path;
  const char *model;
  const char *revision;
} cli_tokenizer_t;

/* The options for it, for the table of a command; `which` is static. */
#define CLI_TOKENIZER_OPTIONS(which)                                           \
  {.name = "tokenizer",                                                        \
   .value = "PATH",                                                            \
   .text = &(which).path,                                                      \
   .offer = CLI_OFFER_FILES,                                                   \
   .help = "tokenizer.json, tiktoken.model or a SentencePiece model, or the "  \
           "directory it is in."},                                             \
      {.name = "model",                                                        \
       .value = "NAME",                                                        \
       .text = &(which).model,                                                 \
       .help = "The tokenizer of this model, from the cache of Hugging "       \
               "Face's library or downloaded to it; see its HF_HOME, "         \
               "HF_HUB_CACHE, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE."},     \
  {                                                                            \
    .name = "revision", .value = "REV", .text = &(which).revision,             \
    .help = "A commit, branch or tag of it."                                   \
  }

/* Returns the error in the combination of options, or NULL. */
const char *cli_tokenizer_check(const cli_tokenizer_t *which);
/* Open the tokenizer. Returns one reference, or NULL with a message in `why`
 * and the exit status in *status. A download shows its progress on standard
 * error if that is a terminal. */
tnk_tokenizer_t *cli_tokenizer_open(const cli_t *cli,
                                    const cli_tokenizer_t *which, int *status,
                                    char *why, size_t n_why);
/* Report that it could not be opened. The error of a hub is reported as an
 * error of the tokenizer, so that it is not mistaken for an error of the
 * service. `hint` may be NULL. Returns the exit status. */
int cli_tokenizer_failed(const cli_t *cli, const cli_tokenizer_t *which,
                         int status, const char *why, const char *hint);

#endif

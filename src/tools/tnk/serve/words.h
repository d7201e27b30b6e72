/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_SERVE_WORDS_H
#define TNK_TOOLS_TNK_SERVE_WORDS_H

#include "tnk/chat.h"
#include "tnk/gateway.h"
#include "tools/tnk/text/tokenizer.h"

/* The tokenizer and the chat template with which a command opens a gateway. */

enum { CLI_MAX_VARIABLES = 64 };

/* The options. */
typedef struct {
  const char *model; /* base model */
  cli_tokenizer_t which;
  const char *template_; /* NULL: the model's own; "plain": roles as words */
  const char *renderer;
  cli_texts_t sets; /* NAME=JSON */
} cli_words_args_t;

/* The options for it except the model, for the table of a command; `args` is
 * static. */
#define CLI_WORDS_OPTIONS(args)                                                \
  {.name = "tokenizer",                                                        \
   .value = "PATH",                                                            \
   .text = &(args).which.path,                                                 \
   .offer = CLI_OFFER_FILES,                                                   \
   .help = "tokenizer.json, tiktoken.model or a SentencePiece model, or the "  \
           "directory it is in, instead of the model's own."},                 \
      {.name = "template",                                                     \
       .value = "PATH",                                                        \
       .text = &(args).template_,                                              \
       .offer = CLI_OFFER_FILES,                                               \
       .help = "chat_template.jinja or tokenizer_config.json, or the "         \
               "directory they are in, instead of the model's own; "           \
               "\"plain\": roles as words."},                                  \
      {.name = "renderer",                                                     \
       .value = "NAME",                                                        \
       .text = &(args).renderer,                                               \
       .help = "Renderer of the cookbook, such as qwen3. It selects the "      \
               "parser of answers and variables of the template. Without it "  \
               "everything is plain content."},                                \
  {                                                                            \
    .name = "set", .value = "NAME=JSON", .texts = &(args).sets,                \
    .help = "Set a variable of the template; may be repeated."                 \
  }

typedef struct {
  tnk_tokenizer_t *tokenizer; /* NULL: bytes */
  tnk_chat_template_t *template_;
  tnk_pair_t variables[CLI_MAX_VARIABLES];
  char names[CLI_MAX_VARIABLES][64];
  size_t n_variables;
  tnk_chat_family_t family;
} cli_words_t;

/* Returns the error in the combination of options, or NULL. */
const char *cli_words_check(const cli_words_args_t *args);
/* Returns the exit status; errors have been reported. Close the words in any
 * case, after the gateway. */
int cli_words_open(cli_words_t *words, const cli_t *cli,
                   const cli_words_args_t *args);
/* Set the members of a gateway's options. */
void cli_words_give(const cli_words_t *words, tnk_gateway_options_t *options);
void cli_words_close(cli_words_t *words);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TEXT_CHATS_H
#define TNK_TOOLS_TNK_TEXT_CHATS_H

#include <stdio.h>

#include "tnk/batch.h"
#include "tnk/chat.h"
#include "tnk/sampling.h"
#include "tools/tnk/text/tokenizer.h"

/* The options that say how conversations become examples. */
typedef struct {
  cli_tokenizer_t which;
  const char *template_;
  const char *renderer;
  int train_on; /* index in cli_chats_trains */
  int shape;    /* index in cli_chats_shapes */
  cli_texts_t roles;
  cli_texts_t variables;
  int by_parts;
  int each_answer;
} cli_chats_args_t;

extern const char *const cli_chats_trains[];
extern const char *const cli_chats_shapes[];

/* The options for it except the tokenizer, for the table of a command; `args`
 * is static. */
#define CLI_CHATS_OPTIONS(args)                                                \
  {.name = "template",                                                         \
   .value = "PATH",                                                            \
   .text = &(args).template_,                                                  \
   .offer = CLI_OFFER_FILES,                                                   \
   .help = "chat_template.jinja or tokenizer_config.json, or their "           \
           "directory. Default: the directory of the tokenizer."},             \
      {.name = "renderer",                                                     \
       .value = "NAME",                                                        \
       .text = &(args).renderer,                                               \
       .help = "Renderer of Tinker's cookbook, which sets template variables " \
               "and stop strings."},                                           \
      {.name = "set",                                                          \
       .value = "NAME=JSON",                                                   \
       .texts = &(args).variables,                                             \
       .help = "Set a variable of the template; may be repeated."},            \
      {.name = "shape",                                                        \
       .value = "API",                                                         \
       .choice = &(args).shape,                                                \
       .choices = cli_chats_shapes,                                            \
       .help = "Format of the messages: openai, responses, anthropic, or "     \
               "template, which passes them unchanged (openai)."},             \
      {.name = "train-on",                                                     \
       .value = "WHAT",                                                        \
       .choice = &(args).train_on,                                             \
       .choices = cli_chats_trains,                                            \
       .help = "What is trained: last-answer, all-answers, roles, everything " \
               "(last-answer)."},                                              \
      {.name = "role",                                                         \
       .value = "NAME",                                                        \
       .texts = &(args).roles,                                                 \
       .help = "Role whose messages are trained; may be repeated."},           \
      {.name = "each-answer",                                                  \
       .flag = &(args).each_answer,                                            \
       .help = "Make one example for each answer, with the messages up to "    \
               "it. This also works with templates that write earlier "        \
               "answers differently, which all-answers rejects."},             \
  {                                                                            \
    .name = "by-parts", .flag = &(args).by_parts,                              \
    .help = "Tokenize pieces of the text separately, as the cookbook does."    \
  }

/* Ids of tnk_chat_bytes_plugin(). */
enum { CLI_CHATS_BYTES = 258 };

/* Returns the error in the combination of these options, or NULL. */
const char *cli_chats_check(const cli_chats_args_t *args);

/* An example, valid during the call that receives it. The batch contains only
 * this example. */
typedef struct {
  const tnk_batch_t *batch;
  const int32_t *ids;
  const float *weights;
  size_t n;
  size_t part; /* of a pair: CLI_ROW_CHOSEN, then CLI_ROW_REJECTED; else 0 */
} cli_example_t;

/* The length of an example up to its last trained token, because nothing
 * depends on later ones, and after a cut to `max` tokens, which adds 1 to
 * *n_cut; 0 for `max` means no limit. 0 if nothing is then trained. */
size_t cli_chats_cut(const cli_example_t *example, size_t max, size_t *n_cut);

/* Converts the conversations of files to examples. Rows with a prompt and a
 * completion are conversations too, see row.h. Call cli_chats_open(), then
 * cli_chats_read() for each file, then cli_chats_close(). */
typedef struct {
  const cli_t *cli;
  const cli_chats_args_t *args;
  /* Receives each example, which was checked as a training call would.
   * TNK_EINVAL rejects its conversation, with the reason in `error`; other
   * errors end the reading. */
  int (*give)(void *user, const cli_example_t *example);
  /* Takes a line that is neither a conversation nor a completion; or NULL.
   * Returns TNK_OK; TNK_EPROTO if the line is of no other kind either;
   * TNK_EINVAL with the reason in `why`; other errors end the reading. */
  int (*other)(void *user, const char *line, size_t n, char *why, size_t n_why);
  void *user;
  int has_pairs; /* each line is a preference pair, with two examples */
  /* Each line has a prompt, see row.h. Its example has no batch and no
   * weights. */
  int has_prompts;
  int has_others; /* each line is for `other`; nothing need be opened */
  int64_t now_s;  /* time for templates that write the date; 0: local time */
  tnk_tokenizer_t *tok; /* NULL: bytes */
  tnk_chat_template_t *template_;
  const tnk_chat_renderer_t *renderer;
  tnk_chat_tokens_t *tokens;
  tnk_chat_tokenizer_t tokenizer;
  tnk_chat_options_t options;
  const char *file; /* the current one, and its line */
  size_t line;
  size_t part;          /* of the current pair */
  size_t n_good, n_bad; /* conversations, or pairs */
  tnk_chat_error_t error;
} cli_chats_t;

/* Open the tokenizer and the template; the caller has set the first members.
 * Returns the exit status; errors have been reported. */
int cli_chats_open(cli_chats_t *chats);
/* Read a file, one conversation per line. Lines that cannot be used are
 * reported and counted. Returns TNK_OK, or the error that ended the reading. */
int cli_chats_read(cli_chats_t *chats, FILE *in, const char *file);
/* The ids of a prompt with one message of the user and the beginning of the
 * answer, valid until the next call. Returns TNK_OK, or an error with its text
 * in `error`. */
int cli_chats_prompt(cli_chats_t *chats, const char *text, const int32_t **ids,
                     size_t *n);
/* Set the stop strings of the template, which live as long as it does. */
void cli_chats_stops(const cli_chats_t *chats, tnk_sampling_params_t *params);
/* The number of token ids of its open tokenizer. */
size_t cli_chats_n_vocab(const cli_chats_t *chats);
void cli_chats_close(cli_chats_t *chats);

#endif

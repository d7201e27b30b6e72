#ifndef TNK_CLI_TOKENS_H
#define TNK_CLI_TOKENS_H

/* Run `tnk tokenize` and `tnk detokenize`; the arguments are those behind the
 * command's name. They return the exit status. */
int cli_tokenize(int argc, char *const *argv);
int cli_detokenize(int argc, char *const *argv);

#endif

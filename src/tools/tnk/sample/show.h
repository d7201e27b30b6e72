#ifndef TNK_TOOLS_TNK_SAMPLE_SHOW_H
#define TNK_TOOLS_TNK_SAMPLE_SHOW_H

#include "tnk/promise.h"
#include "tools/tnk/out/json.h"
#include "tools/tnk/sample/words.h"

/* Print a sample, below a line with its number if there are several (0: only
 * one). Returns the exit status; errors have been reported. */
int cli_sample_print(const cli_t *cli, const cli_words_t *words,
                     const tnk_samples_t *samples, size_t number);
/* Write it as an object. Returns 0 without memory. */
int cli_sample_put(cli_json_t *json, const cli_words_t *words,
                   const tnk_samples_t *samples);
/* Write the log-probabilities of tokens as an array, or null. */
void cli_sample_put_logprobs(cli_json_t *json, const char *key,
                             const float *logprobs, size_t n);

#endif

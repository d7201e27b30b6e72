/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_LEARN_USE_H
#define TNK_TOOLS_TNK_LEARN_USE_H

/* Print how to use the weights that a run has saved. `served` is the folder of
 * --local, or NULL; `tokenizer` its option, or NULL. */
void learn_print_use(const char *sampler_path, const char *served,
                     const char *model, const char *tokenizer);

#endif

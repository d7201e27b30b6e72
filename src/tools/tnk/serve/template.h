#ifndef TNK_TOOLS_TNK_SERVE_TEMPLATE_H
#define TNK_TOOLS_TNK_SERVE_TEMPLATE_H

#include "tnk/chat.h"
#include "tools/tnk/text/tokenizer.h"

/* Open the chat template of a file or folder or, if `path` is NULL, of a model
 * on the hub. Returns the exit status; errors have been reported. *out receives
 * one reference. */
int cli_template_open(const cli_t *cli, const char *path, const char *model,
                      tnk_chat_template_t **out);

#endif

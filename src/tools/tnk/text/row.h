/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_TEXT_ROW_H
#define TNK_TOOLS_TNK_TEXT_ROW_H

#include <stddef.h>

/*
 * Rows of data sets as conversations. A text as prompt is a message of the
 * user, and a text as answer is a message of the assistant. Other members of a
 * row, such as "tools", stay.
 *
 *   {"prompt": text or messages, "completion": text or messages}
 *   {"prompt": text or messages, "chosen": the same, "rejected": the same}
 *   {"chosen": messages, "rejected": messages}
 *   {"comparison": {"prompt_conversation": messages, "completion_A": messages,
 *                   "completion_B": messages}, "label": "A" or "B"}
 */
enum { CLI_ROW_CHOSEN = 0, CLI_ROW_REJECTED = 1, CLI_ROW_PARTS = 2 };

/* JSON texts; free them in any case. A completion and a prompt have only the
 * first one. */
typedef struct {
  char *chats[CLI_ROW_PARTS];
} cli_row_t;

/* Read a row with a completion, or with a pair. `messages` is the name for the
 * messages in the conversations. Returns TNK_OK or TNK_ENOMEM; TNK_EPROTO if
 * the text is not a JSON object, or if a completion is wanted and the row has
 * none; TNK_EINVAL for other rows. `why` receives the reason. */
int cli_row_completion(cli_row_t *row, const char *text, size_t n,
                       const char *messages, char *why, size_t n_why);
int cli_row_pair(cli_row_t *row, const char *text, size_t n,
                 const char *messages, char *why, size_t n_why);
/* Read a prompt: a conversation without the answer at its end, or the member
 * "prompt" of a row. Returns TNK_OK, TNK_ENOMEM, or TNK_EINVAL with the reason
 * in `why`. */
int cli_row_prompt(cli_row_t *row, const char *text, size_t n,
                   const char *messages, char *why, size_t n_why);
void cli_row_free(cli_row_t *row);

#endif

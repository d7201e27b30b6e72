#ifndef TNK_TOOLS_LOCAL_BASE_DRAWN_H
#define TNK_TOOLS_LOCAL_BASE_DRAWN_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/*
 * The sample log: a file that says what was drawn, a line of JSON for each
 * sequence, for whoever has to prove what he was given:
 *
 *   {"request_id":"...","index":0,"weights":"tinker://...","prompt":[..],
 *    "tokens":[..],"logprobs":[..],"stop_reason":"stop"}
 *
 * `index` counts the sequences of a request, `weights` is null for the base. A
 * line is with the system before its result can be fetched, so that neither is
 * lost with the process. A result that nobody fetches has its line too; one
 * that was cancelled has none.
 */
typedef struct local_drawn local_drawn_t;

typedef struct {
  const char *request_id;
  uint32_t index;
  const char *weights; /* NULL: the base */
  const int32_t *prompt;
  size_t n_prompt;
  const int32_t *tokens;
  const float *logprobs; /* of the tokens */
  size_t n_tokens;
  int is_length; /* it ended for its length */
} local_drawn_line_t;

/* Open the log, to go on at its end. TNK_OK, TNK_ENOMEM or a code of libuv. */
int local_drawn_open(local_drawn_t **out, const char *path,
                     const tnk_allocator_t *alloc);
/* Write lines, all of them or the log has failed for good: TNK_OK, TNK_ENOMEM,
 * or TNK_EFILE from then on. NULL: there is no log, and nothing to do. */
int local_drawn_write(local_drawn_t *log, const local_drawn_line_t *lines,
                      size_t n);
void local_drawn_close(local_drawn_t *log);

#endif

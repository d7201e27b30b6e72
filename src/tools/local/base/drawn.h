/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_LOCAL_BASE_DRAWN_H
#define TNK_TOOLS_LOCAL_BASE_DRAWN_H

#include <stddef.h>
#include <stdint.h>

#include "tnk/common.h"

/*
 * The sample log: a file with a JSON line for each sampled sequence, as
 * evidence of what was delivered:
 *
 *   {"request_id":"...","index":0,"weights":"tinker://...","prompt":[..],
 *    "tokens":[..],"logprobs":[..],"stop_reason":"stop"}
 *
 * `index` numbers the sequences of a request; `weights` is null for the base. A
 * line is passed to the system before its result can be fetched, so that a
 * crash of the process loses neither. A result that is never fetched has a line
 * too; a canceled one has none.
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
  int is_length; /* it ended at its maximum length */
} local_drawn_line_t;

/* Open the log and append to it. Returns TNK_OK, TNK_ENOMEM or libuv's error
 * code. */
int local_drawn_open(local_drawn_t **out, const char *path,
                     const tnk_allocator_t *alloc);
/* Write all lines. Returns TNK_OK, TNK_ENOMEM, or TNK_EFILE; after TNK_EFILE
 * the log stays failed. NULL: no log, nothing is written. */
int local_drawn_write(local_drawn_t *log, const local_drawn_line_t *lines,
                      size_t n);
void local_drawn_close(local_drawn_t *log);

#endif

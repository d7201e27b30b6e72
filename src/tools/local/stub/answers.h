#ifndef TNK_TOOLS_LOCAL_STUB_ANSWERS_H
#define TNK_TOOLS_LOCAL_STUB_ANSWERS_H

#include "lib/base/arena.h"

/*
 * The contents of samples, read from lines. Each line is a JSON string, whose
 * bytes become tokens, or a list of token ids. Blank lines are ignored.
 */
enum { LOCAL_STUB_MAX_ANSWERS = 65536, LOCAL_STUB_MAX_TOKENS = 65536 };

typedef struct {
  const int32_t *tokens;
  size_t n;
} local_stub_answer_t;

typedef struct {
  tnk__arena_t arena;
  local_stub_answer_t *list;
  size_t n; /* at least one after reading */
} local_stub_answers_t;

/* Converts a text to at most `max` tokens. Returns their number, or a negative
 * code of tnk/error.h. */
typedef int64_t (*local_stub_encode_fn)(void *user, const char *text, size_t n,
                                        int32_t *tokens, size_t max);

/* Parse the answers. Returns TNK_OK, TNK_EINVAL with a message in `why` that
 * names the line, or TNK_ENOMEM. If `encode` is NULL, bytes are tokens. */
int local_stub_answers_read(local_stub_answers_t *out, const char *text,
                            size_t n, const tnk_allocator_t *alloc,
                            local_stub_encode_fn encode, void *user, char *why,
                            size_t n_why);
/* Free the answers; allowed after a failure too. */
void local_stub_answers_free(local_stub_answers_t *answers);

#endif

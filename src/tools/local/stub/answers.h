#ifndef TNK_TOOLS_LOCAL_STUB_ANSWERS_H
#define TNK_TOOLS_LOCAL_STUB_ANSWERS_H

#include "lib/base/arena.h"

/*
 * What samples are to say, read from lines: each is a text in JSON, whose bytes
 * are its tokens, or a list of token ids, which is taken as it is. Blank lines
 * do not count.
 */
enum { LOCAL_STUB_MAX_ANSWERS = 65536, LOCAL_STUB_MAX_TOKENS = 65536 };

typedef struct {
  const int32_t *tokens;
  size_t n;
} local_stub_answer_t;

typedef struct {
  tnk__arena_t arena;
  local_stub_answer_t *list;
  size_t n; /* at least one once they are read */
} local_stub_answers_t;

/* Turns a text into tokens, at most `max` of them: their number, or a negative
 * code of tnk/error.h. */
typedef int64_t (*local_stub_encode_fn)(void *user, const char *text, size_t n,
                                        int32_t *tokens, size_t max);

/* Read them. TNK_OK; TNK_EINVAL with a sentence in `why` that names the line;
 * TNK_ENOMEM. NULL for `encode`: bytes are tokens. */
int local_stub_answers_read(local_stub_answers_t *out, const char *text,
                            size_t n, const tnk_allocator_t *alloc,
                            local_stub_encode_fn encode, void *user, char *why,
                            size_t n_why);
/* Free them; legal after a failure too. */
void local_stub_answers_free(local_stub_answers_t *answers);

#endif

#include "tools/local/call/prompt.h"

#include <string.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/local/lm/check.h"

static const json_t *chunk_tokens(const json_t *chunk) {
  const char *type = tnk__json_str(chunk, "type");

  if (type != NULL && strcmp(type, "encoded_text") != 0)
    return NULL;
  return tnk__json_arr(chunk, "tokens");
}

int local_tokens_json(tnk__arena_t *arena, const json_t *input,
                      const int32_t **out, size_t *n, tnk__lm_why_t *why) {
  const json_t *chunks = tnk__json_arr(input, "chunks");
  size_t total = 0;
  int32_t *tokens;

  if (chunks == NULL)
    return tnk__lm_refuse(why, TNK_EINVAL, "\"chunks\" is missing");
  for (size_t i = 0; i < json_array_size(chunks); i++) {
    const json_t *list = chunk_tokens(json_array_get(chunks, i));

    if (list == NULL)
      return tnk__lm_refuse(why, TNK_EINVAL,
                            "chunk %zu: %s reads text chunks only", i,
                            TNK__LM_NAME);
    total += json_array_size(list);
  }
  tokens = tnk__arena_calloc(arena, total, sizeof(*tokens));
  if (tokens == NULL)
    return TNK_ENOMEM;
  *out = tokens;
  *n = total;
  for (size_t i = 0; i < json_array_size(chunks); i++) {
    const json_t *list = chunk_tokens(json_array_get(chunks, i));

    for (size_t k = 0; k < json_array_size(list); k++) {
      const json_t *token = json_array_get(list, k);
      json_int_t id = json_integer_value(token);

      if (!json_is_integer(token) || id < INT32_MIN || id > INT32_MAX)
        return tnk__lm_refuse(why, TNK_EINVAL,
                              "chunk %zu: token %zu is no token", i, k);
      *tokens++ = (int32_t)id;
    }
  }
  return TNK_OK;
}

#include "tools/local/stub/answers.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* Limit for all answers together. */
#define MAX_BYTES ((size_t)256 << 20)

typedef struct {
  local_stub_answers_t *out;
  local_stub_encode_fn encode;
  void *user;
  int32_t *scratch; /* LOCAL_STUB_MAX_TOKENS */
  size_t n;         /* elements in it */
  const char *why;
} reader_t;

static int refuse(reader_t *r, const char *why) {
  r->why = why;
  return TNK_EINVAL;
}

static int read_text(reader_t *r, const json_t *line) {
  const char *text = json_string_value(line);
  size_t n = json_string_length(line);
  int64_t got;

  if (r->encode != NULL) {
    got = r->encode(r->user, text, n, r->scratch, LOCAL_STUB_MAX_TOKENS);
    if (got < 0)
      return got == TNK_ENOMEM ? TNK_ENOMEM
                               : refuse(r, "the tokenizer cannot encode it");
    r->n = (size_t)got;
    return TNK_OK;
  }
  if (n > LOCAL_STUB_MAX_TOKENS)
    return refuse(r, "it is longer than 65536 tokens");
  for (size_t i = 0; i < n; i++)
    r->scratch[i] = (unsigned char)text[i];
  r->n = n;
  return TNK_OK;
}

static int read_ids(reader_t *r, const json_t *line) {
  size_t n = json_array_size(line);

  if (n > LOCAL_STUB_MAX_TOKENS)
    return refuse(r, "it is longer than 65536 tokens");
  for (size_t i = 0; i < n; i++) {
    const json_t *id = json_array_get(line, i);

    if (!json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) > INT32_MAX)
      return refuse(r, "a token id is a whole number from 0 to 2147483647");
    r->scratch[i] = (int32_t)json_integer_value(id);
  }
  r->n = n;
  return TNK_OK;
}

static int read_line(reader_t *r, const char *line, size_t n) {
  local_stub_answers_t *out = r->out;
  local_stub_answer_t *answer = &out->list[out->n];
  json_t *json = NULL;
  int err = tnk__json_parse(&json, line, n);

  if (err == TNK_ENOMEM)
    return err;
  if (err != TNK_OK || !(json_is_string(json) || json_is_array(json)))
    err = refuse(r, "an answer is a text in JSON or a list of token ids");
  else
    err = json_is_string(json) ? read_text(r, json) : read_ids(r, json);
  json_decref(json);
  if (err != TNK_OK)
    return err;
  answer->n = r->n;
  answer->tokens = tnk__arena_copy(&out->arena, r->scratch,
                                   (r->n + 1) * sizeof(*r->scratch));
  if (answer->tokens == NULL)
    return TNK_ENOMEM;
  out->n++;
  return TNK_OK;
}

static int is_blank(const char *line, size_t n) {
  while (n > 0 && strchr(" \t\r", line[n - 1]) != NULL)
    n--;
  return n == 0;
}

static int read_lines(reader_t *r, const char *text, size_t n, size_t *line) {
  const char *end = text + n;
  int err = TNK_OK;

  for (*line = 1; text < end && err == TNK_OK; ++*line) {
    const char *stop = memchr(text, '\n', (size_t)(end - text));
    size_t length = (size_t)((stop != NULL ? stop : end) - text);

    if (!is_blank(text, length))
      err = r->out->n == LOCAL_STUB_MAX_ANSWERS
                ? refuse(r, "there are more than 65536 answers")
                : read_line(r, text, length);
    text += length + 1;
  }
  if (err == TNK_OK && r->out->n == 0)
    return refuse(r, "there is no answer");
  return err;
}

int local_stub_answers_read(local_stub_answers_t *out, const char *text,
                            size_t n, const tnk_allocator_t *alloc,
                            local_stub_encode_fn encode, void *user, char *why,
                            size_t n_why) {
  reader_t r = {.out = out, .encode = encode, .user = user};
  size_t line = 0;
  int err = TNK_ENOMEM;

  *out = (local_stub_answers_t){0};
  tnk__arena_init(&out->arena, alloc, MAX_BYTES);
  out->list = tnk__arena_calloc(&out->arena, LOCAL_STUB_MAX_ANSWERS,
                                sizeof(*out->list));
  r.scratch = tnk__calloc(alloc, LOCAL_STUB_MAX_TOKENS + 1, sizeof(int32_t));
  if (out->list != NULL && r.scratch != NULL)
    err = read_lines(&r, text, n, &line);
  tnk__free(alloc, r.scratch);
  if (err == TNK_EINVAL)
    snprintf(why, n_why, "line %zu: %s", line > 1 ? line - 1 : 1, r.why);
  return err;
}

void local_stub_answers_free(local_stub_answers_t *answers) {
  tnk__arena_deinit(&answers->arena);
  *answers = (local_stub_answers_t){0};
}

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/local/stub/state.h"

/* Selects the tokens of a sample, and writes the log. */

local_stub_drawn_t local_stub_drawn(const local_stub_t *stub, uint64_t turn,
                                    uint64_t n_tokens) {
  const local_stub_answers_t *answers = stub->options.answers;
  local_stub_drawn_t drawn = {stub->tokens, (size_t)n_tokens, 1};

  if (drawn.n > LOCAL_STUB_MAX_TOKENS)
    drawn.n = LOCAL_STUB_MAX_TOKENS;
  if (answers == NULL)
    return drawn;
  drawn.tokens = answers->list[turn % answers->n].tokens;
  drawn.is_length = answers->list[turn % answers->n].n > drawn.n;
  if (!drawn.is_length)
    drawn.n = answers->list[turn % answers->n].n;
  return drawn;
}

/* The ids in the text chunks of a prompt. Returns TNK_OK, TNK_EPROTO or
 * TNK_ENOMEM. */
static int read_prompt(const tnk__srv_req_t *req, tnk__buf_t *out) {
  json_t *root = NULL;
  const json_t *chunks;
  int err = tnk__json_parse_object(&root, req->body.data, req->body.len);

  if (err != TNK_OK)
    return err;
  chunks = tnk__json_arr(tnk__json_obj(root, "prompt"), "chunks");
  for (size_t i = 0; i < json_array_size(chunks); i++) {
    const json_t *tokens = tnk__json_arr(json_array_get(chunks, i), "tokens");

    for (size_t k = 0; k < json_array_size(tokens); k++) {
      int32_t id = (int32_t)json_integer_value(json_array_get(tokens, k));

      tnk__buf_append(out, &id, sizeof(id));
    }
  }
  json_decref(root);
  return out->err;
}

int local_stub_log(const local_stub_t *stub, const tnk__srv_req_t *req,
                   const char *id, uint64_t turn, uint64_t n,
                   uint64_t n_tokens) {
  local_drawn_line_t line = {.request_id = id, .logprobs = stub->logprobs};
  tnk__buf_t prompt;
  int err;

  if (stub->options.sample_log == NULL)
    return TNK_OK;
  tnk__buf_init(&prompt, stub->http.config.alloc, (size_t)1 << 30);
  err = read_prompt(req, &prompt);
  line.prompt = (const int32_t *)(const void *)prompt.data;
  line.n_prompt = prompt.len / sizeof(*line.prompt);
  for (uint64_t i = 0; i < n && err == TNK_OK; i++) {
    const local_stub_drawn_t drawn = local_stub_drawn(stub, turn + i, n_tokens);

    line.index = (uint32_t)i;
    line.tokens = drawn.tokens;
    line.n_tokens = drawn.n;
    line.is_length = drawn.is_length;
    err = local_drawn_write(stub->options.sample_log, &line, 1);
  }
  tnk__buf_deinit(&prompt);
  return err;
}

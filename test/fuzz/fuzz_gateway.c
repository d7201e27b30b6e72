/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "gateway/record/key.h"
#include "gateway/record/line.h"
#include "gateway/wire/ask.h"
#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/chat.h"
#include "tnk/error.h"

/* The body of a request to the gateway, whose API the first byte says (or
 * FUZZ_API does, by its name), with its conversation; or a line of the record.
 */

enum { RECORD = TNK__GW_MESSAGE + 1 };

static const char *const apis[] = {[TNK__GW_CHAT] = "chat",
                                   [TNK__GW_COMPLETION] = "completions",
                                   [TNK__GW_RESPONSE] = "responses",
                                   [TNK__GW_MESSAGE] = "messages",
                                   [RECORD] = "record",
                                   NULL};

/* What is read as a conversation is one that a template can be given. */
static void check_chat(tnk__gw_api_t api, const uint8_t *data, size_t size) {
  static const tnk_chat_shape_t shapes[] = {
      [TNK__GW_CHAT] = TNK_CHAT_OPENAI,
      [TNK__GW_RESPONSE] = TNK_CHAT_RESPONSES,
      [TNK__GW_MESSAGE] = TNK_CHAT_ANTHROPIC};
  tnk_chat_t *chat = tnk_chat_new(NULL);
  tnk_chat_error_t error = {0};
  char *text;
  size_t n;

  FUZZ_CHECK(chat != NULL);
  if (tnk_chat_read(chat, shapes[api], (const char *)data, size, &error) ==
      TNK_OK) {
    FUZZ_CHECK(tnk_chat_write(chat, TNK_CHAT_TEMPLATE, &text, &n, &error) ==
               TNK_OK);
    tnk_chat_free_text(chat, text);
  } else {
    FUZZ_CHECK(error.code < 0 && error.text[0] != '\0');
  }
  tnk_chat_free(chat);
}

static void check_ask(tnk__gw_api_t api, const uint8_t *data, size_t size) {
  tnk__gw_fault_t fault = {0};
  tnk__gw_ask_t ask;
  uint64_t key = 0;
  tnk__buf_t out;

  tnk__buf_init(&out, tnk__allocator_default(), 65536);
  if (tnk__gw_ask_read(&ask, api, data, size, &fault) != 0) {
    FUZZ_CHECK(fault.status >= 400 && fault.text[0] != '\0');
    FUZZ_CHECK(tnk__gw_fault_write(&fault, api, &out) == TNK_OK);
  } else {
    const json_t *messages = json_object_get(ask.body, "messages");

    FUZZ_CHECK(ask.n >= 1 && ask.n <= TNK__GW_MAX_CHOICES);
    FUZZ_CHECK(ask.n_stops <= TNK__GW_MAX_STOPS);
    FUZZ_CHECK(!(ask.top_p > 1) && ask.n_top <= TNK__GW_MAX_TOP);
    for (size_t i = 0; i < json_array_size(messages); i++)
      key = tnk__gw_key_add(key, json_array_get(messages, i));
    if (api != TNK__GW_COMPLETION)
      check_chat(api, data, size);
  }
  tnk__gw_ask_drop(&ask);
  tnk__buf_deinit(&out);
}

static void check_line(const uint8_t *data, size_t size) {
  tnk__gw_line_t line;
  uint64_t number;
  double reward;
  json_t *json;

  if (tnk__json_parse_object(&json, data, size) != TNK_OK)
    return;
  if (tnk__gw_line_read(json, &line) == 0) {
    FUZZ_CHECK(line.number > 0 && line.session != NULL);
    if (line.n_prompt < 4096) {
      int32_t ids[4096];

      if (tnk__gw_line_ids(json, "prompt", ids, line.n_prompt) == 0)
        for (size_t i = 0; i < line.n_prompt; i++)
          FUZZ_CHECK(ids[i] >= 0);
    }
  }
  if (tnk__gw_line_reward_read(json, &number, &reward) == 0)
    FUZZ_CHECK(number > 0 && !isnan(reward));
  json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  unsigned api;

  if (size == 0)
    return 0;
  api = fuzz_pick("FUZZ_API", apis, (unsigned)data[0] - '0');
  if (api == RECORD)
    check_line(data + 1, size - 1);
  else if (apis[api] != NULL)
    check_ask((tnk__gw_api_t)api, data + 1, size - 1);
  return 0;
}

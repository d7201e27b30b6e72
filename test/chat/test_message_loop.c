/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chat/message/message.h"
#include "lib/base/buf.h"
#include "support/test.h"

/* Conversations made at random, in each shape: there and back nothing is lost,
 * and what two shapes can both say goes through the other. TNK_CHAT_LOOPS says
 * how many of each, 200 by default. */

typedef struct {
  tnk__heap_t heap;
  uint64_t state;
  unsigned n_calls; /* of the latest answer */
  unsigned n_ids;
} made_t;

static unsigned up_to(made_t *made, unsigned n) {
  return (unsigned)(test_random(&made->state) % n);
}

static tnk__value_t word(const char *text) {
  return tnk__value_text(text, strlen(text));
}

static tnk__value_t some_text(made_t *made) {
  static const char *const texts[] = {"",
                                      "a",
                                      "Hello there.",
                                      "line\nline\n",
                                      "\xc3\xa9\xf0\x9f\x99\x82",
                                      "\"\\",
                                      "<think>x\n",
                                      " ",
                                      "{\"a\": 1}"};

  return word(texts[up_to(made, sizeof(texts) / sizeof(texts[0]))]);
}

static tnk__value_t dict(made_t *made, const char *type) {
  tnk__value_t out = tnk__value_dict(&made->heap);

  if (type != NULL)
    tnk__value_set(&made->heap, out, "type", word(type));
  return out;
}

static void set(made_t *made, tnk__value_t to, const char *name,
                tnk__value_t value) {
  tnk__value_set(&made->heap, to, name, value);
}

/* A member that no reader knows, sometimes. */
static tnk__value_t odd(made_t *made, tnk__value_t to) {
  if (up_to(made, 6) == 0)
    set(made, to, "cache_control", dict(made, "ephemeral"));
  if (up_to(made, 9) == 0)
    set(made, to, "id", some_text(made));
  return to;
}

static tnk__value_t id_of(made_t *made, unsigned number) {
  char id[16];

  (void)snprintf(id, sizeof(id), "c%u", number);
  return tnk__value_copy_text(&made->heap, id, strlen(id));
}

static tnk__value_t some_arguments(made_t *made) {
  tnk__value_t out = tnk__value_dict(&made->heap);

  if (up_to(made, 3) > 0)
    set(made, out, "a", some_text(made));
  if (up_to(made, 3) > 0)
    set(made, out, "b", tnk__value_float(2.5));
  if (up_to(made, 3) > 0)
    set(made, out, "c", dict(made, "x"));
  return out;
}

static tnk__value_t as_text(made_t *made, tnk__value_t value) {
  tnk__value_json_t how = {.is_compact = (int)up_to(made, 2)};
  tnk__value_t out;
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 1 << 16);
  CHECK_INT(tnk__value_to_json(&buf, value, &how), TNK_OK);
  out = tnk__value_copy_text(&made->heap, (char *)buf.data, buf.len);
  tnk__buf_deinit(&buf);
  return out;
}

/* ---- Parts and blocks, by shape ---- */

static tnk__value_t some_image(made_t *made, tnk_chat_shape_t shape) {
  tnk__value_t url =
      word(up_to(made, 2) ? "https://x/y.png" : "data:image/png;base64,AAEC");
  tnk__value_t part, source;

  if (shape == TNK_CHAT_RESPONSES) {
    part = dict(made, "input_image");
    set(made, part, "image_url", url);
    return odd(made, part);
  }
  if (shape == TNK_CHAT_OPENAI) {
    part = dict(made, "image_url");
    source = tnk__value_dict(&made->heap);
    set(made, source, "url", url);
    set(made, part, "image_url", source);
    return odd(made, part);
  }
  part = dict(made, "image");
  source = dict(made, up_to(made, 2) ? "url" : "base64");
  if (tnk__value_is(tnk__value_get(source, "type"), "url")) {
    set(made, source, "url", url);
  } else {
    set(made, source, "media_type", word("image/webp"));
    set(made, source, "data", word("AAEC"));
  }
  set(made, part, "source", source);
  return odd(made, part);
}

static tnk__value_t some_content(made_t *made, tnk_chat_shape_t shape,
                                 int is_answer, int has_images) {
  tnk__value_t list = tnk__value_list(&made->heap);
  unsigned n = up_to(made, 4);

  if (up_to(made, 2))
    return some_text(made);
  for (unsigned i = 0; i < n; i++) {
    tnk__value_t part;

    if (has_images && up_to(made, 3) == 0) {
      part = some_image(made, shape);
    } else {
      part = dict(made, shape != TNK_CHAT_RESPONSES ? "text"
                        : is_answer                 ? "output_text"
                                                    : "input_text");
      set(made, part, "text", some_text(made));
      odd(made, part);
    }
    tnk__value_append(&made->heap, list, part);
  }
  return list;
}

/* ---- OpenAI ---- */

static void add_openai(made_t *made, tnk__value_t list) {
  static const char *const roles[] = {"system", "developer", "user",
                                      "assistant", "tool"};
  unsigned kind = up_to(made, 5), n = up_to(made, 3);
  tnk__value_t message = tnk__value_dict(&made->heap);
  tnk__value_t calls = tnk__value_list(&made->heap);

  set(made, message, "role", word(roles[kind]));
  set(made, message, "content",
      some_content(made, TNK_CHAT_OPENAI, kind == 3, kind == 2));
  if (kind == 4)
    set(made, message, "tool_call_id", id_of(made, up_to(made, 4)));
  if (up_to(made, 4) == 0)
    set(made, message, "name", word("ann"));
  if (kind == 3 && up_to(made, 3) == 0)
    set(made, message, "content", tnk__value_none());
  if (kind == 3 && up_to(made, 3) == 0)
    set(made, message, up_to(made, 3) ? "reasoning_content" : "reasoning",
        some_text(made));
  for (unsigned i = 0; kind == 3 && i < n; i++) {
    tnk__value_t call = dict(made, "function");
    tnk__value_t function = tnk__value_dict(&made->heap);

    set(made, call, "id", id_of(made, made->n_ids++));
    set(made, function, "name", word("f"));
    set(made, function, "arguments",
        up_to(made, 9) ? as_text(made, some_arguments(made)) : word("{oops"));
    set(made, call, "function", function);
    tnk__value_append(&made->heap, calls, call);
  }
  if (kind == 3 && (n > 0 || up_to(made, 4) == 0))
    set(made, message, "tool_calls", calls);
  tnk__value_append(&made->heap, list, odd(made, message));
}

/* ---- Responses ---- */

static void add_responses(made_t *made, tnk__value_t list) {
  static const char *const types[] = {"message",
                                      "message",
                                      "reasoning",
                                      "function_call",
                                      "function_call_output",
                                      NULL};
  static const char *const roles[] = {"user", "system", "developer",
                                      "assistant"};
  unsigned kind = up_to(made, 6), role = up_to(made, 4);
  tnk__value_t item = dict(made, types[kind]), part;
  tnk__value_t parts = tnk__value_list(&made->heap);

  if (kind < 2 || kind == 5) {
    set(made, item, "role", word(roles[role]));
    set(made, item, "content",
        some_content(made, TNK_CHAT_RESPONSES, role == 3, role == 0));
  } else if (kind == 2) {
    part = dict(made, up_to(made, 2) ? "reasoning_text" : "summary_text");
    set(made, part, "text", some_text(made));
    tnk__value_append(&made->heap, parts, part);
    set(made, item, "summary", tnk__value_list(&made->heap));
    set(made, item, up_to(made, 2) ? "content" : "summary", parts);
  } else {
    set(made, item, "call_id", id_of(made, up_to(made, 3)));
    set(made, item, kind == 3 ? "name" : "output", word("f"));
    if (kind == 3)
      set(made, item, "arguments", as_text(made, some_arguments(made)));
  }
  tnk__value_append(&made->heap, list, odd(made, item));
}

/* ---- Anthropic ---- */

static tnk__value_t some_block(made_t *made, int is_answer) {
  unsigned kind = up_to(made, 4);
  tnk__value_t block;

  if (!is_answer && kind < 2) {
    block = dict(made, "tool_result");
    set(made, block, "tool_use_id", id_of(made, up_to(made, 3)));
    if (up_to(made, 3))
      set(made, block, "content", some_content(made, TNK_CHAT_ANTHROPIC, 0, 1));
    if (up_to(made, 4) == 0)
      set(made, block, "is_error", tnk__value_bool(1));
  } else if (is_answer && kind == 0) {
    block = dict(made, "thinking");
    set(made, block, "thinking", some_text(made));
    set(made, block, "signature", up_to(made, 2) ? word("") : word("sig"));
  } else if (is_answer && kind == 1) {
    block = dict(made, "tool_use");
    set(made, block, "id", id_of(made, made->n_ids++));
    set(made, block, "name", word("f"));
    set(made, block, "input", some_arguments(made));
  } else if (is_answer && kind == 2 && up_to(made, 3) == 0) {
    block = dict(made, "redacted_thinking");
    set(made, block, "data", word("zz"));
  } else if (!is_answer && kind == 2) {
    block = some_image(made, TNK_CHAT_ANTHROPIC);
  } else {
    block = dict(made, "text");
    set(made, block, "text", some_text(made));
  }
  return odd(made, block);
}

static void add_anthropic(made_t *made, tnk__value_t list) {
  int is_answer = (int)up_to(made, 2);
  tnk__value_t message = tnk__value_dict(&made->heap);
  tnk__value_t blocks = tnk__value_list(&made->heap);
  unsigned n = up_to(made, 5);

  for (unsigned i = 0; i < n; i++)
    tnk__value_append(&made->heap, blocks, some_block(made, is_answer));
  set(made, message, "role", word(is_answer ? "assistant" : "user"));
  set(made, message, "content", up_to(made, 3) ? blocks : some_text(made));
  tnk__value_append(&made->heap, list, message);
}

/* ---- Bodies ---- */

static tnk__value_t some_tool(made_t *made, tnk_chat_shape_t shape) {
  tnk__value_t tool = tnk__value_dict(&made->heap), outer;
  tnk__value_t schema = dict(made, "object");

  set(made, tool, "name", word("f"));
  if (up_to(made, 2))
    set(made, tool, "description", some_text(made));
  if (up_to(made, 3))
    set(made, tool, shape == TNK_CHAT_ANTHROPIC ? "input_schema" : "parameters",
        schema);
  if (shape == TNK_CHAT_RESPONSES)
    set(made, tool, "type", word("function"));
  if (shape == TNK_CHAT_ANTHROPIC && up_to(made, 4) == 0)
    set(made, tool, "type", word("custom"));
  odd(made, tool);
  if (shape != TNK_CHAT_OPENAI)
    return tool;
  outer = dict(made, "function");
  set(made, outer, "function", tool);
  return outer;
}

static tnk__value_t some_body(made_t *made, tnk_chat_shape_t shape) {
  tnk__value_t body = tnk__value_dict(&made->heap);
  tnk__value_t list = tnk__value_list(&made->heap);
  tnk__value_t tools = tnk__value_list(&made->heap);
  unsigned n = up_to(made, 9), n_tools = up_to(made, 3);

  for (unsigned i = 0; i < n; i++)
    if (shape == TNK_CHAT_OPENAI)
      add_openai(made, list);
    else if (shape == TNK_CHAT_RESPONSES)
      add_responses(made, list);
    else
      add_anthropic(made, list);
  if (shape == TNK_CHAT_ANTHROPIC && up_to(made, 2))
    set(made, body, "system", some_content(made, TNK_CHAT_ANTHROPIC, 0, 0));
  if (shape == TNK_CHAT_RESPONSES && up_to(made, 2))
    set(made, body, "instructions", some_text(made));
  set(made, body, shape == TNK_CHAT_RESPONSES ? "input" : "messages",
      shape == TNK_CHAT_RESPONSES && up_to(made, 9) == 0 ? some_text(made)
                                                         : list);
  for (unsigned i = 0; i < n_tools; i++)
    tnk__value_append(&made->heap, tools, some_tool(made, shape));
  /* What is kept of tools stands in the first message. */
  if (n > 0 && n_tools > 0)
    set(made, body, "tools", tools);
  return body;
}

static unsigned n_loops(void) {
  const char *given = getenv("TNK_CHAT_LOOPS");

  return given != NULL ? (unsigned)strtoul(given, NULL, 10) : 200;
}

static void differ(tnk__value_t a, tnk__value_t b) {
  tnk__buf_t buf;

  tnk__buf_init(&buf, test_allocator(), 1 << 20);
  (void)tnk__value_to_json(&buf, a, NULL);
  (void)tnk__buf_text(&buf, "\nbecame\n");
  (void)tnk__value_to_json(&buf, b, NULL);
  test_fail(__FILE__, __LINE__, "%s", tnk__buf_cstr(&buf));
}

static void check_there_and_back(tnk_chat_shape_t shape) {
  made_t made = {.state = 7 + (uint64_t)shape};
  unsigned n = n_loops();

  for (unsigned i = 0; i < n; i++) {
    tnk__value_t body, messages, tools, back;
    tnk__why_t why = {0};

    tnk__heap_init(&made.heap, test_allocator(), 1 << 24);
    made.n_ids = 0;
    body = some_body(&made, shape);
    if (tnk__message_read(&made.heap, shape, body, &messages, &tools, &why) !=
        TNK_OK)
      test_fail(__FILE__, __LINE__, "%u: %s", i, why.text);
    CHECK_INT(
        tnk__message_write(&made.heap, shape, messages, tools, &back, &why),
        TNK_OK);
    if (!tnk__value_equal(body, back))
      differ(body, back);
    tnk__heap_deinit(&made.heap);
  }
}

TEST(openai_there_and_back) {
  check_there_and_back(TNK_CHAT_OPENAI);
}

TEST(responses_there_and_back) {
  check_there_and_back(TNK_CHAT_RESPONSES);
}

TEST(anthropic_there_and_back) {
  check_there_and_back(TNK_CHAT_ANTHROPIC);
}

/* ---- Through other shapes ---- */

/* A conversation that all shapes can say. */
static tnk__value_t some_messages(made_t *made) {
  tnk__value_t list = tnk__value_list(&made->heap);
  unsigned n = 1 + up_to(made, 5), n_results = 0;

  if (up_to(made, 2)) {
    tnk__value_t message = tnk__value_dict(&made->heap);

    set(made, message, "role", word("system"));
    set(made, message, "content", word("Be brief."));
    tnk__value_append(&made->heap, list, message);
  }
  for (unsigned i = 0; i < n || n_results > 0; i++) {
    tnk__value_t message = tnk__value_dict(&made->heap);
    tnk__value_t calls = tnk__value_list(&made->heap);
    unsigned n_calls = up_to(made, 3);

    if (n_results > 0) {
      set(made, message, "role", word("tool"));
      set(made, message, "content", some_text(made));
      set(made, message, "tool_call_id",
          id_of(made, made->n_ids - n_results--));
    } else if (i % 2 == 0) {
      set(made, message, "role", word("user"));
      set(made, message, "content", some_text(made));
    } else {
      set(made, message, "role", word("assistant"));
      set(made, message, "content",
          n_calls > 0 && up_to(made, 2) ? word("") : word("So."));
      if (up_to(made, 2))
        set(made, message, "reasoning_content", word("Hm\nHm"));
      for (unsigned k = 0; k < n_calls; k++) {
        tnk__value_t call = tnk__value_dict(&made->heap);
        tnk__value_t function = tnk__value_dict(&made->heap);

        set(made, call, "id", id_of(made, made->n_ids++));
        set(made, call, "type", word("function"));
        set(made, function, "name", word("f"));
        set(made, function, "arguments", some_arguments(made));
        set(made, call, "function", function);
        tnk__value_append(&made->heap, calls, call);
      }
      n_results = n_calls;
      if (n_calls > 0)
        set(made, message, "tool_calls", calls);
    }
    tnk__value_append(&made->heap, list, message);
  }
  return list;
}

/* The same without what is kept. */
static tnk__value_t bare(made_t *made, tnk__value_t messages) {
  tnk__value_t out = tnk__value_list(&made->heap);

  for (size_t i = 0; i < messages.as.list->n; i++) {
    tnk__value_t copy = tnk__value_dict(&made->heap);
    tnk__value_dict_t *from = messages.as.list->items[i].as.dict;

    for (size_t k = 0; k < from->n; k++)
      if (!tnk__value_is(from->entries[k].key, "extra"))
        tnk__value_put(&made->heap, copy, from->entries[k].key,
                       from->entries[k].value);
    tnk__value_append(&made->heap, out, copy);
  }
  return out;
}

TEST(a_conversation_goes_through_all_shapes) {
  made_t made = {.state = 99};
  unsigned n = n_loops();

  for (unsigned i = 0; i < n; i++) {
    tnk__value_t first, messages, tools, json;

    tnk__heap_init(&made.heap, test_allocator(), 1 << 24);
    made.n_ids = 0;
    first = messages = some_messages(&made);
    for (int shape = TNK_CHAT_TEMPLATE; shape <= TNK_CHAT_ANTHROPIC; shape++) {
      tnk__why_t why = {0};

      if (tnk__message_write(&made.heap, (tnk_chat_shape_t)shape, messages,
                             tnk__value_undefined(), &json, &why) != TNK_OK ||
          tnk__message_read(&made.heap, (tnk_chat_shape_t)shape, json,
                            &messages, &tools, &why) != TNK_OK)
        test_fail(__FILE__, __LINE__, "%u, shape %d: %s", i, shape, why.text);
      if (!tnk__value_equal(bare(&made, messages), first))
        differ(first, messages);
    }
    tnk__heap_deinit(&made.heap);
  }
}

/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/message/shapes.h"

/* The format of Anthropic's messages and their content blocks. */

/* Read an image: a URL, or a data: URL made from base64 data. */
static int read_image(tnk__io_t *io, const tnk__place_t *place,
                      tnk__value_t block, tnk__value_t parts) {
  tnk__place_t here = {place, "source", 0};
  tnk__value_t source = tnk__value_get(block, "source"), type, url, data;
  int err = tnk__io_type(io, &here, source, &type);

  if (err != TNK_OK)
    return err;
  if (tnk__value_is(type, "url")) {
    err = tnk__io_need(io, &here, source, "url", &url);
  } else if (tnk__value_is(type, "base64")) {
    err = tnk__io_need(io, &here, source, "media_type", &url);
    if (err == TNK_OK)
      err = tnk__io_need(io, &here, source, "data", &data);
    if (err == TNK_OK) {
      url = tnk__io_join(io, tnk__io_word("data:"), "", url);
      url = tnk__io_join(io, url, "", tnk__io_word(";base64,"));
      url = tnk__io_join(io, url, "", data);
    }
  } else {
    return tnk__io_no_type(io, &here, type);
  }
  if (err == TNK_OK)
    tnk__value_append(io->heap, parts, tnk__part_image(io, url));
  return err;
}

/* Read a block of content: text or an image. */
static int read_part(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t block, tnk__value_t parts) {
  tnk__value_t type, text;
  int err = tnk__io_type(io, place, block, &type);

  if (err != TNK_OK)
    return err;
  if (tnk__value_is(type, "image"))
    return read_image(io, place, block, parts);
  if (!tnk__value_is(type, "text"))
    return tnk__io_no_type(io, place, type);
  err = tnk__io_need(io, place, block, "text", &text);
  if (err == TNK_OK)
    tnk__value_append(io->heap, parts, tnk__part_text(io, text));
  return err;
}

/* Read content: a string, or blocks of text and images. */
static int read_content(tnk__io_t *io, const tnk__place_t *place,
                        tnk__value_t json, tnk__value_t *content) {
  tnk__value_t parts = tnk__value_list(io->heap);
  int err;

  *content = json;
  if (json.kind == TNK__VALUE_TEXT)
    return TNK_OK;
  *content = tnk__io_word("");
  if (json.kind == TNK__VALUE_UNDEFINED || json.kind == TNK__VALUE_NONE)
    return TNK_OK;
  err = tnk__io_list(io, place, json);
  for (size_t i = 0; err == TNK_OK && i < json.as.list->n; i++) {
    tnk__place_t at = {place, NULL, i};

    err = read_part(io, &at, json.as.list->items[i], parts);
  }
  *content = tnk__part_content(io, parts, 0);
  return err;
}

int tnk__anthropic_read_system(tnk__io_t *io, const tnk__place_t *place,
                               tnk__value_t json, tnk__value_t *message) {
  tnk__value_t content;
  int err = read_content(io, place, json, &content);

  *message = tnk__io_message(io, "system");
  tnk__io_set(io, *message, "content", content);
  return err;
}

/* ---- Messages of the user: content, and results of tools ---- */

static void add_user(tnk__io_t *io, tnk__value_t parts, tnk__value_t messages) {
  tnk__value_t message = tnk__io_message(io, "user");

  tnk__io_set(io, message, "content", tnk__part_content(io, parts, 0));
  tnk__value_append(io->heap, messages, message);
}

static int read_result(tnk__io_t *io, const tnk__place_t *place,
                       tnk__value_t block, tnk__value_t messages) {
  tnk__place_t here = {place, "content", 0};
  tnk__value_t message = tnk__io_message(io, "tool"), id, content;
  int err = tnk__io_need(io, place, block, "tool_use_id", &id);

  if (err == TNK_OK)
    err = read_content(io, &here, tnk__value_get(block, "content"), &content);
  if (err != TNK_OK)
    return err;
  tnk__io_set(io, message, "content", content);
  tnk__io_set(io, message, "tool_call_id", id);
  tnk__value_append(io->heap, messages, message);
  return TNK_OK;
}

/* Tool results become separate messages. Content between them stays
 * together. */
static int read_user(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t blocks, tnk__value_t messages) {
  tnk__value_t parts = tnk__value_list(io->heap);
  int err = tnk__io_list(io, place, blocks), is_open = 0;

  for (size_t i = 0; err == TNK_OK && i < blocks.as.list->n; i++) {
    tnk__value_t block = blocks.as.list->items[i];
    tnk__place_t at = {place, NULL, i};

    if (!tnk__value_is(tnk__value_get(block, "type"), "tool_result")) {
      err = read_part(io, &at, block, parts);
      is_open = 1;
      continue;
    }
    if (is_open)
      add_user(io, parts, messages);
    parts = tnk__value_list(io->heap);
    is_open = 0;
    err = read_result(io, &at, block, messages);
  }
  if (err == TNK_OK && (is_open || blocks.as.list->n == 0))
    add_user(io, parts, messages);
  return err;
}

/* ---- Messages of the assistant ---- */

typedef struct {
  tnk__value_t thinking, text, calls;
} said_t;

static int read_use(tnk__io_t *io, const tnk__place_t *place,
                    tnk__value_t block, said_t *said) {
  tnk__place_t here = {place, "input", 0};
  tnk__value_t id, name, input = tnk__value_get(block, "input");
  int err = tnk__io_need(io, place, block, "id", &id);

  if (err == TNK_OK)
    err = tnk__io_need(io, place, block, "name", &name);
  if (err == TNK_OK && input.kind != TNK__VALUE_DICT)
    err = tnk__io_fail(io, &here, TNK_EINVAL, "this is no object");
  if (err == TNK_OK)
    tnk__value_append(io->heap, said->calls, tnk__io_call(io, id, name, input));
  return err;
}

static int read_said(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t block, said_t *said) {
  tnk__value_t type, text;
  int err = tnk__io_type(io, place, block, &type);

  if (err != TNK_OK)
    return err;
  if (tnk__value_is(type, "tool_use"))
    return read_use(io, place, block, said);
  if (tnk__value_is(type, "redacted_thinking"))
    return TNK_OK; /* encrypted; it stays in the kept data */
  if (tnk__value_is(type, "text")) {
    err = tnk__io_need(io, place, block, "text", &text);
    if (err == TNK_OK)
      said->text = tnk__io_join(io, said->text, "", text);
  } else if (tnk__value_is(type, "thinking")) {
    err = tnk__io_need(io, place, block, "thinking", &text);
    if (err == TNK_OK)
      said->thinking = tnk__io_join(io, said->thinking, "\n", text);
  } else {
    err = tnk__io_no_type(io, place, type);
  }
  return err;
}

static int read_assistant(tnk__io_t *io, const tnk__place_t *place,
                          tnk__value_t blocks, tnk__value_t messages) {
  said_t said = {tnk__value_undefined(), tnk__value_undefined(),
                 tnk__value_list(io->heap)};
  tnk__value_t message = tnk__io_message(io, "assistant");
  int err = tnk__io_list(io, place, blocks), has_calls;

  for (size_t i = 0; err == TNK_OK && i < blocks.as.list->n; i++) {
    tnk__place_t at = {place, NULL, i};

    err = read_said(io, &at, blocks.as.list->items[i], &said);
  }
  if (err != TNK_OK || io->heap->err != TNK_OK)
    return err != TNK_OK ? err : io->heap->err;
  has_calls = said.calls.as.list->n > 0;
  if (said.text.kind == TNK__VALUE_UNDEFINED)
    said.text = tnk__io_word("");
  tnk__io_set(io, message, "content", said.text);
  if (said.thinking.kind == TNK__VALUE_TEXT)
    tnk__io_set(io, message, "reasoning_content", said.thinking);
  if (has_calls)
    tnk__io_set(io, message, "tool_calls", said.calls);
  tnk__value_append(io->heap, messages, message);
  return TNK_OK;
}

static int read_message(tnk__io_t *io, const tnk__place_t *place,
                        tnk__value_t items, size_t at, size_t *n_items,
                        tnk__value_t messages) {
  tnk__value_t json = items.as.list->items[at], role, message;
  tnk__value_t content = tnk__value_get(json, "content");
  tnk__place_t here = {place, "content", 0};
  int err = tnk__io_need(io, place, json, "role", &role), is_user;

  *n_items = 1;
  if (err != TNK_OK)
    return err;
  is_user = tnk__value_is(role, "user");
  if (!is_user && !tnk__value_is(role, "assistant"))
    return tnk__io_fail(io, place, TNK_EUNSUPPORTED,
                        "the role \"%.*s\" is not supported",
                        role.n_text < 64 ? (int)role.n_text : 64, role.as.text);
  if (content.kind != TNK__VALUE_TEXT)
    return is_user ? read_user(io, &here, content, messages)
                   : read_assistant(io, &here, content, messages);
  message = tnk__io_message(io, is_user ? "user" : "assistant");
  tnk__io_set(io, message, "content", content);
  tnk__value_append(io->heap, messages, message);
  return TNK_OK;
}

static int read_tool(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t json, tnk__value_t *tool) {
  tnk__value_t type, name, description, function;
  tnk__value_t schema = tnk__value_get(json, "input_schema");
  int err = tnk__io_text(io, place, json, "type", &type);

  if (err != TNK_OK)
    return err;
  if (type.kind == TNK__VALUE_TEXT && !tnk__value_is(type, "custom"))
    return tnk__io_no_type(io, place, type);
  err = tnk__io_need(io, place, json, "name", &name);
  if (err == TNK_OK)
    err = tnk__io_text(io, place, json, "description", &description);
  if (err != TNK_OK)
    return err;
  *tool = tnk__io_typed(io, "function");
  function = tnk__value_dict(io->heap);
  tnk__io_set(io, function, "name", name);
  if (description.kind == TNK__VALUE_TEXT)
    tnk__io_set(io, function, "description", description);
  if (schema.kind == TNK__VALUE_DICT)
    tnk__io_set(io, function, "parameters", schema);
  tnk__io_set(io, *tool, "function", function);
  return TNK_OK;
}

/* ---- Writing ---- */

/* Messages in the format of Anthropic. */

/* Make an image block from a data: URL or another URL. */
static tnk__value_t image_block(tnk__io_t *io, tnk__value_t url) {
  static const char front[] = "data:", middle[] = ";base64,";
  enum { N_FRONT = sizeof(front) - 1, N_MIDDLE = sizeof(middle) - 1 };
  tnk__value_t block = tnk__io_typed(io, "image"), source;
  size_t n = url.n_text, at;

  for (at = N_FRONT; n >= N_FRONT && memcmp(url.as.text, front, N_FRONT) == 0 &&
                     at + N_MIDDLE <= n;
       at++)
    if (memcmp(url.as.text + at, middle, N_MIDDLE) == 0) {
      source = tnk__io_typed(io, "base64");
      tnk__io_set(io, source, "media_type",
                  tnk__value_text(url.as.text + N_FRONT, at - N_FRONT));
      tnk__io_set(
          io, source, "data",
          tnk__value_text(url.as.text + at + N_MIDDLE, n - at - N_MIDDLE));
      tnk__io_set(io, block, "source", source);
      return block;
    }
  source = tnk__io_typed(io, "url");
  tnk__io_set(io, source, "url", url);
  tnk__io_set(io, block, "source", source);
  return block;
}

/* Append the parts of content as blocks. */
static int add_parts(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t content, tnk__value_t blocks) {
  tnk__place_t here = {place, "content", 0};
  tnk__value_t parts, text;
  int err = tnk__part_list(io, place, content, &parts);

  for (size_t i = 0; err == TNK_OK && i < parts.as.list->n; i++) {
    tnk__value_t part = parts.as.list->items[i];
    tnk__place_t at = {&here, NULL, i};

    if (tnk__value_is(tnk__value_get(part, "type"), "image")) {
      err = tnk__io_need(io, &at, part, "image", &text);
      part = image_block(io, text);
    } else {
      err = tnk__io_need(io, &at, part, "text", &text);
      part = tnk__part_text(io, text);
    }
    tnk__value_append(io->heap, blocks, part);
  }
  return err;
}

/* Write content as a string, or as blocks. */
static int write_content(tnk__io_t *io, const tnk__place_t *place,
                         tnk__value_t content, tnk__value_t *json) {
  *json = content;
  if (content.kind == TNK__VALUE_TEXT)
    return TNK_OK;
  *json = tnk__value_list(io->heap);
  return add_parts(io, place, content, *json);
}

int tnk__anthropic_write_system(tnk__io_t *io, const tnk__place_t *place,
                                tnk__value_t messages, size_t n,
                                tnk__value_t *json) {
  int err = TNK_OK;

  if (n == 1)
    return write_content(
        io, place, tnk__value_get(messages.as.list->items[0], "content"), json);
  *json = tnk__value_list(io->heap);
  for (size_t i = 0; i < n && err == TNK_OK; i++) {
    tnk__place_t at = {place, NULL, i};

    err = add_parts(
        io, &at, tnk__value_get(messages.as.list->items[i], "content"), *json);
  }
  return err;
}

static int add_call(tnk__io_t *io, const tnk__place_t *place, tnk__value_t call,
                    tnk__value_t blocks) {
  tnk__value_t function = tnk__value_get(call, "function"), id, name;
  tnk__value_t block = tnk__io_typed(io, "tool_use");
  tnk__value_t arguments = tnk__value_get(function, "arguments");
  int err = tnk__io_need(io, place, call, "id", &id);

  if (err == TNK_OK)
    err = tnk__io_need(io, place, function, "name", &name);
  if (err == TNK_OK && arguments.kind != TNK__VALUE_DICT)
    err = tnk__io_fail(io, place, TNK_EUNSUPPORTED,
                       "arguments that are no object cannot be said");
  if (err != TNK_OK)
    return err;
  tnk__io_set(io, block, "id", id);
  tnk__io_set(io, block, "name", name);
  tnk__io_set(io, block, "input", arguments);
  tnk__value_append(io->heap, blocks, block);
  return TNK_OK;
}

/* Write the blocks of an answer. */
static int write_blocks(tnk__io_t *io, const tnk__place_t *place,
                        tnk__value_t message, tnk__value_t *blocks) {
  tnk__place_t here = {place, "tool_calls", 0};
  tnk__value_t thinking = tnk__value_get(message, "reasoning_content");
  tnk__value_t content = tnk__value_get(message, "content");
  tnk__value_t calls = tnk__value_get(message, "tool_calls"), block;
  int err = TNK_OK;

  *blocks = tnk__value_list(io->heap);
  if (thinking.kind == TNK__VALUE_TEXT && thinking.n_text > 0) {
    block = tnk__io_typed(io, "thinking");
    tnk__io_set(io, block, "thinking", thinking);
    tnk__io_set(io, block, "signature", tnk__io_word(""));
    tnk__value_append(io->heap, *blocks, block);
  }
  if (tnk__value_truth(content))
    err = add_parts(io, place, content, *blocks);
  if (err == TNK_OK && tnk__value_truth(calls))
    err = tnk__io_list(io, &here, calls);
  for (size_t i = 0;
       err == TNK_OK && tnk__value_truth(calls) && i < calls.as.list->n; i++) {
    tnk__place_t at = {&here, NULL, i};

    err = add_call(io, &at, calls.as.list->items[i], *blocks);
  }
  return err;
}

static int write_assistant(tnk__io_t *io, const tnk__place_t *place,
                           tnk__value_t message, tnk__value_t *content) {
  *content = tnk__value_get(message, "content");
  if (content->kind == TNK__VALUE_TEXT &&
      !tnk__value_truth(tnk__value_get(message, "reasoning_content")) &&
      !tnk__value_truth(tnk__value_get(message, "tool_calls")))
    return TNK_OK;
  return write_blocks(io, place, message, content);
}

/* Write consecutive tool results as one message. */
static int write_results(tnk__io_t *io, const tnk__place_t *place,
                         tnk__value_t messages, size_t at, size_t *n_messages,
                         tnk__value_t *blocks) {
  int err = TNK_OK;

  *blocks = tnk__value_list(io->heap);
  for (*n_messages = 0; err == TNK_OK && at + *n_messages < messages.as.list->n;
       (*n_messages)++) {
    tnk__value_t message = messages.as.list->items[at + *n_messages];
    tnk__value_t block = tnk__io_typed(io, "tool_result"), id, content;

    if (!tnk__value_is(tnk__value_get(message, "role"), "tool"))
      break;
    /* A message that was separate in the input stays separate. */
    if (*n_messages > 0 &&
        tnk__value_get(tnk__value_get(message, "extra"), "anthropic").kind !=
            TNK__VALUE_UNDEFINED)
      break;
    err = tnk__io_need(io, place, message, "tool_call_id", &id);
    if (err == TNK_OK)
      err = write_content(io, place, tnk__value_get(message, "content"),
                          &content);
    if (err != TNK_OK)
      break;
    tnk__io_set(io, block, "tool_use_id", id);
    tnk__io_set(io, block, "content", content);
    tnk__value_append(io->heap, *blocks, block);
  }
  return err;
}

static int write_messages(tnk__io_t *io, const tnk__place_t *place,
                          tnk__value_t messages, size_t at, size_t *n_messages,
                          tnk__value_t items) {
  tnk__value_t message = messages.as.list->items[at];
  tnk__value_t role, json, content = tnk__value_undefined();
  int err = tnk__io_need(io, place, message, "role", &role);

  *n_messages = 1;
  if (err != TNK_OK)
    return err;
  if (tnk__value_is(role, "tool"))
    err = write_results(io, place, messages, at, n_messages, &content);
  else if (tnk__value_is(role, "assistant"))
    err = write_assistant(io, place, message, &content);
  else if (tnk__value_is(role, "user"))
    err =
        write_content(io, place, tnk__value_get(message, "content"), &content);
  else
    err = tnk__io_fail(io, place, TNK_EUNSUPPORTED,
                       "the role \"%.*s\" cannot be said here",
                       role.n_text < 64 ? (int)role.n_text : 64, role.as.text);
  if (err != TNK_OK)
    return err;
  json = tnk__io_message(io, tnk__value_is(role, "assistant") ? "assistant"
                                                              : "user");
  tnk__io_set(io, json, "content", content);
  tnk__value_append(io->heap, items, json);
  return TNK_OK;
}

static int write_tool(tnk__io_t *io, const tnk__place_t *place,
                      tnk__value_t tool, tnk__value_t *json) {
  tnk__value_t function = tnk__value_get(tool, "function"), name;
  tnk__value_t description = tnk__value_get(function, "description");
  tnk__value_t schema = tnk__value_get(function, "parameters");
  int err = tnk__io_need(io, place, function, "name", &name);

  if (err != TNK_OK)
    return err;
  *json = tnk__value_dict(io->heap);
  tnk__io_set(io, *json, "name", name);
  if (description.kind == TNK__VALUE_TEXT)
    tnk__io_set(io, *json, "description", description);
  if (schema.kind != TNK__VALUE_DICT) {
    schema = tnk__io_typed(io, "object");
    tnk__io_set(io, schema, "properties", tnk__value_dict(io->heap));
  }
  tnk__io_set(io, *json, "input_schema", schema);
  return TNK_OK;
}

const tnk__shape_t tnk__shape_anthropic = {
    .list = "messages",
    .system = "system",
    .keeps = "anthropic",
    .keeps_system = "anthropic_system",
    .keeps_tools = "anthropic_tools",
    .read = read_message,
    .write = write_messages,
    .read_tool = read_tool,
    .write_tool = write_tool,
};

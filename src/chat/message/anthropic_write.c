/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/message/shapes.h"

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

int tnk__anthropic_write(tnk__io_t *io, const tnk__place_t *place,
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

int tnk__anthropic_write_tool(tnk__io_t *io, const tnk__place_t *place,
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

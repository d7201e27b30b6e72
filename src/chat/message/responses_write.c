/* SPDX-License-Identifier: MIT */
#include "chat/message/shapes.h"

/* Messages as items of OpenAI's responses. */

/* Write content as a string, or as parts of input. */
static int write_content(tnk__io_t *io, const tnk__place_t *place,
                         tnk__value_t content, tnk__value_t *json) {
  tnk__place_t here = {place, "content", 0};
  tnk__value_t parts, text;
  int err;

  *json = content;
  if (content.kind == TNK__VALUE_TEXT)
    return TNK_OK;
  *json = tnk__value_list(io->heap);
  err = tnk__part_list(io, place, content, &parts);
  for (size_t i = 0; err == TNK_OK && i < parts.as.list->n; i++) {
    tnk__value_t part = parts.as.list->items[i];
    tnk__place_t at = {&here, NULL, i};
    int is_image = tnk__value_is(tnk__value_get(part, "type"), "image");

    err = tnk__io_need(io, &at, part, is_image ? "image" : "text", &text);
    if (err != TNK_OK)
      break;
    part = tnk__io_typed(io, is_image ? "input_image" : "input_text");
    tnk__io_set(io, part, is_image ? "image_url" : "text", text);
    tnk__value_append(io->heap, *json, part);
  }
  return err;
}

static void add_reasoning(tnk__io_t *io, tnk__value_t thinking,
                          tnk__value_t items) {
  tnk__value_t item = tnk__io_typed(io, "reasoning");
  tnk__value_t part = tnk__io_typed(io, "reasoning_text");
  tnk__value_t content = tnk__value_list(io->heap);

  tnk__io_set(io, part, "text", thinking);
  tnk__value_append(io->heap, content, part);
  tnk__io_set(io, item, "summary", tnk__value_list(io->heap));
  tnk__io_set(io, item, "content", content);
  tnk__value_append(io->heap, items, item);
}

static void add_text(tnk__io_t *io, tnk__value_t text, tnk__value_t items) {
  tnk__value_t item = tnk__io_typed(io, "message");
  tnk__value_t part = tnk__io_typed(io, "output_text");
  tnk__value_t content = tnk__value_list(io->heap);

  tnk__io_set(io, part, "text", text);
  tnk__io_set(io, part, "annotations", tnk__value_list(io->heap));
  tnk__value_append(io->heap, content, part);
  tnk__io_set(io, item, "role", tnk__io_word("assistant"));
  tnk__io_set(io, item, "content", content);
  tnk__value_append(io->heap, items, item);
}

static int add_call(tnk__io_t *io, const tnk__place_t *place, tnk__value_t call,
                    tnk__value_t items) {
  tnk__value_t function = tnk__value_get(call, "function"), id, name;
  tnk__value_t arguments = tnk__value_get(function, "arguments");
  tnk__value_t item = tnk__io_typed(io, "function_call");
  int err = tnk__io_need(io, place, call, "id", &id);

  if (err == TNK_OK)
    err = tnk__io_need(io, place, function, "name", &name);
  if (err == TNK_OK && arguments.kind != TNK__VALUE_TEXT)
    err = tnk__io_to_json(io, place, arguments, &arguments);
  if (err != TNK_OK)
    return err;
  tnk__io_set(io, item, "call_id", id);
  tnk__io_set(io, item, "name", name);
  tnk__io_set(io, item, "arguments", arguments);
  tnk__value_append(io->heap, items, item);
  return TNK_OK;
}

static int write_answer(tnk__io_t *io, const tnk__place_t *place,
                        tnk__value_t message, tnk__value_t items) {
  tnk__place_t here = {place, "tool_calls", 0};
  tnk__value_t thinking = tnk__value_get(message, "reasoning_content");
  tnk__value_t calls = tnk__value_get(message, "tool_calls"), parts;
  int err =
      tnk__part_list(io, place, tnk__value_get(message, "content"), &parts);

  if (err == TNK_OK && tnk__value_truth(calls))
    err = tnk__io_list(io, &here, calls);
  if (err != TNK_OK)
    return err;
  if (thinking.kind == TNK__VALUE_TEXT && thinking.n_text > 0)
    add_reasoning(io, thinking, items);
  parts = tnk__part_content(io, parts, 1);
  if (parts.kind != TNK__VALUE_TEXT)
    return tnk__io_fail(io, place, TNK_EUNSUPPORTED,
                        "an image of the assistant cannot be said here");
  if (parts.n_text > 0 || !tnk__value_truth(calls))
    add_text(io, parts, items);
  for (size_t i = 0;
       err == TNK_OK && tnk__value_truth(calls) && i < calls.as.list->n; i++) {
    tnk__place_t at = {&here, NULL, i};

    err = add_call(io, &at, calls.as.list->items[i], items);
  }
  return err;
}

int tnk__responses_write(tnk__io_t *io, const tnk__place_t *place,
                         tnk__value_t messages, size_t at, size_t *n_messages,
                         tnk__value_t items) {
  tnk__value_t message = messages.as.list->items[at], role, content, item, id;
  int err = tnk__io_need(io, place, message, "role", &role);
  int is_result;

  *n_messages = 1;
  if (err != TNK_OK)
    return err;
  if (tnk__value_is(role, "assistant"))
    return write_answer(io, place, message, items);
  err = write_content(io, place, tnk__value_get(message, "content"), &content);
  is_result = tnk__value_is(role, "tool");
  if (err == TNK_OK && is_result)
    err = tnk__io_need(io, place, message, "tool_call_id", &id);
  else if (err == TNK_OK && !tnk__value_is(role, "user") &&
           !tnk__value_is(role, "system"))
    err = tnk__io_fail(io, place, TNK_EUNSUPPORTED,
                       "the role \"%.*s\" cannot be said here",
                       role.n_text < 64 ? (int)role.n_text : 64, role.as.text);
  if (err != TNK_OK)
    return err;
  item = tnk__io_typed(io, is_result ? "function_call_output" : "message");
  tnk__io_set(io, item, is_result ? "call_id" : "role", is_result ? id : role);
  tnk__io_set(io, item, is_result ? "output" : "content", content);
  tnk__value_append(io->heap, items, item);
  return TNK_OK;
}

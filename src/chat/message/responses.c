/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/message/shapes.h"

/* The format of OpenAI's responses. An answer is several items: its reasoning,
 * its text, its calls. */

static int read_part(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t json, tnk__value_t parts) {
  tnk__value_t type, text;
  int err = tnk__io_type(io, place, json, &type);

  if (err != TNK_OK)
    return err;
  if (tnk__value_is(type, "input_image")) {
    err = tnk__io_need(io, place, json, "image_url", &text);
    if (err == TNK_OK)
      tnk__value_append(io->heap, parts, tnk__part_image(io, text));
    return err;
  }
  if (!tnk__value_is(type, "input_text") &&
      !tnk__value_is(type, "output_text") && !tnk__value_is(type, "refusal"))
    return tnk__io_no_type(io, place, type);
  err =
      tnk__io_need(io, place, json,
                   tnk__value_is(type, "refusal") ? "refusal" : "text", &text);
  if (err == TNK_OK)
    tnk__value_append(io->heap, parts, tnk__part_text(io, text));
  return err;
}

/* Read a string, or a list of parts. */
static int read_content(tnk__io_t *io, const tnk__place_t *place,
                        tnk__value_t json, const char *name, int is_answer,
                        tnk__value_t *content) {
  tnk__place_t here = {place, name, 0};
  tnk__value_t parts = tnk__value_list(io->heap);
  int err;

  *content = tnk__value_get(json, name);
  if (content->kind == TNK__VALUE_TEXT)
    return TNK_OK;
  json = *content;
  err = tnk__io_list(io, &here, json);
  for (size_t i = 0; err == TNK_OK && i < json.as.list->n; i++) {
    tnk__place_t at = {&here, NULL, i};

    err = read_part(io, &at, json.as.list->items[i], parts);
  }
  *content = tnk__part_content(io, parts, is_answer);
  return err;
}

/* Read an item that is not part of an answer. */
static int read_message(tnk__io_t *io, const tnk__place_t *place,
                        tnk__value_t item, tnk__value_t messages) {
  tnk__value_t role, message, content;
  int err = tnk__io_need(io, place, item, "role", &role), is_user;

  if (err != TNK_OK)
    return err;
  is_user = tnk__value_is(role, "user");
  if (!is_user && !tnk__value_is(role, "system") &&
      !tnk__value_is(role, "developer"))
    return tnk__io_fail(io, place, TNK_EUNSUPPORTED,
                        "the role \"%.*s\" is not supported",
                        role.n_text < 64 ? (int)role.n_text : 64, role.as.text);
  err = read_content(io, place, item, "content", 0, &content);
  message = tnk__io_message(io, is_user ? "user" : "system");
  tnk__io_set(io, message, "content", content);
  tnk__value_append(io->heap, messages, message);
  return err;
}

static int read_result(tnk__io_t *io, const tnk__place_t *place,
                       tnk__value_t item, tnk__value_t messages) {
  tnk__value_t message = tnk__io_message(io, "tool"), id, content;
  int err = tnk__io_need(io, place, item, "call_id", &id);

  if (err == TNK_OK)
    err = read_content(io, place, item, "output", 0, &content);
  if (err != TNK_OK)
    return err;
  tnk__io_set(io, message, "content", content);
  tnk__io_set(io, message, "tool_call_id", id);
  tnk__value_append(io->heap, messages, message);
  return TNK_OK;
}

/* ---- Answers ---- */

typedef struct {
  tnk__value_t thinking, text, calls;
  size_t n_calls;
} said_t;

/* Read the reasoning or, if it is missing, its summary. */
static int read_reasoning(tnk__io_t *io, const tnk__place_t *place,
                          tnk__value_t item, said_t *said) {
  static const char *const members[] = {"content", "summary"};
  tnk__value_t whole = tnk__value_undefined(), text;
  int err = TNK_OK;

  for (size_t k = 0; k < 2 && whole.kind == TNK__VALUE_UNDEFINED; k++) {
    tnk__place_t here = {place, members[k], 0};
    tnk__value_t list = tnk__value_get(item, members[k]);

    if (list.kind == TNK__VALUE_UNDEFINED || list.kind == TNK__VALUE_NONE)
      continue;
    err = tnk__io_list(io, &here, list);
    for (size_t i = 0; err == TNK_OK && i < list.as.list->n; i++) {
      tnk__place_t at = {&here, NULL, i};

      err = tnk__io_need(io, &at, list.as.list->items[i], "text", &text);
      if (err == TNK_OK)
        whole = tnk__io_join(io, whole, "\n", text);
    }
    if (err != TNK_OK)
      return err;
  }
  if (whole.kind == TNK__VALUE_TEXT)
    said->thinking = tnk__io_join(io, said->thinking, "\n", whole);
  return TNK_OK;
}

static int read_call(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t item, said_t *said) {
  tnk__value_t id, name, arguments;
  int err = tnk__io_need(io, place, item, "call_id", &id);

  if (err == TNK_OK)
    err = tnk__io_need(io, place, item, "name", &name);
  if (err == TNK_OK)
    err = tnk__io_need(io, place, item, "arguments", &arguments);
  if (err != TNK_OK)
    return err;
  said->n_calls++;
  tnk__value_append(io->heap, said->calls,
                    tnk__io_call(io, id, name, arguments));
  return TNK_OK;
}

/* Kinds of items. Items without a type are messages. */
typedef enum {
  ITEM_OTHER,
  ITEM_MESSAGE,
  ITEM_ANSWER,
  ITEM_REASONING,
  ITEM_CALL,
  ITEM_RESULT
} item_t;

static item_t item_of(tnk__value_t item) {
  tnk__value_t type = tnk__value_get(item, "type");

  if (type.kind == TNK__VALUE_UNDEFINED || tnk__value_is(type, "message"))
    return tnk__value_is(tnk__value_get(item, "role"), "assistant")
               ? ITEM_ANSWER
               : ITEM_MESSAGE;
  if (tnk__value_is(type, "reasoning"))
    return ITEM_REASONING;
  if (tnk__value_is(type, "function_call"))
    return ITEM_CALL;
  return tnk__value_is(type, "function_call_output") ? ITEM_RESULT : ITEM_OTHER;
}

/* Add an item to an answer. Returns 0 if it belongs to the next one. */
static int take_item(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t item, said_t *said, int *err) {
  tnk__value_t text;
  int has_more = said->text.kind == TNK__VALUE_TEXT || said->n_calls > 0;

  switch (item_of(item)) {
  case ITEM_REASONING:
    if (has_more)
      return 0;
    *err = read_reasoning(io, place, item, said);
    return 1;
  case ITEM_ANSWER:
    if (has_more)
      return 0;
    *err = read_content(io, place, item, "content", 1, &text);
    said->text = text;
    return 1;
  case ITEM_CALL:
    *err = read_call(io, place, item, said);
    return 1;
  default:
    return 0;
  }
}

static int read_answer(tnk__io_t *io, const tnk__place_t *up,
                       tnk__value_t items, size_t at, size_t *n_items,
                       tnk__value_t messages) {
  said_t said = {tnk__value_undefined(), tnk__value_undefined(),
                 tnk__value_list(io->heap), 0};
  tnk__value_t message = tnk__io_message(io, "assistant");
  int err = TNK_OK;

  for (*n_items = 0; err == TNK_OK && at + *n_items < items.as.list->n;
       (*n_items)++) {
    tnk__place_t place = {up, NULL, at + *n_items};

    if (!take_item(io, &place, items.as.list->items[at + *n_items], &said,
                   &err))
      break;
  }
  if (err != TNK_OK)
    return err;
  if (said.text.kind == TNK__VALUE_UNDEFINED)
    said.text = tnk__io_word("");
  tnk__io_set(io, message, "content", said.text);
  if (said.thinking.kind == TNK__VALUE_TEXT)
    tnk__io_set(io, message, "reasoning_content", said.thinking);
  if (said.n_calls > 0)
    tnk__io_set(io, message, "tool_calls", said.calls);
  tnk__value_append(io->heap, messages, message);
  return TNK_OK;
}

static int read_items(tnk__io_t *io, const tnk__place_t *place,
                      tnk__value_t items, size_t at, size_t *n_items,
                      tnk__value_t messages) {
  tnk__value_t item = items.as.list->items[at], type;
  int err;

  *n_items = 1;
  switch (item_of(item)) {
  case ITEM_MESSAGE:
    return read_message(io, place, item, messages);
  case ITEM_RESULT:
    return read_result(io, place, item, messages);
  case ITEM_OTHER:
    err = tnk__io_type(io, place, item, &type);
    return err != TNK_OK ? err : tnk__io_no_type(io, place, type);
  default:
    return read_answer(io, place->up, items, at, n_items, messages);
  }
}

/* ---- Tools: flat ---- */

/* Copy the members that exist from one dict to another. */
static void copy_members(tnk__io_t *io, tnk__value_t from, tnk__value_t to) {
  static const char *const members[] = {"name", "description", "parameters",
                                        "strict"};

  for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
    tnk__value_t member = tnk__value_get(from, members[i]);

    if (member.kind != TNK__VALUE_UNDEFINED)
      tnk__io_set(io, to, members[i], member);
  }
}

static int read_tool(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t json, tnk__value_t *tool) {
  tnk__value_t type, name, function;
  int err = tnk__io_type(io, place, json, &type);

  if (err != TNK_OK)
    return err;
  if (!tnk__value_is(type, "function"))
    return tnk__io_no_type(io, place, type);
  err = tnk__io_need(io, place, json, "name", &name);
  function = tnk__value_dict(io->heap);
  copy_members(io, json, function);
  *tool = tnk__io_typed(io, "function");
  tnk__io_set(io, *tool, "function", function);
  return err;
}

static int write_tool(tnk__io_t *io, const tnk__place_t *place,
                      tnk__value_t tool, tnk__value_t *json) {
  tnk__value_t function = tnk__value_get(tool, "function"), name;
  int err = tnk__io_need(io, place, function, "name", &name);

  *json = tnk__io_typed(io, "function");
  copy_members(io, function, *json);
  return err;
}

/* ---- Writing ---- */

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

static int write_messages(tnk__io_t *io, const tnk__place_t *place,
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

const tnk__shape_t tnk__shape_responses = {
    .list = "input",
    .system = "instructions",
    .keeps = "responses",
    .keeps_system = "responses_system",
    .keeps_tools = "responses_tools",
    .text = "responses_text",
    .read = read_items,
    .write = write_messages,
    .read_tool = read_tool,
    .write_tool = write_tool,
};

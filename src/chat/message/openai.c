/* SPDX-License-Identifier: MIT */
#include "chat/message/shapes.h"

#include <string.h>

/* The format of OpenAI's chat completions. */

static int read_image(tnk__io_t *io, const tnk__place_t *place,
                      tnk__value_t part, tnk__value_t *url) {
  tnk__place_t here = {place, "image_url", 0};
  tnk__value_t image = tnk__value_get(part, "image_url");

  if (image.kind == TNK__VALUE_DICT)
    return tnk__io_need(io, &here, image, "url", url);
  return tnk__io_need(io, place, part, "image_url", url);
}

static int read_part(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t part, tnk__value_t parts) {
  tnk__value_t type, text;
  int err = tnk__io_type(io, place, part, &type);

  if (err != TNK_OK)
    return err;
  if (tnk__value_is(type, "image_url")) {
    err = read_image(io, place, part, &text);
    part = tnk__part_image(io, text);
  } else if (tnk__value_is(type, "text") || tnk__value_is(type, "refusal")) {
    err = tnk__io_need(io, place, part,
                       tnk__value_is(type, "text") ? "text" : "refusal", &text);
    part = tnk__part_text(io, text);
  } else {
    return tnk__io_no_type(io, place, type);
  }
  if (err == TNK_OK)
    tnk__value_append(io->heap, parts, part);
  return err;
}

static int read_content(tnk__io_t *io, const tnk__place_t *place,
                        tnk__value_t json, int is_answer, tnk__value_t *out) {
  tnk__place_t here = {place, "content", 0};
  tnk__value_t parts = tnk__value_list(io->heap);
  int err = TNK_OK;

  *out = tnk__value_get(json, "content");
  /* An answer that has only calls has no content. Most templates accept an
   * empty string for that, and few accept anything else. */
  if (is_answer &&
      (out->kind == TNK__VALUE_UNDEFINED || out->kind == TNK__VALUE_NONE))
    *out = tnk__io_word("");
  if (out->kind == TNK__VALUE_TEXT)
    return TNK_OK;
  if (out->kind == TNK__VALUE_UNDEFINED || out->kind == TNK__VALUE_NONE)
    return tnk__io_fail(io, place, TNK_EINVAL,
                        "the member \"content\" is missing");
  if (out->kind != TNK__VALUE_LIST)
    return tnk__io_fail(io, &here, TNK_EINVAL,
                        "this is neither a text nor a list of parts");
  for (size_t i = 0; i < out->as.list->n && err == TNK_OK; i++) {
    tnk__place_t at = {&here, NULL, i};

    err = read_part(io, &at, out->as.list->items[i], parts);
  }
  *out = tnk__part_content(io, parts, is_answer);
  return err;
}

static int read_call(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t json, tnk__value_t calls) {
  tnk__place_t here = {place, "function", 0};
  tnk__value_t function = tnk__value_get(json, "function");
  tnk__value_t id, type, name, arguments;
  int err = tnk__io_text(io, place, json, "id", &id);

  if (err == TNK_OK)
    err = tnk__io_text(io, place, json, "type", &type);
  if (err != TNK_OK)
    return err;
  if (type.kind == TNK__VALUE_TEXT && !tnk__value_is(type, "function"))
    return tnk__io_no_type(io, place, type);
  if (function.kind != TNK__VALUE_DICT)
    return tnk__io_fail(io, &here, TNK_EINVAL, "this is no object");
  err = tnk__io_need(io, &here, function, "name", &name);
  if (err != TNK_OK)
    return err;
  arguments = tnk__value_get(function, "arguments");
  if (arguments.kind != TNK__VALUE_DICT)
    err = tnk__io_need(io, &here, function, "arguments", &arguments);
  if (err == TNK_OK)
    tnk__value_append(io->heap, calls, tnk__io_call(io, id, name, arguments));
  return err;
}

static int read_calls(tnk__io_t *io, const tnk__place_t *place,
                      tnk__value_t json, tnk__value_t message) {
  tnk__place_t here = {place, "tool_calls", 0};
  tnk__value_t list = tnk__value_get(json, "tool_calls");
  tnk__value_t calls = tnk__value_list(io->heap);
  int err;

  if (list.kind == TNK__VALUE_UNDEFINED || list.kind == TNK__VALUE_NONE)
    return TNK_OK;
  err = tnk__io_list(io, &here, list);
  for (size_t i = 0; err == TNK_OK && i < list.as.list->n; i++) {
    tnk__place_t at = {&here, NULL, i};

    err = read_call(io, &at, list.as.list->items[i], calls);
  }
  if (err == TNK_OK && list.as.list->n > 0)
    tnk__io_set(io, message, "tool_calls", calls);
  return err;
}

/* Read the members that only answers have. */
static int read_answer(tnk__io_t *io, const tnk__place_t *place,
                       tnk__value_t json, tnk__value_t message) {
  static const char *const names[] = {"reasoning_content", "thinking",
                                      "reasoning"};
  tnk__value_t old = tnk__value_get(json, "function_call");
  tnk__value_t content = tnk__value_get(message, "content");
  tnk__value_t thinking = tnk__value_undefined(), refusal;
  int err = TNK_OK;

  if (old.kind != TNK__VALUE_UNDEFINED && old.kind != TNK__VALUE_NONE)
    return tnk__io_fail(io, place, TNK_EUNSUPPORTED,
                        "\"function_call\" is of an older API; use "
                        "\"tool_calls\"");
  /* Servers use different names for this member. */
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && err == TNK_OK &&
                     thinking.kind != TNK__VALUE_TEXT;
       i++)
    err = tnk__io_text(io, place, json, names[i], &thinking);
  if (err == TNK_OK)
    err = tnk__io_text(io, place, json, "refusal", &refusal);
  if (err != TNK_OK)
    return err;
  if (thinking.kind == TNK__VALUE_TEXT)
    tnk__io_set(io, message, "reasoning_content", thinking);
  if (refusal.kind == TNK__VALUE_TEXT && tnk__value_is(content, ""))
    tnk__io_set(io, message, "content", refusal);
  return read_calls(io, place, json, message);
}

/* The role in the form of templates, or NULL. */
static const char *role_of(tnk__value_t role) {
  static const char *const known[][2] = {{"system", "system"},
                                         {"developer", "system"},
                                         {"user", "user"},
                                         {"assistant", "assistant"},
                                         {"tool", "tool"}};

  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    if (tnk__value_is(role, known[i][0]))
      return known[i][1];
  return NULL;
}

static int no_role(tnk__io_t *io, const tnk__place_t *place,
                   tnk__value_t role) {
  if (tnk__value_is(role, "function"))
    return tnk__io_fail(io, place, TNK_EUNSUPPORTED,
                        "the role \"function\" is of an older API; use "
                        "\"tool\"");
  return tnk__io_fail(io, place, TNK_EUNSUPPORTED,
                      "the role \"%.*s\" is not supported",
                      role.n_text < 64 ? (int)role.n_text : 64, role.as.text);
}

static int read_message(tnk__io_t *io, const tnk__place_t *place,
                        tnk__value_t items, size_t at, size_t *n_items,
                        tnk__value_t messages) {
  tnk__value_t json = items.as.list->items[at], role, message, content, text;
  const char *known;
  int err = tnk__io_need(io, place, json, "role", &role);

  *n_items = 1;
  if (err != TNK_OK)
    return err;
  known = role_of(role);
  if (known == NULL)
    return no_role(io, place, role);
  message = tnk__io_message(io, known);
  err =
      read_content(io, place, json, strcmp(known, "assistant") == 0, &content);
  tnk__io_set(io, message, "content", content);
  if (err == TNK_OK && strcmp(known, "assistant") == 0)
    err = read_answer(io, place, json, message);
  if (err == TNK_OK && strcmp(known, "tool") == 0) {
    err = tnk__io_need(io, place, json, "tool_call_id", &text);
    tnk__io_set(io, message, "tool_call_id", text);
  }
  if (err == TNK_OK)
    err = tnk__io_text(io, place, json, "name", &text);
  if (err == TNK_OK && text.kind == TNK__VALUE_TEXT)
    tnk__io_set(io, message, "name", text);
  tnk__value_append(io->heap, messages, message);
  return err;
}

/* ---- Writing ---- */

static int write_content(tnk__io_t *io, const tnk__place_t *place,
                         tnk__value_t content, tnk__value_t *json) {
  tnk__value_t parts;
  int err;

  *json = content;
  if (content.kind == TNK__VALUE_UNDEFINED)
    *json = tnk__value_none();
  if (content.kind != TNK__VALUE_LIST)
    return TNK_OK;
  *json = tnk__value_list(io->heap);
  err = tnk__part_list(io, place, content, &parts);
  for (size_t i = 0; err == TNK_OK && i < parts.as.list->n; i++) {
    tnk__value_t part = parts.as.list->items[i], one, url;
    tnk__place_t here = {place, "content", 0}, at = {&here, NULL, i};

    if (tnk__value_is(tnk__value_get(part, "type"), "image")) {
      err = tnk__io_need(io, &at, part, "image", &url);
      part = tnk__io_typed(io, "image_url");
      one = tnk__value_dict(io->heap);
      tnk__io_set(io, one, "url", url);
      tnk__io_set(io, part, "image_url", one);
    }
    tnk__value_append(io->heap, *json, part);
  }
  return err;
}

static int write_call(tnk__io_t *io, const tnk__place_t *place,
                      tnk__value_t call, tnk__value_t *json) {
  tnk__value_t inner = tnk__value_get(call, "function"), name;
  tnk__value_t arguments = tnk__value_get(inner, "arguments");
  tnk__value_t function = tnk__value_dict(io->heap);
  tnk__value_t id = tnk__value_get(call, "id");
  int err = tnk__io_need(io, place, inner, "name", &name);

  *json = tnk__value_dict(io->heap);
  if (err == TNK_OK && arguments.kind != TNK__VALUE_TEXT)
    err = tnk__io_to_json(io, place, arguments, &arguments);
  if (err != TNK_OK)
    return err;
  if (id.kind == TNK__VALUE_TEXT)
    tnk__io_set(io, *json, "id", id);
  tnk__io_set(io, *json, "type", tnk__io_word("function"));
  tnk__io_set(io, function, "name", name);
  tnk__io_set(io, function, "arguments", arguments);
  tnk__io_set(io, *json, "function", function);
  return TNK_OK;
}

static int write_calls(tnk__io_t *io, const tnk__place_t *place,
                       tnk__value_t calls, tnk__value_t json) {
  tnk__place_t here = {place, "tool_calls", 0};
  tnk__value_t list = tnk__value_list(io->heap), one;
  int err = tnk__io_list(io, &here, calls);

  for (size_t i = 0; err == TNK_OK && i < calls.as.list->n; i++) {
    tnk__place_t at = {&here, NULL, i};

    err = write_call(io, &at, calls.as.list->items[i], &one);
    tnk__value_append(io->heap, list, one);
  }
  tnk__io_set(io, json, "tool_calls", list);
  return err;
}

static int write_message(tnk__io_t *io, const tnk__place_t *place,
                         tnk__value_t messages, size_t at, size_t *n_messages,
                         tnk__value_t items) {
  static const char *const others[] = {"reasoning_content", "tool_call_id",
                                       "name"};
  tnk__value_t message = messages.as.list->items[at];
  tnk__value_t json = tnk__value_dict(io->heap), role, content;
  tnk__value_t calls = tnk__value_get(message, "tool_calls");
  int err = tnk__io_need(io, place, message, "role", &role);

  *n_messages = 1;
  if (err == TNK_OK)
    err =
        write_content(io, place, tnk__value_get(message, "content"), &content);
  if (err != TNK_OK)
    return err;
  /* The API returns null if there are only calls. */
  if (tnk__value_truth(calls) && tnk__value_is(content, ""))
    content = tnk__value_none();
  tnk__io_set(io, json, "role", role);
  tnk__io_set(io, json, "content", content);
  for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
    tnk__value_t other = tnk__value_get(message, others[i]);

    if (other.kind == TNK__VALUE_TEXT)
      tnk__io_set(io, json, others[i], other);
  }
  if (tnk__value_truth(calls))
    err = write_calls(io, place, calls, json);
  tnk__value_append(io->heap, items, json);
  return err;
}

/* ---- Tools: the same as for templates ---- */

static int read_tool(tnk__io_t *io, const tnk__place_t *place,
                     tnk__value_t json, tnk__value_t *tool) {
  tnk__place_t here = {place, "function", 0};
  tnk__value_t type, name;
  int err = tnk__io_type(io, place, json, &type);

  *tool = json;
  if (err != TNK_OK)
    return err;
  if (!tnk__value_is(type, "function"))
    return tnk__io_no_type(io, place, type);
  if (tnk__value_get(json, "function").kind != TNK__VALUE_DICT)
    return tnk__io_fail(io, &here, TNK_EINVAL, "this is no object");
  return tnk__io_need(io, &here, tnk__value_get(json, "function"), "name",
                      &name);
}

const tnk__shape_t tnk__shape_openai = {
    .list = "messages",
    .keeps = "openai",
    .keeps_tools = "openai_tools",
    .read = read_message,
    .write = write_message,
    .read_tool = read_tool,
    .write_tool = read_tool,
};

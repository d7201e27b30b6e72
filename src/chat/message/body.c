/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chat/message/message.h"
#include "chat/message/shapes.h"
#include "lib/base/text.h"

/*
 * Reading and writing of bodies, and the original data that is kept. If writing
 * a message would not give the original items, they are kept in `extra` of the
 * first message, with the number of messages. The writer reads them again. It
 * uses them if they still give the same messages.
 */

static const tnk__shape_t *shape_of(tnk_chat_shape_t shape) {
  switch (shape) {
  case TNK_CHAT_OPENAI:
    return &tnk__shape_openai;
  case TNK_CHAT_RESPONSES:
    return &tnk__shape_responses;
  case TNK_CHAT_ANTHROPIC:
    return &tnk__shape_anthropic;
  default:
    return NULL;
  }
}

static int is_there(tnk__value_t value) {
  return value.kind != TNK__VALUE_UNDEFINED && value.kind != TNK__VALUE_NONE;
}

static size_t count(tnk__value_t list) {
  return list.kind == TNK__VALUE_LIST ? list.as.list->n : 0;
}

static tnk__value_t at(tnk__value_t list, size_t i) {
  return i < count(list) ? list.as.list->items[i] : tnk__value_undefined();
}

/* Elements of a list, as a list. */
static tnk__value_t cut(tnk__io_t *io, tnk__value_t list, size_t from,
                        size_t n) {
  tnk__value_t out = tnk__value_list(io->heap);

  for (size_t i = 0; i < n; i++)
    tnk__value_append(io->heap, out, at(list, from + i));
  return out;
}

/* ---- Original data ---- */

static void keep(tnk__io_t *io, tnk__value_t message, const char *name,
                 tnk__value_t value) {
  tnk__value_t extra = tnk__value_get(message, "extra");

  if (extra.kind != TNK__VALUE_DICT) {
    extra = tnk__value_dict(io->heap);
    tnk__io_set(io, message, "extra", extra);
  }
  tnk__io_set(io, extra, name, value);
}

static tnk__value_t kept(tnk__value_t message, const char *name) {
  return tnk__value_get(tnk__value_get(message, "extra"), name);
}

/* Returns whether two messages are equal, apart from kept data. */
static int is_same(tnk__value_t a, tnk__value_t b) {
  size_t n = 0, n_b = 0;

  if (a.kind != TNK__VALUE_DICT || b.kind != TNK__VALUE_DICT)
    return 0;
  for (size_t i = 0; i < a.as.dict->n; i++) {
    tnk__value_entry_t *entry = &a.as.dict->entries[i];

    if (tnk__value_is(entry->key, "extra"))
      continue;
    n++;
    if (!tnk__value_equal(entry->value, tnk__value_find(b, entry->key)))
      return 0;
  }
  for (size_t i = 0; i < b.as.dict->n; i++)
    n_b += !tnk__value_is(b.as.dict->entries[i].key, "extra");
  return n == n_b;
}

/* Write messages without using kept data. */
static int write_plainly(tnk__io_t *io, const tnk__shape_t *shape,
                         tnk__value_t messages, size_t from, size_t n,
                         tnk__value_t *items) {
  tnk__place_t here = {NULL, "messages", 0};
  int err = TNK_OK;
  size_t n_one;

  *items = tnk__value_list(io->heap);
  for (size_t i = from; err == TNK_OK && i < from + n; i += n_one) {
    tnk__place_t place = {&here, NULL, i};

    err = shape->write(io, &place, messages, i, &n_one, *items);
  }
  return err;
}

/* Keep the original items of the messages from `from` on, if necessary. */
static int keep_items(tnk__io_t *io, const tnk__shape_t *shape,
                      tnk__value_t messages, size_t from, tnk__value_t came) {
  size_t n = count(messages) - from;
  tnk__io_t quiet = {io->heap, NULL};
  tnk__value_t first = at(messages, from), plain, both;
  /* Consecutive results would be merged into one message. */
  int is_result =
      tnk__value_is(tnk__value_get(first, "role"), "tool") && from > 0 &&
      tnk__value_is(tnk__value_get(at(messages, from - 1), "role"), "tool");

  int err = write_plainly(&quiet, shape, messages, from, n, &plain);

  if (io->heap->err != TNK_OK)
    return io->heap->err;
  if (!is_result && err == TNK_OK && tnk__value_equal(plain, came))
    return TNK_OK;
  both = tnk__value_dict(io->heap);
  tnk__io_set(io, both, "items", came);
  tnk__io_set(io, both, "n", tnk__value_int((int64_t)n));
  keep(io, first, shape->keeps, both);
  return io->heap->err;
}

/* Record which calls of a message have arguments that are not JSON. */
static void name_texts(tnk__io_t *io, tnk__value_t message) {
  tnk__value_t calls = tnk__value_get(message, "tool_calls");
  tnk__value_t list = tnk__value_list(io->heap);

  for (size_t i = 0; i < count(calls); i++)
    if (tnk__value_get(tnk__value_get(at(calls, i), "function"), "arguments")
            .kind == TNK__VALUE_TEXT)
      tnk__value_append(io->heap, list, tnk__value_int((int64_t)i));
  if (count(list) > 0)
    keep(io, message, "not_json", list);
}

/* ---- Reading ---- */

static int read_items(tnk__io_t *io, const tnk__shape_t *shape,
                      tnk__value_t items, tnk__value_t messages) {
  tnk__place_t here = {NULL, shape->list, 0};
  int err = tnk__io_list(io, &here, items);
  size_t n_items;

  for (size_t i = 0; err == TNK_OK && i < count(items); i += n_items) {
    tnk__place_t place = {&here, NULL, i};
    size_t from = count(messages);

    err = shape->read(io, &place, items, i, &n_items, messages);
    if (err == TNK_OK)
      err = io->heap->err;
    if (err == TNK_OK)
      err = keep_items(io, shape, messages, from, cut(io, items, i, n_items));
    if (err != TNK_OK)
      return err;
    for (size_t k = from; k < count(messages); k++)
      name_texts(io, at(messages, k));
  }
  return err;
}

/* Read the system text, if it has its own member. */
static int read_system(tnk__io_t *io, const tnk__shape_t *shape,
                       tnk__value_t json, tnk__value_t messages) {
  tnk__place_t here = {NULL, shape->system, 0};
  tnk__value_t message, plain;
  int err;

  err = tnk__anthropic_read_system(io, &here, json, &message);
  if (err == TNK_OK)
    err = io->heap->err;
  if (err != TNK_OK)
    return err;
  tnk__value_append(io->heap, messages, message);
  /* Only the format of Anthropic has no other place for it. */
  if (shape != &tnk__shape_anthropic ||
      tnk__anthropic_write_system(io, &here, messages, 1, &plain) != TNK_OK ||
      !tnk__value_equal(plain, json))
    keep(io, message, shape->keeps_system, json);
  return io->heap->err;
}

static int read_tools(tnk__io_t *io, const tnk__shape_t *shape,
                      tnk__value_t json, tnk__value_t messages,
                      tnk__value_t *tools) {
  tnk__place_t here = {NULL, "tools", 0};
  tnk__value_t plain = tnk__value_list(io->heap), one;
  int err = tnk__io_list(io, &here, json);

  *tools = tnk__value_list(io->heap);
  for (size_t i = 0; err == TNK_OK && i < count(json); i++) {
    tnk__place_t place = {&here, NULL, i};

    err = shape->read_tool(io, &place, at(json, i), &one);
    if (err != TNK_OK)
      break;
    tnk__value_append(io->heap, *tools, one);
    err = shape->write_tool(io, &place, one, &one);
    tnk__value_append(io->heap, plain, one);
  }
  if (err == TNK_OK && count(messages) > 0 && !tnk__value_equal(plain, json))
    keep(io, at(messages, 0), shape->keeps_tools, json);
  return err;
}

/* Read a body in the form of templates. */
static int read_template(tnk__io_t *io, tnk__value_t json,
                         tnk__value_t *messages, tnk__value_t *tools) {
  tnk__place_t here = {NULL, "messages", 0}, there = {NULL, "tools", 0};
  tnk__value_t role;
  int err;

  *messages = json;
  if (json.kind == TNK__VALUE_DICT) {
    *messages = tnk__value_get(json, "messages");
    *tools = tnk__value_get(json, "tools");
    if (!is_there(*tools))
      *tools = tnk__value_undefined();
  }
  err = tnk__io_list(io, &here, *messages);
  for (size_t i = 0; err == TNK_OK && i < count(*messages); i++) {
    tnk__place_t place = {&here, NULL, i};

    err = tnk__io_need(io, &place, at(*messages, i), "role", &role);
  }
  if (err == TNK_OK && tools->kind != TNK__VALUE_UNDEFINED)
    err = tnk__io_list(io, &there, *tools);
  return err;
}

/* Get the items of a body. A string is one message of the user. */
static int find_items(tnk__io_t *io, const tnk__shape_t *shape,
                      tnk__value_t json, tnk__value_t *items) {
  tnk__value_t message, text;

  *items =
      json.kind == TNK__VALUE_DICT ? tnk__value_get(json, shape->list) : json;
  if (items->kind == TNK__VALUE_UNDEFINED)
    return tnk__io_fail(io, NULL, TNK_EINVAL, "the member \"%s\" is missing",
                        shape->list);
  if (items->kind != TNK__VALUE_TEXT || shape->text == NULL)
    return TNK_OK;
  text = *items;
  message = tnk__io_message(io, "user");
  tnk__io_set(io, message, "content", text);
  *items = tnk__value_list(io->heap);
  tnk__value_append(io->heap, *items, message);
  return io->heap->err;
}

int tnk__message_read(tnk__heap_t *heap, tnk_chat_shape_t shape,
                      tnk__value_t json, tnk__value_t *messages,
                      tnk__value_t *tools, tnk__why_t *why) {
  const tnk__shape_t *known = shape_of(shape);
  tnk__io_t io = {heap, why};
  tnk__value_t items, system, given;
  int err;

  *tools = tnk__value_undefined();
  *messages = tnk__value_list(heap);
  if (known == NULL && shape != TNK_CHAT_TEMPLATE)
    return tnk__io_fail(&io, NULL, TNK_EINVAL, "there is no such shape");
  if (known == NULL) {
    err = read_template(&io, json, messages, tools);
    return heap->err != TNK_OK ? heap->err : err;
  }
  err = find_items(&io, known, json, &items);
  if (err != TNK_OK)
    return err;
  system = known->system == NULL ? tnk__value_undefined()
                                 : tnk__value_get(json, known->system);
  if (is_there(system))
    err = read_system(&io, known, system, *messages);
  if (err == TNK_OK)
    err = read_items(&io, known, items, *messages);
  if (err == TNK_OK && known->text != NULL &&
      tnk__value_get(json, known->list).kind == TNK__VALUE_TEXT)
    keep(&io, at(*messages, count(*messages) - 1), known->text,
         tnk__value_bool(1));
  given = tnk__value_get(json, "tools");
  if (err == TNK_OK && is_there(given))
    err = read_tools(&io, known, given, *messages, tools);
  return heap->err != TNK_OK ? heap->err : err;
}

/* ---- Writing ---- */

/* Returns whether the kept data of a message still matches it and the messages
 * after it. */
static int still_means(tnk__io_t *io, const tnk__shape_t *shape,
                       tnk__value_t messages, size_t from, tnk__value_t *items,
                       size_t *n) {
  tnk__io_t quiet = {io->heap, NULL};
  tnk__value_t both = kept(at(messages, from), shape->keeps), again;
  tnk__value_t number = tnk__value_get(both, "n");

  *items = tnk__value_get(both, "items");
  if (items->kind != TNK__VALUE_LIST || number.kind != TNK__VALUE_INT ||
      number.as.number < 1 ||
      (uint64_t)number.as.number > count(messages) - from)
    return 0;
  *n = (size_t)number.as.number;
  again = tnk__value_list(io->heap);
  if (read_items(&quiet, shape, *items, again) != TNK_OK || count(again) != *n)
    return 0;
  for (size_t i = 0; i < *n; i++)
    if (!is_same(at(again, i), at(messages, from + i)))
      return 0;
  return 1;
}

static int write_items(tnk__io_t *io, const tnk__shape_t *shape,
                       tnk__value_t messages, size_t from, tnk__value_t items) {
  tnk__place_t here = {NULL, "messages", 0};
  tnk__value_t came;
  int err = TNK_OK;
  size_t n;

  for (size_t i = from; err == TNK_OK && i < count(messages); i += n) {
    tnk__place_t place = {&here, NULL, i};

    if (!still_means(io, shape, messages, i, &came, &n)) {
      err = shape->write(io, &place, messages, i, &n, items);
      continue;
    }
    for (size_t k = 0; k < count(came); k++)
      tnk__value_append(io->heap, items, at(came, k));
  }
  return err;
}

/* Count the leading messages that belong to the system member, and write that
 * member. */
static int write_system(tnk__io_t *io, const tnk__shape_t *shape,
                        tnk__value_t messages, size_t *n, tnk__value_t *json) {
  tnk__place_t here = {NULL, "messages", 0};
  tnk__value_t first = at(messages, 0), came, again;
  tnk__io_t quiet = {io->heap, NULL};

  *n = 0;
  if (shape->system == NULL)
    return TNK_OK;
  while (tnk__value_is(tnk__value_get(at(messages, *n), "role"), "system"))
    (*n)++;
  came = kept(first, shape->keeps_system);
  if (came.kind != TNK__VALUE_UNDEFINED && *n > 0 &&
      tnk__anthropic_read_system(&quiet, &here, came, &again) == TNK_OK &&
      is_same(again, first) && (*n == 1 || shape != &tnk__shape_anthropic)) {
    *n = 1;
    *json = came;
    return TNK_OK;
  }
  if (shape != &tnk__shape_anthropic)
    *n = 0;
  return *n == 0 ? TNK_OK
                 : tnk__anthropic_write_system(io, &here, messages, *n, json);
}

static int write_tools(tnk__io_t *io, const tnk__shape_t *shape,
                       tnk__value_t tools, tnk__value_t came,
                       tnk__value_t *json) {
  tnk__place_t here = {NULL, "tools", 0};
  tnk__io_t quiet = {io->heap, NULL};
  tnk__value_t again, one;
  int err;

  if (came.kind != TNK__VALUE_UNDEFINED &&
      read_tools(&quiet, shape, came, tnk__value_undefined(), &again) ==
          TNK_OK &&
      tnk__value_equal(again, tools)) {
    *json = came;
    return TNK_OK;
  }
  *json = tnk__value_list(io->heap);
  err = tnk__io_list(io, &here, tools);
  for (size_t i = 0; err == TNK_OK && i < count(tools); i++) {
    tnk__place_t place = {&here, NULL, i};

    err = shape->write_tool(io, &place, at(tools, i), &one);
    if (err == TNK_OK)
      tnk__value_append(io->heap, *json, one);
  }
  return err;
}

static int write_body(tnk__io_t *io, const tnk__shape_t *shape,
                      tnk__value_t messages, tnk__value_t tools,
                      tnk__value_t json) {
  tnk__value_t items = tnk__value_list(io->heap), system, list;
  tnk__value_t content;
  size_t n_system;
  int err = write_system(io, shape, messages, &n_system, &system);

  content = tnk__value_get(at(messages, n_system), "content");
  if (err == TNK_OK && n_system > 0)
    tnk__io_set(io, json, shape->system, system);
  if (err == TNK_OK)
    err = write_items(io, shape, messages, n_system, items);
  if (shape->text != NULL && count(messages) == n_system + 1 &&
      tnk__value_truth(kept(at(messages, n_system), shape->text)) &&
      content.kind == TNK__VALUE_TEXT)
    items = content;
  tnk__io_set(io, json, shape->list, items);
  if (err == TNK_OK && is_there(tools)) {
    err = write_tools(io, shape, tools,
                      kept(at(messages, 0), shape->keeps_tools), &list);
    if (err == TNK_OK)
      tnk__io_set(io, json, "tools", list);
  }
  return err;
}

int tnk__message_write(tnk__heap_t *heap, tnk_chat_shape_t shape,
                       tnk__value_t messages, tnk__value_t tools,
                       tnk__value_t *json, tnk__why_t *why) {
  const tnk__shape_t *known = shape_of(shape);
  tnk__place_t here = {NULL, "messages", 0};
  tnk__io_t io = {heap, why};
  int err;

  *json = tnk__value_dict(heap);
  if (known == NULL && shape != TNK_CHAT_TEMPLATE)
    return tnk__io_fail(&io, NULL, TNK_EINVAL, "there is no such shape");
  err = tnk__io_list(&io, &here, messages);
  if (err == TNK_OK && known != NULL)
    err = write_body(&io, known, messages, tools, *json);
  if (err == TNK_OK && known == NULL) {
    tnk__io_set(&io, *json, "messages", messages);
    if (is_there(tools))
      tnk__io_set(&io, *json, "tools", tools);
  }
  return heap->err != TNK_OK ? heap->err : err;
}

/* Positions, members, strings and parts, shared by all formats. */

static void print_place(tnk__text_t *text, const tnk__place_t *place) {
  if (place == NULL)
    return;
  print_place(text, place->up);
  if (place->name == NULL)
    tnk__text_printf(text, "[%zu]", place->index);
  else
    tnk__text_printf(text, "%s%.64s", text->len > 0 ? "." : "", place->name);
}

int tnk__io_fail(tnk__io_t *io, const tnk__place_t *place, int code,
                 const char *format, ...) {
  char where[128], what[200];
  tnk__text_t text;
  va_list args;

  tnk__text_init(&text, where, sizeof(where));
  print_place(&text, place);
  va_start(args, format);
  (void)vsnprintf(what, sizeof(what), format, args);
  va_end(args);
  return tnk__why(io->why, code, 0, "%s%s%s", where, text.len > 0 ? ": " : "",
                  what);
}

int tnk__io_text(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 const char *name, tnk__value_t *out) {
  tnk__place_t here = {place, name, 0};

  *out = tnk__value_get(dict, name);
  if (out->kind == TNK__VALUE_NONE)
    *out = tnk__value_undefined();
  if (out->kind != TNK__VALUE_UNDEFINED && out->kind != TNK__VALUE_TEXT)
    return tnk__io_fail(io, &here, TNK_EINVAL, "this is no text");
  return TNK_OK;
}

int tnk__io_need(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 const char *name, tnk__value_t *out) {
  int err = tnk__io_text(io, place, dict, name, out);

  if (err == TNK_OK && out->kind == TNK__VALUE_UNDEFINED)
    err = tnk__io_fail(io, place, TNK_EINVAL, "the member \"%s\" is missing",
                       name);
  return err;
}

int tnk__io_type(tnk__io_t *io, const tnk__place_t *place, tnk__value_t dict,
                 tnk__value_t *type) {
  if (dict.kind != TNK__VALUE_DICT)
    return tnk__io_fail(io, place, TNK_EINVAL, "this is no object");
  return tnk__io_need(io, place, dict, "type", type);
}

int tnk__io_no_type(tnk__io_t *io, const tnk__place_t *place,
                    tnk__value_t type) {
  int n = type.n_text < 64 ? (int)type.n_text : 64;

  return tnk__io_fail(io, place, TNK_EUNSUPPORTED,
                      "the type \"%.*s\" is not supported", n, type.as.text);
}

int tnk__io_list(tnk__io_t *io, const tnk__place_t *place, tnk__value_t value) {
  if (value.kind != TNK__VALUE_LIST)
    return tnk__io_fail(io, place, TNK_EINVAL, "this is no list");
  for (size_t i = 0; i < value.as.list->n; i++) {
    tnk__place_t here = {place, NULL, i};

    if (value.as.list->items[i].kind != TNK__VALUE_DICT)
      return tnk__io_fail(io, &here, TNK_EINVAL, "this is no object");
  }
  return TNK_OK;
}

tnk__value_t tnk__io_word(const char *word) {
  return tnk__value_text(word, strlen(word));
}

void tnk__io_set(tnk__io_t *io, tnk__value_t dict, const char *name,
                 tnk__value_t value) {
  tnk__value_set(io->heap, dict, name, value);
}

tnk__value_t tnk__io_typed(tnk__io_t *io, const char *word) {
  tnk__value_t dict = tnk__value_dict(io->heap);

  tnk__io_set(io, dict, "type", tnk__io_word(word));
  return dict;
}

tnk__value_t tnk__io_message(tnk__io_t *io, const char *role) {
  tnk__value_t dict = tnk__value_dict(io->heap);

  tnk__io_set(io, dict, "role", tnk__io_word(role));
  return dict;
}

tnk__value_t tnk__io_join(tnk__io_t *io, tnk__value_t a, const char *between,
                          tnk__value_t b) {
  size_t n_between = strlen(between), n_a, n_b;
  char *text;

  if (b.kind != TNK__VALUE_TEXT || b.n_text == 0)
    return a.kind == TNK__VALUE_TEXT ? a : tnk__io_word("");
  if (a.kind != TNK__VALUE_TEXT || a.n_text == 0)
    return b;
  n_a = a.n_text;
  n_b = b.n_text;
  text = tnk__heap_alloc(io->heap, n_a + n_between + n_b);
  if (text == NULL)
    return tnk__io_word("");
  memcpy(text, a.as.text, n_a);
  memcpy(text + n_a, between, n_between);
  memcpy(text + n_a + n_between, b.as.text, n_b);
  return tnk__value_text(text, n_a + n_between + n_b);
}

int tnk__io_to_json(tnk__io_t *io, const tnk__place_t *place,
                    tnk__value_t value, tnk__value_t *text) {
  tnk__buf_t buf;
  int err;

  tnk__buf_init(&buf, io->heap->arena.alloc, io->heap->arena.max);
  err = tnk__value_to_json(&buf, value, NULL);
  *text = err == TNK_OK
              ? tnk__value_copy_text(io->heap, (char *)buf.data, buf.len)
              : tnk__value_undefined();
  tnk__buf_deinit(&buf);
  if (err == TNK_EINVAL)
    return tnk__io_fail(io, place, err, "the arguments are no JSON");
  /* Record the error in the heap, as some callers ignore the result. */
  if (err != TNK_OK && io->heap->err == TNK_OK)
    io->heap->err = err;
  return io->heap->err;
}

tnk__value_t tnk__io_call(tnk__io_t *io, tnk__value_t id, tnk__value_t name,
                          tnk__value_t arguments) {
  tnk__value_t call = tnk__value_dict(io->heap);
  tnk__value_t function = tnk__value_dict(io->heap), read;

  if (arguments.kind == TNK__VALUE_TEXT) {
    if (arguments.n_text == 0)
      arguments = tnk__value_dict(io->heap);
    else if (tnk__value_from_json(io->heap, arguments.as.text, arguments.n_text,
                                  &read) == TNK_OK &&
             read.kind == TNK__VALUE_DICT)
      arguments = read;
  }
  if (id.kind == TNK__VALUE_TEXT)
    tnk__io_set(io, call, "id", id);
  tnk__io_set(io, call, "type", tnk__io_word("function"));
  tnk__io_set(io, function, "name", name);
  tnk__io_set(io, function, "arguments", arguments);
  tnk__io_set(io, call, "function", function);
  return call;
}

tnk__value_t tnk__part_text(tnk__io_t *io, tnk__value_t text) {
  tnk__value_t part = tnk__io_typed(io, "text");

  tnk__io_set(io, part, "text", text);
  return part;
}

tnk__value_t tnk__part_image(tnk__io_t *io, tnk__value_t url) {
  tnk__value_t part = tnk__io_typed(io, "image");

  tnk__io_set(io, part, "image", url);
  return part;
}

tnk__value_t tnk__part_content(tnk__io_t *io, tnk__value_t parts,
                               int is_joined) {
  tnk__value_t text = tnk__io_word("");

  if (io->heap->err != TNK_OK || parts.as.list->n == 0)
    return text;
  if (parts.as.list->n > 1 && !is_joined)
    return parts;
  for (size_t i = 0; i < parts.as.list->n; i++) {
    tnk__value_t one = tnk__value_get(parts.as.list->items[i], "text");

    if (one.kind != TNK__VALUE_TEXT)
      return parts;
    text = tnk__io_join(io, text, "", one);
  }
  return text;
}

int tnk__part_list(tnk__io_t *io, const tnk__place_t *place,
                   tnk__value_t content, tnk__value_t *parts) {
  tnk__place_t here = {place, "content", 0};

  if (content.kind == TNK__VALUE_LIST) {
    *parts = content;
    return tnk__io_list(io, &here, content);
  }
  *parts = tnk__value_list(io->heap);
  if (content.kind == TNK__VALUE_TEXT)
    tnk__value_append(io->heap, *parts, tnk__part_text(io, content));
  else if (content.kind != TNK__VALUE_NONE &&
           content.kind != TNK__VALUE_UNDEFINED)
    return tnk__io_fail(io, &here, TNK_EINVAL,
                        "this is neither a text nor a list of parts");
  return io->heap->err;
}

/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/message/message.h"
#include "chat/object.h"
#include "lib/base/alloc.h"
#include "lib/base/utf8.h"

tnk_chat_t *tnk_chat_new(const tnk_allocator_t *allocator) {
  const tnk_allocator_t *alloc =
      allocator != NULL ? allocator : tnk__allocator_default();
  tnk_chat_t *chat = tnk__calloc(alloc, 1, sizeof(*chat));

  if (chat == NULL)
    return NULL;
  chat->alloc = *alloc;
  tnk__heap_init(&chat->heap, &chat->alloc, TNK__CHAT_MAX_HEAP);
  chat->messages = tnk__value_list(&chat->heap);
  chat->tools = tnk__value_none();
  chat->variables = tnk__value_dict(&chat->heap);
  if (chat->heap.err == TNK_OK)
    return chat;
  tnk_chat_free(chat);
  return NULL;
}

void tnk_chat_free(tnk_chat_t *chat) {
  tnk_allocator_t alloc;

  if (chat == NULL)
    return;
  alloc = chat->alloc;
  tnk__heap_deinit(&chat->heap);
  tnk__free(&alloc, chat);
}

size_t tnk_chat_count(const tnk_chat_t *chat) {
  return chat == NULL ? 0 : chat->messages.as.list->n;
}

size_t tnk_chat_next_answer(const tnk_chat_t *chat, size_t from) {
  for (size_t i = from; i < tnk_chat_count(chat); i++)
    if (tnk__value_is(tnk__value_get(chat->messages.as.list->items[i], "role"),
                      "assistant"))
      return i;
  return SIZE_MAX;
}

void tnk_chat_free_text(const tnk_chat_t *chat, char *text) {
  if (chat != NULL)
    tnk__free(&chat->alloc, text);
}

/* After a failure keep only the first n messages. The conversation stays
 * usable. */
static int restore(tnk_chat_t *chat, size_t n, int err, tnk__why_t *why) {
  /* An error of the heap is the real cause of any other error. */
  if (chat->heap.err != TNK_OK)
    err =
        tnk__why(why, chat->heap.err, 0,
                 chat->heap.err == TNK_ETOOBIG ? "the conversation is too large"
                                               : "out of memory");
  if (err != TNK_OK)
    chat->messages.as.list->n = n;
  chat->heap.err = TNK_OK;
  return err;
}

static int is_text(const char *text, size_t n) {
  return tnk__utf8_valid((const uint8_t *)text, n) == n;
}

int tnk_chat_add(tnk_chat_t *chat, const char *role, const char *text,
                 tnk_chat_error_t *error) {
  const size_t n = tnk_chat_count(chat);
  tnk__why_t why = {0};
  tnk__value_t message;
  int err = TNK_OK;

  if (chat == NULL || role == NULL || text == NULL || role[0] == '\0')
    err = tnk__why(&why, TNK_EINVAL, 0, "no conversation, role or text");
  else if (!is_text(role, strlen(role)) || !is_text(text, strlen(text)))
    err = tnk__why(&why, TNK_EINVAL, 0, "the message is not UTF-8");
  else if (strlen(text) > TNK__CHAT_MAX_FILE)
    err = tnk__why(&why, TNK_ETOOBIG, 0, "the message is over 64 MiB");
  if (err != TNK_OK)
    return tnk__chat_end(error, err, &why);
  message = tnk__value_dict(&chat->heap);
  tnk__value_set(&chat->heap, message, "role",
                 tnk__value_copy_text(&chat->heap, role, strlen(role)));
  tnk__value_set(&chat->heap, message, "content",
                 tnk__value_copy_text(&chat->heap, text, strlen(text)));
  tnk__value_append(&chat->heap, chat->messages, message);
  return tnk__chat_end(error, restore(chat, n, TNK_OK, &why), &why);
}

/* Messages in the form of templates are used as they are. */
static int read_plain(tnk__value_t json, tnk__value_t *messages,
                      tnk__value_t *tools, tnk__why_t *why) {
  *messages =
      json.kind == TNK__VALUE_LIST ? json : tnk__value_get(json, "messages");
  *tools = tnk__value_get(json, "tools");
  if (messages->kind != TNK__VALUE_LIST)
    return tnk__why(why, TNK_EINVAL, 0, "there is no list of messages");
  for (size_t i = 0; i < messages->as.list->n; i++)
    if (tnk__value_get(messages->as.list->items[i], "role").kind !=
        TNK__VALUE_TEXT)
      return tnk__why(why, TNK_EINVAL, 0, "messages[%zu] has no role", i);
  if (tools->kind != TNK__VALUE_UNDEFINED && tools->kind != TNK__VALUE_NONE &&
      tools->kind != TNK__VALUE_LIST)
    return tnk__why(why, TNK_EINVAL, 0, "tools is no list");
  return TNK_OK;
}

static int read_messages(tnk_chat_t *chat, tnk_chat_shape_t shape,
                         tnk__value_t json, tnk__why_t *why) {
  tnk__value_t messages = tnk__value_undefined();
  tnk__value_t tools = tnk__value_undefined();
  int err;

  if (shape == TNK_CHAT_TEMPLATE)
    err = read_plain(json, &messages, &tools, why);
  else
    err = tnk__message_read(&chat->heap, shape, json, &messages, &tools, why);
  for (size_t i = 0; err == TNK_OK && i < messages.as.list->n; i++)
    tnk__value_append(&chat->heap, chat->messages, messages.as.list->items[i]);
  if (err == TNK_OK && chat->heap.err == TNK_OK &&
      tools.kind == TNK__VALUE_LIST)
    chat->tools = tools;
  return err;
}

int tnk_chat_read(tnk_chat_t *chat, tnk_chat_shape_t shape, const char *json,
                  size_t n, tnk_chat_error_t *error) {
  const size_t n_before = tnk_chat_count(chat);
  tnk__why_t why = {0};
  tnk__value_t value;
  int err;

  if (chat == NULL || json == NULL || (unsigned)shape > TNK_CHAT_ANTHROPIC)
    err = tnk__why(&why, TNK_EINVAL, 0, "no conversation, text or shape");
  else if (n > TNK__CHAT_MAX_FILE)
    err = tnk__why(&why, TNK_ETOOBIG, 0, "the messages are over 64 MiB");
  else if (!is_text(json, n))
    err = tnk__why(&why, TNK_EINVAL, 0, "the messages are not UTF-8");
  else {
    err = tnk__value_from_json(&chat->heap, json, n, &value);
    err = err == TNK_EINVAL ? tnk__why(&why, err, 0, "it is not JSON")
          : err == TNK_OK   ? read_messages(chat, shape, value, &why)
                            : err;
    err = restore(chat, n_before, err, &why);
  }
  return tnk__chat_end(error, err, &why);
}

static int as_json(const tnk_chat_t *chat, tnk_chat_shape_t shape,
                   tnk__heap_t *heap, tnk__value_t *json, tnk__why_t *why) {
  int err = TNK_OK;

  if (shape != TNK_CHAT_TEMPLATE)
    return tnk__message_write(heap, shape, chat->messages,
                              chat->tools.kind == TNK__VALUE_LIST
                                  ? chat->tools
                                  : tnk__value_undefined(),
                              json, why);
  *json = tnk__value_dict(heap);
  tnk__value_set(heap, *json, "messages", chat->messages);
  if (chat->tools.kind == TNK__VALUE_LIST)
    tnk__value_set(heap, *json, "tools", chat->tools);
  return err;
}

int tnk_chat_write(const tnk_chat_t *chat, tnk_chat_shape_t shape, char **json,
                   size_t *n, tnk_chat_error_t *error) {
  tnk__why_t why = {0};
  tnk__value_t value = tnk__value_undefined();
  tnk__heap_t heap;
  tnk__buf_t out;
  int err;

  if (n != NULL)
    *n = 0;
  if (json != NULL)
    *json = NULL;
  if (chat == NULL || json == NULL || (unsigned)shape > TNK_CHAT_ANTHROPIC)
    return tnk__chat_end(
        error, tnk__why(&why, TNK_EINVAL, 0, "no conversation, place or shape"),
        &why);
  tnk__heap_init(&heap, &chat->alloc, TNK__CHAT_MAX_HEAP);
  tnk__buf_init(&out, &chat->alloc, SIZE_MAX / 2);
  err = as_json(chat, shape, &heap, &value, &why);
  if (err == TNK_OK)
    err = heap.err;
  if (err == TNK_OK)
    err = tnk__value_to_json(&out, value, NULL);
  if (err == TNK_OK && tnk__buf_cstr(&out) == NULL)
    err = TNK_ENOMEM;
  if (err == TNK_ETOOBIG)
    (void)tnk__why(&why, err, 0, "the conversation is too large");
  if (err == TNK_OK) {
    if (n != NULL)
      *n = out.len;
    *json = (char *)out.data;
    out.data = NULL;
  }
  tnk__buf_deinit(&out);
  tnk__heap_deinit(&heap);
  return tnk__chat_end(error, err, &why);
}

/* Remove a variable. A dict cannot drop a member, so it is rebuilt. */
static void drop_variable(tnk_chat_t *chat, tnk__value_t name) {
  const tnk__value_dict_t *dict = chat->variables.as.dict;
  tnk__value_t left;

  if (!tnk__value_has(chat->variables, name))
    return;
  left = tnk__value_dict(&chat->heap);
  for (size_t i = 0; i < dict->n; i++)
    if (!tnk__value_equal(dict->entries[i].key, name))
      tnk__value_put(&chat->heap, left, dict->entries[i].key,
                     dict->entries[i].value);
  if (chat->heap.err == TNK_OK)
    chat->variables = left;
}

/* Changes the dict in place: nothing else uses the variables between two
 * calls. */
static int set_variable(tnk_chat_t *chat, tnk__value_t name, const char *json,
                        tnk__why_t *why) {
  tnk__value_t value;
  const int err = tnk__value_from_json(&chat->heap, json, strlen(json), &value);

  if (err == TNK_EINVAL)
    return tnk__why(why, err, 0, "the value of \"%.64s\" is not JSON",
                    name.as.text);
  if (err == TNK_OK && !tnk__value_has(chat->variables, name))
    name = tnk__value_copy_text(&chat->heap, name.as.text, name.n_text);
  if (err == TNK_OK && chat->heap.err == TNK_OK)
    tnk__value_put(&chat->heap, chat->variables, name, value);
  return err;
}

int tnk_chat_set(tnk_chat_t *chat, const char *name, const char *json,
                 tnk_chat_error_t *error) {
  tnk__why_t why = {0};
  int err = TNK_OK;

  if (chat == NULL || name == NULL || name[0] == '\0' ||
      !is_text(name, strlen(name)))
    err = tnk__why(&why, TNK_EINVAL, 0, "no conversation or name");
  else if (strcmp(name, "messages") == 0 || strcmp(name, "tools") == 0 ||
           strcmp(name, "add_generation_prompt") == 0)
    err =
        tnk__why(&why, TNK_EINVAL, 0, "\"%s\" is no variable to be set", name);
  else if (json != NULL && !is_text(json, strlen(json)))
    err = tnk__why(&why, TNK_EINVAL, 0, "the value is not UTF-8");
  if (err != TNK_OK)
    return tnk__chat_end(error, err, &why);
  if (json == NULL)
    drop_variable(chat, tnk__value_text(name, strlen(name)));
  else
    err = set_variable(chat, tnk__value_text(name, strlen(name)), json, &why);
  err = restore(chat, tnk_chat_count(chat), err, &why);
  return tnk__chat_end(error, err, &why);
}

/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/answer/state.h"

/* Readers of blocks with JSON arguments. */

/* Add a call from an object with a name and arguments. */
static tnk__read_t add_object(tnk__answer_t *answer, tnk__value_t call) {
  static const char *const members[] = {"arguments", "parameters"};
  tnk__value_t name = tnk__value_get(call, "name");
  tnk__value_t id = tnk__value_get(call, "id");
  tnk__value_t arguments = tnk__value_undefined();
  int has_id = id.kind == TNK__VALUE_TEXT && id.n_text > 0;
  tnk__read_t what;

  if (call.kind != TNK__VALUE_DICT)
    return tnk__call_bad(answer, "the call is no object");
  if (name.kind != TNK__VALUE_TEXT || name.n_text == 0)
    return tnk__call_bad(answer, "the call has no name");
  for (size_t i = 0; i < 2 && arguments.kind == TNK__VALUE_UNDEFINED; i++)
    arguments = tnk__value_get(call, members[i]);
  if (arguments.kind == TNK__VALUE_UNDEFINED)
    return tnk__call_bad(answer, "the call has no arguments");
  if (arguments.kind == TNK__VALUE_TEXT) {
    what = tnk__call_arguments(answer, arguments.as.text, arguments.n_text,
                               &arguments);
    if (what != TNK__READ_CALLS) /* the text was complete */
      return TNK__READ_BAD;
  }
  if (arguments.kind != TNK__VALUE_DICT)
    return tnk__call_bad(answer, "the arguments are no object");
  tnk__call_add(answer, name.as.text, name.n_text, has_id ? id.as.text : NULL,
                id.n_text, arguments);
  return TNK__READ_CALLS;
}

/* Read JSON that is a call or a list of calls. */
static tnk__read_t read_objects(tnk__answer_t *answer, const char *text,
                                size_t n) {
  tnk__read_t what = TNK__READ_CALLS;
  tnk__value_t value;

  if (tnk__value_from_json(&answer->heap, text, n, &value) != TNK_OK)
    return tnk__call_json_is_open(text, n)
               ? tnk__call_open(answer)
               : tnk__call_bad(answer, "the call is no JSON");
  if (value.kind != TNK__VALUE_LIST)
    return add_object(answer, value);
  if (value.as.list->n == 0)
    return tnk__call_bad(answer, "the list has no calls");
  for (size_t i = 0; i < value.as.list->n && what == TNK__READ_CALLS; i++)
    what = add_object(answer, value.as.list->items[i]);
  return what;
}

tnk__read_t tnk__read_hermes(tnk__answer_t *answer, const char *text,
                             size_t n) {
  return read_objects(answer, text, n);
}

/* Add a call with a name and JSON arguments. */
static tnk__read_t add_named(tnk__answer_t *answer, const char *name,
                             size_t n_name, const char *id, size_t n_id,
                             const char *text, size_t n) {
  tnk__value_t arguments;
  tnk__read_t what;

  tnk__call_trim(&name, &n_name);
  if (n_name == 0)
    return tnk__call_bad(answer, "the call has no name");
  what = tnk__call_arguments(answer, text, n, &arguments);
  if (what == TNK__READ_CALLS)
    tnk__call_add(answer, name, n_name, id, n_id, arguments);
  return what;
}

/* Newer models write a name and its arguments. Older models write the type, the
 * name, and the arguments in a code fence. */
tnk__read_t tnk__read_deepseek(tnk__answer_t *answer, const char *text,
                               size_t n) {
  static const char sep[] = "<\xef\xbd\x9c"
                            "tool\xe2\x96\x81"
                            "sep\xef\xbd\x9c>";
  const char *name, *in_fence;
  size_t n_name, n_in_fence;

  if (!tnk__call_upto(&text, &n, sep, &name, &n_name))
    return tnk__call_bad(answer, "the call has no name");
  tnk__call_trim(&text, &n);
  /* Newer format: the arguments are an object, or empty. */
  if (n == 0 || text[0] == '{')
    return add_named(answer, name, n_name, NULL, 0, text, n);
  if (!tnk__call_upto(&text, &n, "\n```json\n", &in_fence, &n_in_fence))
    return tnk__call_bad(answer, "the call has no arguments");
  if (n < 3 || memcmp(text + n - 3, "```", 3) != 0)
    return tnk__call_json_is_open(text, n)
               ? tnk__call_open(answer)
               : tnk__call_bad(answer, "the fence has no end");
  return add_named(answer, in_fence, n_in_fence, NULL, 0, text, n - 3);
}

/* functions.NAME:INDEX, which is also the id. */
tnk__read_t tnk__read_kimi(tnk__answer_t *answer, const char *text, size_t n) {
  const char *id, *name, *colon;
  size_t n_id, n_name;

  if (!tnk__call_upto(&text, &n, "<|tool_call_argument_begin|>", &id, &n_id))
    return tnk__call_bad(answer, "the call has no arguments");
  tnk__call_trim(&id, &n_id);
  name = id;
  n_name = n_id;
  (void)tnk__call_skip(&name, &n_name, "functions.");
  for (colon = name + n_name; colon > name && colon[-1] != ':'; colon--)
    ;
  if (colon > name)
    n_name = (size_t)(colon - name) - 1;
  return add_named(answer, name, n_name, id, n_id, text, n);
}

/* A list of objects, or a name, an optional id, and arguments. */
tnk__read_t tnk__read_mistral(tnk__answer_t *answer, const char *text,
                              size_t n) {
  const char *name, *id = NULL, *head;
  size_t n_name, n_id = 0, n_head;

  tnk__call_trim(&text, &n);
  if (n > 0 && (text[0] == '[' || text[0] == '{') &&
      memcmp(text, "[ARGS]", n < 6 ? n : 6) != 0)
    return read_objects(answer, text, n);
  if (!tnk__call_upto(&text, &n, "[ARGS]", &name, &n_name))
    return tnk__call_bad(answer, "the call has no arguments");
  head = name;
  n_head = n_name;
  if (tnk__call_upto(&head, &n_head, "[CALL_ID]", &name, &n_name)) {
    id = head;
    n_id = n_head;
    tnk__call_trim(&id, &n_id);
    if (n_id == 0)
      return tnk__call_bad(answer, "the call has an empty id");
  }
  return add_named(answer, name, n_name, id, n_id, text, n);
}

/* Length of the first object in a text. 0: it does not end. */
static size_t object_end(const char *text, size_t n) {
  int is_text = 0;
  size_t depth = 0;

  for (size_t i = 0; i < n && text[0] == '{'; i++) {
    if (is_text && text[i] == '\\')
      i++;
    else if (text[i] == '"')
      is_text = !is_text;
    else if (!is_text && text[i] == '{')
      depth++;
    else if (!is_text && text[i] == '}' && --depth == 0)
      return i + 1;
  }
  return 0;
}

/* One object, or several separated by semicolons. After the control token there
 * may also be code, which is not a call. */
tnk__read_t tnk__read_llama(tnk__answer_t *answer, const char *text, size_t n) {
  if (answer->block_by == TNK__DOES_BARE)
    text--, n++; /* the mark is part of the object */
  for (;;) {
    tnk__value_t name, value;
    tnk__read_t what;
    size_t end;

    tnk__call_trim(&text, &n);
    end = object_end(text, n);
    if (end == 0)
      return tnk__call_bad(answer, "the call is no JSON");
    if (tnk__value_from_json(&answer->heap, text, end, &value) != TNK_OK)
      return tnk__call_bad(answer, "the call is no JSON");
    name = tnk__value_get(value, "name");
    if (answer->block_by == TNK__DOES_BARE && name.kind == TNK__VALUE_TEXT &&
        !tnk__call_is_known(answer, name.as.text, name.n_text))
      return tnk__call_bad(answer, "no tool has this name");
    what = add_object(answer, value);
    if (what != TNK__READ_CALLS)
      return what;
    text += end;
    n -= end;
    tnk__call_trim(&text, &n);
    if (n == 0)
      return TNK__READ_CALLS;
    if (!tnk__call_skip(&text, &n, ";"))
      return tnk__call_bad(answer, "there is text behind the call");
  }
}

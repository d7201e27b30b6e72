/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/answer/state.h"

/* ---- Blocks with JSON arguments ---- */

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

/* ---- Blocks with arguments between marks ---- */

#define BAR "\xef\xbd\x9c" /* U+FF5C */

/* Set an argument. Fails if it is already set. */
static int set_argument(tnk__answer_t *answer, tnk__value_t arguments,
                        const char *key, size_t n_key, tnk__value_t value) {
  tnk__value_t name = tnk__value_copy_text(&answer->heap, key, n_key);

  if (answer->heap.err == TNK_OK &&
      tnk__value_find(arguments, name).kind != TNK__VALUE_UNDEFINED)
    return 0;
  tnk__value_put(&answer->heap, arguments, name, value);
  return 1;
}

static tnk__read_t given_twice(tnk__answer_t *answer, const char *key,
                               size_t n) {
  return tnk__call_bad(answer, "the argument \"%.*s\" is given twice",
                       (int)(n < 64 ? n : 64), key);
}

/* Remove one newline at each end of a value. */
static void unframe(const char **text, size_t *n) {
  if (*n > 0 && **text == '\n')
    (*text)++, (*n)--;
  if (*n > 0 && (*text)[*n - 1] == '\n')
    (*n)--;
}

/* <parameter=KEY> VALUE </parameter> ... </function> */
static tnk__read_t read_function(tnk__answer_t *answer, const char **text,
                                 size_t *n) {
  tnk__value_t arguments = tnk__value_dict(&answer->heap);
  const char *name, *key, *value;
  size_t n_name, n_key, n_value;

  if (!tnk__call_upto(text, n, ">", &name, &n_name) || n_name == 0)
    return tnk__call_bad(answer, "the call has no name");
  for (;;) {
    tnk__call_trim(text, n);
    if (tnk__call_skip(text, n, "</function>"))
      break;
    if (!tnk__call_skip(text, n, "<parameter="))
      return tnk__call_bad(answer, "there is text between the arguments");
    if (!tnk__call_upto(text, n, ">", &key, &n_key))
      return tnk__call_bad(answer, "an argument has no name");
    if (!tnk__call_upto(text, n, "</parameter>", &value, &n_value))
      return tnk__call_open(answer);
    unframe(&value, &n_value);
    if (!set_argument(
            answer, arguments, key, n_key,
            tnk__call_typed(answer, name, n_name, key, n_key, value, n_value)))
      return given_twice(answer, key, n_key);
  }
  tnk__call_add(answer, name, n_name, NULL, 0, arguments);
  return TNK__READ_CALLS;
}

tnk__read_t tnk__read_xml(tnk__answer_t *answer, const char *text, size_t n) {
  tnk__read_t what = TNK__READ_CALLS;

  tnk__call_trim(&text, &n);
  if (n == 0)
    return tnk__call_bad(answer, "the block has no call");
  while (what == TNK__READ_CALLS && n > 0) {
    if (!tnk__call_skip(&text, &n, "<function="))
      return tnk__call_bad(answer, "the block has more than calls");
    what = read_function(answer, &text, &n);
    tnk__call_trim(&text, &n);
  }
  return what;
}

tnk__read_t tnk__read_glm(tnk__answer_t *answer, const char *text, size_t n) {
  tnk__value_t arguments = tnk__value_dict(&answer->heap);
  const char *name, *key, *value, *pairs;
  size_t n_name, n_key, n_value;

  tnk__call_trim(&text, &n);
  pairs = tnk__call_find(text, n, "<arg_key>");
  name = text;
  n_name = pairs == NULL ? n : (size_t)(pairs - text);
  text += n_name;
  n -= n_name;
  tnk__call_trim(&name, &n_name);
  if (n_name == 0)
    return tnk__call_bad(answer, "the call has no name");
  if (memchr(name, '\n', n_name) != NULL || memchr(name, '<', n_name) != NULL)
    return tnk__call_bad(answer, "there is text between the arguments");
  while (n > 0) {
    if (!tnk__call_skip(&text, &n, "<arg_key>"))
      return tnk__call_bad(answer, "there is text between the arguments");
    if (!tnk__call_upto(&text, &n, "</arg_key>", &key, &n_key))
      return tnk__call_bad(answer, "an argument has no name");
    tnk__call_trim(&text, &n);
    if (!tnk__call_skip(&text, &n, "<arg_value>"))
      return tnk__call_bad(answer, "an argument has no value");
    if (!tnk__call_upto(&text, &n, "</arg_value>", &value, &n_value))
      return tnk__call_open(answer);
    tnk__call_trim(&key, &n_key);
    if (!set_argument(
            answer, arguments, key, n_key,
            tnk__call_typed(answer, name, n_name, key, n_key, value, n_value)))
      return given_twice(answer, key, n_key);
    tnk__call_trim(&text, &n);
  }
  tnk__call_add(answer, name, n_name, NULL, 0, arguments);
  return TNK__READ_CALLS;
}

/* Read one argument of DSML, after the mark that starts it. */
static tnk__read_t read_parameter(tnk__answer_t *answer, const char **text,
                                  size_t *n, tnk__value_t arguments) {
  const char *key, *is_text, *value;
  size_t n_key, n_is_text, n_value;
  tnk__value_t read;

  if (!tnk__call_skip(text, n, " name=\"") ||
      !tnk__call_upto(text, n, "\" string=\"", &key, &n_key) ||
      !tnk__call_upto(text, n, "\">", &is_text, &n_is_text))
    return tnk__call_bad(answer, "an argument has no name or no type");
  if (!tnk__call_upto(text, n, "</" BAR "DSML" BAR "parameter>", &value,
                      &n_value))
    return tnk__call_open(answer);
  if (n_is_text == 4 && memcmp(is_text, "true", 4) == 0)
    read = tnk__value_copy_text(&answer->heap, value, n_value);
  else if (n_is_text != 5 || memcmp(is_text, "false", 5) != 0 ||
           tnk__value_from_json(&answer->heap, value, n_value, &read) != TNK_OK)
    return tnk__call_bad(answer, "the argument \"%.*s\" is no JSON",
                         (int)(n_key < 64 ? n_key : 64), key);
  return set_argument(answer, arguments, key, n_key, read)
             ? TNK__READ_CALLS
             : given_twice(answer, key, n_key);
}

tnk__read_t tnk__read_dsml(tnk__answer_t *answer, const char *text, size_t n) {
  tnk__value_t arguments = tnk__value_dict(&answer->heap);
  tnk__read_t what = TNK__READ_CALLS;
  const char *name;
  size_t n_name;

  if (!tnk__call_skip(&text, &n, " name=\"") ||
      !tnk__call_upto(&text, &n, "\">", &name, &n_name) || n_name == 0)
    return tnk__call_bad(answer, "the call has no name");
  for (tnk__call_trim(&text, &n); what == TNK__READ_CALLS && n > 0;
       tnk__call_trim(&text, &n)) {
    if (!tnk__call_skip(&text, &n, "<" BAR "DSML" BAR "parameter"))
      return tnk__call_bad(answer, "there is text between the arguments");
    what = read_parameter(answer, &text, &n, arguments);
  }
  if (what == TNK__READ_CALLS)
    tnk__call_add(answer, name, n_name, NULL, 0, arguments);
  return what;
}

/* The value of an attribute, in which & and " are escaped. */
static tnk__value_t unescape(tnk__answer_t *answer, const char *text,
                             size_t n) {
  tnk__buf_t *buf = &answer->scratch;

  tnk__buf_clear(buf);
  while (n > 0) {
    if (tnk__call_skip(&text, &n, "&quot;")) {
      (void)tnk__buf_byte(buf, '"');
    } else {
      (void)tnk__buf_byte(buf, (uint8_t)*text);
      if (!tnk__call_skip(&text, &n, "&amp;"))
        text++, n--;
    }
  }
  if (answer->err == TNK_OK)
    answer->err = buf->err;
  return tnk__value_copy_text(&answer->heap, (const char *)buf->data, buf->len);
}

/* Read the attributes of an XTML tag up to its end. *its is the value of
 * `wanted` and *type the type; each is undefined if it is missing. */
static tnk__read_t read_tag(tnk__answer_t *answer, const char **text, size_t *n,
                            const char *wanted, tnk__value_t *its,
                            tnk__value_t *type) {
  const char *name, *value;
  size_t n_name, n_value;

  *its = *type = tnk__value_undefined();
  for (;;) {
    while (tnk__call_skip(text, n, " "))
      ;
    if (tnk__call_skip(text, n, "<|sep|>"))
      return TNK__READ_CALLS;
    if (!tnk__call_upto(text, n, "=\"", &name, &n_name) ||
        !tnk__call_upto(text, n, "\"", &value, &n_value))
      return tnk__call_open(answer);
    if (n_name == strlen(wanted) && memcmp(name, wanted, n_name) == 0)
      *its = unescape(answer, value, n_value);
    else if (n_name == 4 && memcmp(name, "type", 4) == 0)
      *type = unescape(answer, value, n_value);
  }
}

/* Read all arguments of XTML as one object, after the name of the tag. */
static tnk__read_t read_json_tag(tnk__answer_t *answer, const char *text,
                                 size_t n, tnk__value_t *arguments) {
  tnk__value_t none, type;
  tnk__read_t what = read_tag(answer, &text, &n, "", &none, &type);
  const char *json;
  size_t n_json;

  if (what != TNK__READ_CALLS)
    return what;
  if (!tnk__call_upto(&text, &n, "<|close|>json<|sep|>", &json, &n_json))
    return tnk__call_open(answer);
  tnk__call_trim(&text, &n);
  if (n > 0)
    return tnk__call_bad(answer, "there is text behind the arguments");
  what = tnk__call_arguments(answer, json, n_json, arguments);
  return what == TNK__READ_CALLS ? what
                                 : TNK__READ_BAD; /* the text was complete */
}

/* Read one argument of XTML, after the name of its tag. */
static tnk__read_t read_argument(tnk__answer_t *answer, tnk__value_t name,
                                 const char **text, size_t *n,
                                 tnk__value_t arguments) {
  tnk__value_t key, type, read;
  tnk__read_t what = read_tag(answer, text, n, "key", &key, &type);
  const char *value;
  size_t n_value;

  if (what != TNK__READ_CALLS)
    return what;
  if (key.kind != TNK__VALUE_TEXT)
    return tnk__call_bad(answer, "an argument has no name");
  if (!tnk__call_upto(text, n, "<|close|>argument<|sep|>", &value, &n_value))
    return tnk__call_open(answer);
  if (tnk__value_is(type, "string"))
    read = tnk__value_copy_text(&answer->heap, value, n_value);
  else if (type.kind != TNK__VALUE_TEXT)
    read = tnk__call_typed(answer, name.as.text, name.n_text, key.as.text,
                           key.n_text, value, n_value);
  else if (tnk__value_from_json(&answer->heap, value, n_value, &read) != TNK_OK)
    return tnk__call_bad(answer, "the argument \"%.*s\" is no JSON",
                         (int)(key.n_text < 64 ? key.n_text : 64), key.as.text);
  return set_argument(answer, arguments, key.as.text, key.n_text, read)
             ? TNK__READ_CALLS
             : given_twice(answer, key.as.text, key.n_text);
}

/* Read a call of XTML, after the name of its tag. */
tnk__read_t tnk__read_xtml(tnk__answer_t *answer, const char *text, size_t n) {
  tnk__value_t arguments = tnk__value_dict(&answer->heap), name, type;
  tnk__read_t what = read_tag(answer, &text, &n, "tool", &name, &type);

  if (what != TNK__READ_CALLS)
    return what;
  if (name.kind != TNK__VALUE_TEXT || name.n_text == 0)
    return tnk__call_bad(answer, "the call has no name");
  tnk__call_trim(&text, &n);
  if (tnk__call_skip(&text, &n, "<|open|>json ")) {
    what = read_json_tag(answer, text, n, &arguments);
    n = 0;
  }
  for (; what == TNK__READ_CALLS && n > 0; tnk__call_trim(&text, &n)) {
    if (!tnk__call_skip(&text, &n, "<|open|>argument "))
      return tnk__call_bad(answer, "there is text between the arguments");
    what = read_argument(answer, name, &text, &n, arguments);
  }
  if (what == TNK__READ_CALLS)
    tnk__call_add(answer, name.as.text, name.n_text, NULL, 0, arguments);
  return what;
}

/* ---- Harmony ----
 *
 * Messages with headers. A header names a channel, and optionally the recipient
 * of the message. */

#define START_MARK "<|start|>"
#define CHANNEL_MARK "<|channel|>"
#define MESSAGE_MARK "<|message|>"

int tnk__harmony_may_begin(const char *text, size_t n, int is_end) {
  static const char *const fronts[] = {START_MARK, CHANNEL_MARK, MESSAGE_MARK,
                                       " to=", "to="};

  for (size_t i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
    size_t n_front = strlen(fronts[i]);

    if ((n >= n_front || !is_end) &&
        memcmp(text, fronts[i], n < n_front ? n : n_front) == 0)
      return 1;
  }
  return 0;
}

/* Read a word, up to a space or a mark. */
static void take_word(const char **text, size_t *n, const char **word,
                      size_t *n_word) {
  *word = *text;
  while (*n > 0 && **text != ' ' && **text != '<')
    (*text)++, (*n)--;
  *n_word = (size_t)(*text - *word);
}

static int is_word(const char *word, size_t n, const char *what) {
  return n == strlen(what) && memcmp(word, what, n) == 0;
}

tnk__header_t tnk__harmony_header(const char *text, size_t n, const char **to,
                                  size_t *n_to) {
  const char *channel = "final", *word;
  size_t n_channel = 5, n_word;

  *to = NULL;
  *n_to = 0;
  if (tnk__call_skip(&text, &n, START_MARK)) {
    take_word(&text, &n, &word, &n_word);
    if (!is_word(word, n_word, "assistant")) {
      *to = word;
      *n_to = n_word;
      return TNK__HEADER_OTHER;
    }
  }
  while (n > 0) {
    if (tnk__call_skip(&text, &n, " "))
      continue;
    if (tnk__call_skip(&text, &n, "to=")) {
      take_word(&text, &n, to, n_to);
    } else if (tnk__call_skip(&text, &n, CHANNEL_MARK)) {
      take_word(&text, &n, &channel, &n_channel);
    } else {
      /* The type of the content. A mark may precede it. */
      (void)tnk__call_skip(&text, &n, "<|constrain|>");
      take_word(&text, &n, &word, &n_word);
      if (n_word == 0)
        return TNK__HEADER_BAD;
    }
  }
  if (*to != NULL)
    return *n_to > 0 ? TNK__HEADER_CALL : TNK__HEADER_BAD;
  if (is_word(channel, n_channel, "analysis"))
    return TNK__HEADER_THINKING;
  return is_word(channel, n_channel, "final") ||
                 is_word(channel, n_channel, "commentary")
             ? TNK__HEADER_CONTENT
             : TNK__HEADER_BAD;
}

tnk__read_t tnk__read_harmony(tnk__answer_t *answer, const char *text,
                              size_t n) {
  const char *header = (const char *)answer->pending.data + answer->at, *to;
  size_t n_header = answer->inner - answer->at - (sizeof(MESSAGE_MARK) - 1);
  size_t n_to;
  tnk__value_t arguments;
  tnk__read_t what;

  if (tnk__harmony_header(header, n_header, &to, &n_to) != TNK__HEADER_CALL)
    return tnk__call_bad(answer, "the message is not the assistant's");
  what = tnk__call_arguments(answer, text, n, &arguments);
  if (what != TNK__READ_CALLS)
    return what;
  (void)tnk__call_skip(&to, &n_to, "functions.");
  if (n_to == 0)
    return tnk__call_bad(answer, "the call has no name");
  tnk__call_add(answer, to, n_to, NULL, 0, arguments);
  return TNK__READ_CALLS;
}

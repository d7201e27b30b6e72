/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "chat/answer/state.h"

/* Readers of blocks with arguments between marks. */

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

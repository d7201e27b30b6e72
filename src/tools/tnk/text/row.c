/* SPDX-License-Identifier: MIT */
#include "tools/tnk/text/row.h"

#include <stdio.h>
#include <string.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

typedef struct {
  json_t *json;
  const char *messages;
  char *why;
  size_t n_why;
} reader_t;

static int refuse(const reader_t *reader, const char *name, const char *what) {
  snprintf(reader->why, reader->n_why, "\"%s\" %s", name, what);
  return TNK_EINVAL;
}

/* ---- A conversation ---- */

/* Append a member: a text, a message, or messages. */
static int append(const reader_t *reader, json_t *out, const json_t *from,
                  const char *name, const char *role) {
  json_t *member = json_object_get(from, name);
  int failed;

  if (member == NULL)
    return refuse(reader, name, "is missing");
  if (json_is_string(member))
    failed = json_array_append_new(
        out, json_pack("{s:s, s:O}", "role", role, "content", member));
  else if (json_is_object(member))
    failed = json_array_append(out, member);
  else if (json_is_array(member))
    failed = json_array_extend(out, member);
  else
    return refuse(reader, name, "is neither a text nor a list of messages");
  return failed ? TNK_ENOMEM : TNK_OK;
}

/* Write the row as a conversation of these messages. */
static int write_chat(const reader_t *reader, json_t *messages, char **out) {
  static const char *const used[] = {"prompt",   "completion", "chosen",
                                     "rejected", "comparison", "label"};
  json_t *chat = json_copy(reader->json);

  if (chat == NULL)
    return TNK_ENOMEM;
  for (size_t i = 0; i < sizeof(used) / sizeof(*used); i++)
    (void)json_object_del(chat, used[i]);
  if (json_object_set(chat, reader->messages, messages) == 0)
    *out = json_dumps(chat, JSON_COMPACT);
  json_decref(chat);
  return *out != NULL ? TNK_OK : TNK_ENOMEM;
}

/* Make a conversation of a prompt and an answer, which are members of `from`.
 * Without a prompt the answer must be a whole conversation. */
static int make(const reader_t *reader, const json_t *from, const char *prompt,
                const char *answer, char **out) {
  json_t *messages = json_array();
  int err = messages != NULL ? TNK_OK : TNK_ENOMEM;

  if (err == TNK_OK && (json_object_get(from, prompt) != NULL ||
                        !json_is_array(json_object_get(from, answer))))
    err = append(reader, messages, from, prompt, "user");
  if (err == TNK_OK)
    err = append(reader, messages, from, answer, "assistant");
  if (err == TNK_OK)
    err = write_chat(reader, messages, out);
  json_decref(messages);
  return err;
}

/* ---- A row ---- */

static int begin(reader_t *reader, cli_row_t *row, const char *text, size_t n) {
  int err;

  memset(row, 0, sizeof(*row));
  err = tnk__json_parse_object(&reader->json, text, n);
  if (err == TNK_EPROTO)
    snprintf(reader->why, reader->n_why, "it is not a JSON object");
  return err;
}

int cli_row_completion(cli_row_t *row, const char *text, size_t n,
                       const char *messages, char *why, size_t n_why) {
  reader_t reader = {.messages = messages, .why = why, .n_why = n_why};
  int err = begin(&reader, row, text, n);

  if (err == TNK_OK && json_object_get(reader.json, "completion") == NULL) {
    err = refuse(&reader, "completion", "is missing");
    /* A row without a prompt is of another kind, which is not an error. */
    if (json_object_get(reader.json, "prompt") == NULL ||
        json_object_get(reader.json, messages) != NULL)
      err = err == TNK_EINVAL ? TNK_EPROTO : err;
  }
  if (err == TNK_OK && json_object_get(reader.json, "prompt") == NULL)
    err = refuse(&reader, "prompt", "is missing");
  if (err == TNK_OK)
    err = make(&reader, reader.json, "prompt", "completion", &row->chats[0]);
  json_decref(reader.json);
  return err;
}

static int read_comparison(const reader_t *reader, cli_row_t *row,
                           const json_t *comparison) {
  static const char *const answers[] = {"completion_A", "completion_B"};
  const char *label = tnk__json_str(reader->json, "label");
  int first, err;

  if (!json_is_object(comparison))
    return refuse(reader, "comparison", "is not an object");
  if (label == NULL || (strcmp(label, "A") != 0 && strcmp(label, "B") != 0))
    return refuse(reader, "label", "is neither \"A\" nor \"B\"");
  first = strcmp(label, "B") == 0;
  err = make(reader, comparison, "prompt_conversation", answers[first],
             &row->chats[CLI_ROW_CHOSEN]);
  return err == TNK_OK ? make(reader, comparison, "prompt_conversation",
                              answers[!first], &row->chats[CLI_ROW_REJECTED])
                       : err;
}

int cli_row_pair(cli_row_t *row, const char *text, size_t n,
                 const char *messages, char *why, size_t n_why) {
  static const char *const answers[] = {"chosen", "rejected"};
  reader_t reader = {.messages = messages, .why = why, .n_why = n_why};
  const json_t *comparison;
  int err = begin(&reader, row, text, n);

  comparison = json_object_get(reader.json, "comparison");
  if (err == TNK_OK && comparison != NULL)
    err = read_comparison(&reader, row, comparison);
  else
    for (size_t i = 0; i < CLI_ROW_PARTS && err == TNK_OK; i++)
      if (json_object_get(reader.json, answers[i]) == NULL)
        err = refuse(&reader, answers[i], "is missing");
      else
        err = make(&reader, reader.json, "prompt", answers[i], &row->chats[i]);
  json_decref(reader.json);
  return err == TNK_EPROTO ? TNK_EINVAL : err;
}

/* Returns whether the model has written a message. */
static int is_answer(const json_t *message) {
  static const char *const types[] = {"function_call", "reasoning", NULL};
  const char *role = tnk__json_str(message, "role");
  const char *type = tnk__json_str(message, "type");
  int is = role != NULL && strcmp(role, "assistant") == 0;

  for (size_t i = 0; types[i] != NULL && role == NULL && type != NULL; i++)
    is |= strcmp(type, types[i]) == 0;
  return is;
}

/* The messages of a row up to the answer at its end. */
static int read_prompt(const reader_t *reader, json_t *messages) {
  const char *from = json_object_get(reader->json, reader->messages) != NULL
                         ? reader->messages
                         : "prompt";
  int err = append(reader, messages, reader->json, from, "user");
  size_t n;

  while (err == TNK_OK && (n = json_array_size(messages)) > 0 &&
         is_answer(json_array_get(messages, n - 1)))
    if (json_array_remove(messages, n - 1) != 0)
      err = TNK_ENOMEM;
  if (err == TNK_OK && json_array_size(messages) == 0)
    return refuse(reader, from, "has no message before the answer");
  return err;
}

int cli_row_prompt(cli_row_t *row, const char *text, size_t n,
                   const char *messages, char *why, size_t n_why) {
  reader_t reader = {.messages = messages, .why = why, .n_why = n_why};
  int err = begin(&reader, row, text, n);
  json_t *prompt = json_array();

  if (err == TNK_OK)
    err = prompt != NULL ? read_prompt(&reader, prompt) : TNK_ENOMEM;
  if (err == TNK_OK)
    err = write_chat(&reader, prompt, &row->chats[0]);
  json_decref(prompt);
  json_decref(reader.json);
  return err == TNK_EPROTO ? TNK_EINVAL : err;
}

void cli_row_free(cli_row_t *row) {
  for (size_t i = 0; i < CLI_ROW_PARTS; i++)
    tnk__json_free_string(row->chats[i]);
}

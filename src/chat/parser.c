/* SPDX-License-Identifier: MIT */
/* Sampled ids to messages: bytes are joined to whole characters, and passed to
 * the parser of the family. */
#include <string.h>

#include "chat/answer/answer.h"
#include "chat/object.h"
#include "lib/base/alloc.h"
#include "lib/base/utf8.h"

#define MAX_BYTES ((size_t)64 * 1024 * 1024)

struct tnk_chat_parser {
  tnk_allocator_t alloc;
  tnk__coder_t coder;
  tnk__heap_t heap; /* memory of the tools, the stops and the message */
  tnk_chat_family_t family;
  tnk__value_t tools;
  tnk__answer_options_t options;
  tnk__answer_t *answer; /* NULL until the first ids */
  tnk__buf_t
      bytes; /* held back bytes of an incomplete character, then new bytes */
  tnk__buf_t text;
  tnk__buf_t json;
  int is_done;
};

/* Copy the tools, as the parser may outlive the conversation. */
static int copy_tools(tnk_chat_parser_t *parser, const tnk_chat_t *chat,
                      tnk__why_t *why) {
  int err;

  parser->tools = tnk__value_undefined();
  if (chat == NULL || chat->tools.kind != TNK__VALUE_LIST)
    return TNK_OK;
  err = tnk__value_to_json(&parser->json, chat->tools, NULL);
  if (err == TNK_OK)
    err = tnk__value_from_json(&parser->heap, (const char *)parser->json.data,
                               parser->json.len, &parser->tools);
  return err == TNK_OK ? TNK_OK
                       : tnk__why(why, err, 0, "the tools cannot be copied");
}

/* Count the calls of earlier answers, so that new ids differ from theirs. */
static size_t count_calls(const tnk_chat_t *chat) {
  size_t n = 0;

  for (size_t i = 0; chat != NULL && i < chat->messages.as.list->n; i++) {
    const tnk__value_t calls =
        tnk__value_get(chat->messages.as.list->items[i], "tool_calls");

    if (calls.kind == TNK__VALUE_LIST)
      n += calls.as.list->n;
  }
  return n;
}

static int fill(tnk_chat_parser_t *parser,
                const tnk_chat_tokenizer_t *tokenizer, const tnk_chat_t *chat,
                tnk__why_t *why) {
  const int err = tnk__chat_coder(&parser->coder, tokenizer, 0, why);

  parser->options.first_id = count_calls(chat);
  return err == TNK_OK ? copy_tools(parser, chat, why) : err;
}

int tnk_chat_parser_open(tnk_chat_parser_t **out, tnk_chat_family_t family,
                         const tnk_chat_tokenizer_t *tokenizer,
                         const tnk_chat_t *chat,
                         const tnk_allocator_t *allocator,
                         tnk_chat_error_t *error) {
  const tnk_allocator_t *alloc =
      allocator != NULL ? allocator : tnk__allocator_default();
  tnk_chat_parser_t *parser;
  tnk__why_t why = {0};
  int err;

  if (out != NULL)
    *out = NULL;
  if (out == NULL || (unsigned)family > TNK_CHAT_XTML)
    return tnk__chat_end(
        error, tnk__why(&why, TNK_EINVAL, 0, "no place, or no such family"),
        &why);
  parser = tnk__calloc(alloc, 1, sizeof(*parser));
  if (parser == NULL)
    return tnk__chat_end(error, tnk__why(&why, TNK_ENOMEM, 0, "out of memory"),
                         &why);
  parser->alloc = *alloc;
  parser->family = family;
  tnk__heap_init(&parser->heap, &parser->alloc, MAX_BYTES);
  tnk__buf_init(&parser->bytes, &parser->alloc, MAX_BYTES);
  tnk__buf_init(&parser->text, &parser->alloc, MAX_BYTES);
  tnk__buf_init(&parser->json, &parser->alloc, MAX_BYTES);
  err = fill(parser, tokenizer, chat, &why);
  if (err == TNK_OK)
    *out = parser;
  else
    tnk_chat_parser_free(parser);
  return tnk__chat_end(error, err, &why);
}

void tnk_chat_parser_free(tnk_chat_parser_t *parser) {
  tnk_allocator_t alloc;

  if (parser == NULL)
    return;
  alloc = parser->alloc;
  tnk__answer_free(parser->answer);
  tnk__heap_deinit(&parser->heap);
  tnk__buf_deinit(&parser->bytes);
  tnk__buf_deinit(&parser->text);
  tnk__buf_deinit(&parser->json);
  tnk__free(&alloc, parser);
}

static int copy_stops(tnk_chat_parser_t *parser, const char *const *stops) {
  const char **own;
  size_t n = 0;

  for (; stops[n] != NULL; n++)
    if (stops[n][0] == '\0')
      return TNK_EINVAL;
  own = tnk__heap_alloc(&parser->heap, (n + 1) * sizeof(*own));
  if (own == NULL)
    return parser->heap.err;
  for (size_t i = 0; i < n; i++) {
    const size_t len = strlen(stops[i]) + 1;
    char *copy = tnk__heap_alloc(&parser->heap, len);

    if (copy == NULL)
      return parser->heap.err;
    own[i] = memcpy(copy, stops[i], len);
  }
  own[n] = NULL;
  parser->options.stops = own;
  return TNK_OK;
}

int tnk_chat_parser_prompt(tnk_chat_parser_t *parser, const int32_t *prompt,
                           size_t n, const char *const *stops) {
  /* Whatever opens a think block or a channel fits in this. */
  const size_t n_tail = n < 64 ? n : 64;
  int err;

  if (parser == NULL || (prompt == NULL && n > 0) || parser->answer != NULL ||
      parser->is_done)
    return TNK_EINVAL;
  tnk__buf_clear(&parser->text);
  err = n == 0 ? TNK_OK
               : tnk__ids_decode(&parser->coder, prompt + n - n_tail, n_tail,
                                 &parser->text, NULL);
  if (err == TNK_OK)
    parser->options.start = tnk__answer_start(
        parser->family, (const char *)parser->text.data, parser->text.len);
  if (err == TNK_OK && stops != NULL)
    err = copy_stops(parser, stops);
  return err;
}

/* Start the answer, once. */
static int start(tnk_chat_parser_t *parser) {
  return parser->answer != NULL
             ? TNK_OK
             : tnk__answer_open(&parser->answer, &parser->alloc, parser->family,
                                parser->tools, &parser->options);
}

/* Move whole characters from the bytes to the text. Invalid bytes become
 * U+FFFD. An incomplete character at the end stays. */
static int take_characters(tnk_chat_parser_t *parser, int at_end) {
  const uint8_t *bytes = parser->bytes.data;
  size_t n = parser->bytes.len;

  tnk__buf_clear(&parser->text);
  while (n > 0) {
    const size_t good = tnk__utf8_valid(bytes, n);
    size_t bad;
    int cut;

    (void)tnk__buf_append(&parser->text, bytes, good);
    bytes += good;
    n -= good;
    if (n == 0)
      break;
    (void)tnk__utf8_check(bytes, n, &bad, &cut);
    if (cut && !at_end)
      break;
    (void)tnk__buf_append(&parser->text, "\xef\xbf\xbd", 3);
    bytes += bad;
    n -= bad;
  }
  if (parser->text.err == TNK_OK)
    tnk__buf_consume(&parser->bytes, parser->bytes.len - n);
  return parser->text.err;
}

static int feed_text(tnk_chat_parser_t *parser, int at_end) {
  const int err = take_characters(parser, at_end);

  if (err != TNK_OK || parser->text.len == 0)
    return err;
  return tnk__answer_feed(parser->answer, (const char *)parser->text.data,
                          parser->text.len);
}

int tnk_chat_parser_feed(tnk_chat_parser_t *parser, const int32_t *ids,
                         size_t n, tnk_chat_delta_cb delta, void *user) {
  int err;

  if (parser == NULL || (ids == NULL && n > 0) || parser->is_done)
    return TNK_EINVAL;
  err = start(parser);
  if (err != TNK_OK)
    return err;
  tnk__answer_listen(parser->answer, delta, user);
  err = tnk__ids_decode(&parser->coder, ids, n, &parser->bytes, NULL);
  return err != TNK_OK ? err : feed_text(parser, 0);
}

/* Write the message, with the text that was not understood. */
static int write_message(tnk_chat_parser_t *parser) {
  const tnk__value_t unparsed = tnk__answer_unparsed(parser->answer);
  tnk__value_t message = tnk__answer_message(parser->answer);

  if (message.kind != TNK__VALUE_DICT)
    return TNK_ENOMEM;
  if (unparsed.kind == TNK__VALUE_LIST && unparsed.as.list->n > 0) {
    tnk__value_t own = tnk__value_dict(&parser->heap);
    tnk__value_t extra = tnk__value_dict(&parser->heap);

    for (size_t i = 0; i < message.as.dict->n; i++)
      tnk__value_put(&parser->heap, own, message.as.dict->entries[i].key,
                     message.as.dict->entries[i].value);
    tnk__value_set(&parser->heap, extra, "unparsed", unparsed);
    tnk__value_set(&parser->heap, own, "extra", extra);
    message = own;
  }
  if (parser->heap.err != TNK_OK)
    return parser->heap.err;
  tnk__buf_clear(&parser->json);
  return tnk__value_to_json(&parser->json, message, NULL);
}

int tnk_chat_parser_finish(tnk_chat_parser_t *parser, tnk_chat_delta_cb delta,
                           void *user, const char **json, size_t *n) {
  int err;

  if (json != NULL)
    *json = NULL;
  if (n != NULL)
    *n = 0;
  if (parser == NULL || parser->is_done)
    return TNK_EINVAL;
  err = start(parser);
  if (err != TNK_OK)
    return err;
  parser->is_done = 1;
  tnk__answer_listen(parser->answer, delta, user);
  err = feed_text(parser, 1);
  if (err == TNK_OK)
    err = tnk__answer_finish(parser->answer);
  if (err == TNK_OK)
    err = write_message(parser);
  if (err != TNK_OK || json == NULL)
    return err;
  *json = tnk__buf_cstr(&parser->json);
  if (n != NULL)
    *n = parser->json.len;
  return *json != NULL ? TNK_OK : TNK_ENOMEM;
}

/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "bindings/node/addon/addon.h"

/* ---- Tokenizers ---- */

/* tokenizerLoad(path, bytes): from a path, or from bytes of a file. */
static napi_value js_tokenizer_load(napi_env env, napi_callback_info info) {
  tnk_tokenizer_options_t options = TNK_TOKENIZER_OPTIONS_INIT;
  tnk_tokenizer_error_t error = {0};
  tnk_tokenizer_t *handle = NULL;
  napi_value external = NULL;
  const void *bytes = NULL;
  size_t n = 0;
  call_t call;

  if (!call_begin(&call, env, info, 0))
    return NULL;
  object_t *tokenizer =
      object_new(call.addon, OBJECT_TOKENIZER, NULL, NULL, &external);
  if (tokenizer == NULL)
    return NULL;
  int err = TNK_EINVAL;
  if (is_given(env, call.args[1])) {
    if (!read_array(env, call.args[1], napi_uint8_array, "data", &bytes, &n))
      return call_end(&call, NULL);
    err = tnk_tokenizer_load_memory(&handle, bytes, n, &options, &error);
  } else {
    const char *path =
        read_text(env, call.args[0], "path", NULL, &call.scratch);
    if (path == NULL)
      return call_end(&call, NULL);
    err = tnk_tokenizer_load(&handle, path, &options, &error);
  }
  if (err != TNK_OK)
    return call_fail(&call, err, error.text);
  tokenizer->handle = handle;
  return call_end(&call, external);
}

/* encode(tokenizer, text, flags): ids */
static napi_value js_encode(napi_env env, napi_callback_info info) {
  tnk_tokenizer_error_t error = {0};
  napi_value ids = NULL;
  uint32_t flags = 0;
  size_t n = 0;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_TOKENIZER))
    return NULL;
  napi_get_value_uint32(env, call.args[2], &flags);
  const char *text = read_text(env, call.args[1], "text", &n, &call.scratch);
  if (text == NULL)
    return call_end(&call, NULL);
  tnk_tokens_t *tokens = tnk_tokens_new(NULL);
  int err = tokens == NULL ? TNK_ENOMEM
                           : tnk_tokenizer_encode(call.object->handle, tokens,
                                                  text, n, flags, &error);
  if (err != TNK_OK) {
    throw_error(call.addon, err, error.text);
  } else {
    const int32_t *from = tnk_tokens_ids(tokens, &n);
    ids = make_array(env, napi_int32_array, from, n);
  }
  tnk_tokens_free(tokens);
  return call_end(&call, ids);
}

/* decode(tokenizer, ids, flags): text */
static napi_value js_decode(napi_env env, napi_callback_info info) {
  const void *ids = NULL;
  napi_value result = NULL;
  uint32_t flags = 0;
  char *text = NULL;
  size_t n = 0;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_TOKENIZER) ||
      !read_array(env, call.args[1], napi_int32_array, "ids", &ids, &n))
    return NULL;
  napi_get_value_uint32(env, call.args[2], &flags);
  int err = tnk_tokenizer_decode(call.object->handle, &text, &n, ids, n, flags);
  if (err != TNK_OK)
    return call_fail(&call, err, NULL);
  napi_create_string_utf8(env, text, n, &result);
  tnk_tokenizer_free_text(call.object->handle, text);
  return result;
}

/* tokenizerInfo(tokenizer): {vocabSize, bos, eos} */
static napi_value js_tokenizer_info(napi_env env, napi_callback_info info) {
  napi_value object = NULL;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_TOKENIZER))
    return NULL;
  const tnk_tokenizer_t *tokenizer = call.object->handle;
  napi_create_object(env, &object);
  set_number(env, object, "vocabSize",
             (double)tnk_tokenizer_vocab_size(tokenizer));
  if (tnk_tokenizer_bos(tokenizer) >= 0)
    set_number(env, object, "bos", tnk_tokenizer_bos(tokenizer));
  if (tnk_tokenizer_eos(tokenizer) >= 0)
    set_number(env, object, "eos", tnk_tokenizer_eos(tokenizer));
  return object;
}

/* tokenId(tokenizer, text): an id, or undefined */
static napi_value js_token_id(napi_env env, napi_callback_info info) {
  size_t n = 0;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_TOKENIZER))
    return NULL;
  const char *text = read_text(env, call.args[1], "token", &n, &call.scratch);
  int32_t id =
      text == NULL ? -1 : tnk_tokenizer_id(call.object->handle, text, n);
  return call_end(&call, id < 0 ? NULL : make_number(env, id));
}

tnk_chat_tokenizer_t object_tokenizer(const object_t *object) {
  tnk_chat_tokenizer_t tokenizer = {tnk_chat_bytes_plugin(), NULL};

  if (object != NULL) {
    tokenizer.plugin = tnk_tokenizer_plugin();
    tokenizer.tokenizer = object->handle;
  }
  return tokenizer;
}

/* ---- Templates ---- */

/* templateLoad(path, text, options): from a path, or from a text. */
static napi_value js_template_load(napi_env env, napi_callback_info info) {
  static const field_t fields[] = {
      FIELD(tnk_chat_template_options_t, config, "config", FIELD_JSON),
      FIELD(tnk_chat_template_options_t, name, "name", FIELD_TEXT),
  };
  tnk_chat_template_options_t options = TNK_CHAT_TEMPLATE_OPTIONS_INIT;
  tnk_chat_error_t error = {0};
  tnk_chat_template_t *handle = NULL;
  napi_value external = NULL;
  size_t n = 0;
  call_t call;

  if (!call_begin(&call, env, info, 0))
    return NULL;
  object_t *object =
      object_new(call.addon, OBJECT_TEMPLATE, NULL, NULL, &external);
  if (object == NULL || !read_fields(env, call.args[2], fields, COUNT(fields),
                                     &options, &call.scratch))
    return call_end(&call, NULL);
  if (options.config != NULL)
    options.n_config = strlen(options.config);
  const char *text = NULL;
  int has_path = is_given(env, call.args[0]);
  if (has_path || is_given(env, call.args[1])) {
    text = read_text(env, call.args[has_path ? 0 : 1], "template",
                     has_path ? NULL : &n, &call.scratch);
    if (text == NULL)
      return call_end(&call, NULL);
  }
  int err = has_path
                ? tnk_chat_template_load(&handle, text, &options, &error)
                : tnk_chat_template_open(&handle, text, n, &options, &error);
  if (err != TNK_OK)
    return call_fail(&call, err, error.text);
  object->handle = handle;
  return call_end(&call, external);
}

static napi_value make_texts(napi_env env, const char *const *texts) {
  napi_value array = NULL;

  napi_create_array(env, &array);
  for (uint32_t i = 0; texts != NULL && texts[i] != NULL; i++)
    napi_set_element(env, array, i, make_text(env, texts[i]));
  return array;
}

static napi_value js_template_stops(napi_env env, napi_callback_info info) {
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_TEMPLATE))
    return NULL;
  return make_texts(env, tnk_chat_template_stops(call.object->handle));
}

static int64_t now_s(void *user) {
  uv_timeval64_t now;

  (void)user;
  return uv_gettimeofday(&now) == 0 ? now.tv_sec : 0;
}

/* A conversation from JSON and {shape, variables}; NULL with an exception
 * pending. */
static tnk_chat_t *read_chat(call_t *call, napi_value json,
                             napi_value options) {
  static const char *const shapes[] = {"template", "openai", "responses",
                                       "anthropic", NULL};
  static const field_t shape = {"shape", 0, FIELD_ENUM, shapes};
  static const field_t variable = {"variables", 0, FIELD_PAIRS, NULL};

  struct {
    const tnk_pair_t *pairs;
    size_t n;
  } variables = {NULL, 0};
  tnk_chat_error_t error = {0};
  uint32_t which = TNK_CHAT_OPENAI;
  size_t n = 0;
  napi_env env = call->env;
  const char *text = read_text(env, json, "messages", &n, &call->scratch);
  if (text == NULL ||
      !read_fields(env, options, &shape, 1, &which, &call->scratch) ||
      !read_fields(env, options, &variable, 1, &variables, &call->scratch))
    return NULL;
  tnk_chat_t *chat = tnk_chat_new(NULL);
  int err = chat == NULL
                ? TNK_ENOMEM
                : tnk_chat_read(chat, (tnk_chat_shape_t)which, text, n, &error);
  for (size_t i = 0; err == TNK_OK && i < variables.n; i++)
    err = tnk_chat_set(chat, variables.pairs[i].name, variables.pairs[i].value,
                       &error);
  if (err == TNK_OK)
    return chat;
  throw_error(call->addon, err, error.text);
  tnk_chat_free(chat);
  return NULL;
}

static int read_chat_options(call_t *call, napi_value value,
                             tnk_chat_options_t *out) {
  static const char *const trains[] = {"nothing", "last-answer", "all-answers",
                                       "roles",   "everything",  NULL};
  static const field_t fields[] = {
      FIELD(tnk_chat_options_t, generation_prompt, "generationPrompt",
            FIELD_CHOICE),
      FIELD(tnk_chat_options_t, by_parts, "byParts", FIELD_CHOICE),
      FIELD_NAMED(tnk_chat_options_t, train_on, "trainOn", trains),
      FIELD(tnk_chat_options_t, text_roles, "textRoles", FIELD_TEXTS),
  };
  static const field_t role = {"roles", 0, FIELD_TEXTS, NULL};

  struct {
    const char *const *texts;
    size_t n;
  } roles = {NULL, 0};
  if (!read_fields(call->env, value, fields, COUNT(fields), out,
                   &call->scratch) ||
      !read_fields(call->env, value, &role, 1, &roles, &call->scratch))
    return 0;
  out->roles = roles.texts;
  out->n_roles = (uint32_t)roles.n;
  out->now_s = now_s;
  return 1;
}

/* chatText(template, json, options): text */
static napi_value js_chat_text(napi_env env, napi_callback_info info) {
  tnk_chat_options_t options = TNK_CHAT_OPTIONS_INIT;
  tnk_chat_error_t error = {0};
  napi_value result = NULL;
  char *text = NULL;
  size_t n = 0;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_TEMPLATE) ||
      !read_chat_options(&call, call.args[2], &options))
    return call_end(&call, NULL);
  tnk_chat_t *chat = read_chat(&call, call.args[1], call.args[2]);
  if (chat == NULL)
    return call_end(&call, NULL);
  int err =
      tnk_chat_text(&text, &n, call.object->handle, chat, &options, &error);
  if (err != TNK_OK)
    throw_error(call.addon, err, error.text);
  else
    napi_create_string_utf8(env, text, n, &result);
  tnk_chat_free_text(chat, text);
  tnk_chat_free(chat);
  return call_end(&call, result);
}

/* The tokenizer of an argument; undefined is that of bytes. Returns 0 with an
 * exception pending. */
static int read_tokenizer(call_t *call, size_t index, object_t **object,
                          tnk_chat_tokenizer_t *out) {
  *object = NULL;
  if (is_given(call->env, call->args[index])) {
    *object = call_object(call, index, OBJECT_TOKENIZER);
    if (*object == NULL)
      return 0;
  }
  *out = object_tokenizer(*object);
  return 1;
}

/* chatEncode(template, tokenizer, json, options): {tokens, weights, messages}
 */
static napi_value js_chat_encode(napi_env env, napi_callback_info info) {
  tnk_chat_options_t options = TNK_CHAT_OPTIONS_INIT;
  tnk_chat_tokenizer_t tokenizer;
  tnk_chat_error_t error = {0};
  napi_value result = NULL;
  object_t *object = NULL;
  size_t n = 0;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_TEMPLATE) ||
      !read_tokenizer(&call, 1, &object, &tokenizer) ||
      !read_chat_options(&call, call.args[3], &options))
    return call_end(&call, NULL);
  tnk_chat_t *chat = read_chat(&call, call.args[2], call.args[3]);
  if (chat == NULL)
    return call_end(&call, NULL);
  tnk_chat_tokens_t *tokens = tnk_chat_tokens_new(NULL);
  int err = tokens == NULL
                ? TNK_ENOMEM
                : tnk_chat_encode(tokens, call.object->handle, &tokenizer, chat,
                                  &options, &error);
  if (err != TNK_OK) {
    throw_error(call.addon, err, error.text);
  } else {
    const int32_t *ids = tnk_chat_tokens_ids(tokens, &n);
    napi_create_object(env, &result);
    napi_set_named_property(env, result, "tokens",
                            make_array(env, napi_int32_array, ids, n));
    napi_set_named_property(env, result, "weights",
                            make_array(env, napi_float32_array,
                                       tnk_chat_tokens_weights(tokens), n));
    napi_set_named_property(
        env, result, "messages",
        make_array(env, napi_int32_array, tnk_chat_tokens_messages(tokens), n));
  }
  tnk_chat_tokens_free(tokens);
  tnk_chat_free(chat);
  return call_end(&call, result);
}

/* ---- Answers ---- */

const char *const family_values[] = {
    "plain", "think",   "hermes",  "xml",   "deepseek", "dsml", "kimi",
    "glm",   "harmony", "mistral", "llama", "xtml",     NULL};

/* parserOpen(tokenizer, prompt, {family, stops}): a parser */
static napi_value js_parser_open(napi_env env, napi_callback_info info) {
  static const field_t family = {"family", 0, FIELD_ENUM, family_values};
  static const field_t stop = {"stops", 0, FIELD_TEXTS, NULL};

  struct {
    const char *const *texts;
    size_t n;
  } stops = {NULL, 0};
  tnk_chat_tokenizer_t tokenizer;
  tnk_chat_error_t error = {0};
  tnk_chat_parser_t *handle = NULL;
  napi_value external = NULL;
  const void *prompt = NULL;
  object_t *object = NULL;
  uint32_t which = TNK_CHAT_PLAIN;
  size_t n = 0;
  call_t call;
  if (!call_begin(&call, env, info, 0) ||
      !read_tokenizer(&call, 0, &object, &tokenizer) ||
      !read_array(env, call.args[1], napi_int32_array, "prompt", &prompt, &n) ||
      !read_fields(env, call.args[2], &family, 1, &which, &call.scratch) ||
      !read_fields(env, call.args[2], &stop, 1, &stops, &call.scratch))
    return call_end(&call, NULL);
  object_t *parser =
      object_new(call.addon, OBJECT_PARSER, NULL, NULL, &external);
  if (parser == NULL)
    return call_end(&call, NULL);
  int err = tnk_chat_parser_open(&handle, (tnk_chat_family_t)which, &tokenizer,
                                 NULL, NULL, &error);
  if (err == TNK_OK) {
    parser->handle = handle;
    err = tnk_chat_parser_prompt(handle, prompt, n, stops.texts);
  }
  if (err != TNK_OK)
    return call_fail(&call, err, error.text);
  /* The parser borrows the tokenizer. */
  object_need(parser, object);
  return call_end(&call, external);
}

static void on_delta(const tnk_chat_delta_t *delta, void *user) {
  static const char *const kinds[] = {"thinking",  "content",  "call-begin",
                                      "arguments", "call-end", "unparsed"};
  array_t *deltas = user;
  napi_env env = deltas->env;
  napi_value object = NULL, text = NULL;

  napi_create_object(env, &object);
  set_text(env, object, "kind", kinds[delta->kind]);
  set_number(env, object, "call", delta->call);
  set_text(env, object, "name", delta->name);
  set_text(env, object, "id", delta->id);
  if (delta->text != NULL) {
    napi_create_string_utf8(env, delta->text, delta->n, &text);
    napi_set_named_property(env, object, "text", text);
  }
  array_add(deltas, object);
}

/* parserFeed(parser, ids): deltas */
static napi_value js_parser_feed(napi_env env, napi_callback_info info) {
  array_t deltas;
  const void *ids = NULL;
  size_t n = 0;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_PARSER) ||
      !read_array(env, call.args[1], napi_int32_array, "ids", &ids, &n))
    return NULL;
  array_begin(&deltas, env);
  int err =
      tnk_chat_parser_feed(call.object->handle, ids, n, on_delta, &deltas);
  if (err != TNK_OK)
    return call_fail(&call, err, NULL);
  return deltas.value;
}

/* parserFinish(parser): {deltas, json} */
static napi_value js_parser_finish(napi_env env, napi_callback_info info) {
  array_t deltas;
  napi_value result = NULL, text = NULL;
  const char *json = NULL;
  size_t n = 0;
  call_t call;

  if (!call_begin(&call, env, info, OBJECT_PARSER))
    return NULL;
  array_begin(&deltas, env);
  int err =
      tnk_chat_parser_finish(call.object->handle, on_delta, &deltas, &json, &n);
  if (err != TNK_OK)
    return call_fail(&call, err, NULL);
  napi_create_object(env, &result);
  napi_create_string_utf8(env, json, n, &text);
  napi_set_named_property(env, result, "deltas", deltas.value);
  napi_set_named_property(env, result, "json", text);
  return result;
}

/* findRenderer(name): {family, variables, stops}, or undefined */
static napi_value js_find_renderer(napi_env env, napi_callback_info info) {
  static const field_t fields[] = {
      FIELD(tnk_chat_renderer_t, name, "name", FIELD_TEXT),
      FIELD_NAMED(tnk_chat_renderer_t, family, "family", family_values),
      FIELD(tnk_chat_renderer_t, note, "note", FIELD_TEXT),
  };
  napi_value variables = NULL;
  call_t call;

  if (!call_begin(&call, env, info, 0))
    return NULL;
  const char *name = read_text(env, call.args[0], "name", NULL, &call.scratch);
  const tnk_chat_renderer_t *found = name == NULL ? NULL : tnk_chat_find(name);
  if (found == NULL)
    return call_end(&call, NULL);
  napi_value object = write_fields(env, fields, COUNT(fields), found);
  napi_create_object(env, &variables);
  for (uint32_t i = 0; i < found->n_variables; i++)
    set_text(env, variables, found->variables[i].name,
             found->variables[i].value);
  napi_set_named_property(env, object, "variables", variables);
  napi_set_named_property(env, object, "stops", make_texts(env, found->stops));
  return call_end(&call, object);
}

const function_t text_functions[] = {
    {"tokenizerLoad", js_tokenizer_load},
    {"encode", js_encode},
    {"decode", js_decode},
    {"tokenizerInfo", js_tokenizer_info},
    {"tokenId", js_token_id},
    {"templateLoad", js_template_load},
    {"templateStops", js_template_stops},
    {"chatText", js_chat_text},
    {"chatEncode", js_chat_encode},
    {"parserOpen", js_parser_open},
    {"parserFeed", js_parser_feed},
    {"parserFinish", js_parser_finish},
    {"findRenderer", js_find_renderer},
    {NULL, NULL},
};

/* SPDX-License-Identifier: MIT */
#include "gateway/wire/ask.h"

#include <stdio.h>
#include <string.h>

#include "gateway/wire/known.h"
#include "lib/wire/format/json_read.h"
#include "tnk/common.h"
#include "tnk/error.h"

/* The endpoints share most parameters, under different names. */

static int refuse(tnk__gw_fault_t *fault, const char *name) {
  return tnk__gw_fault(fault, 400, name, "%s is not supported here", name);
}

static int wrong(tnk__gw_fault_t *fault, const char *name, const char *what) {
  return tnk__gw_fault(fault, 400, name, "%s must be %s", name, what);
}

/* ---- Numbers ---- */

static int get_int(const tnk__gw_ask_t *ask, const char *name, int64_t min,
                   int64_t max, int64_t *out, tnk__gw_fault_t *fault) {
  char what[96];

  if (tnk__json_get_int(ask->body, name, min, max, out) != TNK__JSON_WRONG)
    return 0;
  (void)snprintf(what, sizeof(what), "a whole number from %lld to %lld",
                 (long long)min, (long long)max);
  return wrong(fault, name, what);
}

static int get_double(const tnk__gw_ask_t *ask, const char *name, double max,
                      double *out, tnk__gw_fault_t *fault) {
  char what[96];
  tnk__json_has_t has = tnk__json_get_double(ask->body, name, out);

  if (has != TNK__JSON_WRONG &&
      (has != TNK__JSON_FOUND || (*out >= 0 && *out <= max)))
    return 0;
  (void)snprintf(what, sizeof(what), "a number from 0 to %g", max);
  return wrong(fault, name, what);
}

static int get_bool(const tnk__gw_ask_t *ask, const char *name, int *out,
                    tnk__gw_fault_t *fault) {
  return tnk__json_get_bool(ask->body, name, out) == TNK__JSON_WRONG
             ? wrong(fault, name, "true or false")
             : 0;
}

static int read_max_tokens(tnk__gw_ask_t *ask, tnk__gw_fault_t *fault) {
  const char *name =
      ask->api == TNK__GW_RESPONSE ? "max_output_tokens" : "max_tokens";

  if (get_int(ask, name, 1, INT32_MAX, &ask->max_tokens, fault) != 0)
    return -1;
  if (ask->api == TNK__GW_CHAT &&
      get_int(ask, "max_completion_tokens", 1, INT32_MAX, &ask->max_tokens,
              fault) != 0)
    return -1;
  if (ask->api == TNK__GW_MESSAGE && !ask->only_counts &&
      ask->max_tokens == TNK_ABSENT)
    return tnk__gw_fault(fault, 400, "max_tokens",
                         "max_tokens: Field required");
  return 0;
}

static int read_numbers(tnk__gw_ask_t *ask, tnk__gw_fault_t *fault) {
  int has_n = ask->api == TNK__GW_CHAT || ask->api == TNK__GW_COMPLETION;
  int64_t best_of = 0;

  if (read_max_tokens(ask, fault) != 0 ||
      (has_n &&
       get_int(ask, "n", 1, TNK__GW_MAX_CHOICES, &ask->n, fault) != 0) ||
      get_int(ask, "top_k", -1, INT32_MAX, &ask->top_k, fault) != 0 ||
      get_int(ask, "seed", INT64_MIN, INT64_MAX, &ask->seed, fault) != 0 ||
      get_double(ask, "temperature", 100, &ask->temperature, fault) != 0 ||
      get_double(ask, "top_p", 1, &ask->top_p, fault) != 0)
    return -1;
  if (ask->api == TNK__GW_COMPLETION &&
      tnk__json_get_int(ask->body, "best_of", 0, INT64_MAX, &best_of) ==
          TNK__JSON_FOUND &&
      best_of > ask->n)
    return refuse(fault, "best_of");
  /* Here 0 means all tokens; the service uses -1 for that. */
  if (ask->top_k == 0)
    ask->top_k = -1;
  return 0;
}

/* ---- Stops ---- */

static int add_stop(tnk__gw_ask_t *ask, const json_t *text, const char *name,
                    tnk__gw_fault_t *fault) {
  if (!json_is_string(text) || json_string_length(text) == 0)
    return wrong(fault, name, "texts that are not empty");
  if (ask->n_stops == TNK__GW_MAX_STOPS)
    return wrong(fault, name, "16 texts at most");
  ask->stops[ask->n_stops++] = json_string_value(text);
  return 0;
}

static int read_stops(tnk__gw_ask_t *ask, tnk__gw_fault_t *fault) {
  const char *name = ask->api == TNK__GW_MESSAGE ? "stop_sequences" : "stop";
  const json_t *stop = json_object_get(ask->body, name);

  if (ask->api == TNK__GW_RESPONSE || stop == NULL || json_is_null(stop))
    return 0;
  if (!json_is_array(stop))
    return add_stop(ask, stop, name, fault);
  for (size_t i = 0; i < json_array_size(stop); i++)
    if (add_stop(ask, json_array_get(stop, i), name, fault) != 0)
      return -1;
  return 0;
}

/* ---- Log-probabilities and usage ---- */

static int read_chat_logprobs(tnk__gw_ask_t *ask, tnk__gw_fault_t *fault) {
  if (get_bool(ask, "logprobs", &ask->with_logprobs, fault) != 0 ||
      get_int(ask, "top_logprobs", 0, TNK__GW_MAX_TOP, &ask->n_top, fault) != 0)
    return -1;
  if (ask->n_top > 0 && !ask->with_logprobs)
    return tnk__gw_fault(fault, 400, "top_logprobs",
                         "top_logprobs needs logprobs to be true");
  return 0;
}

static int read_response_logprobs(tnk__gw_ask_t *ask, tnk__gw_fault_t *fault) {
  const json_t *include = json_object_get(ask->body, "include");

  for (size_t i = 0; i < json_array_size(include); i++) {
    const char *what = json_string_value(json_array_get(include, i));

    if (what != NULL && strcmp(what, "message.output_text.logprobs") == 0)
      ask->with_logprobs = 1;
    else if (what == NULL || strcmp(what, "reasoning.encrypted_content") != 0)
      return tnk__gw_fault(fault, 400, "include",
                           "include: \"%.80s\" is not supported here",
                           what != NULL ? what : "?");
  }
  return get_int(ask, "top_logprobs", 0, TNK__GW_MAX_TOP, &ask->n_top, fault);
}

static int read_logprobs(tnk__gw_ask_t *ask, tnk__gw_fault_t *fault) {
  int64_t n = -1;

  if (ask->api == TNK__GW_CHAT)
    return read_chat_logprobs(ask, fault);
  if (ask->api == TNK__GW_RESPONSE)
    return read_response_logprobs(ask, fault);
  if (ask->api != TNK__GW_COMPLETION)
    return 0;
  if (get_int(ask, "logprobs", 0, TNK__GW_MAX_TOP, &n, fault) != 0 ||
      get_bool(ask, "echo", &ask->echo, fault) != 0)
    return -1;
  ask->with_logprobs = n >= 0;
  ask->n_top = n > 0 ? n : 0;
  return 0;
}

/* ---- Formats and tools ---- */

static int check_modalities(const tnk__gw_ask_t *ask, tnk__gw_fault_t *fault) {
  const json_t *modalities = json_object_get(ask->body, "modalities");

  for (size_t i = 0; i < json_array_size(modalities); i++) {
    const char *name = json_string_value(json_array_get(modalities, i));

    if (name == NULL || strcmp(name, "text") != 0)
      return refuse(fault, "modalities");
  }
  return 0;
}

/* The name of the tool that must be called. NULL: any other choice. */
static const char *forced_name(const tnk__gw_ask_t *ask, const json_t *choice) {
  const char *kind = ask->api == TNK__GW_MESSAGE ? "tool" : "function";
  const char *type = tnk__json_str(choice, "type");

  if (type == NULL || strcmp(type, kind) != 0)
    return NULL;
  return tnk__json_str(
      ask->api == TNK__GW_CHAT ? json_object_get(choice, "function") : choice,
      "name");
}

static int read_tool_choice(tnk__gw_ask_t *ask, tnk__gw_fault_t *fault) {
  const json_t *choice = json_object_get(ask->body, "tool_choice");
  const char *any = ask->api == TNK__GW_MESSAGE ? "any" : "required";
  const char *word = json_is_object(choice) ? tnk__json_str(choice, "type")
                                            : json_string_value(choice);

  if (ask->api == TNK__GW_COMPLETION || choice == NULL || json_is_null(choice))
    return 0;
  ask->forced_name = forced_name(ask, choice);
  if (ask->forced_name != NULL)
    ask->force = TNK__GW_FORCE_NAMED;
  else if (word != NULL && strcmp(word, any) == 0)
    ask->force = TNK__GW_FORCE_ANY;
  else if (word != NULL && strcmp(word, "none") == 0)
    ask->no_tools = 1;
  else if (word == NULL || strcmp(word, "auto") != 0)
    return tnk__gw_fault(fault, 400, "tool_choice",
                         "tool_choice: only auto, none, %s and the name of a "
                         "tool are supported here",
                         any);
  return 0;
}

/* As vLLM names them. */
static int read_continuation(tnk__gw_ask_t *ask, tnk__gw_fault_t *fault) {
  static const char final[] = "continue_final_message";
  static const char prompt[] = "add_generation_prompt";
  int has_prompt = -1;

  if (ask->api != TNK__GW_CHAT)
    return 0;
  if (get_bool(ask, final, &ask->continues, fault) != 0 ||
      get_bool(ask, prompt, &has_prompt, fault) != 0)
    return -1;
  if (ask->continues && has_prompt == 1)
    return tnk__gw_fault(fault, 400, final, "%s needs %s to be false", final,
                         prompt);
  if (!ask->continues && has_prompt == 0)
    return tnk__gw_fault(fault, 400, prompt, "%s may be false only with %s",
                         prompt, final);
  return 0;
}

static int read_words(tnk__gw_ask_t *ask, tnk__gw_fault_t *fault) {
  static const char variables[] = "chat_template_kwargs";
  const json_t *stream = json_object_get(ask->body, "stream_options");
  const json_t *own = json_object_get(ask->body, variables);

  if (tnk__json_get_text(ask->body, "model", &ask->model) == TNK__JSON_WRONG)
    return wrong(fault, "model", "a text");
  if (ask->api == TNK__GW_RESPONSE &&
      tnk__json_get_text(ask->body, "previous_response_id", &ask->previous) ==
          TNK__JSON_WRONG)
    return wrong(fault, "previous_response_id", "a text");
  if (own != NULL && !json_is_null(own) && !json_is_object(own))
    return wrong(fault, variables, "an object");
  if (tnk__json_get_bool(stream, "include_usage", &ask->with_usage) ==
      TNK__JSON_WRONG)
    return wrong(fault, "stream_options.include_usage", "true or false");
  return get_bool(ask, "stream", &ask->is_stream, fault);
}

/* Returns whether a malformed body has an escaped NUL, which JSON allows but
 * this parser rejects. */
static int names_nul(const uint8_t *body, size_t n) {
  for (size_t i = 0; i + 5 < n; i++) {
    if (body[i] != '\\')
      continue;
    if (memcmp(body + i + 1, "u0000", 5) == 0)
      return 1;
    i++; /* skip an escaped backslash */
  }
  return 0;
}

/* Report why a body was not accepted. */
static int refuse_body(const void *body, size_t n, tnk__gw_fault_t *fault) {
  json_error_t error = {.line = 0};
  json_t *read;
  int is_object;

  if (n == 0)
    return tnk__gw_fault(fault, 400, NULL, "the body is empty");
  if (memchr(body, '\0', n) != NULL)
    return tnk__gw_fault(fault, 400, NULL, "the body has a NUL byte");
  if (names_nul(body, n))
    return tnk__gw_fault(fault, 400, NULL,
                         "a text of the body has \\u0000, a character that is "
                         "not supported here");
  read = json_loadb(body, n, JSON_DECODE_ANY, &error);
  if (read == NULL)
    return tnk__gw_fault(fault, 400, NULL,
                         "the body is not JSON: line %d, column %d: %.200s",
                         error.line, error.column, error.text);
  is_object = json_is_object(read);
  json_decref(read);
  return tnk__gw_fault(fault, 400, NULL, "%s",
                       is_object ? "the body is nested too deeply"
                                 : "the body is not a JSON object");
}

static int read_ask(tnk__gw_ask_t *ask, tnk__gw_api_t api, int only_counts,
                    const void *body, size_t n, tnk__gw_fault_t *fault) {
  int err;

  *ask = (tnk__gw_ask_t){.api = api,
                         .only_counts = only_counts,
                         .n = 1,
                         .max_tokens = TNK_ABSENT,
                         .top_k = TNK_ABSENT,
                         .seed = TNK_ABSENT,
                         .temperature = TNK_ABSENT,
                         .top_p = TNK_ABSENT};
  err = tnk__json_parse_object(&ask->body, body, n);
  if (err == TNK_ENOMEM)
    return tnk__gw_fault(fault, 500, NULL, "out of memory");
  if (err != TNK_OK)
    return refuse_body(body, n, fault);
  return tnk__gw_known_check(api, ask->body, fault) != 0 ||
                 read_words(ask, fault) != 0 ||
                 read_continuation(ask, fault) != 0 ||
                 read_numbers(ask, fault) != 0 || read_stops(ask, fault) != 0 ||
                 read_logprobs(ask, fault) != 0 ||
                 check_modalities(ask, fault) != 0 ||
                 tnk__gw_form_read(&ask->form, api, ask->body, fault) != 0 ||
                 read_tool_choice(ask, fault) != 0
             ? -1
             : 0;
}

int tnk__gw_ask_read(tnk__gw_ask_t *ask, tnk__gw_api_t api, const void *body,
                     size_t n, tnk__gw_fault_t *fault) {
  return read_ask(ask, api, 0, body, n, fault);
}

int tnk__gw_ask_read_count(tnk__gw_ask_t *ask, tnk__gw_api_t api,
                           const void *body, size_t n, tnk__gw_fault_t *fault) {
  return read_ask(ask, api, 1, body, n, fault);
}

void tnk__gw_ask_drop(tnk__gw_ask_t *ask) {
  json_decref(ask->body);
  ask->body = NULL;
}

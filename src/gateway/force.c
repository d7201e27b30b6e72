/* SPDX-License-Identifier: MIT */
#include "gateway/force.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/talk.h"
#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/*
 * A tool call is forced by the tokens with which the template starts it. The
 * conversation is rendered with several different calls as its response. The
 * ids that all of these have in common are appended to the prompt, so no token
 * is cut in two. The model generates the rest, and nothing makes it follow the
 * schema of the tool.
 */

enum { MAX_TEXT = 64 << 20 };

/* A possible response. Rendering it shows the syntax of the template. */
typedef struct {
  const char *name;   /* name of the tool; NULL: a response without a call */
  const char *suffix; /* appended to the name */
  int has_arguments;
} probe_t;

static int no_memory(tnk__gw_fault_t *fault) {
  return tnk__gw_fault(fault, 500, NULL, "out of memory");
}

static int cannot(tnk__gw_fault_t *fault, const char *why) {
  return tnk__gw_fault(fault, 400, "tool_choice",
                       "tool_choice: a call cannot be forced here, as %s; only "
                       "auto and none can be done",
                       why);
}

/* ---- Names of tools ---- */

static const char *name_of(const json_t *tool) {
  const char *name = tnk__json_str(json_object_get(tool, "function"), "name");

  return name != NULL ? name : "";
}

/* Find the first and the last name, in sorted order, of the tools that may be
 * called. A prefix that these two share is shared by all of them. */
static int find_names(const tnk__gw_job_t *job, const char **first,
                      const char **last, tnk__gw_fault_t *fault) {
  const json_t *tools = json_object_get(job->doc, "tools");
  const char *wanted = job->ask.forced_name;

  *first = *last = NULL;
  for (size_t i = 0; i < json_array_size(tools); i++) {
    const char *name = name_of(json_array_get(tools, i));

    if (name[0] == '\0' || (wanted != NULL && strcmp(name, wanted) != 0))
      continue;
    if (*first == NULL || strcmp(name, *first) < 0)
      *first = name;
    if (*last == NULL || strcmp(name, *last) > 0)
      *last = name;
  }
  if (*first != NULL)
    return 0;
  return wanted != NULL
             ? tnk__gw_fault(fault, 400, "tool_choice",
                             "tool_choice: there is no tool \"%.80s\"", wanted)
             : tnk__gw_fault(fault, 400, "tool_choice",
                             "tool_choice: there are no tools");
}

/* ---- Template output ---- */

static json_t *answer_of(const probe_t *probe, const tnk_allocator_t *alloc) {
  json_t *arguments =
      probe->has_arguments ? json_pack("{s:s}", "value", "1") : json_object();
  json_t *message;
  tnk__buf_t name;

  if (probe->name == NULL) {
    json_decref(arguments);
    return json_pack("{s:s, s:s}", "role", "assistant", "content", "Well");
  }
  tnk__buf_init(&name, alloc, MAX_TEXT);
  tnk__buf_printf(&name, "%s%s", probe->name, probe->suffix);
  message = json_pack("{s:s, s:s, s:[{s:s, s:s, s:{s:s, s:o}}]}", "role",
                      "assistant", "content", "", "tool_calls", "id",
                      "call00000", "type", "function", "function", "name",
                      tnk__buf_cstr(&name), "arguments", arguments);
  tnk__buf_deinit(&name);
  return message;
}

/* Render the conversation, with an answer or as a prompt. */
static int render(const tnk__gw_job_t *job, const tnk_chat_t *chat,
                  tnk_choice_t is_prompt, tnk__buf_t *out,
                  tnk__gw_fault_t *fault) {
  tnk_chat_options_t options = tnk__gw_talk_options(job->gateway);
  tnk_chat_error_t error = {0};
  char *text;
  size_t n;
  int err;

  options.generation_prompt = is_prompt;
  err =
      tnk_chat_text(&text, &n, job->gateway->template_, chat, &options, &error);
  if (err == TNK_ENOMEM)
    return no_memory(fault);
  if (err != TNK_OK)
    return cannot(fault, error.text);
  err = tnk__buf_append(out, text, n);
  tnk_chat_free_text(chat, text);
  return err == TNK_OK ? 0 : no_memory(fault);
}

/* Render a response, without the prompt in front of it. */
static int render_answer(const tnk__gw_job_t *job, const tnk__buf_t *prompt,
                         const probe_t *probe, tnk__buf_t *out,
                         tnk__gw_fault_t *fault) {
  json_t *messages = json_object_get(job->doc, "messages");
  json_t *answer = answer_of(probe, &job->gateway->alloc);
  tnk_chat_t *chat = NULL;
  int err;

  if (answer == NULL || json_array_append_new(messages, answer) != 0)
    return no_memory(fault);
  err = tnk__gw_talk_make(job, job->doc, &chat, fault);
  (void)json_array_remove(messages, json_array_size(messages) - 1);
  if (err == 0)
    err = tnk__gw_talk_set(job, chat, fault);
  if (err == 0)
    err = render(job, chat, TNK_NO, out, fault);
  tnk_chat_free(chat);
  if (err != 0)
    return err;
  if (out->len < prompt->len ||
      memcmp(out->data, prompt->data, prompt->len) != 0)
    return cannot(fault, "the template writes a call in another place than "
                         "where an answer begins");
  tnk__buf_consume(out, prompt->len);
  return 0;
}

/* ---- Ids ---- */

static int take_ids(const int32_t *ids, size_t n, void *user) {
  return tnk__buf_append(user, ids, n * sizeof(*ids));
}

static int take_bytes(const char *bytes, size_t n, void *user) {
  return tnk__buf_append(user, bytes, n);
}

/* Encode a string. Fails if the ids do not decode to the same string. */
static int encode_text(const tnk__gw_job_t *job, const tnk__buf_t *text,
                       tnk__buf_t *ids, tnk__gw_fault_t *fault) {
  const tnk_chat_tokenizer_t *tokenizer = &job->gateway->tokenizer;
  const tnk_tokenizer_plugin_t *plugin = tokenizer->plugin;
  tnk__buf_t back;
  char why[256] = "";
  int err = plugin->encode(tokenizer->tokenizer, (const char *)text->data,
                           text->len, 0, take_ids, ids, why, sizeof(why));

  tnk__buf_init(&back, &job->gateway->alloc, MAX_TEXT);
  if (err == TNK_OK)
    err = plugin->decode(
        tokenizer->tokenizer, (const int32_t *)(const void *)ids->data,
        ids->len / sizeof(int32_t), 0, take_bytes, &back, why, sizeof(why));
  if (err == TNK_ENOMEM)
    err = no_memory(fault);
  else if (err != TNK_OK)
    err = cannot(fault, why);
  else if (back.len != text->len ||
           memcmp(back.data, text->data, back.len) != 0)
    err = cannot(fault, "its tokens are those of another text");
  tnk__buf_deinit(&back);
  return err;
}

/* Encode a response. */
static int encode(const tnk__gw_job_t *job, const tnk__buf_t *prompt,
                  const probe_t *probe, tnk__buf_t *ids,
                  tnk__gw_fault_t *fault) {
  tnk__buf_t text;
  int err;

  tnk__buf_init(&text, &job->gateway->alloc, MAX_TEXT);
  err = render_answer(job, prompt, probe, &text, fault);
  if (err == 0)
    err = encode_text(job, &text, ids, fault);
  tnk__buf_deinit(&text);
  return err;
}

/* Count the ids that the responses of two probes have in common. Returns 0, or
 * -1 on failure. */
static int common(const tnk__gw_job_t *job, const tnk__buf_t *prompt,
                  const tnk__buf_t *ids, const probe_t *other, size_t *n,
                  tnk__gw_fault_t *fault) {
  tnk__buf_t others;
  int err;

  tnk__buf_init(&others, &job->gateway->alloc, MAX_TEXT);
  err = encode(job, prompt, other, &others, fault);
  *n = 0;
  while (err == 0 && *n < ids->len / sizeof(int32_t) &&
         *n < others.len / sizeof(int32_t) &&
         memcmp(ids->data + *n * sizeof(int32_t),
                others.data + *n * sizeof(int32_t), sizeof(int32_t)) == 0)
    ++*n;
  tnk__buf_deinit(&others);
  return err;
}

/* ---- Checking the call ---- */

static void on_delta(const tnk_chat_delta_t *delta, void *user) {
  const char **name = user;

  if (delta->kind == TNK_CHAT_DELTA_CALL_BEGIN && delta->name != NULL &&
      *name != NULL && strcmp(delta->name, *name) == 0)
    *name = NULL;
}

/* Check that the parser reads the response as a call. Otherwise the client
 * would not receive a call either. */
static int check_read(const tnk__gw_job_t *job, const tnk__buf_t *ids,
                      const char *name, tnk__gw_fault_t *fault) {
  tnk_chat_parser_t *parser;
  const char *json;
  int err;

  if (tnk__gw_talk_parser(job, &parser, fault) != 0)
    return -1;
  err = tnk_chat_parser_feed(parser, (const int32_t *)(const void *)ids->data,
                             ids->len / sizeof(int32_t), on_delta, &name);
  if (err == TNK_OK)
    err = tnk_chat_parser_finish(parser, on_delta, &name, &json, NULL);
  tnk_chat_parser_free(parser);
  if (err == TNK_ENOMEM)
    return no_memory(fault);
  return name == NULL ? 0
                      : cannot(fault, "answers of this model are not read as "
                                      "the template writes calls");
}

/* Get the ids of a call of the first tool, and how many of them start every
 * call that the client accepts. If the client names a tool, these are the ids
 * that its calls share, whatever the arguments are. Otherwise they are the ids
 * that calls of all tools share. They must distinguish a call from other
 * content, and a name from a longer name. */
static int find_begin(const tnk__gw_job_t *job, const tnk__buf_t *prompt,
                      tnk__buf_t *ids, size_t *n, tnk__gw_fault_t *fault) {
  probe_t call = {.suffix = "", .has_arguments = 1};
  probe_t alike = call;
  probe_t other = {.suffix = "0", .has_arguments = 1};
  size_t n_too_short;

  if (find_names(job, &call.name, &alike.name, fault) != 0)
    return -1;
  if (strcmp(call.name, alike.name) == 0) {
    alike.has_arguments = 0;
    other.name = call.name;
  }
  if (encode(job, prompt, &call, ids, fault) != 0 ||
      check_read(job, ids, call.name, fault) != 0 ||
      common(job, prompt, ids, &alike, n, fault) != 0 ||
      common(job, prompt, ids, &other, &n_too_short, fault) != 0)
    return -1;
  return *n > n_too_short
             ? 0
             : cannot(fault, "the template does not begin calls alike");
}

int tnk__gw_force(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  tnk__buf_t prompt;
  tnk__buf_t ids;
  int err;

  tnk__buf_init(&prompt, &job->gateway->alloc, MAX_TEXT);
  tnk__buf_init(&ids, &job->gateway->alloc, MAX_TEXT);
  err = render(job, job->chat, TNK_YES, &prompt, fault);
  if (err == 0)
    err = find_begin(job, &prompt, &ids, &job->n_forced, fault);
  if (err == 0 && tnk__buf_append(&job->ids, ids.data,
                                  job->n_forced * sizeof(int32_t)) != TNK_OK)
    err = no_memory(fault);
  tnk__buf_deinit(&prompt);
  tnk__buf_deinit(&ids);
  return err;
}

/* SPDX-License-Identifier: MIT */
#include "gateway/begin.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/talk.h"
#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
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
int tnk__gw_force_find(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  const json_t *tools = json_object_get(job->doc, "tools");
  const char *wanted = job->ask.forced_name;
  const char **first = &job->force_first, **last = &job->force_last;

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

static void put_calls(tnk__json_writer_t *w, const probe_t *probe,
                      tnk__buf_t *name) {
  tnk__json_key(w, "tool_calls");
  tnk__json_begin_array(w);
  tnk__json_begin_object(w);
  tnk__json_put_text(w, "id", "call00000");
  tnk__json_put_text(w, "type", "function");
  tnk__json_key(w, "function");
  tnk__json_begin_object(w);
  tnk__buf_printf(name, "%s%s", probe->name, probe->suffix);
  tnk__json_put_text(w, "name", tnk__buf_cstr(name));
  tnk__json_key(w, "arguments");
  tnk__json_begin_object(w);
  if (probe->has_arguments)
    tnk__json_put_text(w, "value", "1");
  tnk__json_end(w);
  tnk__json_end(w);
  tnk__json_end(w);
  tnk__json_end(w);
}

/* Write a list with the response of a probe. Returns TNK_OK or an error. */
static int write_answer(const probe_t *probe, tnk__buf_t *out) {
  tnk__json_writer_t w;
  tnk__buf_t name;
  int err;

  tnk__buf_init(&name, out->alloc, MAX_TEXT);
  tnk__json_writer_init(&w, out);
  tnk__json_begin_array(&w);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "role", "assistant");
  tnk__json_put_text(&w, "content", probe->name != NULL ? "" : "Well");
  if (probe->name != NULL)
    put_calls(&w, probe, &name);
  tnk__json_end(&w);
  tnk__json_end(&w);
  err = name.err != TNK_OK ? name.err : tnk__json_finish(&w);
  tnk__buf_deinit(&name);
  return err;
}

/* Render a response, without the prompt in front of it. */
static int render_answer(const tnk__gw_job_t *job, const tnk__buf_t *prompt,
                         const probe_t *probe, tnk__buf_t *out,
                         tnk__gw_fault_t *fault) {
  tnk__buf_t list;
  int err;

  tnk__buf_init(&list, &job->gateway->alloc, MAX_TEXT);
  err = write_answer(probe, &list);
  if (err != TNK_OK)
    err = no_memory(fault);
  else
    err = tnk__gw_talk_after(job, prompt, &list,
                             "the template writes a call in another place "
                             "than where an answer begins",
                             out, cannot, fault);
  tnk__buf_deinit(&list);
  return err;
}

/* ---- Ids ---- */

/* Encode a response. */
static int encode(const tnk__gw_job_t *job, const tnk__buf_t *prompt,
                  const probe_t *probe, tnk__buf_t *ids,
                  tnk__gw_fault_t *fault) {
  tnk__buf_t text;
  int err;

  tnk__buf_init(&text, &job->gateway->alloc, MAX_TEXT);
  err = render_answer(job, prompt, probe, &text, fault);
  if (err == 0)
    err = tnk__gw_talk_ids(job, &text, ids, cannot, fault);
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

  if (tnk__gw_talk_parser(job, (const int32_t *)(const void *)job->ids.data,
                          job->ids.len / sizeof(int32_t), &parser, fault) != 0)
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
  const probe_t call = {
      .name = job->force_first, .suffix = "", .has_arguments = 1};
  probe_t alike = {.name = job->force_last, .suffix = "", .has_arguments = 1};
  probe_t other = {.suffix = "0", .has_arguments = 1};
  size_t n_too_short;

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
  err = tnk__gw_talk_text(job, job->chat, TNK_YES, &prompt, cannot, fault);
  if (err == 0)
    err = find_begin(job, &prompt, &ids, &job->n_forced, fault);
  if (err == 0 && tnk__buf_append(&job->ids, ids.data,
                                  job->n_forced * sizeof(int32_t)) != TNK_OK)
    err = no_memory(fault);
  tnk__buf_deinit(&prompt);
  tnk__buf_deinit(&ids);
  return err;
}

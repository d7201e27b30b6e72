/* SPDX-License-Identifier: MIT */
#include "gateway/form.h"

#include <stdio.h>
#include <string.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/*
 * The request for a format is at the end of the system message, where it stays
 * the same from turn to turn, so later turns continue from the sampled tokens.
 */

#define BEGIN "Answer with "
#define JSON "one JSON value that fits this JSON schema"
#define OBJECT "one JSON object"
#define END ", and with nothing else."
#define UNLESS ", unless you call a tool"

static int no_memory(tnk__gw_fault_t *fault) {
  return tnk__gw_fault(fault, 500, NULL, "out of memory");
}

/* ---- Asking ---- */

static void write_hint(const tnk__gw_job_t *job, tnk__buf_t *out) {
  int has_tools = json_array_size(json_object_get(job->doc, "tools")) > 0;
  int has_schema = job->ask.form.kind == TNK__GW_FORM_SCHEMA;
  char *schema = has_schema ? json_dumps(job->ask.form.schema,
                                         JSON_COMPACT | JSON_ENCODE_ANY)
                            : NULL;

  tnk__buf_text(out, BEGIN);
  tnk__buf_text(out, has_schema ? JSON : OBJECT);
  tnk__buf_text(out, has_tools ? UNLESS END : END);
  if (schema != NULL) {
    tnk__buf_text(out, "\n");
    tnk__buf_text(out, schema);
  } else if (has_schema) {
    out->err = TNK_ENOMEM;
  }
  tnk__json_free_string(schema);
}

/* The length of a system text without an earlier request for a format. It has
 * one if it comes from the record. */
static size_t own_length(const char *text) {
  size_t n = strlen(text);
  const char *found = NULL;

  for (const char *at = text; (at = strstr(at, BEGIN "one JSON ")) != NULL;
       at++)
    if (at == text || (at - text >= 2 && at[-1] == '\n' && at[-2] == '\n'))
      found = at;
  if (found == NULL || strstr(found, END) == NULL)
    return n;
  return found == text ? 0 : (size_t)(found - text) - 2;
}

static json_t *text_with(const tnk__gw_job_t *job, const char *text) {
  json_t *whole = NULL;
  tnk__buf_t out;
  size_t n = job->ask.previous != NULL ? own_length(text) : strlen(text);

  tnk__buf_init(&out, &job->gateway->alloc, SIZE_MAX);
  tnk__buf_append(&out, text, n);
  if (n > 0)
    tnk__buf_text(&out, "\n\n");
  write_hint(job, &out);
  if (out.err == TNK_OK)
    whole = json_stringn((const char *)out.data, out.len);
  tnk__buf_deinit(&out);
  return whole;
}

/* Returns 0 or -1. `content` is a text, or a list of parts. */
static int add_to(const tnk__gw_job_t *job, json_t *message) {
  json_t *content = json_object_get(message, "content");
  const char *text = json_string_value(content);
  json_t *whole = text_with(job, text != NULL ? text : "");

  if (!json_is_array(content))
    return json_object_set_new(message, "content", whole);
  return json_array_append_new(
      content, json_pack("{s:s, s:o}", "type", "text", "text", whole));
}

int tnk__gw_form_put(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  json_t *messages = json_object_get(job->doc, "messages");
  const char *role = tnk__json_str(json_array_get(messages, 0), "role");
  int has_system = role != NULL && (strcmp(role, "system") == 0 ||
                                    strcmp(role, "developer") == 0);

  if (job->ask.form.kind == TNK__GW_FORM_TEXT)
    return 0;
  if (job->gateway->formats == TNK_GATEWAY_FORMATS_REFUSE)
    return tnk__gw_fault(fault, 400, job->ask.form.name,
                         "%s: only text is supported here, as this gateway "
                         "refuses other formats; ask for it in a message, or "
                         "by a tool",
                         job->ask.form.name);
  if (!has_system &&
      json_array_insert_new(
          messages, 0,
          json_pack("{s:s, s:s}", "role", "system", "content", "")) != 0)
    return no_memory(fault);
  return add_to(job, json_array_get(messages, 0)) == 0 ? 0 : no_memory(fault);
}

/* ---- Checking ---- */

static void check_text(const tnk__gw_job_t *job, tnk__gw_choice_t *choice,
                       const tnk__buf_t *text) {
  json_t *value = NULL;

  choice->is_checked = 1;
  choice->fit = TNK__GW_MISFIT;
  if (tnk__json_parse(&value, text->data, text->len) != TNK_OK)
    (void)snprintf(choice->misfit, sizeof(choice->misfit), "it is not JSON");
  else if (job->ask.form.kind == TNK__GW_FORM_SCHEMA)
    choice->fit =
        tnk__gw_schema_fit(job->ask.form.schema, value, choice->misfit);
  else if (json_is_object(value))
    choice->fit = TNK__GW_FITS;
  else
    (void)snprintf(choice->misfit, sizeof(choice->misfit),
                   "it is not an object");
  json_decref(value);
}

int tnk__gw_form_check(const tnk__gw_job_t *job, tnk__gw_choice_t *choice,
                       tnk__gw_fault_t *fault) {
  tnk__buf_t text;
  int err;

  if (job->ask.form.kind == TNK__GW_FORM_TEXT ||
      tnk__gw_said_has(&choice->said, TNK__GW_CALL) > 0)
    return 0;
  tnk__buf_init(&text, &job->gateway->alloc, SIZE_MAX);
  (void)tnk__gw_said_join(&choice->said, TNK__GW_CONTENT, 0, &text);
  err = text.err;
  if (err == TNK_OK)
    check_text(job, choice, &text);
  tnk__buf_deinit(&text);
  return err == TNK_OK ? 0 : no_memory(fault);
}

int tnk__gw_form_verdict(const tnk__gw_choice_t *choice) {
  if (!choice->is_checked || choice->fit == TNK__GW_UNDECIDED)
    return 0;
  return choice->fit == TNK__GW_FITS ? 1 : -1;
}

uint32_t tnk__gw_form_attempt(const tnk__gw_job_t *job) {
  return job->ask.form.kind != TNK__GW_FORM_TEXT &&
                 job->gateway->formats == TNK_GATEWAY_FORMATS_RETRY
             ? job->n_attempts
             : 0;
}

int tnk__gw_form_retries(const tnk__gw_job_t *job) {
  /* The likeliest tokens are the same each time. */
  return job->is_misfit && job->ask.temperature != 0 &&
         tnk__gw_form_attempt(job) > 0 &&
         job->n_attempts < job->gateway->max_attempts;
}

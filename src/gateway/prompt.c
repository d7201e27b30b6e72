/* SPDX-License-Identifier: MIT */
#include "gateway/prompt.h"

#include <string.h>

#include "gateway/begin.h"
#include "gateway/form.h"
#include "gateway/record/key.h"
#include "gateway/response.h"
#include "gateway/talk.h"
#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/*
 * Each request carries the whole conversation. The longest prefix of it that
 * ends with a response of this session is looked up. The ids of that prefix are
 * kept as they were sampled, and only the messages after it are tokenized.
 * Without such a prefix, or if the template renders history differently, the
 * whole conversation is tokenized as a new branch.
 */

static const tnk_chat_shape_t shapes[] = {
    [TNK__GW_CHAT] = TNK_CHAT_OPENAI,
    [TNK__GW_COMPLETION] = TNK_CHAT_OPENAI,
    [TNK__GW_RESPONSE] = TNK_CHAT_RESPONSES,
    [TNK__GW_MESSAGE] = TNK_CHAT_ANTHROPIC};

static int no_memory(tnk__gw_fault_t *fault) {
  return tnk__gw_fault(fault, 500, NULL, "out of memory");
}

/* ---- Reading the conversation ---- */

static int read_doc(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  tnk_chat_error_t error = {0};
  char *text;
  size_t n;
  int err;

  if (tnk_chat_write(job->chat, TNK_CHAT_TEMPLATE, &text, &n, &error) != TNK_OK)
    return tnk__gw_talk_failed(&error, fault);
  err = tnk__json_parse_object(&job->doc, text, n);
  tnk_chat_free_text(job->chat, text);
  if (err == TNK_OK)
    return 0;
  /* Arguments of calls are nested deeper here than in the request. */
  return err == TNK_ENOMEM
             ? no_memory(fault)
             : tnk__gw_fault(fault, 400, "messages",
                             "the messages are nested too deeply");
}

static json_t *messages_of(const tnk__gw_job_t *job) {
  return json_object_get(job->doc, "messages");
}

/* A template may support images, but the gateway cannot send them. */
static int check_parts(const tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  const json_t *messages = messages_of(job);

  for (size_t i = 0; i < json_array_size(messages); i++) {
    const json_t *content =
        json_object_get(json_array_get(messages, i), "content");

    for (size_t k = 0; k < json_array_size(content); k++) {
      const char *type = tnk__json_str(json_array_get(content, k), "type");

      if (type != NULL && strcmp(type, "text") != 0)
        return tnk__gw_fault(fault, 400, "messages",
                             "messages[%zu].content[%zu]: the type \"%.60s\" "
                             "is not supported here",
                             i, k, type);
    }
  }
  return 0;
}

/* Read the conversation again from its changed document. */
static int remake_chat(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  tnk_chat_free(job->chat);
  return tnk__gw_talk_make(job, job->doc, &job->chat, fault);
}

static int is_role(const json_t *message, const char *role) {
  const char *text = tnk__json_str(message, "role");

  return text != NULL && strcmp(text, role) == 0;
}

/* Prepend the history of the response that the request names. Its instructions
 * are replaced by new ones, if the request has any. */
static int put_history(tnk__gw_job_t *job, const tnk__gw_turn_t *turn,
                       tnk__gw_fault_t *fault) {
  json_t *all = json_array();
  json_t *now = messages_of(job);
  int has_new = json_object_get(job->ask.body, "instructions") != NULL &&
                is_role(json_array_get(now, 0), "system");
  int err;

  if (all == NULL)
    return no_memory(fault);
  err = tnk__gw_history(job->gateway->record, turn, all);
  if (err == 0 && has_new && is_role(json_array_get(all, 0), "system"))
    err = json_array_remove(all, 0);
  if (err == 0 && has_new) {
    err = json_array_insert(all, 0, json_array_get(now, 0));
    if (err == 0)
      err = json_array_remove(now, 0);
  }
  if (err == 0)
    err = json_array_extend(all, now);
  if (err == 0)
    err = json_object_set(job->doc, "messages", all);
  json_decref(all);
  return err == 0 ? 0
                  : tnk__gw_fault(fault, 500, NULL,
                                  "what came before cannot be read");
}

static int find_previous(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  const tnk__gw_turn_t *turn = NULL;
  uint64_t number;

  if (tnk__gw_name_read(job->ask.previous, &number) == 0)
    turn = tnk__gw_response_find(job->gateway, job->session, number);
  if (turn == NULL)
    return tnk__gw_fault(fault, 404, "previous_response_id",
                         "there is no answer \"%.60s\" in this session",
                         job->ask.previous);
  return put_history(job, turn, fault);
}

/* Read the conversation of the body. */
static int read_body(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  const tnk__buf_t *body = job->req != NULL ? &job->req->body : &job->body;
  char *text = NULL;
  int err;

  if (job->ask.api == TNK__GW_RESPONSE &&
      tnk__gw_items_put(job, &text, fault) != 0)
    return -1;
  err = tnk__gw_talk_read(
      job, shapes[job->ask.api], text != NULL ? text : (const char *)body->data,
      text != NULL ? strlen(text) : body->len, &job->chat, fault);
  tnk__json_free_string(text);
  return err;
}

static int read_chat(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  int is_new = job->ask.previous != NULL || job->ask.no_tools ||
               job->ask.form.kind != TNK__GW_FORM_TEXT;

  if (read_body(job, fault) != 0 || read_doc(job, fault) != 0 ||
      check_parts(job, fault) != 0)
    return -1;
  if (job->ask.no_tools)
    (void)json_object_del(job->doc, "tools");
  if (job->ask.previous != NULL && find_previous(job, fault) != 0)
    return -1;
  if (json_array_size(messages_of(job)) == 0)
    return tnk__gw_fault(fault, 400, "messages", "there are no messages");
  if (tnk__gw_form_put(job, fault) != 0)
    return -1;
  if (tnk__gw_prefill_take(job, fault) != 0)
    return -1;
  is_new |= job->begun != NULL;
  if (is_new && remake_chat(job, fault) != 0)
    return -1;
  return tnk__gw_talk_collect(job, fault) == 0
             ? tnk__gw_talk_set(job, job->chat, fault)
             : -1;
}

/* ---- Turns to continue ---- */

/* Compute the key of the conversation, and find the known turns with the
 * longest prefixes. */
static int find_turns(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  const json_t *messages = messages_of(job);
  size_t n = json_array_size(messages);
  uint64_t *keys = tnk__alloc_array(&job->gateway->alloc, n + 1, sizeof(*keys));
  int err;

  if (keys == NULL)
    return no_memory(fault);
  keys[0] = tnk__gw_key_begin(json_object_get(job->doc, "tools"));
  for (size_t i = 0; i < n; i++)
    keys[i + 1] = tnk__gw_key_add(keys[i], json_array_get(messages, i));
  job->key = keys[n];
  err = job->begun != NULL ? tnk__gw_prefill_find(job, keys[n], fault) : 0;
  for (size_t i = n; i > 0 && job->n_tries < TNK__GW_MAX_TRIES; i--) {
    const tnk__gw_turn_t *turn =
        is_role(json_array_get(messages, i - 1), "assistant")
            ? tnk__gw_record_find(job->gateway->record, job->session, keys[i])
            : NULL;

    if (turn != NULL)
      job->tries[job->n_tries++] =
          (tnk__gw_try_t){.number = turn->by_number.key, .first = i};
  }
  tnk__free(&job->gateway->alloc, keys);
  return err;
}

int tnk__gw_prompt_next(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  tnk__gw_record_t *record = job->gateway->record;
  tnk__gw_turn_t *turn = NULL;

  tnk__buf_clear(&job->ids);
  job->parent = 0;
  job->n_before = job->first = 0;
  while (turn == NULL && job->n_tried < job->n_tries)
    turn = tnk__gw_record_turn(record, job->tries[job->n_tried++].number);
  if (turn == NULL)
    return 0;
  if (tnk__gw_record_ids(record, turn, &job->ids) != TNK_OK)
    return tnk__gw_fault(fault, 500, NULL, "what was recorded cannot be read");
  job->parent = turn->by_number.key;
  job->n_before = tnk__gw_turn_n_ids(turn);
  job->first = job->tries[job->n_tried - 1].first;
  return 0;
}

static int prompt_of_chat(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  if (read_chat(job, fault) != 0 || find_turns(job, fault) != 0)
    return -1;
  if (job->ask.force != TNK__GW_FORCE_NOTHING &&
      tnk__gw_force_find(job, fault) != 0)
    return -1;
  return job->is_own ? 0 : tnk__gw_prompt_next(job, fault);
}

/* ---- Plain prompts ---- */

static int take_ids(const int32_t *ids, size_t n, void *user) {
  tnk__gw_job_t *job = user;

  return tnk__buf_append(&job->ids, ids, n * sizeof(*ids));
}

static int prompt_of_text(tnk__gw_job_t *job, const json_t *text,
                          tnk__gw_fault_t *fault) {
  const tnk_chat_tokenizer_t *tokenizer = &job->gateway->tokenizer;
  char why[256] = "";
  int err = tokenizer->plugin->encode(
      tokenizer->tokenizer, json_string_value(text), json_string_length(text),
      0, take_ids, job, why, sizeof(why));

  return err == TNK_OK ? 0
                       : tnk__gw_fault(fault, err == TNK_ENOMEM ? 500 : 400,
                                       "prompt", "prompt: %s", why);
}

static int prompt_of_ids(tnk__gw_job_t *job, const json_t *ids,
                         tnk__gw_fault_t *fault) {
  for (size_t i = 0; i < json_array_size(ids); i++) {
    const json_t *id = json_array_get(ids, i);
    json_int_t value = json_integer_value(id);
    int32_t token = (int32_t)value;

    if (!json_is_integer(id) || value < 0 || value > INT32_MAX)
      return tnk__gw_fault(fault, 400, "prompt",
                           "prompt[%zu] is not a token id", i);
    if (tnk__buf_append(&job->ids, &token, sizeof(token)) != TNK_OK)
      return no_memory(fault);
  }
  return 0;
}

static int prompt_of(tnk__gw_job_t *job, const json_t *prompt,
                     tnk__gw_fault_t *fault) {
  if (json_is_string(prompt))
    return prompt_of_text(job, prompt, fault);
  if (json_is_array(prompt))
    return prompt_of_ids(job, prompt, fault);
  return tnk__gw_fault(fault, 400, "prompt",
                       "prompt must be a text, a list of token ids, or a list "
                       "of such prompts");
}

/* Append several prompts, one after the other. */
static int prompts_of(tnk__gw_job_t *job, const json_t *prompts,
                      tnk__gw_fault_t *fault) {
  size_t n = json_array_size(prompts);

  if ((int64_t)n * job->ask.n > TNK__GW_MAX_CHOICES)
    return tnk__gw_fault(fault, 400, "prompt",
                         "prompt: a request may have %d responses at most",
                         TNK__GW_MAX_CHOICES);
  for (size_t i = 0; i < n; i++) {
    size_t end;

    if (prompt_of(job, json_array_get(prompts, i), fault) != 0)
      return -1;
    end = job->ids.len / sizeof(int32_t);
    if (tnk__buf_append(&job->ends, &end, sizeof(end)) != TNK_OK)
      return no_memory(fault);
  }
  return 0;
}

static int prompt_of_completion(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  const json_t *prompt = json_object_get(job->ask.body, "prompt");
  const json_t *first = json_array_get(prompt, 0);

  if (!json_is_string(first) && !json_is_array(first))
    return prompt_of(job, prompt, fault);
  return json_array_size(prompt) > 1 ? prompts_of(job, prompt, fault)
                                     : prompt_of(job, first, fault);
}

int tnk__gw_prompt_read(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  if (job->ask.api != TNK__GW_COMPLETION)
    return prompt_of_chat(job, fault);
  return prompt_of_completion(job, fault);
}

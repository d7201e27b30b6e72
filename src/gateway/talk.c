/* SPDX-License-Identifier: MIT */
#include "gateway/talk.h"

#include <string.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

static int no_memory(tnk__gw_fault_t *fault) {
  return tnk__gw_fault(fault, 500, NULL, "out of memory");
}

int tnk__gw_talk_failed(const tnk_chat_error_t *error, tnk__gw_fault_t *fault) {
  return tnk__gw_fault(fault, error->code == TNK_ENOMEM ? 500 : 400, NULL, "%s",
                       error->text);
}

int tnk__gw_talk_read(const tnk__gw_job_t *job, tnk_chat_shape_t shape,
                      const char *json, size_t n, tnk_chat_t **out,
                      tnk__gw_fault_t *fault) {
  tnk_chat_error_t error = {0};

  *out = tnk_chat_new(&job->gateway->alloc);
  if (*out == NULL)
    return no_memory(fault);
  if (tnk_chat_read(*out, shape, json, n, &error) == TNK_OK)
    return 0;
  tnk_chat_free(*out);
  *out = NULL;
  return tnk__gw_talk_failed(&error, fault);
}

int tnk__gw_talk_make(const tnk__gw_job_t *job, const json_t *doc,
                      tnk_chat_t **out, tnk__gw_fault_t *fault) {
  char *text = json_dumps(doc, JSON_COMPACT);
  int err;

  *out = NULL;
  if (text == NULL)
    return no_memory(fault);
  err =
      tnk__gw_talk_read(job, TNK_CHAT_TEMPLATE, text, strlen(text), out, fault);
  tnk__json_free_string(text);
  return err;
}

static int collect(tnk__gw_job_t *job, const json_t *variables,
                   tnk__gw_fault_t *fault) {
  tnk__buf_t *out = &job->variables;
  const char *name;
  json_t *value;

  json_object_foreach((json_t *)(uintptr_t)variables, name, value) {
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

    tnk__buf_append(out, name, strlen(name) + 1);
    if (text != NULL)
      tnk__buf_append(out, text, strlen(text) + 1);
    tnk__json_free_string(text);
    if (text == NULL || out->err != TNK_OK)
      return no_memory(fault);
  }
  return 0;
}

int tnk__gw_talk_collect(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  const json_t *own = json_object_get(job->ask.body, "chat_template_kwargs");

  return collect(job, job->gateway->variables, fault) == 0
             ? collect(job, own, fault)
             : -1;
}

int tnk__gw_talk_set(const tnk__gw_job_t *job, tnk_chat_t *chat,
                     tnk__gw_fault_t *fault) {
  const tnk__buf_t *all = &job->variables;

  for (size_t at = 0; at < all->len;) {
    const char *name = (const char *)all->data + at;
    const char *value = name + strlen(name) + 1;
    tnk_chat_error_t error = {0};

    if (tnk_chat_set(chat, name, value, &error) != TNK_OK)
      return tnk__gw_talk_failed(&error, fault);
    at += strlen(name) + strlen(value) + 2;
  }
  return 0;
}

int tnk__gw_talk_parser(const tnk__gw_job_t *job, const int32_t *prompt,
                        size_t n, tnk_chat_parser_t **out,
                        tnk__gw_fault_t *fault) {
  static const char *const none[] = {NULL};
  const tnk_gateway_t *gateway = job->gateway;
  const tnk_chat_family_t family =
      job->ask.api != TNK__GW_COMPLETION ? gateway->family : TNK_CHAT_PLAIN;
  tnk_chat_error_t error = {0};
  int err = tnk_chat_parser_open(out, family, &gateway->tokenizer, job->chat,
                                 &gateway->alloc, &error);

  if (err != TNK_OK)
    return tnk__gw_fault(fault, 500, NULL, "%s", error.text);
  /* The default stop of the plain family belongs to the plain template. A plain
   * prompt has no template, so it has no such stop. */
  err = tnk_chat_parser_prompt(*out, prompt, n,
                               family == TNK_CHAT_PLAIN ? none : NULL);
  if (err == TNK_OK)
    return 0;
  tnk_chat_parser_free(*out);
  *out = NULL;
  return tnk__gw_fault(fault, 500, NULL, "the prompt cannot be read: %s",
                       tnk_strerror(err));
}

static int64_t now_s(void *user) {
  uv_timeval64_t now;

  (void)user;
  return uv_gettimeofday(&now) == 0 ? now.tv_sec : 0;
}

static int is_canceled(void *user) {
  const tnk__gw_job_t *job = user;

  return job->render != NULL && atomic_load(&job->render->is_canceled);
}

tnk_chat_options_t tnk__gw_talk_options(const tnk__gw_job_t *job) {
  static const char *const roles[] = {"user", "tool"};
  tnk_chat_options_t options = TNK_CHAT_OPTIONS_INIT;

  options.now_s = now_s;
  options.is_canceled = is_canceled;
  options.user = (void *)(uintptr_t)job;
  if (!job->gateway->keeps_controls) {
    options.text_roles = roles;
    options.n_text_roles = sizeof(roles) / sizeof(roles[0]);
  }
  return options;
}

/* The conversation of a job with more messages, a list in the format of
 * templates. Its variables are set. `*out` is NULL on failure. */
static int add_messages(const tnk__gw_job_t *job, const char *json, size_t n,
                        tnk_chat_t **out, tnk__gw_fault_t *fault) {
  tnk_chat_error_t error = {0};
  char *text;
  size_t n_text;
  int err;

  *out = NULL;
  if (tnk_chat_write(job->chat, TNK_CHAT_TEMPLATE, &text, &n_text, &error) !=
      TNK_OK)
    return tnk__gw_talk_failed(&error, fault);
  err = tnk__gw_talk_read(job, TNK_CHAT_TEMPLATE, text, n_text, out, fault);
  tnk_chat_free_text(job->chat, text);
  if (err == 0 &&
      tnk_chat_read(*out, TNK_CHAT_TEMPLATE, json, n, &error) != TNK_OK)
    err = tnk__gw_talk_failed(&error, fault);
  if (err == 0)
    err = tnk__gw_talk_set(job, *out, fault);
  if (err == 0)
    return 0;
  tnk_chat_free(*out);
  *out = NULL;
  return -1;
}

int tnk__gw_talk_text(const tnk__gw_job_t *job, const tnk_chat_t *chat,
                      tnk_choice_t is_prompt, tnk__buf_t *out,
                      tnk__gw_cannot_t cannot, tnk__gw_fault_t *fault) {
  tnk_chat_options_t options = tnk__gw_talk_options(job);
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

int tnk__gw_talk_after(const tnk__gw_job_t *job, const tnk__buf_t *prompt,
                       const tnk__buf_t *list, const char *misplaced,
                       tnk__buf_t *out, tnk__gw_cannot_t cannot,
                       tnk__gw_fault_t *fault) {
  tnk_chat_t *chat;
  int err;

  if (add_messages(job, (const char *)list->data, list->len, &chat, fault) != 0)
    return -1;
  err = tnk__gw_talk_text(job, chat, TNK_NO, out, cannot, fault);
  tnk_chat_free(chat);
  if (err != 0)
    return err;
  if (out->len < prompt->len ||
      memcmp(out->data, prompt->data, prompt->len) != 0)
    return cannot(fault, misplaced);
  tnk__buf_consume(out, prompt->len);
  return 0;
}

static int take_ids(const int32_t *ids, size_t n, void *user) {
  return tnk__buf_append(user, ids, n * sizeof(*ids));
}

static int take_bytes(const char *bytes, size_t n, void *user) {
  return tnk__buf_append(user, bytes, n);
}

int tnk__gw_talk_ids(const tnk__gw_job_t *job, const tnk__buf_t *text,
                     tnk__buf_t *ids, tnk__gw_cannot_t cannot,
                     tnk__gw_fault_t *fault) {
  const tnk_chat_tokenizer_t *tokenizer = &job->gateway->tokenizer;
  const tnk_tokenizer_plugin_t *plugin = tokenizer->plugin;
  size_t n_before = ids->len;
  tnk__buf_t back;
  char why[256] = "";
  int err;

  if (text->len == 0)
    return 0;
  err = plugin->encode(tokenizer->tokenizer, (const char *)text->data,
                       text->len, 0, take_ids, ids, why, sizeof(why));
  tnk__buf_init(&back, &job->gateway->alloc, SIZE_MAX);
  if (err == TNK_OK && ids->len > n_before)
    err = plugin->decode(tokenizer->tokenizer,
                         (const int32_t *)(const void *)(ids->data + n_before),
                         (ids->len - n_before) / sizeof(int32_t), 0, take_bytes,
                         &back, why, sizeof(why));
  if (err == TNK_ENOMEM)
    err = no_memory(fault);
  else if (err != TNK_OK)
    err = cannot(fault, why);
  else if (back.len != text->len ||
           (back.len > 0 && memcmp(back.data, text->data, back.len) != 0))
    err = cannot(fault, "its tokens are those of another text");
  tnk__buf_deinit(&back);
  return err;
}

/* SPDX-License-Identifier: MIT */
#include "chat/object.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/base/options.h"

int tnk__chat_end(tnk_chat_error_t *error, int err, const tnk__why_t *why) {
  if (error == NULL)
    return err;
  memset(error, 0, sizeof(*error));
  error->code = err;
  if (err == TNK_OK)
    return err;
  error->line = why->code == err ? why->line : 0;
  (void)snprintf(error->text, sizeof(error->text), "%s",
                 why->text[0] != '\0' ? why->text
                 : err == TNK_ENOMEM  ? "out of memory"
                                      : "invalid argument");
  return err;
}

int tnk__chat_end_template(tnk_chat_error_t *error, int err,
                           const tnk__why_t *why, const char *path) {
  tnk__why_t named = *why;

  if (err != TNK_OK && path != NULL && why->code == err && why->line > 0) {
    const size_t n = strlen(path);

    (void)tnk__why(&named, err, 0, "%s%.280s: %s", n > 100 ? "..." : "",
                   n > 100 ? path + n - 100 : path, why->text);
    named.line = why->line;
  }
  return tnk__chat_end(error, err, &named);
}

static int check_options(const tnk_chat_options_t *options, tnk__why_t *why) {
  if (options->n_roles > 0 && options->roles == NULL)
    return tnk__why(why, TNK_EINVAL, 0, "n_roles says more than there are");
  for (uint32_t i = 0; i < options->n_roles; i++)
    if (options->roles[i] == NULL)
      return tnk__why(why, TNK_EINVAL, 0, "roles[%u] is NULL", (unsigned)i);
  if (options->n_text_roles > 0 && options->text_roles == NULL)
    return tnk__why(why, TNK_EINVAL, 0,
                    "n_text_roles says more than there are");
  for (size_t i = 0; i < options->n_text_roles; i++)
    if (options->text_roles[i] == NULL)
      return tnk__why(why, TNK_EINVAL, 0, "text_roles[%zu] is NULL", i);
  if (options->n_message_weights > 0 && options->message_weights == NULL)
    return tnk__why(why, TNK_EINVAL, 0,
                    "n_message_weights says more than there are");
  return TNK_OK;
}

int tnk__chat_options(tnk_chat_options_t *own, const tnk_chat_options_t *given,
                      tnk__why_t *why) {
  char said[TNK__MAX_WHY];
  const int err = TNK__LOAD(tnk_chat_options_t, own, given, said, sizeof(said));

  return err != TNK_OK ? tnk__why(why, err, 0, "%s", said)
                       : check_options(own, why);
}

int tnk__chat_coder(tnk__coder_t *coder, const tnk_chat_tokenizer_t *tokenizer,
                    int needs_encode, tnk__why_t *why) {
  const tnk_tokenizer_plugin_t defaults = TNK_TOKENIZER_PLUGIN_INIT;
  char said[TNK__MAX_WHY];
  int err;

  memset(coder, 0, sizeof(*coder));
  coder->calls = defaults;
  if (tokenizer == NULL || tokenizer->plugin == NULL)
    return tnk__why(why, TNK_EINVAL, 0, "no tokenizer");
  coder->tokenizer = tokenizer->tokenizer;
  err = TNK__LOAD(tnk_tokenizer_plugin_t, &coder->calls, tokenizer->plugin,
                  said, sizeof(said));
  if (err != TNK_OK)
    return tnk__why(why, err, 0, "%s", said);
  if ((needs_encode && coder->calls.encode == NULL) ||
      coder->calls.decode == NULL)
    return tnk__why(why, TNK_EUNSUPPORTED, 0,
                    "the plug-in of the tokenizer has no `%s`",
                    coder->calls.decode == NULL ? "decode" : "encode");
  return TNK_OK;
}

static void put_all(tnk__heap_t *heap, tnk__value_t to, tnk__value_t from) {
  const tnk__value_dict_t *dict = from.as.dict;

  for (size_t i = 0; i < dict->n; i++)
    tnk__value_put(heap, to, dict->entries[i].key, dict->entries[i].value);
}

/* CPU time of this thread, or 0 if the system does not know it. */
static uint64_t cpu_ns(void) {
#ifdef CLOCK_THREAD_CPUTIME_ID
  struct timespec used;

  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) == 0)
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
#endif
  return 0;
}

int tnk__chat_prompt(tnk__prompt_t *prompt, tnk__heap_t *heap,
                     const tnk_chat_template_t *of, const tnk_chat_t *chat,
                     const tnk_chat_options_t *options, tnk__why_t *why) {
  const int has_tools = tnk__value_truth(chat->tools);

  memset(prompt, 0, sizeof(*prompt));
  prompt->template_ =
      has_tools && of->tool_use != NULL ? of->tool_use : of->plain;
  prompt->stops = of->stops;
  prompt->rest = of->rest;
  prompt->alloc = &chat->alloc;
  prompt->env.now_s = options->now_s;
  prompt->env.cpu_ns = cpu_ns;
  prompt->env.is_canceled = options->is_canceled;
  prompt->env.user = options->user;
  prompt->variables = tnk__value_dict(heap);
  put_all(heap, prompt->variables, of->tokens);
  if (has_tools)
    tnk__value_set(heap, prompt->variables, "tools", chat->tools);
  put_all(heap, prompt->variables, chat->variables);
  return heap->err == TNK_OK ? TNK_OK
                             : tnk__why(why, heap->err, 0, "out of memory");
}

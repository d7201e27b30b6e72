/* SPDX-License-Identifier: MIT */
/* Encoding of conversations to text and tokens. */
#include <math.h>
#include <string.h>

#include "chat/object.h"
#include "chat/render/bridge.h"
#include "chat/render/mask.h"
#include "lib/base/alloc.h"

#define MAX_BYTES (SIZE_MAX / 2)

struct tnk_chat_tokens {
  tnk_allocator_t alloc;
  tnk__marked_t marked;
};

/* State of one public call. */
typedef struct {
  tnk_chat_options_t options;
  tnk__coder_t coder;
  tnk__heap_t heap; /* memory of the variables */
  tnk__prompt_t prompt;
  const tnk_chat_t *chat;
  const char *name; /* of the template; or NULL */
  tnk__value_t
      messages; /* a list: all messages of the chat, or the first ones */
  tnk__value_list_t first_ones; /* that list, if it is not the chat's */
  int is_open;                  /* ends with the start of an answer */
  tnk__buf_t text, spans, cuts, weights;
  tnk__guard_t guard;
  tnk__buf_t barriers; /* positions of the removed marks in the text */
  tnk__why_t why;
} job_t;

static size_t n_messages(const job_t *job) {
  return job->messages.as.list->n;
}

static int has_role(const job_t *job, size_t i, const char *role) {
  return tnk__value_is(tnk__value_get(job->messages.as.list->items[i], "role"),
                       role);
}

static int begin(job_t *job, const tnk_chat_template_t *of,
                 const tnk_chat_t *chat, const tnk_chat_options_t *options) {
  const tnk_chat_options_t defaults = TNK_CHAT_OPTIONS_INIT;
  int err;

  memset(job, 0, sizeof(*job));
  job->options = defaults;
  job->chat = chat;
  if (of == NULL || chat == NULL)
    return tnk__why(&job->why, TNK_EINVAL, 0, "no template or conversation");
  job->messages = chat->messages;
  job->name = of->name;
  tnk__heap_init(&job->heap, &chat->alloc, TNK__CHAT_MAX_HEAP);
  tnk__buf_init(&job->text, &chat->alloc, MAX_BYTES);
  tnk__buf_init(&job->spans, &chat->alloc, MAX_BYTES);
  tnk__buf_init(&job->cuts, &chat->alloc, MAX_BYTES);
  tnk__buf_init(&job->weights, &chat->alloc, MAX_BYTES);
  tnk__buf_init(&job->barriers, &chat->alloc, MAX_BYTES);
  err = tnk__chat_options(&job->options, options, &job->why);
  if (err == TNK_OK)
    err = tnk__chat_prompt(&job->prompt, &job->heap, of, chat, &job->options,
                           &job->why);
  if (err != TNK_OK)
    return err;
  job->is_open = job->options.generation_prompt == TNK_YES;
  if (job->options.generation_prompt == TNK_DEFAULT)
    job->is_open = job->options.train_on == TNK_CHAT_TRAIN_NOTHING &&
                   (n_messages(job) == 0 ||
                    !has_role(job, n_messages(job) - 1, "assistant"));
  return TNK_OK;
}

static int end(job_t *job, int err, tnk_chat_error_t *error) {
  if (job->prompt.alloc != NULL || job->text.alloc != NULL) {
    tnk__heap_deinit(&job->heap);
    tnk__buf_deinit(&job->text);
    tnk__buf_deinit(&job->spans);
    tnk__buf_deinit(&job->cuts);
    tnk__buf_deinit(&job->weights);
    tnk__buf_deinit(&job->barriers);
    if (job->prompt.guard != NULL)
      tnk__guard_close(&job->guard);
  }
  return tnk__chat_end_template(error, err, &job->why, job->name);
}

static int render(job_t *job) {
  return tnk__prompt_text(&job->prompt, job->messages, n_messages(job),
                          job->is_open, &job->text, &job->spans, &job->why);
}

int tnk_chat_text(char **text, size_t *n, const tnk_chat_template_t *template_,
                  const tnk_chat_t *chat, const tnk_chat_options_t *options,
                  tnk_chat_error_t *error) {
  job_t job;
  size_t len;
  int err = begin(&job, template_, chat, options);

  if (n != NULL)
    *n = 0;
  if (text == NULL && err == TNK_OK)
    err = tnk__why(&job.why, TNK_EINVAL, 0, "no place for the text");
  if (text != NULL)
    *text = NULL;
  if (err == TNK_OK)
    err = render(&job);
  if (err == TNK_OK && tnk__buf_cstr(&job.text) == NULL)
    err = tnk__why(&job.why, TNK_ENOMEM, 0, "out of memory");
  if (err == TNK_OK) {
    *text = (char *)tnk__buf_take(&job.text, &len);
    if (n != NULL)
      *n = len;
  }
  return end(&job, err, error);
}

/* ---- Weights ---- */

static int is_in(const job_t *job, size_t i) {
  for (uint32_t k = 0; k < job->options.n_roles; k++)
    if (has_role(job, i, job->options.roles[k]))
      return 1;
  return 0;
}

static float weight_of(const job_t *job, size_t i) {
  switch (job->options.train_on) {
  case TNK_CHAT_TRAIN_LAST_ANSWER:
    return i + 1 == n_messages(job) ? 1.0f : 0.0f;
  case TNK_CHAT_TRAIN_ALL_ANSWERS:
    return has_role(job, i, "assistant") ? 1.0f : 0.0f;
  case TNK_CHAT_TRAIN_ROLES:
    return is_in(job, i) ? 1.0f : 0.0f;
  case TNK_CHAT_TRAIN_BY_MESSAGE:
    return job->options.message_weights[i];
  case TNK_CHAT_TRAIN_EVERYTHING:
  case TNK_CHAT_TRAIN_NOTHING:
  default:
    return 0.0f;
  }
}

static int check_mask(job_t *job) {
  const tnk_chat_options_t *options = &job->options;
  const size_t n = n_messages(job);

  if ((unsigned)options->train_on > TNK_CHAT_TRAIN_BY_MESSAGE)
    return tnk__why(&job->why, TNK_EINVAL, 0, "train_on has no such value");
  if (options->train_on == TNK_CHAT_TRAIN_LAST_ANSWER &&
      (n == 0 || !has_role(job, n - 1, "assistant")))
    return tnk__why(&job->why, TNK_EINVAL, 0,
                    "the last message is no answer of the assistant");
  if (options->train_on == TNK_CHAT_TRAIN_BY_MESSAGE &&
      options->n_message_weights != n)
    return tnk__why(&job->why, TNK_EINVAL, 0,
                    "there are %zu messages and %zu weights", n,
                    options->n_message_weights);
  return TNK_OK;
}

/* Compute the weights of the messages. */
static int weigh(job_t *job) {
  int err = check_mask(job), has_any = 0;

  for (size_t i = 0; err == TNK_OK && i < n_messages(job); i++) {
    const float weight = weight_of(job, i);

    if (!isfinite(weight))
      return tnk__why(&job->why, TNK_EINVAL, 0,
                      "the weight of message %zu is no number", i);
    has_any |= weight != 0.0f;
    if (tnk__buf_append(&job->weights, &weight, sizeof(weight)) != TNK_OK)
      err = tnk__why(&job->why, TNK_ENOMEM, 0, "out of memory");
  }
  if (err == TNK_OK && !has_any &&
      job->options.train_on != TNK_CHAT_TRAIN_NOTHING &&
      job->options.train_on != TNK_CHAT_TRAIN_EVERYTHING)
    err = tnk__why(&job->why, TNK_EINVAL, 0,
                   "no message has anything to be trained");
  return err;
}

/* ---- Tokens ---- */

tnk_chat_tokens_t *tnk_chat_tokens_new(const tnk_allocator_t *allocator) {
  const tnk_allocator_t *alloc =
      allocator != NULL ? allocator : tnk__allocator_default();
  tnk_chat_tokens_t *tokens = tnk__calloc(alloc, 1, sizeof(*tokens));

  if (tokens == NULL)
    return NULL;
  tokens->alloc = *alloc;
  tnk__marked_init(&tokens->marked, &tokens->alloc);
  return tokens;
}

void tnk_chat_tokens_free(tnk_chat_tokens_t *tokens) {
  tnk_allocator_t alloc;

  if (tokens == NULL)
    return;
  alloc = tokens->alloc;
  tnk__marked_deinit(&tokens->marked);
  tnk__free(&alloc, tokens);
}

const int32_t *tnk_chat_tokens_ids(const tnk_chat_tokens_t *tokens, size_t *n) {
  if (n != NULL)
    *n = tokens == NULL ? 0 : tnk__n_ids(&tokens->marked.ids);
  return tokens == NULL ? NULL : tnk__ids(&tokens->marked.ids);
}

const float *tnk_chat_tokens_weights(const tnk_chat_tokens_t *tokens) {
  return tokens == NULL
             ? NULL
             : (const float *)(const void *)tokens->marked.weights.data;
}

const int32_t *tnk_chat_tokens_messages(const tnk_chat_tokens_t *tokens) {
  return tokens == NULL ? NULL : tnk__ids(&tokens->marked.messages);
}

/* Start to keep control tokens out of the messages of some roles. */
static int guard(job_t *job) {
  const tnk_chat_options_t *options = &job->options;

  if (options->n_text_roles == 0)
    return TNK_OK;
  job->prompt.guard = &job->guard;
  return tnk__guard_open(&job->guard, &job->coder, options->text_roles,
                         options->n_text_roles, job->messages,
                         job->prompt.variables, &job->chat->alloc, &job->why);
}

/* Remove the marks from the text before it is encoded. */
static int strip(job_t *job) {
  if (job->prompt.guard == NULL)
    return TNK_OK;
  job->coder.controls = &job->guard.controls;
  job->coder.barriers = &job->barriers;
  return tnk__guard_strip(&job->guard, &job->text, &job->barriers,
                          job->cuts.data, job->cuts.len / sizeof(tnk__cut_t),
                          sizeof(tnk__cut_t), &job->why);
}

/* Encode the whole text with one weight. */
static int encode_all(job_t *job, tnk__marked_t *marked, float weight) {
  const int err = tnk__ids_encode(&job->coder, &job->text, 0, job->text.len,
                                  &marked->ids, &job->why);

  return err != TNK_OK ? err : tnk__marked_fill(marked, weight, -1, &job->why);
}

/* If a stop starts in an answer and ends in the text after it, add the rest to
 * the last answer. The model then learns the whole stop, which sampling waits
 * for. */
static int add_rest(job_t *job) {
  const char *rest = job->prompt.rest;
  const size_t n = n_messages(job);
  tnk__cut_t cut;

  if (rest == NULL || job->is_open || n == 0 ||
      job->options.train_on == TNK_CHAT_TRAIN_NOTHING ||
      !has_role(job, n - 1, "assistant"))
    return TNK_OK;
  (void)tnk__buf_text(&job->text, rest);
  cut = (tnk__cut_t){
      .end = job->text.len, .message = (int32_t)n - 1, .weight = 0};
  memcpy(&cut.weight, job->weights.data + (n - 1) * sizeof(cut.weight),
         sizeof(cut.weight));
  (void)tnk__buf_append(&job->cuts, &cut, sizeof(cut));
  return job->text.err == TNK_OK && job->cuts.err == TNK_OK
             ? TNK_OK
             : tnk__why(&job->why, TNK_ENOMEM, 0, "out of memory");
}

static int encode_cut(job_t *job, tnk__marked_t *marked) {
  const int by_parts = job->options.by_parts == TNK_YES;
  const tnk__mask_t mask = {
      .prompt = &job->prompt,
      .messages = job->messages,
      .weights = (const float *)(const void *)job->weights.data,
      .text = &job->text,
      .spans = &job->spans,
      .is_open = job->is_open,
      .each = by_parts,
  };
  int err = tnk__mask_cut(&mask, &job->cuts, &job->why);

  if (err == TNK_OK)
    err = add_rest(job);
  if (err == TNK_OK)
    err = strip(job);
  if (err != TNK_OK)
    return err;
  return by_parts ? tnk__tokens_parts(&job->coder, &job->text, &job->cuts,
                                      marked, &job->why)
                  : tnk__tokens_whole(&job->coder, &job->text, &job->cuts,
                                      marked, &job->why);
}

/* Give every token this weight. Encoding by parts also cuts where the weight
 * stays the same. */
static void set_weights(tnk__marked_t *marked, float weight) {
  for (size_t i = 0; i < tnk__n_ids(&marked->ids); i++)
    memcpy(marked->weights.data + i * sizeof(weight), &weight, sizeof(weight));
}

static int encode(job_t *job, tnk__marked_t *marked) {
  const int everything = job->options.train_on == TNK_CHAT_TRAIN_EVERYTHING;
  int err = weigh(job);

  if (err == TNK_OK)
    err = render(job);
  if (err != TNK_OK)
    return err;
  if (job->options.by_parts != TNK_YES &&
      (everything || job->options.train_on == TNK_CHAT_TRAIN_NOTHING)) {
    err = add_rest(job);
    if (err == TNK_OK)
      err = strip(job);
    return err != TNK_OK ? err
                         : encode_all(job, marked, everything ? 1.0f : 0.0f);
  }
  err = encode_cut(job, marked);
  if (err == TNK_OK && everything)
    set_weights(marked, 1.0f);
  return err;
}

/* Begin a call that returns tokens, and clear `tokens`. */
static int begin_tokens(job_t *job, tnk_chat_tokens_t *tokens,
                        const tnk_chat_template_t *template_,
                        const tnk_chat_tokenizer_t *tokenizer,
                        const tnk_chat_t *chat,
                        const tnk_chat_options_t *options) {
  int err = begin(job, template_, chat, options);

  if (tokens != NULL)
    tnk__marked_clear(&tokens->marked);
  if (err != TNK_OK)
    return err;
  if (tokens == NULL)
    return tnk__why(&job->why, TNK_EINVAL, 0, "no place for the tokens");
  err = tnk__chat_coder(&job->coder, tokenizer, 1, &job->why);
  return err == TNK_OK ? guard(job) : err;
}

/* End such a call. After a failure `tokens` is empty. */
static int end_tokens(job_t *job, tnk_chat_tokens_t *tokens, int err,
                      tnk_chat_error_t *error) {
  if (err != TNK_OK && tokens != NULL)
    tnk__marked_clear(&tokens->marked);
  return end(job, err, error);
}

int tnk_chat_encode(tnk_chat_tokens_t *tokens,
                    const tnk_chat_template_t *template_,
                    const tnk_chat_tokenizer_t *tokenizer,
                    const tnk_chat_t *chat, const tnk_chat_options_t *options,
                    tnk_chat_error_t *error) {
  job_t job;
  int err = begin_tokens(&job, tokens, template_, tokenizer, chat, options);

  if (err == TNK_OK)
    err = encode(&job, &tokens->marked);
  return end_tokens(&job, tokens, err, error);
}

/* Drop the messages after an answer, and train on that answer. */
static int take_answer(job_t *job, size_t index) {
  if (index >= n_messages(job) || !has_role(job, index, "assistant"))
    return tnk__why(&job->why, TNK_EINVAL, 0,
                    "message %zu is no answer of the assistant", index);
  job->first_ones = *job->messages.as.list;
  job->first_ones.n = index + 1;
  job->messages.as.list = &job->first_ones;
  job->options.train_on = TNK_CHAT_TRAIN_LAST_ANSWER;
  job->is_open = 0;
  return TNK_OK;
}

int tnk_chat_encode_answer(tnk_chat_tokens_t *tokens,
                           const tnk_chat_template_t *template_,
                           const tnk_chat_tokenizer_t *tokenizer,
                           const tnk_chat_t *chat, size_t index,
                           const tnk_chat_options_t *options,
                           tnk_chat_error_t *error) {
  job_t job;
  int err = begin_tokens(&job, tokens, template_, tokenizer, chat, options);

  if (err == TNK_OK)
    err = take_answer(&job, index);
  if (err == TNK_OK)
    err = encode(&job, &tokens->marked);
  return end_tokens(&job, tokens, err, error);
}

static int go_on(job_t *job, const int32_t *ids, size_t n_ids, size_t first,
                 tnk__marked_t *marked) {
  size_t n_ending = 0;
  int err;

  if (ids == NULL || n_ids == 0)
    return tnk__why(&job->why, TNK_EINVAL, 0, "no ids to go on from");
  if (first >= n_messages(job))
    return tnk__why(&job->why, TNK_EINVAL, 0, "there is no new message");
  if (first > 0 && !has_role(job, first - 1, "assistant"))
    return tnk__why(&job->why, TNK_EINVAL, 0,
                    "the message before the first new one is no answer");
  err = tnk__bridge_text(&job->prompt, job->messages, first, &job->text,
                         &n_ending, &job->why);
  if (err == TNK_OK)
    err = strip(job);
  if (err == TNK_OK)
    err = tnk__bridge_ids(&job->prompt, &job->coder, ids, n_ids, &job->text,
                          n_ending, &marked->ids, &job->why);
  return err != TNK_OK ? err : tnk__marked_fill(marked, 0, -1, &job->why);
}

int tnk_chat_continue(tnk_chat_tokens_t *tokens,
                      const tnk_chat_template_t *template_,
                      const tnk_chat_tokenizer_t *tokenizer, const int32_t *ids,
                      size_t n_ids, const tnk_chat_t *chat, size_t first,
                      const tnk_chat_options_t *options,
                      tnk_chat_error_t *error) {
  job_t job;
  int err = begin_tokens(&job, tokens, template_, tokenizer, chat, options);

  if (err == TNK_OK)
    err = go_on(&job, ids, n_ids, first, &tokens->marked);
  return end_tokens(&job, tokens, err, error);
}

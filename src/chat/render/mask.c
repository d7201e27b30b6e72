/* SPDX-License-Identifier: MIT */
#include "chat/render/mask.h"

#include <string.h>

#include "lib/base/utf8.h"
#include "tnk/error.h"

/* Renderings have their own limit. */
#define MAX_TEXT (SIZE_MAX / 2)

/* Bytes of an empty block that a template removes, as <think></think>. Each is
 * compared with the rest of the answer, so there must not be many. */
enum { MAX_BLOCK = 256 };

/* State of finding one message. */
typedef struct {
  const tnk__mask_t *mask;
  size_t index;
  size_t span;          /* index of the current answer among all answers */
  int is_without_calls; /* the answer with other content has no calls */
  tnk__buf_t opened; /* the messages before the current one, and the start of an
                        answer */
  tnk__buf_t closed; /* the messages up to the current one */
  tnk__buf_t other;  /* a rendering with other content */
} finder_t;

static tnk__value_t message_at(const finder_t *finder) {
  return finder->mask->messages.as.list->items[finder->index];
}

static int is_answer(tnk__value_t message) {
  return tnk__value_is(tnk__value_get(message, "role"), "assistant");
}

/* Pass on errors of memory and limits. If the template cannot render the first
 * messages without the rest, report the consequence for the mask. */
static int explain(tnk__why_t *why, int err, size_t index) {
  tnk__why_t said;

  if (err != TNK_EINVAL || why == NULL)
    return err == TNK_EINVAL ? TNK_EUNSUPPORTED : err;
  said = *why;
  return tnk__why(why, TNK_EUNSUPPORTED, said.line,
                  "where message %zu stands cannot be told, since the template "
                  "refuses the messages up to there alone: %.200s",
                  index, said.text);
}

/* Render the first messages. */
static int render(finder_t *finder, size_t n, int is_open, tnk__buf_t *out,
                  tnk__why_t *why) {
  const tnk__mask_t *mask = finder->mask;

  tnk__buf_clear(out);
  return explain(why,
                 tnk__prompt_text(mask->prompt, mask->messages, n, is_open, out,
                                  NULL, why),
                 finder->index);
}

/* Report how a rendering differs from the whole text. `helps`: an example of
 * each answer shows the message as it is sampled. */
static int refuse(const finder_t *finder, const tnk__buf_t *rendered, int helps,
                  tnk__why_t *why) {
  const size_t at = tnk__prompt_common(rendered, finder->mask->text);
  const int is_open = rendered == &finder->opened;
  char had[40], has[40];

  tnk__prompt_quote(rendered, at, had, sizeof(had));
  tnk__prompt_quote(finder->mask->text, at, has, sizeof(has));
  return tnk__why(
      why, TNK_EUNSUPPORTED, 0,
      "message %zu cannot be trained: the template %s \"%s\" at byte "
      "%zu, and %s\"%s\" there once %s%s",
      finder->index, is_open ? "begins an answer with" : "writes", had, at,
      is_open ? "writes " : "", has,
      is_open ? "the answer is known" : "other messages follow",
      helps ? "; make an example of each answer" : "");
}

/* Render the messages up to the current one. The text of the last message ends
 * with the whole text. */
static int render_closed(finder_t *finder, const tnk__buf_t **closed,
                         tnk__why_t *why) {
  const tnk__mask_t *mask = finder->mask;

  *closed = mask->text;
  if (finder->index + 1 == mask->messages.as.list->n && !mask->is_open)
    return TNK_OK;
  *closed = &finder->closed;
  return render(finder, finder->index + 1, 0, &finder->closed, why);
}

/* The first and the last character of the content that are not white space. */
static void find_ends(tnk__value_t content, char ends[2]) {
  if (content.kind == TNK__VALUE_LIST)
    for (size_t i = 0; i < content.as.list->n; i++)
      find_ends(tnk__value_get(content.as.list->items[i], "text"), ends);
  if (content.kind == TNK__VALUE_TEXT)
    for (uint32_t i = 0; i < content.n_text; i++)
      if ((unsigned char)content.as.text[i] > ' ') {
        ends[0] = ends[0] == '\0' ? content.as.text[i] : ends[0];
        ends[1] = content.as.text[i];
      }
}

/* The first n messages, with other content in the current one. */
static tnk__value_t say_other(finder_t *finder, tnk__heap_t *heap, size_t n) {
  const tnk__value_t message = message_at(finder);
  tnk__value_t list = tnk__value_list(heap), changed = tnk__value_dict(heap);
  const char *other = "XYZ";
  char ends[2] = {'\0', '\0'};

  find_ends(tnk__value_get(message, "content"), ends);
  while (*other == ends[0] || *other == ends[1])
    other++;
  if (message.kind == TNK__VALUE_DICT)
    for (size_t i = 0; i < message.as.dict->n; i++)
      if (!finder->is_without_calls ||
          !tnk__value_is(message.as.dict->entries[i].key, "tool_calls"))
        tnk__value_put(heap, changed, message.as.dict->entries[i].key,
                       message.as.dict->entries[i].value);
  tnk__value_set(heap, changed, "content", tnk__value_text(other, 1));
  for (size_t i = 0; i < n; i++)
    tnk__value_append(heap, list,
                      i == finder->index
                          ? changed
                          : finder->mask->messages.as.list->items[i]);
  return list;
}

/* Render the first n messages, with other content in the current one. */
static int render_other(finder_t *finder, size_t n, int is_open,
                        tnk__why_t *why) {
  const tnk__mask_t *mask = finder->mask;
  tnk__heap_t heap;
  tnk__value_t list;
  int err;

  tnk__heap_init(&heap, mask->prompt->alloc, TNK__CHAT_MAX_HEAP);
  list = say_other(finder, &heap, n);
  tnk__buf_clear(&finder->other);
  err = heap.err != TNK_OK
            ? tnk__why(why, heap.err, 0, "out of memory")
            : explain(why,
                      tnk__prompt_text(mask->prompt, list, n, is_open,
                                       &finder->other, NULL, why),
                      finder->index);
  tnk__heap_deinit(&heap);
  return err;
}

/* Find the start of a message's content: the first difference if the content is
 * changed. */
static int find_words(finder_t *finder, size_t *begin, tnk__why_t *why) {
  const tnk__mask_t *mask = finder->mask;
  const int err = render_other(finder, finder->index + 1, 0, why);

  if (err == TNK_OK)
    *begin = tnk__prompt_common(&finder->other, mask->text);
  /* As in tokenizers, a leading space belongs to the first word. */
  if (err == TNK_OK && *begin > 0 && mask->text->data[*begin - 1] == ' ')
    (*begin)--;
  return err;
}

/* Find the content of a message with weight 0 in the whole text. Its content is
 * the range that changes if the content is changed. The template may write
 * messages before an answer differently from how it would write them on their
 * own. */
static int find_in_place(finder_t *finder, size_t *begin, size_t *end,
                         tnk__why_t *why) {
  const tnk__mask_t *mask = finder->mask;
  const tnk__buf_t *text = mask->text, *other = &finder->other;
  size_t n = 0, max;
  const int err =
      render_other(finder, mask->messages.as.list->n, mask->is_open, why);

  if (err != TNK_OK)
    return err;
  *begin = tnk__prompt_common(other, text);
  max = (other->len < text->len ? other->len : text->len) - *begin;
  while (n < max &&
         other->data[other->len - n - 1] == text->data[text->len - n - 1])
    n++;
  while (n > 0 && (text->data[text->len - n] & 0xc0) == 0x80)
    n--;
  *end = text->len - n;
  *end += tnk__prompt_stop_at(mask->prompt, text, *end);
  return TNK_OK;
}

static size_t n_spans(const tnk__mask_t *mask) {
  return mask->spans->len / sizeof(tnk__template_span_t);
}

/* Returns whether the text contains these words. */
static int says(const tnk__buf_t *text, size_t from, size_t to,
                tnk__value_t words) {
  const char *begin = words.as.text, *end = begin + words.n_text;

  while (begin < end && (unsigned char)*begin <= ' ')
    begin++;
  while (end > begin && (unsigned char)end[-1] <= ' ')
    end--;
  for (size_t n = (size_t)(end - begin); n > 0 && from + n <= to; from++)
    if (memcmp(text->data + from, begin, n) == 0)
      return 1;
  return 0;
}

static int has_calls(tnk__value_t message) {
  return tnk__value_truth(tnk__value_get(message, "tool_calls"));
}

/* Returns whether an answer has no thoughts, and the range of the text has its
 * words. An answer with calls may have no words. */
static int is_without_thoughts(const finder_t *finder, size_t from, size_t to) {
  const tnk__value_t message = message_at(finder);
  const tnk__value_t content = tnk__value_get(message, "content");

  if (tnk__prompt_thoughts(message).kind > TNK__VALUE_NONE)
    return 0;
  if (content.kind == TNK__VALUE_TEXT && content.n_text > 0)
    return says(finder->mask->text, from, to, content);
  return content.kind <= TNK__VALUE_TEXT && has_calls(message);
}

/* White space after the end of an answer is never sampled. */
static void trim(const finder_t *finder, size_t begin, size_t *end) {
  size_t stop;

  (void)tnk__prompt_stop(finder->mask->prompt, finder->mask->text, begin, *end,
                         &stop, end);
}

/* Find an answer that the template does not write after the start that it
 * writes for answers. The text before that start must be the same. */
static int find_own_words(finder_t *finder, size_t *begin, size_t *end,
                          tnk__why_t *why) {
  const tnk__buf_t *text = finder->mask->text;
  size_t common = tnk__prompt_common(&finder->opened, text);
  int err = render(finder, finder->index, 0, &finder->other, why);

  if (err != TNK_OK || !tnk__prompt_begins(&finder->other, text) ||
      common < finder->other.len)
    return err != TNK_OK ? err : TNK_EUNSUPPORTED;
  err = find_words(finder, begin, why);
  if (err != TNK_OK)
    return err;
  trim(finder, *begin, end);
  return *begin >= common && *begin < *end &&
                 is_without_thoughts(finder, *begin, *end)
             ? TNK_OK
             : TNK_EUNSUPPORTED;
}

/*
 * Find an answer by two renderings: the start of the answer after the messages
 * before it, and the messages up to it. Usually both are prefixes of the whole
 * text. There are two exceptions.
 *
 * The template may end an answer differently if other messages follow. What is
 * before the end is the same, and only that is trained.
 *
 * The template may begin an answer with the start of thoughts, and write
 * another text if the answer has none. It never shows such an answer after the
 * start that it writes. The answer is trained from its own words on, after the
 * text that the template writes instead.
 */
static int find_tile(finder_t *finder, const tnk__buf_t *closed, size_t *begin,
                     size_t *end, tnk__why_t *why) {
  const tnk__mask_t *mask = finder->mask;
  const tnk__buf_t *opened = &finder->opened, *text = mask->text;
  const int follows = tnk__prompt_begins(opened, text);
  const int is_kept = tnk__prompt_begins(closed, text);
  const int is_sampled = tnk__prompt_begins(opened, closed);
  size_t stop, ignored;
  int err;

  *begin = opened->len;
  *end = closed->len;
  if (follows && is_kept) {
    trim(finder, *begin, end);
    return TNK_OK;
  }
  if (follows && is_sampled &&
      tnk__prompt_stop(mask->prompt, closed, *begin, *end, &stop, &ignored) &&
      tnk__prompt_common(closed, text) >= stop) {
    *end = stop;
    return TNK_OK;
  }
  if (is_kept && !is_sampled) {
    err = find_own_words(finder, begin, end, why);
    if (err != TNK_EUNSUPPORTED)
      return err;
  }
  return follows ? refuse(finder, closed, is_sampled, why)
                 : refuse(finder, opened, is_sampled, why);
}

/* Find an answer that has only text. It can be trained on even if the template
 * writes it differently after more messages follow. It must come after the
 * start of an answer, contain its words, and end as answers end. */
static int find_words_of_answer(finder_t *finder, size_t *begin, size_t *end,
                                tnk__why_t *why) {
  const tnk__mask_t *mask = finder->mask;
  size_t words, stop;
  int err;

  if (!tnk__prompt_begins(&finder->opened, mask->text) ||
      has_calls(message_at(finder)))
    return TNK_EUNSUPPORTED;
  *begin = finder->opened.len;
  err = find_in_place(finder, &words, end, why);
  if (err != TNK_OK)
    return err;
  return *begin <= words && is_without_thoughts(finder, words, *end) &&
                 tnk__prompt_stop(mask->prompt, mask->text, words, *end, &stop,
                                  end)
             ? TNK_OK
             : TNK_EUNSUPPORTED;
}

/* Find an answer with calls from which the template removes an empty block, for
 * example of thoughts, once other messages follow. The rest of the answer must
 * be unchanged. The removed text must be short and the template's own: it also
 * begins an answer that has other words and no calls. */
static int find_rest_of_answer(finder_t *finder, const tnk__buf_t *closed,
                               size_t *begin, size_t *end, tnk__why_t *why) {
  const tnk__mask_t *mask = finder->mask;
  const tnk__buf_t *text = mask->text;
  size_t at = finder->opened.len, stop, n;
  int err;

  *begin = at;
  if (!tnk__prompt_begins(&finder->opened, text) ||
      !tnk__prompt_begins(&finder->opened, closed) ||
      !has_calls(message_at(finder)) ||
      !tnk__prompt_stop(mask->prompt, closed, at, closed->len, &stop, &stop))
    return TNK_EUNSUPPORTED;
  finder->is_without_calls = 1;
  err = render_other(finder, finder->index + 1, 0, why);
  finder->is_without_calls = 0;
  if (err != TNK_OK)
    return err;
  n = tnk__prompt_common(&finder->other, closed);
  if (n > at + MAX_BLOCK)
    n = at + MAX_BLOCK;
  for (; at <= n; at++) {
    *end = *begin + (stop - at);
    if (at < stop && *end <= text->len &&
        memcmp(text->data + *begin, closed->data + at, stop - at) == 0)
      return is_without_thoughts(finder, *begin, *end) ? TNK_OK
                                                       : TNK_EUNSUPPORTED;
  }
  return TNK_EUNSUPPORTED;
}

static int find_answer(finder_t *finder, size_t *begin, size_t *end,
                       tnk__why_t *why) {
  const int is_trained = finder->mask->weights[finder->index] != 0.0f;
  const tnk__buf_t *closed;
  tnk__why_t other = {0};
  int err = render(finder, finder->index, 1, &finder->opened, why);
  int again = TNK_EUNSUPPORTED, is_closed;

  if (err != TNK_OK)
    return err;
  err = render_closed(finder, &closed, why);
  is_closed = err == TNK_OK;
  if (err == TNK_OK)
    err = find_tile(finder, closed, begin, end, why);
  if (err != TNK_EUNSUPPORTED || !is_trained)
    return err;
  if (is_closed)
    again = find_rest_of_answer(finder, closed, begin, end, &other);
  if (again == TNK_EUNSUPPORTED)
    again = find_words_of_answer(finder, begin, end, &other);
  if (again == TNK_EUNSUPPORTED)
    return err;
  if (again != TNK_OK && why != NULL)
    *why = other;
  return again;
}

static int find_message(finder_t *finder, size_t *begin, size_t *end,
                        tnk__why_t *why) {
  const tnk__buf_t *closed;
  int err = find_words(finder, begin, why);

  if (err == TNK_OK)
    err = render_closed(finder, &closed, why);
  if (err != TNK_OK)
    return err;
  if (!tnk__prompt_begins(closed, finder->mask->text))
    return refuse(finder, closed, 0, why);
  *end = closed->len;
  trim(finder, *begin, end);
  return TNK_OK;
}

/* Find the range of a message to train on: [*begin, *end). */
static int find(finder_t *finder, size_t *begin, size_t *end, tnk__why_t *why) {
  const tnk__mask_t *mask = finder->mask;
  const int is_of_answer = is_answer(message_at(finder));
  const tnk__template_span_t *spans = (const void *)mask->spans->data;
  int err = TNK_OK;

  if (is_of_answer && n_spans(mask) > 0) {
    *begin = spans[finder->span].start;
    *end = spans[finder->span].end;
    return TNK_OK;
  }
  err = is_of_answer ? find_answer(finder, begin, end, why)
                     : find_message(finder, begin, end, why);
  if (err == TNK_OK && *begin > *end)
    err = tnk__why(why, TNK_EUNSUPPORTED, 0,
                   "message %zu ends before it begins", finder->index);
  return err;
}

static void put(tnk__buf_t *cuts, size_t *at, size_t end, int32_t message,
                float weight) {
  const tnk__cut_t cut = {end, message, weight};

  if (end > *at)
    (void)tnk__buf_append(cuts, &cut, sizeof(cut));
  *at = end;
}

static int cut_message(finder_t *finder, size_t *at, tnk__buf_t *cuts,
                       tnk__why_t *why) {
  const tnk__mask_t *mask = finder->mask;
  const float weight = mask->weights[finder->index];
  size_t begin = 0, end = 0;
  int err = find(finder, &begin, &end, why);

  if (err == TNK_EUNSUPPORTED && mask->each && !(weight != 0.0f))
    err = find_in_place(finder, &begin, &end, why);
  if (err == TNK_OK && begin < *at)
    err = tnk__why(why, TNK_EUNSUPPORTED, 0,
                   "message %zu begins before the one in front of it ends",
                   finder->index);
  /* A message with weight 0 need not be found. */
  if (err == TNK_EUNSUPPORTED && !mask->each && !(weight != 0.0f))
    return TNK_OK;
  if (err != TNK_OK)
    return err;
  put(cuts, at, begin, (int32_t)finder->index, 0);
  put(cuts, at, end, (int32_t)finder->index, weight);
  return TNK_OK;
}

/* Generation blocks are used only if each answer has one. */
static int check_spans(const tnk__mask_t *mask) {
  size_t n_answers = 0;

  for (size_t i = 0; i < mask->messages.as.list->n; i++)
    n_answers += is_answer(mask->messages.as.list->items[i]) != 0;
  return n_spans(mask) == n_answers;
}

int tnk__mask_cut(const tnk__mask_t *mask, tnk__buf_t *cuts, tnk__why_t *why) {
  static const tnk__buf_t none = {0};
  tnk__mask_t own = *mask;
  finder_t finder = {.mask = &own};
  size_t at = 0;
  int err = TNK_OK;

  if (!check_spans(mask))
    own.spans = &none;
  tnk__buf_init(&finder.opened, mask->prompt->alloc, MAX_TEXT);
  tnk__buf_init(&finder.closed, mask->prompt->alloc, MAX_TEXT);
  tnk__buf_init(&finder.other, mask->prompt->alloc, MAX_TEXT);
  for (; err == TNK_OK && finder.index < own.messages.as.list->n;
       finder.index++) {
    err = cut_message(&finder, &at, cuts, why);
    finder.span += is_answer(message_at(&finder)) != 0;
  }
  put(cuts, &at, own.text->len, -1, 0);
  tnk__buf_deinit(&finder.opened);
  tnk__buf_deinit(&finder.closed);
  tnk__buf_deinit(&finder.other);
  if (cuts->err != TNK_OK)
    err = tnk__why(why, cuts->err, 0, "out of memory");
  return err;
}

/* ---- Tokens ---- */

void tnk__marked_init(tnk__marked_t *marked, const tnk_allocator_t *alloc) {
  tnk__buf_init(&marked->ids, alloc, MAX_TEXT);
  tnk__buf_init(&marked->weights, alloc, MAX_TEXT);
  tnk__buf_init(&marked->messages, alloc, MAX_TEXT);
}

void tnk__marked_deinit(tnk__marked_t *marked) {
  tnk__buf_deinit(&marked->ids);
  tnk__buf_deinit(&marked->weights);
  tnk__buf_deinit(&marked->messages);
}

void tnk__marked_clear(tnk__marked_t *marked) {
  tnk__buf_clear(&marked->ids);
  tnk__buf_clear(&marked->weights);
  tnk__buf_clear(&marked->messages);
}

/* Grow an array of 4-byte elements to one for each id. The caller fills the new
 * ones. NULL: out of memory. */
static void *widen(tnk__buf_t *buf, size_t n_ids, size_t *had) {
  *had = buf->len / 4;
  if (*had < n_ids && tnk__buf_reserve(buf, (n_ids - *had) * 4) != NULL)
    buf->len = n_ids * 4;
  return buf->err == TNK_OK ? buf->data : NULL;
}

int tnk__marked_fill(tnk__marked_t *marked, float weight, int32_t message,
                     tnk__why_t *why) {
  const size_t n = tnk__n_ids(&marked->ids);
  size_t i, k;
  float *weights = widen(&marked->weights, n, &i);
  int32_t *messages = widen(&marked->messages, n, &k);

  if (n > 0 && (weights == NULL || messages == NULL))
    return tnk__why(why, TNK_ENOMEM, 0, "out of memory");
  for (; i < n; i++)
    weights[i] = weight;
  for (; k < n; k++)
    messages[k] = message;
  return TNK_OK;
}

static const tnk__cut_t *cut_at(const tnk__buf_t *cuts, size_t i) {
  return (const tnk__cut_t *)(const void *)cuts->data + i;
}

static size_t n_cuts(const tnk__buf_t *cuts) {
  return cuts->len / sizeof(tnk__cut_t);
}

/* Weights are finite. */
static int same(float a, float b) {
  return !(a < b) && !(b < a);
}

static int refuse_token(const tnk__buf_t *text, size_t begin, size_t end,
                        size_t cut, int32_t message, tnk__why_t *why) {
  char piece[40];

  tnk__prompt_quote(text, begin, piece, sizeof(piece));
  if (end - begin < strlen(piece))
    piece[end - begin] = '\0';
  tnk__utf8_repair(piece);
  return tnk__why(why, TNK_EUNSUPPORTED, 0,
                  "message %d cannot be trained: at byte %zu of the text the "
                  "tokenizer makes one token of what stands on both sides, "
                  "\"%s\"; tokenize by parts",
                  (int)message, cut, piece);
}

/* Mark the tokens whose ends in the text are known. */
static int mark(const tnk__buf_t *text, const tnk__buf_t *cuts,
                const tnk__buf_t *ends, tnk__marked_t *marked,
                tnk__why_t *why) {
  const size_t *end = (const size_t *)(const void *)ends->data;
  size_t begin = 0, at = 0;

  for (size_t i = 0; i < ends->len / sizeof(*end); i++) {
    const tnk__cut_t *cut;

    while (at + 1 < n_cuts(cuts) && cut_at(cuts, at)->end <= begin)
      at++;
    cut = cut_at(cuts, at);
    for (size_t k = at; k + 1 < n_cuts(cuts) && cut_at(cuts, k)->end < end[i];
         k++)
      if (!same(cut_at(cuts, k)->weight, cut_at(cuts, k + 1)->weight))
        return refuse_token(text, begin, end[i], cut_at(cuts, k)->end,
                            cut_at(cuts, k + 1)->message, why);
    (void)tnk__buf_append(&marked->weights, &cut->weight, sizeof(cut->weight));
    (void)tnk__buf_append(&marked->messages, &cut->message,
                          sizeof(cut->message));
    begin = end[i];
  }
  return tnk__marked_fill(marked, 0, -1, why);
}

/* Returns whether the ids from `before` on are a prefix of the whole. */
static int is_beginning(const tnk__buf_t *ids, size_t before,
                        const tnk__buf_t *whole) {
  const size_t n = ids->len - before;

  return n == 0 ||
         (n <= whole->len && memcmp(ids->data + before, whole->data, n) == 0);
}

/* Tokenize the parts between changes of the weight. Together they must give the
 * ids of the whole text. */
static int mark_pieces(const tnk__coder_t *coder, const tnk__buf_t *text,
                       const tnk__buf_t *cuts, const tnk__buf_t *whole,
                       tnk__marked_t *marked, tnk__why_t *why) {
  const size_t before = marked->ids.len;
  size_t begin = 0;
  int err = TNK_OK;

  for (size_t i = 0; i < n_cuts(cuts) && err == TNK_OK; i++) {
    const tnk__cut_t *cut = cut_at(cuts, i);

    if (i + 1 < n_cuts(cuts) && same(cut->weight, cut_at(cuts, i + 1)->weight))
      continue;
    err = begin == 0
              ? tnk__ids_encode(coder, text, begin, cut->end, &marked->ids, why)
              : tnk__ids_continue(coder, text, begin, cut->end, &marked->ids,
                                  why);
    if (err == TNK_OK && !is_beginning(&marked->ids, before, whole))
      err = refuse_token(text, begin, cut->end, cut->end, cut->message, why);
    if (err == TNK_OK)
      err = tnk__marked_fill(marked, cut->weight, cut->message, why);
    begin = cut->end;
  }
  if (err == TNK_OK && marked->ids.len - before != whole->len)
    err = tnk__why(why, TNK_EUNSUPPORTED, 0,
                   "the tokenizer gives fewer tokens for pieces of the text "
                   "than for the whole; tokenize by parts");
  return err;
}

int tnk__tokens_whole(const tnk__coder_t *coder, const tnk__buf_t *text,
                      const tnk__buf_t *cuts, tnk__marked_t *marked,
                      tnk__why_t *why) {
  tnk__buf_t ids, ends;
  int err;

  tnk__buf_init(&ids, marked->ids.alloc, MAX_TEXT);
  tnk__buf_init(&ends, marked->ids.alloc, MAX_TEXT);
  err = tnk__ids_encode(coder, text, 0, text->len, &ids, why);
  if (err == TNK_OK)
    err = tnk__ids_ends(coder, &ids, (const char *)text->data, text->len, &ends,
                        why);
  if (err == TNK_OK && ends.len == 0 && ids.len > 0) {
    err = mark_pieces(coder, text, cuts, &ids, marked, why);
  } else if (err == TNK_OK && ids.len > 0) {
    (void)tnk__buf_append(&marked->ids, ids.data, ids.len);
    err = marked->ids.err != TNK_OK
              ? tnk__why(why, TNK_ENOMEM, 0, "out of memory")
              : mark(text, cuts, &ends, marked, why);
  }
  tnk__buf_deinit(&ids);
  tnk__buf_deinit(&ends);
  return err;
}

int tnk__tokens_parts(const tnk__coder_t *coder, const tnk__buf_t *text,
                      const tnk__buf_t *cuts, tnk__marked_t *marked,
                      tnk__why_t *why) {
  size_t begin = 0;
  int err = TNK_OK;

  for (size_t i = 0; i < n_cuts(cuts) && err == TNK_OK; i++) {
    const tnk__cut_t *cut = cut_at(cuts, i);

    err = tnk__ids_encode(coder, text, begin, cut->end, &marked->ids, why);
    if (err == TNK_OK)
      err = tnk__marked_fill(marked, cut->weight, cut->message, why);
    begin = cut->end;
  }
  return err;
}

/* SPDX-License-Identifier: MIT */
#include "chat/answer/state.h"

#include <string.h>

/* Parsing of an answer: finds marks and processes them. state.h explains the
 * modes. */

enum {
  MAX_ENDS = 8,     /* maximum number of ends of a block to try */
  MAX_HEADER = 1024 /* maximum length of a header in bytes */
};

/* A mark or a stop in the text. */
typedef struct {
  size_t at;
  size_t n; /* length; 0: no mark, all text up to `at` is plain */
  const char *text;
  tnk__mark_does_t does;
} found_t;

static const char *pending(const tnk__answer_t *answer, size_t at) {
  return answer->pending.data == NULL ? ""
                                      : (const char *)answer->pending.data + at;
}

/* Returns 1 if `mark` is at the start of the text, 0 if not, and -1 if the text
 * is a prefix of it. */
static int begins(const char *text, size_t n, const char *mark) {
  size_t n_mark = strlen(mark);

  if (n >= n_mark)
    return memcmp(text, mark, n_mark) == 0;
  return memcmp(text, mark, n) == 0 ? -1 : 0;
}

/*
 * Look for marks at a position. Returns 1 for a mark, 0 for none, and -1 if
 * more text is needed. If several marks match, the shortest wins: it is always
 * complete first, however the text is split.
 */
static int look(const tnk__answer_t *answer, unsigned mode, size_t at,
                found_t *found) {
  const tnk__family_t *family = answer->family;
  const char *text = pending(answer, at);
  size_t n = answer->pending.len - at;
  int what = 0;

  found->at = at;
  found->n = 0;
  if (n == 0 || !(answer->first[(uint8_t)text[0]] & mode))
    return 0;
  for (size_t i = 0; answer->stops[i] != NULL; i++) {
    int here = begins(text, n, answer->stops[i]);
    size_t n_mark = strlen(answer->stops[i]);

    if (here > 0 && (found->n == 0 || n_mark < found->n))
      found->n = n_mark, found->text = answer->stops[i],
      found->does = TNK__DOES_STOP;
    what |= here < 0;
  }
  for (size_t i = 0; i < family->n_marks; i++) {
    const tnk__mark_t *mark = &family->marks[i];
    int here = mark->modes & mode ? begins(text, n, mark->text) : 0;
    size_t n_mark = strlen(mark->text);

    if (here > 0 && (found->n == 0 || n_mark < found->n))
      found->n = n_mark, found->text = mark->text,
      found->does = (tnk__mark_does_t)mark->does;
    what |= here < 0;
  }
  return found->n > 0 ? 1 : -what;
}

/* Find the first mark from `scan` on. If no mark is found, found->at is the
 * first position where a mark could start when more text arrives. */
static void find(const tnk__answer_t *answer, int is_end, found_t *found) {
  size_t i;

  for (i = answer->scan; i < answer->pending.len; i++) {
    int what = look(answer, (unsigned)answer->mode, i, found);

    if (what > 0 || (what < 0 && !is_end))
      return;
  }
  found->at = i;
  found->n = 0;
}

static tnk_chat_delta_kind_t kind_of(tnk__answer_mode_t mode) {
  return mode == TNK__MODE_THINKING ? TNK_CHAT_DELTA_THINKING
                                    : TNK_CHAT_DELTA_CONTENT;
}

/* Report the held newlines, unless they belong to a mark. */
static void flush_newlines(tnk__answer_t *answer) {
  static const char some[] = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n";

  while (answer->n_newlines > 0 && !answer->is_leading) {
    size_t n = answer->n_newlines < sizeof(some) - 1 ? answer->n_newlines
                                                     : sizeof(some) - 1;

    tnk__answer_say(answer, kind_of(answer->mode), some, n);
    answer->n_newlines -= n;
  }
  answer->n_newlines = 0;
}

/* Report text of the answer. Newlines at its end are held. */
static void say(tnk__answer_t *answer, const char *text, size_t n) {
  size_t n_body = n;

  if (answer->family->trims)
    while (n_body > 0 && text[n_body - 1] == '\n')
      n_body--;
  if (n_body > 0) {
    size_t skip = 0;

    while (answer->is_leading && text[skip] == '\n')
      skip++;
    flush_newlines(answer);
    answer->is_leading = 0;
    tnk__answer_say(answer, kind_of(answer->mode), text + skip, n_body - skip);
  }
  answer->n_newlines += n - n_body;
}

/* Keep text at a position where no text is understood, unless it is white
 * space. */
static void flush_stray(tnk__answer_t *answer, const char *why) {
  const char *text = (const char *)answer->stray.data;
  size_t n = answer->stray.len;

  if (answer->err == TNK_OK)
    answer->err = answer->stray.err;
  tnk__call_trim(&text, &n);
  if (n > 0) {
    tnk__answer_keep(answer, (const char *)answer->stray.data,
                     answer->stray.len, why);
    answer->section_is_empty = 0;
  }
  tnk__buf_clear(&answer->stray);
}

static void go_on_at(tnk__answer_t *answer, size_t at,
                     tnk__answer_mode_t mode) {
  answer->at = at;
  answer->scan = at;
  answer->mode = mode;
}

/* ---- Blocks ---- */

/* If a block is a call, the newlines before it belong to it. Otherwise they are
 * kept. */
static void begin_block(tnk__answer_t *answer, size_t inner,
                        tnk__mark_does_t by, tnk__answer_mode_t back) {
  answer->inner = inner;
  answer->scan = inner;
  answer->block_by = by;
  answer->back = back;
  answer->n_ends = 0;
  answer->mode = TNK__MODE_BLOCK;
}

/* End a block that is not a call before `to`. */
static void fail_block(tnk__answer_t *answer, size_t to) {
  tnk__buf_t *buf = &answer->scratch;

  if (answer->block_by == TNK__DOES_BARE) {
    go_on_at(answer, answer->at, TNK__MODE_CONTENT);
    return;
  }
  tnk__buf_clear(buf);
  while (answer->n_newlines > 0 && !answer->is_leading) {
    (void)tnk__buf_byte(buf, '\n');
    answer->n_newlines--;
  }
  answer->n_newlines = 0;
  answer->is_leading = 0;
  answer->section_is_empty = 0;
  if (tnk__buf_append(buf, pending(answer, answer->at), to - answer->at) ==
      TNK_OK)
    tnk__answer_keep(answer, (const char *)buf->data, buf->len, answer->why);
  else if (answer->err == TNK_OK)
    answer->err = buf->err;
  go_on_at(answer, to, answer->back);
}

/* Read a block up to `end`. Returns 1 if it has calls; parsing then continues
 * at `after`. */
static int read_block(tnk__answer_t *answer, size_t end, size_t after,
                      tnk__read_t *what) {
  answer->found = tnk__value_list(&answer->heap);
  *what = answer->heap.err != TNK_OK
              ? TNK__READ_BAD
              : answer->family->read(answer, pending(answer, answer->inner),
                                     end - answer->inner);
  if (*what != TNK__READ_CALLS)
    return 0;
  answer->n_newlines = 0;
  answer->is_leading = answer->family->trims;
  answer->section_is_empty = 0;
  tnk__answer_tell_calls(answer);
  go_on_at(answer, after, answer->back);
  return 1;
}

/* Process a possible end of a block; parsing continues at `after`. If the end
 * may be inside a string, more ends are tried. */
static void end_block(tnk__answer_t *answer, const found_t *found,
                      size_t after) {
  tnk__read_t what;

  if (read_block(answer, found->at, after, &what))
    return;
  if (what == TNK__READ_OPEN && answer->n_ends + 1 < MAX_ENDS) {
    if (answer->n_ends++ == 0)
      answer->first_end = after;
    answer->scan = found->at + found->n;
    return;
  }
  fail_block(answer, answer->n_ends > 0 ? answer->first_end : after);
}

/* The answer ends, or is stopped, inside a block. */
static void cut_block(tnk__answer_t *answer, size_t at) {
  tnk__read_t what;

  if (answer->family->is_open_ended) {
    if (read_block(answer, at, at, &what))
      return;
  } else if (answer->n_ends == 0) {
    (void)tnk__call_bad(answer, "the call has no end");
  }
  fail_block(answer, answer->n_ends > 0 ? answer->first_end : at);
}

/* ---- Marks ---- */

static void begin_section(tnk__answer_t *answer, const found_t *found) {
  answer->n_newlines = 0;
  answer->section = found->text;
  answer->section_is_empty = 1;
  go_on_at(answer, found->at + found->n, TNK__MODE_SECTION);
}

/* End a section. `found` is the mark that ends it, or NULL. */
static void end_section(tnk__answer_t *answer, const found_t *found) {
  flush_stray(answer, "there is text between the calls");
  if (answer->section_is_empty) {
    tnk__buf_clear(&answer->stray);
    (void)tnk__buf_text(&answer->stray, answer->section);
    if (found != NULL)
      (void)tnk__buf_text(&answer->stray, found->text);
    flush_stray(answer, "the section has no calls");
  }
  answer->is_leading = answer->family->trims;
}

static void keep_header(tnk__answer_t *answer, size_t to, const char *why) {
  tnk__answer_keep(answer, pending(answer, answer->at), to - answer->at, why);
  go_on_at(answer, to, TNK__MODE_HEADER);
}

/* Process the end of a message's header. */
static void begin_message(tnk__answer_t *answer, const found_t *found) {
  size_t after = found->at + found->n, n_to;
  const char *to;

  switch (tnk__harmony_header(pending(answer, answer->at),
                              found->at - answer->at, &to, &n_to)) {
  case TNK__HEADER_BAD:
    keep_header(answer, after, "this is no header of a message");
    answer->mode = TNK__MODE_CONTENT;
    break;
  case TNK__HEADER_THINKING:
    go_on_at(answer, after, TNK__MODE_THINKING);
    if (answer->thinking.len > 0)
      tnk__answer_say(answer, TNK_CHAT_DELTA_THINKING, "\n", 1);
    break;
  case TNK__HEADER_CONTENT:
    go_on_at(answer, after, TNK__MODE_CONTENT);
    if (answer->content.len > 0)
      tnk__answer_say(answer, TNK_CHAT_DELTA_CONTENT, "\n", 1);
    break;
  case TNK__HEADER_CALL:
  case TNK__HEADER_OTHER:
    begin_block(answer, after, TNK__DOES_MESSAGE, TNK__MODE_HEADER);
    break;
  }
}

static void stop(tnk__answer_t *answer, const found_t *found) {
  if (answer->mode == TNK__MODE_BLOCK) {
    cut_block(answer, found->at); /* the stop will be found again */
    return;
  }
  if (answer->mode == TNK__MODE_SECTION)
    end_section(answer, NULL);
  else if (answer->mode == TNK__MODE_HEADER)
    keep_header(answer, found->at, "this is no message");
  else
    flush_newlines(answer);
  go_on_at(answer, found->at + found->n, TNK__MODE_OVER);
}

/* Process the marks of Harmony. */
static void act_on_message(tnk__answer_t *answer, const found_t *found) {
  if (found->does == TNK__DOES_MESSAGE) {
    begin_message(answer, found);
  } else if (found->does == TNK__DOES_MESSAGE_END) {
    if (answer->mode == TNK__MODE_HEADER)
      keep_header(answer, found->at, "this is no message");
    else
      flush_newlines(answer);
    go_on_at(answer, found->at + found->n,
             answer->no_headers ? TNK__MODE_CONTENT : TNK__MODE_HEADER);
  } else if (answer->no_headers) {
    answer->mode = TNK__MODE_CONTENT;
    say(answer, found->text, found->n);
    go_on_at(answer, found->at + found->n, TNK__MODE_CONTENT);
  } else {
    flush_newlines(answer);
    go_on_at(answer, found->at, TNK__MODE_HEADER);
  }
}

/* Process a mark. All text before it is processed, except the text of a block
 * or header that starts at `at`. */
static void act(tnk__answer_t *answer, const found_t *found) {
  size_t after = found->at + found->n;
  int is_call = found->does == TNK__DOES_BLOCK ||
                found->does == TNK__DOES_BARE ||
                found->does == TNK__DOES_SECTION;

  if (is_call && !answer->family->trims)
    flush_newlines(answer);
  switch (found->does) {
  case TNK__DOES_STOP:
    stop(answer, found);
    break;
  case TNK__DOES_THINK:
  case TNK__DOES_THINK_END:
    answer->n_newlines = 0;
    answer->is_leading = answer->family->trims;
    go_on_at(answer, after,
             found->does == TNK__DOES_THINK ? TNK__MODE_THINKING
                                            : TNK__MODE_START);
    break;
  case TNK__DOES_SPEAK:
    go_on_at(answer, after, TNK__MODE_CONTENT);
    break;
  case TNK__DOES_SECTION:
    begin_section(answer, found);
    break;
  case TNK__DOES_SECTION_END:
    end_section(answer, found);
    go_on_at(answer, after, TNK__MODE_CONTENT);
    break;
  case TNK__DOES_BLOCK:
  case TNK__DOES_BARE:
    if (answer->mode == TNK__MODE_SECTION)
      flush_stray(answer, "there is text between the calls");
    answer->at = found->at;
    begin_block(answer, after, found->does,
                answer->mode == TNK__MODE_SECTION ? TNK__MODE_SECTION
                                                  : TNK__MODE_CONTENT);
    break;
  case TNK__DOES_BLOCK_END:
    end_block(answer, found, after);
    break;
  case TNK__DOES_BLOCK_NEXT:
    end_block(answer, found, found->at);
    break;
  case TNK__DOES_HEADER:
  case TNK__DOES_MESSAGE:
  case TNK__DOES_MESSAGE_END:
    act_on_message(answer, found);
    break;
  }
}

/* ---- Steps; each returns whether to continue ---- */

static int step_start(tnk__answer_t *answer, int is_end) {
  found_t found;
  int what;

  if (answer->at == answer->pending.len)
    return 0;
  what = look(answer, TNK__MODE_START, answer->at, &found);
  if (what < 0 && !is_end)
    return 0;
  if (what > 0) {
    act(answer, &found);
  } else if (*pending(answer, answer->at) == '\n') {
    answer->n_newlines++;
    go_on_at(answer, answer->at + 1, TNK__MODE_START);
  } else {
    answer->mode = TNK__MODE_CONTENT;
  }
  return 1;
}

static int step_text(tnk__answer_t *answer, int is_end) {
  found_t found;
  const char *text = pending(answer, answer->at);
  size_t n;

  find(answer, is_end, &found);
  n = found.at - answer->at;
  if (n > 0 &&
      (answer->mode == TNK__MODE_SECTION || answer->mode == TNK__MODE_OVER))
    (void)tnk__buf_append(&answer->stray, text, n);
  else if (n > 0)
    say(answer, text, n);
  answer->at = found.at;
  answer->scan = found.at;
  if (found.n > 0)
    act(answer, &found);
  return found.n > 0;
}

static int step_block(tnk__answer_t *answer, int is_end) {
  found_t found;

  find(answer, is_end, &found);
  answer->scan = found.at;
  if (found.n > 0)
    act(answer, &found);
  else if (is_end)
    cut_block(answer, answer->pending.len);
  return found.n > 0 || is_end;
}

static int step_header(tnk__answer_t *answer, int is_end) {
  size_t n = answer->pending.len - answer->at;
  found_t found;

  if (n == 0)
    return 0;
  if (!tnk__harmony_may_begin(pending(answer, answer->at), n, is_end)) {
    answer->mode = TNK__MODE_CONTENT;
    return 1;
  }
  find(answer, is_end, &found);
  answer->scan = found.at;
  if (found.at - answer->at > MAX_HEADER) {
    answer->no_headers = 1;
    go_on_at(answer, answer->at, TNK__MODE_CONTENT);
    return 1;
  }
  if (found.n > 0)
    act(answer, &found);
  else if (is_end)
    keep_header(answer, answer->pending.len, "the header has no message");
  return found.n > 0;
}

static void run(tnk__answer_t *answer, int is_end) {
  int more = 1;

  while (more && answer->err == TNK_OK && answer->at <= answer->pending.len) {
    if (answer->mode == TNK__MODE_START)
      more = step_start(answer, is_end);
    else if (answer->mode == TNK__MODE_BLOCK)
      more = step_block(answer, is_end);
    else if (answer->mode == TNK__MODE_HEADER)
      more = step_header(answer, is_end);
    else
      more = step_text(answer, is_end);
  }
  if (answer->err == TNK_OK)
    answer->err = answer->heap.err;
  if (answer->err == TNK_OK)
    answer->err = answer->stray.err;
}

int tnk__answer_feed(tnk__answer_t *answer, const char *text, size_t n) {
  if (answer->is_finished)
    return TNK_EINVAL;
  if (answer->err != TNK_OK)
    return answer->err;
  if (n > answer->max_text - answer->n_text)
    return answer->err = TNK_ETOOBIG;
  answer->n_text += n;
  if (n > 0)
    answer->err = tnk__buf_append(&answer->pending, text, n);
  if (answer->err != TNK_OK || n == 0)
    return answer->err;
  run(answer, 0);
  if (answer->at > 0) {
    size_t gone = answer->at;

    tnk__buf_consume(&answer->pending, gone);
    answer->at = 0;
    answer->scan -= gone;
    answer->inner -= answer->inner < gone ? answer->inner : gone;
    answer->first_end -= answer->first_end < gone ? answer->first_end : gone;
  }
  return answer->err;
}

int tnk__answer_finish(tnk__answer_t *answer) {
  if (answer->is_finished || answer->err != TNK_OK)
    return answer->is_finished ? TNK_EINVAL : answer->err;
  run(answer, 1);
  if (answer->mode == TNK__MODE_SECTION)
    end_section(answer, NULL);
  else if (answer->mode == TNK__MODE_OVER)
    flush_stray(answer, "there is text behind the end of the answer");
  else
    flush_newlines(answer);
  answer->is_finished = 1;
  return answer->err;
}

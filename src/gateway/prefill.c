/* SPDX-License-Identifier: MIT */
#include "gateway/begin.h"

#include <string.h>

#include "gateway/record/key.h"
#include "gateway/stop.h"
#include "gateway/talk.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* A content that no template changes. It shows where a template writes the
 * content of a message. */
#define MARK "tnk7begin7here"

static int no_memory(tnk__gw_fault_t *fault) {
  return tnk__gw_fault(fault, 500, NULL, "out of memory");
}

static int cannot(tnk__gw_fault_t *fault, const char *why) {
  return tnk__gw_fault(fault, 400, "messages",
                       "messages: the last message is the assistant's, and "
                       "cannot be continued: %s",
                       why);
}

/* ---- Reading, on the loop ---- */

static int is_answer(const json_t *message) {
  const char *role = tnk__json_str(message, "role");

  return role != NULL && strcmp(role, "assistant") == 0;
}

/* A list of one text becomes that text. Returns -1 for other content. */
static int make_plain(json_t *message) {
  json_t *content = json_object_get(message, "content");
  json_t *part = json_array_get(content, 0);
  const char *type = tnk__json_str(part, "type");

  if (json_is_string(content))
    return 0;
  if (json_array_size(content) != 1 || type == NULL ||
      strcmp(type, "text") != 0)
    return -1;
  return json_object_set(message, "content", json_object_get(part, "text"));
}

/* Write a list with the message. */
static int write_list(json_t *message, tnk__buf_t *out) {
  json_t *list = json_pack("[O?]", message);
  char *text = list != NULL ? json_dumps(list, JSON_COMPACT) : NULL;

  if (text != NULL)
    tnk__buf_text(out, text);
  else
    out->err = TNK_ENOMEM;
  tnk__json_free_string(text);
  json_decref(list);
  return out->err;
}

/* Write what the rendering needs: the message, the same with another content,
 * and the content. */
static int write_texts(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  const json_t *content = json_object_get(job->begun, "content");
  json_t *other = json_copy(job->begun);
  int err = other == NULL;

  if (err == 0)
    err = json_object_set_new(other, "content", json_string(MARK));
  if (err == 0)
    err = write_list(job->begun, &job->begun_list);
  if (err == 0)
    err = write_list(other, &job->begun_mark);
  if (err == 0)
    err = tnk__buf_append(&job->begun_text, json_string_value(content),
                          json_string_length(content));
  json_decref(other);
  return err == 0 ? 0 : no_memory(fault);
}

int tnk__gw_prefill_take(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  json_t *messages = json_object_get(job->doc, "messages");
  size_t n = json_array_size(messages);
  json_t *last = json_array_get(messages, n - 1);

  if (!is_answer(last))
    return job->ask.continues
               ? tnk__gw_fault(fault, 400, "continue_final_message",
                               "continue_final_message: the last message is "
                               "not the assistant's")
               : 0;
  if (job->ask.api == TNK__GW_RESPONSE)
    return cannot(fault, "this API has no such request");
  if (job->ask.api == TNK__GW_CHAT && !job->ask.continues)
    return cannot(fault, "to continue it, set continue_final_message to true "
                         "and add_generation_prompt to false");
  if (job->ask.force != TNK__GW_FORCE_NOTHING)
    return cannot(fault,
                  "tool_choice forces a call at the begin of a response");
  if (json_array_size(json_object_get(last, "tool_calls")) > 0)
    return cannot(fault, "it calls a tool");
  if (make_plain(last) != 0)
    return cannot(fault, "its content is not one text");
  job->begun = json_incref(last);
  if (json_array_remove(messages, n - 1) != 0)
    return no_memory(fault);
  return n > 1 ? write_texts(job, fault)
               : cannot(fault, "there is no message before it");
}

/* ---- Continuing a recorded turn ---- */

/* Returns how many trailing ids of a turn do not belong to a response that
 * continues: its stop. SIZE_MAX: nobody knows. */
static size_t stop_length(const tnk__gw_job_t *job, const json_t *line,
                          int32_t last) {
  const char *end = tnk__json_str(line, "end");
  tnk__gw_stops_t stops;

  if (end != NULL && strcmp(end, "length") == 0)
    return 0;
  tnk__gw_stops_find(job, &stops);
  for (size_t i = 0; i < stops.n_ids; i++)
    if (stops.ids[i] == last)
      return 1;
  /* Some services keep the stop. A stop that is text may start in any id. */
  return stops.n_ids > 0 ? 0 : SIZE_MAX;
}

/* The ids that start the response: given to that turn, and sampled by it. */
static size_t count_given(const json_t *line, const tnk__gw_turn_t *turn) {
  int64_t n_forced = 0;

  (void)tnk__json_get_int(line, "forced", 0, INT32_MAX, &n_forced);
  return (size_t)n_forced + turn->n_sampled;
}

/* Continue a turn. If it has a stop at its end, this starts a branch without a
 * parent, because a turn keeps all ids of its parent. */
static int go_on_from(tnk__gw_job_t *job, tnk__gw_turn_t *turn,
                      const json_t *line, tnk__gw_fault_t *fault) {
  size_t n_stop, n;
  const int32_t *ids;

  if (tnk__gw_record_ids(job->gateway->record, turn, &job->ids) != TNK_OK)
    return tnk__gw_fault(fault, 500, NULL, "what was recorded cannot be read");
  n = job->ids.len / sizeof(int32_t);
  ids = (const int32_t *)(const void *)job->ids.data;
  n_stop = n > 0 && turn->n_sampled > 0 ? stop_length(job, line, ids[n - 1])
                                        : SIZE_MAX;
  job->n_forced = count_given(line, turn);
  if (n_stop == SIZE_MAX || job->n_forced > n) {
    tnk__buf_clear(&job->ids);
    job->n_forced = 0;
    return 0;
  }
  job->is_own = 1;
  job->ids.len -= n_stop * sizeof(int32_t);
  job->n_forced -= n_stop;
  job->parent = n_stop == 0 ? turn->by_number.key : 0;
  job->n_before = n_stop == 0 ? n : 0;
  job->first =
      n_stop == 0 ? json_array_size(json_object_get(job->doc, "messages")) : 0;
  return 0;
}

int tnk__gw_prefill_find(tnk__gw_job_t *job, uint64_t key,
                         tnk__gw_fault_t *fault) {
  tnk__gw_record_t *record = job->gateway->record;
  tnk__gw_turn_t *turn = tnk__gw_record_find(record, job->session,
                                             tnk__gw_key_add(key, job->begun));
  json_t *line;
  int err;

  if (turn == NULL)
    return 0;
  if (tnk__gw_record_line(record, turn, &line) != TNK_OK)
    return tnk__gw_fault(fault, 500, NULL, "what was recorded cannot be read");
  err = go_on_from(job, turn, line, fault);
  json_decref(line);
  return err;
}

/* ---- Rendering, on a thread ---- */

/* Render the conversation with a message, without the prompt before it. */
static int render(const tnk__gw_job_t *job, const tnk__buf_t *prompt,
                  const tnk__buf_t *list, tnk__buf_t *out,
                  tnk__gw_fault_t *fault) {
  return tnk__gw_talk_after(job, prompt, list,
                            "the template of this model does not write it "
                            "after the begin of a new response",
                            out, cannot, fault);
}

static size_t find(const tnk__buf_t *text, size_t from, const char *what) {
  size_t n = strlen(what);

  for (size_t i = from; i + n <= text->len; i++)
    if (memcmp(text->data + i, what, n) == 0)
      return i;
  return SIZE_MAX;
}

/* Returns whether `text` is what `marked` is with the content in place of the
 * mark, which is at `at`. */
static int is_content_at(const tnk__buf_t *text, const tnk__buf_t *marked,
                         size_t at, const tnk__buf_t *content) {
  size_t n_mark = strlen(MARK);
  size_t n_end = marked->len - at - n_mark;

  return text->len == at + content->len + n_end &&
         memcmp(text->data, marked->data, at) == 0 &&
         (content->len == 0 ||
          memcmp(text->data + at, content->data, content->len) == 0) &&
         memcmp(text->data + at + content->len, marked->data + at + n_mark,
                n_end) == 0;
}

/* Find the text of the message up to the end of its content. */
static int find_text(const tnk__gw_job_t *job, const tnk__buf_t *prompt,
                     tnk__buf_t *text, tnk__gw_fault_t *fault) {
  const tnk__buf_t *content = &job->begun_text;
  tnk__buf_t marked;
  size_t at = SIZE_MAX;
  int err;

  tnk__buf_init(&marked, &job->gateway->alloc, SIZE_MAX);
  err = render(job, prompt, &job->begun_mark, &marked, fault);
  if (err == 0)
    at = find(&marked, 0, MARK);
  if (err == 0 && (at == SIZE_MAX || find(&marked, at + 1, MARK) != SIZE_MAX))
    err = cannot(fault, "the template of this model does not write it once");
  if (err == 0)
    err = render(job, prompt, &job->begun_list, text, fault);
  if (err == 0 && !is_content_at(text, &marked, at, content))
    err = cannot(fault, "the template of this model changes its content, for "
                        "example white space at its end");
  if (err == 0)
    text->len = at + content->len;
  tnk__buf_deinit(&marked);
  return err;
}

int tnk__gw_prefill(tnk__gw_job_t *job, tnk__gw_fault_t *fault) {
  size_t n_before = job->ids.len;
  tnk__buf_t prompt;
  tnk__buf_t text;
  int err;

  tnk__buf_init(&prompt, &job->gateway->alloc, SIZE_MAX);
  tnk__buf_init(&text, &job->gateway->alloc, SIZE_MAX);
  err = tnk__gw_talk_text(job, job->chat, TNK_YES, &prompt, cannot, fault);
  if (err == 0)
    err = find_text(job, &prompt, &text, fault);
  if (err == 0)
    err = tnk__gw_talk_ids(job, &text, &job->ids, cannot, fault);
  if (err == 0)
    job->n_forced = (job->ids.len - n_before) / sizeof(int32_t);
  tnk__buf_deinit(&prompt);
  tnk__buf_deinit(&text);
  return err;
}

/* ---- What the client has already ---- */

static int is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static size_t count_blanks(const char *text, size_t n) {
  size_t i = 0;

  while (i < n && is_blank(text[i]))
    i++;
  return i;
}

/* The parser holds back what may be the begin of a mark. White space before the
 * content is the template's, or is dropped by the parser. */
void tnk__gw_prefill_match(const tnk__gw_job_t *job, tnk__gw_choice_t *choice) {
  const char *own = json_string_value(json_object_get(job->begun, "content"));
  tnk__buf_t text;
  size_t at, n;

  if (job->begun == NULL)
    return;
  tnk__buf_init(&text, &job->gateway->alloc, SIZE_MAX);
  (void)tnk__gw_said_join(&choice->said, TNK__GW_CONTENT, 0, &text);
  own += count_blanks(own, strlen(own));
  n = strlen(own);
  at = count_blanks((const char *)text.data, text.len);
  if (text.err == TNK_OK && n > 0 && n <= text.len - at &&
      memcmp(text.data + at, own, n) == 0)
    choice->given[TNK__GW_CONTENT] = at + n;
  tnk__buf_deinit(&text);
}

void tnk__gw_prefill_cut(const tnk__gw_job_t *job, tnk__gw_choice_t *choice) {
  if (job->begun == NULL)
    return;
  tnk__gw_said_skip(&choice->said, TNK__GW_THINKING,
                    choice->given[TNK__GW_THINKING]);
  tnk__gw_said_skip(&choice->said, TNK__GW_CONTENT,
                    choice->given[TNK__GW_CONTENT]);
}

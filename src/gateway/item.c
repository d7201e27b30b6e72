/* SPDX-License-Identifier: MIT */
#include "gateway/prompt.h"

#include <string.h>

#include "lib/base/number.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

/* The id of an item has its kind, the number of its turn, and its index among
 * the items of that kind: "fc_7_0". */
typedef struct {
  const char *whole;
  uint64_t number;
  uint64_t index;
} item_id_t;

static int no_memory(tnk__gw_fault_t *fault) {
  return tnk__gw_fault(fault, 500, NULL, "out of memory");
}

static int read_id(const char *whole, item_id_t *out) {
  const char *first = strchr(whole, '_');
  const char *last = strrchr(whole, '_');
  char number[24];
  size_t n;

  if (first == NULL || first == last)
    return -1;
  n = (size_t)(last - first) - 1;
  if (n >= sizeof(number))
    return -1;
  memcpy(number, first + 1, n);
  number[n] = '\0';
  out->whole = whole;
  return tnk__text_u64(number, UINT64_MAX, &out->number) == TNK_OK &&
                 tnk__text_u64(last + 1, UINT32_MAX, &out->index) == TNK_OK
             ? 0
             : -1;
}

static json_t *item_of_call(const json_t *call) {
  const json_t *function = json_object_get(call, "function");
  json_t *arguments = json_object_get(function, "arguments");
  char *text = arguments != NULL
                   ? json_dumps(arguments, JSON_COMPACT | JSON_ENCODE_ANY)
                   : NULL;
  json_t *item =
      text != NULL
          ? json_pack("{s:s, s:O?, s:O?, s:s}", "type", "function_call",
                      "call_id", json_object_get(call, "id"), "name",
                      json_object_get(function, "name"), "arguments", text)
          : NULL;

  tnk__json_free_string(text);
  return item;
}

/* The record has all texts of an answer as one. Later ones of the same answer
 * are null. */
static json_t *item_of_text(const json_t *message, int is_thinking,
                            int is_later) {
  json_t *text =
      json_object_get(message, is_thinking ? "reasoning_content" : "content");

  if (!json_is_string(text))
    return NULL;
  if (is_later)
    return json_null();
  return is_thinking ? json_pack("{s:s, s:[], s:[{s:s, s:O}]}", "type",
                                 "reasoning", "summary", "content", "type",
                                 "reasoning_text", "text", text)
                     : json_pack("{s:s, s:s, s:[{s:s, s:O}]}", "type",
                                 "message", "role", "assistant", "content",
                                 "type", "output_text", "text", text);
}

/* Make the item from the answer of its turn. Returns NULL if there is none. */
static json_t *make_item(const json_t *line, const item_id_t *id) {
  const json_t *messages = json_object_get(line, "messages");
  const json_t *answer =
      json_array_get(messages, json_array_size(messages) - 1);

  if (strncmp(id->whole, "fc_", 3) == 0)
    return item_of_call(json_array_get(json_object_get(answer, "tool_calls"),
                                       (size_t)id->index));
  if (strncmp(id->whole, "rs_", 3) == 0)
    return item_of_text(answer, 1, id->index > 0);
  return strncmp(id->whole, "msg_", 4) == 0
             ? item_of_text(answer, 0, id->index > 0)
             : NULL;
}

static json_t *find_item(const tnk__gw_job_t *job, const char *whole) {
  const tnk__gw_record_t *record = job->gateway->record;
  const tnk__gw_turn_t *turn;
  json_t *line, *item;
  item_id_t id;

  if (whole == NULL || read_id(whole, &id) != 0)
    return NULL;
  turn = tnk__gw_record_turn(record, id.number);
  if (turn == NULL || strcmp(turn->session->name, job->session) != 0 ||
      tnk__gw_record_line(record, turn, &line) != TNK_OK)
    return NULL;
  item = make_item(line, &id);
  json_decref(line);
  return item;
}

int tnk__gw_items_put(tnk__gw_job_t *job, char **text, tnk__gw_fault_t *fault) {
  json_t *input = json_object_get(job->ask.body, "input");
  int n_put = 0;

  *text = NULL;
  for (size_t i = 0; i < json_array_size(input);) {
    const json_t *item = json_array_get(input, i);
    const char *type = tnk__json_str(item, "type");
    const char *id = tnk__json_str(item, "id");
    json_t *found;

    if (type == NULL || strcmp(type, "item_reference") != 0) {
      i++;
      continue;
    }
    found = find_item(job, id);
    if (found == NULL)
      return tnk__gw_fault(fault, 404, "input",
                           "input[%zu]: there is no item \"%.60s\" in this "
                           "session",
                           i, id != NULL ? id : "");
    if (json_is_null(found) ? json_array_remove(input, i) != 0
                            : json_array_set_new(input, i++, found) != 0)
      return no_memory(fault);
    n_put++;
  }
  if (n_put == 0)
    return 0;
  *text = json_dumps(job->ask.body, JSON_COMPACT);
  return *text != NULL ? 0 : no_memory(fault);
}

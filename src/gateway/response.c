/* SPDX-License-Identifier: MIT */
#include "gateway/response.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "gateway/send.h"
#include "lib/base/alloc.h"
#include "lib/base/number.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

enum {
  MAX_BODY = 1 << 30,
  MAX_DEPTH = 4096,   /* turns; real conversations have fewer */
  DEFAULT_ITEMS = 20, /* of a list */
  MAX_ITEMS = 100
};

/* ---- Deleted responses ---- */

typedef struct {
  tnk__gw_node_t node; /* by the number of its turn */
} hidden_t;

static int hide(tnk_gateway_t *gateway, uint64_t number) {
  hidden_t *hidden;

  if (tnk__gw_map_find(&gateway->hidden, number) != NULL)
    return TNK_OK;
  if (gateway->hidden.n >= TNK__GW_MAX_HIDDEN)
    return TNK_EFULL;
  hidden = tnk__calloc(&gateway->alloc, 1, sizeof(*hidden));
  if (hidden == NULL)
    return TNK_ENOMEM;
  if (tnk__gw_map_add(&gateway->hidden, &hidden->node, number) == TNK_OK)
    return TNK_OK;
  tnk__free(&gateway->alloc, hidden);
  return TNK_ENOMEM;
}

static void show(tnk_gateway_t *gateway, uint64_t number) {
  tnk__gw_node_t *node = tnk__gw_map_find(&gateway->hidden, number);

  tnk__gw_map_remove(&gateway->hidden, node);
  tnk__free(&gateway->alloc, tnk__container_of(node, hidden_t, node));
}

int tnk__gw_response_take(tnk_gateway_t *gateway, const json_t *line) {
  int64_t number;
  int err;

  if (tnk__json_get_int(line, "number", 1, INT64_MAX, &number) !=
      TNK__JSON_FOUND)
    return TNK_EPROTO;
  err = hide(gateway, (uint64_t)number);
  return err == TNK_EFULL ? TNK_OK : err;
}

void tnk__gw_responses_drop(tnk_gateway_t *gateway,
                            const tnk__gw_session_t *session) {
  TNK__LIST_FOREACH (node, &session->turns) {
    uint64_t number =
        tnk__container_of(node, tnk__gw_turn_t, link)->by_number.key;

    if (tnk__gw_map_find(&gateway->hidden, number) != NULL)
      show(gateway, number);
  }
}

void tnk__gw_responses_deinit(tnk_gateway_t *gateway) {
  tnk__gw_map_t *map = &gateway->hidden;

  for (size_t i = 0; i < map->n_buckets; i++)
    while (map->buckets[i] != NULL)
      show(gateway, map->buckets[i]->key);
  tnk__gw_map_deinit(map);
}

const tnk__gw_turn_t *tnk__gw_response_find(const tnk_gateway_t *gateway,
                                            const char *session,
                                            uint64_t number) {
  const tnk__gw_turn_t *turn = tnk__gw_record_turn(gateway->record, number);

  return turn != NULL && strcmp(turn->session->name, session) == 0 &&
                 tnk__gw_map_find(&gateway->hidden, number) == NULL
             ? turn
             : NULL;
}

/* ---- Items ---- */

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
  const tnk__gw_turn_t *turn;
  json_t *line, *item;
  item_id_t id;

  if (whole == NULL || read_id(whole, &id) != 0)
    return NULL;
  turn = tnk__gw_response_find(job->gateway, job->session, id.number);
  if (turn == NULL ||
      tnk__gw_record_line(job->gateway->record, turn, &line) != TNK_OK)
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

/* ---- Items of an answer ---- */

static int add_item(json_t *items, json_t *item, const char *kind,
                    uint64_t number, size_t index, int is_complete) {
  char id[64];

  (void)snprintf(id, sizeof(id), "%s_%" PRIu64 "_%zu", kind, number, index);
  if (json_object_set_new(item, "id", json_string(id)) != 0 ||
      json_object_set_new(
          item, "status",
          json_string(is_complete ? "completed" : "incomplete")) != 0) {
    json_decref(item);
    return -1;
  }
  return json_array_append_new(items, item);
}

/* Add an item with a text, unless the answer has none. */
static int add_text(json_t *items, const json_t *answer, int is_thinking,
                    uint64_t number, int is_complete) {
  const json_t *text =
      json_object_get(answer, is_thinking ? "reasoning_content" : "content");
  json_t *item, *part;

  if (json_string_length(text) == 0)
    return 0;
  item = item_of_text(answer, is_thinking, 0);
  part = json_array_get(json_object_get(item, "content"), 0);
  if (!is_thinking &&
      (json_object_set_new(part, "annotations", json_array()) != 0 ||
       json_object_set_new(part, "logprobs", json_array()) != 0)) {
    json_decref(item);
    return -1;
  }
  return add_item(items, item, is_thinking ? "rs" : "msg", number, 0,
                  is_complete);
}

/* Make the list of items of an answer, a message of the record. Returns NULL
 * without memory. */
static json_t *items_of(const json_t *answer, uint64_t number,
                        int is_complete) {
  const json_t *calls = json_object_get(answer, "tool_calls");
  size_t n_calls = json_array_size(calls);
  int has_text = json_string_length(json_object_get(answer, "content")) > 0;
  json_t *items = json_array();
  int err;

  /* Only the last item can be cut off. */
  err = add_text(items, answer, 1, number,
                 is_complete || has_text || n_calls > 0);
  if (err == 0)
    err = add_text(items, answer, 0, number, is_complete || n_calls > 0);
  for (size_t i = 0; err == 0 && i < n_calls; i++)
    err = add_item(items, item_of_call(json_array_get(calls, i)), "fc", number,
                   i, is_complete || i + 1 < n_calls);
  if (err == 0 && items != NULL)
    return items;
  json_decref(items);
  return NULL;
}

/* ---- The conversation of a turn ---- */

static int add_history(const tnk__gw_record_t *record,
                       const tnk__gw_turn_t *turn, json_t *to, size_t depth) {
  json_t *line;
  int err = 0;

  if (depth > MAX_DEPTH)
    return -1;
  if (turn->parent != NULL &&
      add_history(record, turn->parent, to, depth + 1) != 0)
    return -1;
  if (tnk__gw_record_line(record, turn, &line) != TNK_OK)
    return -1;
  /* A turn without new ids of its own continues the last message. */
  if (turn->parent != NULL && turn->n_prompt == 0)
    (void)json_array_remove(to, json_array_size(to) - 1);
  if (json_array_extend(to, json_object_get(line, "messages")) != 0)
    err = -1;
  json_decref(line);
  return err;
}

int tnk__gw_history(const tnk__gw_record_t *record, const tnk__gw_turn_t *turn,
                    json_t *to) {
  return add_history(record, turn, to, 0);
}

static const tnk__gw_turn_t *first_of(const tnk__gw_turn_t *turn) {
  while (turn->parent != NULL)
    turn = turn->parent;
  return turn;
}

/* The tools of a conversation, which its first turn has. Returns 0 or -1. */
static int put_tools(const tnk__gw_record_t *record, const tnk__gw_turn_t *turn,
                     json_t *doc) {
  json_t *line;
  json_t *tools;
  int err = 0;

  if (tnk__gw_record_line(record, first_of(turn), &line) != TNK_OK)
    return -1;
  tools = json_object_get(line, "tools");
  if (tools != NULL)
    err = json_object_set(doc, "tools", tools);
  json_decref(line);
  return err;
}

/* Convert a document of templates to a body of /v1/responses. NULL: that is not
 * possible. */
static json_t *convert(const tnk_gateway_t *gateway, const json_t *doc) {
  char *text = json_dumps(doc, JSON_COMPACT);
  tnk_chat_t *chat = tnk_chat_new(&gateway->alloc);
  char *json = NULL;
  json_t *body = NULL;
  size_t n;

  if (text != NULL && chat != NULL &&
      tnk_chat_read(chat, TNK_CHAT_TEMPLATE, text, strlen(text), NULL) ==
          TNK_OK &&
      tnk_chat_write(chat, TNK_CHAT_RESPONSES, &json, &n, NULL) == TNK_OK)
    (void)tnk__json_parse_object(&body, json, n);
  if (json != NULL)
    tnk_chat_free_text(chat, json);
  tnk_chat_free(chat);
  tnk__json_free_string(text);
  return body;
}

/* Read the conversation before an answer, as a body of /v1/responses, and the
 * answer. Returns NULL if that is not possible. */
static json_t *read_turn(const tnk_gateway_t *gateway,
                         const tnk__gw_turn_t *turn, json_t **answer) {
  json_t *messages = json_array();
  json_t *doc = json_pack("{s:O?}", "messages", messages);
  json_t *body = NULL;
  size_t n;

  *answer = NULL;
  if (doc != NULL && tnk__gw_history(gateway->record, turn, messages) == 0 &&
      (n = json_array_size(messages)) > 0) {
    *answer = json_incref(json_array_get(messages, n - 1));
    if (json_array_remove(messages, n - 1) == 0 &&
        put_tools(gateway->record, turn, doc) == 0)
      body = convert(gateway, doc);
  }
  json_decref(messages);
  json_decref(doc);
  if (body == NULL) {
    json_decref(*answer);
    *answer = NULL;
  }
  return body;
}

/* ---- Sending ---- */

static void refuse(const tnk__gw_call_t *call, int status, const char *text) {
  tnk__gw_call_refuse(call, status, NULL, "%s", text);
}

/* Send a value, which is taken. NULL: it could not be made. */
static void send_json(const tnk__gw_call_t *call, json_t *value) {
  char *text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
  tnk__buf_t body;

  json_decref(value);
  tnk__buf_init(&body, &call->gateway->alloc, MAX_BODY);
  if (text != NULL && tnk__buf_text(&body, text) == TNK_OK)
    tnk__gw_send(call->req, 200, 0, &body);
  else
    refuse(call, 500, "out of memory");
  tnk__json_free_string(text);
  tnk__buf_deinit(&body);
}

/* ---- Reading a response ---- */

static json_t *usage_of(const tnk__gw_turn_t *turn) {
  size_t n_prompt = turn->n_before + turn->n_prompt;
  json_int_t n_input = (json_int_t)n_prompt;
  json_int_t n_output = (json_int_t)turn->n_sampled;

  return json_pack("{s:I, s:{s:i}, s:I, s:{s:i}, s:I}", "input_tokens", n_input,
                   "input_tokens_details", "cached_tokens", 0, "output_tokens",
                   n_output, "output_tokens_details", "reasoning_tokens", 0,
                   "total_tokens", n_input + n_output);
}

/* Make the object from what the record has. It has no options of the request,
 * so these are null or the defaults of the API. */
static json_t *make_response(const tnk__gw_call_t *call,
                             const tnk__gw_turn_t *turn, const json_t *line,
                             const json_t *before, const json_t *answer) {
  const char *end = tnk__json_str(line, "end");
  int is_complete = end == NULL || strcmp(end, "length") != 0;
  json_t *tools = json_object_get(before, "tools");
  json_t *response;
  char name[TNK__GW_MAX_NAME];
  char previous[TNK__GW_MAX_NAME] = "";

  tnk__gw_name(TNK__GW_RESPONSE, turn->by_number.key, name);
  if (turn->parent != NULL)
    tnk__gw_name(TNK__GW_RESPONSE, turn->parent->by_number.key, previous);
  response = json_pack(
      "{s:s, s:s, s:O?, s:s, s:n, s:O?, s:n, s:s, s:o, s:b, s:s?, s:n, s:s, "
      "s:n, s:{}, s:b, s:o}",
      "id", name, "object", "response", "created_at",
      json_object_get(line, "made"), "status",
      is_complete ? "completed" : "incomplete", "error", "instructions",
      json_object_get(before, "instructions"), "max_output_tokens", "model",
      tnk__gw_model_name(call->gateway), "output",
      items_of(answer, turn->by_number.key, is_complete), "parallel_tool_calls",
      1, "previous_response_id", previous[0] != '\0' ? previous : NULL,
      "temperature", "tool_choice", "auto", "top_p", "metadata", "store", 1,
      "usage", usage_of(turn));
  if (response == NULL ||
      json_object_set_new(response, "incomplete_details",
                          is_complete ? json_null()
                                      : json_pack("{s:s}", "reason",
                                                  "max_output_tokens")) != 0 ||
      json_object_set_new(response, "tools",
                          tools != NULL ? json_incref(tools) : json_array()) !=
          0) {
    json_decref(response);
    return NULL;
  }
  return response;
}

static void show_response(const tnk__gw_call_t *call,
                          const tnk__gw_turn_t *turn) {
  json_t *answer;
  json_t *line = NULL;
  json_t *before = read_turn(call->gateway, turn, &answer);

  if (before == NULL ||
      tnk__gw_record_line(call->gateway->record, turn, &line) != TNK_OK)
    refuse(call, 500, "the response cannot be read");
  else
    send_json(call, make_response(call, turn, line, before, answer));
  json_decref(line);
  json_decref(before);
  json_decref(answer);
}

/* ---- The input of a response ---- */

/* The part of a list that a request asks for. */
typedef struct {
  uint32_t limit;
  int is_ascending;
  char after[64]; /* id of the item before the part; "": from the start */
} page_t;

/* A text becomes a list of one part, as in responses of OpenAI. */
static int set_parts(json_t *item) {
  json_t *content = json_object_get(item, "content");

  if (!json_is_string(content))
    return 0;
  return json_object_set_new(
      item, "content",
      json_pack("[{s:s, s:O}]", "type", "input_text", "text", content));
}

/* The ids of these items name nothing else: requests cannot use them. */
static int set_id(json_t *item, uint64_t number, size_t index) {
  static const char *const kinds[][2] = {{"function_call_output", "fco"},
                                         {"function_call", "fc"},
                                         {"reasoning", "rs"}};
  const char *type = tnk__json_str(item, "type");
  const char *kind = "msg";
  char id[64];

  for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
    if (type != NULL && strcmp(type, kinds[i][0]) == 0)
      kind = kinds[i][1];
  (void)snprintf(id, sizeof(id), "%s_in_%" PRIu64 "_%zu", kind, number, index);
  if (type == NULL &&
      json_object_set_new(item, "type", json_string("message")) != 0)
    return -1;
  return json_object_set_new(item, "id", json_string(id)) == 0 &&
                 json_object_set_new(item, "status",
                                     json_string("completed")) == 0
             ? set_parts(item)
             : -1;
}

/* Take a page of the items. NULL: out of memory, or `after` is unknown. */
static json_t *take_page(const json_t *items, const page_t *page,
                         int *has_more) {
  size_t n = json_array_size(items);
  json_t *data = json_array();
  int is_started = page->after[0] == '\0';
  int err = data == NULL;

  *has_more = 0;
  for (size_t i = 0; err == 0 && i < n; i++) {
    json_t *item = json_array_get(items, page->is_ascending ? i : n - 1 - i);
    const char *id = tnk__json_str(item, "id");

    if (!is_started)
      is_started = id != NULL && strcmp(id, page->after) == 0;
    else if (json_array_size(data) < page->limit)
      err = json_array_append(data, item);
    else
      *has_more = 1;
  }
  if (err == 0 && is_started)
    return data;
  json_decref(data);
  return NULL;
}

static void send_page(const tnk__gw_call_t *call, const json_t *items,
                      const page_t *page) {
  int has_more;
  json_t *data = take_page(items, page, &has_more);
  size_t n = json_array_size(data);

  if (data == NULL)
    tnk__gw_call_refuse(call, 400, NULL, "after: there is no item \"%.60s\"",
                        page->after);
  else
    send_json(call,
              json_pack("{s:s, s:o, s:O?, s:O?, s:b}", "object", "list", "data",
                        data, "first_id",
                        json_object_get(json_array_get(data, 0), "id"),
                        "last_id",
                        json_object_get(json_array_get(data, n > 0 ? n - 1 : 0),
                                        "id"),
                        "has_more", has_more));
}

static void list_input(const tnk__gw_call_t *call, const tnk__gw_turn_t *turn,
                       const page_t *page) {
  json_t *answer;
  json_t *before = read_turn(call->gateway, turn, &answer);
  const json_t *items = json_object_get(before, "input");
  int err = before == NULL;

  for (size_t i = 0; err == 0 && i < json_array_size(items); i++)
    err = set_id(json_array_get(items, i), turn->by_number.key, i);
  if (err != 0)
    refuse(call, 500, "the input of the response cannot be read");
  else
    send_page(call, items, page);
  json_decref(before);
  json_decref(answer);
}

/* ---- Parameters ---- */

/* Find a query parameter that is not in a list, which ends with NULL. Returns
 * its length, or 0. */
static size_t find_unknown(const char *query, const char *const *known,
                           const char **found) {
  while (*query != '\0') {
    size_t n = strcspn(query, "&");
    size_t n_name = strcspn(query, "=&");
    size_t i = 0;

    while (known[i] != NULL &&
           (strlen(known[i]) != n_name || memcmp(known[i], query, n_name) != 0))
      i++;
    *found = query;
    if (n_name > 0 && known[i] == NULL)
      return n_name;
    query += n + (query[n] == '&');
  }
  return 0;
}

/* Reject other parameters than these. Returns 0 or -1. */
static int check_query(const tnk__gw_call_t *call, const char *const *known) {
  const char *found;
  size_t n = find_unknown(call->req->query, known, &found);

  if (n == 0)
    return 0;
  tnk__gw_call_refuse(call, 400, NULL, "%.*s is not supported here",
                      n < 80 ? (int)n : 80, found);
  return -1;
}

static int has_query(const tnk__gw_call_t *call, const char *name, char *out,
                     size_t size) {
  return tnk__srv_req_query(call->req, name, out, size);
}

static int read_page(const tnk__gw_call_t *call, page_t *page) {
  static const char *const known[] = {"limit", "order", "after", NULL};
  uint64_t limit = DEFAULT_ITEMS;
  char text[16];

  *page = (page_t){0};
  if (check_query(call, known) != 0)
    return -1;
  if (has_query(call, "limit", text, sizeof(text)) &&
      (tnk__text_u64(text, MAX_ITEMS, &limit) != TNK_OK || limit == 0)) {
    refuse(call, 400, "limit must be a whole number from 1 to 100");
    return -1;
  }
  page->limit = (uint32_t)limit;
  if (has_query(call, "order", text, sizeof(text))) {
    page->is_ascending = strcmp(text, "asc") == 0;
    if (!page->is_ascending && strcmp(text, "desc") != 0) {
      refuse(call, 400, "order must be asc or desc");
      return -1;
    }
  }
  (void)has_query(call, "after", page->after, sizeof(page->after));
  return 0;
}

/* ---- Deleting ---- */

static void delete_response(const tnk__gw_call_t *call,
                            const tnk__gw_turn_t *turn) {
  tnk_gateway_t *gateway = call->gateway;
  const tnk__gw_about_t about = {.session = turn->session->name};
  uint64_t number = turn->by_number.key;
  char name[TNK__GW_MAX_NAME];
  tnk__buf_t body;
  int err = hide(gateway, number);

  if (err == TNK_OK) {
    err = tnk__gw_record_note(gateway->record, &about, TNK__GW_DELETED,
                              "session", turn->session->name, number);
    if (err != TNK_OK)
      show(gateway, number);
  }
  tnk__gw_name(TNK__GW_RESPONSE, number, name);
  tnk__buf_init(&body, &gateway->alloc, 256);
  if (err == TNK_OK)
    err = tnk__buf_printf(
        &body, "{\"id\":\"%s\",\"object\":\"response\",\"deleted\":true}",
        name);
  if (err == TNK_OK)
    tnk__gw_confirm(call, &body, "the deletion");
  else
    tnk__gw_call_refuse(call, err == TNK_EFULL ? 503 : 500, NULL,
                        "the deletion cannot be recorded: %s",
                        tnk_strerror(err));
  tnk__buf_deinit(&body);
}

/* ---- Routes ---- */

/* Find the response that the path names: "resp_" and a number, and perhaps
 * "/input_items" after it. */
static const tnk__gw_turn_t *find_named(const tnk__gw_call_t *call,
                                        int *has_items) {
  static const char items[] = "/input_items";
  static const char prefix[] = "resp_";
  const char *id = call->path + strlen(TNK__GW_RESPONSES);
  size_t n = strcspn(id, "/");
  char name[TNK__GW_MAX_NAME];
  uint64_t number;

  *has_items = strcmp(id + n, items) == 0;
  if ((id[n] != '\0' && !*has_items) || n >= sizeof(name) ||
      strncmp(id, prefix, sizeof(prefix) - 1) != 0)
    return NULL;
  memcpy(name, id, n);
  name[n] = '\0';
  if (tnk__gw_name_read(name, &number) != 0)
    return NULL;
  return tnk__gw_response_find(call->gateway, tnk__gw_call_session(call),
                               number);
}

void tnk__gw_response_serve(const tnk__gw_call_t *call) {
  static const char *const none[] = {NULL};
  int has_items;
  const tnk__gw_turn_t *turn = find_named(call, &has_items);
  int is_get = tnk__gw_is_method(call, "GET");
  page_t page;

  if (!is_get && (has_items || strcmp(call->req->method, "DELETE") != 0)) {
    tnk__gw_refuse_method(call, has_items ? "GET" : "GET, HEAD, DELETE");
  } else if (turn == NULL) {
    tnk__gw_call_refuse(call, 404, NULL,
                        "there is no response \"%.60s\" in this session",
                        call->path + strlen(TNK__GW_RESPONSES));
  } else if (has_items) {
    if (read_page(call, &page) == 0)
      list_input(call, turn, &page);
  } else if (check_query(call, none) == 0) {
    if (is_get)
      show_response(call, turn);
    else
      delete_response(call, turn);
  }
}

/* SPDX-License-Identifier: MIT */
#include "gateway/record/atif.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/wire/format/json_read.h"
#include "tnk/common.h"
#include "tnk/error.h"

static const char schema[] = "ATIF-v1.7";

/* A trajectory that is being made. */
typedef struct {
  const tnk_allocator_t *alloc;
  json_t *steps;
  json_t *tools; /* of the first turn; or NULL */
  json_int_t n_prompt;
  json_int_t n_sampled;
} path_t;

/* ---- Messages ---- */

static const char *role_of(const json_t *message) {
  const char *role = tnk__json_str(message, "role");

  return role != NULL ? role : "";
}

/* The content as a text. Other parts than text have no place in the record. */
static json_t *text_of(const path_t *path, const json_t *message) {
  json_t *content = json_object_get(message, "content");
  json_t *text, *part;
  tnk__buf_t whole;
  size_t i;

  if (json_is_string(content))
    return json_incref(content);
  tnk__buf_init(&whole, path->alloc, SIZE_MAX);
  json_array_foreach(content, i, part) {
    const char *piece = tnk__json_str(part, "text");

    if (piece != NULL)
      tnk__buf_text(&whole, piece);
  }
  text = whole.err == TNK_OK
             ? json_stringn(whole.len > 0 ? (const char *)whole.data : "",
                            whole.len)
             : NULL;
  tnk__buf_deinit(&whole);
  return text;
}

static json_t *call_of(const json_t *call) {
  const json_t *function = json_object_get(call, "function");
  json_t *arguments = json_object_get(function, "arguments");
  const char *id = tnk__json_str(call, "id");
  const char *name = tnk__json_str(function, "name");

  return json_pack("{s:s, s:s, s:o}", "tool_call_id", id != NULL ? id : "",
                   "function_name", name != NULL ? name : "", "arguments",
                   json_is_object(arguments) ? json_incref(arguments)
                                             : json_object());
}

static json_t *calls_of(const json_t *message) {
  json_t *calls = json_array();
  json_t *call;
  size_t i;

  json_array_foreach(json_object_get(message, "tool_calls"), i, call) {
    if (json_array_append_new(calls, call_of(call)) != 0) {
      json_decref(calls);
      return NULL;
    }
  }
  return calls;
}

/* Add a step. Returns it, or NULL without memory. */
static json_t *add_step(path_t *path, const char *source,
                        const json_t *message) {
  json_t *step = json_pack("{s:I, s:s, s:o}", "step_id",
                           (json_int_t)json_array_size(path->steps) + 1,
                           "source", source, "message", text_of(path, message));

  return json_array_append_new(path->steps, step) == 0 ? step : NULL;
}

static json_t *add_answer(path_t *path, const json_t *message) {
  json_t *step = add_step(path, "agent", message);
  json_t *thoughts = json_object_get(message, "reasoning_content");
  json_t *calls;

  if (step == NULL ||
      (json_is_string(thoughts) &&
       json_object_set(step, "reasoning_content", thoughts) != 0))
    return NULL;
  if (json_array_size(json_object_get(message, "tool_calls")) == 0)
    return step;
  calls = calls_of(message);
  return json_object_set_new(step, "tool_calls", calls) == 0 ? step : NULL;
}

static int has_call(const json_t *step, const char *id) {
  json_t *call;
  size_t i;

  json_array_foreach(json_object_get(step, "tool_calls"), i, call) {
    const char *own = tnk__json_str(call, "tool_call_id");

    if (own != NULL && id != NULL && strcmp(own, id) == 0)
      return 1;
  }
  return 0;
}

/* Add the result of a tool to the last step that called it. */
static int add_result(path_t *path, const json_t *message) {
  const char *id = tnk__json_str(message, "tool_call_id");
  json_t *step = NULL;
  json_t *results, *result;

  for (size_t i = json_array_size(path->steps); step == NULL && i > 0; i--)
    if (has_call(json_array_get(path->steps, i - 1), id))
      step = json_array_get(path->steps, i - 1);
  if (step == NULL)
    return add_step(path, "user", message) != NULL ? 0 : -1;
  if (json_object_get(step, "observation") == NULL &&
      json_object_set_new(step, "observation",
                          json_pack("{s:[]}", "results")) != 0)
    return -1;
  results = json_object_get(json_object_get(step, "observation"), "results");
  result = json_pack("{s:s, s:o}", "source_call_id", id, "content",
                     text_of(path, message));
  return json_array_append_new(results, result);
}

static int add_message(path_t *path, const json_t *message) {
  const char *role = role_of(message);

  if (strcmp(role, "tool") == 0)
    return add_result(path, message);
  if (strcmp(role, "assistant") == 0)
    return add_answer(path, message) != NULL ? 0 : -1;
  return add_step(path, strcmp(role, "user") == 0 ? "user" : "system",
                  message) != NULL
             ? 0
             : -1;
}

/* ---- Sampled responses ---- */

static json_t *joined(json_t *before, json_t *after) {
  json_t *list = json_array();

  if ((before == NULL || json_array_extend(list, before) == 0) &&
      json_array_extend(list, after) == 0)
    return list;
  json_decref(list);
  return NULL;
}

/* Set the metrics of a response. `before` has those of the part that it
 * continues, or is NULL. */
static int set_metrics(json_t *step, const tnk__gw_turn_t *turn,
                       const json_t *line, const json_t *before) {
  json_t *ids = joined(json_object_get(before, "completion_token_ids"),
                       json_object_get(line, "sampled"));
  json_t *logprobs = json_object_get(line, "logprobs");
  json_int_t n_before =
      json_integer_value(json_object_get(before, "completion_tokens"));
  json_int_t n_prompt =
      before != NULL
          ? json_integer_value(json_object_get(before, "prompt_tokens"))
          : (json_int_t)(turn->n_before + turn->n_prompt);
  json_t *metrics = json_pack(
      "{s:I, s:I, s:o}", "prompt_tokens", n_prompt, "completion_tokens",
      n_before + (json_int_t)turn->n_sampled, "completion_token_ids", ids);

  if (json_is_array(logprobs) &&
      (before == NULL || json_object_get(before, "logprobs") != NULL) &&
      json_object_set_new(
          metrics, "logprobs",
          joined(json_object_get(before, "logprobs"), logprobs)) != 0) {
    json_decref(metrics);
    return -1;
  }
  return json_object_set_new(step, "metrics", metrics);
}

static int set_extra(json_t *step, const tnk__gw_turn_t *turn) {
  json_t *extra =
      json_pack("{s:I, s:I}", "turn", (json_int_t)turn->by_number.key,
                "version", (json_int_t)turn->version);

  if (!isnan(turn->reward) &&
      json_object_set_new(extra, "reward", json_real(turn->reward)) != 0) {
    json_decref(extra);
    return -1;
  }
  return json_object_set_new(step, "extra", extra);
}

static int set_time(json_t *step, const json_t *line) {
  time_t made = (time_t)json_integer_value(json_object_get(line, "made"));
  struct tm parts;
  char text[32];

  if (made <= 0 || gmtime_r(&made, &parts) == NULL ||
      strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
    return 0;
  return json_object_set_new(step, "timestamp", json_string(text));
}

/* Add the messages of a turn. The last one is its response. A turn without new
 * ids of its own continues the response of its parent, which it replaces. */
static int add_turn(path_t *path, const tnk__gw_turn_t *turn,
                    const json_t *line) {
  const json_t *messages = json_object_get(line, "messages");
  size_t n = json_array_size(messages);
  size_t n_steps = json_array_size(path->steps);
  json_t *before = NULL;
  json_t *step;
  int err = 0;

  if (n == 0)
    return 0;
  if (turn->parent != NULL && turn->n_prompt == 0 && n_steps > 0) {
    before = json_incref(
        json_object_get(json_array_get(path->steps, n_steps - 1), "metrics"));
    err = json_array_remove(path->steps, n_steps - 1);
  }
  for (size_t i = 0; err == 0 && i + 1 < n; i++)
    err = add_message(path, json_array_get(messages, i));
  step = err == 0 ? add_answer(path, json_array_get(messages, n - 1)) : NULL;
  if (step == NULL || set_metrics(step, turn, line, before) != 0 ||
      set_extra(step, turn) != 0 || set_time(step, line) != 0)
    err = -1;
  json_decref(before);
  path->n_prompt += (json_int_t)(turn->n_before + turn->n_prompt);
  path->n_sampled += (json_int_t)turn->n_sampled;
  return err;
}

static int add_turns(const tnk__gw_record_t *record, path_t *path,
                     const tnk__gw_turn_t *leaf) {
  const tnk__gw_turn_t *done = NULL;
  int err = TNK_OK;

  /* From the first turn to the last, without recursion. */
  while (err == TNK_OK && done != leaf) {
    const tnk__gw_turn_t *turn = leaf;
    json_t *line;

    while (turn->parent != done)
      turn = turn->parent;
    err = tnk__gw_record_line(record, turn, &line);
    if (err != TNK_OK)
      return err;
    if (done == NULL)
      path->tools = json_incref(json_object_get(line, "tools"));
    if (add_turn(path, turn, line) != 0)
      err = TNK_ENOMEM;
    json_decref(line);
    done = turn;
  }
  return err;
}

/* ---- Trajectories ---- */

static json_t *make_whole(const path_t *path, const tnk__gw_turn_t *leaf) {
  json_t *agent =
      json_pack("{s:s, s:s}", "name", "tnk-gateway", "version", tnk_version());
  json_t *whole;
  char name[40];

  if (path->tools != NULL &&
      json_object_set(agent, "tool_definitions", path->tools) != 0) {
    json_decref(agent);
    return NULL;
  }
  (void)snprintf(name, sizeof(name), "turn-%" PRIu64, leaf->by_number.key);
  whole = json_pack("{s:s, s:s, s:s, s:o, s:O, s:{s:I, s:I, s:I}}",
                    "schema_version", schema, "session_id", leaf->session->name,
                    "trajectory_id", name, "agent", agent, "steps", path->steps,
                    "final_metrics", "total_prompt_tokens", path->n_prompt,
                    "total_completion_tokens", path->n_sampled, "total_steps",
                    (json_int_t)json_array_size(path->steps));
  return whole;
}

static int write_one(const tnk__gw_record_t *record,
                     const tnk__gw_branch_t *branch, tnk__gw_datum_cb put,
                     void *user) {
  const tnk__gw_turn_t *leaf = tnk__gw_record_turn(record, branch->leaf);
  path_t path = {.alloc = tnk__gw_record_allocator(record),
                 .steps = json_array()};
  json_t *whole = NULL;
  char *text = NULL;
  int err = path.steps != NULL ? TNK_OK : TNK_ENOMEM;

  if (err == TNK_OK)
    err = add_turns(record, &path, leaf);
  /* A completion of a plain prompt has no message before it. */
  if (err == TNK_OK && json_array_size(path.steps) > 0) {
    whole = make_whole(&path, leaf);
    text = whole != NULL ? json_dumps(whole, JSON_COMPACT) : NULL;
    err = text != NULL ? put(user, text, strlen(text)) : TNK_ENOMEM;
    if (err == TNK_OK)
      err = put(user, "\n", 1);
  }
  tnk__json_free_string(text);
  json_decref(whole);
  json_decref(path.tools);
  json_decref(path.steps);
  return err;
}

int tnk__gw_atif(tnk__gw_record_t *record,
                 const tnk__gw_datum_options_t *options, tnk__gw_datum_cb put,
                 void *user) {
  tnk__buf_t branches;
  int err;

  tnk__buf_init(&branches, tnk__gw_record_allocator(record), SIZE_MAX);
  err = tnk__gw_branches(record, NULL, options, &branches);
  for (size_t at = 0; err == TNK_OK && at < branches.len;
       at += sizeof(tnk__gw_branch_t))
    err = write_one(record, (const void *)(branches.data + at), put, user);
  tnk__buf_deinit(&branches);
  return err;
}

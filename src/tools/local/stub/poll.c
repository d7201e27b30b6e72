/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/pb.h"
#include "tnk/error.h"
#include "tools/local/stub/state.h"

/* ---- Samples ---- */

/* Selects the tokens of a sample, and writes the log. */

static local_stub_drawn_t stub_drawn(const local_stub_t *stub, uint64_t turn,
                                     uint64_t n_tokens) {
  const local_stub_answers_t *answers = stub->options.answers;
  local_stub_drawn_t drawn = {stub->tokens, (size_t)n_tokens, 1};

  if (drawn.n > LOCAL_STUB_MAX_TOKENS)
    drawn.n = LOCAL_STUB_MAX_TOKENS;
  if (answers == NULL)
    return drawn;
  drawn.tokens = answers->list[turn % answers->n].tokens;
  drawn.is_length = answers->list[turn % answers->n].n > drawn.n;
  if (!drawn.is_length)
    drawn.n = answers->list[turn % answers->n].n;
  return drawn;
}

/* The ids in the text chunks of a prompt. Returns TNK_OK, TNK_EPROTO or
 * TNK_ENOMEM. */
static int read_prompt(const tnk__srv_req_t *req, tnk__buf_t *out) {
  json_t *root = NULL;
  const json_t *chunks;
  int err = tnk__json_parse_object(&root, req->body.data, req->body.len);

  if (err != TNK_OK)
    return err;
  chunks = tnk__json_arr(tnk__json_obj(root, "prompt"), "chunks");
  for (size_t i = 0; i < json_array_size(chunks); i++) {
    const json_t *tokens = tnk__json_arr(json_array_get(chunks, i), "tokens");

    for (size_t k = 0; k < json_array_size(tokens); k++) {
      int32_t id = (int32_t)json_integer_value(json_array_get(tokens, k));

      tnk__buf_append(out, &id, sizeof(id));
    }
  }
  json_decref(root);
  return out->err;
}

int local_stub_log(const local_stub_t *stub, const tnk__srv_req_t *req,
                   const char *id, uint64_t turn, uint64_t n,
                   uint64_t n_tokens) {
  local_drawn_line_t line = {.request_id = id, .logprobs = stub->logprobs};
  tnk__buf_t prompt;
  int err;

  if (stub->options.sample_log == NULL)
    return TNK_OK;
  tnk__buf_init(&prompt, stub->http.config.alloc, (size_t)1 << 30);
  err = read_prompt(req, &prompt);
  line.prompt = (const int32_t *)(const void *)prompt.data;
  line.n_prompt = prompt.len / sizeof(*line.prompt);
  for (uint64_t i = 0; i < n && err == TNK_OK; i++) {
    const local_stub_drawn_t drawn = stub_drawn(stub, turn + i, n_tokens);

    line.index = (uint32_t)i;
    line.tokens = drawn.tokens;
    line.n_tokens = drawn.n;
    line.is_length = drawn.is_length;
    err = local_drawn_write(stub->options.sample_log, &line, 1);
  }
  tnk__buf_deinit(&prompt);
  return err;
}

/* ---- Results ---- */

/* Writes results from the names of their futures. */

/* A time takes three tokens of this many bits. */
enum { STAMP_BITS = 21 };

typedef struct {
  const local_stub_t *stub;
  uint64_t n_samples;
  uint64_t n_tokens;
  uint64_t turn;
} result_t;

static void write_sequence(tnk__pb_t *pb, const void *message) {
  const result_t *result = message;
  const local_stub_drawn_t drawn =
      stub_drawn(result->stub, result->turn, result->n_tokens);

  if (drawn.is_length)
    tnk__pb_varint(pb, 1, 1);
  tnk__pb_bytes(pb, 2, drawn.tokens, drawn.n * sizeof(int32_t));
  tnk__pb_bytes(pb, 3, result->stub->logprobs, drawn.n * sizeof(float));
}

static void write_samples(tnk__pb_t *pb, const result_t *result) {
  for (uint64_t i = 0; i < result->n_samples; i++) {
    result_t one = *result;

    one.turn += i;
    tnk__pb_message(pb, 1, write_sequence, &one);
  }
}

static void write_loss(tnk__pb_t *pb, const void *message) {
  (void)message;
  tnk__pb_text(pb, 1, "loss:sum");
  tnk__pb_double(pb, 2, 1.0);
}

static void write_arrival(tnk__pb_t *pb, const void *message) {
  const result_t *result = message;

  tnk__pb_text(pb, 1, "arrived_ns:max");
  tnk__pb_double(pb, 2, (double)result->n_tokens);
}

static void write_pass(tnk__pb_t *pb, const result_t *result) {
  tnk__pb_text(pb, 1, "ArrayRecord");
  tnk__pb_message(pb, 3, write_loss, NULL);
  tnk__pb_message(pb, 3, write_arrival, result);
}

static void reply_proto(tnk__srv_req_t *req, const result_t *result,
                        void (*write)(tnk__pb_t *, const result_t *)) {
  tnk__pb_t pb = {0};
  uint8_t *body;

  write(&pb, result);
  body = tnk__malloc(req->http->config.alloc, pb.n + 1);
  if (body == NULL) {
    tnk__srv_req_reply_text(req, 500, "text/plain", "out of memory");
    return;
  }
  pb = tnk__pb_whole(body);
  write(&pb, result);
  tnk__srv_req_reply(req, 200, "application/x-protobuf", NULL, body, pb.n);
}

/* Into the table that the answer is written from. */
static void stamp(local_stub_t *stub, uint64_t there_ns) {
  for (int i = 0; i < 3; i++)
    stub->tokens[i] = (int32_t)((there_ns >> (STAMP_BITS * i)) &
                                (((uint64_t)1 << STAMP_BITS) - 1));
}

static void reply_json(tnk__srv_req_t *req, const char *json) {
  tnk__srv_req_reply_text(req, 200, "application/json", json);
}

static void stub_result(local_stub_t *stub, tnk__srv_req_t *req, const char *id,
                        uint64_t there_ns) {
  result_t result = {stub, 0, 0, 0};
  char *at = strchr(id + 2, ':');

  if (at != NULL) {
    result.n_samples = strtoull(at + 1, &at, 10);
    result.n_tokens = strtoull(at + 1, &at, 10);
    result.turn = *at == ':' ? strtoull(at + 1, NULL, 10) : 0;
  }
  switch (id[0]) {
  case 'S':
    if (stub->options.answers == NULL && stub->options.sample_log == NULL)
      stamp(stub, there_ns);
    reply_proto(req, &result, write_samples);
    break;
  case 'F':
    reply_proto(req, &result, write_pass);
    break;
  case 'M':
    reply_json(req,
               "{\"model_id\":\"stub:train:0\",\"type\":\"create_model\"}");
    break;
  case 'O':
    reply_json(req, "{\"metrics\":{}}");
    break;
  default:
    reply_json(req, "{\"path\":\"tinker://stub/weights/w\","
                    "\"sampling_session_id\":\"stub:sample:0\"}");
  }
}

/* ---- Polls ---- */

/*
 * A poll is answered at once if there is a result. Otherwise it is held until
 * there is one, the hold time expires, or it is cut. If cutting is enabled, the
 * first poll of each sample and every other batched poll are cut.
 */
typedef struct {
  local_timer_t timer;
  tnk__list_t link; /* in batch_polls; unlinked for a poll of one result */
  tnk__srv_req_t *req;
  local_stub_t *stub;
  uint64_t end_ms; /* end of the hold time */
  int is_cut;      /* close the connection then */
} poll_t;

static const tnk_allocator_t *alloc_of(const local_stub_t *stub) {
  return stub->http.config.alloc;
}

/* ---- Polls: states of samples ---- */

/* NULL without memory, and for names of another session. */
static local_stub_fate_t *fate_of(local_stub_t *stub, const char *id) {
  uint64_t number = strtoull(strrchr(id, ':') + 1, NULL, 10);
  size_t at = (size_t)(number - stub->first);
  size_t grown = at + stub->max_fates + 1024;
  local_stub_fate_t *fates;

  /* It belongs to an earlier session, or is invalid. */
  if (number < stub->first || number > stub->n_ids)
    return NULL;
  if (at >= stub->max_fates) {
    fates = tnk__realloc(alloc_of(stub), stub->fates, grown * sizeof(*fates));
    if (fates == NULL)
      return NULL;
    memset(fates + stub->max_fates, 0,
           (grown - stub->max_fates) * sizeof(*fates));
    stub->fates = fates;
    stub->max_fates = grown;
  }
  return &stub->fates[at];
}

/* The time at which a due result became available: now if a poll was held for
 * it, its due time if the poll came later. */
static uint64_t note_there(local_stub_t *stub, const char *id, int is_held) {
  uint64_t due_ns = strtoull(id + 2, NULL, 10) * 1000000;
  local_stub_fate_t *fate = fate_of(stub, id);

  if (fate == NULL)
    return due_ns;
  if (fate->there_ns == 0)
    fate->there_ns = is_held ? uv_hrtime() : due_ns;
  return fate->there_ns;
}

/* Returns whether to cut the poll of a sample; true once. */
static int take_cut(local_stub_t *stub, const char *id) {
  local_stub_fate_t *fate =
      stub->options.cut_ms > 0 && id[0] == 'S' ? fate_of(stub, id) : NULL;

  if (fate == NULL || fate->is_cut)
    return 0;
  fate->is_cut = 1;
  return 1;
}

/* ---- Polls: answers ---- */

static void give_result(local_stub_t *stub, tnk__srv_req_t *req, const char *id,
                        int is_held) {
  uint64_t there_ns = id[0] == 'S' ? note_there(stub, id, is_held) : 0;

  stub->n_fetched++;
  if (stub->n_fetched == stub->n_ids)
    stub->idle_since = uv_hrtime();
  stub_result(stub, req, id, there_ns);
}

/* Answer with the completions after the cursor, possibly none. */
static void give_batch(local_stub_t *stub, tnk__srv_req_t *req, int is_held) {
  uint64_t at = local_stub_number(req, "prev_cursor", 0);
  uint64_t now = local_stub_now(stub);
  const char *comma = "";
  tnk__buf_t out;
  size_t len;

  tnk__buf_init(&out, alloc_of(stub), SIZE_MAX);
  tnk__buf_text(&out, "{\"completions\":[");
  for (; at < stub->n_samples && stub->samples[at].due_ms <= now; at++) {
    note_there(stub, stub->samples[at].id, is_held);
    tnk__buf_printf(&out,
                    "%s{\"state\":\"finished\",\"request_id\":\"%s\","
                    "\"response_payload_uncompressed_size\":null}",
                    comma, stub->samples[at].id);
    comma = ",";
  }
  tnk__buf_printf(&out, "],\"cursor\":%" PRIu64 "}", at);
  len = out.len;
  tnk__srv_req_reply(req, 200, "application/json", NULL,
                     tnk__buf_take(&out, &len), len);
}

/* ---- Polls: holding ---- */

/* Ends the hold and returns its data. */
static poll_t end_poll(poll_t *poll) {
  const poll_t was = *poll;

  local_timer_stop(&poll->timer);
  tnk__list_remove(&poll->link);
  poll->stub->n_held--;
  tnk__free(alloc_of(was.stub), poll);
  return was;
}

static void on_gone(tnk__srv_req_t *req, void *user) {
  (void)req;
  end_poll(user);
}

/* NULL without memory; the request has been answered. */
static poll_t *hold(local_stub_t *stub, tnk__srv_req_t *req, int is_cut) {
  poll_t *poll = tnk__calloc(alloc_of(stub), 1, sizeof(*poll));

  if (poll == NULL) {
    tnk__srv_req_reply_text(req, 500, "text/plain", "out of memory");
    return NULL;
  }
  local_timer_init(&poll->timer);
  tnk__list_init(&poll->link);
  poll->req = req;
  poll->stub = stub;
  poll->is_cut = is_cut && stub->options.cut_ms > 0;
  poll->end_ms = local_stub_now(stub) +
                 (poll->is_cut ? stub->options.cut_ms : stub->options.hold_ms);
  stub->n_held++;
  tnk__srv_req_park(req, on_gone, poll);
  return poll;
}

/* Wait until a result is due, but at most for the hold time. */
static void wait_until(poll_t *poll, uint64_t due_ms,
                       void (*fn)(local_timer_t *timer)) {
  uint64_t now = local_stub_now(poll->stub);
  uint64_t end = due_ms < poll->end_ms ? due_ms : poll->end_ms;

  local_timer_start(&poll->stub->timers, &poll->timer,
                    end > now ? end - now : 0, fn);
}

static void cut(local_stub_t *stub, tnk__srv_req_t *req) {
  stub->n_cut++;
  tnk__srv_req_drop(req);
}

/* ---- Polls: one result ---- */

static void on_result_due(local_timer_t *timer) {
  const poll_t was = end_poll(tnk__container_of(timer, poll_t, timer));
  char id[LOCAL_STUB_MAX_ID];

  if (local_stub_id(was.req, id) != NULL &&
      strtoull(id + 2, NULL, 10) <= local_stub_now(was.stub))
    give_result(was.stub, was.req, id, 1);
  else if (was.is_cut)
    cut(was.stub, was.req);
  else
    tnk__srv_req_reply_text(was.req, 200, "application/json",
                            "{\"type\":\"try_again\",\"request_id\":\"\","
                            "\"queue_state\":\"active\"}");
}

void local_stub_retrieve(local_stub_t *stub, tnk__srv_req_t *req) {
  char id[LOCAL_STUB_MAX_ID];
  uint64_t due;
  poll_t *poll;

  if (local_stub_id(req, id) == NULL) {
    tnk__srv_req_reply_text(req, 404, "text/plain", "no such request");
    return;
  }
  due = strtoull(id + 2, NULL, 10);
  if (due <= local_stub_now(stub)) {
    give_result(stub, req, id, 0);
    return;
  }
  poll = hold(stub, req, take_cut(stub, id));
  if (poll != NULL)
    wait_until(poll, due, on_result_due);
}

/* ---- Polls: all samples ---- */

static uint64_t next_due(const local_stub_t *stub, const tnk__srv_req_t *req) {
  uint64_t cursor = local_stub_number(req, "prev_cursor", 0);

  return cursor < stub->n_samples ? stub->samples[cursor].due_ms : UINT64_MAX;
}

static void on_batch_due(local_timer_t *timer) {
  const poll_t was = end_poll(tnk__container_of(timer, poll_t, timer));

  if (was.is_cut && next_due(was.stub, was.req) > local_stub_now(was.stub))
    cut(was.stub, was.req);
  else
    give_batch(was.stub, was.req, 1);
}

void local_stub_retrieve_batch(local_stub_t *stub, tnk__srv_req_t *req) {
  int is_flush = local_stub_number(req, "timeout", UINT64_MAX) == 0;
  uint64_t due = next_due(stub, req);
  poll_t *poll;

  if (is_flush || due <= local_stub_now(stub)) {
    give_batch(stub, req, 0);
    return;
  }
  poll = hold(stub, req,
              stub->options.cut_ms > 0 && stub->n_batch_polls++ % 2 == 0);
  if (poll == NULL)
    return;
  tnk__list_append(&stub->batch_polls, &poll->link);
  wait_until(poll, due, on_batch_due);
}

void local_stub_forget_samples(local_stub_t *stub) {
  tnk__free(alloc_of(stub), stub->fates);
  stub->fates = NULL;
  stub->max_fates = 0;
  stub->first = stub->n_ids + 1;
  stub->n_samples = 0;
}

void local_stub_remember(local_stub_t *stub, const char *id, uint64_t due_ms) {
  size_t grown = stub->max_samples * 2 + 1024;
  local_stub_sample_t *samples;
  size_t at = stub->n_samples;

  if (stub->n_samples == stub->max_samples) {
    samples =
        tnk__realloc(alloc_of(stub), stub->samples, grown * sizeof(*samples));
    if (samples == NULL)
      return; /* batched polls will not report it */
    stub->samples = samples;
    stub->max_samples = grown;
  }
  /* Not before results that are already due, because a cursor may be after
   * them. */
  while (at > 0 && stub->samples[at - 1].due_ms > due_ms)
    at--;
  memmove(stub->samples + at + 1, stub->samples + at,
          (stub->n_samples++ - at) * sizeof(*samples));
  snprintf(stub->samples[at].id, sizeof(stub->samples[at].id), "%s", id);
  stub->samples[at].due_ms = due_ms;
  TNK__LIST_FOREACH (node, &stub->batch_polls) {
    poll_t *poll = tnk__container_of(node, poll_t, link);

    wait_until(poll, next_due(stub, poll->req), on_batch_due);
  }
}

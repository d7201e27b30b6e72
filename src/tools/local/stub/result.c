#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/pb.h"
#include "tools/local/stub/state.h"

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
      local_stub_drawn(result->stub, result->turn, result->n_tokens);

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

void local_stub_result(local_stub_t *stub, tnk__srv_req_t *req, const char *id,
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

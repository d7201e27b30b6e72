/* Follows an accepted request to its end. */
#include <stdio.h>
#include <string.h>

#include "tools/conform/state.h"

enum { PATIENCE_MS = 120000, MIN_GAP_MS = 20, MAX_GAP_MS = 1000 };

conform_call_t *conform_poll(conform_t *c, const char *id, int wants_proto,
                             int allow_metadata) {
  const conform_ask_t ask = {
      .method = "POST",
      .path = "retrieve_future",
      .json = json_pack("{s:s,s:b}", "request_id", id, "allow_metadata_only",
                        allow_metadata),
      .accept = wants_proto ? "application/x-protobuf" : NULL,
      .is_poll = 1};

  return conform_ask(c, &ask);
}

static conform_fate_t fail(conform_end_t *end, const conform_call_t *poll,
                           const char *words) {
  snprintf(end->how, sizeof(end->how), "failed with %d: %.180s", poll->status,
           words != NULL && words[0] != '\0' ? words : "no words");
  return end->fate = CONFORM_FAILED;
}

static conform_fate_t lose(conform_end_t *end, const char *what) {
  snprintf(end->how, sizeof(end->how), "%.200s", what);
  return end->fate = CONFORM_LOST;
}

static conform_fate_t read_json(const conform_call_t *poll,
                                conform_end_t *end) {
  const char *type = conform_text(poll, "type");
  const char *status = conform_text(poll, "status");

  if (!json_is_object(poll->json))
    return lose(end, "a 200 that is no JSON object");
  if (json_object_get(poll->json, "error") != NULL) {
    end->category = conform_text(poll, "category");
    return fail(end, poll, conform_text(poll, "error"));
  }
  if ((type != NULL && strcmp(type, "try_again") == 0) ||
      (status != NULL && strcmp(status, "complete_metadata") == 0)) {
    snprintf(end->how, sizeof(end->how), "%s",
             type != NULL ? "try_again" : "complete_metadata");
    return end->fate = CONFORM_PENDING;
  }
  snprintf(end->how, sizeof(end->how), "a result");
  return end->fate = CONFORM_RESULT;
}

conform_fate_t conform_fate_of(const conform_call_t *poll, conform_end_t *end) {
  memset(end, 0, sizeof(*end));
  end->last = poll;
  if (poll->err != TNK_OK)
    return lose(end, poll->how);
  end->is_proto = strstr(poll->type, "application/x-protobuf") != NULL;
  if (poll->status == 200 && end->is_proto) {
    snprintf(end->how, sizeof(end->how), "a result");
    return end->fate = CONFORM_RESULT;
  }
  if (conform_is_ok(poll))
    return read_json(poll, end);
  if (poll->status == 408) {
    snprintf(end->how, sizeof(end->how), "408");
    return end->fate = CONFORM_PENDING;
  }
  if (poll->status == 402 || poll->status == 429 || poll->status >= 500) {
    snprintf(end->how, sizeof(end->how), "the poll got %d: %.160s",
             poll->status, poll->words);
    return end->fate = CONFORM_LOST;
  }
  return fail(end, poll, poll->words);
}

void conform_follow_id(conform_t *c, const char *id, int wants_proto,
                       uint64_t patience_ms, conform_end_t *end) {
  const uint64_t until = tnk__context_now_ms(&c->context) + patience_ms;
  uint64_t gap = MIN_GAP_MS;

  for (;;) {
    const conform_call_t *poll = conform_poll(c, id, wants_proto, 0);

    if (conform_fate_of(poll, end) != CONFORM_PENDING)
      return;
    if (tnk__context_now_ms(&c->context) >= until || c->is_interrupted)
      return;
    /* If the server does not hold polls, they are sent at intervals. */
    if (poll->ms < gap)
      conform_pause(c, gap - poll->ms);
    gap = gap * 2 < MAX_GAP_MS ? gap * 2 : MAX_GAP_MS;
  }
}

void conform_follow(conform_t *c, const conform_call_t *call, int wants_proto,
                    conform_end_t *end) {
  const char *id = conform_text(call, "request_id");

  memset(end, 0, sizeof(*end));
  if (call->err != TNK_OK) {
    lose(end, call->how);
  } else if (!conform_is_ok(call)) {
    end->fate = CONFORM_FAILED;
    snprintf(end->how, sizeof(end->how), "refused with %d: %.180s",
             call->status, call->words);
  } else if (id == NULL) {
    lose(end, "accepted without a request_id that is a text");
  } else {
    conform_follow_id(c, id, wants_proto,
                      c->options.patience_ms != 0 ? c->options.patience_ms
                                                  : PATIENCE_MS,
                      end);
    if (end->fate == CONFORM_PENDING)
      snprintf(end->how, sizeof(end->how), "no result in the time given");
  }
}

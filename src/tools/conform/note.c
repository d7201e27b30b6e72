/* Records properties of all answers. The rules at the end judge them. */
#include <stdio.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/policy/retry_after.h"
#include "tools/conform/state.h"

/* The longest wait that clients accept. */
enum { MAX_WAIT_MS = 60000 };

static void note_place(char *out, size_t size, const char *path, int status) {
  tnk__text_t text;

  if (out[0] != '\0')
    return;
  tnk__text_init(&text, out, size);
  tnk__text_printf(&text, "%d to %s", status, path);
}

/* The form of the header's value. */
static const char *form_of(const char *ms, const char *value) {
  if (ms != NULL)
    return "retry-after-ms";
  if (value[0] >= '0' && value[0] <= '9')
    return "Retry-After in seconds";
  if (strchr(value, '-') != NULL)
    return "Retry-After as a date of RFC 850";
  return strchr(value, ',') != NULL ? "Retry-After as a date"
                                    : "Retry-After as a date of asctime";
}

static void note_wait(conform_t *c, const conform_call_t *call,
                      const tnk__http_result_t *result) {
  const char *ms = tnk__http_result_header(result, "retry-after-ms");
  const char *value = tnk__http_result_header(result, "retry-after");
  uint64_t wait;

  c->seen.n_waits++;
  c->seen.n_waits_state += conform_text(call, "queue_state") != NULL;
  if (ms == NULL && value == NULL)
    return;
  wait = tnk__retry_after(ms, value, tnk__http_result_header(result, "date"),
                          tnk__context_wall_s(&c->context));
  if (wait == 0 || wait > MAX_WAIT_MS)
    c->seen.n_waits_odd++;
  else
    c->seen.n_waits_told++;
  snprintf(c->seen.wait_form, sizeof(c->seen.wait_form), "%s",
           form_of(ms, value));
}

static void note_state(conform_t *c, const conform_call_t *call) {
  static const char *const known[] = {"active", "paused_capacity",
                                      "paused_rate_limit"};
  const char *state = conform_text(call, "queue_state");
  tnk__text_t text;

  if (state == NULL)
    return;
  c->seen.n_states++;
  for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
    if (strcmp(state, known[i]) == 0)
      return;
  tnk__text_init(&text, c->seen.odd_state, sizeof(c->seen.odd_state));
  tnk__text_printf(&text, "%s", state);
}

static void note_body(conform_t *c, const conform_call_t *call,
                      const char *path) {
  const int is_json = strstr(call->type, "json") != NULL;

  if (call->status >= 400 && call->body.len == 0) {
    c->seen.n_empty_errors++;
    note_place(c->seen.empty_error, sizeof(c->seen.empty_error), path,
               call->status);
  }
  if (call->status >= 300 || call->body.len == 0)
    return;
  if (is_json && call->json == NULL)
    c->seen.n_unreadable++;
  if (!is_json && call->json != NULL) {
    c->seen.n_wrong_types++;
    note_place(c->seen.wrong_type, sizeof(c->seen.wrong_type), path,
               call->status);
  }
}

void conform_note(conform_t *c, const conform_call_t *call,
                  const tnk__http_result_t *result, int is_poll) {
  const char *target = (const char *)call->target.data;
  const char *path = strstr(target, "/api/v1/");

  if (call->err != TNK_OK)
    return;
  path = path != NULL ? path + strlen("/api/v1/") : target;
  c->seen.n_answers++;
  if (tnk__http_result_header(result, "content-length") != NULL ||
      call->status == 204)
    c->seen.n_lengths++;
  if (tnk__http_result_header(result, "x-deprecation-note") != NULL)
    c->seen.n_deprecated++;
  if (call->status >= 500) {
    c->seen.n_server_errors++;
    note_place(c->seen.server_error, sizeof(c->seen.server_error), path,
               call->status);
  }
  if (call->status == 429 || call->status == 503 ||
      (call->status == 408 && !is_poll))
    note_wait(c, call, result);
  note_state(c, call);
  note_body(c, call, path);
}

/* SPDX-License-Identifier: MIT */
/* Describes and judges answers. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "tools/conform/state.h"

enum { MIN_SECRET = 8 };

/* ---- Findings ---- */

void conform_hide_text(void *data, size_t n, const char *text) {
  const size_t n_text = text != NULL ? strlen(text) : 0;
  char *at = data;

  for (size_t i = 0; n_text > 0 && i + n_text <= n; i++)
    if (memcmp(at + i, text, n_text) == 0)
      memset(at + i, '*', n_text);
}

void conform_hide(const conform_t *c, void *data, size_t n) {
  conform_hide_text(data, n, c->config.api_key);
  conform_hide_text(data, n, c->token);
  /* Shorter values are not secrets and would match everywhere. */
  for (size_t i = 0; i < c->config.n_headers; i++)
    if (strlen(c->config.headers[i].value) >= MIN_SECRET)
      conform_hide_text(data, n, c->config.headers[i].value);
}

conform_verdict_t conform_tell(conform_t *c, conform_verdict_t verdict,
                               const char *format, ...) {
  char *detail = c->finding->detail;
  va_list args;

  va_start(args, format);
  vsnprintf(detail, CONFORM_MAX_DETAIL, format, args);
  va_end(args);
  conform_hide(c, detail, strlen(detail));
  tnk__utf8_repair(detail);
  tnk__text_clean(detail, strlen(detail));
  return c->finding->verdict = verdict;
}

conform_verdict_t conform_told(const conform_t *c) {
  return c->finding->verdict;
}

conform_verdict_t conform_holds(conform_t *c) {
  return conform_tell(c, CONFORM_HOLDS, "%s", "");
}

/* ---- Answers ---- */

int conform_is_ok(const conform_call_t *call) {
  return call->err == TNK_OK && call->status >= 200 && call->status < 300;
}

int conform_is_refusal(const conform_call_t *call) {
  return call->err == TNK_OK && call->status >= 400 && call->status < 500;
}

int conform_is_absent(const conform_t *c, const conform_call_t *call) {
  if (call->status == 405 || call->status == 501)
    return 1;
  return call->status == 404 && call->status == c->no_such_status &&
         call->body.len == c->no_such.len &&
         (call->body.len == 0 ||
          memcmp(call->body.data, c->no_such.data, call->body.len) == 0);
}

const char *conform_text(const conform_call_t *call, const char *key) {
  return tnk__json_str(call->json, key);
}

conform_verdict_t conform_other(conform_t *c, const conform_call_t *call,
                                const char *wanted) {
  if (call->err != TNK_OK)
    return conform_tell(c, CONFORM_DIFFERS, "%s", call->how);
  if (call->status == 402)
    return conform_tell(c, CONFORM_SKIPPED,
                        "402: the account has no credit: %s", call->words);
  return conform_tell(c, CONFORM_DIFFERS, "%d instead of %s%s%s", call->status,
                      wanted, call->words[0] != '\0' ? ": " : "", call->words);
}

int conform_accepted(conform_t *c, const conform_call_t *call,
                     const char *wanted) {
  if (!conform_is_ok(call))
    conform_other(c, call, wanted);
  return conform_is_ok(call);
}

int conform_offered(conform_t *c, const conform_call_t *call,
                    const char *wanted) {
  if (!conform_is_absent(c, call))
    return conform_accepted(c, call, wanted);
  conform_tell(c, CONFORM_ABSENT, "%d", call->status);
  return 0;
}

int conform_announced(conform_t *c, const conform_call_t *call,
                      const char *flag) {
  if (!conform_is_absent(c, call) || !conform_flag(c, flag))
    return conform_offered(c, call, "200");
  conform_tell(c, CONFORM_DIFFERS, "%d, although client/config announces it",
               call->status);
  return 0;
}

int conform_flag(const conform_t *c, const char *name) {
  return json_is_true(json_object_get(c->flags, name));
}

/* ---- Common judgements ---- */

conform_verdict_t conform_refusal(conform_t *c, const char *taken,
                                  const char *wanted) {
  if (conform_is_refusal(c->call))
    return conform_tell(c, CONFORM_HOLDS, "%d", c->call->status);
  if (conform_is_ok(c->call) && taken != NULL)
    return conform_tell(c, CONFORM_ALLOWED, "%s", taken);
  return conform_other(c, c->call, wanted);
}

conform_verdict_t conform_refused(conform_t *c) {
  return conform_refusal(c, NULL, "a 4xx");
}

conform_verdict_t conform_refused_404(conform_t *c) {
  return conform_refusal(c, NULL, "404");
}

conform_verdict_t conform_same(conform_t *c, int is_same, const char *what) {
  if (is_same)
    return conform_tell(c, CONFORM_HOLDS, "the same %s", what);
  return conform_tell(c, CONFORM_ALLOWED, "a second %s", what);
}

conform_verdict_t conform_rejected(conform_t *c, conform_verdict_t verdict,
                                   const char *taken) {
  if (c->end.fate == CONFORM_FAILED)
    return conform_tell(c, CONFORM_HOLDS, "%s",
                        c->end.last == NULL ? "at once" : "in the result");
  if (c->end.fate == CONFORM_RESULT)
    return conform_tell(c, verdict, "%s", taken);
  return conform_tell(c, CONFORM_DIFFERS, "%s", c->end.how);
}

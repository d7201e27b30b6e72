/* SPDX-License-Identifier: MIT */
/* The entry points of include/tnk/hosted.h. */
#include "lib/hosted/hosted.h"

#include <stdio.h>
#include <string.h>

#include "lib/api/service.h"
#include "lib/base/options.h"
#include "lib/wire/format/json_read.h"

/* One day. */
enum { MAX_SILENCE_MS = 86400000 };

static int say(char *why, size_t size, const char *text) {
  snprintf(why, size, "%s", text);
  return TNK_EINVAL;
}

/* Check a path that is appended to the base URL. */
static int check_path(const char *path, char *why, size_t size) {
  if (path == NULL)
    return TNK_OK;
  if (path[0] != '/' || path[1] == '/')
    return say(why, size, "path does not begin with one /");
  for (const char *at = path; *at != '\0'; at++)
    if (*at <= ' ' || *at > '~' || *at == '#')
      return say(why, size, "path has characters that it may not have");
  return TNK_OK;
}

/* A stream flag that contradicts the call would give an unreadable answer. */
static int check_body(const tnk_hosted_request_t *request, char *why,
                      size_t size) {
  json_t *json = NULL;
  int streams;
  int err;

  if (request->n_body > TNK__HOSTED_MAX_BODY)
    return say(why, size, "body is larger than 64 MiB");
  err = tnk__json_parse_object(&json, request->body, request->n_body);
  if (err != TNK_OK)
    return err == TNK_ENOMEM ? err : say(why, size, "body is no JSON object");
  streams = json_is_true(json_object_get(json, "stream"));
  json_decref(json);
  if (streams && request->on_event == NULL)
    return say(why, size, "body wants a stream, and on_event is NULL");
  if (!streams && request->on_event != NULL)
    return say(why, size, "on_event is given, and body wants no stream");
  return TNK_OK;
}

static int check(tnk_hosted_request_t *request, char *why, size_t size) {
  int err;

  if (request->form < TNK_HOSTED_CHAT || request->form > TNK_HOSTED_MESSAGES)
    return say(why, size, "form is none");
  if (request->body == NULL)
    return say(why, size, "body is NULL");
  if (request->silence_ms > MAX_SILENCE_MS)
    return say(why, size, "silence_ms is more than a day");
  if (request->n_body == 0)
    request->n_body = strlen(request->body);
  err = check_path(request->path, why, size);
  return err == TNK_OK ? check_body(request, why, size) : err;
}

tnk_promise_t *tnk_service_hosted(tnk_service_t *service,
                                  const tnk_hosted_request_t *request) {
  tnk_hosted_request_t own = TNK_HOSTED_REQUEST_INIT;
  char why[TNK__MAX_WHY] = "";
  tnk_promise_t *refusal;
  int err;

  if (!TNK__HANDLE_AT(service, root.magic, SERVICE))
    return NULL;
  err = TNK__LOAD(tnk_hosted_request_t, &own, request, why, sizeof(why));
  if (err == TNK_OK)
    err = check(&own, why, sizeof(why));
  refusal = tnk__service_refuses(
      &service->session, err == TNK_OK ? tnk__hosted_name(own.form) : "hosted",
      err, why);
  return refusal != NULL ? refusal : tnk__hosted_ask(&service->session, &own);
}

const char *tnk_hosted_body(const tnk_hosted_t *hosted, size_t *n) {
  if (n != NULL)
    *n = hosted != NULL ? hosted->n_body : 0;
  return hosted != NULL ? hosted->body : NULL;
}

uint64_t tnk_hosted_n_events(const tnk_hosted_t *hosted) {
  return hosted != NULL ? hosted->n_events : 0;
}

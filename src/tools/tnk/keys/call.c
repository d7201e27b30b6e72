/* SPDX-License-Identifier: MIT */
/* One request to a running gateway. */
#include "tools/tnk/keys/call.h"

#include <stdio.h>

#include "lib/api/config.h"
#include "lib/wire/format/json_read.h"
#include "tnk/error.h"
#include "tools/tnk/web/web.h"

#define HINT_KEY                                                               \
  "Use the admin key of the gateway: --admin-key-file, --admin-key or "        \
  "TNK_GATEWAY_ADMIN_KEY."
#define HINT_URL                                                               \
  "Check that a gateway listens at this address: --url or TNK_GATEWAY_URL."

/* Report an answer that is an error. `json` is its body, or NULL. */
static int refused(const cli_t *cli, int http_status, const json_t *json) {
  const char *text = tnk__json_str(tnk__json_obj(json, "error"), "message");
  const char *code = tnk__json_str(tnk__json_obj(json, "error"), "code");
  const char *hint = NULL;
  int status = CLI_EXIT_FAILED;
  char own[128];

  (void)snprintf(own, sizeof(own), "the server answers with status %d",
                 http_status);
  if (text == NULL) {
    hint = HINT_URL;
  } else if (http_status == 401 || http_status == 403) {
    status = CLI_EXIT_AUTH;
    hint = HINT_KEY;
  } else if (http_status == 404) {
    status = CLI_EXIT_NOT_FOUND;
    hint = "tnk gateway keys list shows the ids.";
  }
  return cli_report(cli, &(cli_problem_t){.status = status,
                                          .message = text != NULL ? text : own,
                                          .code = code,
                                          .hint = hint,
                                          .http_status = http_status});
}

static int read_answer(const cli_t *cli, const cli_web_answer_t *answer,
                       json_t **out) {
  int status = CLI_EXIT_OK;

  if (tnk__json_parse_object(out, answer->body.data, answer->body.len) !=
      TNK_OK)
    *out = NULL;
  if (answer->status != 200) {
    status = refused(cli, answer->status, *out);
  } else if (*out == NULL) {
    status = cli_report(
        cli, &(cli_problem_t){.status = CLI_EXIT_FAILED,
                              .message = "the answer is not one of a gateway",
                              .hint = HINT_URL});
  }
  if (status == CLI_EXIT_OK)
    return status;
  json_decref(*out);
  *out = NULL;
  return status;
}

static const char *address_of(const cli_place_t *place) {
  return place->url != NULL && place->url[0] != '\0'
             ? place->url
             : tnk__env("TNK_GATEWAY_URL");
}

static int call(const cli_t *cli, const char *url,
                const cli_web_request_t *request, json_t **out) {
  cli_web_answer_t answer = {0};
  cli_web_t web;
  int status = cli_web_open(&web, cli, url, "url", HINT_URL);

  if (status == CLI_EXIT_OK) {
    status = cli_web_send(&web, request, &answer);
    if (status == CLI_EXIT_OK)
      status = read_answer(cli, &answer, out);
    cli_web_drop(&answer);
  }
  return cli_web_close(&web, status);
}

int cli_gateway_call(const cli_t *cli, const cli_place_t *place,
                     const char *method, const char *path, const char *body,
                     json_t **out) {
  const char *url = address_of(place);
  char *key = NULL;
  int status = cli_admin_read(cli, &place->admin, &key);
  const tnk_pair_t header = {"X-Api-Key", key != NULL ? key : ""};

  *out = NULL;
  if (status == CLI_EXIT_OK && url == NULL)
    status = cli_report(
        cli,
        &(cli_problem_t){.status = CLI_EXIT_USAGE,
                         .message = "the address of the gateway is missing",
                         .hint = "Use --url or TNK_GATEWAY_URL. tnk gateway "
                                 "prints its address when it listens."});
  if (status == CLI_EXIT_OK)
    status = call(cli, url,
                  &(cli_web_request_t){
                      .method = method,
                      .path = path,
                      .headers = &header,
                      .n_headers = key != NULL,
                      .body = body,
                      .why_header = "the admin key has characters that no "
                                    "request can have",
                      .hint_header = HINT_KEY},
                  out);
  cli_admin_free(key);
  return status;
}

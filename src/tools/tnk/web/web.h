/* SPDX-License-Identifier: MIT */
#ifndef TNK_TOOLS_TNK_WEB_WEB_H
#define TNK_TOOLS_TNK_WEB_WEB_H

#include "lib/base/arena.h"
#include "lib/base/buf.h"
#include "lib/io/http/client.h"
#include "tools/tnk/ask/ask.h"

/* A server, and the loop for requests to it. All functions report errors and
 * return the exit status. */
typedef struct {
  const cli_t *cli;
  const char *hint; /* for errors of the address and the connection */
  cli_ask_t ask;
  tnk__context_t context;
  tnk__http_t http;
  tnk__proxies_t proxies;
  tnk__arena_t arena; /* of the URL */
  tnk__url_t url;
  int is_open; /* the context is */
  int is_closed;
} cli_web_t;

typedef struct {
  const char *method;
  const char *path;          /* behind the path of the URL */
  const tnk_pair_t *headers; /* beside those that each request has */
  size_t n_headers;
  const char *body; /* JSON, or NULL */
  /* If a header cannot be sent: why, and what to do. */
  const char *why_header;
  const char *hint_header;
} cli_web_request_t;

typedef struct {
  int status; /* of HTTP */
  tnk__buf_t body;
} cli_web_answer_t;

/* The most headers of a request. */
enum { CLI_WEB_MAX_HEADERS = 2 };

/* Open the server with this URL. Call cli_web_close() in any case. `option` is
 * the name of the option that has the URL. */
int cli_web_open(cli_web_t *web, const cli_t *cli, const char *url,
                 const char *option, const char *hint);
/* Send a request, and wait for the answer, which may have any status. */
int cli_web_send(cli_web_t *web, const cli_web_request_t *request,
                 cli_web_answer_t *answer);
void cli_web_drop(cli_web_answer_t *answer);
/* Returns `status`, or that of a signal. */
int cli_web_close(cli_web_t *web, int status);

#endif

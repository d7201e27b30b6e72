#ifndef EXAMPLES_TINY_HTTP_H
#define EXAMPLES_TINY_HTTP_H

#include <uv.h>

/*
 * As much of an HTTP server as sample_server needs: POST with a short body, one
 * request a connection. A real one would use an HTTP parser.
 */
enum { TINY_HTTP_MAX_REQUEST = 8192, TINY_HTTP_MAX_BODY = 2048 };

/* A request that has come in whole. It stays until it is answered. */
typedef struct tiny_http_request {
  const char *body;
  size_t n_body;
  void *user; /* of whoever answers it */
  /* Set by whoever answers it later: the client has hung up. The answer is
   * still due, and goes nowhere. */
  void (*gone)(struct tiny_http_request *request);
} tiny_http_request_t;

typedef struct {
  uv_tcp_t tcp;
  /* The caller's: a request has come in. */
  void (*asked)(tiny_http_request_t *request);
} tiny_http_t;

/* Listen on 127.0.0.1; port 0 takes any that is free. Returns the port, or
 * libuv's error. */
int tiny_http_listen(tiny_http_t *http, uv_loop_t *loop, int port,
                     void (*asked)(tiny_http_request_t *request));
/* Take no further connections. */
void tiny_http_close(tiny_http_t *http);
/* Answer a request, once. `status` is like "200 OK"; the text is copied and cut
 * at some hundred bytes. */
void tiny_http_answer(tiny_http_request_t *request, const char *status,
                      const char *text, size_t n);

#endif

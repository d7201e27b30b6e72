/*
 * tnk inside a libuv program: an HTTP server that completes the body of each
 * POST by sampling. Any number of clients wait at the same time, on one
 * thread, and one that hangs up cancels its sample.
 *
 *   sample_server [PORT]
 *   curl --data 'The ' http://127.0.0.1:8080/
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tnk/tnk.h>
#include <uv.h>

#include "local_server.h"
#include "tiny_http.h"

enum { ANSWER_TOKENS = 64 };

static tnk_service_t *service;
static tnk_sampling_t *sampler; /* NULL when the server is about to end */
static tiny_http_t http;

/* The sample has settled, in whatever way: answer, and let go of it. */
static void on_sample(tnk_promise_t *promise, int status, void *user) {
  tiny_http_request_t *request = user;
  char text[ANSWER_TOKENS];
  const int32_t *tokens;
  size_t n = 0;

  if (status == TNK_OK) {
    tokens = tnk_samples_tokens(tnk_promise_samples(promise), 0, &n);
    n = n < ANSWER_TOKENS ? n : ANSWER_TOKENS;
    for (size_t i = 0; i < n; i++)
      text[i] = (char)(tokens[i] >= ' ' && tokens[i] < 127 ? tokens[i] : '.');
    tiny_http_answer(request, "200 OK", text, n);
  } else {
    const char *why = tnk_promise_text(promise);
    tiny_http_answer(request, "502 Bad Gateway", why, strlen(why));
  }
  tnk_promise_unref(promise); /* the reference of on_asked() */
}

static void on_gone(tiny_http_request_t *request) {
  tnk_promise_cancel(request->user); /* on_sample() goes on from here. */
}

static void on_asked(tiny_http_request_t *request) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  int32_t tokens[TINY_HTTP_MAX_BODY];
  const tnk_model_input_t prompt = {.tokens = tokens,
                                    .n_tokens = request->n_body};

  if (sampler == NULL) {
    tiny_http_answer(request, "503 Service Unavailable", "closing\n", 8);
    return;
  }
  for (size_t i = 0; i < request->n_body; i++)
    tokens[i] = (unsigned char)request->body[i];
  params.max_tokens = ANSWER_TOKENS;
  request->user = tnk_sampling_sample(sampler, &prompt, &params, NULL);
  request->gone = on_gone;
  tnk_then(tnk_promise_ref(request->user), on_sample, request);
}

/* Ctrl-C: nothing new, and what runs is called off. Clients that have asked
 * nothing yet are waited for; a second Ctrl-C does not. */
static void on_signal(uv_signal_t *signal, int number) {
  (void)number;
  tiny_http_close(&http);
  uv_close((uv_handle_t *)signal, NULL);
  sampler = NULL;
  tnk_service_close(service, NULL, NULL);
}

static int fail(const char *why) {
  fprintf(stderr, "sample_server: %s\n", why);
  return 1;
}

int main(int argc, char **argv) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  uv_loop_t *loop = uv_default_loop();
  static uv_signal_t signal;
  tnk_promise_t *made;
  char why[256];
  int port;

  if (local_server_unless_set() != 0)
    return 1;
  if (tnk_service_open(&service, loop, NULL, why, sizeof(why)) != TNK_OK)
    return fail(why);
  options.base_model = "tnk/byte-lm";
  made = tnk_service_create_sampling(service, &options);
  if (tnk_wait(made) != TNK_OK)
    return fail(tnk_promise_text(made));
  sampler = tnk_promise_sampling(made);
  tnk_promise_unref(made);

  port = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 8080;
  port = tiny_http_listen(&http, loop, port, on_asked);
  if (port < 0)
    return fail(uv_strerror(port));
  printf("listening on http://127.0.0.1:%d\n", port);
  fflush(stdout);
  uv_signal_init(loop, &signal);
  uv_signal_start(&signal, on_signal, SIGINT);
  return uv_run(loop, UV_RUN_DEFAULT);
}

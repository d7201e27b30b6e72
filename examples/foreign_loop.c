/*
 * tnk in an event loop that is not libuv's. This program waits in poll(). It
 * watches the descriptor of the libuv loop beside its own, and turns the libuv
 * loop when there is work. Every event loop that can watch a descriptor and a
 * timeout can do the same; tnk/bindings.h lists the steps.
 *
 *   foreign_loop        completes each line of the standard input
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tnk/tnk.h>
#include <unistd.h>
#include <uv.h>

#include "local_server.h"

enum { MAX_LINE = 1000, ANSWER_TOKENS = 32 };

static tnk_sampling_t *sampler;
static int n_waiting, failed;

static void on_sample(tnk_promise_t *promise, int status, void *user) {
  const int32_t *tokens;
  char *line = user;
  size_t n = 0;

  tokens = tnk_samples_tokens(tnk_promise_samples(promise), 0, &n);
  printf("%s|", line);
  for (size_t i = 0; i < n; i++)
    putchar(tokens[i] >= ' ' && tokens[i] < 127 ? tokens[i] : '.');
  printf("%s\n", status == TNK_OK ? "" : tnk_promise_text(promise));
  failed |= status != TNK_OK;
  n_waiting--;
  free(line);
}

static void on_sampler(tnk_promise_t *promise, int status, void *user) {
  (void)user;
  sampler = tnk_promise_sampling(promise);
  if (status == TNK_OK)
    return;
  fprintf(stderr, "foreign_loop: %s\n", tnk_promise_text(promise));
  exit(1);
}

/* Our own event: a line. Returns 0 at the end of the input. */
static int on_line(void) {
  tnk_sampling_params_t params = TNK_SAMPLING_PARAMS_INIT;
  int32_t tokens[MAX_LINE];
  tnk_model_input_t prompt = {.tokens = tokens};
  char *line = calloc(1, MAX_LINE);

  if (line == NULL || fgets(line, MAX_LINE, stdin) == NULL) {
    free(line);
    return 0;
  }
  line[strcspn(line, "\n")] = '\0';
  for (; line[prompt.n_tokens] != '\0'; prompt.n_tokens++)
    tokens[prompt.n_tokens] = (unsigned char)line[prompt.n_tokens];
  params.max_tokens = ANSWER_TOKENS;
  n_waiting++;
  tnk_then(tnk_sampling_sample(sampler, &prompt, &params, NULL), on_sample,
           line);
  return 1;
}

/* One turn of our loop: wait, then see to our own event, if *has_input, and to
 * the libuv loop. The libuv loop comes last, because a call of tnk gives it
 * work.
 */
static void turn(uv_loop_t *loop, int *has_input) {
  struct pollfd watched[2] = {{.fd = uv_backend_fd(loop), .events = POLLIN},
                              {.fd = STDIN_FILENO, .events = POLLIN}};

  poll(watched, *has_input ? 2 : 1, uv_backend_timeout(loop));
  if (*has_input && watched[1].revents != 0)
    *has_input = on_line();
  uv_run(loop, UV_RUN_NOWAIT);
}

int main(void) {
  tnk_sampling_options_t options = TNK_SAMPLING_OPTIONS_INIT;
  tnk_service_options_t how = TNK_SERVICE_OPTIONS_INIT;
  tnk_service_t *service;
  int has_input = 1;
  int no_input = 0;
  uv_loop_t loop;
  char why[256];

  /* What stdio reads ahead is not seen by poll(). */
  setvbuf(stdin, NULL, _IONBF, 0);
  if (local_server_unless_set() != 0 || uv_loop_init(&loop) != 0)
    return 1;
  how.keep_loop_alive = TNK_YES; /* heartbeats, while nothing else happens */
  if (tnk_service_open(&service, &loop, &how, why, sizeof(why)) != TNK_OK) {
    fprintf(stderr, "foreign_loop: %s\n", why);
    return 1;
  }
  options.base_model = "tnk/byte-lm";
  tnk_then(tnk_service_create_sampling(service, &options), on_sampler, NULL);
  uv_run(&loop, UV_RUN_NOWAIT);
  while (sampler == NULL)
    turn(&loop, &no_input);
  while (has_input || n_waiting > 0)
    turn(&loop, &has_input);
  tnk_service_close(service, NULL, NULL);
  uv_run(&loop, UV_RUN_NOWAIT);
  while (uv_loop_alive(&loop))
    turn(&loop, &no_input);
  return failed || uv_loop_close(&loop) != 0;
}

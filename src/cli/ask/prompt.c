#include "cli/ask/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int cli_may_ask(const cli_t *cli) {
  return !cli->json && cli_is_terminal(stdin) && cli_is_terminal(stderr);
}

static void on_input(uv_poll_t *poll, int status, int events) {
  int *is_there = poll->data;

  (void)status;
  (void)events;
  *is_there = 1;
}

/* Run the loop until something can be read, or the command is to end. What ends
 * it are handles that do not keep the loop, so the poll does. 0: to end. */
static int wait_for_input(cli_ask_t *ask) {
  int flags = fcntl(STDIN_FILENO, F_GETFL);
  int is_there = 0;
  uv_poll_t poll;

  if (uv_poll_init(&ask->loop, &poll, STDIN_FILENO) != 0)
    return 1; /* without signals, then */
  poll.data = &is_there;
  uv_poll_start(&poll, UV_READABLE, on_input);
  while (!is_there && !cli_ask_is_over(ask))
    uv_run(&ask->loop, UV_RUN_ONCE);
  uv_close((uv_handle_t *)&poll, NULL);
  uv_run(&ask->loop, UV_RUN_NOWAIT);
  /* The terminal is others' as well, who do not expect what libuv makes it. */
  if (flags >= 0)
    (void)fcntl(STDIN_FILENO, F_SETFL, flags);
  return is_there;
}

int cli_ask_yes(cli_ask_t *ask, const char *question) {
  char line[64];
  ssize_t n;

  fprintf(stderr, "%s [y/N] ", question);
  fflush(stderr);
  if (!wait_for_input(ask)) {
    fputc('\n', stderr);
    return -1;
  }
  do
    n = read(STDIN_FILENO, line, sizeof(line));
  while (n < 0 && errno == EINTR);
  if (n <= 0) {
    fputc('\n', stderr);
    return -1;
  }
  return line[0] == 'y' || line[0] == 'Y';
}

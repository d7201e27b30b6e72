/* SPDX-License-Identifier: MIT */
#include "tools/tnk/ask/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Run the loop until input is available or the command must end. Only the poll
 * handle keeps the loop alive; signals and the timeout stop it. Returns 0 if
 * the command must end. */
static int wait_for_input(cli_ask_t *ask) {
  int flags = fcntl(STDIN_FILENO, F_GETFL);
  int is_there = 0;
  uv_poll_t poll;

  if (uv_poll_init(&ask->loop, &poll, STDIN_FILENO) != 0)
    return 1; /* read without signals in that case */
  poll.data = &is_there;
  uv_poll_start(&poll, UV_READABLE, on_input);
  while (!is_there && !cli_ask_is_over(ask))
    uv_run(&ask->loop, UV_RUN_ONCE);
  uv_close((uv_handle_t *)&poll, NULL);
  uv_run(&ask->loop, UV_RUN_NOWAIT);
  /* Other processes share the terminal and do not expect libuv's non-blocking
   * mode. */
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

/* ---- Lines ---- */

enum { MAX_LINE = 1 << 20, PIECE = 4096 };

/* Enlarge the buffer. Returns 0 without memory. */
static int grow(cli_lines_t *lines) {
  char *text;

  if (lines->at > 0) {
    memmove(lines->text, lines->text + lines->at, lines->n - lines->at);
    lines->n -= lines->at;
    lines->at = 0;
  }
  if (lines->n > MAX_LINE)
    return 0;
  if (lines->cap - lines->n >= PIECE)
    return 1;
  text = realloc(lines->text, lines->cap * 2 + PIECE);
  if (text == NULL)
    return 0;
  lines->text = text;
  lines->cap = lines->cap * 2 + PIECE;
  return 1;
}

/* Returns 1 for a line; the last one may have no newline. */
static int take_line(cli_lines_t *lines, const char **line, size_t *n) {
  const char *begin;
  const char *end;

  if (lines->n == lines->at)
    return 0;
  begin = lines->text + lines->at;
  end = memchr(begin, '\n', lines->n - lines->at);
  if (end == NULL && !lines->is_over)
    return 0;
  *line = begin;
  *n = end != NULL ? (size_t)(end - begin) : lines->n - lines->at;
  lines->at += *n + (end != NULL);
  return 1;
}

int cli_ask_line(cli_ask_t *ask, cli_lines_t *lines, const char *question,
                 const char **line, size_t *n) {
  if (question != NULL) {
    fputs(question, stderr);
    fflush(stderr);
  }
  while (!take_line(lines, line, n)) {
    ssize_t got;

    if (lines->is_over) {
      if (question != NULL)
        fputc('\n', stderr);
      return 0;
    }
    if (!grow(lines) || !wait_for_input(ask))
      return -1;
    do
      got = read(STDIN_FILENO, lines->text + lines->n, PIECE);
    while (got < 0 && errno == EINTR);
    if (got > 0)
      lines->n += (size_t)got;
    else
      lines->is_over = 1;
  }
  return 1;
}

void cli_lines_free(cli_lines_t *lines) {
  free(lines->text);
  *lines = (cli_lines_t){0};
}

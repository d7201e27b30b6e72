/* SPDX-License-Identifier: MIT */
/*
 * The link as a program, in real time.
 *
 *   link PORT [WORDS ...]
 *
 * PORT is the server's, on 127.0.0.1. It prints the URL of its own, and does
 * what WORDS say (link.h); further words come as lines of its input, and each
 * is answered with a line: what was counted so far, as JSON. It ends with its
 * input.
 *
 *   link 8000 'delay 75' 'limit 50 close' '@10000 reset'
 */
#include <signal.h>
#include <string.h>

#include "support/link_internal.h"

typedef struct {
  uv_pipe_t in;
  test_link_t *link;
  char line[256];
  size_t n;
} program_t;

static void print_counts(const test_link_t *link) {
  const test_link_counts_t *counts = test_link_counts(link);

  printf("{\"connections\":%zu,\"open\":%zu,\"most_open\":%zu,"
         "\"turned_away\":%zu,\"lost\":%zu,\"up\":%llu,\"down\":%llu,"
         "\"most_queued_up\":%zu,\"most_queued_down\":%zu}\n",
         counts->n_connections, counts->n_open, counts->n_most_open,
         counts->n_turned_away, counts->n_lost,
         (unsigned long long)counts->n_bytes[0],
         (unsigned long long)counts->n_bytes[1], counts->most_queued[0],
         counts->most_queued[1]);
  fflush(stdout);
}

static int tell(test_link_t *link, const char *words) {
  if (strcmp(words, "counts") == 0 || test_link_tell(link, words) == 0)
    return 1;
  fprintf(stderr, "link: cannot: %s\n", words);
  return 0;
}

static void on_line(program_t *program) {
  char *end;

  program->line[program->n] = '\0';
  while ((end = strchr(program->line, '\n')) != NULL) {
    *end = '\0';
    tell(program->link, program->line);
    print_counts(program->link);
    program->n -= (size_t)(end + 1 - program->line);
    memmove(program->line, end + 1, program->n + 1);
  }
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf) {
  program_t *program = handle->data;

  (void)hint;
  *buf = uv_buf_init(program->line + program->n,
                     (unsigned)(sizeof(program->line) - 1 - program->n));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf) {
  program_t *program = stream->data;

  (void)buf;
  if (n < 0) {
    test_link_close(program->link);
    uv_close((uv_handle_t *)stream, NULL);
    return;
  }
  program->n += (size_t)n;
  on_line(program);
}

int main(int argc, char **argv) {
  static program_t program;
  uv_loop_t loop;
  long port = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

  if (port <= 0 || port > 65535) {
    fprintf(stderr, "usage: link PORT [WORDS ...] <PIPE\n");
    return 2;
  }
  /* A client that is gone ends its connection alone. */
  signal(SIGPIPE, SIG_IGN);
  LINK_MUST(uv_loop_init(&loop) == 0);
  program.link = test_link_open(&loop, (uint16_t)port);
  for (int i = 2; i < argc; i++)
    if (!tell(program.link, argv[i]))
      return 2;
  program.in.data = &program;
  if (uv_pipe_init(&loop, &program.in, 0) != 0 ||
      uv_pipe_open(&program.in, 0) != 0 ||
      uv_read_start((uv_stream_t *)&program.in, on_alloc, on_read) != 0) {
    fprintf(stderr, "link: the input is no pipe\n");
    return 2;
  }
  printf("%s\n", test_link_url(program.link));
  fflush(stdout);
  uv_run(&loop, UV_RUN_DEFAULT);
  uv_loop_close(&loop);
  return 0;
}

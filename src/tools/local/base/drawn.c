/* SPDX-License-Identifier: MIT */
#include "tools/local/base/drawn.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <uv.h>

#include "lib/base/alloc.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

/* The size of an answer limits the sequences of a request. */
#define MAX_LINES ((size_t)1 << 30)

struct local_drawn {
  const tnk_allocator_t *alloc;
  int fd;
  int is_broken; /* the file may end with a partial line */
};

int local_drawn_open(local_drawn_t **out, const char *path,
                     const tnk_allocator_t *alloc) {
  local_drawn_t *log = tnk__calloc(alloc, 1, sizeof(*log));
  int err;

  *out = NULL;
  if (log == NULL)
    return TNK_ENOMEM;
  log->alloc = alloc;
  /* Prompts are private, so only this user may read the file. */
  log->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log->fd < 0) {
    err = uv_translate_sys_error(errno);
    tnk__free(alloc, log);
    return err;
  }
  *out = log;
  return TNK_OK;
}

void local_drawn_close(local_drawn_t *log) {
  if (log == NULL)
    return;
  close(log->fd);
  tnk__free(log->alloc, log);
}

static void put_line(tnk__buf_t *out, const local_drawn_line_t *line) {
  tnk__json_writer_t w;

  tnk__json_writer_init(&w, out);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "request_id", line->request_id);
  tnk__json_put_int(&w, "index", line->index);
  tnk__json_put_text(&w, "weights", line->weights);
  tnk__json_key(&w, "prompt");
  tnk__json_int32s(&w, line->prompt, line->n_prompt);
  tnk__json_key(&w, "tokens");
  tnk__json_int32s(&w, line->tokens, line->n_tokens);
  tnk__json_put_array(&w, "logprobs");
  for (size_t i = 0; i < line->n_tokens; i++)
    tnk__json_float(&w, line->logprobs[i]);
  tnk__json_end(&w);
  tnk__json_put_text(&w, "stop_reason", line->is_length ? "length" : "stop");
  tnk__json_end(&w);
  tnk__json_finish(&w);
  tnk__buf_byte(out, '\n');
}

static int write_all(int fd, const uint8_t *bytes, size_t n) {
  while (n > 0) {
    ssize_t wrote = write(fd, bytes, n);

    if (wrote < 0 && errno == EINTR)
      continue;
    if (wrote <= 0)
      return TNK_EFILE;
    bytes += wrote;
    n -= (size_t)wrote;
  }
  return TNK_OK;
}

int local_drawn_write(local_drawn_t *log, const local_drawn_line_t *lines,
                      size_t n) {
  tnk__buf_t out;
  int err;

  if (log == NULL)
    return TNK_OK;
  if (log->is_broken)
    return TNK_EFILE;
  tnk__buf_init(&out, log->alloc, MAX_LINES);
  for (size_t i = 0; i < n; i++)
    put_line(&out, &lines[i]);
  err = out.err;
  if (err == TNK_OK) {
    err = write_all(log->fd, out.data, out.len);
    log->is_broken = err != TNK_OK;
  }
  tnk__buf_deinit(&out);
  return err;
}

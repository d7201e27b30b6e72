/* SPDX-License-Identifier: MIT */
/* tnk lint: reads training data, one JSON example per line, and reports the
 * lines that tnk_training_forward_backward() would refuse. */
#include "tools/tnk/text/lint.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "lib/base/alloc.h"
#include "lib/base/arena.h"
#include "lib/base/limits.h"
#include "lib/base/text.h"
#include "lib/base/utf8.h"
#include "lib/wire/data/check.h"
#include "lib/wire/data/datum_json.h"
#include "lib/wire/format/json_read.h"
#include "lib/wire/format/json_write.h"
#include "tnk/error.h"

enum { MAX_REASON = 512 };

typedef struct {
  cli_lint_options_t options;
  FILE *out;
  size_t n_lines; /* lines with an example */
  size_t n_bad;
} lint_t;

/* ---- One line ---- */

static void report_json(lint_t *lint, size_t line, const char *reason) {
  tnk__json_writer_t w;
  tnk__buf_t buf;

  tnk__buf_init(&buf, tnk__allocator_default(), TNK__MIB);
  tnk__json_writer_init(&w, &buf);
  tnk__json_begin_object(&w);
  tnk__json_put_text(&w, "file", lint->options.file);
  tnk__json_put_int(&w, "line", (int64_t)line);
  tnk__json_put_text(&w, "reason", reason);
  tnk__json_end(&w);
  fprintf(lint->out, "%s\n    ", lint->n_bad > 1 ? "," : "");
  if (tnk__json_finish(&w) == TNK_OK)
    fprintf(lint->out, "%.*s", (int)buf.len, (const char *)buf.data);
  else /* the file name is not UTF-8 */
    fprintf(lint->out, "{\"line\":%zu,\"reason\":\"%s\"}", line,
            "the error cannot be written as JSON");
  tnk__buf_deinit(&buf);
}

static void report(lint_t *lint, size_t line, const char *reason) {
  lint->n_bad++;
  if (lint->options.json)
    report_json(lint, line, reason);
  else
    fprintf(lint->out, "%s:%zu: %s\n", lint->options.file, line, reason);
}

/* Remove the prefix with the index of the example, which is always 0. Names
 * from the data may be cut inside a character or contain control characters. */
static void clean(char *reason) {
  static const char prefix[] = "datum 0: ";
  const size_t n = sizeof(prefix) - 1;

  tnk__utf8_repair(reason);
  tnk__text_clean(reason, strlen(reason));
  if (strncmp(reason, prefix, n) == 0)
    memmove(reason, reason + n, strlen(reason + n) + 1);
}

int cli_lint_line(tnk_datum_t *out, tnk__arena_t *arena, json_t **json,
                  const char *line, size_t n, const char *loss, char *reason,
                  size_t n_reason) {
  int err = tnk__json_parse(json, line, n);

  /* Lack of memory is not an error in the data, and ends the run. */
  if (err == TNK_EPROTO) {
    snprintf(reason, n_reason, "it is not JSON");
    return TNK_EINVAL;
  }
  if (err == TNK_OK)
    err = tnk__datum_read(out, arena, *json, reason, n_reason);
  if (err == TNK_OK)
    /* The same function as in a training call, so that the results agree. */
    err = tnk_data_check(out, 1, loss, reason, n_reason);
  if (err == TNK_EINVAL)
    clean(reason);
  return err;
}

static int check(const lint_t *lint, const char *line, size_t n, char *reason) {
  json_t *json = NULL;
  tnk__arena_t arena;
  tnk_datum_t datum;
  int err;

  /* The data belong to the user and are in memory already, so there is no
   * limit. */
  tnk__arena_init(&arena, tnk__allocator_default(), SIZE_MAX / 2);
  err = cli_lint_line(&datum, &arena, &json, line, n, lint->options.loss,
                      reason, MAX_REASON);
  tnk__arena_deinit(&arena);
  json_decref(json);
  return err;
}

/* ---- The file ---- */

/* Uses the length, because a line that begins with a NUL is not empty. */
static int is_blank(const char *line, size_t n) {
  return strspn(line, " \t\r\n") == n;
}

static int check_lines(lint_t *lint, FILE *in, char *why, size_t n_why) {
  char reason[MAX_REASON] = "";
  char *line = NULL;
  size_t room = 0;
  size_t number = 0;
  ssize_t n;
  int err = TNK_OK;

  while (err != TNK_ENOMEM && (n = getline(&line, &room, in)) >= 0) {
    number++;
    if (is_blank(line, (size_t)n))
      continue;
    /* Counted even if it is invalid. */
    lint->n_lines++;
    err = check(lint, line, (size_t)n, reason);
    if (err != TNK_EINVAL)
      continue;
    report(lint, number, reason);
  }
  free(line);
  if (err != TNK_ENOMEM && !ferror(in))
    return 0;
  snprintf(why, n_why, "%.300s: %s", lint->options.file,
           err == TNK_ENOMEM ? "out of memory" : strerror(errno));
  return -1;
}

int cli_lint_stream(const cli_lint_options_t *options, FILE *in, FILE *out,
                    char *why, size_t n_why) {
  lint_t lint = {.options = *options, .out = out};

  if (options->json)
    fprintf(out, "{\n  \"findings\": [");
  if (check_lines(&lint, in, why, n_why) != 0)
    return -1;
  if (options->json)
    fprintf(out, "%s],\n  \"examples\": %zu,\n  \"wrong\": %zu\n}\n",
            lint.n_bad > 0 ? "\n  " : "", lint.n_lines, lint.n_bad);
  else
    fprintf(out, "%zu example%s, %zu wrong\n", lint.n_lines,
            lint.n_lines == 1 ? "" : "s", lint.n_bad);
  return lint.n_bad > 0;
}

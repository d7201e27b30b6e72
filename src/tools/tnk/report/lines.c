/* SPDX-License-Identifier: MIT */
#include "tools/tnk/report/lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/format/json_read.h"
#include "tnk/error.h"

enum { CHUNK = 64 * 1024 };

typedef struct {
  report_lines_t *lines;
  report_line_cb on_line;
  void *user;
  char *text; /* the part of a line that has been read */
  size_t n;
  size_t room;
  int is_long; /* the rest of a line that is too long is skipped */
} reader_t;

static void count_bad(report_lines_t *lines) {
  if (lines->n_bad++ == 0)
    lines->first_bad = lines->n_lines;
}

static int is_blank(const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strchr(" \t\r", text[i]) == NULL || text[i] == '\0')
      return 0;
  return 1;
}

static int end_line(reader_t *reader) {
  json_t *object = NULL;
  int err = TNK_EPROTO;

  reader->lines->n_lines++;
  if (!reader->is_long && is_blank(reader->text, reader->n))
    err = TNK_OK;
  else if (!reader->is_long) {
    err = tnk__json_parse_object(&object, reader->text, reader->n);
    if (err == TNK_OK)
      err = reader->on_line(object, reader->user);
    json_decref(object);
  }
  reader->n = 0;
  reader->is_long = 0;
  if (err == TNK_EPROTO) {
    count_bad(reader->lines);
    err = TNK_OK;
  }
  return err;
}

/* Append a part of a line. */
static int append(reader_t *reader, const char *text, size_t n) {
  size_t room = reader->room;
  char *grown;

  if (n > REPORT_MAX_LINE - reader->n)
    reader->is_long = 1;
  if (reader->is_long)
    return TNK_OK;
  while (room < reader->n + n)
    room = room > 0 ? 2 * room : 1024;
  if (room > reader->room) {
    grown = realloc(reader->text, room);
    if (grown == NULL)
      return TNK_ENOMEM;
    reader->text = grown;
    reader->room = room;
  }
  if (n > 0)
    memcpy(reader->text + reader->n, text, n);
  reader->n += n;
  return TNK_OK;
}

static int take(reader_t *reader, const char *chunk, size_t n) {
  int err = TNK_OK;

  for (size_t at = 0; at < n && err == TNK_OK;) {
    const char *end = memchr(chunk + at, '\n', n - at);
    const size_t part = end != NULL ? (size_t)(end - chunk) - at : n - at;

    err = append(reader, chunk + at, part);
    at += part;
    if (err == TNK_OK && end != NULL) {
      err = end_line(reader);
      at++;
    }
  }
  return err;
}

int report_lines_read(report_lines_t *lines, const char *path,
                      report_line_cb on_line, void *user) {
  reader_t reader = {.lines = lines, .on_line = on_line, .user = user};
  FILE *file = fopen(path, "r");
  char *chunk = malloc(CHUNK);
  int err = chunk != NULL ? TNK_OK : TNK_ENOMEM;
  size_t n = 0;

  *lines = (report_lines_t){0};
  if (file == NULL) {
    free(chunk);
    return TNK_EFILE;
  }
  while (err == TNK_OK && (n = fread(chunk, 1, CHUNK, file)) > 0)
    err = take(&reader, chunk, n);
  if (err == TNK_OK && ferror(file))
    err = TNK_EFILE;
  lines->is_cut = reader.n > 0 || reader.is_long;
  free(reader.text);
  free(chunk);
  fclose(file);
  return err;
}

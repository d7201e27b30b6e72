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
  int is_long;           /* the rest of a line that is too long is skipped */
  report_place_t *place; /* receives `at` at the end of each line; or NULL */
  report_place_t at;
} reader_t;

/* FNV-1a. */
static void advance(report_place_t *place, const char *text, size_t n) {
  uint64_t digest =
      place->n_bytes > 0 ? place->digest : UINT64_C(0xcbf29ce484222325);

  for (size_t i = 0; i < n; i++)
    digest = (digest ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
  place->digest = digest;
  place->n_bytes += n;
}

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
    if (reader->place != NULL)
      advance(&reader->at, chunk + at, part + (end != NULL));
    at += part;
    if (err == TNK_OK && end != NULL) {
      if (reader->place != NULL)
        *reader->place = reader->at;
      err = end_line(reader);
      at++;
    }
  }
  return err;
}

/* Read a file from its current position. The file is closed. */
static int read_file(reader_t *reader, FILE *file) {
  char *chunk = malloc(CHUNK);
  int err = chunk != NULL ? TNK_OK : TNK_ENOMEM;
  size_t n = 0;

  while (err == TNK_OK && (n = fread(chunk, 1, CHUNK, file)) > 0)
    err = take(reader, chunk, n);
  if (err == TNK_OK && ferror(file))
    err = TNK_EFILE;
  reader->lines->is_cut = reader->n > 0 || reader->is_long;
  free(reader->text);
  free(chunk);
  fclose(file);
  return err;
}

int report_lines_read(report_lines_t *lines, const char *path,
                      report_line_cb on_line, void *user) {
  reader_t reader = {.lines = lines, .on_line = on_line, .user = user};
  FILE *file = fopen(path, "r");

  *lines = (report_lines_t){0};
  return file != NULL ? read_file(&reader, file) : TNK_EFILE;
}

int report_lines_check(const char *path, const report_place_t *place,
                       int *is_same) {
  report_place_t at = {0};
  FILE *file = fopen(path, "r");
  char chunk[4096];
  int is_ok;

  *is_same = 0;
  if (file == NULL)
    return TNK_EFILE;
  while (at.n_bytes < place->n_bytes) {
    const uint64_t left = place->n_bytes - at.n_bytes;
    const size_t n = fread(
        chunk, 1, left < sizeof(chunk) ? (size_t)left : sizeof(chunk), file);

    if (n == 0)
      break;
    advance(&at, chunk, n);
  }
  is_ok = !ferror(file);
  fclose(file);
  *is_same = at.n_bytes == place->n_bytes && at.digest == place->digest;
  return is_ok ? TNK_OK : TNK_EFILE;
}

int report_lines_continue(const char *path, report_place_t *place,
                          report_line_cb on_line, void *user) {
  report_lines_t lines = {0};
  reader_t reader = {.lines = &lines,
                     .on_line = on_line,
                     .user = user,
                     .place = place,
                     .at = *place};
  FILE *file = fopen(path, "r");

  if (file == NULL)
    return TNK_EFILE;
  if (fseeko(file, (off_t)place->n_bytes, SEEK_SET) != 0) {
    fclose(file);
    return TNK_EFILE;
  }
  return read_file(&reader, file);
}

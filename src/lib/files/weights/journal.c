#include "lib/files/weights/journal.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/limits.h"
#include "lib/base/number.h"
#include "tnk/error.h"

/* The first member of each line. */
static const char *const words[] = {
    [TNK__JOURNAL_BEGIN] = "tnk-download 1", [TNK__JOURNAL_EXPORT] = "export",
    [TNK__JOURNAL_NAMES] = "names",          [TNK__JOURNAL_FILE] = "file",
    [TNK__JOURNAL_READY] = "ready",
};

enum { N_WORDS = TNK__JOURNAL_READY + 1, MAX_MEMBERS = 4 };

/* ---- Reading ---- */

/* Split a line into members; returns their number. */
static size_t cut(char *line, const char *members[MAX_MEMBERS]) {
  size_t n = 0;

  for (; line != NULL && n < MAX_MEMBERS; n++) {
    char *tab = strchr(line, '\t');
    members[n] = line;
    if (tab != NULL)
      *tab++ = '\0';
    line = tab;
  }
  return n;
}

static tnk__journal_kind_t kind_of(const char *word) {
  for (size_t i = TNK__JOURNAL_BEGIN; i < N_WORDS; i++)
    if (strcmp(word, words[i]) == 0)
      return (tnk__journal_kind_t)i;
  return TNK__JOURNAL_OTHER;
}

static int read_file(const char *const *members, tnk__journal_file_t *out) {
  out->n_total = UINT64_MAX;
  out->validator = members[2][0] != '\0' ? members[2] : NULL;
  out->name = members[3];
  return members[1][0] == '\0' ||
         tnk__text_u64(members[1], UINT64_MAX - 1, &out->n_total) == TNK_OK;
}

static int read_ready(const char *const *members, tnk__journal_ready_t *out) {
  out->directory = members[1];
  return tnk__text_u64(members[2], SIZE_MAX, &out->n_files) == TNK_OK &&
         tnk__text_u64(members[3], UINT64_MAX, &out->n_bytes) == TNK_OK;
}

static tnk__journal_kind_t read_line(char *text, tnk__journal_line_t *out) {
  const char *members[MAX_MEMBERS] = {0};
  const size_t n = cut(text, members);
  const tnk__journal_kind_t kind = kind_of(members[0]);

  switch (kind) {
  case TNK__JOURNAL_BEGIN:
    out->run = members[1];
    out->source = members[2];
    return n == 3 ? kind : TNK__JOURNAL_OTHER;
  case TNK__JOURNAL_FILE:
    return n == 4 && read_file(members, &out->file) ? kind : TNK__JOURNAL_OTHER;
  case TNK__JOURNAL_READY:
    return n == 4 && read_ready(members, &out->ready) ? kind
                                                      : TNK__JOURNAL_OTHER;
  case TNK__JOURNAL_EXPORT:
    out->address = members[1];
    return n == 2 ? kind : TNK__JOURNAL_OTHER;
  case TNK__JOURNAL_NAMES:
    out->names = members[1];
    return n == 2 ? kind : TNK__JOURNAL_OTHER;
  default:
    return TNK__JOURNAL_OTHER;
  }
}

tnk__journal_kind_t tnk__journal_next(tnk__journal_t *journal,
                                      tnk__journal_line_t *out) {
  char *line = journal->at;
  char *end = memchr(line, '\n', (size_t)(journal->end - line));

  memset(out, 0, sizeof(*out));
  if (end == NULL)
    return TNK__JOURNAL_END;
  *end = '\0';
  journal->at = end + 1;
  out->kind = read_line(line, out);
  return out->kind;
}

/* ---- Writing ---- */

static int is_member(const char *text) {
  return text[strcspn(text, "\t\r\n")] == '\0';
}

static void put(tnk__buf_t *out, const char *text) {
  if (!is_member(text) && out->err == TNK_OK)
    out->err = TNK_EINVAL;
  tnk__buf_text(out, text);
}

void tnk__journal_begin(tnk__buf_t *out, const char *run, const char *source) {
  tnk__buf_printf(out, "%s\t", words[TNK__JOURNAL_BEGIN]);
  put(out, run);
  tnk__buf_byte(out, '\t');
  put(out, source);
  tnk__buf_byte(out, '\n');
}

static void put_line(tnk__buf_t *out, tnk__journal_kind_t kind,
                     const char *text) {
  tnk__buf_printf(out, "%s\t", words[kind]);
  put(out, text);
  tnk__buf_byte(out, '\n');
}

void tnk__journal_put_export(tnk__buf_t *out, const char *address) {
  put_line(out, TNK__JOURNAL_EXPORT, address);
}

void tnk__journal_put_names(tnk__buf_t *out, const char *names) {
  put_line(out, TNK__JOURNAL_NAMES, names);
}

void tnk__journal_put_ready(tnk__buf_t *out,
                            const tnk__journal_ready_t *ready) {
  tnk__buf_printf(out, "%s\t", words[TNK__JOURNAL_READY]);
  put(out, ready->directory);
  tnk__buf_printf(out, "\t%" PRIu64 "\t%" PRIu64 "\n", ready->n_files,
                  ready->n_bytes);
}

void tnk__journal_put_file(tnk__buf_t *out, const tnk__journal_file_t *file) {
  tnk__buf_printf(out, "%s\t", words[TNK__JOURNAL_FILE]);
  if (file->n_total != UINT64_MAX)
    tnk__buf_printf(out, "%" PRIu64, file->n_total);
  tnk__buf_byte(out, '\t');
  if (file->validator != NULL && is_member(file->validator))
    tnk__buf_text(out, file->validator);
  tnk__buf_byte(out, '\t');
  put(out, file->name);
  tnk__buf_byte(out, '\n');
}

#ifndef TNK_LIB_FILES_WEIGHTS_JOURNAL_H
#define TNK_LIB_FILES_WEIGHTS_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/*
 * The journal of an incomplete download. Each line is added by one write; a
 * last line without a newline is ignored. Members are separated by tabs.
 *
 *   tnk-download 1 <run of the system> <source>
 *   export <path>           the export, if the source itself has no files
 *   names <sum>             checksum of the names of all files
 *   file <bytes> <validator> <name>
 *                           precedes the first bytes of an answer; the last
 *                           line with a name counts
 *   ready <directory> <files> <bytes>
 *                           right before the directory gets its final name
 *
 * It never contains an address.
 */
#define TNK__JOURNAL_MAX (16 * TNK__MIB)

typedef struct {
  uint64_t n_total;      /* UINT64_MAX: unknown */
  const char *validator; /* or NULL */
  const char *name;
} tnk__journal_file_t;

/* All files are complete. */
typedef struct {
  const char *directory; /* identifies the directory */
  uint64_t n_files;
  uint64_t n_bytes;
} tnk__journal_ready_t;

/* Iterates over the lines. */
typedef struct {
  char *at; /* modified while it is parsed */
  char *end;
} tnk__journal_t;

typedef enum {
  TNK__JOURNAL_END = 0,
  TNK__JOURNAL_BEGIN,
  TNK__JOURNAL_EXPORT,
  TNK__JOURNAL_NAMES,
  TNK__JOURNAL_FILE,
  TNK__JOURNAL_READY,
  TNK__JOURNAL_OTHER /* of later versions, or not of tnk */
} tnk__journal_kind_t;

typedef struct {
  tnk__journal_kind_t kind;
  const char *run;     /* of the BEGIN line */
  const char *source;  /* of the BEGIN line */
  const char *address; /* of the EXPORT line */
  const char *names;   /* checksum of the names */
  tnk__journal_ready_t ready;
  tnk__journal_file_t file;
} tnk__journal_line_t;

/* Parse the next line. */
tnk__journal_kind_t tnk__journal_next(tnk__journal_t *journal,
                                      tnk__journal_line_t *out);

/* Write lines. Strings with a tab or a newline fail with TNK_EINVAL. A
 * validator with one is omitted instead. */
void tnk__journal_begin(tnk__buf_t *out, const char *run, const char *source);
void tnk__journal_put_export(tnk__buf_t *out, const char *address);
void tnk__journal_put_names(tnk__buf_t *out, const char *names);
void tnk__journal_put_ready(tnk__buf_t *out, const tnk__journal_ready_t *ready);
void tnk__journal_put_file(tnk__buf_t *out, const tnk__journal_file_t *file);

#endif

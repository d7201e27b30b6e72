#ifndef TNK_LIB_FILES_WEIGHTS_JOURNAL_H
#define TNK_LIB_FILES_WEIGHTS_JOURNAL_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/*
 * What is known of a download that has begun: lines, each added by one write,
 * of which the last without an end counts for nothing. Members are separated by
 * tabs.
 *
 *   tnk-download 1, the run of the system, what is downloaded
 *   export <path>                  what has the files, where the source has
 * none names <sum>                    of the names of all files file <bytes>
 * <validator> <name>  before the first bytes of an answer; of several of one
 * name the last counts ready <directory> <files> <bytes>  right before that
 * gets its name
 *
 * No address is ever in it.
 */
#define TNK__JOURNAL_MAX (16 * TNK__MIB)

typedef struct {
  uint64_t n_total;      /* UINT64_MAX: not known */
  const char *validator; /* or NULL */
  const char *name;
} tnk__journal_file_t;

/* All is complete. */
typedef struct {
  const char *directory; /* what says which it is */
  uint64_t n_files;
  uint64_t n_bytes;
} tnk__journal_ready_t;

/* Lines are taken out one after the other. */
typedef struct {
  char *at; /* changed while it is read */
  char *end;
} tnk__journal_t;

typedef enum {
  TNK__JOURNAL_END = 0,
  TNK__JOURNAL_BEGIN,
  TNK__JOURNAL_EXPORT,
  TNK__JOURNAL_NAMES,
  TNK__JOURNAL_FILE,
  TNK__JOURNAL_READY,
  TNK__JOURNAL_OTHER /* of later versions, or none of ours */
} tnk__journal_kind_t;

typedef struct {
  tnk__journal_kind_t kind;
  const char *run;     /* of a first line */
  const char *source;  /* of a first line */
  const char *address; /* of an export */
  const char *names;   /* their sum */
  tnk__journal_ready_t ready;
  tnk__journal_file_t file;
} tnk__journal_line_t;

/* Take the next line. */
tnk__journal_kind_t tnk__journal_next(tnk__journal_t *journal,
                                      tnk__journal_line_t *out);

/* Write lines. Texts that have a tab or a line's end in them fail with
 * TNK_EINVAL, but for a validator, which is left out then. */
void tnk__journal_begin(tnk__buf_t *out, const char *run, const char *source);
void tnk__journal_put_export(tnk__buf_t *out, const char *address);
void tnk__journal_put_names(tnk__buf_t *out, const char *names);
void tnk__journal_put_ready(tnk__buf_t *out, const tnk__journal_ready_t *ready);
void tnk__journal_put_file(tnk__buf_t *out, const tnk__journal_file_t *file);

#endif

/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_WEIGHTS_PLACE_H
#define TNK_LIB_FILES_WEIGHTS_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/buf.h"

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

void tnk__journal_put_export(tnk__buf_t *out, const char *address);
void tnk__journal_put_names(tnk__buf_t *out, const char *names);
void tnk__journal_put_file(tnk__buf_t *out, const tnk__journal_file_t *file);

/*
 * The place of a download on the disk:
 *
 *   <target>                        unchanged before the end
 *   <target>.incomplete/journal     the progress; its lock is held
 *                      /files/      becomes the target
 *                      /open/       the files after decryption, if requested
 *                      /old/        the old target, only for a moment, if two
 *                                   names cannot be exchanged
 *
 * Reference-counted on the loop. Each file that is being written holds a
 * reference, so the lock is released after the last write. Functions marked
 * "blocks" run on the pool, for one caller at a time, and return libuv's error
 * codes.
 */
typedef struct {
  const tnk_allocator_t *alloc;
  size_t refs;
  int lock; /* descriptor of the journal; -1: none */
  char *target;
  char *partial; /* <target>.incomplete */
  char *journal;
  char *files;
  char *old;
  char *open; /* <target>.incomplete/open */
  int is_opened;
  int is_kept;   /* a later download can resume */
  size_t n_kept; /* length of the part of `partial` that existed before */
} tnk__place_t;

/* The state of the place when it was opened. */
typedef struct {
  int is_done;                /* the journal says that the target is complete */
  tnk__journal_ready_t ready; /* with is_done: the result */
  int is_used;                /* `text` belongs to this download */
  char *text;    /* the journal; the caller frees it, like the next one */
  char *address; /* address of the export; NULL: none */
  size_t n_text;
  const char *why; /* after a failure: the path in question, or NULL */
} tnk__place_found_t;

/* Create a place with one reference; NULL without memory. `target` has no
 * trailing slash. */
tnk__place_t *tnk__place_new(const tnk_allocator_t *alloc, const char *target);
void tnk__place_ref(tnk__place_t *place);
/* Release a reference; the last one releases the lock. If nothing was noted, it
 * also removes the folders that were created for the place. `place` may be
 * NULL. */
void tnk__place_unref(void *place);

/*
 * Open the place: blocks. The target must be missing or empty or, with `force`,
 * a directory. The remains of an earlier download of `source` are kept; other
 * remains of tnk are removed. Returns 0, UV_EEXIST or UV_ENOTDIR with `why`
 * about the target, UV_EBUSY if another download holds the lock, UV_ENOMEM or
 * the system's error.
 */
int tnk__place_open(tnk__place_t *place, const char *source, int force,
                    tnk__place_found_t *found);
/* Remove the received data and start over: blocks. */
int tnk__place_clear(tnk__place_t *place, const char *source);
/* Append lines to the journal: blocks. */
int tnk__place_note(tnk__place_t *place, const tnk__buf_t *lines);
/* Length of the file with that name; 0 if it does not exist. Blocks. */
uint64_t tnk__place_size(const tnk__place_t *place, const char *name);
/* Path of the file with that name, in the arena; NULL without memory. */
char *tnk__place_path(const tnk__place_t *place, tnk__arena_t *arena,
                      const char *name);
/* Start with an empty folder for decrypted files. From now on these files
 * become the target. Blocks. */
int tnk__place_begin_opening(tnk__place_t *place);
/* Path of a decrypted file. */
char *tnk__place_open_path(const tnk__place_t *place, tnk__arena_t *arena,
                           const char *name);
/*
 * Give the directory its final name. All files are complete and synchronized;
 * `ready` has their number and size. Blocks. Returns 0, or an error as
 * tnk__place_open() does; then the target is unchanged. *left is set if parts
 * of the old directory could not be removed.
 */
int tnk__place_commit(tnk__place_t *place, int force,
                      const tnk__journal_ready_t *ready, int *left);

#endif

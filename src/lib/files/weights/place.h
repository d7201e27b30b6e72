#ifndef TNK_LIB_FILES_WEIGHTS_PLACE_H
#define TNK_LIB_FILES_WEIGHTS_PLACE_H

#include "lib/base/arena.h"
#include "lib/files/weights/journal.h"

/*
 * Where a download goes, on the disk:
 *
 *   <target>                        not touched before the end
 *   <target>.incomplete/journal     what is known; its lock is held
 *                      /files/      what becomes the target
 *                      /open/       the same files, decrypted, if that is
 * wanted /old/        for a moment, where two names cannot be exchanged: what
 * was the target
 *
 * Counted, on the loop: each file that is being written holds it, so that the
 * lock is given back when nobody writes any more. What says "blocks" is for the
 * pool, and for one caller at a time; failures are libuv's codes there.
 */
typedef struct {
  const tnk_allocator_t *alloc;
  size_t refs;
  int lock; /* a descriptor of the journal; -1: none */
  char *target;
  char *partial; /* <target>.incomplete */
  char *journal;
  char *files;
  char *old;
  char *open; /* <target>.incomplete/open */
  int is_opened;
  int is_kept;   /* a later download can resume from what is there */
  size_t n_kept; /* length of the part of `partial` that was there before */
} tnk__place_t;

/* What was found. */
typedef struct {
  int is_done;                /* the target has all of it: a journal says so */
  tnk__journal_ready_t ready; /* then: how much */
  int is_used;                /* `text` is about this download */
  char *text;    /* of the journal; freed by whoever asked, as the next */
  char *address; /* of an export; NULL: there is none */
  size_t n_text;
  const char *why; /* with a failure: what it is about, or NULL */
} tnk__place_found_t;

/* Make one, with one reference; NULL without memory. `target` has no slash at
 * its end. */
tnk__place_t *tnk__place_new(const tnk_allocator_t *alloc, const char *target);
void tnk__place_ref(tnk__place_t *place);
/* Give a reference back; the last one ends the lock. If the download has noted
 * nothing, it also removes the folders that opening the place has made. `place`
 * may be NULL. */
void tnk__place_unref(void *place);

/*
 * Open it: blocks. The target has to be missing or empty, or with `force` a
 * directory. What an earlier download of `source` has left is kept, anything
 * else of ours is removed. 0; or UV_EEXIST, UV_ENOTDIR, with `why` about the
 * target; UV_EBUSY where another download holds the lock; UV_ENOMEM or what the
 * system says.
 */
int tnk__place_open(tnk__place_t *place, const char *source, int force,
                    tnk__place_found_t *found);
/* Remove what has come and begin anew: blocks. */
int tnk__place_clear(tnk__place_t *place, const char *source);
/* Add lines to the journal: blocks. */
int tnk__place_note(tnk__place_t *place, const tnk__buf_t *lines);
/* How long the file of that name is; 0: there is none. Blocks. */
uint64_t tnk__place_size(const tnk__place_t *place, const char *name);
/* The path of the file of that name, in the arena; NULL without memory. */
char *tnk__place_path(const tnk__place_t *place, tnk__arena_t *arena,
                      const char *name);
/* Begin with files that are opened: from here on these become the target, and
 * none is there yet. Blocks. */
int tnk__place_begin_opening(tnk__place_t *place);
/* The path of such a file. */
char *tnk__place_open_path(const tnk__place_t *place, tnk__arena_t *arena,
                           const char *name);
/*
 * All files are complete and on the disk, so many as `ready` says: give their
 * directory its name. Blocks. 0, or a failure as of tnk__place_open(), and then
 * the target is what it was. *left is set where something of the old one could
 * not be removed.
 */
int tnk__place_commit(tnk__place_t *place, int force,
                      const tnk__journal_ready_t *ready, int *left);

#endif

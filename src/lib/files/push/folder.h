#ifndef TNK_LIB_FILES_PUSH_FOLDER_H
#define TNK_LIB_FILES_PUSH_FOLDER_H

#include <stdatomic.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/files/fetch/sha256.h"
#include "tnk/push.h"

#define TNK__PUSH_SAMPLE 512 /* bytes by which a hub tells text from data */
#define TNK__PUSH_MAX_FILES 10000
#define TNK__PUSH_MAX_REGULAR ((uint64_t)64 * 1024 * 1024) /* in a commit */
#define TNK__PUSH_WHY 320

/* How a file comes into a repository. */
typedef enum {
  TNK__PUSH_REGULAR = 0, /* in the commit itself */
  TNK__PUSH_LARGE,       /* to the store, and its sum in the commit */
  TNK__PUSH_LEFT_OUT     /* the hub does not want it */
} tnk__push_mode_t;

typedef struct {
  const char *name; /* below the folder, and in the repository */
  uint64_t n_bytes;
  uint8_t sample[TNK__PUSH_SAMPLE];
  size_t n_sample;
  tnk__push_mode_t mode;
  const char *content;              /* all of it, or NULL: it is on the disk */
  char sum[TNK__SHA256_DIGITS + 1]; /* of a large one */
} tnk__push_file_t;

/*
 * The files that are pushed. It is filled by the thread pool, in two goes: what
 * there is, then what is in it. Options are borrowed.
 */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__arena_t arena;
  const char *path;
  const tnk_push_options_t *options;
  tnk__push_file_t *files;
  size_t n_files;
  size_t max_files;       /* that there is memory for */
  atomic_int is_unwanted; /* nobody waits any more */
  int err;
  int cause;
  char why[TNK__PUSH_WHY]; /* a sentence, or "" */
} tnk__folder_t;

void tnk__folder_init(tnk__folder_t *folder, const tnk_allocator_t *alloc,
                      const char *path, const tnk_push_options_t *options);
void tnk__folder_deinit(tnk__folder_t *folder);
/* Find the files, their sizes and beginnings, and put the model's name into the
 * adapter's configuration where it is missing. The outcome is in `err`. */
void tnk__folder_scan(tnk__folder_t *folder);
/* Make a card where there is none, and choose which files go. It does not touch
 * the disk, so the loop does it. */
void tnk__folder_choose(tnk__folder_t *folder, const char *repo);
/* Make an error of what went wrong. */
tnk__error_t *tnk__folder_error(const tnk__folder_t *folder);
/* Find the large file with that sum; NULL: there is none. */
const tnk__push_file_t *tnk__folder_find_sum(const tnk__folder_t *folder,
                                             const char *sum);
/* Read what goes into the commit, and the sums of what does not. */
void tnk__folder_read(tnk__folder_t *folder);

#endif

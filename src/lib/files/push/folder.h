/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_PUSH_FOLDER_H
#define TNK_LIB_FILES_PUSH_FOLDER_H

#include <stdatomic.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/files/fetch/sha256.h"
#include "tnk/push.h"

#define TNK__PUSH_SAMPLE 512 /* bytes that show a hub a text file */
#define TNK__PUSH_MAX_FILES 10000
#define TNK__PUSH_MAX_REGULAR ((uint64_t)64 * 1024 * 1024) /* in a commit */
#define TNK__PUSH_WHY 320

/* The way in which a file is transferred to a repository. */
typedef enum {
  TNK__PUSH_REGULAR = 0, /* in the commit itself */
  TNK__PUSH_LARGE,       /* in the store; the commit has its checksum */
  TNK__PUSH_LEFT_OUT     /* the hub ignores it */
} tnk__push_mode_t;

typedef struct {
  const char *name; /* relative path, in the folder and in the repository */
  uint64_t n_bytes;
  uint8_t sample[TNK__PUSH_SAMPLE];
  size_t n_sample;
  tnk__push_mode_t mode;
  const char *content;              /* the whole file; NULL: on the disk */
  char sum[TNK__SHA256_DIGITS + 1]; /* of a large file */
} tnk__push_file_t;

/*
 * The files to push. The thread pool fills it in two steps: the list of files,
 * then their contents. Options are borrowed.
 */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__arena_t arena;
  const char *path;
  const tnk_push_options_t *options;
  tnk__push_file_t *files;
  size_t n_files;
  size_t max_files;       /* limit from the allocated memory */
  atomic_int is_unwanted; /* the push was canceled */
  int err;
  int cause;
  char why[TNK__PUSH_WHY]; /* error message, or "" */
} tnk__folder_t;

void tnk__folder_init(tnk__folder_t *folder, const tnk_allocator_t *alloc,
                      const char *path, const tnk_push_options_t *options);
void tnk__folder_deinit(tnk__folder_t *folder);
/* List the files with their sizes and beginnings. Add the name of the base
 * model to the adapter's configuration if it is missing. The result is in
 * `err`. */
void tnk__folder_scan(tnk__folder_t *folder);
/* Create a model card if there is none, and select the files. It does not use
 * the disk, so it runs on the loop. */
void tnk__folder_choose(tnk__folder_t *folder, const char *repo);
/* Make an error from the result. */
tnk__error_t *tnk__folder_error(const tnk__folder_t *folder);
/* Find the large file with that checksum, or NULL. */
const tnk__push_file_t *tnk__folder_find_sum(const tnk__folder_t *folder,
                                             const char *sum);
/* Read the files of the commit, and compute the checksums of the others. */
void tnk__folder_read(tnk__folder_t *folder);

#endif

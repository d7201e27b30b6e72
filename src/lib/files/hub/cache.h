/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_FILES_HUB_CACHE_H
#define TNK_LIB_FILES_HUB_CACHE_H

#include <stddef.h>

/*
 * Reads and writes the cache of Hugging Face's Python library, so that both use
 * the files of the other:
 *
 *   <root>/models--<org>--<name>/blobs/<etag>
 *                               /snapshots/<commit>/<file>, a link to the blob
 *                               /refs/<revision>, which holds the commit
 *                               /.no_exist/<commit>/<file>
 *
 * The checks of names may run on any thread. All other functions block, so they
 * run on the pool. They return libuv's error codes.
 */
#define TNK__CACHE_PATH 4096
#define TNK__CACHE_COMMIT 40
#define TNK__CACHE_ETAG 200

/* Identifies one file; all four strings have passed tnk__cache_check(). */
typedef struct {
  const char *root;
  const char *model;
  const char *revision;
  const char *file;
} tnk__cache_key_t;

typedef enum {
  TNK__CACHE_UNKNOWN = 0,
  TNK__CACHE_HAS = 1,
  TNK__CACHE_ABSENT = 2 /* known not to exist in the model */
} tnk__cache_has_t;

/* Returns the error in the names, or NULL. A name must not lead out of its
 * folder. */
const char *tnk__cache_check(const tnk__cache_key_t *key);
/* Returns whether a string is a commit id; the files of a commit never change.
 */
int tnk__cache_is_commit(const char *text);
/* Parse the part of an ETag that names a blob. Returns 0 if it cannot name
 * one. */
int tnk__cache_read_etag(char out[TNK__CACHE_ETAG + 1], const char *header);

/* Look up the file. `commit` receives the commit of the revision, or "". */
tnk__cache_has_t tnk__cache_find(const tnk__cache_key_t *key,
                                 char commit[TNK__CACHE_COMMIT + 1],
                                 char path[TNK__CACHE_PATH]);
/* Get the path of a blob. Returns 1 if it exists. */
int tnk__cache_find_blob(const tnk__cache_key_t *key, const char *etag,
                         char path[TNK__CACHE_PATH]);
/* Record the current commit of a revision. `tag` makes the names of temporary
 * files unique. */
int tnk__cache_put_ref(const tnk__cache_key_t *key, const char *commit,
                       const char *tag);
/* Record that a file of a commit has this blob. */
int tnk__cache_put_link(const tnk__cache_key_t *key, const char *commit,
                        const char *etag, const char *tag);
/* Record that the commit has no such file. */
int tnk__cache_put_absent(const tnk__cache_key_t *key, const char *commit,
                          const char *tag);

#endif

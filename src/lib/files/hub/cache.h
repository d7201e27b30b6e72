#ifndef TNK_LIB_FILES_HUB_CACHE_H
#define TNK_LIB_FILES_HUB_CACHE_H

#include <stddef.h>

/*
 * The cache of Hugging Face's library on the disk, which we read and write so
 * that each finds what the other has fetched:
 *
 *   <root>/models--<org>--<name>/blobs/<etag>
 *                               /snapshots/<commit>/<file>, a link to the blob
 *                               /refs/<revision>, which holds the commit
 *                               /.no_exist/<commit>/<file>
 *
 * The checks of names are for any thread; all else blocks and is for the pool.
 * Failures are libuv's codes.
 */
#define TNK__CACHE_PATH 4096
#define TNK__CACHE_COMMIT 40
#define TNK__CACHE_ETAG 200

/* One file; all four texts have passed tnk__cache_check(). */
typedef struct {
  const char *root;
  const char *model;
  const char *revision;
  const char *file;
} tnk__cache_key_t;

typedef enum {
  TNK__CACHE_UNKNOWN = 0,
  TNK__CACHE_HAS = 1,
  TNK__CACHE_ABSENT = 2 /* the model has no such file, as was found before */
} tnk__cache_has_t;

/* What is wrong with the names, or NULL: none of them may lead out of its
 * folder. */
const char *tnk__cache_check(const tnk__cache_key_t *key);
/* Whether a text is a commit, of which the contents never change. */
int tnk__cache_is_commit(const char *text);
/* Read the part of an ETag that names a blob. 0: it cannot be one. */
int tnk__cache_read_etag(char out[TNK__CACHE_ETAG + 1], const char *header);

/* Look for the file: `commit` receives what the revision stands for, or "". */
tnk__cache_has_t tnk__cache_find(const tnk__cache_key_t *key,
                                 char commit[TNK__CACHE_COMMIT + 1],
                                 char path[TNK__CACHE_PATH]);
/* Find where a blob belongs. 1: it is there. */
int tnk__cache_find_blob(const tnk__cache_key_t *key, const char *etag,
                         char path[TNK__CACHE_PATH]);
/* Note that the revision stands for this commit now. `tag` makes names of
 * temporary files unlike all others. */
int tnk__cache_put_ref(const tnk__cache_key_t *key, const char *commit,
                       const char *tag);
/* Note that the file of that commit is that blob. */
int tnk__cache_put_link(const tnk__cache_key_t *key, const char *commit,
                        const char *etag, const char *tag);
/* Note that the commit has no such file. */
int tnk__cache_put_absent(const tnk__cache_key_t *key, const char *commit,
                          const char *tag);

#endif

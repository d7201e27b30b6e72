/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_STORE_PAGE_H
#define TNK_LIB_STORE_PAGE_H

#include "lib/base/arena.h"
#include "lib/store/ask.h"
#include "tnk/rest.h"

/*
 * The ids of the latest records of a list: at least TNK__SEEN_MIN, at most
 * twice as many. Two sets of fingerprints. When one is full, the other is
 * emptied.
 */
enum { TNK__SEEN_MIN = 1024, TNK__SEEN_SLOTS = 2048 };

typedef struct {
  uint64_t slots[2][TNK__SEEN_SLOTS]; /* 0: free */
  size_t n;                           /* in the first, newer set */
} tnk__seen_t;

/* Add an id. Returns 0 if it was present. Zeroed memory is an empty set. */
int tnk__seen_add(tnk__seen_t *seen, const char *id);

/* The kind of records in a page. */
typedef enum {
  TNK__PAGE_RUNS,
  TNK__PAGE_CHECKPOINTS,
  TNK__PAGE_WEIGHTS_INFO,
  TNK__PAGE_EXTERNAL_FILES,
  TNK__PAGE_SESSIONS,
  TNK__PAGE_SAMPLERS,
  TNK__PAGE_IDENTITIES,
  TNK__PAGE_USAGES,
  TNK__PAGE_STORAGES,
  TNK__PAGE_AUDIT_ENTRIES,
  TNK__PAGE_KEYS,
  TNK__PAGE_NONE /* the answer has no page */
} tnk__page_kind_t;

/* Records; their strings point into the answer. */
struct tnk_page {
  tnk__arena_t arena;
  uint8_t *body;
  tnk__page_kind_t kind;
  const void *items;
  size_t n;          /* without duplicates */
  size_t n_received; /* with duplicates */
  int64_t total;     /* length of the whole list; -1: unknown */
  int is_last;
  int64_t cost_through_us; /* end of the costs in a list of uses; 0: unknown */
  double storage_rate;     /* price of storage; NaN: unknown */
  tnk__ask_t ask;          /* the request, and its position in the list */
  tnk__seen_t *seen;       /* ids of a list with more pages, else NULL */
};

/*
 * Parse an answer. The page takes ownership of `body`, which was allocated with
 * `alloc`; on failure `body` is freed. `seen` comes from the previous page, or
 * is NULL; it is copied.
 *
 * Returns TNK_OK, TNK_ENOMEM or TNK_EPROTO. *what receives the name of the
 * wrong or missing member, or NULL.
 */
int tnk__page_read(tnk_page_t **out, const tnk_allocator_t *alloc,
                   const tnk__ask_t *ask, const tnk__seen_t *seen,
                   uint8_t *body, size_t n, const char **what);
/* Size of one record in bytes. */
size_t tnk__page_item_size(tnk__page_kind_t kind);
/* Make the page of the caller's identity from a JWT. `is_key`: the token is an
 * API key, which may or may not be a JWT. Returns TNK_OK, TNK_ENOMEM, or
 * TNK_EPROTO if the token lacks the identity. */
int tnk__page_of_identity(tnk_page_t **out, const tnk_allocator_t *alloc,
                          const char *token, int is_key);
/* Make the page of an archive at `url`, valid until `expires_us`. It has one
 * external file with the name TNK__ARCHIVE_FILE. Returns TNK_OK or
 * TNK_ENOMEM. */
#define TNK__ARCHIVE_FILE "archive.tar"
int tnk__page_of_archive(tnk_page_t **out, const tnk_allocator_t *alloc,
                         const char *url, int64_t expires_us);
void tnk__page_free(const tnk_allocator_t *alloc, void *page);

/* Answers without a page. The body is changed; strings point into it. */
int tnk__copied_read(const char **path, tnk__arena_t *arena, uint8_t *body,
                     size_t n, const char **what);

typedef struct {
  const char *status; /* "pending", "ready", "failed" */
  const char *url;    /* or NULL */
  const char *error;  /* or NULL */
} tnk__trace_t;

/* Address of an archive. */
typedef struct {
  const char *url;
  int64_t expires_us;
} tnk__archive_link_t;

int tnk__archive_link_read(tnk__archive_link_t *out, tnk__arena_t *arena,
                           uint8_t *body, size_t n, const char **what);
int tnk__trace_read(tnk__trace_t *out, tnk__arena_t *arena, uint8_t *body,
                    size_t n, const char **what);

#endif

#ifndef TNK_LIB_STORE_PAGE_H
#define TNK_LIB_STORE_PAGE_H

#include "lib/base/arena.h"
#include "lib/store/ask.h"
#include "lib/store/seen.h"
#include "tnk/rest.h"

/* Which records a page has. */
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
  TNK__PAGE_NONE /* an answer that is no page */
} tnk__page_kind_t;

/* Records, whose texts lie in the answer that they were read from. */
struct tnk_page {
  tnk__arena_t arena;
  uint8_t *body;
  tnk__page_kind_t kind;
  const void *items;
  size_t n;          /* without those that came twice */
  size_t n_received; /* all of them */
  int64_t total;     /* of the whole list; -1: unknown */
  int is_last;
  int64_t cost_through_us; /* of uses; 0: unknown */
  double storage_rate;     /* of storage; NaN: unknown */
  tnk__ask_t ask;          /* what was asked for, and how far it got */
  tnk__seen_t *seen;       /* of a list that goes on, else NULL */
};

/*
 * Read an answer. `body` was allocated with `alloc` and is the page's from here
 * on, or freed. `seen` is of the page before, or NULL; it is copied.
 *
 * TNK_OK, TNK_ENOMEM, or TNK_EPROTO with the name of the member that is wrong
 * or missing in *what, or NULL there.
 */
int tnk__page_read(tnk_page_t **out, const tnk_allocator_t *alloc,
                   const tnk__ask_t *ask, const tnk__seen_t *seen,
                   uint8_t *body, size_t n, const char **what);
/* The bytes of one record. */
size_t tnk__page_item_size(tnk__page_kind_t kind);
/* Make the page of who asks, as a JWT tells it; `is_key`: it is a key, of which
 * only some are. TNK_OK, TNK_ENOMEM, or TNK_EPROTO when it does not tell. */
int tnk__page_of_identity(tnk_page_t **out, const tnk_allocator_t *alloc,
                          const char *token, int is_key);
/* Make the page of an archive that is at `url` until `expires_us`: one external
 * file, called TNK__ARCHIVE_FILE. TNK_OK or TNK_ENOMEM. */
#define TNK__ARCHIVE_FILE "archive.tar"
int tnk__page_of_archive(tnk_page_t **out, const tnk_allocator_t *alloc,
                         const char *url, int64_t expires_us);
void tnk__page_free(const tnk_allocator_t *alloc, void *page);

/* Answers that are no pages. Texts stay in the body, which is changed. */
int tnk__copied_read(const char **path, tnk__arena_t *arena, uint8_t *body,
                     size_t n, const char **what);

typedef struct {
  const char *status; /* "pending", "ready", "failed" */
  const char *url;    /* or NULL */
  const char *error;  /* or NULL */
} tnk__trace_t;

/* Where an archive is. */
typedef struct {
  const char *url;
  int64_t expires_us;
} tnk__archive_link_t;

int tnk__archive_link_read(tnk__archive_link_t *out, tnk__arena_t *arena,
                           uint8_t *body, size_t n, const char **what);
int tnk__trace_read(tnk__trace_t *out, tnk__arena_t *arena, uint8_t *body,
                    size_t n, const char **what);

#endif

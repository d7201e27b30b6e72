/* SPDX-License-Identifier: MIT */
#ifndef TNK_GATEWAY_STORE_WRITER_H
#define TNK_GATEWAY_STORE_WRITER_H

#include "gateway/base/map.h"
#include "gateway/store/about.h"
#include "lib/base/list.h"

/* The writers of a shared record, each with the count of its lines that were
 * read. A line that is in the store twice is read once. */
typedef struct {
  tnk__gw_map_t map; /* by number */
} tnk__gw_writers_t;

void tnk__gw_writers_init(tnk__gw_writers_t *writers,
                          const tnk_allocator_t *alloc);
void tnk__gw_writers_deinit(tnk__gw_writers_t *writers);
/* Take the n-th line of a writer. Scripts of the server are writer 0, and
 * append each line once. Returns 1 if the line is new, 0 if it was read before,
 * -1 without memory. */
int tnk__gw_writers_take(tnk__gw_writers_t *writers, uint64_t writer,
                         uint64_t n);

/* A command that the store has not confirmed: an own line, or a mark. */
typedef struct {
  tnk__list_t link;
  uint64_t n; /* its position among all of them, from 1 */
  size_t len;
  tnk__gw_is_t is;
  uint64_t number; /* as in about.h */
  size_t n_closed; /* connections that the peer has closed at this command */
  char session[TNK__GW_MAX_LINE_SESSION]; /* "": none */
  char data[];
} tnk__gw_unsafe_t;

/* These commands in their order. On each connection they are sent in this
 * order, from the first one on. */
typedef struct {
  const tnk_allocator_t *alloc;
  tnk__list_t list;
  tnk__list_t *unsent; /* the next one to send, or the list's head */
  size_t n_sent;       /* on this connection, without a reply */
  size_t n_bytes;
  uint64_t n_added;
  uint64_t n_safe;  /* the store has these */
  tnk__list_t kept; /* the latest of these, in their order */
  size_t n_kept;    /* bytes of them */
  size_t max_kept;
} tnk__gw_queue_t;

/* `max_kept`: bytes of confirmed commands that stay in memory. */
void tnk__gw_queue_init(tnk__gw_queue_t *queue, const tnk_allocator_t *alloc,
                        size_t max_kept);
void tnk__gw_queue_deinit(tnk__gw_queue_t *queue);
/* `data` is copied. `about` may be NULL. Returns TNK_OK or TNK_ENOMEM. */
int tnk__gw_queue_add(tnk__gw_queue_t *queue, const tnk__gw_about_t *about,
                      const char *data, size_t len);
/* Replace the first one, while none is sent. The same results. */
int tnk__gw_queue_replace_first(tnk__gw_queue_t *queue,
                                const tnk__gw_about_t *about, const char *data,
                                size_t len);
/* The first one that is not confirmed, or NULL. */
tnk__gw_unsafe_t *tnk__gw_queue_first(const tnk__gw_queue_t *queue);
/* The next one to send, or NULL if `window` of them have no reply. It counts as
 * sent. */
tnk__gw_unsafe_t *tnk__gw_queue_send(tnk__gw_queue_t *queue, size_t window);
/* The connection was lost. */
void tnk__gw_queue_rewind(tnk__gw_queue_t *queue);
/* The store has them up to this position. */
void tnk__gw_queue_confirm(tnk__gw_queue_t *queue, uint64_t n);
/* The store has only those up to `n`, although more of them were confirmed.
 * Queue the others again, while none is sent. *n_lost receives how many of them
 * are not in memory any more. Returns how many are queued again. */
uint64_t tnk__gw_queue_take_back(tnk__gw_queue_t *queue, uint64_t n,
                                 uint64_t *n_lost);

#endif

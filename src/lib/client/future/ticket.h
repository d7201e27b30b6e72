#ifndef TNK_LIB_CLIENT_FUTURE_TICKET_H
#define TNK_LIB_CLIENT_FUTURE_TICKET_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/list.h"
#include "tnk/common.h"

/* The state of a request's completion. */
typedef enum {
  TNK__TICKET_AWAITED = 0, /* a sample waits for it */
  TNK__TICKET_TAKEN,       /* received; its result is being fetched */
  TNK__TICKET_EARLY,       /* received, but no sample has asked for it yet */
  TNK__TICKET_ABANDONED,   /* no sample waits any more, but it will arrive */
  TNK__TICKET_REPORT,      /* received: to be acknowledged */
  TNK__TICKET_REPORTING    /* being acknowledged */
} tnk__ticket_state_t;

struct tnk__awaited;

typedef struct tnk__ticket {
  tnk__list_t link;         /* in the owner's list for its state */
  struct tnk__ticket *next; /* in its hash bucket */
  uint64_t hash;
  tnk__ticket_state_t state;
  struct tnk__awaited *awaited; /* while AWAITED or TAKEN */
  uint64_t result_bytes;
  char id[];
} tnk__ticket_t;

/* Tickets by request id. */
typedef struct {
  const tnk_allocator_t *alloc;
  uint64_t key[2]; /* key of the hash: the ids come from the server */
  tnk__ticket_t **buckets;
  size_t n_buckets; /* a power of two, or 0 */
  size_t n;
} tnk__tickets_t;

void tnk__tickets_init(tnk__tickets_t *tickets, const tnk_allocator_t *alloc,
                       uint64_t key0, uint64_t key1);
/* Free the table. Its tickets must be removed before. */
void tnk__tickets_deinit(tnk__tickets_t *tickets);
tnk__ticket_t *tnk__tickets_find(const tnk__tickets_t *tickets, const char *id);
/* Add a ticket, which is in no list. The id must be new. NULL without
 * memory. */
tnk__ticket_t *tnk__tickets_add(tnk__tickets_t *tickets, const char *id);
/* Remove a ticket from its list and free it. */
void tnk__tickets_remove(tnk__tickets_t *tickets, tnk__ticket_t *ticket);

#endif

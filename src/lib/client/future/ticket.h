#ifndef TNK_LIB_CLIENT_FUTURE_TICKET_H
#define TNK_LIB_CLIENT_FUTURE_TICKET_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/list.h"
#include "tnk/common.h"

/* What is known of a request's completion. */
typedef enum {
  TNK__TICKET_AWAITED = 0, /* somebody waits for it */
  TNK__TICKET_TAKEN,       /* it has come, and its result is being fetched */
  TNK__TICKET_EARLY,       /* it has come, and nobody has asked yet */
  TNK__TICKET_ABANDONED,   /* nobody waits any more, but it will come */
  TNK__TICKET_REPORT,      /* received: the server is to be told */
  TNK__TICKET_REPORTING    /* it is being told */
} tnk__ticket_state_t;

struct tnk__awaited;

typedef struct tnk__ticket {
  tnk__list_t link;         /* in the owner's list for its state */
  struct tnk__ticket *next; /* in its bucket */
  uint64_t hash;
  tnk__ticket_state_t state;
  struct tnk__awaited *awaited; /* while AWAITED or TAKEN */
  uint64_t result_bytes;
  char id[];
} tnk__ticket_t;

/* Tickets by request id. */
typedef struct {
  const tnk_allocator_t *alloc;
  uint64_t key[2]; /* of the hash: the ids come from the server */
  tnk__ticket_t **buckets;
  size_t n_buckets; /* a power of two, or 0 */
  size_t n;
} tnk__tickets_t;

void tnk__tickets_init(tnk__tickets_t *tickets, const tnk_allocator_t *alloc,
                       uint64_t key0, uint64_t key1);
/* Free the table; its tickets are gone already. */
void tnk__tickets_deinit(tnk__tickets_t *tickets);
tnk__ticket_t *tnk__tickets_find(const tnk__tickets_t *tickets, const char *id);
/* Add a ticket, which is in no list; NULL without memory. The id is not there
 * yet. */
tnk__ticket_t *tnk__tickets_add(tnk__tickets_t *tickets, const char *id);
/* Take it out of its list and free it. */
void tnk__tickets_remove(tnk__tickets_t *tickets, tnk__ticket_t *ticket);

#endif

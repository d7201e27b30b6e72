#include "lib/client/future/ticket.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/policy/siphash.h"

enum { MIN_BUCKETS = 64 };

void tnk__tickets_init(tnk__tickets_t *tickets, const tnk_allocator_t *alloc,
                       uint64_t key0, uint64_t key1) {
  memset(tickets, 0, sizeof(*tickets));
  tickets->alloc = alloc;
  tickets->key[0] = key0;
  tickets->key[1] = key1;
}

void tnk__tickets_deinit(tnk__tickets_t *tickets) {
  tnk__free(tickets->alloc, tickets->buckets);
  tickets->buckets = NULL;
  tickets->n_buckets = 0;
}

static tnk__ticket_t **bucket_of(const tnk__tickets_t *tickets, uint64_t hash) {
  return &tickets->buckets[hash & (tickets->n_buckets - 1)];
}

tnk__ticket_t *tnk__tickets_find(const tnk__tickets_t *tickets,
                                 const char *id) {
  uint64_t hash = tnk__siphash(tickets->key, id, strlen(id));
  tnk__ticket_t *ticket;

  if (tickets->n_buckets == 0)
    return NULL;
  for (ticket = *bucket_of(tickets, hash); ticket != NULL;
       ticket = ticket->next)
    if (ticket->hash == hash && strcmp(ticket->id, id) == 0)
      return ticket;
  return NULL;
}

/* Double the buckets. Without memory the chains get longer instead. */
static void grow(tnk__tickets_t *tickets) {
  tnk__ticket_t **old = tickets->buckets;
  size_t n_old = tickets->n_buckets;
  size_t n = n_old > 0 ? 2 * n_old : MIN_BUCKETS;
  tnk__ticket_t **buckets = tnk__calloc(tickets->alloc, n, sizeof(*buckets));
  size_t i;

  if (buckets == NULL)
    return;
  tickets->buckets = buckets;
  tickets->n_buckets = n;
  for (i = 0; i < n_old; i++) {
    while (old[i] != NULL) {
      tnk__ticket_t *ticket = old[i];
      tnk__ticket_t **bucket = bucket_of(tickets, ticket->hash);

      old[i] = ticket->next;
      ticket->next = *bucket;
      *bucket = ticket;
    }
  }
  tnk__free(tickets->alloc, old);
}

tnk__ticket_t *tnk__tickets_add(tnk__tickets_t *tickets, const char *id) {
  size_t n = strlen(id);
  tnk__ticket_t **bucket;
  tnk__ticket_t *ticket;

  if (tickets->n >= tickets->n_buckets)
    grow(tickets);
  if (tickets->n_buckets == 0)
    return NULL;
  ticket = tnk__malloc(tickets->alloc, sizeof(*ticket) + n + 1);
  if (ticket == NULL)
    return NULL;
  memset(ticket, 0, sizeof(*ticket));
  memcpy(ticket->id, id, n + 1);
  tnk__list_init(&ticket->link);
  ticket->hash = tnk__siphash(tickets->key, id, n);
  bucket = bucket_of(tickets, ticket->hash);
  ticket->next = *bucket;
  *bucket = ticket;
  tickets->n++;
  return ticket;
}

void tnk__tickets_remove(tnk__tickets_t *tickets, tnk__ticket_t *ticket) {
  tnk__ticket_t **at = bucket_of(tickets, ticket->hash);

  while (*at != ticket)
    at = &(*at)->next;
  *at = ticket->next;
  tnk__list_remove(&ticket->link);
  tnk__free(tickets->alloc, ticket);
  tickets->n--;
}

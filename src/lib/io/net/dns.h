/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_NET_DNS_H
#define TNK_LIB_IO_NET_DNS_H

#include <netinet/in.h>

#include "lib/base/list.h"
#include "lib/io/loop/context.h"

#define TNK__DNS_MAX_ADDRESSES 8
#define TNK__DNS_MAX_HOST 253 /* maximum length of a name (RFC 1035) */

typedef union {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} tnk__address_t;

/* A query, embedded in its owner. `done` is called once, never inside
 * tnk__dns_resolve(). It is not called after tnk__dns_cancel(). */
typedef struct tnk__dns_query {
  tnk__list_t link;
  tnk__deferred_t call;
  void (*done)(struct tnk__dns_query *self);
  int err; /* TNK_OK, TNK_EDNS or TNK_ENOMEM */
  int cause;
  size_t n_addresses;
  tnk__address_t addresses[TNK__DNS_MAX_ADDRESSES]; /* ports are zero */
} tnk__dns_query_t;

/* Results are kept for a short time. Queries for the same name that arrive
 * during a look-up share it. */
typedef struct {
  tnk__context_t *context;
  tnk__list_t entries; /* latest use first */
  size_t n_entries;
  size_t n_lookups; /* look-ups started so far */
} tnk__dns_t;

void tnk__dns_init(tnk__dns_t *dns, tnk__context_t *context);
/* Forget all results. No query may be waiting. A look-up under way ends by
 * itself. */
void tnk__dns_deinit(tnk__dns_t *dns);
void tnk__dns_resolve(tnk__dns_t *dns, tnk__dns_query_t *query,
                      const char *host, void (*done)(tnk__dns_query_t *self));
void tnk__dns_cancel(tnk__dns_query_t *query);
/* Try this address first from now on, because it connected. */
void tnk__dns_prefer(tnk__dns_t *dns, const char *host,
                     const tnk__address_t *address);
/* Look the name up again next time, because no address connected. */
void tnk__dns_forget(tnk__dns_t *dns, const char *host);

/* For tests: take this as a result that the system has just returned. */
int tnk__dns_learn(tnk__dns_t *dns, const char *host,
                   const tnk__address_t *addresses, size_t n);

/* Returns whether `host` is a textual IPv4 or IPv6 address. If so, `out` is
 * filled. */
int tnk__address_parse(tnk__address_t *out, const char *host);
/* The 4 or 16 bytes of an address. */
size_t tnk__address_bytes(const tnk__address_t *address, const uint8_t **bytes);

#endif

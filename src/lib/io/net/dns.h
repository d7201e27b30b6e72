#ifndef TNK_LIB_IO_NET_DNS_H
#define TNK_LIB_IO_NET_DNS_H

#include <netinet/in.h>

#include "lib/base/list.h"
#include "lib/io/loop/context.h"

#define TNK__DNS_MAX_ADDRESSES 8
#define TNK__DNS_MAX_HOST 253 /* bytes in a name, by RFC 1035 */

typedef union {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
} tnk__address_t;

/* A question, embedded in its owner. The answer comes once, never from inside
 * tnk__dns_resolve(); not at all after tnk__dns_cancel(). */
typedef struct tnk__dns_query {
  tnk__list_t link;
  tnk__deferred_t call;
  void (*done)(struct tnk__dns_query *self);
  int err; /* TNK_OK, TNK_EDNS or TNK_ENOMEM */
  int cause;
  size_t n_addresses;
  tnk__address_t addresses[TNK__DNS_MAX_ADDRESSES]; /* ports are zero */
} tnk__dns_query_t;

/* Answers are kept for a short while; questions for the same name that come
 * in the meantime share one look-up. */
typedef struct {
  tnk__context_t *context;
  tnk__list_t entries; /* latest use first */
  size_t n_entries;
  size_t n_lookups; /* questions put to the system */
} tnk__dns_t;

void tnk__dns_init(tnk__dns_t *dns, tnk__context_t *context);
/* Forget all answers. Nobody may be waiting. What is under way goes on by
 * itself. */
void tnk__dns_deinit(tnk__dns_t *dns);
void tnk__dns_resolve(tnk__dns_t *dns, tnk__dns_query_t *query,
                      const char *host, void (*done)(tnk__dns_query_t *self));
void tnk__dns_cancel(tnk__dns_query_t *query);
/* Try that address first from now on: it has answered. */
void tnk__dns_prefer(tnk__dns_t *dns, const char *host,
                     const tnk__address_t *address);
/* Ask again next time: no address has answered. */
void tnk__dns_forget(tnk__dns_t *dns, const char *host);

/* For tests: take this for an answer that the system has given now. */
int tnk__dns_learn(tnk__dns_t *dns, const char *host,
                   const tnk__address_t *addresses, size_t n);

/* Whether `host` is an IPv4 or IPv6 address in text; then `out` is filled. */
int tnk__address_parse(tnk__address_t *out, const char *host);
/* The 4 or 16 bytes of an address. */
size_t tnk__address_bytes(const tnk__address_t *address, const uint8_t **bytes);

#endif

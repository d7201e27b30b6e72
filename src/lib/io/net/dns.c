/* SPDX-License-Identifier: MIT */
#include "lib/io/net/dns.h"

#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

/*
 * An entry is pending while the system looks the name up on the thread pool,
 * then valid until `expires_ms`. A failed look-up removes its entry, so
 * failures are not remembered. A pending entry that was dropped (`dns` is NULL)
 * is in no list any more. It frees itself when the system returns the result.
 */
#define KEEP_MS 30000
#define MAX_ENTRIES 32

typedef struct {
  tnk__list_t link;
  tnk__context_t *context;
  tnk__dns_t *dns; /* NULL: not in a table any more */
  uv_getaddrinfo_t req;
  int pending;
  uint64_t expires_ms;
  tnk__list_t waiters; /* waiting queries, while pending */
  size_t n_addresses;
  tnk__address_t addresses[TNK__DNS_MAX_ADDRESSES];
  char host[TNK__DNS_MAX_HOST + 1];
} dns_entry_t;

void tnk__dns_init(tnk__dns_t *dns, tnk__context_t *context) {
  dns->context = context;
  tnk__list_init(&dns->entries);
  dns->n_entries = 0;
  dns->n_lookups = 0;
}

/* Remove it from the table. The memory stays while the system has the
 * request. */
static void entry_drop(dns_entry_t *entry) {
  tnk__list_remove(&entry->link);
  entry->dns->n_entries--;
  entry->dns = NULL;
  if (entry->pending)
    uv_cancel((uv_req_t *)&entry->req);
  else
    tnk__free(&entry->context->alloc, entry);
}

void tnk__dns_deinit(tnk__dns_t *dns) {
  tnk__list_t *node;

  while ((node = tnk__list_first(&dns->entries)) != NULL)
    entry_drop(tnk__container_of(node, dns_entry_t, link));
}

static dns_entry_t *entry_find(tnk__dns_t *dns, const char *host) {
  TNK__LIST_FOREACH (node, &dns->entries) {
    dns_entry_t *entry = tnk__container_of(node, dns_entry_t, link);
    if (strcasecmp(entry->host, host) == 0)
      return entry;
  }
  return NULL;
}

static void query_answer(tnk__deferred_t *call) {
  tnk__dns_query_t *query = tnk__container_of(call, tnk__dns_query_t, call);

  query->done(query);
}

static void query_fill(tnk__dns_query_t *query, const dns_entry_t *entry) {
  query->err = TNK_OK;
  query->cause = 0;
  query->n_addresses = entry->n_addresses;
  memcpy(query->addresses, entry->addresses, sizeof(entry->addresses));
}

static void entry_take(dns_entry_t *entry, const struct addrinfo *list) {
  for (; list != NULL; list = list->ai_next) {
    tnk__address_t *to = &entry->addresses[entry->n_addresses];
    if (entry->n_addresses == TNK__DNS_MAX_ADDRESSES)
      return;
    if (list->ai_family == AF_INET)
      memcpy(&to->v4, list->ai_addr, sizeof(to->v4));
    else if (list->ai_family == AF_INET6)
      memcpy(&to->v6, list->ai_addr, sizeof(to->v6));
    else
      continue;
    entry->n_addresses++;
  }
}

/* Store the result in all waiting queries and move them to `out`. */
static void fill_waiters(dns_entry_t *entry, int status, tnk__list_t *out) {
  TNK__LIST_FOREACH (node, &entry->waiters) {
    tnk__dns_query_t *query = tnk__container_of(node, tnk__dns_query_t, link);
    if (status == 0)
      query_fill(query, entry);
    query->err = status == 0 ? TNK_OK : TNK_EDNS;
    query->cause = status;
  }
  tnk__list_move(out, &entry->waiters);
}

/* The look-up is complete before any query is called. A callback may start
 * another query, which finds a valid entry or none, and may drop any entry. */
static void on_lookup(uv_getaddrinfo_t *req, int status,
                      struct addrinfo *list) {
  dns_entry_t *entry = req->data;
  tnk__context_t *context = entry->context;
  tnk__list_t waiters;
  tnk__list_t *node;

  if (status == 0)
    entry_take(entry, list);
  uv_freeaddrinfo(list);
  if (status == 0 && entry->n_addresses == 0)
    status = UV_EAI_NODATA;
  entry->expires_ms = tnk__context_now_ms(context) + KEEP_MS;
  entry->pending = 0;
  fill_waiters(entry, status, &waiters);
  if (entry->dns == NULL)
    tnk__free(&context->alloc, entry);
  else if (status != 0)
    entry_drop(entry);
  while ((node = tnk__list_pop(&waiters)) != NULL) {
    tnk__dns_query_t *query = tnk__container_of(node, tnk__dns_query_t, link);
    query->done(query);
  }
  tnk__context_release(context);
}

static int entry_start(dns_entry_t *entry) {
  struct addrinfo hints;
  int err;

  memset(&hints, 0, sizeof(hints));
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  entry->req.data = entry;
  err = uv_getaddrinfo(entry->context->uv, &entry->req, on_lookup, entry->host,
                       NULL, &hints);
  if (err != 0)
    return err;
  entry->pending = 1;
  entry->dns->n_lookups++;
  tnk__context_hold(entry->context);
  return 0;
}

/* Limit the table: drop the least recently used entry. */
static void make_room(tnk__dns_t *dns) {
  tnk__list_t *oldest = dns->entries.prev;

  if (dns->n_entries < MAX_ENTRIES)
    return;
  /* Queries wait for a pending entry, so it stays. The table may then exceed
   * its limit; the number of connections bounds it. */
  if (!tnk__container_of(oldest, dns_entry_t, link)->pending)
    entry_drop(tnk__container_of(oldest, dns_entry_t, link));
}

/* Returns NULL if out of memory. */
static dns_entry_t *entry_new(tnk__dns_t *dns, const char *host) {
  dns_entry_t *entry;

  make_room(dns);
  entry = tnk__calloc(&dns->context->alloc, 1, sizeof(*entry));
  if (entry == NULL)
    return NULL;
  entry->context = dns->context;
  entry->dns = dns;
  tnk__list_init(&entry->waiters);
  memcpy(entry->host, host, strlen(host) + 1);
  tnk__list_prepend(&dns->entries, &entry->link);
  dns->n_entries++;
  return entry;
}

/* Start a look-up for the query, or store the error in the query. */
static dns_entry_t *look_up(tnk__dns_t *dns, tnk__dns_query_t *query,
                            const char *host) {
  size_t len = strlen(host);
  dns_entry_t *entry;

  query->err = TNK_EDNS;
  query->cause = UV_EAI_NONAME;
  if (len == 0 || len > TNK__DNS_MAX_HOST)
    return NULL;
  entry = entry_new(dns, host);
  query->err = TNK_ENOMEM;
  query->cause = 0;
  if (entry == NULL)
    return NULL;
  query->cause = entry_start(entry);
  if (query->cause == 0)
    return entry;
  if (query->cause != UV_ENOMEM)
    query->err = TNK_EDNS;
  entry_drop(entry);
  return NULL;
}

int tnk__dns_learn(tnk__dns_t *dns, const char *host,
                   const tnk__address_t *addresses, size_t n) {
  dns_entry_t *entry;

  if (n > TNK__DNS_MAX_ADDRESSES || strlen(host) > TNK__DNS_MAX_HOST)
    return TNK_EINVAL;
  tnk__dns_forget(dns, host);
  entry = entry_new(dns, host);
  if (entry == NULL)
    return TNK_ENOMEM;
  memcpy(entry->addresses, addresses, n * sizeof(*addresses));
  entry->n_addresses = n;
  entry->expires_ms = tnk__context_now_ms(dns->context) + KEEP_MS;
  return TNK_OK;
}

void tnk__dns_resolve(tnk__dns_t *dns, tnk__dns_query_t *query,
                      const char *host, void (*done)(tnk__dns_query_t *self)) {
  dns_entry_t *entry;

  tnk__list_init(&query->link);
  tnk__deferred_init(&query->call, query_answer);
  query->done = done;
  query->err = TNK_OK;
  query->cause = 0;
  query->n_addresses = 1;
  if (tnk__address_parse(&query->addresses[0], host)) {
    tnk__defer(dns->context, &query->call);
    return;
  }
  query->n_addresses = 0;
  entry = entry_find(dns, host);
  if (entry != NULL && !entry->pending &&
      tnk__context_now_ms(dns->context) >= entry->expires_ms) {
    entry_drop(entry);
    entry = NULL;
  }
  if (entry == NULL)
    entry = look_up(dns, query, host);
  if (entry == NULL) {
    tnk__defer(dns->context, &query->call);
    return;
  }
  tnk__list_remove(&entry->link);
  tnk__list_prepend(&dns->entries, &entry->link);
  if (entry->pending) {
    tnk__list_append(&entry->waiters, &query->link);
    return;
  }
  query_fill(query, entry);
  tnk__defer(dns->context, &query->call);
}

void tnk__dns_cancel(tnk__dns_query_t *query) {
  tnk__list_remove(&query->link);
  tnk__defer_cancel(&query->call);
}

void tnk__dns_prefer(tnk__dns_t *dns, const char *host,
                     const tnk__address_t *address) {
  dns_entry_t *entry = entry_find(dns, host);
  const uint8_t *want;
  const uint8_t *have;
  size_t n = tnk__address_bytes(address, &want);
  size_t i;

  if (entry == NULL)
    return;
  for (i = 0; i < entry->n_addresses; i++) {
    tnk__address_t found = entry->addresses[i];
    if (tnk__address_bytes(&entry->addresses[i], &have) != n ||
        memcmp(have, want, n) != 0)
      continue;
    memmove(&entry->addresses[1], &entry->addresses[0],
            i * sizeof(entry->addresses[0]));
    entry->addresses[0] = found;
    return;
  }
}

void tnk__dns_forget(tnk__dns_t *dns, const char *host) {
  dns_entry_t *entry = entry_find(dns, host);

  if (entry != NULL && !entry->pending)
    entry_drop(entry);
}

int tnk__address_parse(tnk__address_t *out, const char *host) {
  memset(out, 0, sizeof(*out));
  return uv_ip4_addr(host, 0, &out->v4) == 0 ||
         uv_ip6_addr(host, 0, &out->v6) == 0;
}

size_t tnk__address_bytes(const tnk__address_t *address,
                          const uint8_t **bytes) {
  if (address->any.sa_family == AF_INET) {
    *bytes = (const uint8_t *)&address->v4.sin_addr;
    return 4;
  }
  *bytes = (const uint8_t *)&address->v6.sin6_addr;
  return 16;
}

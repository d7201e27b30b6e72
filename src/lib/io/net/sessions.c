/* SPDX-License-Identifier: MIT */
#include "lib/io/net/sessions.h"

#include <string.h>
#include <strings.h>

#include "lib/base/alloc.h"
#include "lib/io/net/dns.h"
#include "tnk/error.h"

/* A session takes as much memory as the server's certificate and its ticket. */
enum { MAX_SESSIONS = 8, KEEP_MS = 3600 * 1000 };

typedef struct {
  tnk__list_t link;
  mbedtls_ssl_session session;
  uint64_t expires_ms;
  uint16_t port;
  char host[TNK__DNS_MAX_HOST + 1];
} entry_t;

struct tnk__sessions {
  tnk__context_t *context;
  tnk__list_t entries; /* latest first */
  size_t n_entries;
};

int tnk__sessions_new(tnk__sessions_t **out, tnk__context_t *context) {
  tnk__sessions_t *sessions = tnk__malloc(&context->alloc, sizeof(*sessions));

  *out = sessions;
  if (sessions == NULL)
    return TNK_ENOMEM;
  sessions->context = context;
  sessions->n_entries = 0;
  tnk__list_init(&sessions->entries);
  return TNK_OK;
}

static void drop(tnk__sessions_t *sessions, entry_t *entry) {
  tnk__list_remove(&entry->link);
  sessions->n_entries--;
  mbedtls_ssl_session_free(&entry->session);
  tnk__free(&sessions->context->alloc, entry);
}

void tnk__sessions_free(tnk__sessions_t *sessions) {
  tnk__list_t *node;

  if (sessions == NULL)
    return;
  while ((node = tnk__list_first(&sessions->entries)) != NULL)
    drop(sessions, tnk__container_of(node, entry_t, link));
  tnk__free(&sessions->context->alloc, sessions);
}

static entry_t *find(const tnk__sessions_t *sessions, const char *host,
                     uint16_t port) {
  TNK__LIST_FOREACH (node, &sessions->entries) {
    entry_t *entry = tnk__container_of(node, entry_t, link);
    if (entry->port == port && strcasecmp(entry->host, host) == 0)
      return entry;
  }
  return NULL;
}

void tnk__sessions_forget(tnk__sessions_t *sessions, const char *host,
                          uint16_t port) {
  entry_t *entry = find(sessions, host, port);

  if (entry != NULL)
    drop(sessions, entry);
}

void tnk__sessions_offer(tnk__sessions_t *sessions, const char *host,
                         uint16_t port, mbedtls_ssl_context *ssl) {
  entry_t *entry = find(sessions, host, port);

  if (entry == NULL)
    return;
  if (tnk__context_now_ms(sessions->context) >= entry->expires_ms ||
      mbedtls_ssl_set_session(ssl, &entry->session) != 0)
    drop(sessions, entry);
}

void tnk__sessions_keep(tnk__sessions_t *sessions, const char *host,
                        uint16_t port, const mbedtls_ssl_context *ssl,
                        int resumed) {
  uint64_t expires_ms = tnk__context_now_ms(sessions->context) + KEEP_MS;
  size_t len = strlen(host);
  entry_t *entry = find(sessions, host, port);

  if (entry != NULL && resumed)
    expires_ms = entry->expires_ms;
  if (entry != NULL)
    drop(sessions, entry);
  if (len > TNK__DNS_MAX_HOST)
    return;
  entry = tnk__calloc(&sessions->context->alloc, 1, sizeof(*entry));
  if (entry == NULL)
    return;
  memcpy(entry->host, host, len + 1);
  entry->port = port;
  entry->expires_ms = expires_ms;
  mbedtls_ssl_session_init(&entry->session);
  tnk__list_prepend(&sessions->entries, &entry->link);
  sessions->n_entries++;
  if (mbedtls_ssl_get_session(ssl, &entry->session) != 0)
    drop(sessions, entry);
  else if (sessions->n_entries > MAX_SESSIONS)
    drop(sessions, tnk__container_of(sessions->entries.prev, entry_t, link));
}

#ifndef TNK_LIB_IO_NET_NET_H
#define TNK_LIB_IO_NET_NET_H

#include "lib/io/loop/context.h"
#include "lib/io/net/dns.h"
#include "lib/io/net/pace.h"

struct tnk__trust;
struct tnk__sessions;

#define TNK__NET_READ_SIZE ((size_t)64 * 1024)
/* Also the most that one TLS record can hold. */
#define TNK__NET_PLAIN_SIZE ((size_t)16 * 1024)

/* Counters, for tests and for the curious. */
typedef struct {
  uint64_t n_connected; /* TCP connections made */
  uint64_t n_handshakes;
  uint64_t n_resumed; /* of them, from a kept session */
} tnk__net_counters_t;

/*
 * What the streams of one service share. Counted: each stream has a reference
 * until its memory is free, so the owner may drop its own at any time.
 */
typedef struct tnk__net {
  tnk__context_t *context;
  size_t refs;
  tnk__dns_t dns;
  struct tnk__trust *trust; /* read for the first TLS stream */
  struct tnk__sessions *sessions;
  tnk__pace_t pace; /* of handshakes */
  /* Reading ends before the next reading begins, so all streams can use the
   * same two buffers; but TLS that carries TLS has its own, NULL until there is
   * one, since the one above reads what it has decrypted. */
  uint8_t *read_buf;
  uint8_t *plain_buf;
  uint8_t *carrier_buf;
  tnk__net_counters_t counters;
} tnk__net_t;

/* Make one. `ca_file` may be NULL: then SSL_CERT_FILE, then the system's store.
 * TNK_OK or TNK_ENOMEM; no file is read yet. */
int tnk__net_new(tnk__net_t **out, tnk__context_t *context,
                 const char *ca_file);
/* Say who we are to servers that ask for a certificate: files of PEM, which may
 * be the same. Once, before the first stream. TNK_OK or TNK_ENOMEM; no file is
 * read yet. */
int tnk__net_identify(tnk__net_t *net, const char *cert_file,
                      const char *key_file);
/* Have carrier_buf. TNK_OK or TNK_ENOMEM. */
int tnk__net_reserve_carrier(tnk__net_t *net);
void tnk__net_ref(tnk__net_t *net);
/* Give back a reference; NULL does nothing. */
void tnk__net_unref(tnk__net_t *net);
/* Read the certificates now, on this thread, instead of on the pool with the
 * first TLS stream: TNK_OK, TNK_ENOMEM, TNK_ECERT, TNK_ETLS, TNK_EFILE for our
 * own; then `why` has a sentence. Takes about 1 ms for a system's store. Legal
 * only before the first stream. */
int tnk__net_load_trust(tnk__net_t *net, char *why, size_t size);

#endif

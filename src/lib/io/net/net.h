/* SPDX-License-Identifier: MIT */
#ifndef TNK_LIB_IO_NET_NET_H
#define TNK_LIB_IO_NET_NET_H

#include "lib/io/loop/context.h"
#include "lib/io/net/dns.h"

struct tnk__trust;
struct tnk__sessions;

#define TNK__NET_READ_SIZE ((size_t)64 * 1024)
/* Also the maximum payload of a TLS record. */
#define TNK__NET_PLAIN_SIZE ((size_t)16 * 1024)

/*
 * Spreads the steps of TLS handshakes over turns of the loop. A handshake
 * computes for up to 5 ms at once. If many streams open together, heartbeats
 * and responses on other streams would wait for all of them.
 */
#define TNK__PACE_STEPS 2 /* steps in one turn of the loop */

/* A step that may have to wait. Embedded in its owner. */
typedef struct tnk__pace_step {
  tnk__list_t link;
  void (*run)(struct tnk__pace_step *self);
} tnk__pace_step_t;

typedef struct {
  tnk__context_t *context;
  tnk__list_t waiting; /* steps in order of their request */
  unsigned n_used;     /* steps done in this turn of the loop */
  tnk__deferred_t later;
} tnk__pace_t;

/* Counters for tests and statistics. */
typedef struct {
  uint64_t n_connected; /* TCP connections opened */
  uint64_t n_handshakes;
  uint64_t n_resumed; /* handshakes that resumed a kept session */
} tnk__net_counters_t;

/*
 * The data that the streams of one service share. It is reference-counted: each
 * stream holds a reference until it is freed, so the owner may drop its own at
 * any time.
 */
typedef struct tnk__net {
  tnk__context_t *context;
  size_t refs;
  tnk__dns_t dns;
  struct tnk__trust *trust; /* read for the first TLS stream */
  struct tnk__sessions *sessions;
  tnk__pace_t pace; /* spreads handshakes over turns */
  /* All streams use the same two buffers, because one reading ends before the
   * next begins. Exception: a TLS stream that carries TLS has its own buffer,
   * because the stream above reads the decrypted bytes. It is NULL until such a
   * stream exists. */
  uint8_t *read_buf;
  uint8_t *plain_buf;
  uint8_t *carrier_buf;
  tnk__net_counters_t counters;
} tnk__net_t;

/* Create one. If `ca_file` is NULL, SSL_CERT_FILE is used, then the system's
 * store. Returns TNK_OK or TNK_ENOMEM. No file is read yet. */
int tnk__net_new(tnk__net_t **out, tnk__context_t *context,
                 const char *ca_file);
/* Set the client certificate: PEM files, which may be the same file. Call it at
 * most once, before the first stream. Returns TNK_OK or TNK_ENOMEM. No file is
 * read yet. */
int tnk__net_identify(tnk__net_t *net, const char *cert_file,
                      const char *key_file);
/* Allocate carrier_buf if it is NULL. Returns TNK_OK or TNK_ENOMEM. */
int tnk__net_reserve_carrier(tnk__net_t *net);
void tnk__net_ref(tnk__net_t *net);
/* Drop a reference. NULL does nothing. */
void tnk__net_unref(tnk__net_t *net);
/* Read the certificates now, on this thread, instead of on the thread pool with
 * the first TLS stream. Returns TNK_OK, TNK_ENOMEM, TNK_ECERT or TNK_ETLS.
 * Returns TNK_EFILE if the client certificate cannot be used. On error `why`
 * gets a sentence. Takes about 1 ms for a system's store. Legal only before the
 * first stream. */
int tnk__net_load_trust(tnk__net_t *net, char *why, size_t size);

void tnk__pace_init(tnk__pace_t *pace, tnk__context_t *context);
/* Deinitialize it. No step may be waiting. */
void tnk__pace_deinit(tnk__pace_t *pace);
void tnk__pace_step_init(tnk__pace_step_t *step,
                         void (*run)(tnk__pace_step_t *self));
/* Request a step. Returns 1 if the caller may do it now. Returns 0 if `run`
 * will be called in a later turn of the loop. */
int tnk__pace_ask(tnk__pace_t *pace, tnk__pace_step_t *step);
void tnk__pace_forget(tnk__pace_step_t *step);

#endif

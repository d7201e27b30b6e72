/* SPDX-License-Identifier: MIT */
#include "server/tls.h"

#include <errno.h>
#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/pem.h>
#include <mbedtls/pk.h>
#include <mbedtls/ssl_ticket.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#include <stdio.h>
#include <string.h>
#if MBEDTLS_VERSION_MAJOR >= 3
#include <psa/crypto.h>
#endif

#include "lib/base/alloc.h"
#include "lib/base/tls.h"
#include "tnk/error.h"

enum {
  RECORD = 16 * 1024, /* maximum size of a record */
  /* Maximum size of pending output: a response with the overhead of TLS. */
  MAX_OUT = 0x7fffffff,
  MAX_REST = 128 * 1024,
  TICKET_S = 86400 /* lifetime of a ticket, and of the key that encrypts it */
};

struct tnk__srv_tls {
  const tnk_allocator_t *alloc;
  mbedtls_entropy_context entropy;
  mbedtls_ctr_drbg_context rng;
  mbedtls_x509_crt chain;
  mbedtls_pk_context key;
  mbedtls_ssl_ticket_context tickets;
  mbedtls_ssl_config config;
  char plain[RECORD];  /* the record that was read last */
  char joined[RECORD]; /* joins small buffers into one record */
};

/* ---- Opening ---- */

typedef struct {
  char *why;
  size_t n_why;
} reason_t;

static int refuse(const reason_t *reason, int code, const char *before,
                  const char *file, const char *after) {
  if (reason->why != NULL && reason->n_why > 0)
    snprintf(reason->why, reason->n_why, "%s%s%s", before, file, after);
  return code;
}

/* Check a file first: mbedTLS does not report why a file cannot be read. */
static int check_file(const reason_t *reason, const char *what,
                      const char *file) {
  char before[64];
  char after[128];
  FILE *opened = fopen(file, "re");
  int err = errno;

  if (opened != NULL && fgetc(opened) == EOF && ferror(opened)) {
    err = errno;
    fclose(opened);
    opened = NULL;
  }
  if (opened != NULL) {
    fclose(opened);
    return TNK_OK;
  }
  err = uv_translate_sys_error(err);
  snprintf(before, sizeof(before), "cannot read the %s in ", what);
  snprintf(after, sizeof(after), ": %s", uv_strerror(err));
  return refuse(reason, TNK_ETLS, before, file, after);
}

static int parse_key(tnk__srv_tls_t *tls, const char *file) {
#if MBEDTLS_VERSION_MAJOR >= 3
  return mbedtls_pk_parse_keyfile(&tls->key, file, NULL,
                                  mbedtls_ctr_drbg_random, &tls->rng);
#else
  return mbedtls_pk_parse_keyfile(&tls->key, file, NULL);
#endif
}

static int is_pair(tnk__srv_tls_t *tls) {
#if MBEDTLS_VERSION_MAJOR >= 3
  return mbedtls_pk_check_pair(&tls->chain.pk, &tls->key,
                               mbedtls_ctr_drbg_random, &tls->rng) == 0;
#else
  return mbedtls_pk_check_pair(&tls->chain.pk, &tls->key) == 0;
#endif
}

static int read_files(tnk__srv_tls_t *tls, const char *cert, const char *key,
                      const reason_t *reason) {
  int err = check_file(reason, "certificate", cert);

  if (err == TNK_OK)
    err = check_file(reason, "key", key);
  if (err != TNK_OK)
    return err;
  if (mbedtls_x509_crt_parse_file(&tls->chain, cert) != 0)
    return refuse(reason, TNK_ETLS, "cannot parse a certificate in ", cert, "");
  err = parse_key(tls, key);
  if (err == MBEDTLS_ERR_PK_PASSWORD_REQUIRED ||
      err == MBEDTLS_ERR_PEM_PASSWORD_REQUIRED)
    return refuse(reason, TNK_ETLS, "the key in ", key,
                  " is encrypted, and passphrases are not supported");
  if (err != 0)
    return refuse(reason, TNK_ETLS, "cannot parse a private key in ", key, "");
  return is_pair(tls) ? TNK_OK
                      : refuse(reason, TNK_ETLS, "the key in ", key,
                               " does not belong to the certificate");
}

/* Returns 0 or a code of mbedTLS. */
static int configure(tnk__srv_tls_t *tls, int offers_h2) {
  /* In order of preference. */
  static const char *const both[] = {"h2", "http/1.1", NULL};
  mbedtls_ssl_config *config = &tls->config;
  int err = mbedtls_ssl_config_defaults(config, MBEDTLS_SSL_IS_SERVER,
                                        MBEDTLS_SSL_TRANSPORT_STREAM,
                                        MBEDTLS_SSL_PRESET_DEFAULT);

  if (err != 0)
    return err;
  tnk__tls_set_versions(config);
  mbedtls_ssl_conf_rng(config, mbedtls_ctr_drbg_random, &tls->rng);
#if defined(MBEDTLS_SSL_RENEGOTIATION)
  mbedtls_ssl_conf_renegotiation(config, MBEDTLS_SSL_RENEGOTIATION_DISABLED);
#endif
  err =
      mbedtls_ssl_ticket_setup(&tls->tickets, mbedtls_ctr_drbg_random,
                               &tls->rng, MBEDTLS_CIPHER_AES_256_GCM, TICKET_S);
  if (err != 0)
    return err;
  mbedtls_ssl_conf_session_tickets_cb(config, mbedtls_ssl_ticket_write,
                                      mbedtls_ssl_ticket_parse, &tls->tickets);
  err = mbedtls_ssl_conf_own_cert(config, &tls->chain, &tls->key);
  if (err != 0)
    return err;
  return mbedtls_ssl_conf_alpn_protocols(config,
                                         (const char **)both + !offers_h2);
}

static int open_parts(tnk__srv_tls_t *tls, const char *cert, const char *key,
                      int offers_h2, const reason_t *reason) {
  char words[128];
  int err = mbedtls_ctr_drbg_seed(&tls->rng, mbedtls_entropy_func,
                                  &tls->entropy, (const uint8_t *)"tnk", 3);

  if (err == 0) {
    int code = read_files(tls, cert, key, reason);

    if (code != TNK_OK)
      return code;
    err = configure(tls, offers_h2);
  }
  if (err == 0)
    return TNK_OK;
  mbedtls_strerror(err, words, sizeof(words));
  return refuse(reason, TNK_ETLS, "TLS: ", words, "");
}

int tnk__srv_tls_open(tnk__srv_tls_t **out, const tnk_allocator_t *alloc,
                      const char *cert, const char *key, int offers_h2,
                      char *why, size_t n_why) {
  const reason_t reason = {why, n_why};
  tnk__srv_tls_t *tls = tnk__calloc(alloc, 1, sizeof(*tls));
  int err;

  *out = NULL;
  if (tls == NULL)
    return TNK_ENOMEM;
#if MBEDTLS_VERSION_MAJOR >= 3
  /* TLS 1.3 in mbedTLS needs PSA. */
  if (psa_crypto_init() != PSA_SUCCESS) {
    tnk__free(alloc, tls);
    return TNK_ENOMEM;
  }
#endif
  tls->alloc = alloc;
  mbedtls_entropy_init(&tls->entropy);
  mbedtls_ctr_drbg_init(&tls->rng);
  mbedtls_x509_crt_init(&tls->chain);
  mbedtls_pk_init(&tls->key);
  mbedtls_ssl_ticket_init(&tls->tickets);
  mbedtls_ssl_config_init(&tls->config);
  err = open_parts(tls, cert, key, offers_h2, &reason);
  if (err != TNK_OK)
    tnk__srv_tls_free(tls);
  else
    *out = tls;
  return err;
}

void tnk__srv_tls_free(tnk__srv_tls_t *tls) {
  if (tls == NULL)
    return;
  mbedtls_ssl_config_free(&tls->config);
  mbedtls_ssl_ticket_free(&tls->tickets);
  mbedtls_pk_free(&tls->key);
  mbedtls_x509_crt_free(&tls->chain);
  mbedtls_ctr_drbg_free(&tls->rng);
  mbedtls_entropy_free(&tls->entropy);
  tnk__free(tls->alloc, tls);
}

/* ---- A connection ---- */

static int bio_send(void *user, const unsigned char *data, size_t n) {
  tnk__srv_tls_conn_t *conn = user;

  return tnk__buf_append(&conn->out, data, n) == TNK_OK
             ? (int)n
             : MBEDTLS_ERR_SSL_ALLOC_FAILED;
}

static int bio_recv(void *user, unsigned char *data, size_t n) {
  tnk__srv_tls_conn_t *conn = user;

  if (conn->n_in == 0)
    return MBEDTLS_ERR_SSL_WANT_READ;
  if (n > conn->n_in)
    n = conn->n_in;
  memcpy(data, conn->in, n);
  conn->in += n;
  conn->n_in -= n;
  return (int)n;
}

tnk__srv_tls_conn_t *tnk__srv_tls_conn_new(tnk__srv_tls_t *tls, void *owner) {
  tnk__srv_tls_conn_t *conn = tnk__calloc(tls->alloc, 1, sizeof(*conn));

  if (conn == NULL)
    return NULL;
  conn->tls = tls;
  conn->conn = owner;
  tnk__list_init(&conn->link);
  tnk__buf_init(&conn->rest, tls->alloc, MAX_REST);
  tnk__buf_init(&conn->out, tls->alloc, MAX_OUT);
  mbedtls_ssl_init(&conn->ssl);
  if (mbedtls_ssl_setup(&conn->ssl, &tls->config) != 0) {
    tnk__srv_tls_conn_free(conn);
    return NULL;
  }
  mbedtls_ssl_set_bio(&conn->ssl, conn, bio_send, bio_recv, NULL);
  return conn;
}

void tnk__srv_tls_conn_free(tnk__srv_tls_conn_t *conn) {
  if (conn == NULL)
    return;
  mbedtls_ssl_free(&conn->ssl);
  tnk__buf_deinit(&conn->rest);
  tnk__buf_deinit(&conn->out);
  tnk__free(conn->tls->alloc, conn);
}

int tnk__srv_tls_shake(tnk__srv_tls_conn_t *conn) {
  int err;

  /* mbedTLS reads one record at a time. It may return WANT_READ although the
   * window has more bytes. */
  do
    err = mbedtls_ssl_handshake(&conn->ssl);
  while (err == MBEDTLS_ERR_SSL_WANT_READ && conn->n_in > 0);
  conn->is_open = err == 0;
  return err == 0 ? 1 : err == MBEDTLS_ERR_SSL_WANT_READ ? 0 : err;
}

int tnk__srv_tls_wants_h2(const tnk__srv_tls_conn_t *conn) {
  const char *chosen = mbedtls_ssl_get_alpn_protocol(&conn->ssl);

  return chosen != NULL && strcmp(chosen, "h2") == 0;
}

int tnk__srv_tls_read(tnk__srv_tls_conn_t *conn, const char **data) {
  int n;

  /* Skip empty records; they are not the end of the stream. */
  do
    n = mbedtls_ssl_read(&conn->ssl, (unsigned char *)conn->tls->plain, RECORD);
  while ((n == 0 || n == MBEDTLS_ERR_SSL_WANT_READ) && conn->n_in > 0);
  *data = conn->tls->plain;
  return n == MBEDTLS_ERR_SSL_WANT_READ ? 0 : n;
}

static int seal_record(tnk__srv_tls_conn_t *conn, const char *data, size_t n) {
  while (n > 0) {
    int r = mbedtls_ssl_write(&conn->ssl, (const unsigned char *)data, n);

    if (r <= 0)
      return conn->out.err == TNK_ENOMEM ? TNK_ENOMEM : TNK_ETLS;
    data += r;
    n -= (size_t)r;
  }
  return TNK_OK;
}

/* Join the buffers, so that a head and a small body fit in one record and one
 * packet. */
int tnk__srv_tls_seal(tnk__srv_tls_conn_t *conn, const uv_buf_t *bufs,
                      unsigned n) {
  char *joined = conn->tls->joined;
  size_t len = 0;
  int err = TNK_OK;

  for (unsigned i = 0; i < n && err == TNK_OK; i++) {
    size_t at = 0;

    while (at < bufs[i].len && err == TNK_OK) {
      size_t more =
          bufs[i].len - at < RECORD - len ? bufs[i].len - at : RECORD - len;

      memcpy(joined + len, bufs[i].base + at, more);
      at += more;
      len += more;
      if (len == RECORD) {
        err = seal_record(conn, joined, len);
        len = 0;
      }
    }
  }
  return err == TNK_OK ? seal_record(conn, joined, len) : err;
}

void tnk__srv_tls_end(tnk__srv_tls_conn_t *conn) {
  if (conn->is_open)
    (void)mbedtls_ssl_close_notify(&conn->ssl);
}

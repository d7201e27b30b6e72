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
#include <mbedtls/x509_crl.h>
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
  mbedtls_x509_crt authorities; /* of the certificates of clients */
  mbedtls_x509_crl revoked;
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

static int read_pair(tnk__srv_tls_t *tls, const char *cert, const char *key,
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

/* A file is refused if one of its parts cannot be parsed. */
static int read_client_files(tnk__srv_tls_t *tls, const char *ca,
                             const char *crl, const reason_t *reason) {
  int err = check_file(reason, "client authorities", ca);

  if (err == TNK_OK && mbedtls_x509_crt_parse_file(&tls->authorities, ca) != 0)
    return refuse(reason, TNK_ETLS, "cannot parse a certificate in ", ca, "");
  if (err != TNK_OK || crl == NULL)
    return err;
  err = check_file(reason, "revocation list", crl);
  if (err == TNK_OK && mbedtls_x509_crl_parse_file(&tls->revoked, crl) != 0)
    return refuse(reason, TNK_ETLS, "cannot parse a revocation list in ", crl,
                  "");
  return err;
}

static int read_files(tnk__srv_tls_t *tls, const tnk__srv_config_t *config,
                      const reason_t *reason) {
  int err = read_pair(tls, config->tls_cert, config->tls_key, reason);

  return err == TNK_OK && config->tls_client_ca != NULL
             ? read_client_files(tls, config->tls_client_ca,
                                 config->tls_client_crl, reason)
             : err;
}

static int use_tickets(tnk__srv_tls_t *tls) {
  int err =
      mbedtls_ssl_ticket_setup(&tls->tickets, mbedtls_ctr_drbg_random,
                               &tls->rng, MBEDTLS_CIPHER_AES_256_GCM, TICKET_S);

  if (err == 0)
    mbedtls_ssl_conf_session_tickets_cb(&tls->config, mbedtls_ssl_ticket_write,
                                        mbedtls_ssl_ticket_parse,
                                        &tls->tickets);
  return err;
}

/* A resumed session would not check again whether the certificate has expired
 * or was revoked, and tickets of TLS 1.3 have no certificate. So there are no
 * tickets. */
static void ask_for_certificates(tnk__srv_tls_t *tls, int is_optional) {
  mbedtls_ssl_conf_ca_chain(&tls->config, &tls->authorities,
                            tls->revoked.raw.p != NULL ? &tls->revoked : NULL);
  mbedtls_ssl_conf_authmode(&tls->config, is_optional
                                              ? MBEDTLS_SSL_VERIFY_OPTIONAL
                                              : MBEDTLS_SSL_VERIFY_REQUIRED);
}

/* Returns 0 or a code of mbedTLS. */
static int configure(tnk__srv_tls_t *tls, const tnk__srv_config_t *files,
                     int offers_h2) {
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
  if (files->tls_client_ca != NULL)
    ask_for_certificates(tls, files->tls_client_optional);
  else
    err = use_tickets(tls);
  if (err == 0)
    err = mbedtls_ssl_conf_own_cert(config, &tls->chain, &tls->key);
  if (err != 0)
    return err;
  return mbedtls_ssl_conf_alpn_protocols(config,
                                         (const char **)both + !offers_h2);
}

static int open_parts(tnk__srv_tls_t *tls, const tnk__srv_config_t *config,
                      int offers_h2, const reason_t *reason) {
  char words[128];
  int err = mbedtls_ctr_drbg_seed(&tls->rng, mbedtls_entropy_func,
                                  &tls->entropy, (const uint8_t *)"tnk", 3);

  if (err == 0) {
    int code = read_files(tls, config, reason);

    if (code != TNK_OK)
      return code;
    err = configure(tls, config, offers_h2);
  }
  if (err == 0)
    return TNK_OK;
  mbedtls_strerror(err, words, sizeof(words));
  return refuse(reason, TNK_ETLS, "TLS: ", words, "");
}

int tnk__srv_tls_open(tnk__srv_tls_t **out, const tnk__srv_config_t *config,
                      int offers_h2) {
  const reason_t reason = {config->why, config->n_why};
  const tnk_allocator_t *alloc = config->alloc;
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
  mbedtls_x509_crt_init(&tls->authorities);
  mbedtls_x509_crl_init(&tls->revoked);
  mbedtls_pk_init(&tls->key);
  mbedtls_ssl_ticket_init(&tls->tickets);
  mbedtls_ssl_config_init(&tls->config);
  err = open_parts(tls, config, offers_h2, &reason);
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
  mbedtls_x509_crl_free(&tls->revoked);
  mbedtls_x509_crt_free(&tls->authorities);
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

/* mbedTLS calls this for each certificate of the client's chain. Its own one
 * has the depth 0. */
static int on_certificate(void *user, mbedtls_x509_crt *crt, int depth,
                          uint32_t *flags) {
  tnk__srv_tls_conn_t *conn = user;

  conn->has_seen = 1;
  conn->flags |= *flags;
  if ((*flags & MBEDTLS_X509_BADCERT_EXPIRED) != 0)
    conn->date = crt->valid_to;
  else if ((*flags & MBEDTLS_X509_BADCERT_FUTURE) != 0)
    conn->date = crt->valid_from;
  if (depth == 0)
    tnk__srv_certificate_subject(crt, conn->subject);
  return 0;
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
  mbedtls_ssl_set_verify(&conn->ssl, on_certificate, conn);
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

/* If certificates are optional, mbedTLS accepts an invalid one as well. */
static int check_client(tnk__srv_tls_conn_t *conn) {
  const uint32_t flags = mbedtls_ssl_get_verify_result(&conn->ssl);
  unsigned char alert = MBEDTLS_SSL_ALERT_MSG_BAD_CERT;

  if (!conn->has_seen || flags == 0)
    return 0;
  if ((flags & MBEDTLS_X509_BADCERT_REVOKED) != 0)
    alert = MBEDTLS_SSL_ALERT_MSG_CERT_REVOKED;
  else if ((flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED) != 0)
    alert = MBEDTLS_SSL_ALERT_MSG_UNKNOWN_CA;
  else if ((flags & MBEDTLS_X509_BADCERT_EXPIRED) != 0)
    alert = MBEDTLS_SSL_ALERT_MSG_CERT_EXPIRED;
  (void)mbedtls_ssl_send_alert_message(&conn->ssl,
                                       MBEDTLS_SSL_ALERT_LEVEL_FATAL, alert);
  return MBEDTLS_ERR_X509_CERT_VERIFY_FAILED;
}

int tnk__srv_tls_shake(tnk__srv_tls_conn_t *conn) {
  int err;

  /* mbedTLS reads one record at a time. It may return WANT_READ although the
   * window has more bytes. */
  do
    err = mbedtls_ssl_handshake(&conn->ssl);
  while (err == MBEDTLS_ERR_SSL_WANT_READ && conn->n_in > 0);
  if (err == 0)
    err = check_client(conn);
  conn->is_open = err == 0;
  return err == 0 ? 1 : err == MBEDTLS_ERR_SSL_WANT_READ ? 0 : err;
}

/* In order of importance. The date follows, where it is meant. */
static const struct {
  uint32_t flag;
  const char *text;
} meanings[] = {
    {MBEDTLS_X509_BADCERT_REVOKED, "it has been revoked"},
    {MBEDTLS_X509_BADCERT_NOT_TRUSTED,
     "it is not signed by a trusted authority"},
    {MBEDTLS_X509_BADCERT_EXPIRED, "it has expired on "},
    {MBEDTLS_X509_BADCERT_FUTURE, "it is not valid before "},
    {MBEDTLS_X509_BADCRL_EXPIRED, "the revocation list is out of date"},
    {MBEDTLS_X509_BADCERT_KEY_USAGE | MBEDTLS_X509_BADCERT_EXT_KEY_USAGE |
         MBEDTLS_X509_BADCERT_NS_CERT_TYPE,
     "it is not meant for clients"},
    {MBEDTLS_X509_BADCERT_BAD_MD | MBEDTLS_X509_BADCERT_BAD_PK |
         MBEDTLS_X509_BADCERT_BAD_KEY,
     "it is signed with a weak key or algorithm"},
};

static const char *meaning_of(uint32_t flags, uint32_t *flag) {
  for (size_t i = 0; i < sizeof(meanings) / sizeof(*meanings); i++)
    if ((flags & meanings[i].flag) != 0) {
      *flag = meanings[i].flag;
      return meanings[i].text;
    }
  *flag = 0;
  return "it is not valid";
}

int tnk__srv_tls_why(const tnk__srv_tls_conn_t *conn, int code, char *out,
                     size_t size) {
  const mbedtls_x509_time *date = &conn->date;
  char day[16] = "";
  const char *text = "its key was not proven";
  uint32_t flag = 0, flags;

  if (code == MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE) {
    (void)snprintf(out, size, "a client has no certificate");
    return 1;
  }
  if (!conn->has_seen)
    return 0;
  /* mbedTLS compares the purpose of a certificate after the callback. */
  flags = mbedtls_ssl_get_verify_result(&conn->ssl);
  flags = flags == UINT32_MAX ? conn->flags : flags | conn->flags;
  if (flags != 0)
    text = meaning_of(flags, &flag);
  if (flag == MBEDTLS_X509_BADCERT_EXPIRED ||
      flag == MBEDTLS_X509_BADCERT_FUTURE)
    (void)snprintf(day, sizeof(day), "%04d-%02d-%02d", date->year % 10000,
                   date->mon % 100, date->day % 100);
  (void)snprintf(out, size,
                 "the certificate of a client, %s, was refused: "
                 "%s%s",
                 conn->subject, text, day);
  return 1;
}

const mbedtls_x509_crt *tnk__srv_tls_client(const tnk__srv_tls_conn_t *conn) {
  if (conn == NULL || !conn->is_open || !conn->has_seen ||
      mbedtls_ssl_get_verify_result(&conn->ssl) != 0)
    return NULL;
  return mbedtls_ssl_get_peer_cert(&conn->ssl);
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

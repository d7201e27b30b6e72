/* SPDX-License-Identifier: MIT */
#include "tls_peer.h"

#include <mbedtls/pem.h>
#include <mbedtls/pk.h>
#include <mbedtls/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if MBEDTLS_VERSION_MAJOR >= 3
#include <psa/crypto.h>
#endif

#include "support/test.h"

static void save_key(mbedtls_pk_context *key, char *path, size_t size) {
  unsigned char pem[4096];
  const char *dir = getenv("TMPDIR");
  int fd;

  CHECK_INT(mbedtls_pk_write_key_pem(key, pem, sizeof(pem)), 0);
  snprintf(path, size, "%s/tnk-test-XXXXXX", dir != NULL ? dir : "/tmp");
  fd = mkstemp(path);
  CHECK(fd >= 0);
  CHECK(write(fd, pem, strlen((char *)pem)) > 0);
  close(fd);
}

void tls_kit_open(tls_kit_t *kit, const char *const *alpn) {
  memset(kit, 0, sizeof(*kit));
#if MBEDTLS_VERSION_MAJOR >= 3
  CHECK_INT(psa_crypto_init(), PSA_SUCCESS);
#endif
  test_identity_make(&kit->identity, &(test_cert_t){.subject = "CN=localhost",
                                                    .dns = "localhost",
                                                    .address = "127.0.0.1"});
  test_identity_save(&kit->identity, kit->cert, sizeof(kit->cert));
  save_key(&kit->identity.key, kit->key, sizeof(kit->key));
  mbedtls_ssl_session_init(&kit->session);
  mbedtls_ssl_config_init(&kit->config);
  CHECK_INT(mbedtls_ssl_config_defaults(&kit->config, MBEDTLS_SSL_IS_CLIENT,
                                        MBEDTLS_SSL_TRANSPORT_STREAM,
                                        MBEDTLS_SSL_PRESET_DEFAULT),
            0);
  mbedtls_ssl_conf_rng(&kit->config, test_rng, NULL);
  mbedtls_ssl_conf_ca_chain(&kit->config, &kit->identity.crt, NULL);
#if defined(MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED)
  mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(
      &kit->config, MBEDTLS_SSL_TLS1_3_SIGNAL_NEW_SESSION_TICKETS_ENABLED);
#endif
  for (int i = 0; alpn != NULL && alpn[i] != NULL && i < 2; i++)
    kit->alpn[i] = alpn[i];
  if (kit->alpn[0] != NULL)
    CHECK_INT(mbedtls_ssl_conf_alpn_protocols(&kit->config, kit->alpn), 0);
}

void tls_kit_close(tls_kit_t *kit) {
  remove(kit->cert);
  remove(kit->key);
  mbedtls_ssl_session_free(&kit->session);
  mbedtls_ssl_config_free(&kit->config);
  test_identity_free(&kit->identity);
}

void tls_kit_only_1_2(tls_kit_t *kit) {
#if MBEDTLS_VERSION_MAJOR >= 3
  mbedtls_ssl_conf_max_tls_version(&kit->config, MBEDTLS_SSL_VERSION_TLS1_2);
#else
  (void)kit;
#endif
}

/* ---- One end ---- */

static int bio_send(void *user, const unsigned char *data, size_t n) {
  tls_peer_t *peer = user;

  peer->out = realloc(peer->out, peer->n_out + n);
  CHECK(peer->out != NULL);
  memcpy(peer->out + peer->n_out, data, n);
  peer->n_out += n;
  return (int)n;
}

static int bio_recv(void *user, unsigned char *data, size_t n) {
  tls_peer_t *peer = user;

  if (peer->n_in == 0)
    return MBEDTLS_ERR_SSL_WANT_READ;
  if (n > peer->n_in)
    n = peer->n_in;
  memcpy(data, peer->in, n);
  peer->in += n;
  peer->n_in -= n;
  return (int)n;
}

tls_peer_t *tls_peer_new(tls_kit_t *kit) {
  tls_peer_t *peer = calloc(1, sizeof(*peer));

  CHECK(peer != NULL);
  peer->kit = kit;
  mbedtls_ssl_init(&peer->ssl);
  CHECK_INT(mbedtls_ssl_setup(&peer->ssl, &kit->config), 0);
  CHECK_INT(mbedtls_ssl_set_hostname(&peer->ssl, "localhost"), 0);
  if (kit->has_session)
    CHECK_INT(mbedtls_ssl_set_session(&peer->ssl, &kit->session), 0);
  mbedtls_ssl_set_bio(&peer->ssl, peer, bio_send, bio_recv, NULL);
  return peer;
}

void tls_peer_free(tls_peer_t *peer) {
  if (peer == NULL)
    return;
  mbedtls_ssl_free(&peer->ssl);
  free(peer->out);
  free(peer);
}

static void keep_session(tls_peer_t *peer) {
  mbedtls_ssl_session_free(&peer->kit->session);
  mbedtls_ssl_session_init(&peer->kit->session);
  peer->kit->has_session =
      mbedtls_ssl_get_session(&peer->ssl, &peer->kit->session) == 0;
}

static void shake(tls_peer_t *peer) {
  int err;

  do
    err = mbedtls_ssl_handshake(&peer->ssl);
  while (err == MBEDTLS_ERR_SSL_WANT_READ && peer->n_in > 0);
  peer->is_open = err == 0;
  /* Those of TLS 1.3 have a ticket later. */
  if (peer->is_open &&
      strcmp(mbedtls_ssl_get_version(&peer->ssl), "TLSv1.3") != 0)
    keep_session(peer);
  else if (err != MBEDTLS_ERR_SSL_WANT_READ)
    peer->error = err;
}

void tls_peer_feed(tls_peer_t *peer, const void *data, size_t n,
                   void (*on_plain)(void *user, const char *data, size_t n),
                   void *user) {
  char plain[16384];
  int r = 1;

  peer->in = data;
  peer->n_in = n;
  if (!peer->is_open && peer->error == 0)
    shake(peer);
  while (peer->is_open && r > 0) {
    r = mbedtls_ssl_read(&peer->ssl, (unsigned char *)plain, sizeof(plain));
    if (r > 0)
      on_plain(user, plain, (size_t)r);
#if defined(MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET)
    if (r == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET) {
      keep_session(peer);
      r = 1;
    }
#endif
    if (r == MBEDTLS_ERR_SSL_WANT_READ && peer->n_in > 0)
      r = 1;
  }
  peer->has_goodbye |= r == MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY;
}

void tls_peer_write(tls_peer_t *peer, const void *data, size_t n) {
  const unsigned char *at = data;

  while (n > 0) {
    int r = mbedtls_ssl_write(&peer->ssl, at, n);

    CHECK(r > 0);
    at += r;
    n -= (size_t)r;
  }
}

const char *tls_peer_alpn(const tls_peer_t *peer) {
  const char *chosen = mbedtls_ssl_get_alpn_protocol(&peer->ssl);

  return chosen != NULL ? chosen : "";
}

/* SPDX-License-Identifier: MIT */
#include "lib/io/net/peer.h"

#include <mbedtls/md.h>
#include <mbedtls/oid.h>
#include <mbedtls/pem.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#include <string.h>

#include "lib/base/text.h"
#include "tnk/error.h"

/* mbedTLS may add a high-level code and a low-level code to one number. */
static int is_out_of_memory(int cause) {
  switch (cause) {
  case MBEDTLS_ERR_SSL_ALLOC_FAILED:
  case MBEDTLS_ERR_X509_ALLOC_FAILED:
  case MBEDTLS_ERR_PK_ALLOC_FAILED:
  case MBEDTLS_ERR_PEM_ALLOC_FAILED:
  case MBEDTLS_ERR_ECP_ALLOC_FAILED:
  case MBEDTLS_ERR_MD_ALLOC_FAILED:
  case MBEDTLS_ERR_CIPHER_ALLOC_FAILED:
    return 1;
  default:
    return -(-cause & 0x7f) == MBEDTLS_ERR_MPI_ALLOC_FAILED ||
           -(-cause & 0x7f) == MBEDTLS_ERR_ASN1_ALLOC_FAILED;
  }
}

int tnk__tls_code(int cause, int otherwise) {
  return is_out_of_memory(cause) ? TNK_ENOMEM : otherwise;
}

/* Tags of subjectAltName in a certificate (RFC 5280). */
enum { SAN_DNS = 0x82, SAN_ADDRESS = 0x87 };

int tnk__peer_init(tnk__peer_t *peer, const char *host) {
  size_t len = strlen(host);
  size_t i;

  memset(peer, 0, sizeof(*peer));
  /* A name with a final dot is the same name, but certificates never have the
   * dot. */
  if (len > 0 && host[len - 1] == '.')
    len--;
  if (len == 0 || len > TNK__DNS_MAX_HOST)
    return TNK_EDNS;
  /* Normalize the case, because mbedTLS 3.6 refuses to resume a session under
   * another spelling. */
  for (i = 0; i < len; i++)
    peer->host[i] = host[i] >= 'A' && host[i] <= 'Z'
                        ? (char)(host[i] - 'A' + 'a')
                        : host[i];
  peer->is_address = tnk__address_parse(&peer->address, peer->host);
  return TNK_OK;
}

static int has_address(const tnk__peer_t *peer, const mbedtls_x509_crt *crt) {
  const mbedtls_x509_sequence *san = &crt->subject_alt_names;
  const uint8_t *bytes;
  size_t n = tnk__address_bytes(&peer->address, &bytes);

  for (; san != NULL; san = san->next)
    if (san->buf.tag == SAN_ADDRESS && san->buf.len == n &&
        memcmp(san->buf.p, bytes, n) == 0)
      return 1;
  return 0;
}

/* Add a name from the certificate to a message. The peer chose it, so only
 * printable ASCII is kept. */
static void add_name(tnk__peer_t *peer, const mbedtls_x509_buf *name) {
  size_t at = strlen(peer->names);
  size_t i;

  if (name->len == 0 || at + name->len + 6 > sizeof(peer->names))
    return;
  if (at > 0) {
    memcpy(peer->names + at, ", ", 2);
    at += 2;
  }
  for (i = 0; i < name->len; i++) {
    uint8_t c = name->p[i];
    peer->names[at++] = c > 0x20 && c < 0x7f ? (char)c : '?';
  }
  peer->names[at] = '\0';
}

static void add_address(tnk__peer_t *peer, const mbedtls_x509_buf *address) {
  char text[INET6_ADDRSTRLEN];
  mbedtls_x509_buf name;
  int family = address->len == 4 ? AF_INET : AF_INET6;

  if (address->len != 4 && address->len != 16)
    return;
  if (uv_inet_ntop(family, address->p, text, sizeof(text)) != 0)
    return;
  name.p = (unsigned char *)text;
  name.len = strlen(text);
  add_name(peer, &name);
}

static void note_names(tnk__peer_t *peer, const mbedtls_x509_crt *crt) {
  const mbedtls_x509_sequence *san = &crt->subject_alt_names;
  const mbedtls_x509_name *part = &crt->subject;

  peer->names[0] = '\0';
  for (; san != NULL; san = san->next) {
    if (san->buf.tag == SAN_DNS)
      add_name(peer, &san->buf);
    else if (san->buf.tag == SAN_ADDRESS)
      add_address(peer, &san->buf);
  }
  if (peer->names[0] != '\0')
    return;
  for (; part != NULL; part = part->next)
    if (MBEDTLS_OID_CMP(MBEDTLS_OID_AT_CN, &part->oid) == 0)
      add_name(peer, &part->val);
}

static void note_date(tnk__peer_t *peer, const mbedtls_x509_time *time) {
  snprintf(peer->date, sizeof(peer->date), "%04d-%02d-%02d", time->year % 10000,
           time->mon % 100, time->day % 100);
}

/* ---- Checks that ran out of memory ---- */

#if MBEDTLS_VERSION_MAJOR < 3
#define TNK__PRIVATE(member) member
#else
#define TNK__PRIVATE(member) MBEDTLS_PRIVATE(member)
#endif

/* Check that `parent` has signed `child`. Returns mbedTLS's code. */
static int check_signature(const mbedtls_x509_crt *child,
                           mbedtls_x509_crt *parent) {
  const mbedtls_md_info_t *md =
      mbedtls_md_info_from_type(child->TNK__PRIVATE(sig_md));
  unsigned char hash[MBEDTLS_MD_MAX_SIZE];
  int err;

  if (md == NULL)
    return MBEDTLS_ERR_X509_BAD_INPUT_DATA;
  err = mbedtls_md(md, child->tbs.p, child->tbs.len, hash);
  if (err != 0)
    return err;
  return mbedtls_pk_verify_ext(
      child->TNK__PRIVATE(sig_pk), child->TNK__PRIVATE(sig_opts), &parent->pk,
      child->TNK__PRIVATE(sig_md), hash, mbedtls_md_get_size(md),
      child->TNK__PRIVATE(sig).p, child->TNK__PRIVATE(sig).len);
}

static int is_issuer(const mbedtls_x509_crt *parent,
                     const mbedtls_x509_crt *child) {
  return parent->subject_raw.len == child->issuer_raw.len &&
         memcmp(parent->subject_raw.p, child->issuer_raw.p,
                child->issuer_raw.len) == 0;
}

/* Returns whether checking against one of these parents fails for lack of
 * memory. */
static int was_starved(mbedtls_x509_crt *child, mbedtls_x509_crt *parents,
                       mbedtls_x509_crt *trusted) {
  uint32_t flags = 0;

  for (; parents != NULL; parents = parents->next) {
    int err;
    if (!is_issuer(parents, child))
      continue;
    err = check_signature(child, parents);
    if (tnk__tls_code(err, TNK_OK) == TNK_ENOMEM)
      return 1;
    if (err == 0) {
      mbedtls_x509_crt_verify(child, trusted, NULL, NULL, &flags, NULL, NULL);
      return !(flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED);
    }
  }
  return 0;
}

/* If mbedTLS has no memory to check a signature, it reports a bad signature and
 * hides the reason. An untrusted certificate is therefore checked once more. */
static void doubt(tnk__peer_t *peer, mbedtls_x509_crt *crt) {
  if (was_starved(crt, peer->trusted, peer->trusted) ||
      was_starved(crt, crt->next, peer->trusted))
    peer->no_memory = 1;
}

/* mbedTLS calls this for each certificate, from the root down to the peer's own
 * at depth 0. The final value of `flags` counts. */
static int on_certificate(void *user, mbedtls_x509_crt *crt, int depth,
                          uint32_t *flags) {
  tnk__peer_t *peer = user;

  peer->n_checked++;
  /* mbedTLS before 3.5 compares only names. */
  if (depth == 0 && peer->is_address && !has_address(peer, crt))
    *flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
  if (depth == 0)
    note_names(peer, crt);
  if (*flags & MBEDTLS_X509_BADCERT_EXPIRED)
    note_date(peer, &crt->valid_to);
  else if (*flags & MBEDTLS_X509_BADCERT_FUTURE)
    note_date(peer, &crt->valid_from);
  if (*flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED)
    doubt(peer, crt);
  peer->flags |= *flags;
  return 0;
}

int tnk__peer_require(tnk__peer_t *peer, mbedtls_ssl_context *ssl) {
  mbedtls_ssl_set_verify(ssl, on_certificate, peer);
  /* An address must not be sent as a server name (RFC 6066). on_certificate()
   * checks it instead. */
  return mbedtls_ssl_set_hostname(ssl, peer->is_address ? NULL : peer->host);
}

/* Descriptions of the flags. Other flags get a general text. */
static const struct {
  uint32_t flag;
  const char *text;
} meanings[] = {
    {MBEDTLS_X509_BADCERT_REVOKED, "certificate has been revoked"},
    {MBEDTLS_X509_BADCERT_NOT_TRUSTED,
     "certificate is not signed by a trusted authority"},
    {MBEDTLS_X509_BADCERT_MISSING, "the server sent no certificate"},
    {MBEDTLS_X509_BADCERT_KEY_USAGE | MBEDTLS_X509_BADCERT_EXT_KEY_USAGE |
         MBEDTLS_X509_BADCERT_NS_CERT_TYPE,
     "certificate is not meant for servers"},
    {MBEDTLS_X509_BADCERT_BAD_MD | MBEDTLS_X509_BADCERT_BAD_PK |
         MBEDTLS_X509_BADCERT_BAD_KEY,
     "certificate is signed with a weak key or algorithm"},
};

/* Append a reason, from up to four parts. */
static void add(tnk__text_t *line, const char *a, const char *b, const char *c,
                const char *d) {
  tnk__text_printf(line, "%s%s%s%s%s", line->len > 0 ? "; " : "", a, b, c, d);
}

void tnk__peer_explain(const tnk__peer_t *peer, char *text, size_t size) {
  const size_t n = sizeof(meanings) / sizeof(meanings[0]);
  tnk__text_t line;
  size_t i;

  tnk__text_init(&line, text, size);
  if (peer->flags & MBEDTLS_X509_BADCERT_EXPIRED)
    add(&line, "certificate has expired on ", peer->date, "", "");
  if (peer->flags & MBEDTLS_X509_BADCERT_FUTURE)
    add(&line, "certificate is not valid before ", peer->date, "", "");
  if (peer->flags & MBEDTLS_X509_BADCERT_CN_MISMATCH)
    add(&line, "certificate is for ",
        peer->names[0] != '\0' ? peer->names : "no host", ", not for ",
        peer->host);
  for (i = 0; i < n; i++)
    if (peer->flags & meanings[i].flag)
      add(&line, meanings[i].text, "", "", "");
  if (line.len == 0)
    add(&line, "certificate was not accepted", "", "", "");
}

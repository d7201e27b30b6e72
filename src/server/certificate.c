/* SPDX-License-Identifier: MIT */
#include "server/certificate.h"

#include <mbedtls/md.h>
#include <mbedtls/oid.h>
#include <mbedtls/x509_crt.h>
#include <string.h>
#include <strings.h>

enum { HASH = 32, SAN_DNS = 0x82, SAN_URI = 0x86 };

typedef enum { BY_HASH, BY_DNS, BY_URI, BY_COMMON_NAME, BY_NOTHING } kind_t;

static const char *const kinds[] = {
    [BY_HASH] = "sha256:",
    [BY_DNS] = "DNS:",
    [BY_URI] = "URI:",
    [BY_COMMON_NAME] = "CN:",
};

/* *value receives what follows the kind. */
static kind_t kind_of(const char *name, const char **value) {
  for (size_t i = 0; i < BY_NOTHING; i++) {
    size_t n = strlen(kinds[i]);

    if (strncasecmp(name, kinds[i], n) == 0) {
      *value = name + n;
      return (kind_t)i;
    }
  }
  return BY_NOTHING;
}

/* ---- Names ---- */

static int read_hash(const char *text, char *out) {
  size_t n = 0;

  for (; *text != '\0'; text++) {
    char c = *text;

    if (c == ':' && n > 0 && n % 2 == 0 && text[1] != '\0')
      continue;
    if (c >= 'A' && c <= 'F')
      c = (char)(c - 'A' + 'a');
    if (strchr("0123456789abcdef", c) == NULL || n == (size_t)2 * HASH)
      return -1;
    out[n++] = c;
  }
  out[n] = '\0';
  return n == (size_t)2 * HASH ? 0 : -1;
}

int tnk__srv_certificate_read(const char *text,
                              char out[TNK__SRV_CERTIFICATE]) {
  const char *value;
  kind_t kind = kind_of(text, &value);
  size_t n;

  if (kind == BY_NOTHING)
    return -1;
  n = strlen(kinds[kind]);
  memcpy(out, kinds[kind], n);
  if (kind == BY_HASH)
    return read_hash(value, out + n);
  if (*value == '\0' || strlen(value) >= TNK__SRV_CERTIFICATE - n)
    return -1;
  /* It is written to the log. */
  for (const char *at = value; *at != '\0'; at++)
    if (*at < ' ' || *at > '~')
      return -1;
  memcpy(out + n, value, strlen(value) + 1);
  return 0;
}

/* ---- Certificates ---- */

static int is_hash(const mbedtls_x509_crt *crt, const char *digits) {
  static const char all[] = "0123456789abcdef";
  unsigned char hash[HASH];
  unsigned differs = strlen(digits) != (size_t)2 * HASH;

  if (differs || mbedtls_md(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256),
                            crt->raw.p, crt->raw.len, hash) != 0)
    return 0;
  for (size_t i = 0; i < HASH; i++)
    differs |= (unsigned)(digits[2 * i] != all[hash[i] >> 4]) |
               (unsigned)(digits[2 * i + 1] != all[hash[i] & 15]);
  return !differs;
}

/* A NUL inside of a certificate's text equals nothing. */
static int is_text(const mbedtls_x509_buf *buf, const char *text) {
  return buf->len == strlen(text) && memcmp(buf->p, text, buf->len) == 0;
}

static int is_host(const mbedtls_x509_buf *buf, const char *text) {
  return buf->len == strlen(text) &&
         strncasecmp((const char *)buf->p, text, buf->len) == 0;
}

static int has_name(const mbedtls_x509_crt *crt, int tag, const char *text) {
  const mbedtls_x509_sequence *at = &crt->subject_alt_names;

  for (; at != NULL; at = at->next)
    if (at->buf.tag == tag &&
        (tag == SAN_DNS ? is_host(&at->buf, text) : is_text(&at->buf, text)))
      return 1;
  return 0;
}

static int has_common_name(const mbedtls_x509_crt *crt, const char *text) {
  const mbedtls_x509_name *at = &crt->subject;

  for (; at != NULL; at = at->next)
    if (MBEDTLS_OID_CMP(MBEDTLS_OID_AT_CN, &at->oid) == 0 &&
        is_text(&at->val, text))
      return 1;
  return 0;
}

tnk__srv_certificate_t tnk__srv_certificate_is(const mbedtls_x509_crt *crt,
                                               const char *name) {
  const char *value;
  int is = 0;

  if (crt == NULL)
    return TNK__SRV_CERTIFICATE_NONE;
  switch (kind_of(name, &value)) {
  case BY_HASH:
    is = is_hash(crt, value);
    break;
  case BY_DNS:
    is = has_name(crt, SAN_DNS, value);
    break;
  case BY_URI:
    is = has_name(crt, SAN_URI, value);
    break;
  case BY_COMMON_NAME:
    is = has_common_name(crt, value);
    break;
  case BY_NOTHING:
    break;
  }
  return is ? TNK__SRV_CERTIFICATE_IS : TNK__SRV_CERTIFICATE_OTHER;
}

/* ---- For people ---- */

/* The client chose the text, so only printable ASCII is kept. */
static void copy(char out[TNK__SRV_SUBJECT], const char *kind, const void *text,
                 size_t n) {
  const char *from = text;
  size_t at = strlen(kind);

  memcpy(out, kind, at);
  for (; n > 0 && at + 1 < TNK__SRV_SUBJECT; n--, from++)
    out[at++] = *from >= ' ' && *from <= '~' ? *from : '?';
  out[at] = '\0';
}

void tnk__srv_certificate_subject(const mbedtls_x509_crt *crt,
                                  char out[TNK__SRV_SUBJECT]) {
  const mbedtls_x509_sequence *at;
  char text[1024];
  int n;

  out[0] = '\0';
  if (crt == NULL)
    return;
  at = &crt->subject_alt_names;
  n = mbedtls_x509_dn_gets(text, sizeof(text), &crt->subject);
  /* A subject may be empty. Then the first name has to do. */
  if (n > 0)
    copy(out, "", text, (size_t)n);
  else if (n < 0)
    copy(out, "(a very long subject)", "", 0);
  else if (at->buf.tag == SAN_DNS || at->buf.tag == SAN_URI)
    copy(out, kinds[at->buf.tag == SAN_DNS ? BY_DNS : BY_URI], at->buf.p,
         at->buf.len);
  else
    copy(out, "(no subject)", "", 0);
}

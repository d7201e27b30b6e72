/* SPDX-License-Identifier: MIT */
#ifndef TNK_SERVER_CERTIFICATE_H
#define TNK_SERVER_CERTIFICATE_H

struct mbedtls_x509_crt;

/*
 * Client certificates. A client can be named by its certificate in four ways:
 *   sha256:HEX    the fingerprint of this one certificate
 *   DNS:NAME      a host name in subjectAltName, in any case
 *   URI:TEXT      a URI in subjectAltName, such as URI:spiffe://example/agent
 *   CN:TEXT       a common name of the subject
 */
enum {
  TNK__SRV_CERTIFICATE = 256, /* bytes of a name, with its NUL */
  TNK__SRV_SUBJECT = 160      /* bytes of a subject for people, with its NUL */
};

/* Read a name, and write it in the one form that is compared. A fingerprint may
 * have colons and capitals, and other names are printable ASCII. Returns 0, or
 * -1 if it is no such name. */
int tnk__srv_certificate_read(const char *text, char out[TNK__SRV_CERTIFICATE]);

typedef enum {
  TNK__SRV_CERTIFICATE_IS = 0,
  TNK__SRV_CERTIFICATE_NONE, /* the client has sent no certificate */
  TNK__SRV_CERTIFICATE_OTHER
} tnk__srv_certificate_t;

/* Compare a certificate with a name that was read. NULL: there is none. */
tnk__srv_certificate_t
tnk__srv_certificate_is(const struct mbedtls_x509_crt *crt, const char *name);
/* Write the subject of a certificate in printable ASCII. NULL: "". */
void tnk__srv_certificate_subject(const struct mbedtls_x509_crt *crt,
                                  char out[TNK__SRV_SUBJECT]);

#endif

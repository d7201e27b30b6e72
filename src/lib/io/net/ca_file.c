#include "lib/io/net/ca_file.h"

#include <mbedtls/pem.h>
#include <mbedtls/pk.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/limits.h"
#include "lib/base/base64.h"
#include "tnk/error.h"

/*
 * mbedTLS can read such files itself. But its base64 decoder runs in constant
 * time, which is meant for private keys. It took nine tenths of the time for a
 * system's store.
 */

enum { PIECE_SIZE = 64 * 1024 };

static const char begin[] = "-----BEGIN CERTIFICATE-----";
static const char end[] = "-----END CERTIFICATE-----";

/* Find the next certificate at or after `at`: the text between its two marker
 * lines, or NULL. *behind is where to continue the search. */
static char *next_block(char *at, size_t *n, char **behind) {
  char *start = strstr(at, begin);
  char *stop;

  if (start == NULL)
    return NULL;
  start += sizeof(begin) - 1;
  stop = strstr(start, end);
  if (stop == NULL)
    return NULL;
  *n = (size_t)(stop - start);
  *behind = stop + sizeof(end) - 1;
  return start;
}

static int parse_block(mbedtls_x509_crt *chain, char *text, size_t n) {
  uint8_t *der = (uint8_t *)text;

  n = tnk__base64_read_lines(der, text, n);
  if (n == SIZE_MAX)
    return MBEDTLS_ERR_PEM_INVALID_DATA;
  return mbedtls_x509_crt_parse_der(chain, der, n);
}

int tnk__ca_file_parse(mbedtls_x509_crt *chain, unsigned char *text, size_t n) {
  char *at = (char *)text;
  char *block;
  size_t len;
  int n_bad = 0;
  int n_good = 0;
  int first = MBEDTLS_ERR_X509_CERT_UNKNOWN_FORMAT;

  if (strstr(at, begin) == NULL)
    return mbedtls_x509_crt_parse_der(chain, text, n);
  while ((block = next_block(at, &len, &at)) != NULL) {
    int err = parse_block(chain, block, len);
    if (err == MBEDTLS_ERR_X509_ALLOC_FAILED)
      return err;
    if (err == 0)
      n_good++;
    else if (n_bad++ == 0)
      first = err;
  }
  return n_good > 0 ? n_bad : first;
}

/* Returns 0 or a code of mbedTLS. */
static int read_file(tnk__buf_t *out, const char *path) {
  FILE *file = fopen(path, "re");
  size_t n = 1;
  int is_bad;

  if (file == NULL)
    return MBEDTLS_ERR_PK_FILE_IO_ERROR;
  while (n > 0) {
    uint8_t *to = tnk__buf_reserve(out, PIECE_SIZE);
    n = to != NULL ? fread(to, 1, PIECE_SIZE, file) : 0;
    out->len += n;
  }
  is_bad = ferror(file) || out->err == TNK_ETOOBIG;
  fclose(file);
  if (is_bad)
    return MBEDTLS_ERR_PK_FILE_IO_ERROR;
  return out->err == TNK_OK ? 0 : MBEDTLS_ERR_X509_ALLOC_FAILED;
}

int tnk__ca_file_read(mbedtls_x509_crt *chain, const char *path,
                      const tnk_allocator_t *alloc) {
  tnk__buf_t text;
  int err;

  tnk__buf_init(&text, alloc, TNK__MAX_CA_FILE);
  err = read_file(&text, path);
  if (err == 0)
    err = tnk__buf_cstr(&text) != NULL
              ? tnk__ca_file_parse(chain, text.data, text.len)
              : MBEDTLS_ERR_X509_ALLOC_FAILED;
  tnk__buf_deinit(&text);
  return err;
}

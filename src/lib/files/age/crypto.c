/* SPDX-License-Identifier: MIT */
#include "lib/files/age/crypto.h"

#include <mbedtls/bignum.h>
#include <mbedtls/chachapoly.h>
#include <mbedtls/ecp.h>
#include <mbedtls/hkdf.h>
#include <mbedtls/md.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

static int translate(int ret, int otherwise) {
  if (ret == 0)
    return TNK_OK;
  return ret == MBEDTLS_ERR_MPI_ALLOC_FAILED ||
                 ret == MBEDTLS_ERR_ECP_ALLOC_FAILED ||
                 ret == MBEDTLS_ERR_MD_ALLOC_FAILED
             ? TNK_ENOMEM
             : otherwise;
}

/* Clamp the scalar as RFC 7748 requires. */
static int read_scalar(mbedtls_mpi *out, const uint8_t scalar[TNK__AGE_KEY]) {
  uint8_t clamped[TNK__AGE_KEY];
  int ret;

  memcpy(clamped, scalar, sizeof(clamped));
  clamped[0] &= 248;
  clamped[31] = (uint8_t)((clamped[31] & 127) | 64);
  ret = mbedtls_mpi_read_binary_le(out, clamped, sizeof(clamped));
  tnk__wipe(clamped, sizeof(clamped));
  return ret;
}

static int is_zero(const uint8_t *data, size_t n) {
  unsigned all = 0;

  for (size_t i = 0; i < n; i++)
    all |= data[i];
  return all == 0;
}

int tnk__age_multiply(uint8_t out[TNK__AGE_KEY],
                      const uint8_t scalar[TNK__AGE_KEY],
                      const uint8_t point[TNK__AGE_KEY],
                      tnk__age_random_t random, void *user) {
  mbedtls_ecp_group group;
  mbedtls_ecp_point in, result;
  mbedtls_mpi factor;
  size_t n = 0;
  int ret;

  mbedtls_ecp_group_init(&group);
  mbedtls_ecp_point_init(&in);
  mbedtls_ecp_point_init(&result);
  mbedtls_mpi_init(&factor);
  memset(out, 0, TNK__AGE_KEY);
  ret = mbedtls_ecp_group_load(&group, MBEDTLS_ECP_DP_CURVE25519);
  if (ret == 0)
    ret = read_scalar(&factor, scalar);
  if (ret == 0)
    ret = mbedtls_ecp_point_read_binary(&group, &in, point, TNK__AGE_KEY);
  if (ret == 0)
    ret = mbedtls_ecp_mul(&group, &result, &factor, &in, random, user);
  if (ret == 0)
    ret = mbedtls_ecp_point_write_binary(
        &group, &result, MBEDTLS_ECP_PF_UNCOMPRESSED, &n, out, TNK__AGE_KEY);
  mbedtls_mpi_free(&factor);
  mbedtls_ecp_point_free(&result);
  mbedtls_ecp_point_free(&in);
  mbedtls_ecp_group_free(&group);
  if (ret == 0 && is_zero(out, TNK__AGE_KEY))
    return TNK_EPROTO;
  return translate(ret, TNK_EPROTO);
}

int tnk__age_publish(uint8_t out[TNK__AGE_KEY],
                     const uint8_t secret[TNK__AGE_KEY],
                     tnk__age_random_t random, void *user) {
  static const uint8_t base[TNK__AGE_KEY] = {9};

  return tnk__age_multiply(out, secret, base, random, user);
}

int tnk__age_derive(uint8_t out[TNK__AGE_KEY], const void *secret, size_t n,
                    const void *salt, size_t n_salt, const char *info) {
  return translate(mbedtls_hkdf(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256),
                                salt, n_salt, secret, n,
                                (const unsigned char *)info, strlen(info), out,
                                TNK__AGE_KEY),
                   TNK_EINTERNAL);
}

int tnk__age_mac(uint8_t out[TNK__AGE_KEY],
                 const uint8_t file_key[TNK__AGE_FILE_KEY], const void *head,
                 size_t n) {
  uint8_t key[TNK__AGE_KEY];
  int err =
      tnk__age_derive(key, file_key, TNK__AGE_FILE_KEY, NULL, 0, "header");

  if (err == TNK_OK)
    err =
        translate(mbedtls_md_hmac(mbedtls_md_info_from_type(MBEDTLS_MD_SHA256),
                                  key, sizeof(key), head, n, out),
                  TNK_EINTERNAL);
  tnk__wipe(key, sizeof(key));
  return err;
}

int tnk__age_wrap_key(uint8_t out[TNK__AGE_KEY],
                      const uint8_t shared[TNK__AGE_KEY],
                      const uint8_t share[TNK__AGE_KEY],
                      const uint8_t recipient[TNK__AGE_KEY]) {
  uint8_t salt[2 * TNK__AGE_KEY];

  memcpy(salt, share, TNK__AGE_KEY);
  memcpy(salt + TNK__AGE_KEY, recipient, TNK__AGE_KEY);
  return tnk__age_derive(out, shared, TNK__AGE_KEY, salt, sizeof(salt),
                         "age-encryption.org/v1/X25519");
}

int tnk__age_encrypt(uint8_t *out, const uint8_t key[TNK__AGE_KEY],
                     const uint8_t nonce[TNK__AGE_NONCE], const void *data,
                     size_t n) {
  mbedtls_chachapoly_context context;
  int ret;

  mbedtls_chachapoly_init(&context);
  ret = mbedtls_chachapoly_setkey(&context, key);
  if (ret == 0)
    ret = mbedtls_chachapoly_encrypt_and_tag(&context, n, nonce, NULL, 0, data,
                                             out, out + n);
  mbedtls_chachapoly_free(&context);
  return translate(ret, TNK_EINTERNAL);
}

int tnk__age_decrypt(uint8_t *out, const uint8_t key[TNK__AGE_KEY],
                     const uint8_t nonce[TNK__AGE_NONCE], const uint8_t *data,
                     size_t n) {
  mbedtls_chachapoly_context context;
  int ret;

  mbedtls_chachapoly_init(&context);
  ret = mbedtls_chachapoly_setkey(&context, key);
  if (ret == 0)
    ret = mbedtls_chachapoly_auth_decrypt(&context, n, nonce, NULL, 0, data + n,
                                          data, out);
  mbedtls_chachapoly_free(&context);
  if (ret != 0)
    tnk__wipe(out, n);
  return ret == MBEDTLS_ERR_CHACHAPOLY_AUTH_FAILED
             ? TNK_ECORRUPT
             : translate(ret, TNK_EINTERNAL);
}

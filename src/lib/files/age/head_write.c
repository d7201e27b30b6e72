#include "lib/base/alloc.h"
#include "lib/base/base64.h"
#include "lib/files/age/head.h"
#include "tnk/error.h"

/* All values in a header have 32 bytes: 43 digits, without padding. */
static void put_bytes(tnk__buf_t *out, const uint8_t bytes[TNK__AGE_KEY]) {
  tnk__base64_write(out, bytes, TNK__AGE_KEY);
  if (out->err == TNK_OK)
    out->len--;
}

static int put_stanza(tnk__buf_t *out, const uint8_t *file_key,
                      const uint8_t *recipient, tnk__age_random_t random,
                      void *user) {
  static const uint8_t nonce[TNK__AGE_NONCE];
  uint8_t secret[TNK__AGE_KEY], share[TNK__AGE_KEY];
  uint8_t shared[TNK__AGE_KEY], key[TNK__AGE_KEY], body[TNK__AGE_WRAPPED];
  int err = random(user, secret, sizeof(secret)) == 0 ? TNK_OK : TNK_ESYSTEM;

  if (err == TNK_OK)
    err = tnk__age_publish(share, secret, random, user);
  if (err == TNK_OK)
    err = tnk__age_multiply(shared, secret, recipient, random, user);
  if (err == TNK_OK)
    err = tnk__age_wrap_key(key, shared, share, recipient);
  if (err == TNK_OK)
    err = tnk__age_encrypt(body, key, nonce, file_key, TNK__AGE_FILE_KEY);
  tnk__wipe(secret, sizeof(secret));
  tnk__wipe(shared, sizeof(shared));
  tnk__wipe(key, sizeof(key));
  if (err != TNK_OK)
    return err;
  tnk__buf_text(out, "-> X25519 ");
  put_bytes(out, share);
  tnk__buf_text(out, "\n");
  put_bytes(out, body);
  return tnk__buf_text(out, "\n");
}

int tnk__age_head_write(tnk__buf_t *out,
                        const uint8_t file_key[TNK__AGE_FILE_KEY],
                        const uint8_t (*recipients)[TNK__AGE_KEY], size_t n,
                        tnk__age_random_t random, void *user) {
  const size_t begin = out->len;
  uint8_t mac[TNK__AGE_KEY];
  int err = tnk__buf_text(out, "age-encryption.org/v1\n");

  for (size_t i = 0; i < n && err == TNK_OK; i++)
    err = put_stanza(out, file_key, recipients[i], random, user);
  if (err == TNK_OK)
    err = tnk__buf_text(out, "---");
  if (err == TNK_OK)
    err = tnk__age_mac(mac, file_key, out->data + begin, out->len - begin);
  if (err == TNK_OK) {
    tnk__buf_text(out, " ");
    put_bytes(out, mac);
    err = tnk__buf_text(out, "\n");
  }
  if (out->err == TNK_OK)
    out->err = err;
  return err;
}

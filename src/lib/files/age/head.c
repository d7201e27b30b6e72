/* SPDX-License-Identifier: MIT */
#include "lib/files/age/head.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/base64.h"
#include "tnk/error.h"

/* ---- Writing ---- */

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

/* ---- Reading ---- */

enum { COLUMNS = 64, MAC_DIGITS = 43, LINE_BYTES = 48 };

static const char malformed[] = "the header of the file is malformed";
/* Otherwise a key could open a file that the passphrase does not protect. */
static const char not_alone[] =
    "the file has other recipients in addition to a passphrase, which age "
    "forbids";

void tnk__age_head_init(tnk__age_head_t *head, const tnk_allocator_t *alloc,
                        tnk__age_random_t random, void *user) {
  memset(head, 0, sizeof(*head));
  tnk__buf_init(&head->text, alloc, TNK__AGE_MAX_HEAD);
  head->random = random;
  head->user = user;
}

void tnk__age_head_deinit(tnk__age_head_t *head) {
  tnk__buf_deinit(&head->text);
  tnk__wipe(head->identities, sizeof(head->identities));
  tnk__wipe(head->key, sizeof(head->key));
  head->has_key = 0;
}

static int refuse(tnk__age_head_t *head, int err, const char *why) {
  head->why = why;
  return err;
}

/* Accepts the standard alphabet only, without padding and with unused bits
 * zero. */
static size_t decode(uint8_t out[LINE_BYTES], const char *text, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (text[i] == '-' || text[i] == '_' || text[i] == '=')
      return SIZE_MAX;
  return tnk__base64_decode(out, text, n);
}

static int starts(const char *line, size_t n, const char *with) {
  const size_t n_with = strlen(with);

  return n >= n_with && memcmp(line, with, n_with) == 0;
}

static int read_version(tnk__age_head_t *head, const char *line, size_t n) {
  static const char v1[] = "age-encryption.org/v1";

  head->state = TNK__AGE_STANZA;
  if (n == sizeof(v1) - 1 && starts(line, n, v1))
    return TNK_OK;
  if (starts(line, n, "-----BEGIN AGE ENCRYPTED FILE"))
    return refuse(head, TNK_EUNSUPPORTED,
                  "the file is armored as text, which is not supported");
  if (starts(line, n, "age-encryption.org/") && line[n - 1] != '\r')
    return refuse(head, TNK_EUNSUPPORTED,
                  "the file has an unknown version of age");
  return refuse(head, TNK_EPROTO, "the file is not encrypted with age");
}

/* Length of a stanza's argument: visible characters up to the next space. */
static size_t measure_argument(const char *text, size_t n) {
  size_t i = 0;

  while (i < n && text[i] > ' ' && text[i] <= '~')
    i++;
  return i == n || text[i] == ' ' ? i : 0;
}

static int read_arguments(tnk__age_head_t *head, const char *text, size_t n) {
  const char *arguments[2] = {"", ""};
  size_t lengths[2] = {0, 0};
  uint8_t share[LINE_BYTES];
  size_t n_arguments = 0;

  for (;; n_arguments++) {
    const size_t length = measure_argument(text, n);
    if (length == 0)
      return refuse(head, TNK_EPROTO, malformed);
    if (n_arguments < 2) {
      arguments[n_arguments] = text;
      lengths[n_arguments] = length;
    }
    if (length == n)
      break;
    text += length + 1;
    n -= length + 1;
  }
  head->has_scrypt |= lengths[0] == 6 && memcmp(arguments[0], "scrypt", 6) == 0;
  head->is_ours = lengths[0] == 6 && memcmp(arguments[0], "X25519", 6) == 0;
  if (!head->is_ours)
    return TNK_OK;
  if (n_arguments != 1 || lengths[1] > COLUMNS ||
      decode(share, arguments[1], lengths[1]) != TNK__AGE_KEY)
    return refuse(head, TNK_EPROTO, malformed);
  memcpy(head->share, share, TNK__AGE_KEY);
  if (++head->n_ours > TNK__AGE_MAX_STANZAS)
    return refuse(head, TNK_ETOOBIG, "the file has too many recipients");
  return TNK_OK;
}

/* Try one identity on a complete stanza. */
static int unwrap(tnk__age_head_t *head, const uint8_t *identity) {
  static const uint8_t nonce[TNK__AGE_NONCE];
  uint8_t shared[TNK__AGE_KEY], key[TNK__AGE_KEY], recipient[TNK__AGE_KEY];
  int err = tnk__age_multiply(shared, identity, head->share, head->random,
                              head->user);

  if (err == TNK_OK)
    err = tnk__age_publish(recipient, identity, head->random, head->user);
  if (err == TNK_OK)
    err = tnk__age_wrap_key(key, shared, head->share, recipient);
  if (err == TNK_OK)
    err =
        tnk__age_decrypt(head->key, key, nonce, head->body, TNK__AGE_FILE_KEY);
  head->has_key = err == TNK_OK;
  tnk__wipe(shared, sizeof(shared));
  tnk__wipe(key, sizeof(key));
  if (err == TNK_OK || err == TNK_ECORRUPT)
    return TNK_OK;
  return refuse(head, err, err == TNK_EPROTO ? malformed : NULL);
}

static int read_body(tnk__age_head_t *head, const char *line, size_t n) {
  uint8_t bytes[LINE_BYTES];
  const size_t n_bytes = n <= COLUMNS ? decode(bytes, line, n) : SIZE_MAX;
  int err = TNK_OK;

  if (n_bytes == SIZE_MAX)
    return refuse(head, TNK_EPROTO, malformed);
  for (size_t i = 0; i < n_bytes; i++, head->n_body++)
    if (head->n_body < sizeof(head->body))
      head->body[head->n_body] = bytes[i];
  if (n == COLUMNS)
    return TNK_OK;
  head->state = TNK__AGE_STANZA;
  if (!head->is_ours)
    return TNK_OK;
  if (head->n_body != sizeof(head->body))
    return refuse(head, TNK_EPROTO, malformed);
  for (size_t i = 0; i < head->n_identities && !head->has_key; i++)
    if ((err = unwrap(head, head->identities[i])) != TNK_OK)
      return err;
  return TNK_OK;
}

/* The MAC is compared in constant time. */
static int check_mac(tnk__age_head_t *head, const char *digits, size_t n) {
  const size_t n_head = head->line + 3; /* "---" is part of the input */
  uint8_t mac[TNK__AGE_KEY], told[LINE_BYTES];
  unsigned differs = 0;
  int err;

  if (head->has_scrypt && head->n_stanzas > 1)
    return refuse(head, TNK_EPROTO, not_alone);
  if (head->n_stanzas == 0 || n != MAC_DIGITS ||
      decode(told, digits, n) != sizeof(mac))
    return refuse(head, TNK_EPROTO, malformed);
  if (!head->has_key)
    return head->has_scrypt
               ? refuse(head, TNK_EUNSUPPORTED,
                        "the file is encrypted with a passphrase")
               : refuse(head, TNK_EINVAL,
                        "the file is encrypted for other recipients: the key "
                        "does not open it");
  err = tnk__age_mac(mac, head->key, head->text.data, n_head);
  if (err != TNK_OK)
    return err;
  for (size_t i = 0; i < sizeof(mac); i++)
    differs |= (unsigned)(mac[i] ^ told[i]);
  if (differs != 0)
    return refuse(head, TNK_ECORRUPT, "the header of the file was changed");
  head->state = TNK__AGE_DONE;
  return TNK_OK;
}

static int read_line(tnk__age_head_t *head, const char *line, size_t n) {
  if (head->state == TNK__AGE_VERSION)
    return read_version(head, line, n);
  if (head->state == TNK__AGE_BODY)
    return read_body(head, line, n);
  if (starts(line, n, "--- "))
    return check_mac(head, line + 4, n - 4);
  if (!starts(line, n, "-> "))
    return refuse(head, TNK_EPROTO, malformed);
  head->n_stanzas++;
  head->n_body = 0;
  head->state = TNK__AGE_BODY;
  return read_arguments(head, line + 3, n - 3);
}

int tnk__age_head_feed(tnk__age_head_t *head, const uint8_t *data, size_t n,
                       size_t *used) {
  int err = TNK_OK;

  *used = 0;
  while (*used < n && head->state != TNK__AGE_DONE && err == TNK_OK) {
    const uint8_t *end = memchr(data + *used, '\n', n - *used);
    const size_t piece =
        end != NULL ? (size_t)(end - data) + 1 - *used : n - *used;
    err = tnk__buf_append(&head->text, data + *used, piece);
    if (err == TNK_ETOOBIG)
      return refuse(head, err, "the header of the file is too long");
    *used += piece;
    if (err == TNK_OK && end != NULL) {
      err = read_line(head, (const char *)head->text.data + head->line,
                      head->text.len - head->line - 1);
      head->line = head->text.len;
    }
  }
  return err;
}

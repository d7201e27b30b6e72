/* SPDX-License-Identifier: MIT */
#include "lib/files/age/age.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/files/age/head.h"
#include "lib/wire/data/check.h"
#include "support/test.h"
#include "tnk/error.h"

static const char recipient_text[] =
    "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj";
static const char identity_text[] =
    "AGE-SECRET-KEY-"
    "1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";

enum { ROOM = 4 << 20 };

typedef struct {
  tnk__buf_t data;
  const char *why;
} opened_t;

static uint64_t state = 3;

static int random_bytes(void *user, unsigned char *out, size_t n) {
  (void)user;
  for (size_t i = 0; i < n; i++)
    out[i] = (unsigned char)test_random(&state);
  return 0;
}

static int no_random(void *user, unsigned char *out, size_t n) {
  (void)user;
  (void)out;
  (void)n;
  return -1;
}

static void read_pair(uint8_t recipient[TNK__AGE_KEY],
                      uint8_t identity[TNK__AGE_KEY]) {
  CHECK_STR(tnk__age_recipient_read(recipient, recipient_text), NULL);
  CHECK_STR(tnk__age_identity_read(identity, identity_text), NULL);
}

static uint8_t *make_data(size_t n) {
  uint8_t *data = malloc(n + 1);

  for (size_t i = 0; i < n; i++)
    data[i] = (uint8_t)(i * 7 + (i >> 8));
  return data;
}

static void seal(tnk__buf_t *out, const void *data, size_t n, size_t step) {
  uint8_t keys[2][TNK__AGE_KEY];
  tnk__age_seal_t sealing;
  int err;

  read_pair(keys[1], keys[0]);
  /* Whom else it is for does not matter. */
  CHECK_INT(tnk__age_publish(keys[0], keys[1], random_bytes, NULL), TNK_OK);
  tnk__buf_init(out, test_allocator(), ROOM);
  err = tnk__age_seal_init(&sealing, test_allocator(),
                           (const uint8_t(*)[TNK__AGE_KEY])keys, 2,
                           random_bytes, NULL, out);
  for (size_t i = 0; i < n && err == TNK_OK; i += step)
    err = tnk__age_seal_feed(&sealing, out, (const uint8_t *)data + i,
                             n - i < step ? n - i : step);
  CHECK_INT(err, TNK_OK);
  CHECK_INT(tnk__age_seal_finish(&sealing, out), TNK_OK);
  tnk__age_seal_deinit(&sealing);
}

static int unseal(opened_t *out, const uint8_t *data, size_t n, size_t step) {
  uint8_t recipient[TNK__AGE_KEY], identity[TNK__AGE_KEY];
  tnk__age_open_t open;
  int err = TNK_OK;

  read_pair(recipient, identity);
  tnk__buf_init(&out->data, test_allocator(), ROOM);
  tnk__age_open_init(&open, test_allocator(), random_bytes, NULL);
  CHECK_INT(tnk__age_open_add(&open, identity), TNK_OK);
  for (size_t i = 0; i < n && err == TNK_OK; i += step)
    err = tnk__age_open_feed(&open, &out->data, data + i,
                             n - i < step ? n - i : step);
  if (err == TNK_OK)
    err = tnk__age_open_finish(&open, &out->data);
  if (err != TNK_OK)
    CHECK_INT(tnk__age_open_finish(&open, &out->data), err);
  out->why = open.why;
  tnk__age_open_deinit(&open);
  return err;
}

TEST(what_is_sealed_is_opened_whatever_its_length_and_the_pieces) {
  static const size_t lengths[] = {0,     1,      65535,  65536,
                                   65537, 131072, 131073, 300000};
  static const size_t steps[] = {1000, 65536, ROOM};

  for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
    uint8_t *data = make_data(lengths[i]);
    for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
      tnk__buf_t sealed;
      opened_t opened;
      seal(&sealed, data, lengths[i], steps[k]);
      CHECK_INT(unseal(&opened, sealed.data, sealed.len, steps[k] - 1), TNK_OK);
      CHECK_MEM(opened.data.data, opened.data.len, data, lengths[i]);
      tnk__buf_deinit(&sealed);
      tnk__buf_deinit(&opened.data);
    }
    free(data);
  }
}

static void check_refused(const uint8_t *data, size_t n, size_t n_given,
                          const char *why) {
  opened_t opened;

  CHECK_INT(unseal(&opened, data, n, 50000), TNK_ECORRUPT);
  CHECK_STR(opened.why, why);
  CHECK_INT(opened.data.len, n_given);
  tnk__buf_deinit(&opened.data);
}

TEST(each_change_has_its_sentence_and_only_what_is_authentic_is_given) {
  const size_t n = 2 * TNK__AGE_CHUNK + 100;
  const size_t whole = TNK__AGE_CHUNK + TNK__AGE_TAG;
  uint8_t *data = make_data(n);
  tnk__buf_t sealed;
  size_t first; /* where the first chunk begins */

  seal(&sealed, data, n, ROOM);
  first = sealed.len - 2 * whole - 100 - TNK__AGE_TAG;
  check_refused(sealed.data, first + 2 * whole, 2 * TNK__AGE_CHUNK,
                "the file is truncated");
  check_refused(sealed.data, first + whole + 5, TNK__AGE_CHUNK,
                "the file is truncated");
  check_refused(sealed.data, sealed.len - 1, 2 * TNK__AGE_CHUNK,
                "the end of the file was changed or is missing");
  check_refused(sealed.data, first - 20, 0, "the file is truncated");
  sealed.data[first + whole + 7] ^= 1;
  check_refused(sealed.data, sealed.len, TNK__AGE_CHUNK,
                "the file was changed");
  sealed.data[first + whole + 7] ^= 1;
  sealed.data[first - TNK__AGE_FILE_NONCE - 9] ^= 1; /* of the MAC's digits */
  check_refused(sealed.data, sealed.len, 0,
                "the header of the file was changed");
  tnk__buf_deinit(&sealed);

  seal(&sealed, data, TNK__AGE_CHUNK, ROOM);
  CHECK_INT(tnk__buf_text(&sealed, "x"), TNK_OK);
  check_refused(sealed.data, sealed.len, TNK__AGE_CHUNK,
                "the file has bytes after its end");
  tnk__buf_deinit(&sealed);
  free(data);
}

TEST(a_key_that_does_not_open_the_file_is_told) {
  static const uint8_t other[TNK__AGE_KEY] = {1, 2, 3};
  tnk__age_open_t open;
  tnk__buf_t sealed, out;

  seal(&sealed, "text", 4, ROOM);
  tnk__buf_init(&out, test_allocator(), ROOM);
  tnk__age_open_init(&open, test_allocator(), random_bytes, NULL);
  for (int i = 0; i < TNK__AGE_MAX_IDENTITIES; i++)
    CHECK_INT(tnk__age_open_add(&open, other), TNK_OK);
  CHECK_INT(tnk__age_open_add(&open, other), TNK_EINVAL);
  CHECK_INT(tnk__age_open_feed(&open, &out, sealed.data, sealed.len),
            TNK_EINVAL);
  CHECK_STR(open.why, "the file is encrypted for other recipients: the key "
                      "does not open it");
  tnk__age_open_deinit(&open);
  tnk__buf_deinit(&out);
  tnk__buf_deinit(&sealed);
}

TEST(a_header_is_bounded) {
  static const char stanza[] =
      "-> X25519 TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc\n"
      "hjabGXwSLQ9c3S6Lw2i+S2Tu2fiwQHHslbBN6B41FLE\n";
  tnk__buf_t text;
  opened_t opened;

  tnk__buf_init(&text, test_allocator(), ROOM);
  tnk__buf_text(&text, "age-encryption.org/v1\n");
  for (int i = 0; i <= TNK__AGE_MAX_STANZAS; i++)
    tnk__buf_text(&text, stanza);
  CHECK_INT(unseal(&opened, text.data, text.len, ROOM), TNK_ETOOBIG);
  CHECK_STR(opened.why, "the file has too many recipients");
  tnk__buf_deinit(&opened.data);
  tnk__buf_clear(&text);
  tnk__buf_text(&text, "age-encryption.org/v1\n-> ");
  while (text.len <= TNK__AGE_MAX_HEAD)
    tnk__buf_byte(&text, 'a');
  CHECK_INT(unseal(&opened, text.data, text.len, ROOM), TNK_ETOOBIG);
  CHECK_STR(opened.why, "the header of the file is too long");
  tnk__buf_deinit(&opened.data);
  CHECK_INT(unseal(&opened, (const uint8_t *)"PK\3\4\n", 5, ROOM), TNK_EPROTO);
  CHECK_STR(opened.why, "the file is not encrypted with age");
  tnk__buf_deinit(&opened.data);
  CHECK_INT(unseal(&opened, text.data, 0, ROOM), TNK_EPROTO);
  CHECK_STR(opened.why, "the file is empty");
  tnk__buf_deinit(&opened.data);
  tnk__buf_deinit(&text);
}

#define SCRYPT                                                                 \
  "-> scrypt 3d9y0G+8q1ffPQ0xJJatIQ 10\n"                                      \
  "foZolxuhRSL7IG7oaR+456IzkHtvue7j4mUjh3DB6EI\n"
#define OTHER "-> other scrypt\n\n"

/* Make the header of a file that the key opens, with a valid MAC over more
 * stanzas before and behind. Returns the reader's result. */
static int read_head(const char *before, const char *behind, const char **why) {
  static const uint8_t file_key[TNK__AGE_FILE_KEY] = {4, 5};
  uint8_t recipient[1][TNK__AGE_KEY], identity[TNK__AGE_KEY];
  uint8_t mac[TNK__AGE_KEY];
  const size_t n_version = strlen("age-encryption.org/v1\n");
  const size_t n_mac = strlen("--- \n") + 43;
  tnk__buf_t made, text;
  tnk__age_head_t head;
  size_t used;
  int err;

  read_pair(recipient[0], identity);
  tnk__buf_init(&made, test_allocator(), ROOM);
  tnk__buf_init(&text, test_allocator(), ROOM);
  CHECK_INT(tnk__age_head_write(&made, file_key,
                                (const uint8_t(*)[TNK__AGE_KEY])recipient, 1,
                                random_bytes, NULL),
            TNK_OK);
  tnk__buf_append(&text, made.data, n_version);
  tnk__buf_text(&text, before);
  tnk__buf_append(&text, made.data + n_version, made.len - n_version - n_mac);
  tnk__buf_text(&text, behind);
  tnk__buf_text(&text, "---");
  CHECK_INT(tnk__age_mac(mac, file_key, text.data, text.len), TNK_OK);
  tnk__buf_text(&text, " ");
  tnk__base64_write(&text, mac, sizeof(mac));
  text.data[text.len - 1] = '\n'; /* no padding */
  tnk__age_head_init(&head, test_allocator(), random_bytes, NULL);
  memcpy(head.identities[head.n_identities++], identity, sizeof(identity));
  err = tnk__age_head_feed(&head, text.data, text.len, &used);
  *why = head.why;
  tnk__age_head_deinit(&head);
  tnk__buf_deinit(&made);
  tnk__buf_deinit(&text);
  return err;
}

TEST(a_passphrase_must_be_the_only_recipient) {
  static const struct {
    const char *before, *behind;
    int err;
  } rows[] = {
      {"", "", TNK_OK},
      {OTHER, "", TNK_OK},
      {"", OTHER, TNK_OK},
      {SCRYPT, "", TNK_EPROTO},
      {"", SCRYPT, TNK_EPROTO},
      {SCRYPT, OTHER, TNK_EPROTO},
      {OTHER, SCRYPT, TNK_EPROTO},
      {SCRYPT, SCRYPT, TNK_EPROTO},
  };
  const char *why;

  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
    CHECK_INT(read_head(rows[i].before, rows[i].behind, &why), rows[i].err);
    CHECK_STR(why, rows[i].err == TNK_OK
                       ? NULL
                       : "the file has other recipients in addition to a "
                         "passphrase, which age forbids");
  }
}

TEST(keys_are_read_and_what_is_wrong_with_them_is_told) {
  static const struct {
    const char *text, *why;
  } bad[] = {
      {"", "does not begin with age1"},
      {"age1pq1x34nzsvr0rxjsgdn8", "is not as long as a key of X25519"},
      {"AGE1ZVKYG2LQZRAA2LNJVQEJ32NKUU0UES2S82HZRYE869XEEXVN73EQUNUJWJ",
       "does not begin with age1"},
      {"age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujw",
       "is not as long as a key of X25519"},
      {"age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwq",
       "is mistyped: its checksum is wrong"},
      {"age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwb",
       "has an invalid character"},
      {"age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwJ",
       "has an invalid character"},
      {identity_text, "is a secret key, which must not be shared"},
  };
  uint8_t recipient[TNK__AGE_KEY], identity[TNK__AGE_KEY], made[TNK__AGE_KEY];

  read_pair(recipient, identity);
  CHECK_INT(identity[0], 0x42);
  CHECK_INT(tnk__age_publish(made, identity, random_bytes, NULL), TNK_OK);
  CHECK_MEM(made, sizeof(made), recipient, sizeof(recipient));
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    CHECK_STR(tnk__age_recipient_read(made, bad[i].text), bad[i].why);
  CHECK_STR(tnk__age_identity_read(made, recipient_text),
            "does not begin with AGE-SECRET-KEY-1");
  CHECK_STR(tnk__age_identity_read(
                made, "AGE-SECRET-KEY-1gfpyysjzgfpyysjzgfpyysjzgfpyysjzgfpyysjz"
                      "gfpyysjzgfpyysjzgfpq4egaex"),
            "is not as long as a key of X25519");
  CHECK_STR(tnk__age_identity_read(
                made, "AGE-SECRET-KEY-1gfpyysjzgfpyysjzgfpyysjzgfpyysjzgfpyysjz"
                      "gfpyysjzgfpq4egaex"),
            "has an invalid character");
}

TEST(secret_keys_are_known_whatever_they_look_like) {
  static const char *const secrets[] = {
      "age-secret-key-1gfpyysjzgfpyysjz", /* in small letters as well */
      "\"AGE-SECRET-KEY-1GFPYY\"", "AGE-SECRET-KEY-PQ-1GFPYY",
      "-----BEGIN OPENSSH PRIVATE KEY-----", "AGE-AGE-SECRET-KEY"};
  static const char *const others[] = {"", "age1x", "AGE-SECRET-KE",
                                       "ssh-ed25519 AAAA me@private"};

  CHECK(tnk__is_secret_key(identity_text));
  CHECK(!tnk__is_secret_key(recipient_text));
  for (size_t i = 0; i < sizeof(secrets) / sizeof(*secrets); i++)
    CHECK(tnk__is_secret_key(secrets[i]));
  for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
    CHECK(!tnk__is_secret_key(others[i]));
}

TEST(without_recipients_or_random_bytes_nothing_is_sealed) {
  /* The point of order one, for which every secret is the same. */
  static const uint8_t zero[1][TNK__AGE_KEY] = {{0}};
  uint8_t recipient[1][TNK__AGE_KEY], identity[TNK__AGE_KEY];
  tnk__age_seal_t sealing;
  tnk__buf_t out;

  read_pair(recipient[0], identity);
  tnk__buf_init(&out, test_allocator(), ROOM);
  CHECK_INT(tnk__age_seal_init(&sealing, test_allocator(), NULL, 0,
                               random_bytes, NULL, &out),
            TNK_EINVAL);
  CHECK_INT(tnk__age_seal_feed(&sealing, &out, "x", 1), TNK_EINVAL);
  CHECK_INT(tnk__age_seal_finish(&sealing, &out), TNK_EINVAL);
  tnk__age_seal_deinit(&sealing);
  CHECK_INT(tnk__age_seal_init(&sealing, test_allocator(),
                               (const uint8_t(*)[TNK__AGE_KEY])recipient, 1,
                               no_random, NULL, &out),
            TNK_ESYSTEM);
  tnk__age_seal_deinit(&sealing);
  tnk__buf_clear(&out);
  CHECK_INT(tnk__age_seal_init(&sealing, test_allocator(), zero, 1,
                               random_bytes, NULL, &out),
            TNK_EPROTO);
  tnk__age_seal_deinit(&sealing);
  tnk__buf_deinit(&out);
}

/* SPDX-License-Identifier: MIT */
/* The published test vectors of age: test/codec/age. */
#include <dirent.h>
#include <mbedtls/sha256.h>
#include <mbedtls/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "lib/files/age/age.h"
#include "support/test.h"
#include "tnk/error.h"

#if MBEDTLS_VERSION_MAJOR < 3
#define sha256 mbedtls_sha256_ret
#else
#define sha256 mbedtls_sha256
#endif

enum { MAX_FILE = 32 << 20 };

typedef struct {
  char *text;
  size_t n;
  const uint8_t *body; /* behind the empty line */
  size_t n_body;
} vector_t;

static int no_secret(void *user, unsigned char *out, size_t n) {
  (void)user;
  memset(out, 5, n);
  return 0;
}

static vector_t load(const char *name) {
  vector_t vector = {.text = malloc(1 << 16)};
  char path[512];
  FILE *file;

  snprintf(path, sizeof(path), "%s/%s", TNK_TEST_AGE, name);
  file = fopen(path, "rb");
  CHECK(file != NULL);
  vector.n = fread(vector.text, 1, (1 << 16) - 1, file);
  fclose(file);
  for (size_t i = 0; i + 1 < vector.n && vector.body == NULL; i++)
    if (memcmp(vector.text + i, "\n\n", 2) == 0) {
      vector.text[i + 1] = '\0';
      vector.body = (const uint8_t *)vector.text + i + 2;
      vector.n_body = vector.n - i - 2;
    }
  CHECK(vector.body != NULL);
  return vector;
}

/* The value of the key, or NULL; the search goes on behind *at. */
static const char *next_value(const char **at, const char *key) {
  static char value[256];
  const size_t n = strlen(key);

  while (**at != '\0') {
    const char *line = *at;
    const size_t length = strcspn(line, "\n");
    *at = line + length + 1;
    if (strncmp(line, key, n) == 0 && strncmp(line + n, ": ", 2) == 0) {
      snprintf(value, sizeof(value), "%.*s", (int)(length - n - 2),
               line + n + 2);
      return value;
    }
  }
  return NULL;
}

static const char *value_of(const vector_t *vector, const char *key) {
  const char *at = vector->text;

  return next_value(&at, key);
}

static uint8_t *inflate_body(const vector_t *vector, size_t *n) {
  uint8_t *out = malloc(MAX_FILE);
  uLongf len = MAX_FILE;

  if (value_of(vector, "compressed") == NULL) {
    memcpy(out, vector->body, vector->n_body);
    len = vector->n_body;
  } else {
    CHECK_INT(uncompress(out, &len, vector->body, vector->n_body), Z_OK);
  }
  *n = len;
  return out;
}

static void check_payload(const vector_t *vector, const tnk__buf_t *out) {
  const char *wanted = value_of(vector, "payload");
  unsigned char sum[32];
  char digits[65] = "";

  CHECK_INT(sha256(out->data != NULL ? out->data : sum, out->len, sum, 0), 0);
  for (size_t i = 0; i < sizeof(sum); i++)
    snprintf(digits + 2 * i, 3, "%02x", sum[i]);
  CHECK(wanted != NULL);
  CHECK_STR(digits, wanted);
}

static int expected(const char *expect, int err) {
  if (strcmp(expect, "success") == 0)
    return err == TNK_OK;
  if (strcmp(expect, "no match") == 0)
    return err == TNK_EINVAL;
  if (strcmp(expect, "header failure") == 0)
    return err == TNK_EPROTO || err == TNK_EUNSUPPORTED || err == TNK_ECORRUPT;
  return err == TNK_ECORRUPT; /* of the MAC, of the payload */
}

static void run(const char *name, const vector_t *vector, size_t step) {
  const char *at = vector->text;
  char expect[64];
  tnk__age_open_t open;
  tnk__buf_t out;
  size_t n;
  uint8_t *data = inflate_body(vector, &n);
  uint8_t key[TNK__AGE_KEY];
  const char *identity;
  int err = TNK_OK;

  snprintf(expect, sizeof(expect), "%s", value_of(vector, "expect"));
  tnk__buf_init(&out, test_allocator(), MAX_FILE);
  tnk__age_open_init(&open, test_allocator(), no_secret, NULL);
  while ((identity = next_value(&at, "identity")) != NULL) {
    CHECK_STR(tnk__age_identity_read(key, identity), NULL);
    CHECK_INT(tnk__age_open_add(&open, key), TNK_OK);
  }
  for (size_t i = 0; i < n && err == TNK_OK; i += step)
    err =
        tnk__age_open_feed(&open, &out, data + i, n - i < step ? n - i : step);
  if (err == TNK_OK)
    err = tnk__age_open_finish(&open, &out);
  if (!expected(expect, err))
    test_fail(__FILE__, __LINE__, "%s: %s expected, is %s", name, expect,
              tnk_err_name(err));
  CHECK(err == TNK_OK || open.why != NULL);
  if (value_of(vector, "payload") != NULL)
    check_payload(vector, &out);
  tnk__age_open_deinit(&open);
  tnk__buf_deinit(&out);
  free(data);
}

TEST_LIMIT(published_vectors_open_or_fail_as_they_say, 120) {
  DIR *dir = opendir(TNK_TEST_AGE);
  const struct dirent *entry;
  int n = 0;

  CHECK(dir != NULL);
  while ((entry = readdir(dir)) != NULL) {
    vector_t vector;
    if (entry->d_name[0] == '.' || strcmp(entry->d_name, "README.md") == 0)
      continue;
    vector = load(entry->d_name);
    /* Passphrases and armor are refused by name instead. */
    if (value_of(&vector, "passphrase") == NULL ||
        value_of(&vector, "identity") != NULL) {
      if (value_of(&vector, "armored") == NULL) {
        run(entry->d_name, &vector, 40000);
        if (vector.n_body < 4096)
          run(entry->d_name, &vector, 1);
        n++;
      }
    }
    free(vector.text);
  }
  closedir(dir);
  CHECK_INT(n, 68);
}

static void refused_by_name(const char *name, const char *why) {
  vector_t vector = load(name);
  tnk__age_open_t open;
  tnk__buf_t out;

  tnk__buf_init(&out, test_allocator(), MAX_FILE);
  tnk__age_open_init(&open, test_allocator(), no_secret, NULL);
  CHECK_INT(tnk__age_open_feed(&open, &out, vector.body, vector.n_body),
            TNK_EUNSUPPORTED);
  CHECK_STR(open.why, why);
  tnk__age_open_deinit(&open);
  tnk__buf_deinit(&out);
  free(vector.text);
}

TEST(what_is_not_read_is_refused_by_name) {
  refused_by_name("armor_x25519",
                  "the file is armored as text, which is not supported");
  refused_by_name("scrypt", "the file is encrypted with a passphrase");
  refused_by_name("version_unsupported",
                  "the file has an unknown version of age");
}

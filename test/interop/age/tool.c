/* SPDX-License-Identifier: MIT */
/* What age/age.py drives: `age_tool seal RECIPIENT...` and `age_tool open
 * IDENTITY`, from the standard input to the standard output. */
#include <stdio.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/files/age/age.h"
#include "tnk/error.h"

enum { ROOM = 64 << 20, MAX_KEYS = 8 };

static int read_random(void *user, unsigned char *out, size_t n) {
  return fread(out, 1, n, user) == n ? 0 : -1;
}

static int run_seal(tnk__buf_t *out, FILE *random, char **keys, int n_keys) {
  uint8_t recipients[MAX_KEYS][TNK__AGE_KEY];
  tnk__age_seal_t seal;
  uint8_t piece[5000];
  size_t n;
  int err;

  for (int i = 0; i < n_keys; i++)
    if (tnk__age_recipient_read(recipients[i], keys[i]) != NULL)
      return TNK_EINVAL;
  err = tnk__age_seal_init(&seal, tnk__allocator_default(),
                           (const uint8_t(*)[TNK__AGE_KEY])recipients,
                           (size_t)n_keys, read_random, random, out);
  while (err == TNK_OK && (n = fread(piece, 1, sizeof(piece), stdin)) > 0)
    err = tnk__age_seal_feed(&seal, out, piece, n);
  if (err == TNK_OK)
    err = tnk__age_seal_finish(&seal, out);
  tnk__age_seal_deinit(&seal);
  return err;
}

static int run_open(tnk__buf_t *out, FILE *random, const char *key) {
  uint8_t identity[TNK__AGE_KEY];
  tnk__age_open_t open;
  uint8_t piece[5000];
  size_t n;
  int err;

  if (tnk__age_identity_read(identity, key) != NULL)
    return TNK_EINVAL;
  tnk__age_open_init(&open, tnk__allocator_default(), read_random, random);
  err = tnk__age_open_add(&open, identity);
  while (err == TNK_OK && (n = fread(piece, 1, sizeof(piece), stdin)) > 0)
    err = tnk__age_open_feed(&open, out, piece, n);
  if (err == TNK_OK)
    err = tnk__age_open_finish(&open, out);
  if (err != TNK_OK && open.why != NULL)
    fprintf(stderr, "%s\n", open.why);
  tnk__age_open_deinit(&open);
  return err;
}

int main(int argc, char **argv) {
  FILE *random = fopen("/dev/urandom", "rb");
  tnk__buf_t out;
  int err;

  if (argc < 3 || argc > 2 + MAX_KEYS || random == NULL)
    return 2;
  tnk__buf_init(&out, tnk__allocator_default(), ROOM);
  err = strcmp(argv[1], "seal") == 0
            ? run_seal(&out, random, argv + 2, argc - 2)
            : run_open(&out, random, argv[2]);
  fclose(random);
  if (err == TNK_OK && fwrite(out.data, 1, out.len, stdout) != out.len)
    err = TNK_EFILE;
  tnk__buf_deinit(&out);
  return err == TNK_OK ? 0 : 1;
}

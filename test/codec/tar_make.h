/* SPDX-License-Identifier: MIT */
#ifndef TNK_TEST_CODEC_TAR_MAKE_H
#define TNK_TEST_CODEC_TAR_MAKE_H

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "lib/base/buf.h"
#include "support/test.h"
#include "tnk/error.h"

enum { TAR_ROOM = 32 << 20 };

/* A block of ustar for an entry. */
static inline void tar_header(tnk__buf_t *out, const char *name, char kind,
                              unsigned long long size) {
  char block[512] = "";
  unsigned sum = 0;

  memcpy(block, name, strlen(name) < 100 ? strlen(name) : 100);
  memcpy(block + 100,
         "0000644\0"
         "0000000\0"
         "0000000\0",
         24);
  snprintf(block + 124, 12, "%011llo", size & 077777777777);
  memcpy(block + 136, "00000000000", 12);
  memset(block + 148, ' ', 8);
  block[156] = kind;
  memcpy(block + 257,
         "ustar\0"
         "00",
         8);
  for (size_t i = 0; i < sizeof(block); i++)
    sum += (unsigned char)block[i];
  snprintf(block + 148, 8, "%06o", sum & 0777777);
  tnk__buf_append(out, block, sizeof(block));
}

static inline void tar_pad(tnk__buf_t *out) {
  while (out->err == TNK_OK && out->len % 512 != 0)
    tnk__buf_byte(out, 0);
}

static inline void tar_entry(tnk__buf_t *out, const char *name, char kind,
                             const void *data, size_t n) {
  tar_header(out, name, kind, n);
  tnk__buf_append(out, data, n);
  tar_pad(out);
}

/* A record of pax before the next entry. */
static inline void tar_pax(tnk__buf_t *out, char kind, const char *key,
                           const char *value) {
  char record[1024];
  int n = (int)(strlen(key) + strlen(value) + 3);
  int digits = snprintf(NULL, 0, "%d", n);

  n += snprintf(NULL, 0, "%d", n + digits);
  snprintf(record, sizeof(record), "%d %s=%s\n", n, key, value);
  tar_entry(out, "pax", kind, record, (size_t)n);
}

static inline void tar_end(tnk__buf_t *out) {
  static const char zeros[1024];

  tnk__buf_append(out, zeros, sizeof(zeros));
}

/* Write the sum of a block anew after a change of it. */
static inline void tar_mend(uint8_t *block) {
  unsigned sum = 0;

  memset(block + 148, ' ', 8);
  for (int i = 0; i < 512; i++)
    sum += block[i];
  snprintf((char *)block + 148, 8, "%06o", sum & 0777777);
}

/* One member of gzip. */
static inline void gzip_member(tnk__buf_t *out, const void *data, size_t n) {
  z_stream stream = {0};
  union {
    const void *in;
    void *out;
  } input = {.in = data};

  CHECK_INT(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, 0), Z_OK);
  stream.next_in = input.out;
  stream.avail_in = (uInt)n;
  stream.avail_out = (uInt)(n + 1000);
  stream.next_out = tnk__buf_reserve(out, n + 1000);
  CHECK_INT(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out->len += stream.total_out;
  deflateEnd(&stream);
}

#endif

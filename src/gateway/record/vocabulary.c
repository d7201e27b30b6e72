/* SPDX-License-Identifier: MIT */
#include "gateway/record/vocabulary.h"

#include "gateway/base/map.h"
#include "tnk/error.h"

/* A tokenizer plug-in does not report how many ids it has. The last id is
 * followed by MAX_GAP ids without any bytes. */
enum { MAX_GAP = 65536, MAX_ID = 1 << 24 };

typedef struct {
  uint64_t hash;
  int32_t id;
  int has_bytes; /* of this id */
} reader_t;

static int take_bytes(const char *bytes, size_t n, void *user) {
  reader_t *reader = user;

  if (n == 0)
    return TNK_OK;
  if (!reader->has_bytes)
    reader->hash = tnk__gw_hash(reader->hash, &reader->id, sizeof(reader->id));
  reader->has_bytes = 1;
  reader->hash = tnk__gw_hash(reader->hash, bytes, n);
  return TNK_OK;
}

uint64_t tnk__gw_vocabulary(const tnk_chat_tokenizer_t *tokenizer) {
  reader_t reader = {.hash = 3};

  for (int32_t last = 0; reader.id < MAX_ID && reader.id - last <= MAX_GAP;
       reader.id++) {
    reader.has_bytes = 0;
    /* An id that cannot be decoded has no bytes. */
    (void)tokenizer->plugin->decode(tokenizer->tokenizer, &reader.id, 1, 0,
                                    take_bytes, &reader, NULL, 0);
    if (reader.has_bytes)
      last = reader.id;
  }
  return reader.hash != 0 ? reader.hash : 1;
}

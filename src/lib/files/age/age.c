/* SPDX-License-Identifier: MIT */
#include "lib/files/age/age.h"

#include <string.h>

#include "lib/base/alloc.h"
#include "tnk/error.h"

/* ---- Chunks ---- */

/* Derive the key of the chunks and allocate the buffer of one chunk. TNK_OK,
 * TNK_ENOMEM, TNK_EINTERNAL. */
static int age_chunks_init(tnk__age_chunks_t *chunks,
                           const tnk_allocator_t *alloc,
                           const uint8_t file_key[TNK__AGE_FILE_KEY],
                           const uint8_t salt[TNK__AGE_FILE_NONCE]) {
  memset(chunks, 0, sizeof(*chunks));
  chunks->data = tnk__malloc(alloc, TNK__AGE_CHUNK + TNK__AGE_TAG);
  if (chunks->data == NULL)
    return TNK_ENOMEM;
  return tnk__age_derive(chunks->key, file_key, TNK__AGE_FILE_KEY, salt,
                         TNK__AGE_FILE_NONCE, "payload");
}

static void age_chunks_deinit(tnk__age_chunks_t *chunks,
                              const tnk_allocator_t *alloc) {
  if (chunks->data != NULL)
    tnk__wipe(chunks->data, TNK__AGE_CHUNK + TNK__AGE_TAG);
  tnk__free(alloc, chunks->data);
  tnk__wipe(chunks, sizeof(*chunks));
}

/* Copy bytes of a piece into the chunk until it has `max` bytes. Returns the
 * number of copied bytes. */
static size_t age_chunks_fill(tnk__age_chunks_t *chunks, const uint8_t *data,
                              size_t n, size_t max) {
  const size_t room = max - chunks->n;
  const size_t taken = n < room ? n : room;

  memcpy(chunks->data + chunks->n, data, taken);
  chunks->n += taken;
  return taken;
}

/* Increment the counter for the next chunk: the first 11 bytes. The last byte
 * marks the last chunk. */
static void age_chunks_next(tnk__age_chunks_t *chunks) {
  size_t i = TNK__AGE_NONCE - 1;

  while (i-- > 0 && ++chunks->nonce[i] == 0)
    ;
  chunks->n = 0;
}

/* Returns whether this is the first chunk. */
static int age_chunks_is_first(const tnk__age_chunks_t *chunks) {
  for (size_t i = 0; i < TNK__AGE_NONCE - 1; i++)
    if (chunks->nonce[i] != 0)
      return 0;
  return 1;
}

/* ---- Sealing ---- */

int tnk__age_seal_init(tnk__age_seal_t *seal, const tnk_allocator_t *alloc,
                       const uint8_t (*recipients)[TNK__AGE_KEY], size_t n,
                       tnk__age_random_t random, void *user, tnk__buf_t *out) {
  uint8_t key[TNK__AGE_FILE_KEY], salt[TNK__AGE_FILE_NONCE];
  int err = n > 0 && n <= TNK__AGE_MAX_STANZAS ? TNK_OK : TNK_EINVAL;

  memset(seal, 0, sizeof(*seal));
  seal->alloc = alloc;
  if (err == TNK_OK && (random(user, key, sizeof(key)) != 0 ||
                        random(user, salt, sizeof(salt)) != 0))
    err = TNK_ESYSTEM;
  if (err == TNK_OK)
    err = tnk__age_head_write(out, key, recipients, n, random, user);
  if (err == TNK_OK)
    err = tnk__buf_append(out, salt, sizeof(salt));
  if (err == TNK_OK)
    err = age_chunks_init(&seal->chunks, alloc, key, salt);
  tnk__wipe(key, sizeof(key));
  seal->err = err;
  return err;
}

static int encrypt(tnk__age_seal_t *seal, tnk__buf_t *out, int is_last) {
  tnk__age_chunks_t *chunks = &seal->chunks;
  uint8_t *room = tnk__buf_reserve(out, chunks->n + TNK__AGE_TAG);
  int err;

  if (room == NULL)
    return out->err;
  chunks->nonce[TNK__AGE_NONCE - 1] = (uint8_t)is_last;
  err = tnk__age_encrypt(room, chunks->key, chunks->nonce, chunks->data,
                         chunks->n);
  if (err == TNK_OK)
    out->len += chunks->n + TNK__AGE_TAG;
  age_chunks_next(chunks);
  return err;
}

int tnk__age_seal_feed(tnk__age_seal_t *seal, tnk__buf_t *out, const void *data,
                       size_t n) {
  const uint8_t *at = data;

  /* A full chunk is kept until more data shows that it is not the last one. */
  while (seal->err == TNK_OK && n > 0) {
    size_t taken;
    if (seal->chunks.n == TNK__AGE_CHUNK)
      seal->err = encrypt(seal, out, 0);
    if (seal->err != TNK_OK)
      break;
    taken = age_chunks_fill(&seal->chunks, at, n, TNK__AGE_CHUNK);
    at += taken;
    n -= taken;
  }
  return seal->err;
}

int tnk__age_seal_finish(tnk__age_seal_t *seal, tnk__buf_t *out) {
  if (seal->err == TNK_OK)
    seal->err = encrypt(seal, out, 1);
  return seal->err;
}

void tnk__age_seal_deinit(tnk__age_seal_t *seal) {
  age_chunks_deinit(&seal->chunks, seal->alloc);
}

/* ---- Opening ---- */

static const char cut[] = "the file is truncated";

void tnk__age_open_init(tnk__age_open_t *open, const tnk_allocator_t *alloc,
                        tnk__age_random_t random, void *user) {
  memset(open, 0, sizeof(*open));
  open->alloc = alloc;
  tnk__age_head_init(&open->head, alloc, random, user);
}

int tnk__age_open_add(tnk__age_open_t *open,
                      const uint8_t identity[TNK__AGE_KEY]) {
  tnk__age_head_t *head = &open->head;

  if (head->n_identities == TNK__AGE_MAX_IDENTITIES)
    return TNK_EINVAL;
  memcpy(head->identities[head->n_identities++], identity, TNK__AGE_KEY);
  return TNK_OK;
}

void tnk__age_open_deinit(tnk__age_open_t *open) {
  tnk__age_head_deinit(&open->head);
  age_chunks_deinit(&open->chunks, open->alloc);
}

static int refuse(tnk__age_open_t *open, int err, const char *why) {
  open->why = why;
  return err;
}

/* Decrypt the chunk directly into `out`. The bytes are appended only if they
 * are authentic. */
static int decrypt(tnk__age_open_t *open, tnk__buf_t *out, int is_last) {
  tnk__age_chunks_t *chunks = &open->chunks;
  const size_t n = chunks->n - TNK__AGE_TAG;
  uint8_t *room = tnk__buf_reserve(out, n > 0 ? n : 1);
  int err;

  if (room == NULL)
    return out->err;
  chunks->nonce[TNK__AGE_NONCE - 1] = (uint8_t)is_last;
  err = tnk__age_decrypt(room, chunks->key, chunks->nonce, chunks->data, n);
  chunks->nonce[TNK__AGE_NONCE - 1] = 0;
  if (err == TNK_OK)
    out->len += n;
  return err;
}

/* Decrypt a full chunk that is not the last one. */
static int take_chunk(tnk__age_open_t *open, tnk__buf_t *out) {
  int err = decrypt(open, out, 0);

  if (err == TNK_OK) {
    age_chunks_next(&open->chunks);
  } else if (err == TNK_ECORRUPT) {
    err = decrypt(open, out, 1);
    if (err == TNK_OK)
      return refuse(open, TNK_ECORRUPT, "the file has bytes after its end");
    if (err == TNK_ECORRUPT)
      return refuse(open, err, "the file was changed");
  }
  return err;
}

static int read_salt(tnk__age_open_t *open, const uint8_t *data, size_t n,
                     size_t *used) {
  while (*used < n && open->n_salt < TNK__AGE_FILE_NONCE)
    open->salt[open->n_salt++] = data[(*used)++];
  if (open->n_salt < TNK__AGE_FILE_NONCE)
    return TNK_OK;
  return age_chunks_init(&open->chunks, open->alloc, open->head.key,
                         open->salt);
}

static int read_on(tnk__age_open_t *open, tnk__buf_t *out, const uint8_t *data,
                   size_t n) {
  tnk__age_chunks_t *chunks = &open->chunks;
  const size_t max = TNK__AGE_CHUNK + TNK__AGE_TAG;
  size_t used = 0;
  int err = TNK_OK;

  if (open->head.state != TNK__AGE_DONE) {
    err = tnk__age_head_feed(&open->head, data, n, &used);
    open->why = open->head.why;
  }
  if (err == TNK_OK && used < n && chunks->data == NULL)
    err = read_salt(open, data, n, &used);
  while (err == TNK_OK && used < n) {
    if (chunks->n == max)
      err = take_chunk(open, out);
    if (err == TNK_OK)
      used += age_chunks_fill(chunks, data + used, n - used, max);
  }
  return err;
}

int tnk__age_open_feed(tnk__age_open_t *open, tnk__buf_t *out, const void *data,
                       size_t n) {
  if (open->err == TNK_OK)
    open->err = out->err;
  if (open->err == TNK_OK)
    open->err = read_on(open, out, data, n);
  return open->err;
}

static int take_last(tnk__age_open_t *open, tnk__buf_t *out) {
  tnk__age_chunks_t *chunks = &open->chunks;
  int err;

  if (open->head.state != TNK__AGE_DONE && open->head.text.len == 0)
    return refuse(open, TNK_EPROTO, "the file is empty");
  if (chunks->data == NULL || chunks->n < TNK__AGE_TAG)
    return refuse(open, TNK_ECORRUPT, cut);
  if (chunks->n == TNK__AGE_TAG && !age_chunks_is_first(chunks))
    return refuse(open, TNK_ECORRUPT, "the file ends with an empty chunk");
  err = decrypt(open, out, 1);
  if (err != TNK_ECORRUPT)
    return err;
  /* If the chunk is valid as a middle chunk, the file was truncated after
   * it. */
  if (chunks->n == TNK__AGE_CHUNK + TNK__AGE_TAG &&
      decrypt(open, out, 0) == TNK_OK)
    return refuse(open, TNK_ECORRUPT, cut);
  return refuse(open, TNK_ECORRUPT,
                "the end of the file was changed or is missing");
}

int tnk__age_open_finish(tnk__age_open_t *open, tnk__buf_t *out) {
  if (open->err == TNK_OK)
    open->err = out->err;
  if (open->err == TNK_OK)
    open->err = take_last(open, out);
  return open->err;
}
